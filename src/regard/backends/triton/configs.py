"""Sizes of tiles, warps and pipeline stages: (BLOCK_M, BLOCK_N, warps, stages) by kernel, and where more warps are
worth a spilled register, the most registers of a thread.

Where a line names several sizes, benchmarks/results/gpu_h200.md has their times; what is not in its list of tiles
(float32, heads wider than 128, scores pair by pair other than the tanh sum) is a guess that fits the registers.
"""

from __future__ import annotations

from regard.backends.triton import codes

Tiles = tuple[int, ...]

OVERRIDE: dict[str, Tiles] = {}  # by kernel; for tests and for measuring


def choose(kernel: str, score: int, normalizer: int, d: int, d_v: int, bytes_each: int) -> Tiles:
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
        if width > 128:
            return (64, 64, 4, 2)
        # Softmax and the gate keep more in registers than eight warps have to spare.
        busy = width <= 64 and (normalizer == codes.SOFTMAX or score == codes.GATED)
        return (128, 64, 4, 3) if busy else (128, 64, 8, 3)
    if kernel == "backward_queries":
        return (64, 64, 4, 3) if width <= 64 else (128, 64, 8, 3) if width <= 128 else (64, 32, 4, 1)
    if width > 128:
        return (32, 32, 4, 1)
    if width > 64:  # four warps and 64 keys are as fast without a gate, and spill with one
        return (64, 128, 8, 2)
    return (32, 128, 4, 3) if score == codes.GATED or normalizer == codes.SPARSEMAX else (64, 64, 4, 3)


def _pair_by_pair(kernel: str, score: int, width: int, bytes_each: int) -> Tiles:
    if kernel == "tanh_queries":
        return (128, 32, 4, 2)  # a thread per query, its keys inside: 128 = threads
    if kernel == "tanh_keys":
        return (32, 128, 4, 2)
    if kernel == "forward" and score == codes.TANH and width <= 64 and bytes_each == 2:
        return (64, 128, 8, 2)
    return (32, 64, 4, 2) if width <= 128 else (32, 32, 4, 1)
