"""Sizes of tiles, warps and pipeline stages: (BLOCK_M, BLOCK_N, warps, stages) by kernel, and where more warps are
worth a spilled register, the most registers of a thread.

Where a line names several sizes, benchmarks/results/gpu_h200.md has their times; what is not in its list of tiles
(float32, heads wider than 128, scores pair by pair other than the tanh sum) is a guess that fits the registers.
"""

from __future__ import annotations

from regard.backends.triton import codes

Tiles = tuple[int, ...]

OVERRIDE: dict[str, Tiles] = {}  # by kernel; for tests and for measuring


def choose(kernel: str, score: int, normalizer: int, walk: int, d: int, d_v: int, bytes_each: int) -> Tiles:
    if kernel in OVERRIDE:
        return OVERRIDE[kernel]
    width = max(d, d_v)
    if kernel == "top_weights":  # 64-bit numbers for each pair
        return (32, 64, 4, 2) if width <= 128 else (32, 32, 4, 1)
    if kernel == "relative_sums":
        return (64, 64, 4, 2) if width <= 64 and bytes_each == 2 else (32, 32, 4, 1)
    if score >= codes.TANH:
        return _pair_by_pair(kernel, score, width, bytes_each)
    if bytes_each == 4:
        return (64, 32, 4, 2) if width <= 64 else (32, 32, 4, 1)
    if kernel == "threshold":
        return (64, 64, 4, 3) if width <= 64 else (64, 64, 4, 2)
    if kernel == "forward":
        return _forward(score, normalizer, width)
    if kernel == "backward_queries":
        return _backward_queries(score, normalizer, walk, width)
    return _backward_keys(score, normalizer, walk, width)


def _forward(score: int, normalizer: int, width: int) -> Tiles:
    if width > 128:
        return (64, 64, 4, 2)
    if width > 64:
        return (128, 64, 8, 4)
    if score == codes.GATED:  # few queries to a warp: what softmax scales again at each step is half as much
        return (64, 128, 4, 3)
    return (128, 64, 4, 3) if normalizer in (codes.RELU, codes.IDENTITY) else (128, 64, 8, 3)


def _backward_queries(score: int, normalizer: int, walk: int, width: int) -> Tiles:
    if width > 128:
        return (64, 32, 4, 1)
    if width > 64:
        return (128, 64, 8, 3)
    if walk == codes.RANGE:  # partial blocks, of which small ones waste less
        return (64, 32, 4, 4)
    return (64, 64, 4, 3) if score == codes.GATED else (64, 128, 4, 3)


def _backward_keys(score: int, normalizer: int, walk: int, width: int) -> Tiles:
    if width > 128:
        return (32, 32, 4, 1)
    if width > 64:
        return (32, 64, 4, 3) if normalizer == codes.SIGMOID else (32, 128, 8, 3)
    if score == codes.GATED or walk == codes.RANGE:
        return (32, 64, 4, 3)
    return (32, 128, 4, 3) if normalizer in (codes.SOFTMAX, codes.SPARSEMAX) else (64, 64, 4, 3)


def _pair_by_pair(kernel: str, score: int, width: int, bytes_each: int) -> Tiles:
    if kernel == "tanh_queries":  # a thread per query, its keys inside: 128 = threads
        return (128, 64, 4, 2) if bytes_each == 2 else (128, 32, 4, 2)
    if kernel == "tanh_keys":
        return (32, 128, 4, 2)
    if kernel == "forward" and score == codes.TANH and width <= 64 and bytes_each == 2:
        return (64, 128, 8, 2, 128)
    return (32, 64, 4, 2) if width <= 128 else (32, 32, 4, 1)
