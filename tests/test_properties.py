"""What holds for every score, normalizer, mask, shape, stride and dtype, on every backend that does not refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import regard
from regard import BackendError, Extent
from regard import masks as M
from regard import normalizers as N
from regard import scores as S
from regard.backends import chunked
from regard.core import visibility
from regard.core.scores import as_score
from regard.core.shapes import repeat_heads
from regard.dispatch import BACKENDS
from tests.mechanisms import laplace
from tests.strategies import CPU, allowed, masks, seeds

pytestmark = pytest.mark.fuzz

# Each for queries and keys of width d and, where heads is not None, its own parameters per head.
CONTENT: dict[str, Callable[[int, int | None], Any]] = {
    "dot": lambda d, heads: S.Dot(),
    "scaled dot": lambda d, heads: S.ScaledDot(),
    "tanh sum": S.TanhSum,
    "additive": lambda d, heads: S.Additive(d, d, 3, heads),
    "bilinear": lambda d, heads: S.Bilinear(d, d, heads),
    "gated": lambda d, heads: S.Gated(d, d, heads),
    "gaussian": lambda d, heads: S.Gaussian(1.5),
    "exact": lambda d, heads: S.Exact(),
    "soft cap": lambda d, heads: S.SoftCap(S.Dot(), 2.0),
    "own function": lambda d, heads: laplace,
}
BIASES: dict[str, Callable[[int], Any]] = {
    "alibi": lambda heads: S.Alibi(heads, align="start"),
    "relative bias": lambda heads: S.RelativeBias(heads, 2, align="start"),
}
CONTINUOUS: dict[str, Callable[[int | None], Any]] = {
    "softmax": lambda heads: N.Softmax(),
    "softmax, sink": lambda heads: N.Softmax(sink=True, heads=heads),
    "identity": lambda heads: N.Identity(),
    "relu": lambda heads: N.ReLU(),
    "sigmoid": lambda heads: N.Sigmoid(-1.0),
    "sparsemax": lambda heads: N.Sparsemax(),
    "entmax 1.5": lambda heads: N.Entmax(1.5),
    "entmax 1.3": lambda heads: N.Entmax(1.3),
}
HARD = {"hard": lambda heads: N.Hard(), "gumbel hard": lambda heads: N.GumbelHard(0.7)}

FLOATS = (torch.float32, torch.float64)
HALVES = (torch.float16, torch.bfloat16)
# As a share of the largest number: rounding of the inputs' own type, and of a few sums of it.
CLOSE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2}


@dataclass(frozen=True)
class Case:
    """One call, and the size of the tiles in which `chunked` should answer it."""

    query: Tensor
    key: Tensor
    value: Tensor
    score: Any
    normalizer: N.Normalizer
    mask: M.Mask | Tensor | None
    dropout: float
    seed: int
    tile: int
    extent: Extent

    @property
    def parameters(self) -> list[Tensor]:
        score = [*self.score.parameters()] if isinstance(self.score, torch.nn.Module) else []
        return [*score, *self.normalizer.parameters()]


@st.composite
def tensors(draw: st.DrawFn, shape: tuple[int, ...], dtype: torch.dtype, whole: bool) -> Tensor:
    """Normal numbers, laid out in memory as tensors come: cut, turned, flipped, shared."""
    generator = torch.Generator().manual_seed(draw(seeds))

    def normal(*shape: int) -> Tensor:
        x = torch.randn(*shape, generator=generator, dtype=torch.float64)
        return (x.round() if whole else x).to(dtype)

    *lead, n, d = shape
    layout = draw(st.sampled_from(["plain", "transposed", "flipped", "every second", "heads last", "expanded"]))
    if layout == "transposed":
        return normal(*lead, d, n).mT
    if layout == "flipped":
        return normal(*shape).flip(-2, -1)
    if layout == "every second":
        return normal(*lead, 2 * n, 2 * d)[..., ::2, 1::2]
    if layout == "heads last" and lead:
        return normal(*lead[:-1], n, lead[-1], d).transpose(-3, -2)
    if layout == "expanded" and lead:
        return normal(1, *lead[1:], n, d).expand(shape)
    return normal(*shape)


@st.composite
def cases(
    draw: st.DrawFn,
    dtypes: tuple[torch.dtype, ...] = FLOATS,
    biases: bool = True,
    normalizers: dict[str, Callable[[int | None], Any]] = CONTINUOUS | HARD,
    masked: bool | None = None,
    noise: bool = True,
) -> Case:
    """Any call: leading axes that broadcast, key heads that divide query heads, and sizes of 0."""
    size = st.sampled_from([1, 2, 3, 1, 2, 0])
    length = st.sampled_from([5, 1, 2, 3, 4, 6, 7, 9, 0])
    n_q, n_k, d, d_v = draw(length), draw(length), draw(st.integers(0, 4)), draw(st.integers(0, 3))
    lead = draw(st.lists(size, max_size=2))
    heads = draw(st.sampled_from([None, 1, 2, 4, 6, 0]))
    key_heads = heads and draw(st.sampled_from([h for h in range(1, heads + 1) if heads % h == 0]))

    def shape(heads: int | None, n: int, d: int) -> tuple[int, ...]:
        if heads is None:
            return (n, d)
        shared = [1 if draw(st.integers(0, 3)) == 0 else s for s in lead]
        return (*shared[draw(st.integers(0, len(lead))) :], heads, n, d)

    names = st.sampled_from(sorted(CONTENT))
    name = draw(names)
    own_heads = None if heads == 0 or not draw(st.booleans()) else heads if heads and heads > 1 else 2
    score = CONTENT[name](d, own_heads)
    score_heads = getattr(score, "heads", None)
    if biases and heads != 0 and draw(st.integers(0, 3)) == 0:
        score_heads = own_heads or heads or 1
        score = as_score(score) + BIASES[draw(st.sampled_from(sorted(BIASES)))](score_heads)
    normalizer = normalizers[draw(st.sampled_from(sorted(normalizers)))](own_heads)
    dtype = draw(st.sampled_from(dtypes))
    for part in (score, normalizer):
        if isinstance(part, torch.nn.Module):
            part.to(torch.float64 if dtype == torch.float64 else torch.float32)
            for parameter in part.parameters():
                torch.nn.init.normal_(parameter, std=0.7, generator=torch.Generator().manual_seed(1))

    query, key, value = (
        draw(tensors(shape(h, n, width), dtype, whole=name == "exact"))
        for h, n, width in ((heads, n_q, d), (key_heads, n_k, d), (key_heads, n_k, d_v))
    )
    leads = [query.shape[:-2], *(repeat_heads(x, 1 if heads is None else heads).shape[:-2] for x in (key, value))]
    batch = torch.broadcast_shapes(*leads, *[(h,) for h in (score_heads, normalizer.heads) if h is not None])
    extent = Extent(tuple(batch), n_q, n_k, CPU)
    mask = draw(masks(extent)) if masked or (masked is None and draw(st.booleans())) else None
    dropout = draw(st.sampled_from([0.0, 0.0, 0.3])) if noise else 0.0
    tile = draw(st.sampled_from([1, 2, 64]))
    return Case(query, key, value, score, normalizer, mask, dropout, draw(seeds), tile, extent)


def run(case: Case, backend: str) -> tuple[Tensor, list[Tensor]] | None:
    """The output, and the gradients of query, key, value and parameters; None if the backend refuses."""
    leaves = [x.detach().requires_grad_() for x in (case.query, case.key, case.value)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunked, "BUDGET", 8 * case.tile**2)
        patch.setattr(chunked, "BLOCK", case.tile)
        patch.setattr(visibility, "BLOCK", case.tile)
        try:
            out = regard.attention(
                *leaves,
                score=case.score,
                normalizer=case.normalizer,
                mask=case.mask,
                dropout=case.dropout,
                seed=case.seed,
                backend=backend,
            )
        except BackendError:
            return None
        cotangent = torch.linspace(-1, 1, out.numel()).cos().to(out).reshape(out.shape)
        asked = [*leaves, *case.parameters]
        return out.detach(), list(torch.autograd.grad(out, asked, cotangent, allow_unused=True, materialize_grads=True))


def runs(case: Case) -> Iterator[tuple[str, Tensor, list[Tensor]]]:
    for backend in BACKENDS:
        answer = run(case, backend)
        assert answer is not None or backend != "reference"
        if answer is not None:
            yield backend, *answer


def assert_close(actual: Tensor, expected: Tensor, backend: str, close: float | None = None) -> None:
    assert actual.shape == expected.shape
    assert actual.isfinite().all(), backend
    if expected.numel():
        close = CLOSE[expected.dtype] if close is None else close
        error = (actual.double() - expected.double()).abs().max() / expected.abs().max().double().clamp(min=1)
        assert error <= close, backend


def assert_same(one: tuple, other: tuple, backend: str) -> None:
    """Not one bit differs."""
    assert torch.equal(one[0], other[0]), backend
    for a, b in zip(one[1], other[1], strict=True):
        assert torch.equal(a, b), backend


@given(cases())
def test_backends_agree_in_value_and_gradient(case: Case) -> None:
    expected, expected_grads = run(case, "reference")
    for backend, out, grads in runs(case):
        assert out.shape == (*case.extent.batch, case.extent.n_q, case.value.shape[-1])
        assert out.dtype == case.query.dtype
        assert out.device == case.query.device
        assert_close(out, expected, backend)
        for grad, expected_grad in zip(grads, expected_grads, strict=True):
            assert_close(grad, expected_grad, backend)


@given(cases(dtypes=HALVES))
def test_backends_agree_in_half_precision(case: Case) -> None:
    expected, _ = run(case, "reference")
    for backend, out, _ in runs(case):
        assert out.shape == (*case.extent.batch, case.extent.n_q, case.value.shape[-1])
        assert out.dtype == case.query.dtype
        assert_close(out, expected, backend)


@given(cases(dtypes=FLOATS + HALVES))
def test_a_call_can_be_repeated(case: Case) -> None:
    for backend, *answer in runs(case):
        assert_same(tuple(answer), run(case, backend), backend)


def own(seen: Tensor, x: Tensor) -> Tensor:
    """Seen at all, for each row of x: by any batch element or query head that shares it."""
    if x.ndim > 2 and x.shape[-3] > 0:
        seen = seen.unflatten(-2, (x.shape[-3], seen.shape[-2] // x.shape[-3])).any(-2)
    while seen.ndim > x.ndim - 1:
        seen = seen.any(0)
    for axis, size in enumerate(x.shape[:-1]):
        seen = seen.any(axis, keepdim=True) if size == 1 and axis < x.ndim - 2 else seen
    return seen[..., None].expand(x.shape)


@given(cases(dtypes=FLOATS + HALVES, masked=True), st.sampled_from(["nan", "inf", "-inf"]), st.integers(0, 2))
def test_what_nobody_may_attend_to_leaves_no_trace(case: Case, poison: str, written: int) -> None:
    pairs = allowed(case.mask, case.extent)
    if written:  # the same mask as a bool tensor, or as a bias
        bias = torch.where(pairs, 0.0, float("-inf")).to(case.query.dtype)
        case = replace(case, mask=pairs if written == 1 else bias)
    names = ["query", "key", "value"]
    seen = [own(pairs.any(axis), getattr(case, name)) for name, axis in zip(names, (-1, -2, -2), strict=True)]
    clean, poisoned = (
        replace(case, **{n: torch.where(s, getattr(case, n), fill) for n, s in zip(names, seen, strict=True)})
        for fill in (0.0, float(poison))
    )
    for backend, out, grads in runs(poisoned):
        assert_same((out, grads), run(clean, backend), backend)
        assert (out[~pairs.any(-1)] == 0).all(), backend
        for s, grad in zip(seen, grads, strict=False):
            assert (grad[~s] == 0).all(), backend


@given(cases(masked=True))
def test_bool_masks_and_biases_of_minus_infinity_or_the_least_number_agree(case: Case) -> None:
    pairs = allowed(case.mask, case.extent)
    zero = torch.zeros(pairs.shape, dtype=case.query.dtype)
    biases = [zero.masked_fill(~pairs, least) for least in (float("-inf"), torch.finfo(zero.dtype).min)]
    for backend in BACKENDS:
        answers = [run(replace(case, mask=mask), backend) for mask in (case.mask, pairs, *biases)]
        for answer in answers[1:]:
            if answer is not None and answers[0] is not None:
                assert_close(answer[0], answers[0][0], backend)
                for grad, expected in zip(answer[1], answers[0][1], strict=True):
                    assert_close(grad, expected, backend)


@given(cases((torch.float64,), biases=False, normalizers=CONTINUOUS, noise=False, masked=False), st.randoms())
def test_the_order_of_keys_does_not_matter(case: Case, random: Any) -> None:
    order = list(range(case.extent.n_k))
    random.shuffle(order)
    shuffled = replace(case, key=case.key[..., order, :], value=case.value[..., order, :])
    for backend, out, _ in runs(case):
        assert_close(run(shuffled, backend)[0], out, backend)


@given(
    cases((torch.float32,), masked=False),
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from([None, M.causal("start"), M.window(2, 1, "start")]),
)
def test_padding_changes_nothing(case: Case, more_q: int, more_k: int, rule: M.Mask | None) -> None:
    n_q, n_k = case.extent.n_q, case.extent.n_k
    lengths = torch.full(case.extent.batch[:1], n_k)
    real = M.padding(lengths, torch.full_like(lengths, n_q))

    def padded(x: Tensor, more: int) -> Tensor:
        return torch.cat([x, x.new_full((*x.shape[:-2], more, x.shape[-1]), float("nan"))], dim=-2)

    longer = replace(
        case,
        query=padded(case.query, more_q),
        key=padded(case.key, more_k),
        value=padded(case.value, more_k),
        mask=real if rule is None else real & rule,
    )
    if prod(case.extent.batch) > 1:  # noise is counted per batch element: the same in both
        assert case.extent.batch == longer.extent.batch
    for backend, out, _ in runs(replace(case, mask=rule)):
        answer = run(longer, backend)
        if answer is not None:
            assert_close(answer[0][..., :n_q, :], out, backend, close=1e-5)
            assert (answer[0][..., n_q:, :] == 0).all()
