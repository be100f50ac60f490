"""Colours that everybody can tell apart, and letters that can be read on them."""

import itertools

import pytest

from regard.see.palette import CIVIDIS, SIGNED, Colour, ink, shade, weigh_colour


def luminance(colour: Colour) -> float:
    """As WCAG 2 defines it."""
    r, g, b = (c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: Colour, b: Colour) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_more_weight_is_lighter_also_without_colour():
    grey = [luminance(shade(i / 100)) for i in range(101)]
    assert all(a < b for a, b in itertools.pairwise(grey))


def test_it_is_cividis():
    pytest.importorskip("matplotlib")
    from matplotlib import colormaps

    for i in range(33):
        theirs = tuple(255 * c for c in colormaps["cividis"](i / 32)[:3])
        assert shade(i / 32) == pytest.approx(theirs, abs=3)


@pytest.mark.parametrize("stops", [CIVIDIS, *SIGNED.values()])
def test_numbers_can_be_read_on_every_colour(stops):
    for i in range(201):
        colour = shade(i / 200, stops)
        assert contrast(colour, ink(colour)) >= 4.5


@pytest.mark.parametrize("theme", SIGNED)
def test_signs_are_told_apart(theme):
    plus, minus, none = (weigh_colour(w, 2.0, True, theme) for w in (2.0, -2.0, 0.0))
    assert (plus, minus, none) == (SIGNED[theme][4], SIGNED[theme][0], SIGNED[theme][2])
    assert plus[0] > plus[2]  # warm
    assert minus[2] > minus[0]  # cold
    assert weigh_colour(0.0, 0.0, False) == CIVIDIS[0]
