"""What every renderer draws: weights that inspection or a record gave, with their tokens. Nothing is attended here.

A picture holds one or many maps (heads, layers, mechanisms) of the same queries (rows) and keys (columns).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.shapes import InputError, ShapeError

if TYPE_CHECKING:
    from regard.core.statistics import Summary
    from regard.recording import Record

LARGEST = 2**26  # cells of all maps that are drawn one by one; beyond it maps are pooled
POOL, TOP = 1024, 8  # the sides of a pooled map, and the keys of each query that stay exact


@dataclass(frozen=True, eq=False)
class Picture:
    """Weights with their tokens.

    >>> seen = Picture(torch.tensor([[1.0, 0.0], [0.25, 0.75]]), ["The", "cat"], ["Le", "chat"])
    >>> seen
    Picture: 1 map, 2 queries x 2 keys
    """

    weights: Float[Tensor, "maps p_q p_k"]  # p_q = n_q and p_k = n_k, unless the maps are pooled
    rows: Sequence[str]  # the n_q queries
    columns: Sequence[str]  # the n_k keys
    title: str = ""
    maps: Sequence[str] = ()  # the name of each map
    note: str = ""  # what a reader must know, such as "random numbers, not trained"
    special: Collection[str] = ()  # tokens that are no words, such as "</s>"
    row_words: Sequence[int] | None = None  # the word that each token belongs to, counted from 0
    column_words: Sequence[int] | None = None
    top: tuple[Float[Tensor, "maps n_q top"], Int[Tensor, "maps n_q top"]] | None = None  # exact, where maps are pooled
    entropy: Float[Tensor, "maps n_q"] | None = None  # exact too
    layers: Sequence[int] | None = None  # the layer of each map, counted from 0, where a model has several
    removed: Float[Tensor, "maps n_q"] | None = None  # weight that went to keys no longer shown
    walk: dict[str, Any] | None = field(default=None, repr=False)  # what the walk-through starts from (see.walkthrough)
    points: Float[Tensor, "n_q 2"] | None = None  # where the words stand on a map of their vectors
    view: str = "matrix"  # what a page shows first: matrix, lines, overview, alignment, walk, …
    whole: bool = False  # a page puts subwords together at first
    bare: bool = False  # and hides special tokens

    def __post_init__(self) -> None:
        weights = self.weights.detach().float().cpu()
        weights = weights.flatten(0, -3) if weights.ndim > 2 else weights[None]
        rows, columns = tuple(self.rows), tuple(self.columns)
        if weights.ndim != 3 or (self.top is None and weights.shape[1:] != (len(rows), len(columns))):
            raise ShapeError(
                f"weights have shape {tuple(self.weights.shape)}; expected [..., {len(rows)}, {len(columns)}]: "
                f"one row for each of {len(rows)} queries, one column for each of {len(columns)} keys"
            )
        if not bool(weights.isfinite().all()):
            worst = (~weights.isfinite()).nonzero()[0].tolist()
            raise InputError(
                f"weights[{', '.join(map(str, worst))}] is {weights[tuple(worst)].item()}; expected finite numbers"
            )
        names = tuple(self.maps) or (("",) if len(weights) == 1 else tuple(f"map {i + 1}" for i in range(len(weights))))
        if len(names) != len(weights):
            raise ShapeError(f"maps has {len(names)} names for {len(weights)} maps; expected one for each")
        if self.layers is not None and len(self.layers) != len(names):
            raise ShapeError(f"layers has {len(self.layers)} numbers for {len(names)} maps; expected one for each")
        for name, words, n in (
            ("row_words", self.row_words, len(rows)),
            ("column_words", self.column_words, len(columns)),
        ):
            if words is not None and (len(words) != n or any(b - a not in (0, 1) for a, b in pairwise(words))):
                raise ShapeError(
                    f"{name} is {list(words)}; expected {n} numbers that count words from 0, each the same as the last or one more"
                )
        for name, value in (("weights", weights), ("rows", rows), ("columns", columns), ("maps", names)):
            object.__setattr__(self, name, value)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """What a notebook shows: the page, in a frame of its own; an image and text where scripts are stripped."""
        from regard.see.page import bundle

        return bundle(self)

    @property
    def pooled(self) -> bool:
        return self.top is not None

    @property
    def signed(self) -> bool:
        return bool((self.weights < 0).any())

    @property
    def most(self) -> float:
        """The largest size of a weight: the end of the colour scale."""
        return self.weights.abs().max().item() if self.weights.numel() else 0.0

    def __repr__(self) -> str:
        count, pooled = len(self.maps), f", pooled to {tuple(self.weights.shape[1:])}" if self.pooled else ""
        return f"Picture: {count} map{'s' * (count != 1)}, {len(self.rows)} queries x {len(self.columns)} keys{pooled}"

    def at_first(self) -> Picture:
        """As a page shows it first, for those who cannot switch: whole words, without special tokens."""
        bare = self.without_special() if self.bare else self
        return bare.whole_words() if self.whole else bare

    def only(self, *which: int | str) -> Picture:
        """The same picture with some of its maps, by name or place."""
        places = []
        for one in which:
            if one not in (range(-len(self.maps), len(self.maps)) if isinstance(one, int) else self.maps):
                raise InputError(f"no map {one!r}; there are {len(self.maps)}: {', '.join(self.maps)}")
            places.append(one if isinstance(one, int) else self.maps.index(one))
        return replace(
            self,
            weights=self.weights[places],
            maps=[self.maps[i] for i in places],
            top=None if self.top is None else (self.top[0][places], self.top[1][places]),
            entropy=None if self.entropy is None else self.entropy[places],
            layers=None if self.layers is None else [self.layers[i] for i in places],
            removed=None if self.removed is None else self.removed[places],
        )

    def whole_words(self, join: str = "") -> Picture:
        """Subwords put together: weights are summed over the keys of a word, averaged over its queries."""
        if self.row_words is None and self.column_words is None:
            return self
        self._must_be_whole("whole_words")
        of_row, of_column = self._groups(self.row_words, self.rows), self._groups(self.column_words, self.columns)
        summed = _add_up(self.weights, of_column, -1)
        count = torch.bincount(of_row).clamp(min=1)
        return replace(
            self,
            weights=_add_up(summed, of_row, -2) / count[:, None],
            rows=_joined(self.rows, of_row.tolist(), join),
            columns=_joined(self.columns, of_column.tolist(), join),
            row_words=None,
            column_words=None,
            whole=False,
            removed=None if self.removed is None else _add_up(self.removed, of_row, -1) / count,
            walk=None,
            points=None,
        )

    def without_special(self) -> Picture:
        """Special tokens left out; `removed` says how much of each query's weight went to them."""
        self._must_be_whole("without_special")
        rows = [i for i, token in enumerate(self.rows) if token not in self.special]
        keys = [j for j, token in enumerate(self.columns) if token not in self.special]
        gone = [j for j, token in enumerate(self.columns) if token in self.special]
        lost = self.weights[:, rows][:, :, gone].sum(-1)
        return replace(
            self,
            weights=self.weights[:, rows][:, :, keys],
            rows=[self.rows[i] for i in rows],
            columns=[self.columns[j] for j in keys],
            row_words=None if self.row_words is None else _renumbered([self.row_words[i] for i in rows]),
            column_words=None if self.column_words is None else _renumbered([self.column_words[j] for j in keys]),
            removed=lost if self.removed is None else lost + self.removed[:, rows],
            bare=False,
            walk=None,
            points=None if self.points is None else self.points[rows],
        )

    def _groups(self, words: Sequence[int] | None, tokens: Sequence[str]) -> Int[Tensor, " n"]:
        if words is None:
            return torch.arange(len(tokens))
        return torch.tensor(words, dtype=torch.long) - (words[0] if words else 0)  # there may be none

    def _must_be_whole(self, what: str) -> None:
        if self.pooled:
            raise InputError(
                f"{what}: these maps are pooled, and single tokens are gone; make the picture of fewer rows"
            )

    @staticmethod
    def from_record(
        record: Record | Sequence[Record],
        rows: Sequence[str],
        columns: Sequence[str] | None = None,
        *,
        batch: int | None = 0,
        **described: Any,
    ) -> Picture:
        """One attention that was watched, all its heads; or several that have the same queries and keys (the
        layers of a model). `columns` are the rows where it attends to itself; `batch` chooses the sentence on
        the first axis (None: there is no such axis, all leading axes are heads).

        Weights are computed here, and only up to a size that can be looked at cell by cell: longer ones come
        pooled, in memory O(n), with the largest weights of every query exact.
        """
        records = list(record) if isinstance(record, Sequence) else [record]
        columns = rows if columns is None else columns
        heads = [_heads(one, batch) for one in records]
        long = sum(heads) * len(rows) * len(columns) > LARGEST
        names = [
            one.name if count == 1 else f"{one.name} · {h + 1}"
            for one, count in zip(records, heads, strict=True)
            for h in range(count)
        ]
        layers = [layer for layer, count in enumerate(heads) for _ in range(count)] if len(records) > 1 else None
        described = {"maps": names, "layers": layers, **described}
        if not long:
            weights = torch.cat([_one_sentence(one.weights(), one, batch) for one in records])
            return Picture(weights, rows, columns, **described)
        summaries: list[Summary] = [one.summary(top=TOP, pool=POOL) for one in records]

        def part(read: Callable[[Summary], Tensor]) -> Tensor:
            parts = [_one_sentence(read(s), one, batch) for s, one in zip(summaries, records, strict=True)]
            return torch.cat(parts).cpu()

        top = part(lambda s: s.top_weights), part(lambda s: s.top_indices)
        entropy = torch.cat(
            [_one_sentence(s.entropy[..., None], o, batch) for s, o in zip(summaries, records, strict=True)]
        )
        return Picture(part(lambda s: s.pooled), rows, columns, top=top, entropy=entropy[..., 0].cpu(), **described)

    @staticmethod
    def from_steps(
        records: Sequence[Record],
        rows: Sequence[str],
        columns: Sequence[str] | None = None,
        *,
        batch: int | None = 0,
        **described: Any,
    ) -> Picture:
        """The calls of one attention while a model wrote: each gives the next rows. Where it attended to what
        was written so far, a call sees more keys than the one before; those not written yet have weight 0."""
        columns = rows if columns is None else columns
        calls = [_one_sentence(one.weights(), one, batch) for one in records]
        padded = [torch.nn.functional.pad(w, (0, len(columns) - w.shape[-1])) for w in calls]
        return Picture(torch.cat(padded, dim=-2), rows, columns, **described)


def _heads(record: Record, batch: int | None) -> int:
    lead = record.shape[:-2]
    return prod(lead if batch is None else lead[1:])


def _one_sentence(x: Tensor, record: Record, batch: int | None) -> Tensor:
    """(batch, heads, a, b) -> (heads, a, b), of one sentence."""
    lead = record.shape[:-2]
    if batch is None or not lead:
        return x.reshape(-1, *x.shape[-2:])
    if not -lead[0] <= batch < lead[0]:
        raise InputError(f"{record.name}: batch={batch}; expected 0 to {lead[0] - 1}")
    return x[batch].reshape(-1, *x.shape[-2:])


def _add_up(x: Tensor, group: Int[Tensor, " n"], axis: int) -> Tensor:
    shape = list(x.shape)
    shape[axis] = int(group.max()) + 1 if len(group) else 0
    return torch.zeros(shape).index_add_(axis, group, x)


def _joined(tokens: Sequence[str], words: list[int], join: str) -> list[str]:
    pieces: dict[int, list[str]] = {}
    for token, word in zip(tokens, words, strict=True):
        pieces.setdefault(word, []).append(token)
    return [join.join(pieces[word]) for word in sorted(pieces)]


def _renumbered(words: list[int]) -> list[int]:
    place = {word: i for i, word in enumerate(dict.fromkeys(words))}
    return [place[word] for word in words]
