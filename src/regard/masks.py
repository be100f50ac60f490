"""The public names of `regard.core.masks`: which pairs exist, combined with `& | ~`."""

from regard.core.masks import (
    Mask,
    blocks,
    causal,
    dense,
    dilated,
    documents,
    global_tokens,
    padding,
    per_head,
    positions,
    random_blocks,
    strided,
    window,
)

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
