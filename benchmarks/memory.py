"""How much memory additive attention takes beyond its inputs, forward and backward: `python -m benchmarks.memory`."""

from __future__ import annotations

import argparse
import resource
import time

import torch

import regard
from regard.scores import Additive


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=8192)
    parser.add_argument("--hidden", type=int, default=64)
    n, hidden = (options := parser.parse_args()).n, options.hidden
    score = Additive(64, 64, hidden)
    small = torch.randn(1, 1, 256, 64, requires_grad=True)  # what the libraries themselves take, taken before
    regard.attention(small, small, small, score=score, backend="chunked").sum().backward()
    query, key, value = (torch.randn(1, 1, n, 64, requires_grad=True) for _ in range(3))
    before, start = peak_megabytes(), time.perf_counter()
    regard.attention(query, key, value, score=score, backend="chunked").sum().backward()
    seconds, grown = time.perf_counter() - start, peak_megabytes() - before
    print(f"additive, n = {n:,}, hidden {hidden}, forward + backward with chunked: {grown:.0f} MB, {seconds:.0f} s")
    print(f"an n x n x hidden tensor alone: {n * n * hidden * 4 / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
