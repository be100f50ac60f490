"""The same seed twice, to the last bit: calls with noise on every backend, on several threads, and every module,
forward and backward; and evaluation, where nothing is drawn although dropout is configured.

In each repetition the seed, the parts and the lengths are others; what was allocated before lies about in memory.
On a GPU torch promises this of its own kernels only where it is asked for it, so there the row asks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from regard import BackendError, attention, masks
from regard.dispatch import BACKENDS
from tests.mechanisms import HEADS, NORMALIZERS, SCORES, D, normalizer, score
from torture.progress import track
from torture.table import Figure
from torture.zoo import ZOO, alive, moved

NAME = "determinism"
REPETITIONS = 100
BAR = f"{REPETITIONS} of {REPETITIONS} repetitions bit-equal"


def gradients(out: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    grad = torch.linspace(-1, 1, out.numel(), device=out.device).cos().reshape(out.shape).to(out.dtype)
    return [out.detach(), *torch.autograd.grad(out, leaves, grad, allow_unused=True, materialize_grads=True)]


def equal(once: list[Tensor], again: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(once, again, strict=True))


def calls(number: int, device: str) -> Iterator[tuple[str, Callable[[], list[Tensor]]]]:
    """One score and one normalizer on every backend, with dropout where it knows one."""
    of_score, of_normalizer = SCORES[number % len(SCORES)], NORMALIZERS[number % len(NORMALIZERS)]
    s, n = (part(row, dtype=torch.float32) for part, row in ((score, of_score), (normalizer, of_normalizer)))
    s, n = (part.to(device) if isinstance(part, nn.Module) else part for part in (s, n))
    parameters = [p for part in (s, n) if isinstance(part, nn.Module) for p in part.parameters()]
    generator = torch.Generator().manual_seed(number)
    shape = (3, HEADS, 90 + number, D)
    inputs = [torch.randn(shape, generator=generator).to(device).requires_grad_() for _ in range(3)]
    mask = masks.causal() & masks.padding(torch.tensor([90, 40, 0], device=device))
    for backend in BACKENDS:
        for dropout in (0.0, 0.3):

            def call(backend: str = backend, dropout: float = dropout) -> list[Tensor]:
                torch.manual_seed(number)  # which draws the seed of the call
                out = attention(*inputs, score=s, normalizer=n, mask=mask, dropout=dropout, backend=backend)
                return gradients(out, [*inputs, *parameters])

            yield f"{of_score} × {of_normalizer}, {backend}, dropout={dropout}", call


def modules(number: int, device: str) -> Iterator[tuple[str, Callable[[], list[Tensor]]]]:
    for of in ZOO:
        module, inputs = alive(of, seed=number)
        module, inputs = module.to(device), [x.to(device) for x in inputs]
        named = {name: moved(part, device) for name, part in of.named.items()}
        leaves = [p for p in module.parameters() if p.requires_grad]

        def call(training: bool, module: nn.Module = module, inputs: Any = inputs, named: Any = named, leaves: Any = leaves) -> list[Tensor]:  # fmt: skip
            module.train(training)
            if training:
                torch.manual_seed(number)
            return gradients(module(*inputs, **named), leaves) if leaves else [module(*inputs, **named)]

        for training in (True, False):
            yield f"{of}, {'training' if training else 'evaluation'}", lambda t=training, call=call: call(t)


def repetition(number: int, device: str) -> list[str]:
    """What was not the same twice."""
    broken = []
    for each, threads in ((calls, max(2, torch.get_num_threads())), (modules, torch.get_num_threads())):
        with on_threads(threads):
            for name, call in each(number, device):
                try:
                    if not equal(call(), call()):
                        broken.append(f"{name}, repetition {number}")
                except BackendError:  # a backend that does not know these parts
                    continue
    return broken


@contextmanager
def on_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run(quick: bool) -> Figure:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
    numbers = range(1 if quick else REPETITIONS)
    try:
        found = [repetition(number, device) for number in track(numbers, NAME)]
    finally:
        torch.use_deterministic_algorithms(False)
    same = sum(not broken for broken in found)
    return Figure(NAME, f"{same} of {len(found)}", same == len(found), [line for broken in found for line in broken])
