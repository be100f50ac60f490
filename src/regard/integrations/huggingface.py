"""`attn_implementation="regard"` for the models of Hugging Face transformers, version 5 and later.

    register()
    model = AutoModel.from_pretrained(path, attn_implementation="regard")

What a model may say about its attention (scale, soft cap, sinks, position bias, chosen keys, masks) becomes
a score, a normalizer and a mask here, once, for the computation and for `regard.record`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from regard.core.biases import DenseBias
from regard.core.mask import Mask
from regard.core.masks import causal, dense, positions, window
from regard.core.normalizers import Normalizer, Softmax
from regard.core.scores import Pairwise, ScaledDot, Score, SoftCap, as_score
from regard.core.shapes import Extent, InputError, MissingError, Tile
from regard.dispatch import attention
from regard.inspection import attention_weights
from regard.integrations.torch import real_keys
from regard.resolve import AnyMask

__all__ = ["register"]

LEAST = 5  # the first major version with AttentionInterface for every model, and the mask interface beside it


class Replaced(NamedTuple):
    """What a registered name computes with instead of the model's own scaled dot product and softmax."""

    score: Score | None
    normalizer: Normalizer | None


NOTHING = Replaced(None, None)
REGISTERED: dict[str, Replaced] = {}


def register(
    name: str = "regard", *, score: Score | Pairwise | None = None, normalizer: Normalizer | None = None
) -> None:
    """Make `attn_implementation=name` known to transformers; call it again with other parts and another name.

    A `score` takes the place of the scaled dot product, a `normalizer` that of softmax; the model keeps its
    masks, soft cap and position bias. Ask for weights with `output_attentions=True` in the call (transformers
    refuses it in the config for all but eager), or see them through `regard.record`.
    """
    modeling, masking = _transformers("modeling_utils"), _transformers("masking_utils")
    replaced = Replaced(None if score is None else as_score(score), normalizer)
    REGISTERED[name] = replaced

    def forward(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Any:
        return _forward(replaced, module, query, key, value, *args, **kwargs)

    modeling.AttentionInterface.register(name, forward)
    masking.AttentionMaskInterface.register(name, _mask)


def _transformers(module: str) -> Any:
    try:
        version = import_module("transformers").__version__
    except ImportError:
        raise MissingError(
            "regard.integrations.huggingface needs transformers; pip install 'transformers>=5'"
        ) from None
    if int(version.split(".")[0]) < LEAST:
        raise MissingError(f"transformers {version} is too old; pip install 'transformers>={LEAST}'")
    return import_module(f"transformers.{module}")


class Parts(NamedTuple):
    """One attention of a model, in the terms of `regard.attention`."""

    score: Score
    normalizer: Normalizer
    mask: AnyMask


MEANT = ("scaling", "softcap", "position_bias", "s_aux", "sinks", "indices")  # of all keywords, what `parts` reads


def parts(
    module: nn.Module,
    attention_mask: Tensor | Mask | None,
    scaling: float | None = None,
    softcap: float | None = None,
    position_bias: Float[Tensor, "*batch heads n_q n_k"] | None = None,
    s_aux: Tensor | None = None,
    sinks: Tensor | None = None,
    indices: Tensor | None = None,
    replaced: Replaced = NOTHING,
    **_: Any,
) -> Parts:
    """What the arguments of an attention function of transformers mean. Of those that are not named here,
    sliding_window repeats what the mask says, and the rest concerns other kernels."""
    score: Score = (
        ScaledDot(None if scaling is None else _number(scaling)) if replaced.score is None else replaced.score
    )
    if softcap is not None:
        score = SoftCap(score, softcap)
    if position_bias is not None:
        score = score + DenseBias(position_bias)
    mask: AnyMask = attention_mask.rule if isinstance(attention_mask, RuleMask) else attention_mask
    if indices is not None:  # sparse models: the only keys that each query may attend to
        if isinstance(mask, Tensor) and mask.dtype.is_floating_point:
            exists = mask > torch.finfo(mask.dtype).min
            score, mask = score + DenseBias(torch.where(exists, mask, 0.0)), exists
        chosen = positions(indices)
        mask = chosen if mask is None else chosen & (dense(mask) if isinstance(mask, Tensor) else mask)
    return Parts(score, _normalizer(module, s_aux if s_aux is not None else sinks, replaced.normalizer), mask)


def _number(scaling: float | Tensor) -> float:
    if isinstance(scaling, Tensor) and scaling.requires_grad:
        raise InputError("this model learns its scaling, which would get no gradient; use attn_implementation='eager'")
    return float(scaling)


def _normalizer(module: nn.Module, sinks: Tensor | None, replacement: Normalizer | None) -> Normalizer:
    if sinks is None:
        return Softmax() if replacement is None else replacement
    if replacement is not None:
        raise InputError(
            f"{type(module).__name__} has attention sinks, which only softmax knows; register {replacement} for other models"
        )
    if sinks.ndim != 1:
        raise InputError(
            f"{type(module).__name__} has sinks of shape {tuple(sinks.shape)}; regard knows one for each head; "
            f"use attn_implementation='eager'"
        )
    normalizer = Softmax()
    # The model's own tensor, not a parameter of a normalizer that is made anew in each call.
    normalizer.sink, normalizer.heads = sinks.reshape(-1, 1, 1), len(sinks)  # type: ignore[assignment]
    return normalizer


def _forward(
    replaced: Replaced,
    module: nn.Module,
    query: Float[Tensor, "batch heads n_q d_k"],
    key: Float[Tensor, "batch h_k n_k d_k"],
    value: Float[Tensor, "batch h_k n_k d_v"],
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[Float[Tensor, "batch n_q heads d_v"], Float[Tensor, "batch heads n_q n_k"] | None]:
    """An attention function of transformers. No mask means no mask, as in eager: causality is in the mask."""
    for name in ("cache", "block_indices"):
        if kwargs.get(name) is not None:
            raise InputError(
                f"{type(module).__name__} passes {name} (paged or block-sparse attention), which regard does not know; "
                f"use attn_implementation='sdpa'"
            )
    score, normalizer, mask = parts(module, attention_mask, replaced=replaced, **kwargs)
    dropout = dropout if module.training else 0.0
    output = attention(query, key, value, score=score, normalizer=normalizer, mask=mask, dropout=dropout)
    weights = None
    if _weights_wanted(kwargs):
        weights = attention_weights(query, key, score=score, normalizer=normalizer, mask=mask).to(query.dtype)
    return output.transpose(1, 2).contiguous(), weights


def _weights_wanted(kwargs: dict[str, Any]) -> bool:
    """Is output_attentions=True in force? Then transformers collects the weights by hooks, under such names
    as attentions and cross_attentions, and seldom tells the attention function."""
    if kwargs.get("output_attentions"):
        return True
    try:
        collected = import_module("transformers.utils.output_capturing")._active_collector.get()
    except (ImportError, AttributeError):
        return False
    return any("attentions" in name for name in collected or ())


# Masks: transformers hands over a function of indices and a 2-d padding mask. Where that is a rule we know, it
# stays a rule: nothing of size n_q x n_k is made, unless the model itself works on the mask.


class RuleMask(Tensor):
    """A rule in the place where a model expects a bool tensor (batch, 1, n_q, n_k). Handing it on keeps it
    a rule; any torch function on it gets the tensor written out."""

    rule: Mask

    @staticmethod
    def of(rule: Mask, batch: int, n_q: int, n_k: int, device: torch.device) -> RuleMask:
        mask = torch.zeros((), dtype=torch.bool, device=device).expand(batch, 1, n_q, n_k).as_subclass(RuleMask)
        mask.rule = rule
        return mask

    def written_out(self) -> Tensor:
        with torch._C.DisableTorchFunctionSubclass():
            shape, device = tuple(self.shape), self.device
        extent = Extent((shape[0], 1), shape[2], shape[3], device)
        return self.rule.allowed(extent.tile()).broadcast_to(shape)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in ABOUT_ITSELF:
            args, kwargs = tree_map_only(RuleMask, RuleMask.written_out, (args, kwargs or {}))
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


ABOUT_ITSELF = {
    Tensor.size,
    Tensor.dim,
    Tensor.is_floating_point,
    *(getattr(Tensor, name).__get__ for name in ("shape", "ndim", "dtype", "device", "requires_grad", "is_nested")),
}


def _mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int = 0,
    kv_offset: int = 0,
    mask_function: Any = None,
    attention_mask: Tensor | None = None,
    allow_is_causal_skip: bool = True,
    allow_is_bidirectional_skip: bool = False,
    use_vmap: bool = False,
    device: torch.device | str = "cpu",
    **kwargs: Any,
) -> Tensor | None:
    """A mask function of transformers: every mask is given, not left to a flag is_causal; None is no mask."""
    masking = _transformers("masking_utils")
    mask_function = masking.causal_mask_function if mask_function is None else mask_function
    # A function of the user's own may need vmap; a static cache keeps its offset on the device; a compiler
    # must not meet a tensor of a class of ours.
    if use_vmap or isinstance(q_offset, Tensor) or torch.compiler.is_compiling():
        return masking.sdpa_mask(
            batch_size=batch_size,
            q_length=q_length,
            kv_length=kv_length,
            q_offset=q_offset,
            kv_offset=kv_offset,
            mask_function=mask_function,
            attention_mask=attention_mask,
            allow_is_causal_skip=False,
            allow_is_bidirectional_skip=allow_is_bidirectional_skip,
            use_vmap=use_vmap,
            device=device,
            **kwargs,
        )
    device = torch.device(device)
    rules = _rules(mask_function, q_length, kv_length, q_offset, kv_offset, device)
    padding = masking.prepare_padding_mask(attention_mask, kv_length, kv_offset)
    if padding is not None:
        padding = padding[:, kv_offset : kv_offset + kv_length].to(device=device, dtype=torch.bool)
        if not padding.all():  # once per forward of the model, not per layer
            rules.append(real_keys(padding, q_length))
    if not rules:
        if allow_is_bidirectional_skip or allow_is_causal_skip:
            return None
        return torch.ones(batch_size, 1, q_length, kv_length, dtype=torch.bool, device=device)
    rule = rules[0]
    for other in rules[1:]:
        rule = rule & other
    return RuleMask.of(rule, batch_size, q_length, kv_length, device)


def _rules(
    function: Callable[..., Any], n_q: int, n_k: int, q_offset: int, kv_offset: int, device: torch.device
) -> list[Mask]:
    """The masks whose intersection the function is. transformers builds its functions as closures of a few
    makers, known by their names here; any other is asked pair by pair."""
    name, cells = getattr(function, "__qualname__", ""), _closure(function)
    start = q_offset - kv_offset  # the key at which query 0 stands
    if name == "and_masks.<locals>.and_mask" and isinstance(cells.get("mask_functions"), tuple):
        each = [_rules(one, n_q, n_k, q_offset, kv_offset, device) for one in cells["mask_functions"]]
        return [rule for rules in each for rule in rules]
    if name == "bidirectional_mask_function":
        return []
    if name == "causal_mask_function":
        return [] if start >= n_k - 1 else [causal(align=start)]
    if name == "sliding_window_overlay.<locals>.inner_mask" and isinstance(cells.get("sliding_window"), int):
        size = cells["sliding_window"]
        return [] if start + n_q <= size else [window(size - 1, None, align=start)]
    if name == "sliding_window_bidirectional_overlay.<locals>.inner_mask" and isinstance(
        cells.get("sliding_window"), int
    ):
        size = cells["sliding_window"]
        return [window(size, size, align=start)]
    return [Indexed(function, q_offset, kv_offset)]


def _closure(function: Callable[..., Any]) -> dict[str, Any]:
    if not isinstance(function, FunctionType) or function.__closure__ is None:
        return {}
    return dict(zip(function.__code__.co_freevars, (cell.cell_contents for cell in function.__closure__), strict=True))


@dataclass(frozen=True, eq=False)
class Indexed(Mask):
    """A mask function of transformers, of (batch, head, query, key) indices."""

    fields = ("function", "q_offset", "kv_offset")
    function: Callable[..., Any]
    q_offset: int
    kv_offset: int

    def allowed(self, tile: Tile) -> Tensor:
        batch = torch.arange(tile.extent.batch[0], device=tile.extent.device)[:, None, None, None]
        head = torch.zeros(1, 1, 1, 1, dtype=torch.long, device=tile.extent.device)
        allowed = self.function(
            batch, head, (tile.i + self.q_offset)[None, None], (tile.j + self.kv_offset)[None, None]
        )
        return allowed.broadcast_to(*allowed.shape[:-2], len(tile.rows), len(tile.cols))
