"""A text as a tokenizer spells it (composed, in lower case), and where in the original each character came from.

The `tokenizers` library does this too, but says that é, typed as e and a mark, came from the e alone. So texts
are spelled here before it sees them; doing it again changes nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

Spans = tuple[tuple[int, int], ...]

SURROGATES = re.compile("[\ud800-\udfff]")


def spell(text: str, *, nfc: bool, lowercase: bool) -> tuple[str, Spans | None]:
    """The spelling, and for each of its characters the span of the text that it came from; None: one for one."""
    text = SURROGATES.sub("\ufffd", text)
    spelled = "".join(c.lower() for c in text) if lowercase else text  # each alone, as the library does: Σ is σ
    if len(spelled) == len(text) and (not nfc or unicodedata.is_normalized("NFC", spelled)):
        return spelled, None
    parts: list[str] = []
    origin: list[tuple[int, int]] = []
    for start, end in _clusters(text) if nfc else ((i, i + 1) for i in range(len(text))):
        cluster = text[start:end]
        lower = "".join(c.lower() for c in cluster) if lowercase else cluster
        part = unicodedata.normalize("NFC", lower) if nfc else lower
        parts.append(part)
        one_for_one = part == lower and len(lower) == len(cluster)
        origin += [(start + i, start + i + 1) if one_for_one else (start, end) for i in range(len(part))]
    return "".join(parts), tuple(origin)


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """Runs of characters that may compose with each other and with no other."""
    start = 0
    for i in range(1, len(text)):
        if not may_join(text[i]):
            yield start, i
            start = i
    if text:
        yield start, len(text)


def may_join(c: str) -> bool:
    """Can it be composed with what stands before it? Marks can, and the vowels and finals of Korean syllables."""
    return unicodedata.category(c)[0] == "M" or "\u1160" <= c <= "\u11ff" or unicodedata.combining(c) > 0


def original(offsets: Iterable[tuple[int, int]], origin: Spans | None) -> Spans:
    """Spans of the spelling as spans of the text."""
    if origin is None:
        return tuple(offsets)
    end = origin[-1][1] if origin else 0
    starts = [start for start, _ in origin] + [end]
    return tuple((starts[a], origin[b - 1][1] if a < b else starts[a]) for a, b in offsets)
