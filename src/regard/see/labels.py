"""Tokens as people can read them, in any script: nothing invisible, nothing that moves what stands beside it."""

from __future__ import annotations

import re
import unicodedata

# Controls, and marks that reorder or hide text. The joiners U+200C and U+200D stay: Devanagari and Persian need them.
NEVER = "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000))  # no characters
HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\ufdd0-\ufdef"
    f"{NEVER}]"
)


def visible(token: str) -> str:
    r"""The token, with every control character written out and spaces at its ends shown.

    >>> visible("a\tb\x1b[2J"), visible(" cat"), visible("\u202etac"), visible("")
    ('a␉b␛[2J', '␣cat', '⟨202E⟩tac', '∅')
    """
    if not token:
        return "∅"
    core = token.strip(" ")
    left = len(token) - len(token.lstrip(" "))
    right = len(token) - left - len(core)
    return "␣" * left + HIDDEN.sub(_symbol, core) + "␣" * right


def legible(text: str) -> str:
    """The text with what has no letter written out: no font draws it, and XML cannot hold it."""
    return HIDDEN.sub(_symbol, text)


def is_rtl(text: str) -> bool:
    """Whether the first letter with a direction runs from right to left."""
    directions = (unicodedata.bidirectional(c) for c in text)
    return next((d in ("R", "AL") for d in directions if d in ("L", "R", "AL")), False)


def _symbol(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode's pictures of the controls: ␀ to ␟
    return "␡" if code == 0x7F else f"⟨{code:04X}⟩"
