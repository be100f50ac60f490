"""Another length is no reason to compile another kernel: what Triton makes of the arguments of every launch, without a
GPU and without compiling."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest
import torch
from torch import nn

pytest.importorskip("triton")


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    """Of its own: it makes Triton believe in a GPU."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        yield alone


def kernels(name: str, d: int, lengths: tuple[tuple[int, int], ...]) -> dict[str, int]:
    """Of each kernel, how many are compiled for a forward and backward pass over (queries, keys) of these lengths."""
    import triton
    from triton.backends.compiler import GPUTarget

    from regard import attention, masks, normalizers, scores
    from regard.backends import triton as backend
    from regard.backends.triton import launch

    class Target:
        def get_current_target(self) -> Any:
            return GPUTarget("cuda", 90, 32)

        def get_current_device(self) -> int:
            return 0

    triton.runtime.driver.set_active(Target())
    found: dict[str, set[str]] = {}

    def start(kernel: Any, programs: tuple[int], *arguments: Any, **constants: Any) -> None:
        binder = kernel.device_caches[0][4]
        found.setdefault(kernel.__name__, set()).add(str(binder(*arguments, debug=False, **constants)[1]))

    launch.start = start
    backend.why_not = lambda *_: None
    score, normalizer = {
        "additive": (
            scores.TanhSum(d, heads=4) + scores.RelativeBias(4, 8, align="start"),
            normalizers.Softmax(sink=True),
        ),
        "gated": (scores.Gated(d, d, heads=4), normalizers.ReLU()),
        "gaussian": (scores.Gaussian(), normalizers.Sigmoid()),
        "dot": (scores.ScaledDot() + scores.Alibi(4, align="start"), normalizers.Entmax(1.5)),
    }[name]
    assert isinstance(score, nn.Module)
    for n_q, n_k in lengths:
        query, key, value = (torch.zeros(8, 4, n, d, requires_grad=True) for n in (n_q, n_k, n_k))
        mask = masks.padding(torch.full((8,), n_k)) & masks.window(9, 9, align="start")
        out = attention(query, key, value, score=score, normalizer=normalizer, mask=mask, backend="triton")
        out.sum().backward()
    return {kernel: len(keys) for kernel, keys in found.items()}


@pytest.mark.parametrize("name", ["additive", "gated", "gaussian", "dot"])
def test_lengths_share_their_kernels(process: ProcessPoolExecutor, name: str) -> None:
    lengths = tuple((1 + 7 * n % 90, 1 + 11 * n % 90) for n in range(24))
    one, many = (process.submit(kernels, name, 64, some).result() for some in (lengths[5:6], lengths))
    assert many == one
    assert len(one) >= 3
