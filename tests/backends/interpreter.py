"""The GPU kernels on the CPU, by Triton's interpreter: it must be chosen before Triton is imported, and for all of a
process, so the calls run in a process of their own. What is here runs there."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from regard import attention
from regard.backends import triton
from regard.core.statistics import Summary, summarize
from regard.masks import Mask, causal
from regard.normalizers import Normalizer, Sparsemax
from regard.resolve import resolve
from regard.scores import Gated, RelativeBias, Score, TanhSum

KERNELS = (
    "forward",
    "threshold",
    "backward_queries",
    "backward_keys",
    "tanh_queries",
    "tanh_keys",
    "relative_sums",
    "column_sums",
    "top_weights",
)


def choose_interpreter() -> None:
    """At the start of the process."""
    os.environ["TRITON_INTERPRET"] = "1"
    torch.set_num_threads(1)


@dataclass(frozen=True)
class Call:
    """One attention call."""

    inputs: tuple[Tensor, Tensor, Tensor]
    score: Score | None = None
    normalizer: Normalizer | None = None
    mask: Mask | Tensor | None = None
    options: dict[str, Any] = field(default_factory=dict)  # dropout, seed

    def exact(self) -> Call:
        """The same call in float64."""
        inputs = tuple(x.detach().double().requires_grad_(x.requires_grad) for x in self.inputs)
        score, normalizer = (None if x is None else copy.deepcopy(x).double() for x in (self.score, self.normalizer))
        mask = self.mask.double() if isinstance(self.mask, Tensor) and self.mask.is_floating_point() else self.mask
        return Call(inputs, score, normalizer, mask, self.options)  # type: ignore[arg-type]

    def run(self, backend: str) -> list[Tensor]:
        """The output, and the gradients of queries, keys, values and parameters."""
        modules = [part for part in (self.score, self.normalizer) if isinstance(part, nn.Module)]
        leaves = [*self.inputs, *(p for part in modules for p in part.parameters())]
        leaves = [x for x in leaves if x.requires_grad]
        parts = {"score": self.score, "normalizer": self.normalizer, "mask": self.mask}
        out = attention(*self.inputs, backend=backend, **parts, **self.options)
        grad = torch.randn(out.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).to(out.dtype)
        return [out, *torch.autograd.grad(out, leaves, grad, allow_unused=True, materialize_grads=True)]


def run(call: Call, tile: tuple[int, int] = (16, 16), poison: bool = False) -> tuple[list[Tensor], ...]:
    """Output and gradients by the kernels, by the formula in the same type, and by the formula in float64. poison:
    memory that a kernel gets holds NaN until it is written."""
    from regard.backends.triton import configs

    configs.OVERRIDE.update({kernel: (*tile, 4, 1) for kernel in KERNELS})
    # Poison everything that kernels are given to write: also the slack behind a tensor must never be read.
    torch.utils.deterministic.fill_uninitialized_memory = poison  # type: ignore[attr-defined]
    torch.use_deterministic_algorithms(poison)
    try:
        ours = call.run("triton")
    finally:
        torch.use_deterministic_algorithms(False)
    return tuple([x.detach() for x in found] for found in (ours, call.run("reference"), call.exact().run("reference")))


def run_as_bfloat16(call: Call) -> tuple[list[Tensor], ...]:
    """`run`, but float16 takes the way of bfloat16, whose products the interpreter gets wrong."""
    from regard.backends.triton import codes, launch

    launch.EXACTNESS[torch.float16] = codes.BRAIN
    try:
        return run(call)
    finally:
        launch.EXACTNESS[torch.float16] = codes.HALF


def summaries(call: Call, top: int, pool: int) -> tuple[Summary, Summary]:
    """What the kernels see of the weights, and what the formula in float64 sees."""
    from regard.backends.triton import configs

    configs.OVERRIDE.update({kernel: (16, 16, 4, 1) for kernel in KERNELS})

    def seen(by: Callable[..., Summary], call: Call) -> Summary:
        resolved, query, key, _ = resolve(*call.inputs, call.score, call.normalizer, call.mask, **call.options)
        return by(query, key, resolved, top, pool)

    return seen(triton.summary, call), seen(summarize, call.exact())


class Model(nn.Module):
    """One attention by the kernels, with all that a graph must carry: parameters, a bias, a mask, noise."""

    def __init__(self) -> None:
        super().__init__()
        self.score = TanhSum(4, heads=2) + RelativeBias(2, 3)
        self.gated = Gated(4, 4)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        middle = attention(query, key, value, score=self.score, mask=causal(), dropout=0.2, seed=3, backend="triton")
        return attention(middle, key, value, score=self.gated, normalizer=Sparsemax(), backend="triton")


def _inputs(n: int) -> list[Tensor]:
    torch.manual_seed(n)
    return [torch.randn(1, 2, n, 4, requires_grad=True) for _ in "qkv"]


def compiled(lengths: tuple[int, ...]) -> tuple[int, list[tuple[list[Tensor], list[Tensor]]]]:
    """(graphs that were made; for each length what compiled and what plain code give, gradients too)."""
    import torch._functorch.config as functorch  # these import Triton: the interpreter must be chosen before
    from torch._dynamo.testing import CompileCounterWithBackend

    model, counter = Model(), CompileCounterWithBackend("aot_eager")
    with functorch.patch(enable_autograd_cache=False):
        by_graph = torch.compile(model, fullgraph=True, backend=counter)
        found = []
        for n in lengths:
            both = []
            for run in (by_graph, model):
                inputs = _inputs(n)
                out = run(*inputs)
                gradients = torch.autograd.grad(out.square().sum(), [*inputs, *model.parameters()])
                both.append([out.detach(), *gradients])
            found.append(tuple(both))
    return counter.frame_count, found


def exported(lengths: tuple[int, ...]) -> list[tuple[Tensor, Tensor]]:
    """For each length what a program that was exported once and what plain code give."""
    model, n = Model().eval(), torch.export.Dim("n", min=4, max=4096)
    program = torch.export.export(model, tuple(_inputs(17)), dynamic_shapes=({2: n},) * 3).module()
    return [(program(*_inputs(n)).detach(), model(*_inputs(n)).detach()) for n in lengths]
