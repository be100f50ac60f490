"""Which pairs exist, as people ask for it: functions that document their rule and check their arguments.
True = may attend; `& | ~` combine."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.core.listed import BlockLayout, Dense, Documents, GlobalTokens, Padding, Positions
from regard.core.mask import Mask, PerHead
from regard.core.rules import Band, BlockDiagonal, RandomBlocks, Stride
from regard.core.shapes import Align, DTypeError, InputError, ShapeError

__all__ = [
    "Mask",
    "blocks",
    "causal",
    "dense",
    "dilated",
    "documents",
    "global_tokens",
    "padding",
    "per_head",
    "positions",
    "random_blocks",
    "strided",
    "window",
]


def causal(align: Align = None) -> Mask:
    """Key j is visible to query i when j <= i. With n_q != n_k, say how the two line up.

    >>> import torch, regard
    >>> causal().allowed(regard.Extent((), 3, 3, torch.device("cpu")).tile()).int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    return Band(None, 0, _align(align, "causal"), "causal")


def window(left: int | None, right: int | None, align: Align = None) -> Mask:
    """i - left <= j <= i + right, self included; None is no limit on that side."""
    for name, size in (("left", left), ("right", right)):
        if size is not None:
            _whole_number("window", name, size, least=0)
    return Band(left, right, _align(align, "window"), "window")


def dilated(left: int, right: int, step: int, align: Align = None) -> Mask:
    """A window with gaps: `left` keys before and `right` after, `step` apart."""
    _whole_number("dilated", "step", step, least=1)
    return window(left * step, right * step, align) & strided(step, align)


def strided(stride: int, align: Align = None) -> Mask:
    """Every `stride`-th key, counted from the query in both directions."""
    _whole_number("strided", "stride", stride, least=1)
    return Stride(stride, _align(align, "strided"))


def padding(
    lengths: Int[Tensor, "*lead"], query_lengths: Int[Tensor, "*lead"] | None = None, side: str = "right"
) -> Mask:
    """Only the first `lengths` keys are real (side="left": the last). Axes line up from the left: (B,)
    serves (B, heads, n, d). With `query_lengths`, rows beyond them have no key and give exactly 0."""
    for name, value in (("lengths", lengths), ("query_lengths", query_lengths)):
        if value is not None:
            _whole_tensor("padding", name, value)
    if side not in ("left", "right"):
        raise InputError(f"padding: side={side!r} is not 'left' or 'right'")
    return Padding(lengths, query_lengths, side)


def documents(ids: Int[Tensor, "*lead n"], key_ids: Int[Tensor, "*lead n_k"] | None = None) -> Mask:
    """Packed sequences: attend within the same id. A negative id is padding. Fastest when ids ascend."""
    _whole_tensor("documents", "ids", ids)
    if key_ids is not None:
        _whole_tensor("documents", "key_ids", key_ids)
    return Documents(ids, key_ids)


def blocks(size: int, layout: Bool[Tensor, "*batch I J"] | None = None) -> Mask:
    """Within one's own block of `size` positions; or, with a layout, block I to block J where it is True."""
    _whole_number("blocks", "size", size, least=1)
    return BlockDiagonal(size) if layout is None else BlockLayout(size, _truth("blocks: layout", layout))


def global_tokens(index: Int[Tensor, "*lead g"] | Sequence[int]) -> Mask:
    """These positions attend to every key, and every query attends to them."""
    follows = not isinstance(index, Tensor)
    index = torch.as_tensor(index, dtype=None if len(index) else torch.long)
    _whole_tensor("global_tokens", "index", index)
    return GlobalTokens(index.long(), follows)


def random_blocks(size: int, count: int, seed: int = 0) -> Mask:
    """Each block of `size` queries attends to `count` random blocks of keys, drawn from the seed alone."""
    _whole_number("random_blocks", "size", size, least=1)
    _whole_number("random_blocks", "count", count, least=1)
    return RandomBlocks(size, count, seed)


def positions(index: Int[Tensor, "*lead m"] | Sequence[int]) -> Mask:
    """Chosen keys. [m]: the same for every query; [..., n_q, m]: a list per query. -1 chooses nothing."""
    follows = not isinstance(index, Tensor)
    index = torch.as_tensor(index, dtype=None if len(index) else torch.long)
    _whole_tensor("positions", "index", index)
    return Positions(index.long(), follows)


def dense(tensor: Bool[Tensor, "*batch n_q n_k"]) -> Mask:
    """Any bool tensor that broadcasts to the scores. True = may attend."""
    tensor = _truth("dense", tensor)
    if tensor.ndim < 2:
        raise ShapeError(
            f"dense: the mask has shape {tuple(tensor.shape)}; expected [..., n_q, n_k] (or padding(lengths), positions(index))"
        )
    return Dense(tensor)


def per_head(masks: Sequence[Mask]) -> Mask:
    """One mask for each head, in order."""
    if not masks or not all(isinstance(mask, Mask) for mask in masks):
        raise InputError("per_head: expected a list of masks, one per head")
    return PerHead(tuple(masks))


def _align(align: Align, who: str) -> Align:
    if align is not None and not isinstance(align, int) and align not in ("start", "end"):
        raise InputError(f"{who}: align={align!r} is not 'start', 'end' or a whole number")
    return align


def _whole_number(who: str, name: str, value: object, least: int) -> None:
    if not isinstance(value, int | torch.SymInt) or value < least:
        raise InputError(f"{who}: {name}={value!r}; expected a whole number, {least} or more")


def _whole_tensor(who: str, name: str, value: object) -> None:
    if not isinstance(value, Tensor) or value.dtype.is_floating_point or value.dtype in (torch.bool, torch.complex64):
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise DTypeError(f"{who}: {name} is {kind}; expected a tensor of whole numbers")


def _truth(who: str, value: object) -> Tensor:
    if not isinstance(value, Tensor) or value.dtype != torch.bool:
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        cure = "; a float tensor is a bias: pass it as mask=tensor itself" if "float" in str(kind) else ""
        raise DTypeError(f"{who}: {kind} where a bool tensor was expected (True = may attend){cure}")
    return value
