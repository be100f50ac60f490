"""Noise as a function of (seed, batch element, query, key) alone.

No generator state: a tile that is recomputed in backward, on another backend or on another day sees
the same noise. The mixing step is C. Wellons' "lowbias32" 32-bit integer hash, written in int64
arithmetic (torch has no uint32 shifts); a kernel computes the same bits with native uint32.
"""

from __future__ import annotations

from math import prod

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.shapes import Tile

DROPOUT, GUMBEL = 0, 1  # independent streams of one seed
_LOW = 0xFFFFFFFF


def mix(x: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """Scramble 32 bits; int64 multiplication wraps, its low 32 bits are those of uint32."""
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & _LOW
    x = ((x ^ (x >> 15)) * 0x846CA68B) & _LOW
    return x ^ (x >> 16)


def uniform(seed: Int[Tensor, ""], tile: Tile, stream: int) -> Float[Tensor, "*batch r c"]:
    """Numbers strictly between 0 and 1, in float32, one for each pair of the tile."""
    bits = mix(of_rows(seed, tile, stream) ^ of_columns(tile))
    return ((bits >> 9).float() + 0.5) * 2.0**-23  # 23 bits: with 24 the last one would round up to 1


def of_rows(seed: Int[Tensor, ""], tile: Tile, stream: int) -> Int[Tensor, "*batch r 1"]:
    """Each query's share in the noise of its pairs, 32 bits."""
    batch = tile.extent.batch
    element = torch.arange(prod(batch), device=tile.rows.device).reshape(*batch, 1, 1)
    key = mix(mix((seed + stream * 0x9E3779B9) & _LOW) ^ ((seed >> 32) & _LOW))
    return mix(mix(key ^ mix(element & _LOW)) ^ mix(tile.i & _LOW))


def of_columns(tile: Tile) -> Int[Tensor, "1 c"]:
    """Each key's share."""
    # 0x85EBCA6B as a negative number, with the same 32 bits: a compiler may hold positions in int32.
    return mix((tile.j - 0x7A143595) & _LOW)


def new_seed(device: torch.device) -> Int[Tensor, ""]:
    """A fresh seed from torch's own generator, so that torch.manual_seed makes a program repeatable."""
    return torch.randint(2**62, (), device=device, dtype=torch.int64)
