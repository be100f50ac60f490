"""Translation: the model decides the length. One model may know several languages; then each source begins with
the tag of the language that it shall become, as in `<2fr> The cat sleeps.`"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from torch import nn

from regard.core.shapes import InputError
from regard.tasks import metrics, networks
from regard.tasks.data import Pair, read_pair_table, read_pairs
from regard.tasks.examples import Item
from regard.tasks.task import Options
from regard.tasks.writing import Writing

TAG = re.compile(r"<2([A-Za-z][A-Za-z0-9_-]{0,31})> ?")


class Translate(Writing):
    """`labels` are the languages of a model that knows several; their pieces come after the tokenizer's."""

    name = "translate"
    to: str | None = None  # the language that is meant where none is asked for
    files = "two files, aligned line by line, or one table with source and target in its first two columns"

    @classmethod
    def read(cls, files: Sequence[str], labels: Collection[str] | None = None) -> Iterator[Pair]:
        pairs = read_pairs(files[0], files[1]) if len(files) == 2 else tables(files, "data of translate")
        for pair in pairs:
            tag = TAG.match(pair.source)
            if labels is not None and tag and tag[1] not in labels:
                raise InputError(f"{files[0]}: a source begins with {tag[0]!r}; the model knows {listed(labels)}")
            yield pair

    @classmethod
    def texts(cls, example: Pair) -> Iterable[str]:
        return TAG.sub("", example.source, count=1), example.target

    @classmethod
    def labels_of(cls, example: Pair) -> Iterable[str]:
        tag = TAG.match(example.source)
        return () if tag is None else (tag[1],)

    def encode(self, example: Pair) -> Item:
        tag, rest = self.tagged(example.source)
        return Item((*tag, *self.tokenizer.encode(rest).ids), self.tokenizer.encode(example.target).ids)

    def network(self, dropout: float = 0.0, embedding: nn.Module | None = None) -> nn.Module:
        return networks.writer(self.model, len(self.tokenizer) + len(self.labels), dropout, self.longest)

    def source(self, text: str, options: Options) -> tuple[tuple[int, ...], tuple[str, ...], bool]:
        if TAG.match(text) is None and (self.labels or options.to):
            text = f"<2{self.language(options.to or self.to)}> {text}"
        ids, rest = self.tagged(text)
        encoded, cut = self.pieces(rest, self.longest - 1 - len(ids))
        return (*ids, *encoded.ids), self.unknown(rest, encoded), cut

    def score(self, network: nn.Module, examples: Sequence[Pair], options: Options) -> dict[str, float | str]:
        answers = self.answer(network, [example.source for example in examples], options)
        return metrics.translation([answer.output for answer in answers], [example.target for example in examples])

    def named(self, ids: Sequence[int]) -> tuple[str, ...]:
        known = len(self.tokenizer)
        return tuple(self.tokenizer.piece(id) if id < known else f"<2{self.labels[id - known]}>" for id in ids)

    def tagged(self, text: str) -> tuple[tuple[int, ...], str]:
        """The id of a source's tag, if it has one, and the text behind it."""
        tag = TAG.match(text) if self.labels else None
        if tag is None:
            return (), text
        return (len(self.tokenizer) + self.labels.index(self.language(tag[1])),), text[tag.end() :]

    def language(self, to: str | None) -> str:
        """Does the model know it?"""
        if to in self.labels:
            return str(to)
        if not self.labels:
            raise InputError(f"--to {to}: this model translates into one language only; leave it out")
        near = get_close_matches(to or "", self.labels, n=1)
        what = "into which language?" if to is None else f"--to {to}: unknown language;"
        meant = f" did you mean {near[0]}?" if near else ""
        raise InputError(f"{what}{meant} this model knows {listed(self.labels)}")


def tables(files: Sequence[str], what: str) -> Iterator[Pair]:
    if len(files) != 1:
        raise InputError(f"{what}: {len(files)} files; expected {Translate.files}")
    return read_pair_table(files[0])


def listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names))
