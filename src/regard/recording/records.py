"""What was seen of one attention, and what can be computed from it when someone asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple, overload

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.formula import Call, weigh
from regard.core.normalizers import Normalizer
from regard.core.scores import Score, extent_of
from regard.core.shapes import InputError
from regard.core.statistics import Summary
from regard.dispatch import choose
from regard.resolve import AnyMask, precisely, resolve

__all__ = ["Kept", "Record", "Records", "Seen"]

AT_ONCE = 2**22  # numbers held in one block of rows while weights are computed


class Seen(NamedTuple):
    """What one attention was given."""

    query: Float[Tensor, "*batch n_q d_q"]
    key: Float[Tensor, "*batch n_k d_k"]
    score: Score
    normalizer: Normalizer
    mask: AnyMask
    seed: Tensor | None = None  # only where noise makes the choice


@dataclass(frozen=True)
class Kept:
    """How to come by what was seen, and whether that is still what it was."""

    see: Callable[[], Seen]
    sources: tuple[tuple[Tensor, int], ...]  # tensors that belong to the model, each with its version then
    autocast: tuple[str, torch.dtype] | None

    @staticmethod
    def of(see: Callable[[], Seen], *sources: Tensor | None) -> Kept:
        device = next(x.device.type for x in sources if x is not None)
        autocast = (device, torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else None
        return Kept(
            see, tuple((x.detach(), x._version) for x in sources if x is not None and not x.is_inference()), autocast
        )

    @contextmanager
    def seen(self, name: str) -> Iterator[Seen]:
        if any(tensor._version != version for tensor, version in self.sources):
            raise InputError(
                f"{name}: the model has overwritten a tensor of this attention since (a training step, or a cache "
                f"of fixed size); read the record before that, or use record(model, copy=True)"
            )
        device, dtype = self.autocast or ("cpu", torch.bfloat16)
        with torch.no_grad(), torch.autocast(device, dtype, enabled=self.autocast is not None):
            yield self.see()

    def copied(self, name: str) -> Kept:
        with self.seen(name) as now:
            own = Seen._make(x.clone() if isinstance(x, Tensor) else deepcopy(x) for x in now)
        return replace(self, see=lambda: own, sources=())


@dataclass(frozen=True, eq=False)
class Record:
    """One call of one attention. Its weights are those before dropout."""

    name: str
    call: int  # 0 for the first call of this attention, 1 for the second, …
    parts: tuple[Kept, ...]  # one; or one for each head, where the heads have scores of their own

    @property
    def score(self) -> Score | tuple[Score, ...]:
        return self._one_or_all(lambda seen: seen.score)

    @property
    def normalizer(self) -> Normalizer:
        return self._read(lambda seen: seen.normalizer)[0]

    @property
    def mask(self) -> AnyMask | tuple[AnyMask, ...]:
        return self._one_or_all(lambda seen: seen.mask)

    @property
    def query(self) -> Float[Tensor, "*batch heads n_q d_q"]:
        return torch.cat(self._read(lambda seen: seen.query), dim=-3) if len(self.parts) > 1 else self._first.query

    @property
    def key(self) -> Float[Tensor, "*batch heads n_k d_k"]:
        return torch.cat(self._read(lambda seen: seen.key), dim=-3) if len(self.parts) > 1 else self._first.key

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all weights: *batch heads n_q n_k."""
        with self.parts[0].seen(self.name) as seen, resolved(seen) as (call, query, key):
            extent = extent_of(call.score, query, key)
        heads = extent.batch if len(self.parts) == 1 else (*extent.batch[:-1], len(self.parts))
        return (*heads, extent.n_q, extent.n_k)

    def weights(self, rows: Choice = None, heads: Choice = None) -> Float[Tensor, "*batch heads n_q n_k"]:
        """The weight of every key, for all queries (rows) and heads or for those chosen: a number, a list, a
        slice. All axes are kept. Memory is what is returned and one block of rows."""
        *lead, n_q, _ = self.shape
        if heads is not None and not lead:
            raise InputError(f"{self.name}: heads={heads}, but these weights have no axis of heads: {self.shape}")
        chosen, rows = None if heads is None else _indices("heads", heads, lead[-1]), _indices("rows", rows, n_q)
        if len(self.parts) == 1:
            return self._read(lambda seen: _weights(seen, rows, chosen))[0]
        parts = self.parts if chosen is None else tuple(self.parts[h] for h in chosen.tolist())
        return torch.cat(replace(self, parts=parts)._read(lambda seen: _weights(seen, rows, None)), dim=-3)

    def summary(self, top: int = 8, pool: int = 64) -> Summary:
        """What `regard.attention_summary` says of these weights, in memory O(n)."""
        each = self._read(lambda seen: _summary(seen, top, pool))
        if len(each) == 1:
            return each[0]
        joined: dict[str, Any] = {}
        for name, axis in HEADS_AXIS.items():
            tensors = [getattr(one, name) for one in each]
            joined[name] = None if tensors[0] is None else torch.cat(tensors, dim=axis)
        return Summary(**joined)

    @property
    def _first(self) -> Seen:
        return self._read(lambda seen: seen)[0]

    def _read(self, what: Callable[[Seen], Any]) -> list[Any]:
        found = []
        for part in self.parts:
            with part.seen(self.name) as seen:
                found.append(what(seen))
        return found

    def _one_or_all(self, what: Callable[[Seen], Any]) -> Any:
        found = self._read(what)
        return found[0] if len(found) == 1 else tuple(found)

    def __repr__(self) -> str:
        return f"Record({self.name!r}, call={self.call}, shape={self.shape})"


Choice = int | slice | Sequence[int] | Int[Tensor, " m"] | None
HEADS_AXIS = {"lse": -2, "entropy": -2, "top_weights": -3, "top_indices": -3, "mass": -2, "pooled": -3}


def _indices(name: str, chosen: Choice, n: int) -> Int[Tensor, " m"]:
    everything = torch.arange(n)
    if chosen is None or isinstance(chosen, slice):
        return everything[chosen if chosen is not None else slice(None)]
    index = torch.as_tensor(chosen).reshape(-1).cpu()
    if index.is_floating_point() or bool(((index < -n) | (index >= n)).any()):
        raise InputError(f"{name}={chosen}; expected whole numbers from 0 to {n - 1}")
    return everything[index.long()]


@contextmanager
def resolved(seen: Seen) -> Iterator[tuple[Call, Tensor, Tensor]]:
    query, key, score, normalizer, mask, seed = seen
    with precisely(score, query, key) as (query, key):
        # The keys stand in for the values: weights do not depend on them.
        call, query, key, _ = resolve(query, key, key, score, normalizer, mask, seed=seed)
        yield call, query, key


def _weights(seen: Seen, rows: Tensor, heads: Tensor | None) -> Tensor:
    with resolved(seen) as (call, query, key):
        extent = extent_of(call.score, query, key)
        query, key = call.score.project(query, key)
        numbers = prod(extent.batch) * extent.n_k * call.score.work(query.shape[-1])  # in one row
        blocks = []
        for block in rows.to(query.device).split(max(1, AT_ONCE // max(numbers, 1))):
            weights = weigh(query[..., block, :], key, extent.tile(block), call)
            weights = weights.expand(*extent.batch, -1, -1)
            blocks.append(weights if heads is None else weights[..., heads.to(weights.device), :, :])
        return torch.cat(blocks, dim=-2)


def _summary(seen: Seen, top: int, pool: int) -> Summary:
    with resolved(seen) as (call, query, key):
        return choose("auto", query, key, key, call)[1].summary(query, key, call, top, pool)


class Records(Sequence[Record]):
    """The records in the order of the calls; `records[name]` is the latest of that name, `calls(name)` all."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._counts: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(record.name for record in self._records))

    def calls(self, name: str) -> list[Record]:
        found = [record for record in self._records if record.name == name]
        if not found:
            known = ", ".join(self.names) or "none; was the model called inside `with record(model)`?"
            raise InputError(f"no record of {name!r}; there are: {known}")
        return found

    @overload
    def __getitem__(self, which: int | str) -> Record: ...

    @overload
    def __getitem__(self, which: slice) -> list[Record]: ...

    def __getitem__(self, which: int | str | slice) -> Record | list[Record]:
        return self.calls(which)[-1] if isinstance(which, str) else self._records[which]

    def __contains__(self, which: object) -> bool:
        return which in self.names if isinstance(which, str) else which in self._records

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"{len(self)} records: {', '.join(self.names)}"

    def add(self, name: str, part: Kept, first: bool, keep: int | None) -> None:
        if not first:  # a further head of the latest call
            self._records[-1] = replace(self._records[-1], parts=(*self._records[-1].parts, part))
            return
        self._records.append(Record(name, self.so_far(name), (part,)))
        self._counts[name] = self.so_far(name) + 1
        if keep is not None and self.so_far(name) > keep:
            self._records.remove(next(record for record in self._records if record.name == name))

    def so_far(self, name: str) -> int:
        return self._counts.get(name, 0)
