"""The GPU kernels give what `reference` gives, by Triton's interpreter: values and gradients, for every part they know,
in float32 and float16 (of bfloat16 the interpreter multiplies matrices wrongly)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest
import torch
from torch import Tensor

from regard import masks as M
from regard import normalizers as N
from regard import scores as S
from tests.backends.interpreter import Call, choose_interpreter, compiled, exported, run, run_as_bfloat16, summaries
from tests.mechanisms import MASKS, NORMALIZERS, SCORES, Row, mask, normalizer, problem, score

pytest.importorskip("triton")
SEED = 11
SAME = ("dot", "scaled dot", "additive", "bilinear", "gated", "own function")  # for a kernel no more than another row
KNOWN_SCORES = [row for row in SCORES if row.name not in SAME]
KNOWN_NORMALIZERS = [row for row in NORMALIZERS if "hard" not in row.name]
Kernels = Callable[..., list[Tensor]]


@pytest.fixture(scope="module")
def interpreted() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=choose_interpreter) as process:
        yield process


@pytest.fixture
def kernels(interpreted: ProcessPoolExecutor) -> Kernels:
    """Runs a call by the kernels; what they give must be as near to the formula in float64 as the formula itself in
    the type of the call is, or at least as near as rounding allows."""

    def agreeing(call: Call, near: float | None = None, **options: Any) -> list[Tensor]:
        ours, formula, exact = interpreted.submit(run, call, **options).result()
        least = near or {torch.float32: 1e-5, torch.float16: 5e-3}[call.inputs[0].dtype]
        for x, same, expected in zip(ours, formula, exact, strict=True):
            assert x.shape == same.shape
            assert x.dtype == same.dtype
            size = float(expected.abs().max().clamp(min=1))
            error, its = (float((y.double() - expected).abs().max()) for y in (x, same))
            assert error <= max(least * size, 5 * its), f"{error} from float64 where the formula is {its}"
        return ours

    return agreeing


# Every score with five masks and normalizers, every mask with two scores or three; some of them in float16.
TRIPLES = [
    pytest.param(s, KNOWN_NORMALIZERS[(i + j // 4) % 10], m, id=f"{s}-{KNOWN_NORMALIZERS[(i + j // 4) % 10]}-{m}")
    for i, s in enumerate(KNOWN_SCORES)
    for j, m in enumerate(MASKS)
    if (i + j) % 4 == 0
]


@pytest.mark.parametrize(("of_score", "of_normalizer", "of_mask"), TRIPLES)
def test_every_part_agrees(kernels: Kernels, of_score: Row, of_normalizer: Row, of_mask: Row) -> None:
    parts = score(of_score, dtype=torch.float32), normalizer(of_normalizer, dtype=torch.float32)
    kernels(Call(problem(dtype=torch.float32), *parts, mask(of_mask), {"seed": SEED}))


@pytest.mark.parametrize(("of_score", "of_normalizer", "of_mask"), TRIPLES[::8])
def test_float16_agrees(kernels: Kernels, of_score: Row, of_normalizer: Row, of_mask: Row) -> None:
    parts = score(of_score, dtype=torch.float16), normalizer(of_normalizer, dtype=torch.float16)
    kernels(Call(problem(dtype=torch.float16), *parts, mask(of_mask), {"seed": SEED}))


# Several tiles: lengths that end inside one, heads that are no power of two, queries that are not the last.

HEADS, N_Q, N_K = 2, 21, 37
LONG = [
    Row("none", lambda: None),
    Row("causal", lambda: M.causal(align="end")),
    Row("causal, rows without a key", lambda: M.causal(align=-9)),
    Row("window", lambda: M.window(9, 5, align="start")),
    Row("window, wider than a tile", lambda: M.window(22, 12, align="end")),
    Row("dilated", lambda: M.dilated(4, 4, 3, align="start")),
    Row("padding", lambda: M.padding(torch.tensor([34, 7]), torch.tensor([21, 3]))),
    Row("padding of all", lambda: M.padding(torch.tensor([0, 0]))),
    Row("padding, left, and causal", lambda: M.causal(align="end") & M.padding(torch.tensor([34, 7]), side="left")),
    Row("documents", lambda: M.documents(torch.arange(N_Q) // 9, torch.arange(N_K) // 14)),
    Row("global", lambda: M.window(3, 3, align="start") | M.global_tokens(torch.tensor([0, 20]))),
    Row("blocks", lambda: M.blocks(24) | M.random_blocks(8, 2)),
    Row("per head", lambda: M.per_head([M.causal(align="end"), M.window(9, 5, align="start")])),
    Row("lists", lambda: M.positions(torch.arange(N_Q)[:, None] * 3 % 34 + torch.tensor([0, 2]))),
    Row("not", lambda: ~(M.window(12, 12, align="start") & M.causal(align="start"))),
]
WIDE = [
    Row("own scale", lambda: S.ScaledDot(-0.1)),
    Row("tanh sum", lambda: S.TanhSum(11, heads=HEADS)),
    Row("gated", lambda: S.Gated(11, 11, heads=HEADS)),
    Row("gaussian", lambda: S.Gaussian(5.0)),
    Row("alibi", lambda: S.ScaledDot() + S.Alibi(HEADS, align="end")),
    Row("cap of relative bias", lambda: S.SoftCap(S.ScaledDot() + S.RelativeBias(HEADS, 6, align="start"), 3.0)),
    Row("exact", S.Exact),
]


def long(dtype: torch.dtype, heads: int = HEADS, n_q: int = N_Q, d: int = 11) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(3)
    shapes = (2, heads, n_q, d), (2, heads, N_K, d), (2, heads, N_K, 9)
    return tuple(torch.randn(shape).to(dtype).requires_grad_() for shape in shapes)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("of_mask", "dtype"), [(row, torch.float32) for row in LONG] + [(row, torch.float16) for row in LONG[::4]], ids=str
)
def test_several_tiles_agree(kernels: Kernels, of_mask: Row, dtype: torch.dtype) -> None:
    at = LONG.index(of_mask) + (3 if dtype == torch.float16 else 0)
    of_score, of_normalizer = WIDE[at % len(WIDE)], KNOWN_NORMALIZERS[at % 9]  # the last has a test of its own
    noise = {"dropout": 0.4, "seed": SEED} if at % 3 == 1 else {}
    parts = score(of_score, dtype=dtype), normalizer(of_normalizer, dtype=dtype)
    kernels(Call(long(dtype), *parts, mask(of_mask), noise), tile=(16, 32) if at % 2 else (32, 16))


def test_thresholds_are_found_where_the_sum_is_steepest(kernels: Kernels) -> None:
    """For α > 2 the derivative of a weight has no bound at the edge of the support: values only."""
    query, key, value = (x.detach() for x in long(torch.float32))
    of_mask = mask(LONG[9])
    kernels(Call((query, key, value.requires_grad_()), S.Gaussian(1.0), N.Entmax(2.5), of_mask), near=1e-4)


@pytest.mark.parametrize(
    ("build", "normalizer"),
    [
        (lambda: S.ScaledDot() + S.RelativeBias(HEADS, 3, align="end"), N.Softmax()),
        (lambda: S.SoftCap(S.ScaledDot(), 2.0) + S.RelativeBias(HEADS, 20, align="start"), N.Identity()),
        (lambda: S.SoftCap(S.Gated(11, 11) + S.RelativeBias(HEADS, 60, align=4), 2.0), N.Sigmoid()),
        (
            lambda: S.ScaledDot() + S.RelativeBias(HEADS, 0, align="end") + S.RelativeBias(HEADS, 9, align="start"),
            N.Softmax(),
        ),
    ],
    ids=("short", "after a cap", "longer than the sequence", "two"),
)
def test_gradients_of_relative_biases_agree(
    kernels: Kernels, build: Callable[[], S.Score], normalizer: N.Normalizer
) -> None:
    torch.manual_seed(1)
    kernels(Call(long(torch.float32), build(), normalizer, M.causal(align="end"), {"dropout": 0.3, "seed": SEED}))
    kernels(Call(long(torch.float32), build(), normalizer), tile=(32, 16))


@pytest.mark.parametrize("normalizer", [N.Sparsemax(), N.Entmax(1.5), N.Entmax(1.3)], ids=str)
@pytest.mark.parametrize("spread", [0.02, 1.0, 3.0])
def test_supports_of_any_size_agree(kernels: Kernels, normalizer: N.Normalizer, spread: float) -> None:
    """From all keys to one or two; rows of both kinds in one tile."""
    torch.manual_seed(5)
    query, key, value = torch.randn(1, 1, 17, 8), torch.randn(1, 1, 300, 8), torch.randn(1, 1, 300, 8)
    rows = torch.linspace(1.0, 3.0, 17)[:, None] * spread
    inputs = tuple(x.requires_grad_() for x in (query * rows, key, value))
    kernels(Call(inputs, normalizer=normalizer, mask=M.window(260, 260, align="start")), tile=(16, 64))


@pytest.mark.parametrize("normalizer", [N.Softmax(), N.ReLU(), N.Sparsemax()], ids=str)
@pytest.mark.parametrize("capped", [False, True])
def test_gates_of_bfloat16_agree(interpreted: ProcessPoolExecutor, normalizer: N.Normalizer, capped: bool) -> None:
    """There a kernel's score is twice the score until its factor comes."""
    torch.manual_seed(1)
    gated = S.Gated(11, 11, heads=HEADS).to(torch.float16)
    score = S.SoftCap(gated + S.Alibi(HEADS, align="end"), 4.0) if capped else gated
    ours, _, exact = interpreted.submit(
        run_as_bfloat16, Call(long(torch.float16), score, normalizer, M.causal(align="end"))
    ).result()
    for found, expected in zip(ours, exact, strict=True):
        assert float((found.double() - expected).norm() / expected.norm()) < 5e-3


@pytest.mark.parametrize("of_normalizer", KNOWN_NORMALIZERS[:8:3], ids=str)
def test_extreme_values_agree(kernels: Kernels, of_normalizer: Row) -> None:
    """|q| + |k| beyond what the exponentials of the tanh sum can hold; one side cancels the other."""
    query, key, value = (x.detach() for x in long(torch.float32, d=7))
    shift = torch.linspace(-40, 40, 7)
    inputs = tuple(x.requires_grad_() for x in (query * 20 + shift, key * 20 - shift, value))
    parts = score(Row("", lambda: S.TanhSum(7)), dtype=torch.float32), normalizer(of_normalizer, dtype=torch.float32)
    kernels(Call(inputs, *parts, M.causal(align="end")))


@pytest.mark.parametrize(
    ("of_score", "of_normalizer", "of_mask"),
    [(WIDE[s], KNOWN_NORMALIZERS[n], LONG[m]) for s, n, m in ((0, 6, 6), (1, 0, 2), (2, 1, 8))],
    ids=str,
)
def test_no_kernel_reads_what_none_has_written(
    kernels: Kernels, of_score: Row, of_normalizer: Row, of_mask: Row
) -> None:
    """All memory that kernels are given holds NaN before."""
    parts = score(of_score, dtype=torch.float32), normalizer(of_normalizer, dtype=torch.float32)
    found = kernels(Call(long(torch.float32), *parts, mask(of_mask)), poison=True)
    assert not any(x.isnan().any() for x in found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_grouped_heads_agree(kernels: Kernels, dtype: torch.dtype) -> None:
    query, _, _ = long(dtype, heads=4)
    _, key, value = long(dtype)
    kernels(Call((query, key, value), mask=M.per_head([M.causal(align="end"), M.window(3, 4, align="start")] * 2)))


def test_strides_and_shared_heads_agree(kernels: Kernels) -> None:
    query, key, value = (x.detach() for x in long(torch.float32))
    query = query.mT.contiguous().mT.requires_grad_()
    key, value = key[:, :1].requires_grad_(), value.transpose(0, 2).contiguous().transpose(0, 2).requires_grad_()
    kernels(Call((query, key, value), S.ScaledDot(), N.ReLU()))
    kernels(Call((query[0, 0].detach().requires_grad_(), key, value), S.Gaussian(3.0), N.Sparsemax()))


def test_a_bias_for_each_pair_agrees(kernels: Kernels) -> None:
    bias = torch.randn(2, 1, N_Q, N_K).masked_fill(torch.rand(N_Q, N_K) < 0.3, -torch.inf)
    kernels(Call(long(torch.float32), mask=bias))


def test_repeats_are_equal_to_the_last_bit(kernels: Kernels) -> None:
    call = Call(
        long(torch.float32, d=3), S.TanhSum(3), mask=M.causal(align="end"), options={"dropout": 0.3, "seed": SEED}
    )
    first, again = kernels(call), kernels(call)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize(
    ("of_score", "of_normalizer", "of_mask", "noise"),
    [
        (WIDE[0], KNOWN_NORMALIZERS[0], LONG[2], {}),
        (WIDE[1], KNOWN_NORMALIZERS[1], LONG[3], {"dropout": 0.4, "seed": SEED}),
        (WIDE[2], KNOWN_NORMALIZERS[3], LONG[10], {}),  # weights of both signs
        (WIDE[3], KNOWN_NORMALIZERS[7], LONG[12], {}),
        (WIDE[4], KNOWN_NORMALIZERS[5], LONG[8], {"dropout": 0.4, "seed": SEED}),
    ],
    ids=str,
)
def test_summaries_agree(
    interpreted: ProcessPoolExecutor, of_score: Row, of_normalizer: Row, of_mask: Row, noise: dict[str, Any]
) -> None:
    parts = score(of_score, dtype=torch.float32), normalizer(of_normalizer, dtype=torch.float32)
    call = Call(long(torch.float32), *parts, mask(of_mask), noise)
    ours, exact = interpreted.submit(summaries, call, 3, 5).result()
    assert torch.equal(ours.top_indices, exact.top_indices)
    for name in ("lse", "entropy", "top_weights", "mass", "pooled"):
        seen, expected = getattr(ours, name), getattr(exact, name)
        assert (seen is None) == (expected is None)
        if seen is not None:
            torch.testing.assert_close(seen, expected.float(), atol=2e-5, rtol=2e-5, msg=lambda m, n=name: f"{n}: {m}")


def test_compiled_code_serves_every_length(interpreted: ProcessPoolExecutor) -> None:
    graphs, found = interpreted.submit(compiled, (17, 23, 9)).result()
    assert graphs <= 2  # one for the first length, one for all others
    for by_graph, plain in found:
        torch.testing.assert_close(by_graph, plain, rtol=1e-5, atol=1e-5)


def test_an_exported_program_serves_every_length(interpreted: ProcessPoolExecutor) -> None:
    for program, plain in interpreted.submit(exported, (17, 31, 6)).result():
        torch.testing.assert_close(program, plain)
