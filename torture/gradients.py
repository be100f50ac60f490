"""Derivatives: torch's own comparison with finite differences, in float64, with its own tolerances, of everything
that can be differentiated: calls (each backend that computes the gradient itself), scores of one's own, biases, masks
with rows that see nothing, dropout, draws, weights, steps, and every module.

Inputs stand away from kinks (`tests/kinks.py`), where there is no derivative to compare with. What is documented to
pass gradients to the values alone is checked for the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.gradcheck import GradcheckError

from regard import BackendError, attention, attention_weights, masks, normalizers, sample_attention, step_by_step
from regard.core import noise
from regard.core.shapes import Extent
from regard.nn import Cache, MultiHeadAttention
from tests.kinks import distance_to_a_kink
from tests.mechanisms import HEADS, MASKS, NORMALIZERS, SCORES, D, mask, normalizer, problem, score
from torture.progress import track
from torture.table import Figure
from torture.zoo import ZOO, alive

NAME = "gradients"
BAR = "all, with torch's own tolerances"

BACKENDS = ("reference", "chunked", "sdpa", "cpu")
HARD = ("hard", "gumbel hard")
SMOOTH = [row for row in NORMALIZERS if row.name not in HARD]
MARGIN = 0.03  # distance from every kink: far more than a finite difference moves an input
ALLOWED = torch.tensor([[1, 1, 1], [1, 0, 1], [0, 0, 0]]).bool()  # three, two and no keys
NOISE = 11
FEW = 23  # the quick run takes one of so many; a prime, so that it meets every score, normalizer and backend


@dataclass(frozen=True)
class Check:
    """A function of tensors; `fast` compares one random projection of each Jacobian instead of every entry."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[Tensor, ...]
    fast: bool = False
    second: bool = False

    def broken(self) -> str | None:
        try:
            gradcheck(self.function, self.inputs, fast_mode=self.fast)
            if self.second:
                gradgradcheck(self.function, self.inputs, fast_mode=True)
        except GradcheckError as error:
            return f"{self.name}: {' '.join(str(error).split())[:300]}"
        return None


def parameters_of(*parts: object) -> list[Tensor]:
    return [p for part in parts if isinstance(part, nn.Module) for p in part.parameters() if p.requires_grad]


def check(name: str, function: Callable, inputs: tuple[Tensor, ...], *parts: object, **how: bool) -> Check:
    """gradcheck moves its inputs in place, and so the parameters where the modules hold them."""
    used = len(inputs)
    leaves = (*(x.detach().requires_grad_() for x in inputs), *parameters_of(*parts))
    return Check(name, lambda *given: function(*given[:used]), leaves, **how)


def away_from_kinks(s: Callable, n: object, allowed: Tensor | None, *shape: int) -> tuple[Tensor, ...]:
    """Queries, keys and values: [1, HEADS, 3, D], or of another shape."""
    lead, n_q, n_k = shape or (1, 3, 3)
    for seed in count():
        query, key, value = (x.detach() for x in problem(n_q, n_k, seed=seed, batch=lead, d_v=2))
        apart = (query[..., :, None, :] - key[..., None, :, :]).abs().min()  # |q - k| has a kink at 0
        distance = distance_to_a_kink(n, s(query, key).detach(), allowed).min()
        if apart > 1e-3 and (distance > MARGIN or (not parameters_of(s) and not moves(s))):
            return query, key, value
    raise AssertionError


def moves(s: Callable) -> bool:
    """Exact does not: 0 or 1 whatever the inputs, so none moves towards a kink."""
    return type(s).__name__ != "Exact"


def of_calls() -> Iterator[Check]:
    """Every score × normalizer × backend, with rows of three, two and no keys."""
    for of_score in SCORES:
        for of_normalizer in SMOOTH:
            s, n = score(of_score), normalizer(of_normalizer)
            inputs = away_from_kinks(s, n, ALLOWED)
            for backend in BACKENDS:
                call = partial(attention, score=s, normalizer=n, mask=masks.dense(ALLOWED), backend=backend)
                name = f"{of_score} × {of_normalizer}, {backend}"
                yield check(name, call, inputs, s, n, second=backend == "reference")


def of_masks() -> Iterator[Check]:
    s = score(SCORES[1])
    for of_mask in MASKS:
        for n in (normalizers.Softmax(), normalizers.Sparsemax()):
            allowed = None if mask(of_mask) is None else mask(of_mask).allowed(Extent((2, HEADS), 5, 5, CPU).tile())
            inputs = away_from_kinks(s, n, allowed, 2, 5, 5)
            for backend in BACKENDS:
                call = partial(attention, score=s, normalizer=n, mask=mask(of_mask), backend=backend)
                yield check(f"{of_mask}, {type(n).__name__}, {backend}", call, inputs, fast=True)


CPU = torch.device("cpu")


def of_noise() -> Iterator[Check]:
    inputs = tuple(x.detach() for x in problem(3, 3, batch=1))
    for backend in ("reference", "chunked", "cpu"):
        for n in (normalizers.Softmax(), normalizers.Sigmoid()):
            call = partial(attention, normalizer=n, mask=ALLOWED, dropout=0.4, seed=NOISE, backend=backend)
            yield check(f"dropout, {type(n).__name__}, {backend}", call, inputs)


def of_choices() -> Iterator[Check]:
    """A hard choice passes gradients to the values alone; one that is drawn, to the scores those of its softmax."""
    for of_score in SCORES:
        s = score(of_score)
        query, key, value = away_from_kinks(s, normalizers.Hard(), ALLOWED)
        for backend in ("reference", "chunked", "cpu"):
            for n in (normalizers.Hard(), normalizers.GumbelHard(0.7)):
                call = partial(attention, query, key, score=s, normalizer=n, mask=ALLOWED, seed=NOISE, backend=backend)
                yield check(f"{of_score} × {type(n).__name__}, values, {backend}", call, (value,))
            yield check(
                f"{of_score} × GumbelHard, scores, {backend}",
                partial(straight_through, s, value, backend), (query, key), s, second=False,
            )  # fmt: skip


class Replaced(torch.autograd.Function):
    """The value of one tensor with the gradient of another."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, gradient: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        return torch.zeros_like(grad), grad


def straight_through(s: Callable, value: Tensor, backend: str, query: Tensor, key: Tensor) -> Tensor:
    """The smooth function whose derivative GumbelHard passes on, with the gradient that GumbelHard gives."""
    n = normalizers.GumbelHard(0.7)
    tile = Extent(tuple(query.shape[:-2]), query.shape[-2], key.shape[-2], CPU).tile()
    drawn = noise.uniform(torch.tensor(NOISE), tile, noise.GUMBEL).double()
    smooth = normalizers.Softmax()((s(query, key) - (-drawn.log()).log()) / n.temperature, ALLOWED) @ value
    hard = attention(query, key, value, score=s, normalizer=n, mask=ALLOWED, seed=NOISE, backend=backend)
    return Replaced.apply(smooth.detach(), hard)


def of_what_else() -> Iterator[Check]:
    """Biases that are tensors; weights, draws and steps."""
    query, key, value = (x.detach() for x in problem(3, 3, batch=1))
    bias = torch.randn(HEADS, 3, 3, dtype=torch.float64)
    hidden = torch.zeros(3, 3, dtype=torch.float64).masked_fill(~ALLOWED, -torch.inf)
    for backend in BACKENDS:
        yield check(
            f"a bias, {backend}",
            lambda q, k, v, b, backend=backend: attention(q, k, v, mask=b + hidden, backend=backend),
            (query, key, value, bias),
        )
    for of_score in SCORES:
        s = score(of_score)
        yield check(f"weights, {of_score}", partial(attention_weights, score=s, mask=ALLOWED), (query, key), s)
        if of_score.name != "exact":  # constant: of its weights nothing depends on the keys
            yield check(f"draws, {of_score}", partial(drawn, s, value), (query, key), s)
    a, *w = (torch.randn(2, 3, 2, dtype=torch.float64), *(torch.randn(2, 4, dtype=torch.float64) for _ in range(3)))
    for channels in (False, True):
        call = partial(stepped, channels)
        yield check(f"steps, channels={channels}", call, (a, *w), second=True)


def drawn(s: Callable, value: Tensor, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    sample = sample_attention(query, key, value, score=s, mask=ALLOWED, seed=NOISE)
    return sample.log_prob, sample.entropy


def stepped(channels: bool, *tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    steps = step_by_step(*tensors, mask=masks.causal(), channels=channels)
    return steps.scores, steps.weights, steps.b


def of_modules() -> Iterator[Check]:
    """In evaluation, and in training, with everything that is drawn drawn from the same seed each time."""
    for of in ZOO:
        for training in (False, True):
            module, inputs = alive(of, torch.float64)
            module.train(training)
            floats = tuple(x for x in inputs if x.is_floating_point())

            def call(*given: Tensor, module: nn.Module = module, inputs: tuple = inputs, of: Any = of) -> Tensor:
                torch.manual_seed(NOISE)
                rest = iter(given)
                return module(*(next(rest) if x.is_floating_point() else x for x in inputs), **of.named)

            if training and not any(
                isinstance(part, nn.Dropout) or hasattr(part, "dropout") for part in module.modules()
            ):
                continue
            yield check(f"{of}, {'training' if training else 'evaluation'}", call, floats, module, fast=True)
    module = MultiHeadAttention(D, HEADS).double()
    x = torch.randn(2, 4, D, dtype=torch.float64)

    def cached(x: Tensor) -> Tensor:
        cache = Cache()
        return torch.cat([module(part, mask=masks.causal(), cache=cache) for part in x.split(1, dim=-2)], dim=-2)

    yield check("MultiHeadAttention, step by step", cached, (x,), module, fast=True)


def checks() -> Iterator[Check]:
    yield from of_calls()
    yield from of_masks()
    yield from of_noise()
    yield from of_choices()
    yield from of_what_else()
    yield from of_modules()


def run(quick: bool) -> Figure:
    asked, broken = 0, []
    every = list(checks())
    if quick:
        every = [replace(one, fast=True, second=False) for one in every[::FEW]]
    for one in track(every, NAME):
        try:
            line = one.broken()
        except BackendError:  # a backend that does not know these parts
            continue
        asked += 1
        if line is not None:
            broken.append(line)
    return Figure(NAME, f"{asked - len(broken):,} of {asked:,}", not broken, broken)
