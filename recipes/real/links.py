"""Which word says which: attention of a model in each direction, beside IBM model 1 in each direction, on gold links.

The gold pairs are written as linguists write them: words apart, contractions taken apart (de le for du). A model reads
them as people write; model 1 learns from text that is taken apart in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from regard.tasks.alignment import links
from regard.tasks.data import Pair
from regard.tasks.metrics import Gold, Links, alignment_error
from regard.tasks.model import Trained
from regard.tasks.word_by_word import NOTHING, model_one

Spans = tuple[tuple[int, int], ...]

JOINED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}
ELIDED = ("le", "la", "de", "que", "je", "ne", "se", "ce", "me", "te", "jusque", "lorsque", "puisque", "si")
APART = {said: " ".join(words) for words, said in JOINED.items()}
WHOLE = {"l": "le", "d": "de", "qu": "que", "j": "je", "n": "ne", "s": "se", "c": "ce", "m": "me", "t": "te"}
VOWEL = re.compile(r"[aeiouyhàâäéèêëîïôöùûü]", re.IGNORECASE)
CLOSING, OPENING = (".", ",", ")", "%"), ("(",)
ROUNDS = 5
WAYS = ("forward", "backward", "intersection", "grown")


def natural(words: Sequence[str], french: bool) -> tuple[str, Spans]:
    """The sentence as it is written, and where each word stands in it."""
    text, spans = "", list[tuple[int, int]]()
    place = 0
    while place < len(words):
        word, after = words[place], words[place + 1] if place + 1 < len(words) else ""
        both = JOINED.get((word.lower(), after.lower())) if french else None
        elides = french and word.lower() in ELIDED and VOWEL.match(after) is not None
        if both and not (after.lower() == "le" and VOWEL.match("".join(words[place + 2 : place + 3]))):
            written, takes = both, 2
        elif elides and not (word.lower() == "si" and after.lower() not in ("il", "ils")):
            written, takes = word[:-1] + "'", 1
        else:
            written, takes = ("I" if word == "i" and not french else word), 1
        closes = written in CLOSING or (written in ("?", "!", ";", ":") and not french)
        hyphen = written == "-" and 0 < place < len(words) - 1
        if text and not closes and not hyphen and not text.endswith(("'", "-", *OPENING)):
            text += " "
        spans += [(len(text), len(text) + len(written))] * takes
        text += written
        place += takes
    return text[:1].upper() + text[1:], tuple(spans)


def apart(text: str, french: bool) -> list[str]:
    """The words of a text, in lower case, as the gold pairs have them."""
    words = re.findall(r"\w+|[^\w\s]", text.lower().replace("’", "'"))
    if not french:
        return words
    found = list[str]()
    for word in words:
        if word == "'" and found and found[-1] in WHOLE:
            found[-1] = WHOLE[found[-1]]
        else:
            found += APART.get(word, word).split()
    return found


def attended(forward: Trained, backward: Trained, to: str | None, pairs: Sequence[Pair]) -> tuple[list[Links], ...]:
    """By the attention of two models, English to French and back; the links are English first in both."""
    ways: tuple[list[Links], list[Links]] = ([], [])
    for pair in pairs:
        english, en = natural(pair.source.split(), french=False)
        other, fr = natural(pair.target.split(), french=True)
        source = f"<2{to}> {english}" if to else english
        ways[0].append(links(forward.task, forward.network, Pair(source, other), en, fr))  # pyright: ignore
        back = links(backward.task, backward.network, Pair(other, english), fr, en)  # pyright: ignore
        ways[1].append(frozenset((i, j) for j, i in back))
    return ways


def counted(text: Iterable[Pair], pairs: Sequence[Pair], rounds: int = ROUNDS) -> tuple[list[Links], ...]:
    """By IBM model 1 in both directions, learned from this text and the pairs themselves, as such models are."""
    texts = [(apart(pair.source, french=False), apart(pair.target, french=True)) for pair in text]
    asked = [(pair.source.lower().split(), pair.target.lower().split()) for pair in pairs]
    found = list[list[Links]]()
    for turned in (False, True):
        sides = [(b, a) if turned else (a, b) for a, b in (*texts, *asked)]
        shares = model_one([([NOTHING, *source], target) for source, target in sides], rounds)
        ways = [likeliest(shares, *((b, a) if turned else (a, b))) for a, b in asked]
        found.append([frozenset((j, i) for i, j in each) for each in ways] if turned else ways)
    return tuple(found)


def likeliest(shares: dict[str, dict[str, float]], source: Sequence[str], target: Sequence[str]) -> Links:
    found = set[tuple[int, int]]()
    for j, word in enumerate(target):
        says = [shares.get(each, {}).get(word, 0.0) for each in (NOTHING, *source)]
        best = max(range(len(says)), key=says.__getitem__)
        if best and says[best]:
            found.add((best - 1, j))
    return frozenset(found)


def grown(forward: Links, backward: Links) -> Links:
    """What both say, and beside it, step by step, what one says of a word that has no link yet."""
    found, either = set(forward & backward), forward | backward
    near = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b]
    while True:
        sources, targets = {i for i, _ in found}, {j for _, j in found}
        new = {
            (i, j)
            for i, j in either - found
            if (i not in sources or j not in targets) and any((i + a, j + b) in found for a, b in near)
        }
        if not new:
            return frozenset(found)
        found.add(min(new))


def errors(ways: tuple[list[Links], ...], gold: Sequence[Gold]) -> dict[str, float]:
    """The alignment error rate of each direction, of what both say, and of that grown."""
    both = list(zip(*ways, strict=True))
    found: dict[str, Callable[[Links, Links], Links]] = {
        "forward": lambda a, _: a,
        "backward": lambda _, b: b,
        "intersection": lambda a, b: a & b,
        "grown": grown,
    }
    return {name: alignment_error([way(*each) for each in both], gold) for name, way in found.items()}
