"""x wᵀ + b in float32 on a CPU, by the faster of the two libraries that torch has there.

torch multiplies by MKL, which leaves half of an AMD processor's AVX-512 unused; oneDNN, which torch has for compiled
layers, does not. What is small, of another type or elsewhere goes torch's usual way.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional as F

SMALL = 2**21  # multiplications that are over before oneDNN has begun


def product(
    x: Float[Tensor, "m d"], w: Float[Tensor, "n d"], b: Float[Tensor, " n"] | None = None
) -> Float[Tensor, "m n"]:
    """Without a gradient, for formulas that write their own. A transposed `w` is read as it lies."""
    if _helps(x, w, b):
        (rows, columns), (along, across) = w.shape, w.stride()
        if not (across == 1 and along >= columns) and not (along == 1 and across >= rows):
            w = w.contiguous()  # it may overlap itself, or have gaps
        return torch.ops.mkldnn._linear_pointwise(x, w, b, "none", [], "")
    return F.linear(x, w, b)


def linear(
    x: Float[Tensor, "*n d"], w: Float[Tensor, "m d"], b: Float[Tensor, " m"] | None = None
) -> Float[Tensor, "*n m"]:
    """F.linear, with its gradients."""
    if not _helps(x, w, b) or torch.is_autocast_enabled("cpu") or seen_through():
        return F.linear(x, w, b)
    return _Linear.apply(x.reshape(-1, x.shape[-1]), w, b).reshape(*x.shape[:-1], len(w))


def seen_through() -> bool:
    """Is somebody looking who must see torch's own operators: a compiler, an exporter, torch.func, forward mode?"""
    return (
        torch.compiler.is_compiling()
        or torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
    )


class Linear(nn.Linear):
    """torch's layer, by `linear`."""

    def forward(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n m"]:  # type: ignore[override]
        return linear(x, self.weight, self.bias)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, w)
        return product(x, w, b)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,) = grads
        x, w = ctx.saved_tensors
        again = _Linear.apply if torch.is_grad_enabled() else product  # under create_graph
        to_x, to_w, to_b = ctx.needs_input_grad
        return (
            again(g, w.T, None) if to_x else None,
            again(g.T, x.T, None) if to_w else None,
            g.sum(0) if to_b else None,
        )


def _helps(x: Tensor, w: Tensor, b: Tensor | None) -> bool:
    return (
        ONEDNN
        and x.numel() * w.shape[0] > SMALL
        and x.shape[-1] == w.shape[-1]
        and all(t is None or (t.dtype == torch.float32 and t.device.type == "cpu") for t in (x, w, b))
    )


def _there() -> bool:
    wide = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return wide and torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


ONEDNN = _there()
