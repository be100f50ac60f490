"""What a sentence of the corpora says, before any language has words for it, and the words that say it.

Every part of a meaning has a name, its node: `0.subject`, `0.subject.det`, `0.subject.black`, `0.verb`, `0.not`,
`0.question`, `0.object`…, `0.place.prep`, `0.place`…, `0.time`, `comma`, `link`, `end`; 0 and 1 count the clauses. A word
carries the nodes that it says. Two words of two languages are aligned when they share a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Determiner = Literal["the", "a", "some", "two", "three", "four"]
Tense = Literal["past", "present", "future"]
Link = Literal["and", "but", "because"]

BE = "be"


@dataclass(frozen=True)
class NounPhrase:
    """`some` stands with plurals (some cats) and with what is not counted (some bread); numerals are plural. Nouns of
    places are definite and singular."""

    noun: str
    determiner: Determiner = "the"
    plural: bool = False
    adjectives: tuple[str, ...] = ()  # in the order of English; of two, the second is a colour


@dataclass(frozen=True)
class Place:
    preposition: str  # in, on, under, behind, near
    where: NounPhrase  # definite and singular, with one adjective at most


@dataclass(frozen=True)
class Clause:
    """Either a verb with or without object, or `be` with a quality: "the cat is black"."""

    subject: NounPhrase
    verb: str
    tense: Tense = "past"
    object: NounPhrase | None = None
    quality: str | None = None
    negated: bool = False
    question: bool = False  # yes or no; never negated, and never one of two clauses
    place: Place | None = None
    time: str | None = None  # one that goes with the tense
    time_first: bool = False  # never in a question, nor in a second clause


@dataclass(frozen=True)
class Sentence:
    """One clause or two. Sentences that say the same in another style are different."""

    clauses: tuple[Clause, ...]
    link: Link | None = None
    end: Literal[".", "!", "?", ""] = "."  # `?` for questions and only there, unless nothing stands at the end
    capital: bool = True
    short: bool = False  # didn't, not did not, where a language has such forms


@dataclass(frozen=True)
class Token:
    """A word as it is written. `glue`: no space between the word before and this one."""

    form: str
    nodes: tuple[str, ...] = ()
    tag: str = ""  # universal part of speech
    glue: bool = False


@dataclass(frozen=True)
class Realised:
    """A text and its words: `text[start:end]` at span i is the form of token i."""

    text: str
    tokens: tuple[Token, ...]
    spans: tuple[tuple[int, int], ...]

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(token.form for token in self.tokens)


def spell(tokens: Sequence[Token], sentence: Sentence, marks: Mapping[str, Sequence[Token]] | None = None) -> Realised:
    """The text of these words: first letter large if it shall be so, and the mark at the end.

    `marks` are the ends that a language writes in its own way.
    """
    end = (marks or {}).get(sentence.end, (Token(sentence.end, ("end",), "PUNCT", glue=True),) if sentence.end else ())
    written = [*(capitalised(tokens) if sentence.capital else tokens), *end]
    text, spans = "", []
    for token in written:
        text += "" if token.glue or not text else " "
        spans.append((len(text), len(text) + len(token.form)))
        text += token.form
    return Realised(text, tuple(written), tuple(spans))


def capitalised(tokens: Sequence[Token]) -> list[Token]:
    """The first letter large; marks before it, such as ¿, have none."""
    for i, token in enumerate(tokens):
        if token.form[:1].isalpha():
            return [*tokens[:i], replace(token, form=token.form[0].upper() + token.form[1:]), *tokens[i + 1 :]]
    return list(tokens)


def phrase(words: str, *nodes: str, tag: str = "", glue: bool = False) -> list[Token]:
    """Words between spaces that say one thing together; `glue` is that of the first."""
    return [Token(word, nodes, tag, glue and not i) for i, word in enumerate(words.split())]


def links(source: Sequence[Token], target: Sequence[Token]) -> list[tuple[int, int]]:
    """The gold alignment: pairs of places, from 0, of words that share a node."""
    others = [(j, set(token.nodes)) for j, token in enumerate(target)]
    return [(i, j) for i, token in enumerate(source) for j, nodes in others if nodes.intersection(token.nodes)]


def sure(source: Sequence[Token], target: Sequence[Token]) -> list[tuple[int, int]]:
    """Those of the links that nobody would draw otherwise: where one source word says it (ate: a mangé), or one word
    of it the most (will eat: mangera). Of "did eat" and "a mangé", or "last week" and "上周", all are only possible."""
    saying: dict[str, list[Token]] = {}
    for token in source:
        for node in token.nodes:
            saying.setdefault(node, []).append(token)
    written = Counter(node for token in target for node in token.nodes)

    def is_sure(one: Token, node: str) -> bool:
        heads = [token for token in saying[node] if token.tag != "AUX"]
        return len(saying[node]) == 1 or (written[node] == 1 and len(heads) == 1 and one.tag != "AUX")

    shared = [(i, j, set(source[i].nodes) & set(target[j].nodes)) for i, j in links(source, target)]
    return [(i, j) for i, j, nodes in shared if any(is_sure(source[i], node) for node in nodes)]
