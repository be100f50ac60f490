"""Word by word: translation as the lecture notes begin it, each word replaced by its entry in a table.

It knows no order, no agreement and no context: what it costs to know none of them is its BLEU beside a model's.

    table = learn(read_pair_table("fr.train.tsv"))      from pairs, by IBM model 1
    table = from_grammar("fr")                          from the corpora's own words and gold alignments
    table("The black cat ate the mouse.")               Le noir chat a mangé la souris.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.core.shapes import InputError
from regard.tasks import metrics
from regard.tasks.atomic import write_whole
from regard.tasks.corpora import LANGUAGES, SOURCE, realiser
from regard.tasks.corpora.meaning import links
from regard.tasks.corpora.sampling import sentences
from regard.tasks.data import Pair, read_table
from regard.tasks.files import PathLike
from regard.tasks.task import Answer, Options
from regard.tasks.words import words_of

CLOSING = ".,!?;:।。，！？)"  # no space before these
ROUNDS = 10  # of learning; the table changes little after five
NOTHING = ""  # the word that stands for no word, on the source side; an entry that says nothing, on the target side


@dataclass(frozen=True)
class WordByWord:
    """`table("The cat sleeps.")` translates one text, `table([…])` several; `answer` says what is unknown too."""

    entries: Mapping[str, str]  # by the source word in lower case; an entry may be several words, or none

    def __call__(self, text: str | Sequence[str]) -> str | list[str]:
        if isinstance(text, str):
            return self._answer(text).output
        return [self._answer(each).output for each in text]

    def answer(self, texts: Sequence[str], options: Options | None = None) -> list[Answer]:
        """As a trained model answers. The confidence is the share of words that the table knows."""
        return [self._answer(text) for text in texts]

    def score(self, pairs: Iterable[Pair], lowercase: bool = False) -> dict[str, float | str]:
        """BLEU and chrF, as `regard evaluate` counts them for models."""
        pairs = list(pairs)
        if not pairs:
            raise InputError("score: no pairs; expected at least one")
        return metrics.translation(
            [self._answer(pair.source).output for pair in pairs], [pair.target for pair in pairs], lowercase
        )

    def save(self, path: PathLike) -> None:
        """One entry a line: word<TAB>translation."""
        lines = [f"{word}\t{entry or '-'}" for word, entry in sorted(self.entries.items())]
        write_whole(Path(path), "".join(f"{line}\n" for line in lines).encode())

    def _answer(self, text: str) -> Answer:
        written, unknown = list[str](), list[str]()
        words = words_of(text)
        for word in words:
            entry = self.entries.get(word.lower())
            if entry is None:
                entry = word  # as a person with a dictionary does: left as it is
                if word[0].isalnum():
                    unknown.append(word)
            written += entry.split()
        known = 1 - len(unknown) / len(words) if words else 1.0
        output = joined(written)
        if words and words[0][0].isupper():
            output = output[:1].upper() + output[1:]
        return Answer(text, output, known, unknown=tuple(dict.fromkeys(unknown)))


def load(path: PathLike) -> WordByWord:
    """A table that `save` wrote, or any of word<TAB>translation; `-` is a word that is left out."""
    rows = read_table(path, (1, 2), delimiter="\t", header=False)
    return WordByWord({word.lower(): "" if entry == "-" else entry for word, entry in rows})


def learn(pairs: Iterable[Pair], rounds: int = ROUNDS) -> WordByWord:
    """IBM model 1: t(target word | source word) by expectation and maximisation, then the likeliest for each.

    A word of the target comes from one word of the source, each as likely as another by its place, or from none; a
    mark only from a mark, so that what says nothing in the target ("the" in Hindi) is not taken for its full stop.
    """
    if rounds < 1:
        raise InputError(f"rounds={rounds}; expected 1 or more")
    texts = [([NOTHING, *_lower(pair.source)], pieces_of(pair.target)) for pair in pairs]
    if not texts:
        raise InputError("learn: no pairs; expected at least one")
    shares = model_one(texts, rounds)
    best = {word: max(sorted(found), key=found.__getitem__) for word, found in shares.items() if found and word}
    return WordByWord(best)


def model_one(texts: Sequence[tuple[Sequence[str], Sequence[str]]], rounds: int) -> dict[str, dict[str, float]]:
    """t(target word | source word) of texts as words; what stands for no word is a source word too, if it is there."""
    # Before the first round all words that ever meet are equally likely.
    shares: dict[str, dict[str, float]] = {}
    for source, target in texts:
        for word in source:
            shares.setdefault(word, {}).update((other, 1.0) for other in target if _may_say(word, other))
    for _ in range(rounds):
        expected: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for source, target in texts:
            for word in target:
                able = [each for each in source if _may_say(each, word)]
                total = sum(shares[each][word] for each in able)
                for each in able:
                    expected[each][word] += shares[each][word] / total
        for word, counts in expected.items():
            total = sum(counts.values())
            # What has no share worth the name is kept, so that no sum is ever 0.
            shares[word] = {other: max(count / total, 1e-12) for other, count in counts.items()}
    return shares


def from_grammar(language: str, count: int = 3000, seed: int = 0) -> WordByWord:
    """The table that the corpora's own grammar has in its head: for each English word, what says it most often.

    From gold alignments, so it is the best that a table of whole words can be; several words may say one (ate: a
    mangé), and what nothing says is left out.
    """
    if language not in LANGUAGES:
        raise InputError(f"language {language!r}; expected one of {', '.join(LANGUAGES)}")
    said: dict[str, Counter[str]] = defaultdict(Counter)
    say, repeat = realiser(SOURCE), realiser(language)
    for sentence in sentences("train", seed, count):
        source, target = say(sentence), repeat(sentence)
        places: dict[int, list[int]] = defaultdict(list)
        for i, j in links(source.tokens, target.tokens):
            places[i].append(j)
        for i, word in enumerate(source.words):
            said[word.lower()][" ".join(target.words[j] if j else target.words[j].lower() for j in places[i])] += 1
    return WordByWord({word: max(sorted(found), key=found.__getitem__) for word, found in said.items()})


def pieces_of(text: str) -> list[str]:
    """Words as a dictionary has them: only the first in lower case. Where none are written apart, as in Chinese,
    characters."""
    words = words_of(text)
    words = [word.lower() if not i else word for i, word in enumerate(words)]
    return [piece for word in words for piece in (word if any(map(_is_chinese, word)) else [word])]


def joined(words: Sequence[str]) -> str:
    """The text of these words: no space before a closing mark, none between Chinese characters."""
    text = ""
    for word in words:
        apart = text and word not in CLOSING and not (_is_chinese(text[-1]) and _is_chinese(word[0]))
        text += (" " if apart and not text.endswith(("'", "’")) else "") + word
    return text


def _may_say(source: str, target: str) -> bool:
    return source == NOTHING or source[0].isalnum() == target[0].isalnum()


def _lower(text: str) -> list[str]:
    return [word.lower() for word in words_of(text)]


def _is_chinese(character: str) -> bool:
    return "\u4e00" <= character <= "\u9fff"
