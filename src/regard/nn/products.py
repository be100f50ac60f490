"""x wᵀ + b without autograd, by the faster of the two libraries that torch has on a CPU."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F


def product(
    x: Float[Tensor, "m d"], w: Float[Tensor, "n d"], b: Float[Tensor, " n"] | None = None
) -> Float[Tensor, "m n"]:
    """For formulas that write their own gradient. `w` may be a transposed matrix: it is read as it lies."""
    if ONEDNN and 0 not in (*x.shape, *w.shape) and x.dtype == w.dtype == torch.float32 and x.device.type == "cpu":
        return torch.ops.mkldnn._linear_pointwise(x, w, b, "none", [], "")
    return F.linear(x, w, b)


def _helps() -> bool:
    """torch multiplies float32 by MKL, which leaves half of an AMD processor's AVX-512 unused; oneDNN, which torch
    has for layers, does not."""
    wide = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return wide and torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


ONEDNN = _helps()
