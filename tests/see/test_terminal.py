"""The heat map in the terminal: true numbers, every script, every width, and nothing that could do harm."""

import re
from io import StringIO

import pytest
import torch
from rich.cells import cell_len

from regard import InputError
from regard.see import Picture, heatmap
from regard.see.palette import CIVIDIS, SIGNED, ink, shade

CAT = ["This", "is", "a", "cat"]
SCRIPTS = {
    "French": "Le chat noir a mangé la souris .",
    "Hindi": "काली बिल्ली ने चूहे को खा लिया ।",
    "Tamil": "கருப்பு பூனை எலியைத் தின்றது .",
    "Kannada": "ಕಪ್ಪು ಬೆಕ್ಕು ಇಲಿಯನ್ನು ತಿಂದಿತು .",
    "Chinese": "黑 猫 吃了 老鼠 。",
    "Arabic": "القط الأسود أكل الفأر .",
    "combining": "e\u0301te\u0301 n\u0303 .",
}
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def weights(n_q: int, n_k: int) -> torch.Tensor:
    return (3 * torch.randn(n_q, n_k)).softmax(-1)


def test_the_numbers_are_the_weights():
    drawn = str(heatmap(torch.tensor([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]), ["a", "b"], ["x", "y", "z"], title="Title"))
    title, header, first, second = drawn.splitlines()
    assert title == "Title"
    assert header.split() == ["x", "y", "z"]
    assert re.findall(r"[\d.]+", first) == ["0.50", "0.25", "0.25"]
    assert re.findall(r"[\d.]+", second) == ["0.00", "1.00", "0.00"]
    assert second.index("1.00") == first.index("0.25")  # y stands under y


@pytest.mark.parametrize("width", [12, 20, 30, 45, 80, 130])
@pytest.mark.parametrize("colour", ["none", "256", "truecolour"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_it_fits_every_width_in_every_script(script, colour, width):
    tokens = SCRIPTS[script].split()
    for rows in (tokens, CAT):
        lines = heatmap(weights(len(rows), len(tokens)), rows, tokens, title="A title").text(width, colour).splitlines()
        assert max(cell_len(ANSI.sub("", line)) for line in lines[1:]) <= width


@pytest.mark.parametrize("script", SCRIPTS)
def test_columns_stand_under_one_another_in_every_script(script):
    tokens = SCRIPTS[script].split()
    drawn = heatmap(torch.eye(len(tokens)), tokens, width=120).text().splitlines()
    starts = {tuple(cell_len(line[: found.start()]) for found in re.finditer(r"[01]\.00", line)) for line in drawn[1:]}
    assert len(starts) == 1
    assert len(starts.pop()) == len(tokens)


def test_right_to_left_words_are_kept_from_reordering_the_columns():
    header = str(heatmap(torch.eye(2), ["القط", "أكل"])).splitlines()[0]
    assert header.count("\u200e") == 4  # one on both sides of each


def test_controls_are_written_out_and_never_sent():
    drawn = str(heatmap(torch.eye(4), ["a\x1b[2J", "\u202ecat", " b", ""], ["\x00", "\x9b31m", "\r", "\ud800"]))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", drawn)
    for shown in ("a␛[2J", "⟨202E⟩cat", "␣b", "∅", "␀", "⟨009B⟩31m", "␍", "⟨D800⟩"):
        assert shown in drawn


def test_colours_are_those_of_the_palette():
    coloured = heatmap(torch.tensor([[0.0, 1.0]]), ["q"], ["a", "b"]).text(colour="truecolour")
    assert "48;2;0;34;78m" in coloured  # 0
    assert "48;2;254;232;56m" in coloured  # the largest
    assert "48;5;" in heatmap(torch.eye(2), ["a", "b"]).text(colour="256")
    assert "\x1b" not in heatmap(torch.eye(2), ["a", "b"]).text(colour="none")


def test_the_palette_is_cividis_and_readable():
    matplotlib = pytest.importorskip("matplotlib")
    theirs = matplotlib.colormaps["cividis"]
    for i in range(256):
        assert shade(i / 255) == pytest.approx([255 * c for c in theirs(i)[:3]], abs=7)
    for stops in (CIVIDIS, *SIGNED.values()):
        for i in range(101):
            back = shade(i / 100, stops)
            assert _contrast(back, ink(back)) >= 4.5


def _contrast(a, b) -> float:
    def luminance(colour):
        linear = [(c / 255 + 0.055) ** 2.4 / 1.055**2.4 if c > 10 else c / 255 / 12.92 for c in colour]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_longer_than_the_terminal_it_is_pooled():
    drawn = heatmap(torch.eye(300), [f"w{i}" for i in range(300)], width=70).text().splitlines()
    assert "300 queries x 300 keys" in " ".join(drawn[-2:])
    body = drawn[: next(i for i, line in enumerate(drawn) if line.startswith("0 "))]  # what follows is the scale
    assert 55 <= len(body) <= 64
    places = [next(j for j, c in enumerate(line[4:]) if c in "░▒▓█") for line in body]
    assert places == sorted(places)  # the diagonal is still one
    assert places[-1] > 55


@pytest.mark.parametrize("colour", ["none", "256", "truecolour"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_one_query_over_a_long_text_is_the_text_itself(colour, script):
    words = SCRIPTS[script].split() * 10
    drawn = heatmap(weights(1, len(words)), ["positive"], words).text(50, colour)
    plain = ANSI.sub("", drawn).splitlines()
    assert max(map(cell_len, plain)) <= 50
    assert plain[0] == "positive:"
    assert re.sub("[░▒▓█]", "", " ".join(plain[1:-1])).split() == words


def test_the_words_of_a_text_have_the_shades_of_their_weights():
    words = [f"word{i}" for i in range(30)]
    drawn = str(heatmap(torch.tensor([[1.0, 0.5, 0.25, *[0.0] * 27]]), ["positive"], words))
    assert drawn.splitlines()[1].startswith("word0█ word1▒ word2░ word3 word4 ")


def test_negative_weights_have_their_sign():
    drawn = str(heatmap(torch.tensor([[-1.5, 0.5]]), ["q"], ["a", "b"]))
    assert "-1.50" in drawn
    assert " 0.50" in drawn
    many = torch.tensor([[-1.5] * 9 + [2.0] * 9])
    assert "-75" in heatmap(many.repeat(2, 1), ["q", "r"], ["k"] * 18).text(80)
    assert "k-▓ k-▓" in heatmap(many, ["q"], ["k"] * 18).text(80)


def test_what_it_draws_on_by_itself():
    from rich.console import Console

    h = heatmap(torch.eye(2), ["a", "b"])
    for system, expected in (("truecolor", "48;2;"), ("256", "48;5;"), ("standard", "█"), (None, "█")):
        console = Console(color_system=system, force_terminal=True, width=60, file=StringIO())
        console.print(h)
        assert expected in console.file.getvalue()


def test_no_weights_is_said():
    assert "no weights: 0 queries, 3 keys" in str(heatmap(torch.zeros(0, 3), [], ["a", "b", "c"]))


def test_bad_input():
    with pytest.raises(InputError, match=r"weights have shape \(2, 2\); expected \[\.\.\., 2, 3\]"):
        heatmap(torch.eye(2), ["a", "b"], ["x", "y", "z"])
    with pytest.raises(InputError, match="colour='red'; expected auto"):
        heatmap(torch.eye(2), ["a", "b"], colour="red")
    with pytest.raises(InputError, match=r"weights\[0, 1, 0\] is nan"):
        heatmap(torch.tensor([[0.0, 1.0], [float("nan"), 0.0]]), ["a", "b"])
    with pytest.raises(InputError, match="width=3"):
        heatmap(torch.eye(2), ["a", "b"], width=3)


def test_a_picture_of_several_maps_is_their_mean():
    picture = Picture(torch.stack([torch.eye(2), 1 - torch.eye(2)]), ["a", "b"], ["a", "b"], title="two")
    drawn = str(heatmap(picture))
    assert "two · mean of 2 maps" in drawn
    assert drawn.count("0.50") == 4
    assert drawn != str(heatmap(picture.only(0)))
