"""The page in a real browser: it answers as the API does, asks nobody else, and runs nothing that anybody typed."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
import torch

from regard.cli.sentence import take
from regard.web.models import Models
from tests.chromium import faults
from tests.web.small import served

HOSTILE = [
    "<img src=x onerror=\"document.title='run'\">",
    "</script><script>document.title='run'</script>",
    "<svg/onload=document.title='run'>",
    "javascript:document.title='run'",
    "\"'><b onmouseover=document.title='run'>",
    "\u202eevil\u202c",
    "&lt;b&gt;",
]


@pytest.fixture(scope="module")
def address(models):
    with served(models) as address:
        yield address


@pytest.fixture
def open_page(visit, address):
    def go(query: str = "", **options):
        visited = visit(f"{address}/{query}", under=address, **options)
        visited.page.wait_for_selector("body[data-ready]")
        return visited

    return go


def cell(page) -> tuple[int, int, float]:
    node = page.locator("#grid [role=gridcell]").first
    return tuple(json.loads(node.get_attribute(f"data-{name}")) for name in ("row", "column", "weight"))


def test_a_sentence_is_seen_and_the_numbers_are_torchs(open_page):
    visited = open_page()
    expected = take("This is a cat", "scaled-dot", "softmax", None, "matrices", "rows", 4, 0).steps.weights
    visited.page.locator("#grid").focus()
    for j in range(4):
        assert cell(visited.page) == (0, j, pytest.approx(expected[0, j].item(), abs=1e-7))
        visited.page.keyboard.press("ArrowRight")
    assert visited.outside == []


def test_another_mechanism_is_seen_at_once(open_page):
    visited = open_page()
    with visited.page.expect_response("**/api/attend"):
        visited.page.select_option("#score", "gaussian")
    with visited.page.expect_response("**/api/attend"):
        visited.page.select_option("#mask", "causal")
    visited.page.wait_for_selector("body:not(.waiting) #view [data-ready]")
    visited.page.locator("#grid").focus()
    visited.page.keyboard.press("Control+End")
    expected = take("This is a cat", "gaussian:1", "softmax", "causal", "matrices", "rows", 4, 0).steps.weights
    assert cell(visited.page) == (3, 3, pytest.approx(expected[3, 3].item(), abs=1e-7))
    assert "score=gaussian%3A1" in visited.page.url  # the address can be sent to somebody


def test_an_address_brings_back_what_was_seen(open_page):
    visited = open_page(
        "?text=one+two+three&score=dot&normalizer=sparsemax&score2=additive:3&normalizer2=softmax&seed=7"
    )
    page = visited.page
    assert page.input_value("#text") == "one two three"
    assert page.locator("#both").is_checked()
    assert page.get_by_role("tab", name="Compare").get_attribute("aria-selected") == "true"
    maps = page.locator("#pick-map option").all_inner_texts()
    assert maps == ["dot, sparsemax", "additive:3, softmax"]


def test_the_walk_through_is_the_servers_sentence(open_page):
    visited = open_page()
    visited.page.get_by_role("tab", name="Walk-through").click()
    visited.page.wait_for_selector("table")
    steps = take("This is a cat", "scaled-dot", "softmax", None, "matrices", "rows", 4, 0).steps
    text = visited.page.locator("#panel").inner_text()
    for number in steps.weights[0].tolist():
        assert f"{number:.3f}" in text


def test_by_keyboard_alone(open_page):
    visited = open_page()
    page = visited.page
    page.locator("#text").fill("one two")
    with page.expect_response("**/api/attend"):
        page.keyboard.press("Control+Enter")
    page.wait_for_selector("#view [data-ready] >> text=one two")
    page.locator("#tasks input:checked").focus()
    with page.expect_response("**/api/translate"):
        page.keyboard.press("ArrowRight")  # a radio group: the next task
    page.wait_for_selector("#answer .said")


@pytest.mark.parametrize("task", ["translate", "tag", "classify", "fill", "denoise", "generate"])
def test_every_task_is_answered_and_drawn(open_page, task, client):
    text = "the black ____ sees the dog" if task == "fill" else "the black cat sees the dog"
    visited = open_page(f"?task={task}&text={quote(text)}")
    body = {"text": text, **({"n_best": 3} if task == "denoise" else {})}
    said = visited.page.locator("#answer").inner_text()
    if task == "tag":
        assert said.split() == [
            part
            for pair in zip(text.split(), ["DET", "ADJ", "NOUN", "VERB", "DET", "NOUN"], strict=True)
            for part in pair
        ]
    elif task in ("classify", "fill", "translate", "denoise"):
        assert client.post(f"/api/{task}", json=body).json()["output"] in said
    else:
        assert said.startswith(text)
    assert visited.page.locator(".flow" if task in ("classify", "fill") else "#grid").count() == 1
    assert visited.outside == []


def test_what_is_wrong_is_said_beside_the_form(open_page):
    visited = open_page()
    visited.page.locator("#text").fill("   ")
    visited.page.click("#go")
    visited.page.wait_for_selector("#error:not(:empty)")
    assert visited.page.inner_text("#error") == "text: holds no word; expected words, such as 'This is a cat'"
    assert visited.page.locator("#grid").count() == 1  # what was seen before is still there
    visited.errors.clear()  # chromium writes every 422 into its console


@pytest.mark.parametrize(
    ("form", "start"), [("html", b"<!DOCTYPE"), ("png", b"\x89PNG"), ("svg", b"<?xml"), ("weights", b'{"title"')]
)
def test_it_can_be_kept(open_page, form, start):
    visited = open_page()
    with visited.page.expect_download() as saved:
        visited.page.click(f"#save-{form}")
    with open(saved.value.path(), "rb") as file:
        assert file.read().startswith(start)


@pytest.mark.parametrize("task", ["attend", "translate", "tag", "classify", "fill", "generate"])
def test_what_was_typed_is_text(open_page, task):
    text = " ".join(HOSTILE) + (" ____" if task == "fill" else "")
    visited = open_page(
        f"?task={task}&text={quote(text)}&model={quote(HOSTILE[0])}&to={quote(HOSTILE[1])}&mask={quote(HOSTILE[2])}"
    )
    page = visited.page
    assert page.title() == "regard"
    inside = """() => [document, ...[...document.querySelectorAll("*")].map((e) => e.shadowRoot).filter(Boolean)]
        .flatMap((root) => [...root.querySelectorAll("img, script, b, [onerror], [onload], [onmouseover]")])
        .map((e) => e.outerHTML).filter((html) => !html.includes('src="/icon.svg"') && !html.includes('src="/page.js"') && !/^<b>[0-9.<−&lt;]*<\\/b>$/.test(html))"""
    assert page.evaluate(inside) == []
    assert page.locator("#grid, .flow").count() == 1
    for tab in page.get_by_role("tab").all():
        tab.click()
        page.wait_for_timeout(30)
        assert page.evaluate(inside) == []
    assert page.title() == "regard"
    assert visited.outside == []


def test_another_site_gets_nothing(browser, address):
    """A page elsewhere asks this server, as a name that was pointed at it would."""
    context = browser.new_context()
    page = context.new_page()
    page.route(
        "http://evil.example/", lambda route: route.fulfill(body="<title>evil</title>", content_type="text/html")
    )
    page.goto("http://evil.example/")
    script = """async (address) => {
        try { return await (await fetch(address + "/api/attend", {method: "POST", headers: {"content-type": "application/json"}, body: '{"text": "a"}'})).text(); }
        catch { return "refused"; } }"""
    assert page.evaluate(script, address) == "refused"
    simple = """async (address) => { const answer = await fetch(address + "/api/health", {mode: "no-cors"}); return answer.type; }"""
    with pytest.raises(Exception, match="Failed to fetch"):  # Cross-Origin-Resource-Policy
        page.evaluate(simple, address)
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    "query", ["", "?score2=additive", "?task=translate&text=the+black+cat", "?task=tag&text=the+cat", "docs"]
)
def test_axe_finds_no_serious_fault(open_page, visit, address, axe, theme, query):
    if query == "docs":
        visited = visit(f"{address}/docs", under=address, color_scheme=theme)
        visited.page.wait_for_selector("section")
    else:
        visited = open_page(query, color_scheme=theme)
    assert faults(visited.page, axe) == []


@pytest.mark.parametrize("width", [360, 1300])
def test_nothing_is_wider_than_the_window(open_page, width):
    visited = open_page(viewport={"width": width, "height": 800})
    assert visited.page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_a_model_it_says_which_tasks_are_missing(visit):
    with served(Models()) as address:
        page = visit(f"{address}/?task=translate", under=address).page
        page.wait_for_selector("body[data-ready]")
        assert page.locator("#tasks input:not(:disabled)").evaluate_all("all => all.map((x) => x.value)") == ["attend"]
        said = "No model is here for Translate, Tag, Classify, Fill in, Restore, Go on: regard train makes one"
        assert page.locator("#lacking").inner_text().startswith(said)


def test_with_all_models_nothing_is_missing(open_page):
    page = open_page().page
    assert page.locator("#tasks input:disabled").count() == 0
    assert not page.locator("#lacking").is_visible()
    assert page.locator(".formula sub").first.inner_text() == "k"  # q · k / √d_k


def test_the_documentation_names_every_operation(visit, address, client):
    visited = visit(f"{address}/docs", under=address)
    visited.page.wait_for_selector("section")
    headings = visited.page.locator("h2").all_inner_texts()
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        for method in methods:
            assert f"{method.upper()}{path}" in [heading.replace(" ", "") for heading in headings]
    assert visited.outside == []


def test_light_and_dark_are_one_switch(open_page):
    visited = open_page(color_scheme="light")
    page = visited.page
    page.click("#theme >> nth=0")
    page.wait_for_function("document.documentElement.classList.contains('dark')")
    page.wait_for_selector(".root.dark")
    torch.manual_seed(0)
