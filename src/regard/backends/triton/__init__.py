"""Fused kernels for the GPU, in Triton: any built-in score, normalizer and mask in one forward and one backward
template, in memory O(n). This module decides and prepares; importing it does not import Triton."""

from __future__ import annotations

import importlib.util
import os
from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from regard.backends.triton import operators as operators  # defines regard::triton
from regard.backends.triton.plan import BIASES, CONTENTS, NORMALIZERS, biases_of, content_of
from regard.core.biases import DenseBias, RelativeBias
from regard.core.formula import Call, extent_of, weights_of
from regard.core.parts import built_in, flatten
from regard.core.scores import Bilinear, Gated, Gaussian, ScaledDot, TanhSum
from regard.core.statistics import Summary, summarize

MOST_LISTED = 64  # more of a query's largest weights than this do not fit into registers
MOST_DISTANCES = 2**14 + 1  # of a relative bias: each tile of queries sums the gradient of every distance
WIDEST = 256  # heads wider than this do not fit into a multiprocessor's registers and shared memory


@lru_cache(maxsize=1)
def _installed() -> bool:
    return importlib.util.find_spec("triton") is not None


def why_not(query: Tensor, key: Tensor, value: Tensor, call: Call) -> str | None:
    device = query.device.type
    if device not in ("cuda", "cpu") or (device == "cpu" and os.environ.get("TRITON_INTERPRET") != "1"):
        return f"Triton's kernels run on a GPU, the tensors are on {device}"
    if not _installed():
        return "the package triton is not installed (a CUDA build of torch brings it)"
    if query.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        return f"kernels for float16, bfloat16 and float32 only, not {query.dtype}"
    content = content_of(call.score)
    if type(content) not in CONTENTS or not built_in(call.score):
        return f"no kernel for the score {type(content).__name__}"
    for bias in biases_of(call.score):
        if type(bias) not in BIASES:
            return f"no kernel for the bias {type(bias).__name__}"
        if isinstance(bias, RelativeBias | DenseBias) and bias.table.requires_grad and torch.is_grad_enabled():
            if isinstance(bias, DenseBias):
                return "no kernel for the gradient of DenseBias's table, which is n x n itself"
            if bias.table.shape[-1] > MOST_DISTANCES:
                return f"a relative bias over {bias.table.shape[-1]} distances; its gradient is summed for {MOST_DISTANCES}"
    if type(call.normalizer) not in NORMALIZERS:
        return f"no kernel for the normalizer {type(call.normalizer).__name__}"
    if not built_in(call.mask):
        return f"no kernel for the mask {type(call.mask).__name__}"
    if torch.onnx.is_in_onnx_export():
        return "ONNX knows no operator of ours"
    if 0 in (*query.shape, *key.shape, *value.shape):
        return "an axis has size 0"
    widths = {"d_k": key.shape[-1], "d_v": value.shape[-1]}
    widths["d_q"] = content.v.shape[-1] if isinstance(content, TanhSum) else query.shape[-1]
    for name, width in widths.items():
        if width > WIDEST:
            return f"{name}={width} is more than {WIDEST}, the widest that the kernels hold"
    if not torch.compiler.is_compiling() and any(unpack_dual(x).tangent is not None for x in (query, key, value)):
        return "no forward-mode derivatives"
    return None


def forward(
    query: Float[Tensor, "*batch n_q d_q"],
    key: Float[Tensor, "*batch n_k d_k"],
    value: Float[Tensor, "*batch n_k d_v"],
    call: Call,
) -> Float[Tensor, "*batch n_q d_v"]:
    extent = extent_of(call.score, query, key)
    query, key, scale = prepared(query, key, call)
    parts: list[Tensor] = []
    spec = flatten((call.score, call.normalizer, call.mask), parts)
    seed = torch.zeros((), dtype=torch.int64, device=query.device) if call.seed is None else call.seed
    noisy = call.seed is not None
    return torch.ops.regard.triton(
        query, key, value, gate_of(call), parts, spec, extent.batch, scale, float(call.dropout), seed, noisy
    )[0]


def rows(
    query: Tensor, key: Tensor, call: Call, rows: Int[Tensor, " r"] | None = None
) -> Float[Tensor, "*batch r n_k"]:
    return weights_of(query, key, call, rows)


@torch.no_grad()
def summary(query: Tensor, key: Tensor, call: Call, top: int, pool: int) -> Summary:
    if torch.compiler.is_compiling() or top > MOST_LISTED:
        return summarize(query, key, call, top, pool)
    from regard.backends.triton.launch import Problem
    from regard.backends.triton.seen import summarized

    extent = extent_of(call.score, query, key)
    query, key, scale = prepared(query, key, call)
    return summarized(Problem.of(query, key, key, gate_of(call), call, extent, scale), top, pool)


def gate_of(call: Call) -> list[Tensor]:
    """The parameter of a Gated score: each token's share of its gate is the kernels' own work."""
    content = content_of(call.score)
    return [content.gate] if isinstance(content, Gated) else []


def prepared(query: Tensor, key: Tensor, call: Call) -> tuple[Tensor, Tensor, float]:
    """(queries, keys, scale) as the kernels take them: what is done once per token, under ordinary autograd. Dot
    products stay in the type of the call, tanh sums need float32."""
    content = content_of(call.score)
    if isinstance(content, ScaledDot):
        return query, key, content.factor(key.shape[-1])
    if isinstance(content, Bilinear):
        dtype = torch.float32 if query.dtype == torch.float16 else query.dtype  # q W may leave float16's range
        return content.project(query, key)[0].to(dtype), key.to(dtype), 1.0
    if isinstance(content, TanhSum):
        return *content.project(query, key), 1.0
    if isinstance(content, Gaussian):
        if query.dtype == torch.float32:  # gradients are differences of sums: taken near 0 they lose no digits
            center = key.detach().mean(-2, keepdim=True)
            query, key = query - center, key - center
        return query, key, 1 / content.sigma**2
    return query, key, 1.0
