"""The walk-through: the page computes every built-in mechanism itself, and its numbers are torch's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from regard import masks
from regard.cli.sentence import rounded
from regard.cli.show import show
from regard.mechanisms import NORMALIZERS, SCORES, make_normalizer, make_score
from regard.see.page import view_js
from regard.see.walkthrough import walk_of
from regard.steps import step_by_step
from tests.chromium import Visit

WORDS = ["This", "is", "a", "cat", "is"]


@pytest.fixture
def module(visit, tmp_path) -> Visit:
    """view.js, loaded for its walkThrough, without anything on show."""
    html = (
        "<!DOCTYPE html><title>a</title><script type=module>\n" + view_js() + "\nwindow.walk = walkThrough;\n</script>"
    )
    (tmp_path / "module.html").write_text(html, encoding="utf-8")
    visited = visit((tmp_path / "module.html").as_uri())
    visited.page.wait_for_function("Boolean(window.walk)")
    return visited


@pytest.mark.parametrize("mask", [None, masks.causal(), masks.window(0, 0) & ~masks.global_tokens([2])])
def test_every_mechanism_gives_the_numbers_of_torch(module, mask):
    a, *w = (torch.randn(size, 3, dtype=torch.float64) for size in (5, 3, 3, 3))
    a[4] = a[1]  # the same word twice: an exact match
    by_name = dict(zip("qkv", w, strict=True))
    asked, expected = [], []
    for score_name in [*SCORES, "soft-cap:0.5", "gaussian:2"]:
        for normalizer_name in [*NORMALIZERS, "entmax:1.3", "sigmoid:-2"]:
            score, normalizer = make_score(score_name, 3, 3).double(), make_normalizer(normalizer_name).double()
            parts = {"score": score, "normalizer": normalizer.eval()}
            for parameter in (*score.parameters(), *normalizer.parameters()):
                torch.nn.init.normal_(parameter)  # some begin at 0, where much looks right
            with torch.no_grad():
                steps = step_by_step(a, *w, **parts, mask=mask)
                names = {"score": score_name, "normalizer": normalizer_name}
                walk = walk_of(WORDS, steps, by_name, {score_name: score}, {normalizer_name: normalizer}, **names)
            asked.append(json.loads(json.dumps(walk)))
            expected.append((score_name, normalizer_name, steps))
    assert len(asked) > 80
    given = [kind for walk in asked for kind in walk["scores"].values() if kind["kind"] == "Given"]
    assert given == []  # the page computes all of them itself
    found = module.page.evaluate(
        """walks => walks.map((w) => {
          const t = walk(w, w.scores[w.score], w.normalizers[w.normalizer]), plain = (rows) => rows.map((row) => Array.from(row));
          return { q: plain(t.q), scores: plain(t.scores), weights: plain(t.weights), b: plain(t.b) };
        })""",
        asked,
    )
    for numbers, (score_name, normalizer_name, steps) in zip(found, expected, strict=True):
        there = torch.ones(5, 5, dtype=torch.bool) if steps.allowed is None else steps.allowed
        sees = there.any(-1)  # torch blanks queries that see nothing
        for name, theirs, counts in (
            ("q", steps.q, sees),
            ("scores", steps.scores, there),
            ("weights", steps.weights, ...),
            ("b", steps.b, ...),
        ):
            ours = torch.tensor(numbers[name], dtype=torch.float64)[counts]
            said = f"{score_name}, {normalizer_name}: {name} is {ours}; torch has {theirs[counts]}"
            torch.testing.assert_close(ours, theirs[counts], rtol=0, atol=1e-9, msg=said)


@pytest.fixture
def shown(visit, tmp_path: Path):
    def go(*, state: str = "view=walk", **asked: object) -> Visit:
        show("This is a cat", out=tmp_path / "cat.html", **asked)
        visited = visit(f"{(tmp_path / 'cat.html').as_uri()}#{state}")
        visited.page.wait_for_selector("#view[data-ready]")
        return visited

    return go


@pytest.mark.parametrize("score", ["dot", "additive", "scaled-dot"])
@pytest.mark.parametrize("mask", [None, "causal"])
def test_the_page_says_how_far_it_is_from_torch(shown, score, mask):
    page = shown(score=score, mask=mask).page
    assert float(page.locator("#agrees").get_attribute("data-apart")) < 1e-12
    assert "torch's numbers differ by at most" in page.locator("#agrees").inner_text()
    assert page.get_by_role("heading", name="mask:").count() == (mask is not None)
    assert page.get_by_role("heading", name="scale:").count() == (score == "scaled-dot")


def test_another_mechanism_and_another_number(shown):
    page = shown(score="dot").page
    page.locator("#pick-score").select_option("additive")
    page.locator("#pick-normalizer").select_option("sparsemax")
    page.wait_for_selector("#reset")
    assert 0 < float(page.locator("#agrees").get_attribute("data-apart")) < 1e-12  # torch computed this one too
    theirs = _torch("additive", "sparsemax")
    rows = page.locator("table:has(caption:text('each row is the attention')) tbody tr").all()
    read = [[float(td) for td in row.locator("td").all_inner_texts()[:4]] for row in rows]
    torch.testing.assert_close(torch.tensor(read), theirs.weights.float(), rtol=0, atol=5e-4 + 1e-6)
    page.locator("#reset").click()
    page.wait_for_selector("#reset", state="detached")
    first = page.locator("td input").first
    first.fill("5")
    page.keyboard.press("Tab")
    page.wait_for_selector("#reset")
    assert page.locator("#agrees").inner_text() == "Computed in this page, with your changes."
    active = "document.querySelector('#view').shadowRoot.activeElement"
    assert page.evaluate(f"{active}.getAttribute('aria-label')") == "This, a2"  # the focus moved on
    assert page.evaluate(f"{active}.isConnected")


def _torch(score: str, normalizer: str):
    from regard.cli.sentence import take

    return take("This is a cat", score, normalizer, None, "matrices", "rows", 4, 0).steps


def test_parameters_with_one_decimal_are_those_of_the_walk():
    assert rounded(make_score("additive:4", 4, 4, 0)).v.tolist() == pytest.approx([0.0, 0.3, -0.4, -0.4])
