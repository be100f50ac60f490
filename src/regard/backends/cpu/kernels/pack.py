"""Keys and values as the kernels read them: transposed, tile by tile."""

from __future__ import annotations

from regard.backends.cpu.kernels.contents import pack_tile
from regard.backends.cpu.kernels.jit import entry


@entry
def pack(source, n_k, depth, width, tile, tiles, exps, begin, end, to, most):
    """Tiles begin..end of [.., n_k, width] into [.., tiles, depth, tile], behind each its e^(2k) if `exps`."""
    size = depth * tile * (2 if exps else 1)
    for task in range(begin, end):
        at, t = task // tiles, task % tiles
        most[task] = pack_tile(source, at * n_k * width, depth, width, n_k, t * tile, tile, to, task * size, exps)
