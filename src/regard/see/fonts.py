"""Which of the system's fonts draw a text; and if none does, the name of the Debian package to install."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from regard.core.shapes import MissingError

# The first word of a letter's Unicode name, where the package is not fonts-noto-core.
PACKAGES: dict[str, str] = dict.fromkeys(
    (
        "CJK",
        "HIRAGANA",
        "KATAKANA",
        "KATAKANA-HIRAGANA",
        "HANGUL",
        "BOPOMOFO",
        "IDEOGRAPHIC",
        "FULLWIDTH",
        "HALFWIDTH",
        "KANGXI",
    ),
    "fonts-noto-cjk",
)
# What a font's name says where the letter's name says something else.
NAMED = {
    "CJK": "CJK SC",
    "HIRAGANA": "CJK JP",
    "KATAKANA": "CJK JP",
    "HANGUL": "CJK KR",
    "IDEOGRAPHIC": "CJK SC",
    "FULLWIDTH": "CJK SC",
}
BASE = "DejaVu Sans"  # comes with matplotlib


def families(texts: Iterable[str]) -> list[str]:
    """Fonts that together draw every letter of the texts, those of the rarer scripts first.

    Raises MissingError with the package to install where there is none.
    """
    missing = {c for text in texts for c in text if not c.isspace() and unicodedata.category(c)[0] != "C"} - _letters(
        BASE
    )
    chosen: list[str] = []
    while missing:
        letter = min(missing)
        family = next((name for name in _ranked(_script(letter)) if letter in _letters(name)), None)
        if family is None:
            shown = "".join(sorted(c for c in missing if _script(c) == _script(letter)))[:12]
            raise MissingError(
                f"no font of this system has {shown!r} ({_script(letter).title()}); "
                f"apt-get install {PACKAGES.get(_script(letter), 'fonts-noto-core')}, or write HTML, which shows what the reader's fonts have"
            )
        chosen.append(family)
        missing -= _letters(family)
    return [*chosen, BASE]


@cache
def _script(letter: str) -> str:
    return unicodedata.name(letter, "UNNAMED").split()[0]


@cache
def _files() -> dict[str, str]:
    """Every upright font of regular weight by its name. matplotlib's own list may be older than an installation."""
    from matplotlib import font_manager as fm

    known = {str(Path(entry.fname)) for entry in fm.fontManager.ttflist}
    for path in fm.findSystemFonts():
        if str(Path(path)) not in known:
            try:
                fm.fontManager.addfont(path)
            except (OSError, RuntimeError):  # not a font that FreeType can read
                continue
    # Last Resort, which comes with matplotlib, has a box for every letter there is.
    readable = (e for e in fm.fontManager.ttflist if not e.name.startswith("Last Resort"))
    regular = (e for e in readable if e.style == "normal" and e.weight in (400, "normal", "regular"))
    files: dict[str, str] = {}
    for entry in regular:
        files.setdefault(entry.name, entry.fname)
    return files


@cache
def _letters(family: str) -> frozenset[str]:
    from matplotlib import font_manager as fm

    path = _files().get(family) or fm.findfont(family)
    try:
        return frozenset(map(chr, fm.get_font(path).get_charmap()))
    except (OSError, RuntimeError):
        return frozenset()


@cache
def _ranked(script: str) -> list[str]:
    """Fonts in the order in which to try them: named after the script, sans serif, plain, Noto."""
    wanted = NAMED.get(script, script).lower()

    def rank(name: str) -> tuple[bool, bool, bool, bool, int, str]:
        low = name.lower()
        return (
            wanted not in low,
            wanted.split()[0] not in low,
            "sans" not in low,
            not low.startswith("noto"),
            len(name),  # Noto Sans Tamil before Noto Sans Tamil Supplement
            name,
        )

    return sorted(_files(), key=rank)
