"""Drop-ins with torch's own signatures and mask conventions, and torch's layers turned into `regard.nn`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.core.formula import weights_of
from regard.core.mask import Mask
from regard.core.masks import causal, dense, documents, positions
from regard.core.noise import new_seed
from regard.core.normalizers import Normalizer
from regard.core.scores import Pairwise, ScaledDot, Score
from regard.core.shapes import DTypeError, InputError, ShapeError
from regard.dispatch import attention
from regard.nn.attention import Attention, MultiHeadAttention
from regard.nn.layers import DecoderLayer, EncoderLayer, Residual
from regard.resolve import AnyMask, precisely, resolve

__all__ = ["MultiheadAttention", "Stack", "from_torch", "scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query: Float[Tensor, "*batch n_q d_k"],
    key: Float[Tensor, "*batch n_k d_k"],
    value: Float[Tensor, "*batch n_k d_v"],
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    score: Score | Pairwise | None = None,
    normalizer: Normalizer | None = None,
) -> Float[Tensor, "*batch n_q d_v"]:
    """`torch.nn.functional.scaled_dot_product_attention`, with `score` and `normalizer` to replace.

    As there: a bool mask is True where a query may attend, a float mask is added to the scores, and
    `is_causal` with n_q != n_k puts query 0 at key 0. Dropout is drawn from torch's generator.
    """
    if is_causal and attn_mask is not None:
        raise InputError("attn_mask and is_causal=True exclude each other; fold the causal mask into attn_mask")
    if score is not None and scale is not None:
        raise InputError(f"scale={scale} belongs to the default score; give it to the score instead")
    h_q, h_k = (x.shape[-3] if x.ndim > 2 else 1 for x in (query, key))
    if not enable_gqa and h_q != h_k and 1 not in (h_q, h_k):
        raise ShapeError(f"key has {h_k} heads (axis -3), query has {h_q}; use enable_gqa=True to share keys in groups")
    return attention(
        query,
        key,
        value,
        score=ScaledDot(scale) if score is None else score,
        normalizer=normalizer,
        mask=causal(align="start") if is_causal else attn_mask,
        dropout=dropout_p,
    )


class Projected(NamedTuple):
    """What an nn.MultiheadAttention attends with: (batch,) heads n width, and which pairs exist."""

    query: Float[Tensor, "*batch heads n_q d"]
    key: Float[Tensor, "*batch heads n_k d"]
    value: Float[Tensor, "*batch heads n_k d"] | None
    mask: AnyMask


def project(
    module: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor | None,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    is_causal: bool = False,
) -> Projected:
    """The queries, keys and values of all heads and their mask, from the arguments of `forward`."""
    if query.ndim == 3 and not module.batch_first:
        query, key = query.transpose(0, 1), key.transpose(0, 1)
        value = None if value is None else value.transpose(0, 1)
    (w_q, b_q), (w_k, b_k), (w_v, b_v) = projections(module)
    q, k = F.linear(query, w_q, b_q), F.linear(key, w_k, b_k)
    v = None if value is None else F.linear(value, w_v, b_v)
    lead, n_q, n_k = q.shape[:-2], q.shape[-2], k.shape[-2]
    # bias_k and the zero of add_zero_attn are keys more, which every query may attend to.
    for more_k, more_v in _more_keys(module):
        k = torch.cat([k, more_k.to(k.dtype).expand(*lead, 1, -1)], dim=-2)
        v = None if v is None else torch.cat([v, more_v.to(v.dtype).expand(*lead, 1, -1)], dim=-2)
    mask = _mask(key_padding_mask, attn_mask, is_causal, lead, module.num_heads, n_q, n_k, k.shape[-2] - n_k)
    return Projected(
        _split(q, module.num_heads),
        _split(k, module.num_heads),
        None if v is None else _split(v, module.num_heads),
        mask,
    )


def _split(x: Float[Tensor, "*batch n hd"], heads: int) -> Float[Tensor, "*batch heads n d"]:
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2)


def projections(module: nn.MultiheadAttention) -> list[tuple[Tensor, Tensor | None]]:
    """(weight, bias) of the projections of query, key and value, packed in one matrix or not."""
    biases = [None] * 3 if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
    if module.in_proj_weight is not None:
        weights: Any = module.in_proj_weight.chunk(3)
    else:
        weights = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    return list(zip(weights, biases, strict=True))


def _more_keys(module: nn.MultiheadAttention) -> list[tuple[Tensor, Tensor]]:
    more = []
    if module.bias_k is not None and module.bias_v is not None:
        more.append((module.bias_k[0], module.bias_v[0]))
    if module.add_zero_attn:
        zero = module.out_proj.weight.new_zeros(1, module.embed_dim)
        more.append((zero, zero))
    return more


def _mask(
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    is_causal: bool,
    lead: torch.Size,
    heads: int,
    n_q: int,
    n_k: int,
    more: int,
) -> AnyMask:
    """torch's masks (True = ignore, float = add) as one of ours (True = may attend, float = add)."""
    _check("key_padding_mask", key_padding_mask, [(*lead, n_k)])
    _check("attn_mask", attn_mask, [(n_q, n_k), (heads * (lead[0] if lead else 1), n_q, n_k)])
    if attn_mask is not None:
        # bool: not ignored, float: adds nothing
        attn_mask = F.pad(attn_mask, (0, more))
        if attn_mask.ndim == 3 and lead:
            attn_mask = attn_mask.unflatten(0, (*lead, heads))
    if key_padding_mask is not None:
        key_padding_mask = F.pad(key_padding_mask, (0, more))
    given = [m for m in (key_padding_mask, attn_mask) if m is not None]
    if any(m.dtype != torch.bool for m in given):
        every_head_and_query = None if key_padding_mask is None else key_padding_mask[..., None, None, :]
        biases = [_as_bias(m) for m in (every_head_and_query, attn_mask) if m is not None]
        return sum(biases[1:], biases[0])
    rules: list[Mask] = []
    if attn_mask is not None:
        rules.append(dense(~attn_mask))
    elif is_causal:
        rule = causal(align="start")
        rules.append(rule | positions(torch.arange(n_k, n_k + more)) if more else rule)
    if key_padding_mask is not None:
        rules.append(real_keys(~key_padding_mask, n_q))
    return None if not rules else rules[0] if len(rules) == 1 else rules[0] & rules[1]


def real_keys(real: Bool[Tensor, "*batch n_k"], n_q: int) -> Mask:
    """Every query may attend to the keys that are real, wherever the padding is."""
    ids = torch.zeros(*real.shape[:-1], n_q, dtype=torch.long, device=real.device)
    return documents(ids, key_ids=torch.where(real, 0, -1))


def _as_bias(mask: Tensor) -> Tensor:
    return (
        torch.zeros(mask.shape, device=mask.device).masked_fill(mask, float("-inf"))
        if mask.dtype == torch.bool
        else mask
    )


def _check(name: str, mask: Tensor | None, expected: list[tuple[int, ...]]) -> None:
    if mask is None:
        return
    if mask.dtype != torch.bool and not mask.dtype.is_floating_point:
        raise DTypeError(f"{name} is {mask.dtype}; expected bool (True = ignore) or float (added); try {name}.bool()")
    if tuple(mask.shape) not in expected:
        shapes = " or ".join(str(shape) for shape in dict.fromkeys(expected))
        raise ShapeError(f"{name} has shape {tuple(mask.shape)}; expected {shapes}, as for nn.MultiheadAttention")


class MultiheadAttention(nn.MultiheadAttention):
    """nn.MultiheadAttention, its signature, masks and state_dict, with any score and normalizer.

    Masks are torch's: True = ignore. `need_weights` gives the weights before dropout.

    >>> import torch, regard
    >>> x = torch.randn(3, 5, 8)
    >>> attend = MultiheadAttention(8, 2, batch_first=True, normalizer=regard.normalizers.Sparsemax())
    >>> output, weights = attend(x, x, x)
    >>> output.shape, weights.shape  # averaged over the heads
    (torch.Size([3, 5, 8]), torch.Size([3, 5, 5]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        score: Score | Pairwise | None = None,
        normalizer: Normalizer | None = None,
        backend: str = "auto",
    ) -> None:
        super().__init__(
            embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, device, dtype
        )
        # What nn.TransformerEncoderLayer asks before it leaves out this module and runs a fused kernel
        # on our weights, which would be softmax again.
        self._qkv_same_embed_dim = False
        self.attention = Attention(score, normalizer, dropout, backend)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Where both are given, `attn_mask` decides and `is_causal` is only a hint, as in torch."""
        q, k, v, mask = project(self, query, key, value, key_padding_mask, attn_mask, is_causal)
        seed = next_seed(self.attention.normalizer, q.device)
        output = self.out_proj(self.attention(q, k, v, mask=mask).transpose(-3, -2).flatten(-2))
        if query.ndim == 3 and not self.batch_first:
            output = output.transpose(0, 1)
        if not need_weights:
            return output, None
        with precisely(self.attention.score, q, k) as (q, k):
            call, q, k, _ = resolve(q, k, k, self.attention.score, self.attention.normalizer, mask, seed=seed)
            weights = weights_of(q, k, call).to(output.dtype)
        return output, weights.mean(-3) if average_attn_weights else weights


def next_seed(normalizer: Normalizer, device: torch.device) -> Int[Tensor, ""] | None:
    """The seed that the next call with this normalizer will draw, without drawing it; None if it will not."""
    if not (normalizer.noisy and normalizer.training):
        return None
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        return new_seed(device)


class Stack(nn.Module):
    """Layers one after the other, then a norm: what nn.TransformerEncoder and nn.TransformerDecoder are."""

    def __init__(self, layers: Iterable[nn.Module], norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers, self.norm = nn.ModuleList(layers), norm

    def forward(self, x: Float[Tensor, "*batch n d"], *args: Any, **kwargs: Any) -> Float[Tensor, "*batch n d"]:
        """Every layer gets the same further arguments: masks, and a decoder's memory."""
        for layer in self.layers:
            x = layer(x, *args, **kwargs)
        return x if self.norm is None else self.norm(x)


def from_torch(module: nn.Module, **parts: Any) -> nn.Module:
    """A `regard.nn` module with the weights of one of torch's: nn.MultiheadAttention, nn.Transformer's encoder
    and decoder layers, and stacks of them.

    Same numbers, our conventions: the batch comes first, a mask is True where a query may attend, and one
    `mask=` takes the place of attn_mask and key_padding_mask. `parts` (score, normalizer, backend) replace
    what torch has fixed.

    >>> import torch, regard
    >>> layer = from_torch(torch.nn.TransformerEncoderLayer(8, 2, 16), normalizer=regard.normalizers.Entmax(1.5))
    >>> layer(torch.randn(3, 5, 8), mask=regard.masks.causal()).shape
    torch.Size([3, 5, 8])
    """
    convert = next((CONVERSIONS[kind] for kind in type(module).__mro__ if kind in CONVERSIONS), None)
    if convert is None:
        known = ", ".join(f"nn.{kind.__name__}" for kind in CONVERSIONS)
        raise InputError(f"from_torch: {type(module).__name__} is not one of {known}; convert its parts")
    return convert(module, parts).train(module.training)


def _attention(module: nn.MultiheadAttention, parts: dict[str, Any]) -> MultiHeadAttention:
    if module.bias_k is not None or module.add_zero_attn:
        raise InputError(
            "from_torch: add_bias_kv and add_zero_attn have no counterpart in regard.nn; use "
            "regard.integrations.torch.MultiheadAttention and its load_state_dict"
        )
    ours = MultiHeadAttention(
        module.embed_dim,
        module.num_heads,
        d_key=module.kdim,
        d_value=module.vdim,
        bias=module.in_proj_bias is not None,
        **{"dropout": module.dropout, **parts},
    )
    for linear, (weight, bias) in zip((ours.w_q, ours.w_k, ours.w_v), projections(module), strict=True):
        _copy(linear, weight, bias)
    _copy(ours.w_o, module.out_proj.weight, module.out_proj.bias)
    return ours


def _encoder_layer(module: nn.TransformerEncoderLayer, parts: dict[str, Any]) -> EncoderLayer:
    ours = EncoderLayer(*_sizes(module), **_kinds(module))
    ours.attention = _attention(module.self_attn, parts)
    _copy_layer(ours, module, [ours.around_attention, ours.around_feed_forward])
    return ours


def _decoder_layer(module: nn.TransformerDecoderLayer, parts: dict[str, Any]) -> DecoderLayer:
    ours = DecoderLayer(*_sizes(module), **_kinds(module))
    ours.attention = _attention(module.self_attn, parts)
    ours.cross_attention = _attention(module.multihead_attn, parts)
    _copy_layer(ours, module, [ours.around_attention, ours.around_cross_attention, ours.around_feed_forward])
    return ours


def _stack(module: nn.TransformerEncoder | nn.TransformerDecoder, parts: dict[str, Any]) -> Stack:
    return Stack([from_torch(layer, **parts) for layer in module.layers], copy.deepcopy(module.norm))


CONVERSIONS: dict[type[nn.Module], Callable[..., nn.Module]] = {
    nn.MultiheadAttention: _attention,
    nn.TransformerEncoderLayer: _encoder_layer,
    nn.TransformerDecoderLayer: _decoder_layer,
    nn.TransformerEncoder: _stack,
    nn.TransformerDecoder: _stack,
}

TorchLayer = nn.TransformerEncoderLayer | nn.TransformerDecoderLayer


def _sizes(module: TorchLayer) -> tuple[int, int, int]:
    return module.linear1.in_features, module.self_attn.num_heads, module.linear1.out_features


def _kinds(module: TorchLayer) -> dict[str, Any]:
    """What a layer of regard.nn is told when it is made; its weights follow."""
    return {
        "norm": "pre" if module.norm_first else "post",
        "activation": _activation(module.activation),
        "bias": module.linear1.bias is not None,
    }


def _activation(activation: Any) -> str:
    for name, function, kind in (("relu", F.relu, nn.ReLU), ("gelu", F.gelu, nn.GELU), ("silu", F.silu, nn.SiLU)):
        if activation is function or (
            isinstance(activation, kind) and getattr(activation, "approximate", "none") == "none"
        ):
            return name
    raise InputError(f"from_torch: activation {activation} is not one of relu, gelu (exact), silu")


def _copy_layer(ours: EncoderLayer | DecoderLayer, module: TorchLayer, residuals: list[Residual]) -> None:
    _copy(ours.feed_forward.w_1, module.linear1.weight, module.linear1.bias)
    _copy(ours.feed_forward.w_2, module.linear2.weight, module.linear2.bias)
    ours.feed_forward.dropout.p = module.dropout.p
    for n, residual in enumerate(residuals, start=1):  # norm1, dropout1, norm2, dropout2, …
        for name in ("norm", "dropout"):
            residual.add_module(name, copy.deepcopy(module.get_submodule(f"{name}{n}")))


def _copy(linear: nn.Linear, weight: Tensor, bias: Tensor | None) -> None:
    linear.weight = _parameter(weight)
    linear.register_parameter("bias", None if bias is None else _parameter(bias))


def _parameter(like: Tensor) -> nn.Parameter:
    return nn.Parameter(like.detach().clone(), requires_grad=like.requires_grad)
