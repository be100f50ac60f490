"""The formula as a database: Σ_i weight(q, k_i) · v_i over a table of (key, value) pairs.

Ordinary lookup is attention with the score `Exact()` and no normalizer; any other score makes it soft.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Number
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.normalizers import Identity, Normalizer, Softmax
from regard.core.scores import Exact, Score, as_score
from regard.core.shapes import InputError, ShapeError
from regard.dispatch import choose, resolve

SHOWN = 10  # pairs that print() shows of an answer
INEXACT_FROM = 2**53  # float64 does not tell 2**53 from 2**53 + 1
NO_KEY = -1.0  # the code of a query that equals no key


class Database:
    """Pairs of keys and values, each of any type: numbers, vectors, texts, objects.

    >>> from regard.database import Database
    >>> from regard.scores import Gaussian
    >>> major = Database(["Ann", "Bob", "Eve"], ["Physics", "Law", "Physics"])
    >>> major.query("Bob")
    1 of 3 pairs
      Bob -> Law, weight 1
    >>> major.query("Zoe")
    nothing found

    Only keys can be queried. Exchange keys and values to ask the other way round:

    >>> major.inverse().query("Physics")
    2 of 3 pairs
      Physics -> Ann, weight 1
      Physics -> Eve, weight 1

    Any score makes the lookup soft: near keys weigh most.

    >>> salary = Database([3.0, 3.4, 3.5, 3.6, 4.0], [51e3, 58.5e3, 62e3, 63.5e3, 78e3])
    >>> salary.query(3.5, score=Gaussian(0.1))
    value 61451.9, from 5 of 5 pairs
      3.5 -> 62000, weight 0.451861
      3.4 -> 58500, weight 0.274068
      3.6 -> 63500, weight 0.274068
      3.0 -> 51000, weight 1.68393e-06
      4.0 -> 78000, weight 1.68393e-06
    """

    def __init__(self, keys: Iterable[Any], values: Iterable[Any]) -> None:
        self._keys, self._values = _Column.of("keys", keys), _Column.of("values", values)
        if len(self._keys.items) != len(self._values.items):
            raise ShapeError(
                f"keys has n={len(self._keys.items)}, values has n={len(self._values.items)}: "
                f"each key needs one value; cut or complete one of them"
            )
        if not self._keys.items:
            raise InputError("the database is empty: expected at least one key and its value")

    def __len__(self) -> int:
        return len(self._keys.items)

    def __repr__(self) -> str:
        return f"Database of {len(self)} pairs"

    def inverse(self) -> Database:
        """The database whose keys are the values of this one, and the reverse."""
        return Database(self._values.source, self._keys.source)

    def query(
        self,
        query: Any,
        *,
        score: Score | Callable[[Tensor, Tensor], Tensor] | None = None,
        normalizer: Normalizer | None = None,
    ) -> Answer:
        """The weight of every pair, and the sum of the values by these weights.

        `score=None` is `Exact()`. `normalizer=None` is `Identity()` for `Exact()`, so that equal keys each
        count once and their values add up; for any other score it is `Softmax()`.

        Numeric keys also take a batch of queries, with one more leading axis than a key:

        >>> Database([1, 2, 3], [10, 20, 30]).query([3, 1]).value
        tensor([30., 10.], dtype=torch.float64)
        """
        score = Exact() if score is None else as_score(score)
        normalizer = default_normalizer(score) if normalizer is None else normalizer
        q, k = self._comparable(query, score)
        v = k if self._values.numbers is None else self._values.numbers
        dtype = torch.promote_types(k.dtype, v.dtype)
        q_rows, k_rows, v_rows = (x.reshape(-1, like[0].numel()).to(dtype) for x, like in ((q, k), (k, k), (v, v)))

        call, query_, key, value = resolve(q_rows, k_rows, v_rows, score, normalizer, mask=None)
        _, backend = choose("auto", query_, key, value, call)
        weights = backend.rows(query_, key, call)
        total = backend.forward(query_, key, value, call)

        if not weights.isfinite().all():
            raise InputError(
                f"{type(score).__name__} and {type(normalizer).__name__} give weights that are not finite for "
                f"this query: the scores leave the range of {dtype}; rescale the keys or the score"
            )
        batch = q.shape[: q.ndim - k.ndim + 1]
        weights, total = weights.reshape((*batch, len(k))), total.reshape((*batch, *v.shape[1:]))
        return Answer(weights, None if self._values.numbers is None else total, self._keys.items, self._values.items)

    def _comparable(self, query: Any, score: Score) -> tuple[Tensor, Tensor]:
        """The query (d) or queries (m, d), and the keys (n, d), as numbers that a score can compare."""
        keys = self._keys.numbers
        if keys is None:
            if not isinstance(score, Exact):
                other = next((k for k in self._keys.items if not isinstance(k, Number)), self._keys.items[0])
                raise InputError(
                    f"{type(score).__name__} compares numbers, and not all keys are numbers (one is {other!r}); "
                    f"use Exact(), or turn the keys into vectors"
                )
            codes = _Codes(self._keys.items)
            return torch.tensor(codes.of(query), dtype=torch.float64), torch.tensor(codes.of_items, dtype=torch.float64)
        try:
            # At once in the keys' type: by way of float32, 3.4 would no longer be 3.4.
            queries = torch.as_tensor(query, dtype=keys.dtype, device=keys.device)
            large = torch.as_tensor(query, device=keys.device) if self._keys.large is not None else None
        except (TypeError, ValueError, RuntimeError, OverflowError):
            raise InputError(f"query {query!r} is not {self._keys.kind}; all keys are") from None
        single = keys.shape[1:]
        if queries.shape != single and queries.shape[1:] != single:
            d = keys.shape[-1]
            expected = f"({d},), or (m, {d}) for m queries" if single else "one number, or (m,) for m queries"
            raise ShapeError(
                f"query has shape {tuple(queries.shape)}, each key is {self._keys.kind}; expected {expected}"
            )
        if not queries.isfinite().all():
            raise InputError(f"query {query!r} is not finite; expected {self._keys.kind}")
        if isinstance(score, Exact) and large is not None and self._keys.large is not None:
            return _halves(queries if large.is_floating_point() else large), _halves(self._keys.large)
        return queries, keys


def default_normalizer(score: Score) -> Normalizer:
    return Identity() if isinstance(score, Exact) else Softmax()


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """What a database found. A batch of m queries adds a leading axis, and `found` is a list for each."""

    weights: Float[Tensor, "*m n"]
    value: Tensor | None  # Σ weight · value; None where values are not numbers
    keys: list[Any] = field(repr=False)
    values: list[Any] = field(repr=False)

    @cached_property
    def places(self) -> list[Any]:
        """Where the pairs of `found` stand in the database."""
        if self.weights.ndim == 2:
            return [one.places for one in self._singles()]
        weights = self.weights.tolist()
        return sorted((i for i, w in enumerate(weights) if w != 0), key=lambda i: -abs(weights[i]))

    @cached_property
    def found(self) -> list[Any]:
        """(key, value, weight) of every pair whose weight is not 0, largest |weight| first."""
        if self.weights.ndim == 2:
            return [one.found for one in self._singles()]
        weights = self.weights.tolist()
        return [(self.keys[i], self.values[i], weights[i]) for i in self.places]

    def _singles(self) -> list[Answer]:
        totals = [None] * len(self.weights) if self.value is None else list(self.value)
        return [Answer(w, total, self.keys, self.values) for w, total in zip(self.weights, totals, strict=True)]

    def __str__(self) -> str:
        if self.weights.ndim == 2:
            return "\n".join(f"query {i}: {one}" for i, one in enumerate(self._singles()))
        if not self.found:
            return "nothing found"
        head = f"{len(self.found)} of {len(self.keys)} pairs"
        if self.value is not None:
            head = f"value {_short(self.value.tolist())}, from {head}"
        lines = [
            f"  {_short(key)} -> {_short(value)}, weight {weight:.6g}" for key, value, weight in self.found[:SHOWN]
        ]
        rest = len(self.found) - SHOWN
        return "\n".join([head, *lines] + ([f"  and {rest} more"] if rest > 0 else []))

    __repr__ = __str__


@dataclass(frozen=True)
class _Column:
    """Keys or values: as given, as a list, and, if they are numbers or vectors, as a tensor."""

    source: Iterable[Any]
    items: list[Any]
    numbers: Tensor | None
    large: Tensor | None = None  # the whole numbers, where some are too large for `numbers` to tell apart

    @staticmethod
    def of(name: str, source: Iterable[Any]) -> _Column:
        if isinstance(source, str) or not isinstance(source, Iterable):
            raise InputError(f"{name} is {type(source).__name__}; expected a list, a tensor or another sequence")
        tolist = getattr(source, "tolist", None)  # a tensor or an array: kept, for its type
        items = list(source) if tolist is None else tolist()
        source = items if tolist is None else source
        numbers, large = _numbers(source), None
        if numbers is not None:
            if numbers.ndim not in (1, 2) or 0 in numbers.shape[1:]:
                raise ShapeError(f"{name} has shape {tuple(numbers.shape)}; expected (n,) or (n, d), d at least 1")
            finite = numbers.isfinite() if numbers.ndim == 1 else numbers.isfinite().all(-1)
            if not finite.all():
                i = int((~finite).nonzero()[0])
                raise InputError(
                    f"{name}[{i}] is {_short(numbers[i].tolist())}: expected finite numbers; drop that pair"
                )
            if not numbers.is_floating_point():
                large = numbers.long() if ((numbers >= INEXACT_FROM) | (numbers <= -INEXACT_FROM)).any() else None
                numbers = numbers.double()
        return _Column(source, items, numbers, large)

    @property
    def kind(self) -> str:
        assert self.numbers is not None
        return "a number" if self.numbers.ndim == 1 else f"a vector of d={self.numbers.shape[1]}"


class _Codes:
    """Whole numbers for things that are none: equal things share one."""

    def __init__(self, items: list[Any]) -> None:
        self.known: dict[Any, float] | list[Any] = {}
        try:
            for item in items:
                self.known.setdefault(item, float(len(self.known)))
        except TypeError:  # not hashable, such as a list: compared one by one
            self.known = []
            self.known += (x for i, x in enumerate(items) if items.index(x) == i)
        self.of_items = [self.of(item) for item in items]

    def of(self, item: Any) -> float:
        try:
            return float(self.known.index(item)) if isinstance(self.known, list) else self.known.get(item, NO_KEY)
        except (ValueError, TypeError):  # not in the list; not hashable, so equal to no key that is
            return NO_KEY


def _numbers(source: Any) -> Tensor | None:
    """As a tensor of floats or whole numbers, or None for anything else."""
    if isinstance(source, list) and source and all(isinstance(x, Tensor) for x in source):
        try:
            source = torch.stack(source)
        except RuntimeError:
            return None
    try:
        given = torch.as_tensor(source)
        if isinstance(source, list) and given.is_floating_point():
            given = torch.tensor(source, dtype=torch.float64)  # as Python has them: torch would take float32
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None
    return None if given.is_complex() else given


def _halves(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape 2"]:
    """x = high · 2**32 + low: each half fits a float64, and two numbers are equal if both halves are."""
    high = x.div(2**32, rounding_mode="floor")
    return torch.stack([high, x - high * 2**32], dim=-1).double()


def _short(x: Any) -> str:
    """A number in few digits, as a person would write it; anything else as it is."""
    if isinstance(x, float):
        return f"{x:.1f}" if x.is_integer() and abs(x) < 100 else f"{x:.6g}"
    if isinstance(x, list):
        return "[" + ", ".join(_short(y) for y in x) + "]"
    return str(x)
