"""What stands in for torch's own modules gives the same numbers and gradients, for every form of mask."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import regard
from regard import DTypeError, InputError, ShapeError, masks, normalizers, scores
from regard.integrations.torch import MultiheadAttention, from_torch, scaled_dot_product_attention

B, N_Q, N_K, D, HEADS = 2, 4, 5, 8, 2
close = torch.testing.assert_close


def seeded(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def gradients(output: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(output, inputs, seeded(*output.shape, seed=9), retain_graph=True)


# scaled_dot_product_attention

ATTEND = torch.tensor([[1, 1, 0, 0, 1], [0, 1, 1, 1, 1], [1, 0, 0, 0, 0], [1, 1, 1, 1, 1]]).bool()

SDPA = {
    "plain": {},
    "bool, True attends": {"attn_mask": ATTEND},
    "bool of each head": {"attn_mask": torch.stack([ATTEND, ATTEND.roll(1, -1)])},
    "bool of keys": {"attn_mask": torch.tensor([[True, False, True, True, False]])},
    "float": {"attn_mask": seeded(N_Q, N_K, seed=3)},
    "float with -inf": {"attn_mask": seeded(N_Q, N_K, seed=3).masked_fill(~ATTEND, float("-inf"))},
    "causal, from the first key": {"is_causal": True},
    "scale": {"scale": 0.3},
}


@pytest.mark.parametrize("given", SDPA.values(), ids=SDPA)
def test_sdpa_is_torchs_in_values_and_gradients(given: dict) -> None:
    q, k, v = (seeded(B, HEADS, n, 3, seed=s).requires_grad_() for s, n in enumerate((N_Q, N_K, N_K)))
    ours, theirs = scaled_dot_product_attention(q, k, v, **given), F.scaled_dot_product_attention(q, k, v, **given)
    close(ours, theirs)
    close(gradients(ours, q, k, v), gradients(theirs, q, k, v))


def test_sdpa_shares_keys_in_groups_when_asked_to() -> None:
    q, k, v = seeded(B, 4, N_Q, 3), seeded(B, 2, N_K, 3, seed=1), seeded(B, 2, N_K, 3, seed=2)
    theirs = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    close(scaled_dot_product_attention(q, k, v, enable_gqa=True), theirs)
    with pytest.raises(ShapeError, match=r"key has 2 heads .* query has 4; use enable_gqa=True"):
        scaled_dot_product_attention(q, k, v)


def test_sdpa_refuses_what_torch_refuses() -> None:
    q = seeded(N_Q, 3)
    with pytest.raises(InputError, match="exclude each other"):
        scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(4, 4).bool(), is_causal=True)
    with pytest.raises(InputError, match=r"scale=0\.5 belongs to the default score"):
        scaled_dot_product_attention(q, q, q, scale=0.5, score=scores.Dot())


def test_sdpa_takes_any_score_and_normalizer() -> None:
    q, k, v = seeded(N_Q, 3), seeded(N_K, 3, seed=1), seeded(N_K, 3, seed=2)
    parts = {"score": scores.Gaussian(1.0), "normalizer": normalizers.Sigmoid()}
    close(
        scaled_dot_product_attention(q, k, v, attn_mask=ATTEND, **parts),
        regard.attention(q, k, v, mask=ATTEND, **parts),
    )


# nn.MultiheadAttention

PADDED = torch.tensor([[False] * 5, [False, False, True, False, True]])
EACH_HEAD = torch.stack([~ATTEND.roll(n, -1) for n in range(B * HEADS)])
EACH_HEAD[..., 0] = False  # torch answers a query without any key with NaN
BIAS = seeded(N_Q, N_K, seed=4)

MASKS: dict[str, dict[str, Tensor]] = {
    "none": {},
    "bool": {"attn_mask": ~ATTEND},
    "bool of each head": {"attn_mask": EACH_HEAD},
    "float": {"attn_mask": BIAS},
    "float with -inf": {"attn_mask": BIAS.masked_fill(~ATTEND, float("-inf"))},
    "float of each head": {"attn_mask": seeded(B * HEADS, N_Q, N_K, seed=5)},
    "padding": {"key_padding_mask": PADDED},
    "float padding": {"key_padding_mask": seeded(B, N_K, seed=6)},
    "both bool": {"key_padding_mask": PADDED, "attn_mask": EACH_HEAD},
    "both float": {"key_padding_mask": seeded(B, N_K, seed=6), "attn_mask": BIAS},
    "bool and float": {"key_padding_mask": PADDED, "attn_mask": BIAS},
}
KINDS: dict[str, dict] = {
    "plain": {"batch_first": True},
    "batch second": {},
    "no bias": {"bias": False, "batch_first": True},
    "keys and values of other widths": {"kdim": 6, "vdim": 3, "batch_first": True},
    "bias_kv": {"add_bias_kv": True, "batch_first": True},
    "zero_attn": {"add_zero_attn": True, "batch_first": True},
    "everything": {"kdim": 6, "vdim": 3, "add_bias_kv": True, "add_zero_attn": True},
}


def both(**kind: object) -> tuple[nn.MultiheadAttention, MultiheadAttention]:
    theirs, ours = nn.MultiheadAttention(D, HEADS, **kind), MultiheadAttention(D, HEADS, **kind)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.5)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def inputs(module: nn.MultiheadAttention) -> list[Tensor]:
    xs = [seeded(B, n, d, seed=s) for s, (n, d) in enumerate(((N_Q, D), (N_K, module.kdim), (N_K, module.vdim)))]
    return [(x if module.batch_first else x.transpose(0, 1)).requires_grad_() for x in xs]


@pytest.mark.filterwarnings("ignore:Support for mismatched")
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_multihead_is_torchs_in_values_weights_and_gradients(kind: dict, mask: dict[str, Tensor]) -> None:
    theirs, ours = both(**kind)
    xs = inputs(theirs)
    expected, expected_weights = theirs(*xs, **mask, average_attn_weights=False)
    output, weights = ours(*xs, **mask, average_attn_weights=False)
    close(output, expected)
    close(weights, expected_weights)
    close(
        gradients(output, *xs, *(p for _, p in sorted(ours.named_parameters()))),
        gradients(expected, *xs, *(p for _, p in sorted(theirs.named_parameters()))),
    )
    close(gradients(weights, *xs[:2]), gradients(expected_weights, *xs[:2]))


def test_weights_are_averaged_over_heads_or_left_out() -> None:
    theirs, ours = both(batch_first=True)
    xs = inputs(theirs)
    close(ours(*xs)[1], theirs(*xs)[1])
    assert ours(*xs, need_weights=False)[1] is None


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_multihead_takes_one_sequence_without_a_batch(kind: dict) -> None:
    theirs, ours = both(**kind)
    xs = [x.detach()[0] if theirs.batch_first else x.detach()[:, 0] for x in inputs(theirs)]
    mask = {"key_padding_mask": PADDED[1], "attn_mask": EACH_HEAD[:HEADS]}
    for given in ({}, mask, {"attn_mask": BIAS}):
        close(ours(*xs, **given), theirs(*xs, **given))


def test_is_causal_alone_puts_query_0_at_key_0_and_leaves_the_keys_of_add_bias_kv_in_sight() -> None:
    theirs, ours = both(add_bias_kv=True, batch_first=True)
    xs = inputs(theirs)
    future = torch.ones(N_Q, N_K).triu(1).bool()
    close(ours(*xs, is_causal=True), theirs(*xs, attn_mask=future))
    close(ours(*xs, attn_mask=future, is_causal=True), theirs(*xs, attn_mask=future))


def test_a_query_without_any_key_gives_the_output_bias_and_not_nan() -> None:
    theirs, ours = both(batch_first=True)
    output, weights = ours(*inputs(theirs), key_padding_mask=torch.ones(B, N_K).bool())
    assert torch.equal(output, theirs.out_proj.bias.expand(B, N_Q, D))
    assert not weights.any()


def test_masks_of_the_wrong_shape_or_type_are_refused() -> None:
    _, ours = both(batch_first=True)
    xs = inputs(ours)
    with pytest.raises(ShapeError, match=r"key_padding_mask has shape \(2, 4\); expected \(2, 5\)"):
        ours(*xs, key_padding_mask=torch.zeros(2, 4).bool())
    with pytest.raises(ShapeError, match=r"attn_mask has shape \(2, 4, 5\); expected \(4, 5\) or \(4, 4, 5\)"):
        ours(*xs, attn_mask=torch.zeros(2, 4, 5).bool())
    with pytest.raises(DTypeError, match=r"attn_mask is torch.int64; expected bool"):
        ours(*xs, attn_mask=torch.zeros(4, 5).long())


def test_the_parts_can_be_replaced() -> None:
    ours = MultiheadAttention(D, HEADS, batch_first=True, normalizer=normalizers.Sparsemax())
    x = 5 * seeded(B, N_K, D)
    assert (ours(x, x, x, average_attn_weights=False)[1] == 0).any()


def test_the_weights_of_a_random_choice_are_those_of_the_output() -> None:
    ours = MultiheadAttention(D, 1, bias=False, batch_first=True, normalizer=normalizers.GumbelHard(1.0))
    with torch.no_grad():
        ours.in_proj_weight[2 * D :] = ours.out_proj.weight[:] = torch.eye(D)
    x = seeded(B, N_K, D)
    seen = set()
    for _ in range(5):
        output, weights = ours(x, x, x)
        close(output, weights @ x)
        seen.add(tuple(weights.argmax(-1).flatten().tolist()))
    assert len(seen) > 1


def test_torchs_encoder_layer_does_not_go_past_it_in_evaluation() -> None:
    """torch fuses the whole layer in evaluation, from the weights of its attention: that would be softmax."""
    layer = nn.TransformerEncoderLayer(D, HEADS, 16, dropout=0.0, batch_first=True)
    layer.self_attn = MultiheadAttention(D, HEADS, batch_first=True, normalizer=normalizers.Sigmoid())
    x = seeded(B, N_K, D)
    trained = layer(x)
    with torch.no_grad():
        close(layer.eval()(x), trained)
        close(nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).eval()(x), trained)


# from_torch


def parameter_gradients(loss: Tensor, module: nn.Module) -> dict[str, Tensor]:
    return dict(zip(dict(module.named_parameters()), gradients(loss, *module.parameters()), strict=True))


CONVERTIBLE = {name: kind for name, kind in KINDS.items() if not {"add_bias_kv", "add_zero_attn"} & set(kind)}


@pytest.mark.parametrize("kind", CONVERTIBLE.values(), ids=CONVERTIBLE)
@pytest.mark.parametrize("mask", [None, ATTEND, BIAS], ids=["none", "bool", "float"])
def test_attention_from_torch(kind: dict, mask: Tensor | None) -> None:
    theirs, _ = both(**kind)
    ours, xs = from_torch(theirs), inputs(theirs)
    attn_mask = ~mask if mask is not None and mask.dtype == torch.bool else mask
    expected = theirs(*xs, attn_mask=attn_mask)[0]
    output = ours(*(x if theirs.batch_first else x.transpose(0, 1) for x in xs), mask=mask)
    output = output if theirs.batch_first else output.transpose(0, 1)
    close(output, expected)
    close(gradients(output, *xs), gradients(expected, *xs))
    g, h = parameter_gradients(output, ours), parameter_gradients(expected, theirs)
    close(g["w_o.weight"], h["out_proj.weight"])
    if "in_proj_weight" in h:
        close(torch.cat([g[f"w_{name}.weight"] for name in "qkv"]), h["in_proj_weight"])
    else:
        close([g[f"w_{name}.weight"] for name in "qkv"], [h[f"{name}_proj_weight"] for name in "qkv"])


ENCODER_MASKS: dict[str, tuple[dict[str, Tensor], Callable[[], object]]] = {
    "none": ({}, lambda: None),
    "causal": ({"src_mask": torch.ones(5, 5).triu(1).bool()}, masks.causal),
    "float": ({"src_mask": seeded(5, 5, seed=3)}, lambda: seeded(5, 5, seed=3)),
    "padding": (
        {"src_key_padding_mask": torch.arange(5) >= torch.tensor([[5], [3]])},
        lambda: masks.padding(torch.tensor([5, 3])),
    ),
}


@pytest.mark.parametrize("form", ENCODER_MASKS.values(), ids=ENCODER_MASKS)
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu", nn.GELU(), F.silu], ids=["relu", "gelu", "GELU()", "F.silu"])
@pytest.mark.parametrize("bias", [True, False])
def test_encoder_layer_from_torch(form: tuple, norm_first: bool, activation: object, bias: bool) -> None:
    theirs = nn.TransformerEncoderLayer(
        D, HEADS, 16, 0.0, activation, layer_norm_eps=1e-3, batch_first=True, norm_first=norm_first, bias=bias
    )
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.5)
    ours, x = from_torch(theirs), seeded(B, 5, D).requires_grad_()
    given, mask = form
    expected, output = theirs(x, **given), ours(x, mask=mask())
    close(output, expected)
    close(gradients(output, x), gradients(expected, x), atol=1e-4, rtol=1e-4)
    g, h = parameter_gradients(output, ours), parameter_gradients(expected, theirs)
    packed = torch.cat([g[f"attention.w_{name}.weight"] for name in "qkv"])
    close(packed, h["self_attn.in_proj_weight"], atol=1e-4, rtol=1e-4)
    for mine, its in (
        ("feed_forward.w_1", "linear1"),
        ("around_attention.norm", "norm1"),
        ("around_feed_forward.norm", "norm2"),
    ):
        close(g[f"{mine}.weight"], h[f"{its}.weight"], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("bias", [True, False])
def test_decoder_layer_from_torch(norm_first: bool, bias: bool) -> None:
    theirs = nn.TransformerDecoderLayer(D, HEADS, 16, 0.0, batch_first=True, norm_first=norm_first, bias=bias)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.5)
    ours, x, memory = from_torch(theirs), seeded(B, N_Q, D).requires_grad_(), seeded(B, N_K, D, seed=1).requires_grad_()
    padded = torch.arange(N_K) >= torch.tensor([[5], [3]])
    expected = theirs(x, memory, tgt_mask=torch.ones(N_Q, N_Q).triu(1).bool(), memory_key_padding_mask=padded)
    output = ours(x, memory, mask=masks.causal(), memory_mask=masks.padding(torch.tensor([5, 3])))
    close(output, expected)
    close(gradients(output, x, memory), gradients(expected, x, memory), atol=1e-4, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_stacks_from_torch() -> None:
    x, memory = seeded(B, N_Q, D), seeded(B, N_K, D, seed=1)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, HEADS, 16, batch_first=True), 2, nn.LayerNorm(D))
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(D, HEADS, 16, batch_first=True), 2)
    for parameter in (*encoder.parameters(), *decoder.parameters()):
        nn.init.normal_(parameter, std=0.5)
    close(
        from_torch(encoder.eval())(x, mask=masks.causal()),
        encoder(x, torch.ones(N_Q, N_Q).triu(1).bool()),
        atol=1e-4,
        rtol=1e-4,
    )
    close(from_torch(decoder.eval())(x, memory), decoder(x, memory), atol=1e-4, rtol=1e-4)


def test_from_torch_keeps_mode_dropout_type_and_what_is_frozen_and_copies_the_weights() -> None:
    theirs = nn.TransformerEncoderLayer(D, HEADS, 16, dropout=0.3).double().eval()
    theirs.linear1.weight.requires_grad_(False)
    ours = from_torch(theirs)
    assert not ours.training
    assert ours.attention.attentions[0].dropout == ours.feed_forward.dropout.p == ours.around_attention.dropout.p == 0.3
    assert {p.dtype for p in ours.parameters()} == {torch.float64}
    assert [name for name, p in ours.named_parameters() if not p.requires_grad] == ["feed_forward.w_1.weight"]
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.fill_(7.0)
    assert not any((parameter == 7).any() for parameter in ours.parameters())


def test_from_torch_takes_other_parts() -> None:
    ours = from_torch(nn.TransformerDecoderLayer(D, HEADS, 16), normalizer=normalizers.Sigmoid())
    assert isinstance(ours.cross_attention.attentions[0].normalizer, normalizers.Sigmoid)


def test_from_torch_refuses_what_it_cannot_make_equal() -> None:
    with pytest.raises(InputError, match="add_bias_kv and add_zero_attn have no counterpart"):
        from_torch(nn.MultiheadAttention(D, HEADS, add_zero_attn=True))
    with pytest.raises(InputError, match=r"activation .* is not one of relu"):
        from_torch(nn.TransformerEncoderLayer(D, HEADS, 16, activation=F.mish))
    with pytest.raises(InputError, match=r"activation GELU.*tanh"):
        from_torch(nn.TransformerEncoderLayer(D, HEADS, 16, activation=nn.GELU("tanh")))
    with pytest.raises(InputError, match=r"Linear is not one of nn\.MultiheadAttention"):
        from_torch(nn.Linear(2, 2))
