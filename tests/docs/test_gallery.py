"""The gallery: every mechanism has its page, every page's code runs, every link leads somewhere, offline."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import pytest
import torch

import regard
from docs import build, pictures
from docs.gallery import ENTRIES, KINDS, Entry
from docs.sentence import WORDS, vectors
from regard.core import biases, masks
from regard.mechanisms import NORMALIZERS, SCORES
from regard.nn import positions
from regard.tasks.catalogue import TASKS
from tests import mechanisms
from tests.chromium import faults

SHOWN = ["cat-dot", "cat-compare", "words"]
SOME = ["scaled-dot", "own", "entmax", "per-head", "padding", "alibi", "autoencoder", "translate"]
EXPLAINED = {name.partition("(")[0] for entry in ENTRIES for name in entry.shows}


def of(kind: str) -> dict[str, Entry]:
    return {entry.slug: entry for entry in ENTRIES if entry.kind == kind}


# Nothing is left out


def test_every_name_of_the_command_line_has_a_page():
    assert set(of("score")) == {*SCORES, "own"}
    assert set(of("normalizer")) == {*NORMALIZERS, "sample"}
    assert set(of("task")) == set(TASKS)


@pytest.mark.parametrize("module", [masks, biases, positions], ids=lambda module: module.__name__)
def test_every_public_name_has_a_page(module):
    bases = {"Mask", "Bias"}
    assert {*module.__all__} - bases <= EXPLAINED


@pytest.mark.parametrize("row", [*mechanisms.SCORES, *mechanisms.NORMALIZERS], ids=str)
def test_every_row_of_the_table_of_tests_has_a_page(row):
    part = row.make()
    name = type(part).__name__
    assert name in EXPLAINED or name in ("Biased", "function")


def test_every_page_says_all_that_it_must():
    assert len({entry.slug for entry in ENTRIES}) == len(ENTRIES)
    for entry in ENTRIES:
        assert entry.kind in KINDS
        assert all([entry.title, entry.formula, entry.what, entry.when])
        lines = build.code_of(entry).splitlines()
        assert len(lines) <= (12 if entry.kind != "model" else 24), entry.slug
        assert max(map(len, lines)) <= 120


# The code runs


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.slug)
def test_the_code_of_every_page_runs_and_is_drawn(entry, request):
    model = None
    if entry.kind == "task":
        model = str(request.getfixturevalue("models").entries[f"my {entry.slug}"].folder)
    made = build.run(entry, steps=2, model=model)
    assert made.picture is not None
    assert made.picture.weights.isfinite().all()
    assert made.picture.weights.any()


def test_a_picture_is_of_the_numbers_that_the_formula_gives():
    x = vectors()
    expected = torch.softmax(x @ x.mT / 8**0.5, -1)
    drawn = build.run(of("score")["scaled-dot"]).picture
    torch.testing.assert_close(drawn.weights[0], expected)
    assert list(drawn.rows) == WORDS
    banded = build.run(of("mask")["window"]).picture.weights[0]
    i = torch.arange(len(WORDS))
    assert torch.equal(banded > 0, (i[:, None] - i).abs() <= 2)


def test_costs_are_what_the_backends_say():
    costs = dict(build.run(of("score")["additive"]).costs)
    assert costs["sdpa"] == "no: torch's fused attention knows dot products only, not Additive"
    assert costs["reference"] == "yes"
    assert costs["parameters (d = 8)"] == str(2 * 8 * 16 + 16 + 16)  # W_q, W_k, b, v
    assert costs["numbers for each pair"] == "16"  # one for each hidden unit
    assert dict(build.run(of("mask")["causal"]).costs)["of 14 · 14 pairs, on average"] == str(14 * 15 // 2)


def test_all_on_one_sentence():
    side = build.side_by_side()
    assert list(side.maps) == [*SCORES, *NORMALIZERS]
    hard = side.weights[side.maps.index("hard")]
    assert hard.sum(-1).tolist() == [1.0] * len(WORDS)
    x = vectors()
    expected = regard.attention_weights(x, x, normalizer=regard.normalizers.Entmax(1.5))
    torch.testing.assert_close(side.weights[side.maps.index("entmax")], expected)


# The site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build.build(folder, [*SOME, *SHOWN], steps=2)
    return folder


def test_every_link_leads_somewhere_here(site):
    pages = sorted(site.glob("*.html"))
    assert len(pages) >= 2 + len(SOME) + len(SHOWN)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        if page.name.endswith(".view.html") or page.stem in SHOWN:
            continue  # regard.see's own: tested there
        links = re.findall(r'(?:href|src|srcset)="([^"]*)"', text)
        assert links
        for link in links:
            name, _, part = link.partition("#")
            assert link == "data:," or (site / (name or page.name)).is_file(), f"{page.name}: {link}"
            if part and name == "index.html":
                assert part in KINDS
        assert "://" not in re.sub(r"<pre.*?</pre>", "", text, flags=re.DOTALL)


def test_pictures_are_what_their_commands_make(site, tmp_path, monkeypatch):
    """The commands of the page, typed as they stand there."""
    page = (site / "pictures.html").read_text(encoding="utf-8")
    blocks = [html.unescape(block) for block in re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", page, re.DOTALL)]
    commands = [line for block in blocks[::2] for line in block.splitlines()]
    assert len(blocks) == 2 * len(SHOWN)
    assert len(commands) == 3 * len(SHOWN)
    (tmp_path / "examples").symlink_to(Path("examples").absolute())
    monkeypatch.chdir(tmp_path)
    for command in commands:
        regard, *arguments = shlex.split(command)
        assert regard == "regard"
        said = pictures.run(arguments)
        if "--out" in arguments:
            name = arguments[-1]
            assert Path(name).read_bytes() == (site / name).read_bytes()
        else:
            assert said in blocks


def test_code_is_shown_as_it_ran(site):
    text = (site / "entmax.html").read_text(encoding="utf-8")
    shown = re.search(r"<pre[^>]*><code>(.*?)</code></pre>", text, re.DOTALL)
    assert shown
    plain = html.unescape(re.sub(r"<[^>]+>", "", shown[1]))
    assert plain == build.code_of(of("normalizer")["entmax"])


@pytest.mark.parametrize(
    "code", ["x = 1", 'a = "<b>" if x else \'&\'  # <i>\n\ndef f():\n    return """\n<p>\n"""\n', ""]
)
def test_colours_change_no_letter(code):
    assert html.unescape(re.sub(r"<[^>]+>", "", build.coloured(code))) == code


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", ["index", "per-head", "pictures"])
def test_it_opens_offline_without_a_fault(site, visit, axe, page, theme):
    visited = visit((site / f"{page}.html").as_uri(), under=site.as_uri(), color_scheme=theme)
    shown = visited.page.evaluate("[...document.images].map((image) => [image.currentSrc, image.naturalWidth])")
    assert shown
    for source, width in shown:
        assert f".{theme}.svg" in source or Path(source).stem in SHOWN  # these are as their commands make them
        assert width > 0
    assert faults(visited.page, axe) == []
    assert visited.outside == []
