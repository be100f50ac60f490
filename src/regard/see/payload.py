"""A picture as the numbers and texts that view.js draws: bytes with a scale for each row, compressed.

Small maps are float32, exact. Larger ones are whole numbers of at most 1 % of their row's largest weight.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.see.labels import visible
from regard.see.palette import CIVIDIS, SIGNED, Colour
from regard.see.picture import Picture
from regard.see.statistics import entropy, patterns, rollout

EXACT = 2**15  # cells of all maps up to which float32 is kept: 128 kB
FINE = 2**18  # cells up to which a row has 255 steps; beyond it 63, which is what 1 % needs and compresses well
THUMB = 96  # the sides of the small maps in the overview
ROLLOUT = 1024  # tokens up to which the rollout is computed


def pack(picture: Picture, theme: str = "auto") -> dict[str, Any]:
    """Everything that `mount(element, payload)` of view.js needs. It can be written as JSON."""
    weights = picture.weights
    cells = weights.numel()
    steps = None if cells <= EXACT else 255 if cells <= FINE else 63
    found = patterns(weights)
    each = picture.entropy if picture.entropy is not None else entropy(weights)
    of_maps = {"entropy": each.mean(-1) if each.shape[-1] else each.new_zeros(len(each)), **found}
    maps = []
    for i, name in enumerate(picture.maps):
        packed = {
            "name": visible(name) if name else "",
            **_packed(weights[i], steps),
            "entropy": _text(each[i]),
            "patterns": {key: round(x[i].item(), 6) for key, x in of_maps.items()},
        }
        if len(picture.maps) > 1 and max(weights.shape[1:]) > 3 * THUMB:  # smaller maps are drawn themselves
            packed["thumb"] = _packed(_shrunk(weights[i]), 255)
        if picture.top is not None:
            largest, places = picture.top
            packed["top"] = {
                "k": largest.shape[-1],
                "weights": _text(largest[i]),
                "indices": _base64(places[i].to(torch.int32).numpy().tobytes()),
            }
        if picture.removed is not None:
            packed["removed"] = _text(picture.removed[i])
        maps.append(packed)
    rolled = None
    if picture.layers is not None and not picture.pooled and weights.shape[1] == weights.shape[2] <= ROLLOUT:
        rolled = _packed(rollout(weights, picture.layers), 255 if steps else None)
    return {
        "title": _visible(picture.title),
        "note": _visible(picture.note),
        "theme": theme,
        "view": picture.view,
        "whole": picture.whole,
        "bare": picture.bare,
        "rows": [visible(t) for t in picture.rows],
        "columns": [visible(t) for t in picture.columns],
        "row_words": None if picture.row_words is None else list(picture.row_words),
        "column_words": None if picture.column_words is None else list(picture.column_words),
        "special_rows": [t in picture.special for t in picture.rows],
        "special_columns": [t in picture.special for t in picture.columns],
        "pooled": picture.pooled,
        "layers": None if picture.layers is None else list(picture.layers),
        "maps": maps,
        "rollout": rolled,
        "walk": picture.walk,
        "points": None if picture.points is None else picture.points.tolist(),
        "palette": {"weights": _hexes(CIVIDIS), "signed": {name: _hexes(stops) for name, stops in SIGNED.items()}},
    }


def _packed(weights: Float[Tensor, "n m"], steps: int | None) -> dict[str, Any]:
    shape = list(weights.shape)
    if steps is None:
        return {"kind": "f32", "shape": shape, "data": _text(weights)}
    signed = bool((weights < 0).any())
    steps = min(steps, 127) if signed else steps
    scale = weights.abs().amax(-1) / steps if weights.shape[-1] else weights.new_zeros(len(weights))
    whole = (weights / scale.clamp(min=torch.finfo(torch.float32).tiny)[:, None]).round().clamp(-steps, steps)
    data = whole.to(torch.int8 if signed else torch.uint8).numpy().tobytes()
    return {
        "kind": "i8" if signed else "u8",
        "shape": shape,
        "data": _base64(_deflated(data)),
        "deflated": True,
        "scale": _text(scale),
    }


def _deflated(data: bytes) -> bytes:
    """Weights repeat next to one another or not at all: runs alone are found as small and five times as fast."""
    packing = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_RLE)
    return packing.compress(data) + packing.flush()


def _shrunk(weights: Float[Tensor, "n m"]) -> Float[Tensor, "a b"]:
    """A small copy in which a cell keeps the largest weight of its part, so that no peak is lost."""
    n, m = weights.shape
    size = min(n, THUMB), min(m, THUMB)
    high = torch.nn.functional.adaptive_max_pool2d(weights[None], size)[0]
    low = -torch.nn.functional.adaptive_max_pool2d(-weights[None], size)[0]
    return torch.where(high >= -low, high, low)


def _text(x: Tensor) -> str:
    return _base64(x.contiguous().to(torch.float32).numpy().astype(np.dtype("<f4")).tobytes())


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _visible(text: str) -> str:
    return visible(text) if text else ""


def _hexes(stops: list[Colour]) -> list[str]:
    return ["#{:02x}{:02x}{:02x}".format(*colour) for colour in stops]
