"""Half precision costs no more than it must; autocast decides the type of the output."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from regard import attention
from tests.eager import eager_score, eager_weights
from tests.mechanisms import HEADS, NORMALIZERS, SCORES, D, Row, ids, normalizer, score

HALVES = [torch.float16, torch.bfloat16]
N = 48
DOTS = [row for row in SCORES if row.name.split(",")[0] in ("dot", "scaled dot", "bilinear", "alibi", "relative bias")]


def errors(attend: Callable, inputs: list[Tensor], exact: list[Tensor]) -> list[Tensor]:
    """By how much the output and each gradient are off."""
    return [(x.double() - e).abs() for x, e in zip(with_gradients(attend, inputs), exact, strict=True)]


def with_gradients(attend: Callable, inputs: list[Tensor]) -> list[Tensor]:
    inputs = [x.detach().requires_grad_() for x in inputs]
    out = attend(*inputs)
    grad = torch.randn(out.shape, generator=torch.Generator().manual_seed(3)).half().bfloat16()  # exact in both
    return [out, *torch.autograd.grad(out, inputs, grad.to(out.dtype), allow_unused=True, materialize_grads=True)]


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("of_normalizer", **ids(NORMALIZERS))
@pytest.mark.parametrize("of_score", **ids(SCORES))
def test_half_precision_is_as_exact_as_plain_torch(of_score: Row, of_normalizer: Row, half: torch.dtype) -> None:
    s, n = score(of_score, dtype=half), normalizer(of_normalizer, dtype=half).eval()
    s64, n64 = (x.double() if isinstance(x, nn.Module) else x for x in (deepcopy(s), deepcopy(n)))
    torch.manual_seed(0)
    inputs = [torch.randn(4, HEADS, N, d).to(half) for d in (D, D, 4)]
    exact = with_gradients(
        partial(attention, score=s64, normalizer=n64, backend="reference"), [x.double() for x in inputs]
    )
    eager = errors(lambda q, k, v: eager_weights(n, eager_score(s, q, k)) @ v, inputs, exact)
    for backend in [
        "reference",
        "chunked",
        *(["sdpa"] if of_score in DOTS and of_normalizer.name == "softmax" else []),
    ]:
        ours = errors(partial(attention, score=s, normalizer=n, backend=backend), inputs, exact)
        for what, mine, theirs, size in zip(("output", "query", "key", "value"), ours, eager, exact, strict=True):
            one_rounding = torch.finfo(half).eps / 2 * size.abs()  # which the result itself must cost
            assert mine.mean() <= 1.2 * theirs.mean().maximum(one_rounding.mean()), (backend, what)
            assert mine.max() <= 2 * theirs.max().maximum(one_rounding.max()), (backend, what)


@pytest.mark.parametrize("of_normalizer", **ids(NORMALIZERS))
@pytest.mark.parametrize("backend", ["reference", "chunked", "auto"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, *HALVES], ids=str)
def test_the_output_has_the_type_of_the_query(of_normalizer: Row, backend: str, dtype: torch.dtype) -> None:
    x = torch.ones(2, HEADS, 3, D, dtype=dtype)
    assert attention(x, x, x, normalizer=normalizer(of_normalizer), backend=backend).dtype == dtype


@pytest.mark.parametrize("of_score", **ids(SCORES))
@pytest.mark.parametrize("backend", ["reference", "chunked", "auto"])
def test_the_output_follows_autocast(of_score: Row, backend: str) -> None:
    s = score(of_score, dtype=torch.float32)
    query, key, value = (torch.randn(2, HEADS, 5, D, requires_grad=True) for _ in range(3))
    with torch.autocast("cpu", torch.bfloat16):
        out = attention(query, key, value, score=s, backend=backend)
    assert out.dtype == torch.bfloat16
    assert all(
        x is None or x.dtype == torch.float32
        for x in torch.autograd.grad(out.sum(), (query, key, value), allow_unused=True)
    )
    rounded = (x.detach().bfloat16() for x in (query, key, value))
    # A function of one's own runs under autocast itself, and so does the sum after it.
    tolerance = {"rtol": 0, "atol": 0.02} if of_score.name == "own function" else {"rtol": None, "atol": None}
    torch.testing.assert_close(out, attention(*rounded, score=s, backend=backend), **tolerance)


def test_autocast_leaves_float64_alone() -> None:
    x = torch.ones(2, 3, dtype=torch.float64)
    with torch.autocast("cpu", torch.bfloat16):
        assert attention(x, x, x).dtype == torch.float64


def test_autocast_sums_in_float32() -> None:
    """1,024 equal weights of 1/1024 over ones: bfloat16, summing one by one, would stop growing at 0.25."""
    with torch.autocast("cpu", torch.bfloat16):
        out = attention(torch.zeros(1, 1), torch.zeros(1024, 1), torch.ones(1024, 1), backend="reference")
    assert out.item() == 1
