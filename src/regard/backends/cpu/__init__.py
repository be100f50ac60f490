"""Compiled for the processor at hand, by numba: one strip of scores at a time, in memory O(n).

Kernels read flat arrays and know a handful of parts by number (`parts.py`); `plan.py` gets tensors ready,
`visible.py` says which keys each row may see, `threads.py` shares the work. Only a call imports numba.
"""

from __future__ import annotations

from importlib.util import find_spec

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from regard.backends.cpu import operator as _operator  # it defines the operators
from regard.backends.cpu.parts import NORMALIZERS, Parts, line_of, normalizer_code, table_of, take_apart
from regard.backends.cpu.plan import Inputs
from regard.core.formula import Call, extent_of, weights_of
from regard.core.normalizers import Softmax
from regard.core.parts import built_in, flatten
from regard.core.shapes import wide
from regard.core.statistics import Summary, summarize

HAVE_NUMBA = find_spec("numba") is not None


def why_not(query: Tensor, key: Tensor, value: Tensor, call: Call) -> str | None:
    if query.device.type != "cpu":
        return "the tensors are not on the CPU"
    if not HAVE_NUMBA:
        return "numba is not installed; pip install 'regard[fast]'"
    if torch.onnx.is_in_onnx_export():
        return "ONNX knows no operator of ours"
    parts = take_apart(call.score)
    if not isinstance(parts, Parts):
        return f"no kernel for {parts}"
    if type(call.normalizer) not in NORMALIZERS:
        return f"no kernel for {type(call.normalizer).__name__}"
    if not built_in(call.mask):
        return f"no kernel for a mask of your own ({type(call.mask).__name__})"
    extent = extent_of(call.score, query, key)
    if 0 in (*extent.batch, extent.n_q, extent.n_k, query.shape[-1], key.shape[-1], value.shape[-1]):
        return "an axis has size 0"
    if not torch.compiler.is_compiling() and any(unpack_dual(x).tangent is not None for x in (query, key, value)):
        return "no forward-mode derivatives"
    return None


def forward(
    query: Float[Tensor, "*batch n_q d_q"],
    key: Float[Tensor, "*batch n_k d_k"],
    value: Float[Tensor, "*batch n_k d_v"],
    call: Call,
) -> Float[Tensor, "*batch n_q d_v"]:
    return torch.ops.regard.cpu(*_arguments(query, key, value, call))[0].to(value.dtype)


def _arguments(query: Tensor, key: Tensor, value: Tensor, call: Call) -> tuple:
    """What the operator takes: the parts' tensors by what they are, the rest as one text."""
    parts = take_apart(call.score)
    assert isinstance(parts, Parts)
    extent = extent_of(call.score, query, key)
    query, key, factor = parts.project(query, key)
    line = line_of(parts.biases, extent)
    table = table_of(parts.biases, extent)
    units = getattr(parts.content, "v", None)
    sink = getattr(call.normalizer, "sink", None)
    if sink is not None:
        sink = sink.reshape(sink.shape[:1])
    extras = (x if x is None else x.to(query.dtype) for x in (units, line, table, sink))
    masks: list[Tensor] = []
    spec = flatten((parts.code, factor, parts.cap, *normalizer_code(call), call.mask), masks)
    seed = torch.zeros((), dtype=torch.int64) if call.seed is None else call.seed
    return query, key, wide(value), *extras, masks, spec, extent.batch, float(call.dropout), seed, call.seed is not None


def rows(
    query: Tensor, key: Tensor, call: Call, rows: Int[Tensor, " r"] | None = None
) -> Float[Tensor, "*batch r n_k"]:
    learned = any(x.requires_grad for x in (query, key, *call.score.parameters(), *call.normalizer.parameters()))
    if torch.compiler.is_compiling() or (learned and torch.is_grad_enabled()) or why_not(query, key, key, call):
        return weights_of(query, key, call, rows)
    return _weights(query, key, call, rows)[0]


def summary(query: Tensor, key: Tensor, call: Call, top: int, pool: int) -> Summary:
    def weigh(rows: Tensor) -> tuple[Tensor, Tensor | None]:
        weights, stat = _weights(query, key, call, rows)
        if not isinstance(call.normalizer, Softmax):
            return weights, None
        most, inverse = stat.unbind(-1)  # of the scores; of the sum of exp(score - most)
        sink = call.normalizer.sink
        nobody = torch.tensor(float("-inf")) if sink is None else sink.detach()[..., 0] if sink.ndim else sink.detach()
        return weights, torch.where(inverse > 0, most - inverse.log(), nobody.to(most.dtype))

    refused = torch.compiler.is_compiling() or why_not(query, key, key, call)
    return summarize(query, key, call, top, pool, weigh=None if refused else weigh)


def _weights(query: Tensor, key: Tensor, call: Call, rows: Tensor | None) -> tuple[Tensor, Tensor]:
    """The weights of some rows (all, if none are named), and the two numbers that backward would want of each."""
    from regard.backends.cpu import run

    with torch.no_grad():
        *tensors, masks, spec, batch, dropout, seed, noisy = _arguments(query, key, key[..., :1], call)
        options = _operator.options_of(spec, masks, dropout, seed, noisy)
        return run.weights(Inputs(*tensors), options, tuple(batch), rows)
