"""The view in a real browser: as a file, in a notebook and from a server; its numbers are torch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import regard
from regard.nn import MultiHeadAttention
from regard.see import Picture
from regard.see import picture as module
from regard.see.palette import shade, weigh_colour
from tests.chromium import Visit, faults
from tests.installing import debian, skip_aloud
from tests.see.test_figure import has_letters

ENGLISH = ["The", "black", "cat", "ate", "the", "mouse", "."]
FRENCH = ["Le", "chat", "noir", "a", "mangé", "la", "souris", "."]
# The strongest key of each French word: "black cat" turns round, "ate" holds for two steps.
PAIRS = [0, 2, 1, 3, 3, 4, 5, 6]
WHITE, HOT = (255, 255, 255), (0x1F, 0x5F, 0xBF)


def alignment() -> Picture:
    scores = torch.rand(8, 7) + 4 * torch.nn.functional.one_hot(torch.tensor(PAIRS), 7)
    return Picture(scores.softmax(-1), FRENCH, ENGLISH, title="Le chat noir", note="Made up.", view="alignment")


def heads(n: int = 7, layers: int = 2, each: int = 3) -> Picture:
    weights = (2 * torch.randn(layers * each, n, n)).softmax(-1)
    tokens = ["<s>", "un", "happy", "cat", "sat", "down", "</s>", *map(str, range(n))][:n]
    names = [f"layer {layer + 1} · head {head + 1}" for layer in range(layers) for head in range(each)]
    words = [0, 1, 1, 2, 3, 4, 5, *range(6, n)][:n]
    return Picture(
        weights, tokens, tokens, title="Heads", maps=names, layers=[i // each for i in range(layers * each)],
        special={"<s>", "</s>"}, row_words=words, column_words=words,
    )  # fmt: skip


def cell(where: Any) -> tuple[int, int, float]:
    """The cell under the cursor, as the grid says it to assistive technology."""
    node = where.locator("#grid [role=gridcell]")
    row, column, weight = (node.get_attribute(f"data-{name}") for name in ("row", "column", "weight"))
    return int(row), int(column), float(weight)


def go_to(visited: Visit, state: str) -> None:
    """As if somebody pasted another view into the address."""
    visited.page.evaluate("state => { location.hash = state; }", state)
    visited.page.wait_for_timeout(60)


# ---------------------------------------------------------------- three ways to open it


def test_a_file_is_exact_and_asks_nothing_of_anybody(as_file):
    picture = Picture(torch.randn(3, 4).softmax(-1), ["a", "b", "c"], list("wxyz"))
    visited = as_file(picture)
    read = torch.zeros(3, 4, dtype=torch.float64)
    visited.page.locator("#grid").focus()
    for i in range(3):
        for _ in range(4):
            row, column, weight = cell(visited.page)
            read[row, column] = weight
            visited.page.keyboard.press("ArrowRight")
        assert column == 3  # the last column is the end
        visited.page.keyboard.press("Home")
        visited.page.keyboard.press("ArrowDown")
        assert i == row
    assert torch.equal(read.float(), picture.weights[0])  # to the bit
    assert visited.outside == []


def test_a_notebook_frames_the_same(as_notebook):
    picture = alignment()
    visited = as_notebook(picture)
    frame = visited.page.frame_locator("iframe")
    frame.locator("#grid").focus()
    for _ in range(3):
        visited.page.keyboard.press("ArrowDown")
    row, column, weight = cell(frame)
    assert (row, column) == (3, 0)
    assert weight == picture.weights[0, 3, 0].item()
    assert visited.outside == []
    for kind in ("png", "svg"):  # a frame without any rights may still give away its picture
        with visited.page.expect_download() as saved:
            frame.locator(f"#{kind}").click()
        assert saved.value.suggested_filename == f"Le-chat-noir.{kind}"


def test_a_server_with_a_strict_policy_can_serve_it(as_served):
    picture = heads()
    visited = as_served(picture)
    visited.page.locator("#grid").focus()
    visited.page.keyboard.press("Control+End")
    assert cell(visited.page) == (6, 6, picture.weights[0, 6, 6].item())
    assert visited.outside == []


def test_what_is_asked_of_others_is_counted_and_refused(visit, tmp_path):
    """The check above can fail."""
    (tmp_path / "a.html").write_text(
        "<script>fetch('https://example.org/x').catch(() => { document.title = 'refused' })</script>"
    )
    visited = visit((tmp_path / "a.html").as_uri())
    visited.page.wait_for_function("document.title === 'refused'")
    assert visited.outside == ["https://example.org/x"]
    visited.errors.clear()


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(("n", "signed"), [(200, False), (200, True), (600, False)])
def test_bytes_are_within_a_hundredth_of_the_row(as_file, n, signed):
    weights = torch.randn(n, n) if signed else (4 * torch.randn(n, n)).softmax(-1)
    visited = as_file(Picture(weights, [f"q{i}" for i in range(n)], [f"k{j}" for j in range(n)]))
    most = weights.abs().amax(-1)
    for i, j in torch.randint(n, (12, 2)).tolist():
        go_to(visited, f"row={i}&column={j}")
        row, column, weight = cell(visited.page)
        assert (row, column) == (i, j)
        assert abs(weight - weights[i, j].item()) <= 0.01 * most[i].item()


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_cells_have_the_colour_of_their_weight(as_file, signed, theme):
    weights = torch.randn(5, 6) if signed else torch.randn(5, 6).softmax(-1)
    visited = as_file(Picture(weights, list("abcde"), list("uvwxyz")), color_scheme=theme)
    pixels = visited.page.evaluate(
        """() => {
          const canvas = document.getElementById("view").shadowRoot.querySelector("#grid canvas");
          const [ch, cw] = [canvas.height / 5, canvas.width / 6], brush = canvas.getContext("2d");
          const pixel = (i, j) => [...brush.getImageData((j + 0.06) * cw, (i + 0.5) * ch, 1, 1).data.slice(0, 3)];
          return Array.from({ length: 5 }, (_, i) => Array.from({ length: 6 }, (_, j) => pixel(i, j)));
        }"""
    )
    most = weights.abs().max().item()
    for i in range(5):
        for j in range(6):
            expected = weigh_colour(weights[i, j].item(), most, signed, theme)
            assert pixels[i][j] == pytest.approx(expected, abs=3)  # 256 colours


def test_a_pooled_map_carries_the_largest_weights_exactly(as_file, monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 100)
    monkeypatch.setattr(module, "POOL", 5)
    attend, tokens = MultiHeadAttention(8, heads=1), [f"t{i}" for i in range(20)]
    with regard.record(torch.nn.ModuleDict({"self": attend})) as records:
        attend(3 * torch.randn(1, 20, 8))
    weights = records["self"].weights()[0, 0]
    visited = as_file(Picture.from_record(records["self"], tokens), "row=1")
    page = visited.page
    assert "pooled to 5 × 5 cells" in page.locator("#panel").inner_text()
    assert page.locator(".top h2").inner_text() == "t4 (5) attends most to"
    page.locator("#query").fill("7")  # the second cell holds queries 5 to 8
    assert page.locator(".top h2").inner_text() == "t6 (7) attends most to"
    bars = [line.split("\n") for line in page.locator(".top li").all_inner_texts()]
    best = weights[6].topk(8)
    assert [bar[0] for bar in bars] == [f"t{j} ({j + 1})" for j in best.indices.tolist()]
    assert [bar[-1] for bar in bars[:4]] == [f"{w:.3f}" for w in best.values[:4].tolist()]


# ---------------------------------------------------------------- moving about


def test_arrow_keys_move_and_say_where_they_are(as_file):
    picture = alignment()
    visited = as_file(picture, "view=matrix")
    page = visited.page
    page.locator("#grid").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    weight = picture.weights[0, 1, 2].item()
    said = f"chat attends {weight:.2f} to cat"
    assert page.locator("[role=status]").inner_text() == said
    grid = page.locator("#grid")
    pointed = page.locator(f"#{grid.get_attribute('aria-activedescendant')}")
    assert pointed.inner_text() == said
    assert pointed.get_attribute("aria-colindex") == "3"
    assert page.locator("#grid [role=row]").get_attribute("aria-rowindex") == "2"
    assert page.locator("#said").inner_text() == f"chat attends {weight:.3f} to cat"
    page.keyboard.press("ArrowLeft")
    assert page.locator("[role=status]").inner_text().endswith("to black")


def test_pointing_clicking_dragging_and_zooming(as_file):
    n = 40
    tokens = [f"t{i}" for i in range(n)]
    page = as_file(Picture(torch.eye(n), tokens, tokens)).page
    box = page.locator("#grid canvas").bounding_box()

    def over(i: float, j: float) -> tuple[float, float]:
        return box["x"] + (j + 0.5) * box["width"] / n, box["y"] + (i + 0.5) * box["height"] / n

    page.mouse.move(*over(10, 20))
    assert page.locator("#said").inner_text() == "t10 attends 0.000 to t20"
    page.mouse.click(*over(10, 10))
    page.mouse.move(*over(3, 4))
    assert page.locator(".pin").count() == 1
    page.mouse.move(*over(10, 10))
    page.locator("#grid").focus()
    page.keyboard.press("+")
    assert page.locator("[data-row]").evaluate_all("all => all.filter(x => x.className.includes('label')).length") == 20
    page.mouse.move(*over(20, 20))
    page.mouse.down()
    page.mouse.move(*over(12, 12), steps=4)
    page.mouse.up()
    assert page.locator(".pin").count() == 1  # a drag pins nothing
    assert "zoom=4-24-4-24" in page.url
    page.keyboard.press("0")
    assert "zoom=0-40-0-40" in page.url


def test_the_address_keeps_the_view(as_file, visit):
    picture = heads()
    page = as_file(picture).page
    page.get_by_role("tab", name="Matrix").click()
    page.locator("#pick-map").select_option("4")
    page.locator("#grid").focus()
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    page.locator("#theme").click()
    address = page.url
    again = visit(address).page
    again.wait_for_selector("#view[data-ready]")
    assert cell(again) == (1, 1, picture.weights[4, 1, 1].item())
    assert again.locator(".pin").count() == 1
    assert again.locator("#theme").inner_text() == "Light"


def test_nonsense_in_the_address_does_no_harm(as_file):
    nonsense = "view=toString&map=99&row=-7&column=99&zoom=9-3-x&pins=a-b_-1-2&sort=__proto__&scale=&theme=x&words=7"
    page = as_file(heads(), nonsense).page
    assert page.get_by_role("tab", name="Matrix").get_attribute("aria-selected") == "true"
    assert page.locator("#pick-map").input_value() == "5"
    assert cell(page)[:2] == (0, 6)


# ---------------------------------------------------------------- the views


def test_ribbons_and_matrix_are_linked_and_the_slider_goes_through_the_steps(as_file):
    visited = as_file(alignment())
    page = visited.page
    main = {}
    for i, j in enumerate(PAIRS):
        path = page.locator(f"path[data-row='{i}'][data-column='{j}']")
        main[FRENCH[i]] = path.evaluate("node => node.style.fill")
    assert {word for word, fill in main.items() if "inverted" in fill} == {"chat", "noir"}
    assert {word for word, fill in main.items() if "shared" in fill} == {"a", "mangé"}
    page.locator("path[data-row='2'][data-column='1']").dispatch_event("pointerenter")
    assert cell(page)[:2] == (2, 1)
    assert page.locator("path.on").get_attribute("data-row") == "2"
    slider = page.locator("#step")
    box = slider.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 9, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=10)
    page.mouse.move(box["x"] + 9, box["y"] + box["height"] / 2, steps=10)  # one drag all the way
    page.mouse.up()
    assert slider.input_value() == "0"
    visible = page.locator("path").evaluate_all(
        "all => all.filter(p => p.style.display !== 'none').map(p => p.dataset.row)"
    )
    assert set(visible) == {"0"}
    page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "word 2: chat"
    assert page.locator("#said").inner_text().startswith("chat attends")


def test_words_and_special_tokens(as_file):
    picture = heads()
    page = as_file(picture, "view=matrix").page
    page.locator("#tick-words").check()
    words = picture.whole_words()
    page.locator("#grid").focus()
    page.keyboard.press("ArrowDown")
    row, column, weight = cell(page)
    assert page.locator("[role=status]").inner_text().startswith("unhappy attends")
    assert weight == pytest.approx(words.weights[0, row, column].item(), abs=1e-6)
    page.locator("#tick-bare").check()
    bare = words.without_special()
    said = page.locator("#said").inner_text()
    assert said.startswith(f"unhappy attends {bare.weights[0, 0, 0]:.3f} to unhappy")
    assert f"({bare.removed[0, 0]:.2f} of its weight went to hidden tokens)" in said


def test_mass_removed_before_is_shown_too(as_file):
    bare = heads().without_special()
    page = as_file(bare, "view=matrix&row=2").page
    assert f"({bare.removed[0, 2]:.2f} of its weight went to hidden tokens)" in page.locator("#said").inner_text()


def test_the_overview_sorts_by_pattern(as_file):
    n, picture = 9, heads(9)
    weights = picture.weights.clone()
    weights[3] = torch.eye(n)
    weights[5] = torch.eye(n).roll(-1, 1)  # each looks at the one before
    picture = Picture(weights, picture.rows, picture.columns, maps=picture.maps, layers=picture.layers, view="overview")
    page = as_file(picture).page
    order = lambda: page.locator(".maps button").evaluate_all("all => all.map(x => Number(x.dataset.map))")  # noqa: E731
    assert order() == [0, 1, 2, 3, 4, 5]
    for pattern, first in (("diagonal", 3), ("previous", 5)):
        page.locator("#sort").select_option(pattern)
        page.wait_for_function(
            "first => document.querySelector('#view').shadowRoot.querySelector('.maps button').dataset.map === String(first)",
            arg=first,
        )
    page.locator("#sort").select_option("entropy")
    page.wait_for_function(
        "document.querySelector('#view').shadowRoot.querySelector('.maps button').innerText.trim().length > 3"
    )
    share = weights / weights.sum(-1, keepdim=True)
    entropy = -torch.special.xlogy(share, share).sum(-1).mean(-1)
    assert order() == entropy.argsort(descending=True, stable=True).tolist()
    page.locator(".maps button").first.click()
    assert page.locator("#pick-map").input_value() == str(entropy.argmax().item())


def test_compare_shows_the_difference(as_file):
    picture = heads()
    page = as_file(picture, "view=compare&map=1&other=4&row=2&column=3").page
    a, b = picture.weights[1, 2, 3].item(), picture.weights[4, 2, 3].item()
    minus = f"{a - b:.3f}".replace("-", "−")
    said = page.locator("#said").inner_text()
    assert said == f"happy → cat: {a:.3f} (layer 1 · head 2), {b:.3f} (layer 2 · head 2), difference {minus}"
    apart = (picture.weights[1] - picture.weights[4]).abs().sum(-1).mean() / 2
    assert f"puts {apart:.3f} of its weight elsewhere" in page.locator("#panel").inner_text()
    third = page.locator("[role=grid]").nth(2).locator("[role=gridcell]")
    assert float(third.get_attribute("data-weight")) == pytest.approx(a - b, abs=1e-6)
    page.locator("[role=grid]").nth(2).focus()
    page.keyboard.press("ArrowDown")  # all three move together
    assert [n.get_attribute("data-row") for n in page.locator("[role=gridcell]").all()] == ["3", "3", "3"]


def test_a_text_in_the_colours_of_its_weights(as_file):
    picture = alignment()
    page = as_file(picture, "view=text&row=1").page
    words = page.locator(".flow button")
    assert words.all_inner_texts() == ENGLISH
    assert [float(node.get_attribute("data-weight")) for node in words.all()] == picture.weights[0, 1].tolist()
    most = picture.weights.max().item()
    for j, node in enumerate(words.all()):
        found = node.evaluate("node => node.style.background.match(/\\d+/g).map(Number)")
        part = picture.weights[0, 1, j].item() / most
        assert found == pytest.approx([a + (b - a) * part for a, b in zip(WHITE, HOT, strict=True)], abs=1)
    words.nth(2).hover()
    assert page.locator("#said").inner_text() == f"chat attends {picture.weights[0, 1, 2]:.3f} to cat"
    words.nth(1).focus()
    assert page.locator("[role=status]").inner_text() == f"chat attends {picture.weights[0, 1, 1]:.2f} to black"
    page.locator("#pick-row").select_option("2")
    page.wait_for_selector(".top h2:has-text('noir')")


def test_lines_follow_a_word(as_file):
    picture = alignment()
    page = as_file(picture, "view=lines").page
    page.get_by_role("button", name="query: noir").hover()
    assert page.locator("#said").inner_text() == f"noir attends {picture.weights[0, 2, 1]:.3f} to black"
    page.get_by_role("button", name="key: ate").focus()
    received = f"ate receives {picture.weights[0, :, 3].sum():.2f} in all"
    assert page.locator("[role=status]").inner_text() == received


def test_statistics(as_file):
    picture = heads()
    page = as_file(picture, "view=statistics&map=2").page
    weights = picture.weights[2]
    entropy = -torch.special.xlogy(weights, weights).sum(-1)
    lists = [
        [line.split("\n")[-1] for line in page.locator(f".top >> nth={n}").locator("li").all_inner_texts()]
        for n in (0, 1)
    ]
    assert lists[0] == [f"{x:.2f}" for x in entropy.tolist()]
    assert lists[1] == [f"{x:.2f}" for x in weights.sum(0).tolist()]
    by_layer = [picture.weights[i : i + 3].mean(0) / 2 + torch.eye(7) / 2 for i in (0, 3)]
    rolled = by_layer[1] @ by_layer[0]
    at = page.locator("[role=gridcell]")
    assert float(at.get_attribute("data-weight")) == pytest.approx(rolled[0, 0].item(), abs=1e-6)


def test_a_map_of_word_vectors(as_file):
    words = ["dog", "cat", "tree", "dog"]
    points = torch.tensor([[0.0, 0.0], [1.0, 0.5], [-1.0, 3.0], [0.0, 0.0]])
    page = as_file(Picture(torch.eye(4), words, words, points=points), "view=vectors").page
    assert sorted(page.locator("svg text").all_text_contents()) == ["cat", "dog", "tree"]
    where = {
        g.locator("text").text_content(): (
            float(g.locator("circle").get_attribute("cx")),
            -float(g.locator("circle").get_attribute("cy")),
        )
        for g in page.locator("svg g").all()
    }
    assert where["tree"][0] < where["dog"][0] < where["cat"][0]
    assert where["dog"][1] < where["cat"][1] < where["tree"][1]


NOTHING = {
    "no query": Picture(torch.zeros(0, 3), [], ["a", "b", "c"]),
    "no key": Picture(torch.zeros(2, 0), ["a", "b"], []),
    "only hidden keys": Picture(torch.ones(2, 1), ["a", "b"], ["<s>"], special={"<s>"}, bare=True),
}


@pytest.mark.parametrize("picture", NOTHING.values(), ids=NOTHING)
def test_a_picture_of_nothing(as_file, picture):
    page = as_file(picture).page
    for name in page.locator("[role=tab]").all_inner_texts():
        page.get_by_role("tab", name=name).click()
        page.wait_for_selector(f"[role=tab][aria-selected=true]:has-text('{name}')")
        said = page.locator("#panel").inner_text()
        assert "undefined" not in said
        assert "NaN" not in said


# ---------------------------------------------------------------- for everybody


def everything() -> Picture:
    """One picture that has every view."""
    from regard.see.walkthrough import walk_of
    from regard.steps import step_by_step

    a, *w = (torch.randn(4, 4, dtype=torch.float64).mul(10).round() / 10 for _ in range(4))
    words = ["This", "is", "a", "cat"]
    score, normalizer = regard.scores.ScaledDot(), regard.normalizers.Softmax()
    steps = step_by_step(a, *w, score=score, normalizer=normalizer, mask=regard.masks.causal())
    walk = walk_of(
        words, steps, dict(zip("qkv", w, strict=True)), {"scaled-dot": score}, {"softmax": normalizer},
        score="scaled-dot", normalizer="softmax",
    )  # fmt: skip
    weights = torch.stack([steps.weights.float(), torch.eye(4)])
    return Picture(
        weights, words, words, title="This is a cat", maps=["scaled-dot", "itself"], layers=[0, 1], walk=walk,
        special={"a"}, row_words=[0, 1, 1, 2], column_words=[0, 1, 1, 2], points=torch.randn(4, 2), view="alignment",
    )  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_fault_in_any_view(as_file, axe, theme):
    page = as_file(everything(), color_scheme=theme).page
    names = page.locator("[role=tab]").all_inner_texts()
    assert len(names) == 9  # every view there is
    for name in names:
        page.get_by_role("tab", name=name).click()
        page.wait_for_selector(f"[role=tab][aria-selected=true]:has-text('{name}')")
        for details in page.locator("details").all():
            details.evaluate("node => { node.open = true; }")
        page.wait_for_timeout(50)
        assert faults(page, axe) == [], name


def test_axe_would_find_a_fault(visit, axe, tmp_path):
    """The check above can fail."""
    (tmp_path / "a.html").write_text(
        "<!DOCTYPE html><html lang=en><title>a</title><main><button></button></main></html>"
    )
    assert any("button-name" in fault for fault in faults(visit((tmp_path / "a.html").as_uri()).page, axe))


def test_the_page_can_be_used_by_keys_alone(as_file):
    page = as_file(heads(), "view=matrix").page
    page.locator("#tab-matrix").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#tab-text[aria-selected=true]")
    assert page.evaluate("document.querySelector('#view').shadowRoot.activeElement.id") == "tab-text"
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#tab-matrix[aria-selected=true]")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.querySelector('#view').shadowRoot.activeElement.id") == "grid":
            break
    else:
        pytest.fail("the grid was not reached by Tab")


def test_a_table_holds_the_numbers(as_file):
    picture = alignment()
    page = as_file(picture).page
    page.get_by_text("The numbers as a table").click()
    page.wait_for_selector("details table")
    rows = page.locator("details table tbody tr").all()
    read = [[float(td) for td in row.locator("td").all_inner_texts()] for row in rows]
    assert read == [[pytest.approx(w, abs=5e-4) for w in row] for row in picture.weights[0].tolist()]
    assert [row.locator("th").inner_text() for row in rows] == FRENCH
    assert "attention is not explanation" in page.locator("footer").inner_text()


def test_words_of_every_script_have_letters_and_room(as_file):
    """A font that has some letters of a word only leaves boxes in the place of all."""
    words = ["பூனை", "எலியைத்", "चूहे", "બિલાડીએ", "ತಿಂದಿತು"]
    why_not = debian("fonts-noto-core", lambda: has_letters(words))
    if why_not:
        skip_aloud(f"no script but Latin was tested in a browser: {why_not}")
    page = as_file(Picture(torch.eye(5), words, words, view="matrix")).page
    boxes = page.evaluate(
        """words => {
          const root = document.getElementById("view").shadowRoot.querySelector(".root");
          const drawn = (text) => {
            const canvas = new OffscreenCanvas(200, 60), brush = canvas.getContext("2d");
            brush.font = getComputedStyle(root).font;
            brush.fillText(text, 5, 40);
            return brush.getImageData(0, 0, 200, 60).data.join();
          };
          return words.filter((word) => drawn(word) === drawn(String.fromCharCode(0xe000).repeat([...word].length)));
        }""",
        words,
    )
    assert boxes == []
    labels = page.locator("#grid .label[data-row]").all()
    assert [node.evaluate("node => node.scrollWidth <= node.clientWidth + 1") for node in labels] == [True] * 5


# ---------------------------------------------------------------- pictures to keep


@pytest.mark.parametrize("view", ["matrix", "alignment", "compare", "text"])
def test_what_is_on_show_can_be_saved(as_file, tmp_path, view):
    from PIL import Image

    picture = heads() if view == "compare" else alignment()
    page = as_file(picture, f"view={view}").page
    for kind in ("svg", "png"):
        with page.expect_download() as saved:
            page.locator(f"#{kind}").click()
        saved.value.save_as(tmp_path / f"saved.{kind}")
    svg = (tmp_path / "saved.svg").read_text(encoding="utf-8")
    assert picture.title in svg
    assert all(f">{word}<" in svg.replace("&lt;", "<").replace("&gt;", ">") for word in picture.columns)
    assert f">{picture.weights[0, 1, 2]:.2f}<" in svg or view in ("compare", "text")
    assert "var(" not in svg  # colours are written out
    drawn = Image.open(tmp_path / "saved.png").convert("RGB")
    assert drawn.width > 500
    colours = {colour for _, colour in drawn.getcolors(1 << 24)}
    best = weigh_colour(1.0, 1.0, False)
    if view == "text":
        best = shade((picture.weights[0, 0].max() / picture.weights.max()).item(), [WHITE, HOT])
    assert any(max(abs(a - b) for a, b in zip(colour, best, strict=True)) <= 3 for colour in colours)


# ---------------------------------------------------------------- nothing in a token is markup

HOSTILE = [
    "<img src=x onerror=\"document.title='owned'\">",
    "</script><script>document.title='owned'</script>",
    "<svg onload=\"document.title='owned'\">",
    "]]><!--",
    "' onmouseover='document.title=1",
    '"><iframe srcdoc="<script>top.document.title=1</script>">',
    "{{7*7}}`${document.title='owned'}`",
    "\u2028\u2029\x00\x1b]0;x\x07",
]


def hostile() -> Picture:
    n = len(HOSTILE)
    return Picture(
        torch.randn(2, n, n).softmax(-1), HOSTILE, HOSTILE, title=HOSTILE[0] + HOSTILE[1], note=HOSTILE[2] + HOSTILE[1],
        maps=HOSTILE[:2], special=HOSTILE[5:6], points=torch.randn(n, 2), view="alignment",
    )  # fmt: skip


def is_inert(where: Any) -> None:
    for name in where.locator("[role=tab]").all_inner_texts():
        where.get_by_role("tab", name=name).click()
        where.locator(f"[role=tab][aria-selected=true]:has-text('{name}')").wait_for()
        made = where.locator("#view").evaluate(
            "view => ['img', 'script', 'iframe', '[onerror]', '[onload]', '[onmouseover]'].filter(x => view.shadowRoot.querySelector(x))"
        )
        assert made == []


def test_hostile_tokens_are_inert_in_a_file(as_file, tmp_path):
    visited = as_file(hostile())
    title = visited.page.title()
    is_inert(visited.page)
    shown = visited.page.locator("h1").inner_text()
    assert HOSTILE[0] in shown  # said as it is
    with visited.page.expect_download() as saved:
        visited.page.get_by_role("tab", name="Matrix").click()
        visited.page.locator("#svg").click()
    saved.value.save_as(tmp_path / "hostile.svg")
    drawing = (tmp_path / "hostile.svg").read_text(encoding="utf-8")
    assert "<img" not in drawing
    assert "<script" not in drawing
    assert visited.page.title() == title
    assert visited.outside == []


def test_hostile_tokens_are_inert_in_a_notebook(as_notebook):
    visited = as_notebook(hostile())
    is_inert(visited.page.frame_locator("iframe"))
    assert visited.page.title() == "a"
    assert visited.page.locator("iframe").count() == 1
    assert visited.outside == []


def test_hostile_tokens_are_inert_when_served(as_served):
    visited = as_served(hostile())
    is_inert(visited.page)
    assert visited.page.title() == "served"
    assert visited.outside == []
