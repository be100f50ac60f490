"""The formula itself: its derivatives, and independent implementations of the same attention."""

import math
from itertools import count

import onnx
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.nn.functional import scaled_dot_product_attention

from regard import attention, masks, normalizers, scores
from tests.kinks import distance_to_a_kink
from tests.mechanisms import HEADS, NORMALIZERS, SCORES, D, Row, ids, normalizer, score

SMOOTH = [row for row in NORMALIZERS if row.name not in ("hard", "gumbel hard")]
MARGIN = 0.03  # distance from every kink: far more than gradcheck moves an input
ALLOWED = torch.tensor([[1, 1, 1], [1, 0, 1], [0, 0, 0]]).bool()  # three, two and no keys


def tensors(seed: int, *widths: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(1, HEADS, 3, d, dtype=torch.float64, generator=generator) for d in widths]


def away_from_kinks(of_score: Row, of_normalizer: Row) -> list[Tensor]:
    for seed in count():
        query, key, value = tensors(seed, D, D, 1)
        apart = (query[..., :, None, :] - key[..., None, :, :]).abs().min()  # `own function` is kinked at 0
        given = score(of_score)(query, key).detach()
        constant = of_score.name == "exact"  # 0 everywhere: no input moves it towards a kink
        if constant or (apart > 1e-3 and distance_to_a_kink(normalizer(of_normalizer), given, ALLOWED).min() > MARGIN):
            return [x.requires_grad_() for x in (query, key, value)]


@pytest.mark.parametrize("of_normalizer", **ids(SMOOTH))
@pytest.mark.parametrize("of_score", **ids(SCORES))
def test_first_and_second_derivatives(of_score: Row, of_normalizer: Row) -> None:
    s, n = score(of_score), normalizer(of_normalizer)
    parameters = [p for part in (s, n) if isinstance(part, nn.Module) for p in part.parameters()]

    # gradcheck moves its inputs in place, so it moves the parameters where the modules hold them. Its fast mode
    # compares one random projection of each Jacobian instead of every entry.
    def of_everything(query: Tensor, key: Tensor, value: Tensor, *parameters: Tensor) -> Tensor:
        return attention(query, key, value, score=s, normalizer=n, mask=masks.dense(ALLOWED), backend="reference")

    inputs = (*away_from_kinks(of_score, of_normalizer), *parameters)
    assert gradcheck(of_everything, inputs, fast_mode=True)
    assert gradgradcheck(of_everything, inputs, fast_mode=True)


@pytest.mark.parametrize("of_score", **ids(SCORES))
def test_a_hard_choice_passes_gradients_to_the_values_alone(of_score: Row) -> None:
    query, key, value = (x.requires_grad_() for x in tensors(0, D, D, 2))
    s = score(of_score)

    def of_values(value: Tensor) -> Tensor:
        return attention(query, key, value, score=s, normalizer=normalizers.Hard(), mask=ALLOWED, backend="reference")

    assert gradcheck(of_values, (value,))
    chosen = s(query, key).masked_fill(~ALLOWED, -math.inf).argmax(-1)[..., :2]  # the last row chooses nothing
    received = torch.nn.functional.one_hot(chosen, 3).sum(-2).double()[..., None].expand_as(value)
    gradients = torch.autograd.grad(of_values(value).sum(), (query, key, value), allow_unused=True)
    assert gradients[0] is None
    assert gradients[1] is None
    assert torch.equal(gradients[2], received)


# Oracles.

BACKENDS = ["reference", "chunked", "sdpa"]


def problem(n_q: int = 5, n_k: int = 7, heads: int = 4, key_heads: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n_q + n_k)
    shapes = [(2, heads, n_q, 8), (2, key_heads, n_k, 8), (2, key_heads, n_k, 6)]
    return tuple(torch.randn(s, dtype=torch.float64, generator=generator).requires_grad_() for s in shapes)


def with_gradients(out: Tensor, inputs: tuple[Tensor, ...]) -> list[Tensor]:
    grad = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(9))
    return [out, *torch.autograd.grad(out, inputs, grad)]


def some_pairs(n_q: int, n_k: int) -> Tensor:
    allowed = torch.arange(n_q * n_k).reshape(n_q, n_k) % 3 != 0
    return allowed | (torch.arange(n_k) == 0)  # torch's own attention answers an empty row with NaN


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("key_heads", [1, 2, 4])
@pytest.mark.parametrize("kind", ["plain", "scale", "bool mask", "float bias", "float bias per head", "-inf bias"])
def test_torchs_scaled_dot_product_attention(backend: str, key_heads: int, kind: str) -> None:
    q, k, v = inputs = problem(key_heads=key_heads)
    ours, theirs = {
        "plain": ({}, {}),
        "scale": ({"score": scores.ScaledDot(0.2)}, {"scale": 0.2}),
        "bool mask": ({"mask": some_pairs(5, 7)}, {"attn_mask": some_pairs(5, 7)}),
        **{
            name: ({"mask": bias}, {"attn_mask": bias})
            for name, bias in {
                "float bias": torch.arange(35.0).double().reshape(5, 7).cos(),
                "float bias per head": torch.arange(140.0).double().reshape(4, 5, 7).cos(),
                "-inf bias": torch.zeros(5, 7).double().masked_fill(~some_pairs(5, 7), -math.inf),
            }.items()
        },
    }[kind]
    expected = scaled_dot_product_attention(q, k, v, enable_gqa=True, **theirs)
    out = attention(q, k, v, backend=backend, **ours)
    torch.testing.assert_close(with_gradients(out, inputs), with_gradients(expected, inputs), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
def test_torchs_causal_attention(backend: str) -> None:
    inputs = problem(6, 6)
    out = attention(*inputs, mask=masks.causal(), backend=backend)
    expected = scaled_dot_product_attention(*inputs, is_causal=True)
    torch.testing.assert_close(with_gradients(out, inputs), with_gradients(expected, inputs), rtol=1e-9, atol=1e-9)


def test_a_float_bias_is_learned_like_torchs() -> None:
    q, k, v = problem()
    bias = torch.randn(4, 5, 7, dtype=torch.float64, requires_grad=True)
    expected = with_gradients(scaled_dot_product_attention(q, k, v, attn_mask=bias), (bias,))
    for backend in BACKENDS:
        out = with_gradients(attention(q, k, v, mask=bias, backend=backend), (bias,))
        torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-9, msg=lambda m, b=backend: f"{b}: {m}")


@pytest.mark.parametrize("backend", BACKENDS)
def test_nn_multihead_attention_with_its_projections_written_out(backend: str) -> None:
    heads, width, n_q, n_k = 4, 8, 5, 7
    module = nn.MultiheadAttention(width, heads, batch_first=True, dtype=torch.float64)
    nn.init.normal_(module.in_proj_bias)
    x, y = torch.randn(2, n_q, width, dtype=torch.float64), torch.randn(2, n_k, width, dtype=torch.float64)
    lengths = torch.tensor([7, 4])

    def split(z: Tensor) -> Tensor:  # batch n (heads d) -> batch heads n d
        return z.unflatten(-1, (heads, -1)).transpose(1, 2)

    W_q, W_k, W_v = module.in_proj_weight.chunk(3)
    b_q, b_k, b_v = module.in_proj_bias.chunk(3)
    q, k, v = split(x @ W_q.T + b_q), split(y @ W_k.T + b_k), split(y @ W_v.T + b_v)
    b = attention(q, k, v, mask=masks.padding(lengths), backend=backend)
    out = module.out_proj(b.transpose(1, 2).flatten(-2))

    ignored = torch.arange(n_k) >= lengths[:, None]  # True = may not attend, in that module
    expected, _ = module(x, y, y, key_padding_mask=ignored)
    parameters = tuple(module.parameters())
    torch.testing.assert_close(with_gradients(out, parameters), with_gradients(expected, parameters))


def onnx_attention(*inputs: Tensor, **attributes: object) -> Tensor:
    """onnx's reference of its operator Attention."""
    names = ["Q", "K", "V", "mask"][: len(inputs)]
    kinds = {torch.float64: onnx.TensorProto.DOUBLE, torch.bool: onnx.TensorProto.BOOL}
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Attention", names, ["Y"], **attributes)],
        "attention",
        [
            onnx.helper.make_tensor_value_info(name, kinds[x.dtype], x.shape)
            for name, x in zip(names, inputs, strict=True)
        ],
        [onnx.helper.make_tensor_value_info("Y", onnx.TensorProto.DOUBLE, None)],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 23)])
    fed = {name: x.detach().numpy() for name, x in zip(names, inputs, strict=True)}
    return torch.from_numpy(ReferenceEvaluator(model).run(None, fed)[0])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("key_heads", [1, 2, 4])
@pytest.mark.parametrize("kind", ["plain", "scale", "causal", "mask", "mask with an empty row", "bias", "causal mask"])
def test_the_attention_operator_of_onnx(backend: str, key_heads: int, kind: str) -> None:
    q, k, v = problem(6, 6, key_heads=key_heads)
    some, bias = some_pairs(6, 6), torch.arange(36.0).double().reshape(6, 6).sin()
    holed = some & (torch.arange(6) != 2)[:, None]
    ours, inputs, attributes = {
        "plain": ({}, (), {}),
        "scale": ({"score": scores.ScaledDot(0.25)}, (), {"scale": 0.25}),
        "causal": ({"mask": masks.causal()}, (), {"is_causal": 1}),
        "mask": ({"mask": some}, (some,), {}),
        "mask with an empty row": ({"mask": holed}, (holed,), {}),
        "bias": ({"mask": bias}, (bias,), {}),
        "causal mask": ({"mask": masks.causal() & masks.dense(some)}, (some,), {"is_causal": 1}),
    }[kind]
    out = attention(q, k, v, backend=backend, **ours)
    torch.testing.assert_close(out, onnx_attention(q, k, v, *inputs, **attributes), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("backend", ["reference", "chunked"])
def test_the_soft_cap_of_onnx(backend: str) -> None:
    q, k, v = problem(6, 6)
    out = attention(q, k, v, score=scores.SoftCap(scores.ScaledDot(), 0.5), mask=masks.causal(), backend=backend)
    torch.testing.assert_close(out, onnx_attention(q, k, v, is_causal=1, softcap=0.5), rtol=1e-9, atol=1e-9)
