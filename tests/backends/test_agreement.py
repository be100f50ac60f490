"""Every backend gives what `reference` gives: values, gradients, zeros, noise; or refuses and says why."""

import math

import pytest
import torch
from torch import Tensor, nn

from regard import BackendError, attention, explain, masks, normalizers, scores
from regard.backends import chunked, sdpa
from regard.core import visibility
from tests.mechanisms import HEADS, MASKS, NORMALIZERS, SCORES, D, Row, ids, mask, normalizer, problem, score

SEED = 11  # for what draws noise; the others do not look at it
DOTS = [row for row in SCORES if row.name.split(",")[0] in ("dot", "scaled dot", "bilinear", "alibi", "relative bias")]

# (numbers held at once, positions per block of the map): one row at a time, some rows, skipped keys, all at once.
BLOCKINGS = [(1, 64), (2**8, 64), (2**7, 2), (2**22, 2)]


@pytest.fixture(params=BLOCKINGS, ids=lambda blocking: "budget {}, blocks of {}".format(*blocking))
def _blocking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    _set_blocking(monkeypatch, *request.param)


def _set_blocking(monkeypatch: pytest.MonkeyPatch, budget: int, block: int) -> None:
    monkeypatch.setattr(chunked, "BUDGET", budget)
    monkeypatch.setattr(chunked, "BLOCK", block)
    monkeypatch.setattr(visibility, "BLOCK", block)


def value_and_gradients(backend: str, inputs: tuple[Tensor, ...], **call: object) -> list[Tensor]:
    """Output, and the gradients of query, key, value and all parameters: zeros where nothing depends on them."""
    parts = [call.get("score"), call.get("normalizer")]
    leaves = [*inputs, *(p for part in parts if isinstance(part, nn.Module) for p in part.parameters())]
    out = attention(*inputs, backend=backend, **call)
    grad = torch.randn(out.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).to(out.dtype)
    return [out, *torch.autograd.grad(out, leaves, grad, allow_unused=True, materialize_grads=True)]


def agree(backend: str, inputs: tuple[Tensor, ...], **call: object) -> None:
    ours, reference = (value_and_gradients(b, inputs, **call) for b in (backend, "reference"))
    torch.testing.assert_close(ours, reference, rtol=1e-9, atol=1e-9)


# Every (score, mask); so, as there are more than 12 of each, every (score, normalizer) and (normalizer, mask).
TRIPLES = [
    pytest.param(s, NORMALIZERS[(i + j) % len(NORMALIZERS)], m, id=f"{s}-{NORMALIZERS[(i + j) % len(NORMALIZERS)]}-{m}")
    for i, s in enumerate(SCORES)
    for j, m in enumerate(MASKS)
]


def test_every_two_parts_meet() -> None:
    triples = [triple.values for triple in TRIPLES]
    for a, b, pairs in ((0, 1, len(SCORES) * 12), (0, 2, len(SCORES) * len(MASKS)), (1, 2, 12 * len(MASKS))):
        assert len({(triple[a].name, triple[b].name) for triple in triples}) == pairs


@pytest.mark.parametrize(("of_score", "of_normalizer", "of_mask"), TRIPLES)
def test_chunked_agrees(monkeypatch: pytest.MonkeyPatch, of_score: Row, of_normalizer: Row, of_mask: Row) -> None:
    call = {"score": score(of_score), "normalizer": normalizer(of_normalizer), "mask": mask(of_mask), "seed": SEED}
    inputs = problem()
    reference = value_and_gradients("reference", inputs, **call)
    for blocking in BLOCKINGS:
        _set_blocking(monkeypatch, *blocking)
        ours = value_and_gradients("chunked", inputs, **call)
        torch.testing.assert_close(ours, reference, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("of_mask", **ids(MASKS))
@pytest.mark.parametrize("of_score", **ids(DOTS))
def test_sdpa_agrees(of_score: Row, of_mask: Row) -> None:
    agree("sdpa", problem(), score=score(of_score), mask=mask(of_mask))


@pytest.mark.parametrize("of_normalizer", **ids(NORMALIZERS))
@pytest.mark.usefixtures("_blocking")
def test_dropout_is_the_same_in_every_block(of_normalizer: Row) -> None:
    call = {"normalizer": normalizer(of_normalizer), "mask": masks.padding(torch.tensor([5, 3])), "seed": SEED}
    agree("chunked", problem(), dropout=0.4, **call)
    agree("chunked", problem(), dropout=0.4, score=score(SCORES[4]), **call)


# n_q = 5, n_k = 7.
RECTANGULAR = [
    Row("none", lambda: None),
    Row("padding", lambda: masks.padding(torch.tensor([7, 3]))),
    Row("causal at the end", lambda: masks.causal(align="end")),
    Row("causal, rows without a key", lambda: masks.causal(align=-2)),
    Row("window at the start", lambda: masks.window(1, 1, align="start")),
    Row("dense", lambda: masks.dense(torch.arange(35).reshape(5, 7) % 11 < 3)),
    Row("float bias", lambda: torch.arange(35.0).double().reshape(5, 7).sin()),
    Row("float bias with -inf", lambda: torch.where(torch.arange(35).reshape(5, 7) % 4 == 0, -math.inf, 0.5).double()),
]


def grouped(of_score: Row, of_normalizer: Row) -> tuple[scores.Score, normalizers.Normalizer, tuple[Tensor, ...]]:
    """More queries' heads than keys' heads; as many as the parts allow."""
    s, n = score(of_score), normalizer(of_normalizer)
    heads = HEADS if HEADS in (getattr(s, "heads", None), n.heads) else 2 * HEADS
    torch.manual_seed(4)
    shapes = (2, heads, 5, D), (2, heads // 2, 7, D), (2, heads // 2, 7, 3)
    return s, n, tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)


@pytest.mark.parametrize("of_mask", **ids(RECTANGULAR))
@pytest.mark.parametrize("of_score", **ids(SCORES))
def test_grouped_heads_and_more_keys_than_queries(monkeypatch: pytest.MonkeyPatch, of_score: Row, of_mask: Row) -> None:
    _set_blocking(monkeypatch, 2**8, 2)
    of_normalizer = NORMALIZERS[(SCORES.index(of_score) + RECTANGULAR.index(of_mask)) % len(NORMALIZERS)]
    s, n, inputs = grouped(of_score, of_normalizer)
    agree("chunked", inputs, score=s, normalizer=n, mask=mask(of_mask), seed=SEED)
    if of_score in DOTS:
        s, _, inputs = grouped(of_score, NORMALIZERS[0])
        agree("sdpa", inputs, score=s, mask=mask(of_mask))


@pytest.mark.parametrize("backend", ["chunked", "sdpa"])
@pytest.mark.parametrize("lead", [(), (3,), (2, 1, 2), (2, 2, 1, 2)], ids=str)
def test_any_number_of_leading_axes(backend: str, lead: tuple[int, ...]) -> None:
    query = torch.randn(*lead, 5, D, dtype=torch.float64, requires_grad=True)
    key = torch.randn(*lead[-1:], 5, D, dtype=torch.float64, requires_grad=True)  # shared by the batch
    agree(backend, (query, key, key), mask=masks.causal())
    agree(backend, (query, key, key), mask=masks.window(0, 1), score=score(SCORES[6]))


# Nothing to attend to.


def every_backend(of_score: Row, of_normalizer: Row) -> list[str]:
    fused = of_score in DOTS and of_normalizer.name == "softmax"
    return ["reference", "chunked", "sdpa"] if fused else ["reference", "chunked"]


@pytest.mark.parametrize("of_normalizer", **ids(NORMALIZERS))
@pytest.mark.parametrize("of_score", **ids(SCORES))
def test_a_row_without_a_key_is_exactly_0(of_score: Row, of_normalizer: Row) -> None:
    """In the first sequence query 2 sees no key and no query sees key 3; in the second nobody sees anything."""
    allowed = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    allowed[0, :, 2], allowed[0, :, :, 3], allowed[1] = False, False, False
    nothing = torch.zeros(5, 5, dtype=torch.bool)
    for backend in every_backend(of_score, of_normalizer):
        call = {"score": score(of_score), "normalizer": normalizer(of_normalizer), "seed": SEED}
        out, query, key, value, *_ = value_and_gradients(backend, problem(), mask=allowed, **call)
        zeros = [out[1], query[1], key[1], value[1], out[0, :, 2], query[0, :, 2], key[0, :, 3], value[0, :, 3]]
        zeros += value_and_gradients(backend, problem(), mask=nothing, **call)  # with the parameters' gradients
        assert not any(x.any() for x in zeros), backend


@pytest.mark.parametrize("poison", [math.nan, math.inf])
@pytest.mark.parametrize("of_normalizer", **ids(NORMALIZERS))
@pytest.mark.parametrize("of_score", **ids(SCORES))
def test_what_stands_in_the_padding_changes_not_one_bit(of_score: Row, of_normalizer: Row, poison: float) -> None:
    lengths = torch.tensor([4, 0])
    for backend in every_backend(of_score, of_normalizer):
        call = {"score": score(of_score), "normalizer": normalizer(of_normalizer), "seed": SEED}
        query, key, value = problem()
        clean = value_and_gradients(backend, (query, key, value), mask=masks.padding(lengths), **call)
        padded = torch.arange(5)[:, None] >= lengths[:, None, None, None]
        key, value = (x.detach().masked_fill(padded, poison).requires_grad_() for x in (key, value))
        poisoned = value_and_gradients(backend, (query, key, value), mask=masks.padding(lengths), **call)
        assert all(torch.equal(a, b) for a, b in zip(clean, poisoned, strict=True)), backend


@pytest.mark.parametrize("backend", ["reference", "chunked", "sdpa"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_bool_masks_and_biases_of_minus_infinity_or_the_least_number_agree(backend: str, dtype: torch.dtype) -> None:
    allowed = torch.arange(25).reshape(5, 5) % 4 != 0
    allowed[2] = False
    inputs = problem(dtype=dtype)
    expected = value_and_gradients(backend, inputs, mask=allowed)
    for least in (-math.inf, torch.finfo(dtype).min):
        bias = torch.zeros(5, 5, dtype=dtype).masked_fill(~allowed, least)
        torch.testing.assert_close(value_and_gradients(backend, inputs, mask=bias), expected)


@pytest.mark.parametrize("backend", ["reference", "chunked", "auto"])
@pytest.mark.parametrize(
    ("batch", "n_q", "n_k", "d", "d_v"), [(0, 3, 3, 4, 2), (2, 0, 3, 4, 2), (2, 3, 0, 4, 2), (2, 3, 3, 4, 0)]
)
def test_empty_axes_give_zeros_or_nothing(backend: str, batch: int, n_q: int, n_k: int, d: int, d_v: int) -> None:
    query, key = torch.ones(batch, n_q, d, requires_grad=True), torch.ones(batch, n_k, d, requires_grad=True)
    value = torch.ones(batch, n_k, d_v, requires_grad=True)
    for of_mask in (None, masks.padding(torch.full((batch,), n_k))):
        out, *gradients = value_and_gradients(backend, (query, key, value), mask=of_mask)
        assert out.shape == (batch, n_q, d_v)
        assert not any(x.any() for x in (out, *gradients))


@pytest.mark.parametrize("backend", ["reference", "chunked", "auto"])
def test_vectors_of_no_width_score_0(backend: str) -> None:
    query, key, value = torch.ones(2, 0), torch.ones(3, 0), torch.tensor([[3.0], [6.0], [9.0]])
    assert attention(query, key, value, backend=backend).tolist() == [[6.0], [6.0]]


@pytest.mark.parametrize("backend", ["reference", "chunked", "sdpa"])
def test_strides_do_not_matter(backend: str) -> None:
    dense = problem()
    expected = attention(*dense, mask=masks.causal(), backend=backend)
    transposed = (x.detach().mT.contiguous().mT for x in dense)
    torch.testing.assert_close(attention(*transposed, mask=masks.causal(), backend=backend), expected)
    query, key, value = (x.detach()[:, :1] for x in dense)
    expanded = (x.expand(-1, HEADS, -1, -1) for x in (query, key, value))
    torch.testing.assert_close(
        attention(*expanded, backend=backend), attention(query, key, value, backend=backend).expand(-1, HEADS, -1, -1)
    )


# Repeating.


@pytest.mark.parametrize("backend", ["reference", "chunked", "sdpa"])
def test_100_repeats_are_equal_to_the_last_bit(backend: str) -> None:
    inputs = problem(n_q=40, n_k=40, dtype=torch.float32)
    noise = {} if backend == "sdpa" else {"dropout": 0.3, "seed": SEED}
    first = value_and_gradients(backend, inputs, mask=masks.causal(), **noise)
    for _ in range(99):
        again = value_and_gradients(backend, inputs, mask=masks.causal(), **noise)
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


NOISY = [{"dropout": 0.5}, {"normalizer": normalizers.GumbelHard()}]


@pytest.mark.parametrize("backend", ["reference", "chunked", "auto"])
@pytest.mark.parametrize("noisy", NOISY, ids=["dropout", "gumbel"])
def test_the_same_seed_gives_the_same_noise(backend: str, noisy: dict) -> None:
    inputs = problem(n_q=8, n_k=8)

    def drawn(**seed: object) -> Tensor:
        return attention(*inputs, backend=backend, **noisy, **seed)

    assert torch.equal(drawn(seed=1), drawn(seed=torch.tensor(1)))
    assert not torch.equal(drawn(seed=1), drawn(seed=2))
    assert not torch.equal(drawn(seed=1), drawn(seed=1 + 2**32))  # all 64 bits count
    torch.manual_seed(5)
    first, second = drawn(), drawn()
    assert not torch.equal(first, second)
    torch.manual_seed(5)
    assert torch.equal(first, drawn())


@pytest.mark.parametrize("backend", ["reference", "chunked"])
def test_dropout_keeps_the_mean(backend: str) -> None:
    """Each weight is dropped or divided by 1 - p: the sum over 10,000 keys stays near 1."""
    query, key, value = torch.zeros(4, 1), torch.zeros(10_000, 1), torch.ones(10_000, 1)
    out = attention(query, key, value, dropout=0.25, seed=SEED, backend=backend)
    # One sum has a variance of p / (1 - p) / n; five standard deviations.
    assert (out - 1).abs().max() < 5 * (0.25 / 0.75 / 10_000) ** 0.5


# Refusing.

REFUSALS = [
    ("sdpa", {"normalizer": normalizers.Sparsemax()}, "softmax only, not Sparsemax"),
    ("sdpa", {"normalizer": normalizers.Softmax(sink=True)}, "has no sink"),
    ("sdpa", {"score": scores.Gaussian()}, "dot products only, not Gaussian"),
    ("sdpa", {"score": scores.SoftCap(scores.Dot(), 1.0)}, "dot products only, not SoftCap"),
    ("sdpa", {"dropout": 0.1}, "its own dropout, which is not a function of the seed"),
    ("flash", {}, "backend='flash' is unknown; expected 'auto' or one of .*reference"),
]


@pytest.mark.parametrize(("backend", "call", "message"), REFUSALS)
def test_a_backend_asked_for_by_name_never_falls_back(backend: str, call: dict, message: str) -> None:
    with pytest.raises(BackendError, match=message):
        attention(*problem(), backend=backend, **call)
    with pytest.raises(BackendError, match=message):
        explain(*problem(), backend=backend, **call)


def test_a_large_bias_is_not_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdpa, "LIMIT", 2 * 25 - 1)
    alibi = scores.Dot() + scores.Alibi(HEADS)
    with pytest.raises(BackendError, match="would have to be written out: 50 elements, more than the limit of 49"):
        attention(*problem(), score=alibi, backend="sdpa")
    attention(*problem(), mask=masks.causal(), backend="sdpa")  # nothing to write out


@pytest.mark.parametrize(("backend", "call", "message"), REFUSALS[:-1])
def test_explain_names_the_reason(backend: str, call: dict, message: str) -> None:
    explained = explain(*problem(), **call)
    assert explained.backend == "reference"
    assert message in explained.refusals[backend]
    assert f"backend: reference\n  not {backend}: " in str(explained)


def test_explain_names_the_choice() -> None:
    assert explain(*problem()).backend == "sdpa"
    assert explain(*problem(), score=scores.Gaussian()).backend == "reference"
    large = (torch.empty(1, 2048, 4),) * 3
    assert explain(*large, score=scores.Gaussian()).backend == "cpu"
    assert explain(*large, score=lambda q, k: -torch.cdist(q, k)).backend == "chunked"  # no kernel knows it
    assert "numbers at once" in explain(*large, score=scores.Gaussian()).refusals["reference"]
    asked = explain(*problem(), backend="chunked")
    assert asked.backend == "chunked"
    assert asked.refusals["sdpa"] == "backend='chunked' was asked for"
