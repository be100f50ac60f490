"""Sizes of tiles, warps and pipeline stages: (BLOCK_M, BLOCK_N, warps, stages) by kernel, measured on an H200."""

from __future__ import annotations

from regard.backends.triton import codes

OVERRIDE: dict[str, tuple[int, int, int, int]] = {}  # by kernel; for tests and for measuring


def choose(kernel: str, score: int, normalizer: int, d: int, d_v: int, bytes_each: int) -> tuple[int, int, int, int]:
    if kernel in OVERRIDE:
        return OVERRIDE[kernel]
    width = max(d, d_v)
    if score >= codes.TANH:
        if kernel == "tanh_queries":
            return (128, 32, 4, 2)  # a thread per query, its keys inside: 128 = threads
        if kernel == "tanh_keys":
            return (32, 128, 4, 2)
        return (32, 64, 4, 2) if width <= 128 else (32, 32, 4, 1)
    if bytes_each == 4:
        return (64, 32, 4, 2) if width <= 64 else (32, 32, 4, 1)
    if kernel == "forward":
        return {32: (128, 64, 4, 3), 64: (128, 64, 4, 3), 128: (128, 64, 8, 3)}.get(width, (64, 64, 4, 2))
    if kernel == "threshold":
        return (128, 64, 4, 3) if width <= 64 else (64, 64, 4, 2)
    if kernel == "backward_queries":
        return (64, 64, 4, 3) if width <= 64 else (64, 64, 4, 2) if width <= 128 else (64, 32, 4, 1)
    return (64, 64, 4, 3) if width <= 64 else (64, 64, 8, 2) if width <= 128 else (32, 32, 4, 1)
