"""From tensors to kernel launches. Only this module and the kernels import Triton; only operators import this."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.backends.triton import codes, configs
from regard.backends.triton.kernels import additive, backward, biases, forward, threshold, tokens
from regard.backends.triton.plan import Lowering, Plan, block_map, content_of, two_axes
from regard.core.formula import Call
from regard.core.normalizers import Softmax
from regard.core.shapes import Extent

LOG2E = 1 / math.log(2)
EXACTNESS = {torch.float16: codes.HALF, torch.bfloat16: codes.BRAIN}
SLICE = 32  # rows whose score gradients a program of the tanh sum holds at once
PASSES = {codes.SPARSEMAX: 30, codes.ENTMAX15: 30, codes.ENTMAX: 60}  # most passes over the keys for a threshold


@dataclass
class Problem:
    """One call with everything its kernels share."""

    query: Tensor  # [outer, heads, n_q, d], and so on
    key: Tensor
    value: Tensor
    gate: list[Tensor]  # of Gated, its parameter
    call: Call
    extent: Extent
    scale: float
    plan: Plan

    @classmethod
    def of(
        cls, query: Tensor, key: Tensor, value: Tensor, gate: list[Tensor], call: Call, extent: Extent, scale: float
    ) -> Problem:  # fmt: skip
        q, k, v = (rowwise(two_axes(x, extent, 2)) for x in (query, key, value))
        plan = Lowering(extent).plan(call.score, call.normalizer, call.mask)
        problem = cls(q, k, v, gate, call, extent, scale, plan)
        problem._prepare()
        return problem

    def _prepare(self) -> None:
        plan = self.plan
        self.outer, self.heads = self.query.shape[:2]
        self.n_q, self.n_k = self.query.shape[2], self.key.shape[2]
        self.elements = self.outer * self.heads
        self.device = self.query.device
        self.exactness = EXACTNESS.get(self.query.dtype, codes.WHOLE)
        self.half = self.exactness != codes.WHOLE
        score = plan.score
        if score == codes.GAUSSIAN and not self.half:
            score = codes.DISTANCE
        self.score = score
        # The score is pre · content, changed by biases and caps, times factor; factor > 0, so that a maximum may be
        # taken before it.
        self.pre_needed = len(plan.mods) > 1 or self.scale <= 0
        halved = score == codes.GATED and self.exactness == codes.BRAIN  # see `product`
        scale = self.scale / 2 if halved else self.scale
        self.pre, self.factor = (scale, 1.0) if self.pre_needed else (1.0, scale)
        self.linear = self.factor if plan.normalizer in (codes.RELU, codes.IDENTITY) else 1.0
        self.keep = 1 / max(1 - self.call.dropout, 1e-38) if self.call.dropout > 0 else 1.0
        nothing = (self.query, 0, 0, 0)
        self.a, self.c, self.q_units, self.k_units = nothing, nothing, nothing, nothing
        self.gates = (nothing[:3], nothing[:3])
        self.tanh_v = (self.query, self.query, self.query, 0, 0)
        if score == codes.GATED:
            factor = 0.5 if halved else -LOG2E  # as `gate` takes its sum
            self.gates = gates(self.gate[0], self.query.shape[-1])
            self.a, self.c = (share(x, g, factor) for x, g in zip((self.query, self.key), self.gates, strict=True))
        elif score == codes.GAUSSIAN:
            self.a, self.c = (share(x, None, -0.5) for x in (self.query, self.key))
        elif score >= codes.TANH:
            self._units()
        sink = self.call.normalizer.sink if isinstance(self.call.normalizer, Softmax) else None
        self.has_sink = sink is not None
        self.sink = nothing
        if sink is not None:
            sink = two_axes(sink.detach().float().reshape(sink.shape or (1, 1, 1)), self.extent, 2)
            self.sink = (sink, *codes.varying(sink.stride(0), sink.stride(1), 0))
        self.seed = torch.zeros(1, dtype=torch.int64, device=self.device) if self.call.seed is None else self.call.seed

    def _units(self) -> None:
        """Hidden-major copies; for the tanh sum their exponentials, and what the kernels need of v."""
        tanh = self.score == codes.TANH
        limits = torch.zeros(2, dtype=torch.int32, device=self.device)
        self.q_units = strided(hidden_major(self.query, tanh, limits[:1]))
        self.k_units = strided(hidden_major(self.key, tanh, limits[1:]))
        if tanh:
            v = parameter_v(self.call).float()
            minus = nn.functional.pad(-2 * v, (0, v.shape[-1] % 2))
            per_head = int(v.ndim > 1 and len(v) > 1)
            self.tanh_v = (minus, v.sum(-1), limits.view(torch.float32), minus.shape[-1] * per_head, per_head)

    # What a launch needs.

    def sizes(self, kernel: str) -> configs.Tiles:
        d, d_v = self.query.shape[-1], self.value.shape[-1]
        each = (self.value if self.score >= codes.TANH else self.query).element_size()  # of what is multiplied
        return configs.choose(
            kernel, self.score, self.plan.normalizer, self.plan.walk, power_of_2(d), power_of_2(d_v), each
        )

    def map(self, block_m: int, block_n: int, flip: bool) -> tuple[Any, ...]:
        if self.plan.walk != codes.LISTED:
            return (self.seed, self.seed, *codes.varying(0, 0, 0, 0, 0, 0))
        assert self.call.mask is not None
        return block_map(self.call.mask, self.extent, block_m, block_n, flip)

    def precision(self) -> str:
        """Whole float32 products, unless torch's own matrix products may take tf32."""
        return "tf32" if self.half or torch.get_float32_matmul_precision() != "highest" else "tf32x3"

    def constants(self, block_m: int, block_n: int) -> dict[str, Any]:
        plan, d, d_v = self.plan, self.query.shape[-1], self.value.shape[-1]
        at, left, right = plan.band
        return {
            "SCORE": self.score, "MODS": plan.mods, "PRE": self.pre_needed, "NORM": plan.normalizer, "TREE": plan.tree,
            "WALK": plan.walk, "BAND": at, "LEFT": left, "RIGHT": right, "WIDTH": d, "BLOCK_D": power_of_2(d),
            "WIDTH_V": d_v, "BLOCK_V": power_of_2(d_v), "BLOCK_M": block_m, "BLOCK_N": block_n, "FAST": self.exactness,
            "PRECISION": self.precision(), "UNROLL": 2,
        }  # fmt: skip

    @property
    def dropout(self) -> bool:
        return self.call.dropout > 0

    @property
    def wide(self) -> bool:
        """Weights without a bound do not fit into float16."""
        return self.query.dtype == torch.float16 and self.plan.normalizer in (codes.RELU, codes.IDENTITY)

    def split(self, rows: int, columns: int) -> tuple[int, int]:
        """The tile, if a loop over units can give each thread a small tile of it."""
        return (rows, columns) if self.score == codes.TANH and rows % 8 == 0 and columns % 16 == 0 else (0, 0)

    def log_factor(self) -> float:
        return self.factor * LOG2E if self.plan.normalizer == codes.SOFTMAX else self.factor


def rowwise(x: Tensor) -> Tensor:
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def strided(x: Tensor) -> tuple[Tensor, int, int, int]:
    return x, x.stride(0), x.stride(1), x.stride(2)


def power_of_2(d: int) -> int:
    return max(16, 1 << (d - 1).bit_length())


TOKENS = 64  # that a program of kernels/tokens.py takes


Numbers = tuple[Tensor, int, int]  # of a gate, with the distance of heads and of numbers


def share(x: Tensor, gate: Numbers | None, factor: float) -> tuple[Any, ...]:
    """factor · x·gate of every token, or factor · x·x: [outer, heads, n] with its strides."""
    outer, heads, n, d = x.shape
    out = torch.empty(outer, heads, n, dtype=torch.float32, device=x.device)
    sizes = {"WIDTH": d, "BLOCK_D": power_of_2(d), "BLOCK": TOKENS}
    start(
        tokens.shares, grid(n, TOKENS, outer * heads), strided(x), gate or (x, 0, 0), out, n, heads, factor,
        SQUARED=gate is None, **sizes,
    )  # fmt: skip
    return out, *codes.varying(*out.stride())


def gates(gate: Tensor, d: int) -> tuple[Numbers, Numbers]:
    """A gate's numbers for queries and for keys."""
    gate = gate.detach()[..., 0]
    distances = gate.stride(0) if gate.ndim > 1 and len(gate) > 1 else 0, gate.stride(-1)
    return (gate[..., :d], *distances), (gate[..., d:], *distances)


def hidden_major(x: Tensor, exponential: bool, limit: Tensor) -> Tensor:
    """[outer, heads, units, n], more of both than there are, so that a kernel may read past the end."""
    outer, heads, n, d = x.shape
    rows, length = d + d % 2, -(-n // 256) * 256
    out = torch.empty(outer, heads, rows, length, dtype=torch.float32, device=x.device)
    sizes = {"WIDTH": d, "BLOCK_D": power_of_2(d), "BLOCK": TOKENS}
    start(
        tokens.hidden_major, grid(length, TOKENS, outer * heads), strided(x), out, limit, n, rows, length, heads,
        EXPONENTIAL=exponential, **sizes,
    )  # fmt: skip
    return out


def parameter_v(call: Call) -> Tensor:
    v: Any = content_of(call.score).v
    return v.detach()


def tiles_of(n: int, block: int) -> int:
    return -(-n // block)


def grid(n: int, block: int, elements: int) -> tuple[int]:
    return (tiles_of(n, block) * elements,)


def launching(tiles: configs.Tiles) -> tuple[int, int, dict[str, int]]:
    """(queries, keys) of a tile, and how the program that works on it is compiled."""
    m, n, warps, stages, *registers = tiles
    options = {"num_warps": warps, "num_stages": stages}
    return m, n, options | ({"maxnreg": registers[0]} if registers else {})


def start(kernel: Any, programs: tuple[int], *arguments: Any, **constants: Any) -> None:
    """Every launch passes through here."""
    kernel[programs](*arguments, **constants)


def statistic(p: Problem) -> Tensor:
    """[elements, n_q]: log2 Σ 2^s for softmax, τ for what has a threshold, nothing for the others."""
    norm = p.plan.normalizer
    stat = torch.empty(p.elements, p.n_q, dtype=torch.float32, device=p.device)
    if norm >= codes.SPARSEMAX:
        m, n, options = launching(p.sizes("threshold"))
        alpha = 2.0 if norm == codes.SPARSEMAX else p.plan.floats[0]
        constants = p.constants(m, n)
        constants = {k: v for k, v in constants.items() if k not in ("WIDTH_V", "BLOCK_V")}
        start(
            threshold.threshold, grid(p.n_q, m, p.elements),
            strided(p.query), strided(p.key), p.a, p.c, p.q_units, p.k_units, p.tanh_v, stat,
            p.map(m, n, False), p.plan.tensors, p.plan.ints,
            p.plan.floats, p.n_q, p.n_k, p.heads, p.pre, p.factor * (alpha - 1), PASSES[norm],
            **constants, **options,
        )  # fmt: skip
    return stat


def attend(p: Problem) -> tuple[Tensor, Tensor]:
    """(output [outer, heads, n_q, d_v], statistic)."""
    stat = statistic(p)
    m, n, options = launching(p.sizes("forward"))
    out = torch.empty(p.outer, p.heads, p.n_q, p.value.shape[-1], dtype=p.value.dtype, device=p.device)
    start(
        forward.forward, grid(p.n_q, m, p.elements),
        strided(p.query), strided(p.key), strided(p.value), p.a, p.c, p.q_units, p.k_units, p.tanh_v, strided(out),
        stat, p.sink, p.seed, p.map(m, n, False), p.plan.tensors,
        p.plan.ints, p.plan.floats, p.n_q, p.n_k, p.heads, p.pre, p.log_factor(), p.keep * p.linear, p.call.dropout,
        HAS_SINK=p.has_sink, DROPOUT=p.dropout, WIDE=p.wide, SPLIT=p.split(m, n), **p.constants(m, n), **options,
    )  # fmt: skip
    return out, stat


@dataclass
class Gradients:
    query: Tensor
    key: Tensor
    value: Tensor
    v: Tensor | None
    gate: Tensor | None
    sink: Tensor | None
    delta: Tensor  # for what else is asked for


def gradients(p: Problem, grad: Tensor, out: Tensor, stat: Tensor) -> Gradients:
    """Of [outer, heads, ...] tensors, in the types of what they belong to."""
    delta = torch.empty(p.elements, p.n_q, dtype=torch.float32, device=p.device)
    grad = rowwise(grad)
    if p.plan.normalizer >= codes.SPARSEMAX:
        _queries(p, grad, out, stat, delta, what=1)
    v = gate = None
    if p.score == codes.TANH:
        dq, v = _tanh_queries(p, grad, out, stat, delta)
        dk, dv = _tanh_keys(p, grad, stat, delta)
    elif p.score == codes.EXACT:
        dq, dk = torch.zeros_like(p.query), torch.zeros_like(p.key)
        if p.plan.normalizer == codes.SOFTMAX:
            delta = (grad.float() * out.float()).sum(-1).reshape(p.elements, p.n_q)
        _, dv, _ = _keys(p, grad, stat, delta)
    else:
        dq, da = _queries(p, grad, out, stat, delta, what=0)
        dk, dv, dc = _keys(p, grad, stat, delta)
        if p.score == codes.GATED:
            gate = torch.cat([_of_gate(x, share) for x, share in ((p.query, da), (p.key, dc))], -1)
    sink = None
    if p.has_sink:
        # The sink has weight exp(sink - lse) and no value: its gradient is -weight · δ.
        weight = torch.exp2(p.sink[0][..., 0, 0, None] * LOG2E - stat.reshape(p.outer, p.heads, p.n_q))
        sink = -(weight * delta.reshape(p.outer, p.heads, p.n_q)).sum(-1)
    return Gradients(dq, dk, dv, v, gate, sink, delta)


def _of_gate(x: Tensor, share: Tensor) -> Tensor:
    """Σ share · x over tokens: [heads, d]."""
    return (share[..., None, :] @ x.float())[..., 0, :].sum(0)


def _queries(p: Problem, grad: Tensor, out: Tensor, stat: Tensor, delta: Tensor, what: int) -> tuple[Tensor, Tensor]:
    m, n, options = launching(p.sizes("backward_queries"))
    dq = torch.empty(p.query.shape if what == 0 else (1, 1, 1, 1), dtype=p.query.dtype, device=p.device)
    da = torch.empty(p.outer, p.heads, p.n_q, dtype=torch.float32, device=p.device) if p.score == codes.GATED else delta
    start(
        backward.backward_queries, grid(p.n_q, m, p.elements),
        strided(p.query), strided(p.key), strided(p.value), p.a, p.c, p.gates[0], p.q_units, p.k_units, p.tanh_v, strided(out),
        strided(grad), stat, delta, strided(dq), da, p.seed, p.map(m, n, False), p.plan.tensors, p.plan.ints,
        p.plan.floats, p.n_q, p.n_k, p.heads, p.pre, p.log_factor(), p.scale, p.call.dropout, p.keep,
        DROPOUT=p.dropout, CAPPED=p.plan.capped, WHAT=what, **p.constants(m, n), **options,
    )  # fmt: skip
    return dq, da


def _keys(p: Problem, grad: Tensor, stat: Tensor, delta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    m, n, options = launching(p.sizes("backward_keys"))
    dk, dv = (torch.empty(x.shape, dtype=x.dtype, device=p.device) for x in (p.key, p.value))
    dc = torch.empty(p.outer, p.heads, p.n_k, dtype=torch.float32, device=p.device) if p.score == codes.GATED else delta
    start(
        backward.backward_keys, grid(p.n_k, n, p.elements),
        strided(p.query), strided(p.key), strided(p.value), p.a, p.c, p.gates[1], p.q_units, p.k_units, p.tanh_v, strided(grad),
        stat, delta, strided(dk), strided(dv), dc, p.seed, p.map(m, n, True), p.plan.tensors, p.plan.ints,
        p.plan.floats, p.n_q, p.n_k, p.heads, p.pre, p.log_factor(), p.scale, p.call.dropout, p.keep,
        p.keep * p.linear, DROPOUT=p.dropout, CAPPED=p.plan.capped, WIDE=p.wide, **p.constants(m, n),
        **options,
    )  # fmt: skip
    return dk, dv, dc


def _tanh_queries(p: Problem, grad: Tensor, out: Tensor, stat: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of queries and of v [heads, units]."""
    m, n, options = launching(p.sizes("tanh_queries"))
    units, n_q = p.query.shape[-1], p.n_q
    curved = p.q_units[0].new_zeros(p.elements, *p.q_units[0].shape[2:])
    plain = torch.zeros_like(curved)
    total = torch.empty_like(delta)
    constants = p.constants(m, n)
    constants.pop("BLOCK_D")
    start(
        additive.tanh_queries, grid(p.n_q, m, p.elements),
        strided(p.query), strided(p.key), strided(p.value), p.q_units, p.k_units, p.tanh_v, strided(out), strided(grad),
        stat, delta, strided(curved), plain, total, tile_space(p.n_q, m, m * n, p), p.seed, p.map(m, n, False), p.plan.tensors, p.plan.ints,
        p.plan.floats, p.n_q, p.n_k, p.heads, p.pre, p.log_factor(), p.call.dropout, p.keep,
        DROPOUT=p.dropout, CAPPED=p.plan.capped, WITH_V=True, SLICE=min(n, SLICE), **constants, **options,
    )  # fmt: skip
    dv = total.sum(-1, keepdim=True) - 2 * plain[:, :units, :n_q].sum(-1)  # Σ dS tanh = Σ dS - 2 Σ dS r
    return _of_units(curved, p.query, p), p.scale * dv.reshape(p.outer, p.heads, units).sum(0)


def tile_space(n: int, block: int, size: int, p: Problem) -> Tensor:
    """One tile of memory for each program."""
    return torch.empty(grid(n, block, p.elements)[0], size, dtype=torch.float32, device=p.device)


def _of_units(curved: Tensor, like: Tensor, p: Problem) -> Tensor:
    """Σ dS v (1 - tanh²), token by token, from the hidden-major sums of dS (1 - tanh²) / 4."""
    v = parameter_v(p.call).float()
    v = v if v.ndim == 1 else v[:, None, :]
    sums = curved[:, : like.shape[-1], : like.shape[2]].mT.reshape(like.shape)
    return sums * (4 * p.scale * v)


def _tanh_keys(p: Problem, grad: Tensor, stat: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    m, n, options = launching(p.sizes("tanh_keys"))
    curved = p.k_units[0].new_zeros(p.elements, *p.k_units[0].shape[2:])
    dv = torch.empty(p.value.shape, dtype=p.value.dtype, device=p.device)
    constants = p.constants(m, n)
    constants.pop("BLOCK_D")
    start(
        additive.tanh_keys, grid(p.n_k, n, p.elements),
        strided(p.query), strided(p.key), strided(p.value), p.q_units, p.k_units, p.tanh_v, strided(grad), stat, delta,
        strided(curved), strided(dv), tile_space(p.n_k, n, m * n, p), p.seed, p.map(m, n, True), p.plan.tensors, p.plan.ints, p.plan.floats,
        p.n_q, p.n_k, p.heads, p.pre, p.log_factor(), p.call.dropout, p.keep, p.keep * p.linear,
        DROPOUT=p.dropout, CAPPED=p.plan.capped, WIDE=p.wide, SLICE=min(m, SLICE), **constants, **options,
    )  # fmt: skip
    return _of_units(curved, p.key, p), dv


def of_relative(p: Problem, table: Tensor, grad: Tensor, stat: Tensor, delta: Tensor) -> Tensor:
    """The gradient of a relative bias' table: [outer, heads, distances]."""
    at, offset = next((at, offset) for each, at, offset in p.plan.relative if each is table)
    m, n, options = launching(p.sizes("relative_sums"))
    sums = torch.zeros(grid(p.n_q, m, p.elements)[0], table.shape[-1], dtype=torch.float32, device=p.device)
    grad = rowwise(grad)
    start(
        biases.relative_sums, grid(p.n_q, m, p.elements),
        strided(p.query), strided(p.key), strided(p.value), p.a, p.c, p.q_units, p.k_units, p.tanh_v, strided(grad),
        stat, delta, sums, tile_space(p.n_q, m, m * n, p), p.seed, p.map(m, n, False), p.plan.tensors, p.plan.ints,
        p.plan.floats, p.n_q, p.n_k, p.heads, p.pre, p.log_factor(), p.call.dropout, p.keep, offset,
        table.shape[-1] // 2, SINCE=at, DIAGONALS=power_of_2(m + n), DROPOUT=p.dropout, CAPPED=p.plan.capped,
        **p.constants(m, n), **options,
    )  # fmt: skip
    return sums.reshape(p.outer, p.heads, -1, sums.shape[-1]).sum(2)
