"""Texts that people do send, and such that nobody would: the same ones for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

ALPHABETS = [
    "abcde fghij ", "ABC xyz.,;!? ", "àéîõü ÀÉ ß ﬁ ŉ ", "e\u0301o\u0308\u0323 a\u0300\u0301\u0302\u0303 ", "ΑΒΓ αβς Σ ", "привет ",
    "שלום עולם ", "مرحبا بك ", "नमस्ते क्षत्रिय ", "ગુજરાતી ", "தமிழ் ", "ಕನ್ನಡ ", "中文 漢字 ", "かな カナ ", "각 \u1100\u1161\u11a8 ",
    "👩‍👩‍👧 👍🏽 🇮🇹 \u200d\ufe0f ", "\u200c\u200d\u200b\u2060 a", "\u202e\u202d\u2066\u2069\u200f abc", "\x00\x01\x02 a", "\x1b[31m\x07\x08\x7f a",
    "\r\n\v\f\x85\u2028\u2029 a", "\ud800\udfff\udc00 a", "\U0010ffff\ufffe\uffff\ufdd0 a", "𝔘𝔫𝔦 𝒸ℴ𝒹ℯ ", "\u0345\u0300 a", "İıǰ ᾳ ", "0123456789 ",
    "____ ___ __ ", " \t\u00a0\u3000", "_-'’\"`~^ ", "$\\{}%#&_ ",
]  # fmt: skip
PHRASES = [
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "<!--", "]]>", "</pre></noscript><b>", "&lt;&amp;&#x0;",
    '" onload="alert(1)', "javascript:alert(1)", "<svg/onload=alert(1)>", "${7*7}{{7*7}}", "%s%n{0}", "$x^2$ \\frac{1}{2}", "'; DROP TABLE t; --",
    "<2fr> the cat", "<pad> <unk> <mask> <bos>", "[MASK]", "____", "../../etc/passwd", "\x1b]0;title\x07", "\x1b[2J\x1b[H", "NaN", "null", "-1", "1e400",
    "the black cat sees the dog", "don't can't won't", "3.5 km, 1,000.", "a" * 300, "א" * 200, "\u0301" * 300, "🏳️‍🌈" * 40, "\ud83d", "\udc00\ud800",
]  # fmt: skip
MILLION = 1_000_000


def strings(count: int, seed: int) -> Iterator[str]:
    """So many; one in 500 is a character a million times."""
    chance = random.Random(seed)
    yield from ["", " ", "\n", "\x00", "\ud800", "\u202e", "\u200d", "____"][:count]
    for number in range(8, count):
        if number % 500 == 250:
            yield chance.choice(chance.choice(ALPHABETS)) * MILLION
            continue
        parts = []
        for _ in range(chance.choice((1, 1, 2, 4, 8))):
            if chance.random() < 0.3:
                parts.append(chance.choice(PHRASES))
            elif chance.random() < 0.1:
                parts.append("".join(chr(chance.randrange(0x110000)) for _ in range(chance.randrange(12))))
            else:
                parts.append("".join(chance.choices(chance.choice(ALPHABETS), k=chance.choice((1, 3, 10, 30)))))
        yield chance.choice(("", " ")).join(parts)
