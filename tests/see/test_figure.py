"""Figures: the numbers drawn are the weights, every letter has a glyph, and the same picture is the same file."""

import re
import warnings
from pathlib import Path

import matplotlib
import pytest
import torch

from regard import InputError, MissingError
from regard.see import Picture, fonts
from regard.see.alignment import Links
from regard.see.drawing import THEMES, rgb_of
from regard.see.figure import KINDS, figure, kind_of, save
from regard.see.palette import SIGNED, shade
from tests.installing import debian, skip_aloud

ENGLISH, FRENCH = (
    ["The", "black", "cat", "ate", "the", "mouse", "."],
    ["Le", "chat", "noir", "a", "mangé", "la", "souris", "."],
)
SENTENCES = {  # with the fonts that Debian's fonts-noto-core and fonts-noto-cjk bring
    "Devanagari": "काली बिल्ली ने चूहे को खा लिया ।",
    "Gujarati": "કાળી બિલાડીએ ઉંદર ખાધો .",
    "Tamil": "கருப்பு பூனை எலியைத் தின்றது .",
    "Kannada": "ಕಪ್ಪು ಬೆಕ್ಕು ಇಲಿಯನ್ನು ತಿಂದಿತು .",
    "CJK": "黑猫 吃了 老鼠",
    "Arabic": "القط الأسود أكل الفأر .",
}


def has_letters(words: list[str]) -> bool:
    for known in (fonts._files, fonts._ranked):  # an installation may just have brought some
        known.cache_clear()
    try:
        fonts.families(words)
    except MissingError:
        return False
    return True


def aligned(rows: list[str], columns: list[str]) -> Picture:
    return Picture((2 * torch.randn(len(rows), len(columns))).softmax(-1), rows, columns, title="A title")


@pytest.mark.parametrize("kind", ["matrix", "alignment", "heads", "compare"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_drawn_are_the_weights(kind, theme):
    picture = aligned(FRENCH, ENGLISH)
    drawn = figure(picture, kind, theme=theme)
    torch.testing.assert_close(images_of(drawn)[0], picture.weights[0])
    written = {text.get_text() for axes in drawn.axes for text in axes.texts}
    if kind != "heads":
        assert {f"{w:.2f}" for w in picture.weights.flatten().tolist()} <= written
        labels = {
            t.get_text() for axes in drawn.axes for t in (*axes.get_xticklabels(), *axes.get_yticklabels())
        } | written
        assert {*FRENCH, *ENGLISH} <= labels


def images_of(drawn) -> list[torch.Tensor]:
    return [torch.tensor(image.get_array().data) for axes in drawn.axes for image in axes.images]


def test_two_maps_are_compared_with_their_difference():
    one, two = (2 * torch.randn(2, 8, 7)).softmax(-1)
    picture = Picture(torch.stack([one, two]), FRENCH, ENGLISH, maps=["dot", "additive"], view="compare")
    assert kind_of(picture) == "compare"
    drawn = figure(picture, "compare")
    images = [image for image in images_of(drawn) if image.shape == (8, 7)]
    for found, expected in zip(images, [one, two, one - two], strict=True):
        torch.testing.assert_close(found, expected)
    written = {text.get_text() for text in drawn.texts}
    assert {"dot", "additive", "the first less the second"} <= written


@pytest.mark.parametrize(
    "words", ["When he saw his owner, the dog was happy, so he wagged his tail", "a b", "WWW " * 30]
)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_cut_at_the_edge(words, kind):
    shown, n = words.split()[:9], min(len(words.split()), 9)
    points, note = torch.randn(n, 2), f"{words} {words}"
    picture = Picture(torch.eye(n).repeat(2, 1, 1), shown, shown, title=words, note=note, points=points)
    drawn = figure(picture, kind)
    drawn.canvas.draw()
    width, height = drawn.bbox.size
    on = [axes for axes in drawn.axes if axes.axison]
    labels = [t for axes in on for t in (*axes.texts, *axes.get_xticklabels(), *axes.get_yticklabels())]
    for text in (*drawn.texts, *labels):
        box = text.get_window_extent()
        assert box.x0 >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y0 >= -1, text
        assert box.y1 <= height + 1, text


def test_a_map_of_word_vectors_keeps_their_places_and_no_word_covers_another():
    words = ["dog", "cat", "oak", "tree", "dog"]
    points = torch.tensor([[0.0, 0.0], [0.1, 0.0], [5.0, 3.0], [5.0, 3.1], [0.0, 0.0]])
    drawn = figure(Picture(torch.eye(5), words, words, points=points, view="vectors"), "vectors")
    drawn.canvas.draw()
    (axes,) = drawn.axes
    assert [text.get_text() for text in axes.texts] == ["dog", "cat", "oak", "tree"]  # a word once
    x, y = (torch.tensor([getattr(line, get)()[0] for line in axes.lines]) for get in ("get_xdata", "get_ydata"))
    assert (x.argsort().tolist(), y.argsort(stable=True).tolist()) == ([0, 1, 2, 3], [0, 1, 2, 3])
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("signed", [False, True])
def test_a_text_has_its_words_on_the_colours_of_their_weights(theme, signed):
    weights = (
        torch.randn(2, 7) if signed else torch.tensor([[0.0, 0.1, 0.2, 0.3, 0.4, 0.0, 0.0], [0.0, 1, 0, 0, 0, 0, 0]])
    )
    drawn = figure(Picture(weights, ["positive", "negative"], ENGLISH, view="text"), "text", theme=theme)
    axes = drawn.axes[0]
    written = [text.get_text() for text in axes.texts]
    assert written == ["positive:", *ENGLISH, "negative:", *ENGLISH]
    paper = SIGNED[theme] if signed else [rgb_of(THEMES[theme]["paper"]), rgb_of(THEMES[theme]["link"])]
    most = weights.abs().max().item()
    for plate, w in zip(axes.patches, weights.flatten().tolist(), strict=True):
        expected = shade((w / most + 1) / 2 if signed else w / most, paper)
        assert [round(255 * x) for x in plate.get_facecolor()[:3]] == list(expected)


def test_what_is_drawn_first_is_what_a_page_shows_first():
    one, many = torch.eye(3), torch.eye(3).repeat(3, 1, 1)
    words, long = list("abc"), [str(i) for i in range(70)]
    assert kind_of(Picture(one, words, words)) == "matrix"
    assert kind_of(Picture(many, words, words)) == "heads"
    assert kind_of(Picture(one, words, words, view="compare")) == "matrix"
    assert kind_of(Picture(many, words, words, view="compare")) == "compare"
    assert kind_of(Picture(one, words, words, view="alignment")) == "alignment"
    assert kind_of(Picture(torch.eye(70), long, long, view="alignment")) == "matrix"
    assert kind_of(Picture(torch.ones(1, 70), ["a"], long, view="text")) == "text"
    assert kind_of(Picture(one, words, words, view="vectors", points=torch.zeros(3, 2))) == "vectors"
    assert kind_of(Picture(one, words, words, view="vectors")) == "matrix"


def test_ribbons_are_as_wide_as_the_weights():
    picture = aligned(FRENCH, ENGLISH)
    ribbons = next(axes for axes in figure(picture, "alignment").axes if axes.patches)
    widths = sorted(round(p.get_path().vertices[7, 0] - p.get_path().vertices[0, 0], 9) for p in ribbons.patches)
    expected = sorted(w for w in picture.weights.flatten().tolist() if w >= 0.01)
    unit = widths[-1] / expected[-1]
    assert len(widths) == len(expected)
    assert [w / unit for w in widths] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", SENTENCES)
def test_every_script_has_its_glyphs(tmp_path, name):
    words = SENTENCES[name].split()
    why_not = debian("fonts-noto-cjk" if name == "CJK" else "fonts-noto-core", lambda: has_letters(words))
    if why_not:
        skip_aloud(f"no figure in {name} was tested: {why_not}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of a box where a glyph is missing
        figure(aligned(words, ENGLISH), "alignment").canvas.draw()
        save(aligned(words, ENGLISH), tmp_path / "a.svg", "alignment")
    assert (tmp_path / "a.svg").stat().st_size > 10_000


@pytest.mark.parametrize("name", SENTENCES)
def test_a_missing_glyph_names_the_package(monkeypatch, tmp_path, name):
    monkeypatch.setattr(fonts, "_ranked", lambda script: [])  # a system without any further font
    monkeypatch.setattr(fonts, "BASE", "DejaVu Sans Mono")
    monkeypatch.setattr(fonts, "_letters", lambda family: frozenset(map(chr, range(0x20, 0x250))))
    package = "fonts-noto-cjk" if name == "CJK" else "fonts-noto-core"
    with pytest.raises(
        MissingError,
        match=rf"no font of this system has .* \({name.title()}\); apt-get install {package}",
    ) as said:
        save(aligned(SENTENCES[name].split(), ENGLISH), tmp_path / "a.png")
    assert not (tmp_path / "a.png").exists()
    assert "\n" not in str(said.value)


def test_boxes_are_no_letters(monkeypatch):
    """matplotlib brings a font that has a box for every letter: with nothing but what it brings, Tamil has no glyph."""
    own = Path(matplotlib.get_data_path()).as_posix()
    brought = {name: file for name, file in fonts._files().items() if Path(file).as_posix().startswith(own)}
    monkeypatch.setattr(fonts, "_files", lambda: brought)
    fonts._ranked.cache_clear()
    try:
        assert fonts.families(["DejaVu"]) == ["DejaVu Sans"]
        with pytest.raises(MissingError, match="apt-get install fonts-noto-core"):
            fonts.families(["பூனை"])
    finally:
        fonts._ranked.cache_clear()


def test_the_same_picture_is_the_same_file(tmp_path):
    picture = aligned(FRENCH, ENGLISH)
    for ending in ("png", "svg", "pdf"):
        one, two = (save(picture, tmp_path / f"{n}.{ending}", "alignment").read_bytes() for n in "ab")
        assert one == two
    svg = (tmp_path / "a.svg").read_text()
    assert not re.search(r"(href|src)=\"(?!#|data:)", svg)  # nothing from elsewhere


def test_tokens_are_letters_and_no_formulas():
    drawn = figure(aligned(["$x$", r"\frac", "a\x1bb"], ["_y^2", "$", "<b>"]))
    labels = {t.get_text() for axes in drawn.axes for t in (*axes.get_xticklabels(), *axes.get_yticklabels())}
    assert {"$x$", r"\frac", "a␛b", "_y^2", "$", "<b>"} <= labels
    drawn.canvas.draw()


def test_a_long_map_is_drawn_with_some_labels():
    n = 300
    drawn = figure(Picture(torch.eye(n), [f"w{i}" for i in range(n)], [f"w{i}" for i in range(n)]))
    ticks = [t.get_text() for t in drawn.axes[0].get_yticklabels()]
    assert "w0" in ticks
    assert 30 <= len(ticks) <= 64


def test_links():
    weights = torch.tensor([[0.9, 0.1, 0.0], [0.1, 0.1, 0.8], [0.2, 0.7, 0.1], [0.0, 0.6, 0.4], [0.0, 0.0, 0.0]])
    assert Links.of(weights) == Links((0, 2, 1, 1, -1), (False, True, True, False, False), (1,))


def test_bad_input(tmp_path):
    picture = aligned(FRENCH, ENGLISH)
    with pytest.raises(InputError, match="kind='ribbon'; expected matrix, alignment, heads, compare, text, vectors"):
        figure(picture, "ribbon")
    with pytest.raises(InputError, match="theme='blue'"):
        figure(picture, theme="blue")
    with pytest.raises(InputError, match=r"a\.gif: a figure is \.png, \.svg, \.pdf, not \.gif"):
        save(picture, tmp_path / "a.gif")
    with pytest.raises(InputError, match="there is nothing to draw"):
        figure(Picture(torch.zeros(0, 2), [], ["a", "b"]))
    with pytest.raises(InputError, match="an alignment of 70 x 70 words cannot be read; expected at most 64"):
        figure(Picture(torch.eye(70), ["a"] * 70, ["a"] * 70), "alignment")
    with pytest.raises(InputError, match="maps of 70 x 70 words cannot be read side by side; expected at most 64"):
        figure(Picture(torch.eye(70), ["a"] * 70, ["a"] * 70), "compare")
    with pytest.raises(InputError, match="has no points: no map of word vectors can be drawn"):
        figure(picture, "vectors")
    with pytest.raises(InputError, match="a text of 70 x 70 words cannot be read; expected at most 4,000 in all"):
        figure(Picture(torch.eye(70), ["a"] * 70, ["a"] * 70), "text")
