"""Colours that everybody can tell apart, printed in grey too: cividis for weights, blue to orange for signs."""

from __future__ import annotations

Colour = tuple[int, int, int]


def _stops(hexes: str) -> list[Colour]:
    return [(int(h[0:2], 16), int(h[2:4], 16), int(h[4:6], 16)) for h in hexes.split()]


# cividis (Nuñez, Anderton and Renslow 2018), at 33 evenly spaced places.
CIVIDIS = _stops(
    "00224e 00285b 002e6a 053371 1a386f 273e6e 32436d 3b496c 434e6c 4b546c 535a6d 5a5f6e 61656f 686a71 6f7073 767676"
    " 7d7c78 838179 8b8778 928d78 9a9376 a29975 aaa073 b3a670 bbad6d c3b369 ccba64 d4c15f ddc858 e6d051 efd748 f8df3c fee838"
)
# From most negative to most positive; the middle is the paper, or the dark screen.
SIGNED = {
    "light": _stops("0b3c8c 5b8fd6 f4f4f4 e0985a a34300"),
    "dark": _stops("8ab8ff 3f6fb5 1c1f24 b5622a ffb27a"),
}


def shade(x: float, stops: list[Colour] = CIVIDIS) -> Colour:
    """The colour at x in [0, 1].

    >>> shade(0.0), shade(1.0), shade(2.0)
    ((0, 34, 78), (254, 232, 56), (254, 232, 56))
    """
    place = min(max(x, 0.0), 1.0) * (len(stops) - 1)
    low = min(int(place), len(stops) - 2)
    part = place - low
    r, g, b = (round(a + (b - a) * part) for a, b in zip(stops[low], stops[low + 1], strict=True))
    return r, g, b


def weigh_colour(weight: float, most: float, signed: bool, theme: str = "dark") -> Colour:
    """The colour of a weight where `most` is the largest size on the map."""
    share = weight / most if most else 0.0
    return shade((share + 1) / 2, SIGNED[theme]) if signed else shade(share)


def ink(background: Colour) -> Colour:
    """Black or white, whichever reads better on it (by relative luminance, as WCAG defines contrast)."""
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in background]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return (255, 255, 255) if luminance < 0.179 else (0, 0, 0)
