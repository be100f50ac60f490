"""The compiled kernels give what `reference` gives: values and gradients, for every part they know, at any size."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from regard import (
    BackendError,
    DTypeError,
    ShapeError,
    attention,
    attention_summary,
    explain,
    masks,
    normalizers,
    scores,
)
from regard.backends import cpu, reference
from regard.backends.cpu import threads
from regard.resolve import resolve
from tests.mechanisms import HEADS, MASKS, NORMALIZERS, SCORES, D, Row, ids, make, mask, normalizer, problem, score

pytest.importorskip("numba")
SEED = 11
KNOWN = [row for row in SCORES if row.name != "own function"]
STEPS = ("hard", "gumbel hard")  # the nearest of two equal scores may be another in another order of adding up


@pytest.fixture(autouse=True)
def _poisoned() -> Iterator[None]:
    """All memory that holds anything holds NaN."""
    poison()
    torch.use_deterministic_algorithms(True, warn_only=True)  # torch.empty gives NaN
    yield
    torch.use_deterministic_algorithms(False)


def poison() -> None:
    for block in threads._spare:
        block.fill(0xFF)


def value_and_gradients(backend: str, inputs: tuple[Tensor, ...], **call: object) -> list[Tensor]:
    parts = [call.get("score"), call.get("normalizer")]
    leaves = [*inputs, *(p for part in parts if isinstance(part, nn.Module) for p in part.parameters())]
    bias = call.get("mask")
    if isinstance(bias, Tensor) and bias.requires_grad:
        leaves.append(bias)
    out = attention(*inputs, backend=backend, **call)
    grad = torch.randn(out.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).to(out.dtype)
    return [out, *torch.autograd.grad(out, leaves, grad, allow_unused=True, materialize_grads=True)]


def agree(inputs: tuple[Tensor, ...], **call: object) -> None:
    ours, right = (value_and_gradients(b, inputs, **call) for b in ("cpu", "reference"))
    torch.testing.assert_close(ours, right, rtol=1e-9, atol=1e-9)


# Every (score, mask), and so every (score, normalizer) and (normalizer, mask).
TRIPLES = [
    pytest.param(s, NORMALIZERS[(i + j) % len(NORMALIZERS)], m, id=f"{s}-{NORMALIZERS[(i + j) % len(NORMALIZERS)]}-{m}")
    for i, s in enumerate(KNOWN)
    for j, m in enumerate(MASKS)
]


@pytest.mark.parametrize(("of_score", "of_normalizer", "of_mask"), TRIPLES)
def test_every_part_agrees(of_score: Row, of_normalizer: Row, of_mask: Row) -> None:
    agree(problem(), score=score(of_score), normalizer=normalizer(of_normalizer), mask=mask(of_mask), seed=SEED)


# Sizes that fill no register, tile or group of rows, and some that fill several.

SIZES = st.one_of(st.integers(1, 40), st.sampled_from([63, 64, 65, 127, 129, 300]))
ANY_MASK = [
    Row("none", lambda: None),
    Row("causal", lambda: masks.causal(align="end")),
    Row("window", lambda: masks.window(3, 5, align="start")),
    Row("dilated", lambda: masks.dilated(4, 4, 3, align="start")),
    Row("strided and first", lambda: masks.strided(5, align="start") | masks.positions([0])),
    Row("not the band", lambda: ~masks.window(2, 2, align="start")),
    Row("no key at all", lambda: masks.causal(align=-500)),
]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, object]:
    return {
        "n_q": draw(SIZES),
        "n_k": draw(SIZES),
        "d_v": draw(st.integers(1, 35)),
        "batch": draw(st.integers(1, 3)),
        "of_score": draw(st.sampled_from(KNOWN)),
        "of_normalizer": draw(st.sampled_from(NORMALIZERS)),
        "of_mask": draw(st.sampled_from(ANY_MASK)),
        "dropout": draw(st.sampled_from([0.0, 0.3])),
    }


def made(case: dict, dtype: torch.dtype) -> tuple[tuple[Tensor, ...], dict]:
    sizes = {name: case[name] for name in ("n_q", "n_k", "d_v", "batch")}
    call = {"score": make(case["of_score"], dtype), "normalizer": make(case["of_normalizer"], dtype)}
    return problem(**sizes, dtype=dtype), call | {
        "mask": mask(case["of_mask"]),
        "dropout": case["dropout"],
        "seed": SEED,
    }


@given(cases())
def test_any_size(case: dict) -> None:
    poison()
    inputs, call = made(case, torch.float64)
    agree(inputs, **call)


@given(cases())
def test_any_size_in_float32(case: dict) -> None:
    poison()
    inputs, call = made(case, torch.float32)
    if case["of_normalizer"].name in STEPS or case["of_score"].name == "exact":
        return
    precise = tuple(x.double() for x in inputs)
    call64 = call | {name: copy.deepcopy(call[name]).double() for name in ("score", "normalizer")}
    right = attention(*precise, backend="reference", **call64)
    ours = attention(*inputs, backend="cpu", **call)
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours.double(), right, rtol=1e-4, atol=1e-5 * max(1.0, right.abs().max().item()))


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 15, 16, 17, 33])
@pytest.mark.parametrize("of_score", [lambda d: scores.TanhSum(d), lambda d: scores.Gaussian(2.0), lambda d: None])
def test_any_width(of_score: object, width: int) -> None:
    query, key, value = (torch.randn(2, n, width, dtype=torch.float64, requires_grad=True) for n in (7, 21, 21))
    part = of_score(width)
    if part is not None:
        part.double()
        for parameter in part.parameters():
            nn.init.normal_(parameter)
    agree((query, key, value), score=part)


# Additive scores: four terms share a division while they may, then two, then plain tanh.


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("size", [0.01, 1.0, 4.0, 9.0, 15.0, 30.0, 90.0, 1000.0, 1e30])
def test_scores_of_any_size(size: float, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    query, key, value = (torch.randn(2, 40, 6, dtype=torch.float64) for _ in "qkv")
    query, key = query / query.abs().max() * size, key / key.abs().max() * size
    check_additive(query, key, value, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("size", [8.0, 30.0, 300.0])
def test_large_numbers_that_cancel(size: float, dtype: torch.dtype) -> None:
    """tanh(q + k) is not near 1 where k is about -q: a clamp of each alone would say so."""
    torch.manual_seed(1)
    query, value = torch.full((1, 20, 6), size, dtype=torch.float64), torch.randn(1, 20, 6, dtype=torch.float64)
    key = (torch.randn(1, 20, 6, dtype=torch.float64) - size).to(torch.float32).double()
    check_additive(query, key, value, dtype)


def check_additive(query: Tensor, key: Tensor, value: Tensor, dtype: torch.dtype) -> None:
    part = scores.TanhSum(6).double()
    nn.init.normal_(part.v)
    rounded = [x.to(dtype).requires_grad_() for x in (query, key, value)]
    ours = value_and_gradients("cpu", tuple(rounded), score=copy.deepcopy(part).to(dtype))
    part = part.to(dtype).double()  # the same number, wide
    right = value_and_gradients("reference", tuple(x.detach().double().requires_grad_() for x in rounded), score=part)
    tolerance = 2e-5 if dtype == torch.float32 else 1e-12
    for a, b in zip(ours, right, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=tolerance, atol=tolerance)


# Nothing to attend to, and what must not be looked at.


@pytest.mark.parametrize("of_normalizer", **ids(NORMALIZERS))
@pytest.mark.parametrize("of_score", **ids(KNOWN))
def test_a_row_without_a_key_is_exactly_0(of_score: Row, of_normalizer: Row) -> None:
    allowed = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    allowed[0, :, 2], allowed[0, :, :, 3], allowed[1] = False, False, False
    call = {"score": score(of_score), "normalizer": normalizer(of_normalizer), "seed": SEED, "mask": allowed}
    out, query, key, value, *_ = value_and_gradients("cpu", problem(), **call)
    for zero in (out[1], query[1], key[1], value[1], out[0, :, 2], query[0, :, 2], key[0, :, 3], value[0, :, 3]):
        assert not zero.any()
    query, key, value = (x.detach().clone() for x in problem())
    before = attention(query, key, value, backend="cpu", **call)
    key[0, :, 3], value[0, :, 3], query[0, :, 2], key[1] = torch.nan, torch.inf, torch.nan, torch.nan
    assert torch.equal(attention(query, key, value, backend="cpu", **call), before)


def test_nan_in_one_query_reaches_no_other_row() -> None:
    part = scores.TanhSum(D).double()
    query, key, value = (x.detach().clone() for x in problem(n_q=9))
    before = attention(query, key, value, score=part, backend="cpu")
    query[0, 0, 0] = torch.nan
    after = attention(query, key, value, score=part, backend="cpu")
    assert after[0, 0, 0].isnan().all()
    torch.testing.assert_close(after[0, 0, 1:], before[0, 0, 1:], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("of_normalizer", **ids(NORMALIZERS))
def test_dropout_is_that_of_the_other_backends(of_normalizer: Row) -> None:
    inputs = problem(n_q=40, n_k=70)
    call = {"normalizer": normalizer(of_normalizer), "dropout": 0.4, "mask": masks.causal(align="end")}
    agree(inputs, **call, seed=SEED)
    one, other = (attention(*inputs, backend="cpu", **call, seed=seed) for seed in (1, 2))
    assert not torch.equal(one, other)


def test_a_bias_that_learns() -> None:
    for shape in ((5, 5), (1, 5), (2, 2, 5, 5), (2, 1, 1, 5)):
        bias = torch.randn(shape, dtype=torch.float64, requires_grad=True)
        agree(problem(), mask=bias)


# Seeing.


@pytest.mark.parametrize("of_mask", **ids(MASKS))
@pytest.mark.parametrize("of_normalizer", **ids(NORMALIZERS))
def test_weights_of_rows_and_summaries(of_normalizer: Row, of_mask: Row) -> None:
    query, key, value = (x.detach() for x in problem())
    part = score(KNOWN[4]).requires_grad_(False)
    normalize = normalizer(of_normalizer).requires_grad_(False)
    call, query, key, value = resolve(query, key, value, part, normalize, mask(of_mask), 0.0, SEED)
    for rows in (None, torch.tensor([3, 0])):
        ours, right = (backend.rows(query, key, call, rows) for backend in (cpu, reference))
        torch.testing.assert_close(ours, right.expand(ours.shape), rtol=1e-9, atol=1e-12)
    ours, right = (backend.summary(query, key, call, 2, 3) for backend in (cpu, reference))
    for name in ("lse", "entropy", "top_weights", "mass", "pooled"):
        torch.testing.assert_close(getattr(ours, name), getattr(right, name), rtol=1e-9, atol=1e-9)


def test_a_summary_of_additive_attention_is_made_by_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    part = scores.TanhSum(8)
    x = torch.randn(1, 300, 8)
    right = attention_summary(x, x, score=part)
    monkeypatch.setattr(scores.TanhSum, "pair", None)  # so that nothing else can score a pair
    torch.testing.assert_close(attention_summary(x, x, score=part).entropy, right.entropy)


def test_weights_with_gradients_keep_them() -> None:
    query, key, value = problem()
    call, query, key, value = resolve(query, key, value, None, None, None)
    assert cpu.rows(query, key, call).requires_grad


# The choice.


def test_without_numba_chunked_serves_and_explain_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(1200, 4)
    call = {"normalizer": normalizers.Sparsemax()}
    assert explain(x, x, x, **call).backend == "cpu"
    monkeypatch.setattr(cpu, "HAVE_NUMBA", False)
    said = explain(x, x, x, **call)
    assert said.backend == "chunked"
    assert "not cpu: numba is not installed; pip install 'regard[fast]'" in str(said)
    with pytest.raises(BackendError, match=r"cpu: numba is not installed"):
        attention(x, x, x, backend="cpu", **call)


@pytest.mark.parametrize(("n", "backend"), [(64, "sdpa"), (1024, "sdpa"), (1100, "cpu")])
def test_a_large_mask_is_not_written_out(n: int, backend: str) -> None:
    x = torch.randn(1, n, 4)
    assert explain(x, x, x, mask=masks.window(2, 2)).backend == backend
    assert explain(x, x, x, mask=masks.causal()).backend == "sdpa"  # torch knows it by a flag


def test_plain_attention_takes_the_short_way_with_the_same_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    query, key, value = problem(n_q=7, n_k=9)
    short = attention(query, key, value)
    torch.testing.assert_close(short, attention(query, key, value, backend="reference"))
    with pytest.raises(ShapeError, match="key has n_k=9, value has n_k=8"):
        attention(query, key, value[..., :8, :])
    with pytest.raises(DTypeError, match=r"key is torch.float32, query is torch.float64"):
        attention(query, key.float(), value)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert attention(query.float(), key.float(), value.float()).dtype == torch.bfloat16
    monkeypatch.setattr("regard.dispatch.resolve", None)  # the long way
    assert torch.equal(attention(query, key, value), short)


def test_a_part_of_your_own_is_refused_by_name() -> None:
    x = torch.randn(4, D)
    with pytest.raises(BackendError, match=r"cpu: no kernel for Function"):
        attention(x, x, x, score=lambda q, k: q @ k.mT, backend="cpu")


def test_second_derivatives_are_refused() -> None:
    x = torch.randn(1, 6, HEADS, dtype=torch.float64, requires_grad=True)
    out = attention(x, x, x, backend="cpu", normalizer=normalizers.Sigmoid())
    (first,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    with pytest.raises(BackendError, match=r"no second derivatives; use backend='reference'"):
        first.sum().backward()
