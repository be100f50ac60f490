"""Our Triton kernels on a GPU: correct first, then beside their peers in the same run.

    python -m benchmarks.gpu --seconds 150 --out results

Each kernel is compared with float64 before it is timed. Kernels are compiled ahead in processes of their own (they
need no GPU and fill Triton's cache). Times are medians of replayed CUDA graphs, ours and peers alike, on random
inputs; results are written after every measurement, so that a run that is cut off leaves what it has.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.gpu_table import page
from regard import attention, masks
from regard import normalizers as N
from regard import scores as S

Tiles = tuple[int, ...]  # as backends/triton/configs.py has them

START = time.perf_counter()
DEVICE = "cuda"
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}

SCORES: dict[str, Callable[[int, int], S.Score]] = {
    "dot": lambda d, h: S.ScaledDot(),
    "gated": lambda d, h: S.Gated(d, d, heads=h),
    "gaussian": lambda d, h: S.Gaussian(2.0 * d**0.5),
    "additive": lambda d, h: S.TanhSum(d, heads=h),
    "additive, large": lambda d, h: S.TanhSum(d, heads=h),  # on inputs that take the branch of plain tanh
    "exact": lambda d, h: S.Exact(),
    "alibi": lambda d, h: S.ScaledDot() + S.Alibi(h),
    "cap": lambda d, h: S.SoftCap(S.ScaledDot(), 5.0),
    "relative": lambda d, h: S.ScaledDot() + S.RelativeBias(h, 16),
}
NORMALIZERS: dict[str, Callable[[int, int], N.Normalizer]] = {
    "softmax": lambda n, h: N.Softmax(),
    "sink": lambda n, h: N.Softmax(sink=True, heads=h),
    "sigmoid": lambda n, h: N.Sigmoid(-torch.tensor(float(n)).log().item()),
    "relu": lambda n, h: N.ReLU(),
    "identity": lambda n, h: N.Identity(),
    "sparsemax": lambda n, h: N.Sparsemax(),
    "entmax1.5": lambda n, h: N.Entmax(1.5),
    "entmax1.3": lambda n, h: N.Entmax(1.3),
}


def mask_of(name: str, batch: int, n: int, device: str) -> masks.Mask | None:
    """The masks that the tables name."""
    if name == "none":
        return None
    if name == "causal":
        return masks.causal()
    if name == "window":
        return masks.window(512, 512) if n > 2048 else masks.window(40, 30)
    lengths = torch.arange(1, batch + 1, device=device) * n // batch
    if name == "padding":
        return masks.causal() & masks.padding(lengths)
    if name == "empty rows":
        return masks.padding(lengths, lengths // 2)
    if name == "documents":
        return masks.documents((torch.arange(n, device=device) * 5 // n).expand(batch, n))
    if name == "global":
        return masks.window(20, 20) | masks.global_tokens(torch.tensor([0, n // 2], device=device))
    if name == "blocks":
        return masks.blocks(48) | masks.random_blocks(32, 2)
    if name == "dilated":
        return masks.dilated(20, 20, 3)
    return masks.per_head([masks.causal(), masks.window(9, 5)])


@dataclass(frozen=True)
class Case:
    """One attention call on random inputs."""

    score: str
    normalizer: str = "softmax"
    mask: str = "none"
    dtype: str = "bf16"
    batch: int = 2
    heads: int = 2
    n: int = 300
    d: int = 64
    d_v: int = 64
    dropout: float = 0.0

    def __str__(self) -> str:
        more = f" dropout {self.dropout}" if self.dropout else ""
        shape = f"({self.batch}, {self.heads}, {self.n}, {self.d})"
        return f"{self.score} {self.normalizer} {self.mask} {self.dtype} {shape}{more}"

    def make(self, device: str, seed: int = 0) -> tuple[list[Tensor], dict[str, Any]]:
        torch.manual_seed(seed)
        dtype, large = DTYPES[self.dtype], 12.0 if "large" in self.score else 1.0
        q, k = (torch.randn(self.batch, self.heads, self.n, self.d, device=device, dtype=dtype) * large for _ in "qk")
        if self.score == "exact":
            q, k = q.round(), k.round()
        v = torch.randn(self.batch, self.heads, self.n, self.d_v, device=device, dtype=dtype)
        score, normalizer = SCORES[self.score](self.d, self.heads), NORMALIZERS[self.normalizer](self.n, self.heads)
        for part in (score, normalizer):
            part.to(device)
            for name, parameter in part.named_parameters():
                nn.init.normal_(parameter, std=0.05 if "gate" in name else 0.3)
                parameter.requires_grad_("table" not in name)
        call = {"score": score, "normalizer": normalizer, "mask": mask_of(self.mask, self.batch, self.n, device)}
        if self.dropout:
            call |= {"dropout": self.dropout, "seed": 5}
        return [x.requires_grad_() for x in (q, k, v)], call


def run(case: Case, device: str, backend: str = "triton", backward: bool = True) -> list[Tensor]:
    """Output and gradients of queries, keys, values and parameters."""
    inputs, call = case.make(device)
    if backend == "reference":
        inputs = [x.detach().double().requires_grad_() for x in inputs]
        call["score"], call["normalizer"] = call["score"].double(), call["normalizer"].double()
    leaves = [*inputs, *(p for p in [*call["score"].parameters(), *call["normalizer"].parameters()] if p.requires_grad)]
    out = attention(*inputs, backend=backend, **call)
    if not backward:
        return [out.detach()]
    generator = torch.Generator().manual_seed(3)
    grad = torch.randn(out.shape, generator=generator).to(device=out.device, dtype=out.dtype)
    return [out.detach(), *torch.autograd.grad(out, leaves, grad, allow_unused=True, materialize_grads=True)]


# Compiling ahead, without a GPU.


def compile_ahead(case: Case, override: dict[str, Tiles], backward: bool, alone: str | None) -> Any:
    """In a process of its own: run everything but the launches, and let Triton compile what they need."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    torch.set_num_threads(1)
    import triton
    from triton.backends.compiler import GPUTarget

    class Target:
        """A driver that only says what to compile for."""

        def get_current_target(self) -> Any:
            return GPUTarget("cuda", 90, 32)

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, device: int | None = None) -> int:
            return 0

        def get_active_torch_device(self) -> torch.device:
            return torch.device("cpu")

    triton.runtime.driver.set_active(Target())
    from regard.backends import triton as backend
    from regard.backends.triton import configs, launch

    notes: list[tuple[str, float, int]] = []

    def start(kernel: Any, programs: tuple[int], *arguments: Any, **constants: Any) -> None:
        begun = time.perf_counter()
        name = kernel.__name__
        if alone is None or alone == name:
            compiled = kernel.warmup(*arguments, grid=programs, **constants)
            notes.append((name, time.perf_counter() - begun, compiled.metadata.shared))

    launch.start = start
    backend.why_not = lambda *_: None
    configs.OVERRIDE.clear()
    configs.OVERRIDE.update(override)
    run(case, "cpu", backward=backward)
    return notes


# Measuring.


def left(deadline: float) -> float:
    return deadline - (time.perf_counter() - START)


def milliseconds(work: Callable[[], Any], seconds: float = 0.12) -> float:
    """The median time of a replayed CUDA graph; of plain calls where the work cannot be captured."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph: Any = torch.cuda.CUDAGraph()
    replay: Callable[[], Any]
    try:
        with torch.cuda.graph(graph):
            work()
        replay = graph.replay
    except Exception:
        torch.cuda.synchronize()
        replay = work
    times: list[float] = []
    replay()
    torch.cuda.synchronize()
    until = time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < until and len(times) < 100):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        replay()
        last.record()
        last.synchronize()
        times.append(first.elapsed_time(last))
    return statistics.median(times)


def relative(ours: Tensor, exact: Tensor) -> float:
    return float((ours.double() - exact).norm() / exact.norm().clamp(min=1e-12))


@dataclass
class Results:
    """Everything measured so far, written again after every step."""

    out: Path
    machine: str = ""
    correctness: list[dict[str, Any]] = field(default_factory=list)
    variants: list[dict[str, Any]] = field(default_factory=list)
    table: list[dict[str, Any]] = field(default_factory=list)
    compiled: list[dict[str, Any]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    best: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)  # that each step took
    attempted: list[str] = field(default_factory=list)  # steps; none is tried twice

    @classmethod
    def continued(cls, out: Path) -> Results:
        """With what an earlier process of the same run has found."""
        before = out / "gpu.json"
        return cls(out, **(json.loads(before.read_text()) if before.exists() else {}))

    def write(self) -> None:
        self.out.mkdir(parents=True, exist_ok=True)
        data = {name: value for name, value in vars(self).items() if name != "out"}
        (self.out / "gpu.json").write_text(json.dumps(data, indent=1))
        (self.out / "gpu.md").write_text(page(data))

    def fail(self, what: str) -> None:
        error = traceback.format_exc()
        first = [line for line in error.splitlines() if line.strip()]
        text = f"{what}: {first[-1][:400]} / " + " / ".join(first[-7:-1])[-1200:]
        self.failures.append(text)
        print("FAILED", text[:500], flush=True)
        self.write()


# What must be right, most important first.

CORRECT = [
    Case("dot", "relu"),
    Case("gated", "softmax"),
    Case("dot", "sigmoid"),
    Case("additive", "softmax", d=64),
    Case("dot", "sparsemax"),
    Case("dot", "softmax", "window"),
    Case("dot", "softmax", "causal", d=128, d_v=128),
    Case("dot", "entmax1.5"),
    Case("dot", "sink", "padding"),
    Case("gaussian", "softmax"),
    Case("additive, large", "softmax", d=64),
    Case("dot", "relu", "causal", "f32"),
    Case("gated", "softmax", "documents", "f16"),
    Case("gaussian", "softmax", "none", "f32", d=20),
    Case("additive", "sigmoid", "causal", "f32", d=33),
    Case("dot", "identity", "global", "f16"),
    Case("alibi", "softmax", "causal"),
    Case("cap", "softmax", "empty rows", d=96),
    Case("relative", "relu", "per head"),
    Case("dot", "softmax", "per head", dropout=0.3),
    Case("dot", "entmax1.3", "causal"),
    Case("exact", "identity", d=16),
    Case("dot", "softmax", "blocks", "f16", dropout=0.2),
    Case("dot", "sigmoid", "dilated", d=256, d_v=256),
    Case("dot", "softmax", "none", "f32", d=64),
    Case("dot", "sparsemax", "padding", "f32", d=48, d_v=80),
    Case("additive", "entmax1.5", "window", d=32),
    Case("gated", "sparsemax", "causal", d=128, d_v=64),
    Case("gaussian", "relu", "padding", d=128),
]

MAIN = 13  # so many of them before anything is timed


def check(case: Case, results: Results) -> None:
    from regard.backends.triton import configs

    configs.OVERRIDE.clear()
    ours, exact = run(case, DEVICE), run(case, DEVICE, "reference")
    errors = [relative(a, b) for a, b in zip(ours, exact, strict=True)]
    zero = [i for i, b in enumerate(exact) if not b.any()]
    for i in zero:
        errors[i] = float(ours[i].abs().max())
    limit = {"f32": 2e-5, "f16": 4e-3, "bf16": 2e-2}[case.dtype]
    limit = max(limit, 1e-3) if "large" in case.score or "1.3" in case.normalizer else limit
    ok = all(error <= limit for error in errors)
    again = run(case, DEVICE)
    same = all(torch.equal(a, b) for a, b in zip(ours, again, strict=True))
    row = {"case": str(case), "ok": ok and same, "errors": " ".join(f"{e:.1e}" for e in errors)}
    if not same:
        row["errors"] += " NOT REPEATABLE"
    results.correctness.append(row)
    results.write()
    print("ok   " if row["ok"] else "WRONG", row["case"], row["errors"], flush=True)


# What must be fast.


@dataclass(frozen=True)
class Work:
    """One row of the table: how much arithmetic it is, and which tiles to try."""

    case: Case
    kind: str = "matrix"  # matrix: 4 n² d operations forward; units: no figure
    visible: float = 1.0  # share of the pairs that exist

    def operations(self) -> float:
        c = self.case
        return 2.0 * c.batch * c.heads * c.n * c.n * (c.d + c.d_v) * self.visible


TABLE = [
    Work(Case("additive", "softmax", batch=1, heads=8, n=4096), "units"),
    Work(Case("gated", "softmax", batch=2, heads=8, n=4096)),
    Work(Case("dot", "relu", batch=1, heads=8, n=16384)),
    Work(Case("dot", "sigmoid", batch=1, heads=8, n=16384)),
    Work(Case("dot", "sparsemax", batch=2, heads=8, n=4096), "units"),
    Work(Case("dot", "entmax1.5", batch=2, heads=8, n=4096), "units"),
    Work(Case("dot", "softmax", "window", batch=1, heads=16, n=32768), "matrix", 1025 / 32768),
    Work(Case("dot", "relu", batch=1, heads=8, n=16384, d=128, d_v=128)),
    Work(Case("dot", "sigmoid", batch=1, heads=8, n=16384, d=128, d_v=128)),
    Work(Case("gated", "softmax", batch=1, heads=8, n=16384, d=128, d_v=128)),
    Work(Case("dot", "softmax", batch=2, heads=8, n=4096)),
]
EARLY = 7  # so many rows before the peers
LONG = 65536

FORWARD = {64: [(128, 64, 4, 3), (128, 64, 8, 3), (64, 64, 4, 3), (64, 128, 4, 3), (64, 128, 4, 4)],
           128: [(64, 64, 4, 3), (128, 64, 8, 3), (128, 64, 8, 4), (128, 128, 8, 3)]}  # fmt: skip
QUERIES = {64: [(64, 64, 4, 3), (128, 64, 8, 3), (64, 32, 4, 4), (64, 128, 4, 3)],
           128: [(128, 64, 8, 3), (128, 32, 8, 3), (64, 64, 4, 2)]}  # fmt: skip
KEYS = {64: [(64, 64, 4, 3), (32, 128, 4, 3), (32, 64, 4, 3), (32, 64, 4, 2), (64, 128, 8, 3)],
        128: [(64, 128, 8, 2), (32, 64, 4, 2), (32, 64, 4, 3), (32, 128, 8, 2), (32, 128, 8, 3)]}  # fmt: skip
THRESHOLD = {64: [(64, 64, 4, 3), (64, 64, 4, 2), (32, 64, 4, 3)]}
UNITS = {
    "forward": [(64, 128, 8, 2, 128), (64, 64, 4, 2), (64, 128, 8, 1, 128), (32, 64, 4, 2)],
    "tanh_queries": [(128, 32, 4, 2), (128, 64, 4, 2), (128, 64, 4, 1), (256, 64, 8, 1)],
    "tanh_keys": [(32, 128, 4, 2), (64, 128, 4, 2), (64, 128, 4, 1), (64, 256, 8, 1)],
}


def kernels_of(work: Work) -> dict[str, list[Tiles]]:
    d, additive = work.case.d, work.case.score == "additive"
    if additive:
        return UNITS
    found = {"forward": FORWARD[d], "backward_queries": QUERIES[d], "backward_keys": KEYS[d]}
    if work.case.normalizer in ("sparsemax", "entmax1.5"):
        found = {"threshold": THRESHOLD[d], **found}
    return found


def kernel_work(work: Work) -> dict[str, Callable[[], Any]]:
    """Each kernel of a call alone, on the same tensors."""
    from regard.backends.triton import gate_of, launch, prepared
    from regard.core.formula import extent_of
    from regard.resolve import resolve

    (q, k, v), options = work.case.make(DEVICE)
    call, q, k, v = resolve(q, k, v, options["score"], options["normalizer"], options["mask"])
    extent = extent_of(call.score, q, k)
    with torch.no_grad():
        q, k, scale = prepared(q, k, call)
        problem = launch.Problem.of(q.detach(), k.detach(), v.detach(), gate_of(call), call, extent, scale)
        out, stat = launch.attend(problem)
        grad = torch.randn_like(out)
        delta = torch.zeros_like(stat)
        p = problem
        found: dict[str, Callable[[], Any]] = {"forward": lambda: launch.attend(p)}
        if work.case.score == "additive":
            found["tanh_queries"] = lambda: launch._tanh_queries(p, grad, out, stat, delta)
            found["tanh_keys"] = lambda: launch._tanh_keys(p, grad, stat, delta)
        else:
            found["backward_queries"] = lambda: launch._queries(p, grad, out, stat, delta, 0)
            found["backward_keys"] = lambda: launch._keys(p, grad, stat, delta)
        if work.case.normalizer in ("sparsemax", "entmax1.5"):
            found["threshold"] = lambda: launch.statistic(p)
    return found


def tune(work: Work, pending: dict[tuple[str, str, Tiles], Future], results: Results, deadline: float) -> None:
    """Time each kernel with each of its tiles that has been compiled by now; keep the best."""
    from regard.backends.triton import configs

    best: dict[str, Tiles] = {}
    configs.OVERRIDE.clear()
    jobs = kernel_work(work)
    for kernel, tiles in kernels_of(work).items():
        times: dict[str, float] = {}
        for each in tiles:
            if left(deadline) < 5:
                break
            future = pending.get((str(work.case), kernel, each))
            try:
                if future is not None:
                    future.result(timeout=max(left(deadline) - 5, 0.1))
                configs.OVERRIDE.clear()
                configs.OVERRIDE.update(best | {kernel: each})
                times[str(each)] = round(milliseconds(jobs[kernel], 0.05), 4)
                if times[str(each)] <= min(times.values()):
                    best[kernel] = each
            except Exception:
                results.fail(f"{work.case} {kernel} {each}")
        row = {"work": str(work.case), "kernel": kernel, "ms": times}
        results.variants.append(row)
        print(f"{work.case} {kernel}: " + "  ".join(f"{k} {v}" for k, v in times.items()), flush=True)
    results.best[str(work.case)] = best
    configs.OVERRIDE.clear()
    configs.OVERRIDE.update(best)
    results.write()


def error_of(case: Case, out: Tensor, rows: int = 256) -> float:
    """Of the first rows of the first head, against float64."""
    inputs, call = case.make(DEVICE)
    q, k, v = (x.detach()[:1, :1].double() for x in inputs)
    if call["mask"] is not None:
        call["mask"] = {"causal": masks.causal("start"), "window": masks.window(512, 512, "start")}[case.mask]
    score = call["score"].double()
    for parameter in score.parameters():
        if getattr(score, "heads", None):
            parameter.data = parameter.data[:1]
    score.heads = 1 if getattr(score, "heads", None) else None
    call |= {"score": score, "normalizer": call["normalizer"].double()}
    with torch.no_grad():
        exact = attention(q[:, :, :rows], k, v, backend="reference", **call)
    return relative(out[:1, :1, :rows], exact)


def rate(work: Work, ms: float, backward: bool) -> str:
    if work.kind != "matrix":
        return ""
    return f"{work.operations() * (2.5 if backward else 1.0) / max(ms, 1e-6) / 1e9:.0f}"


def measure(work: Work, who: str, call: Callable[..., Tensor], results: Results, backward: bool = True) -> None:
    """Forward, backward, peak memory beyond the inputs and the error of one way to compute a row of the table."""
    inputs, _ = work.case.make(DEVICE)
    out = call(*inputs)
    grad = torch.randn_like(out)
    error = error_of(work.case, out.detach())
    del out
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    out = call(*inputs)
    if backward:
        torch.autograd.grad(out, inputs, grad)
    torch.cuda.synchronize()
    memory = (torch.cuda.max_memory_allocated() - before) / 2**20
    del out

    def forward() -> Tensor:
        with torch.no_grad():
            return call(*inputs)

    f = milliseconds(forward)
    row = {"work": str(work.case), "who": who, "forward": round(f, 4), "forward_rate": rate(work, f, False)}
    row |= {"memory": round(memory), "error": f"{error:.1e}"}
    if backward:
        both = milliseconds(lambda: torch.autograd.grad(call(*inputs), inputs, grad))
        plain = plain_milliseconds(lambda: torch.autograd.grad(call(*inputs), inputs, grad))
        row |= {
            "backward": round(both - f, 4),
            "backward_rate": rate(work, both - f, True),
            "both_without_graph": plain,
        }
    results.table.append(row)
    results.write()
    print({key: value for key, value in row.items()}, flush=True)


def plain_milliseconds(work: Callable[[], Any], repeats: int = 10) -> float:
    """Per call, launched one after another by Python."""
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(repeats):
        work()
    torch.cuda.synchronize()
    return round((time.perf_counter() - begun) / repeats * 1e3, 3)


# Peers.


def sdpa_with(backend: str, case: Case) -> Callable[..., Tensor]:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with sdpa_kernel(getattr(SDPBackend, backend)):
            return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=case.mask == "causal")

    return call


def flex(case: Case) -> Callable[..., Tensor]:
    """FlexAttention, compiled: with gates captured by its score function, or with its block mask."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    compiled = torch.compile(flex_attention)
    _, options = case.make(DEVICE)
    if case.mask == "window":
        begun = time.perf_counter()
        block_mask = create_block_mask(lambda b, h, i, j: (i - j).abs() <= 512, None, None, case.n, case.n, DEVICE)
        torch.cuda.synchronize()
        print(f"flex: block mask in {time.perf_counter() - begun:.2f} s", flush=True)
        return lambda q, k, v: compiled(q, k, v, block_mask=block_mask)
    if case.score == "gated":
        gate = options["score"].gate.detach()

        def gated(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            a = (q.float() @ gate[:, : case.d])[..., 0]
            c = (k.float() @ gate[:, case.d :])[..., 0]
            return compiled(
                q, k, v, scale=1.0, score_mod=lambda s, b, h, i, j: s * torch.sigmoid(a[b, h, i] + c[b, h, j])
            )

        return gated
    return lambda q, k, v: compiled(q, k, v)


def compiled_formula(case: Case) -> Callable[..., Tensor]:
    """torch.compile of the plain formula."""
    _, options = case.make(DEVICE)

    def formula(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention(q, k, v, backend="reference", **options)

    return torch.compile(formula)


def ours(case: Case) -> Callable[..., Tensor]:
    _, options = case.make(DEVICE)
    return lambda q, k, v: attention(q, k, v, backend="triton", **options)


PLAIN = [
    Work(Case("dot", "softmax", batch=2, heads=8, n=4096)),
    Work(Case("dot", "softmax", batch=2, heads=8, n=4096, d=128, d_v=128)),
    Work(Case("dot", "softmax", "causal", batch=2, heads=8, n=4096, d=128, d_v=128), "matrix", 0.5),
]
ADDITIVE, GATED, SPARSE, WINDOW = TABLE[0], TABLE[1], TABLE[4], TABLE[6]
PEERS = [
    *[(work, who) for work in PLAIN for who in ("regard auto", "SDPA CUDNN_ATTENTION", "SDPA FLASH_ATTENTION")],
    (GATED, "FlexAttention"),
    (WINDOW, "FlexAttention"),
    (ADDITIVE, "torch.compile"),
    (SPARSE, "torch.compile"),
    (GATED, "torch.compile"),
]


def peer(work: Work, who: str) -> Callable[..., Tensor]:
    if who == "regard auto":
        _, options = work.case.make(DEVICE)
        return lambda q, k, v: attention(q, k, v, **options)
    if who.startswith("SDPA"):
        return sdpa_with(who.split()[1], work.case)
    return flex(work.case) if who == "FlexAttention" else compiled_formula(work.case)


def peer_row(work: Work, who: str, results: Results) -> None:
    try:
        measure(work, who, peer(work, who), results)
    finally:
        torch.compiler.reset()


def warm_peer(at: int) -> float:
    """In a process of its own: compile a peer, so that torch's caches on disk have it."""
    begun = time.perf_counter()
    torch.set_num_threads(1)
    work, who = PEERS[at]
    inputs, _ = work.case.make(DEVICE)
    call = peer(work, who)
    out = call(*inputs)
    torch.autograd.grad(out, inputs, torch.randn_like(out))
    with torch.no_grad():
        call(*inputs)
    torch.cuda.synchronize()
    return time.perf_counter() - begun


# Single figures.


def note(results: Results, row: dict[str, Any]) -> None:
    results.table.append(row)
    results.write()
    print(row, flush=True)


def long_additive(results: Results) -> None:
    """Tanh sums of many tokens, forward and backward: time, and memory beyond inputs and outputs."""
    from regard.backends.triton import configs

    case = Case("additive", "softmax", batch=1, heads=8, n=LONG)
    configs.OVERRIDE.clear()
    configs.OVERRIDE.update(results.best.get(str(ADDITIVE.case), {}))
    inputs, options = case.make(DEVICE)
    grad = torch.randn_like(inputs[2])
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    begun = time.perf_counter()
    out = attention(*inputs, backend="triton", **options)
    torch.cuda.synchronize()
    middle = time.perf_counter()
    gradients = torch.autograd.grad(out, inputs, grad)
    torch.cuda.synchronize()
    end = time.perf_counter()
    given = sum(x.numel() * x.element_size() for x in (out, *gradients))
    beyond = (torch.cuda.max_memory_allocated() - before - given) / 2**20
    row = {"work": str(case), "who": "regard", "forward": round((middle - begun) * 1e3), "memory": round(beyond)}
    note(results, row | {"backward": round((end - middle) * 1e3), "finite": bool(torch.isfinite(out).all())})


def readiness(results: Results) -> None:
    """From a mask that was never seen to the first output, with nothing to compile: a window and a listed mask."""
    from regard.backends.triton import configs

    configs.OVERRIDE.clear()
    configs.OVERRIDE.update(results.best.get(str(WINDOW.case), {}))
    (q, k, v), _ = WINDOW.case.make(DEVICE)
    for who, make in (
        ("a new window", lambda at: masks.window(500 + at, 500)),
        ("a new window and global tokens", lambda at: masks.window(500 + at, 500) | masks.global_tokens([at])),
    ):
        times = []
        with torch.no_grad():
            for at in range(4):
                torch.cuda.synchronize()
                begun = time.perf_counter()
                attention(q, k, v, mask=make(at), backend="triton")
                torch.cuda.synchronize()
                times.append(round((time.perf_counter() - begun) * 1e3, 2))
        note(results, {"work": f"{WINDOW.case}: mask and output, ms, first to fourth", "who": who, "forward": times})


def summaries(results: Results) -> None:
    """What a summary costs, beside the forward pass of our template."""
    from regard import attention_summary
    from regard.backends.triton import configs

    configs.OVERRIDE.clear()
    case = PLAIN[0].case
    (q, k, v), _ = case.make(DEVICE)
    with torch.no_grad():
        plain = milliseconds(lambda: attention(q, k, v, backend="triton"))
        for top in (0, 8):
            attention_summary(q, k, top=top)  # compiled
            ms = milliseconds(lambda top=top: attention_summary(q, k, top=top))
            work = f"{case}: summary, top {top}; forward of the template {plain:.3f} ms"
            note(results, {"work": work, "who": "regard", "forward": ms})


# The steps of a run, most important first.


@dataclass
class Step:
    """A measurement that is started only if so many seconds are left."""

    name: str
    work: Callable[[], Any]
    seconds: float = 5.0


class BrokenError(Exception):
    """The GPU of this process answers nothing any more."""


@dataclass
class Run:
    """What the steps share."""

    results: Results
    deadline: float
    pool: ProcessPoolExecutor
    peers: ProcessPoolExecutor
    ahead: dict[str, Future] = field(default_factory=dict)
    variants: dict[tuple[str, str, Tiles], Future] = field(default_factory=dict)
    warm: list[Future] = field(default_factory=list)

    def prepare(self, only: set[str]) -> None:
        """Start compiling, in the order in which the steps will need it."""
        done = set(self.results.attempted)
        if "peers" in only:
            for at, (work, who) in enumerate(PEERS):
                if f"{work.case} {who}" not in done and who in ("FlexAttention", "torch.compile"):
                    self.warm.append(self.peers.submit(warm_peer, at))
        if "correct" in only:
            self._compile(CORRECT[:MAIN])
        for work in TABLE if "table" in only else []:
            small = replace(work.case, n=min(work.case.n, 4096 if work.case.mask == "window" else 512))
            for kernel, tiles in kernels_of(work).items():
                for each in tiles if "tune" in only else tiles[:1]:
                    job = self.pool.submit(compile_ahead, small, {kernel: each}, "forward" not in kernel, kernel)
                    self.variants[str(work.case), kernel, each] = job
        if "correct" in only:
            self._compile(CORRECT[MAIN:])

    def _compile(self, cases: list[Case]) -> None:
        for case in cases:
            if f"correct {case}" not in self.results.attempted:
                self.ahead[str(case)] = self.pool.submit(compile_ahead, case, {}, True, None)

    def correct(self, case: Case) -> None:
        notes = self.ahead[str(case)].result(timeout=max(min(left(self.deadline) - 8, 30), 0.1))
        seconds = [(name, round(s, 1), shared) for name, s, shared in notes]
        self.results.compiled.append({"case": str(case), "seconds": seconds})
        check(case, self.results)

    def quiet(self) -> None:
        """Peers are compiled on this GPU by other processes: times are measured when they have ended."""
        begun = time.perf_counter()
        for job in self.warm:
            try:
                job.result(timeout=max(min(left(self.deadline) - 70, 25 - (time.perf_counter() - begun)), 0.1))
            except Exception as error:
                print(f"compiling a peer ahead: {error!r}"[:300], flush=True)
        stop(self.peers)
        print(f"peers are compiled, {time.perf_counter() - START:.0f} s after the start", flush=True)

    def row(self, work: Work, tuned: bool) -> None:
        if tuned:
            tune(work, self.variants, self.results, self.deadline)
        measure(work, "regard", ours(work.case), self.results)

    def steps(self, only: set[str]) -> list[Step]:
        found: list[Step] = []
        if "correct" in only:
            found += [Step(f"correct {case}", lambda case=case: self.correct(case), 12) for case in CORRECT[:MAIN]]
        found.append(Step("quiet", self.quiet, 0))
        tuned = "tune" in only
        rows = [Step(f"{w.case} regard", lambda w=w: self.row(w, tuned), 8) for w in TABLE if "table" in only]
        found += rows[:EARLY]
        if "peers" in only:
            found += [Step(f"{w.case} {who}", lambda w=w, who=who: peer_row(w, who, self.results)) for w, who in PEERS]
        if "table" in only:
            found += [Step("window's mask", lambda: readiness(self.results), 4)]
            found += [Step("long additive", lambda: long_additive(self.results), 12)]
        found += rows[EARLY:]
        if "table" in only:
            found += [Step("summary", lambda: summaries(self.results))]
        if "correct" in only:
            found += [Step(f"correct {case}", lambda case=case: self.correct(case)) for case in CORRECT[MAIN:]]
        return found


def stop(pool: ProcessPoolExecutor) -> None:
    """End its processes, also in the middle of a job."""
    processes = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()


def all_steps(run: Run, only: set[str]) -> None:
    for step in run.steps(only):
        if step.name in run.results.attempted:
            continue
        if left(run.deadline) < step.seconds:
            print(f"no time left for: {step.name}", flush=True)
            continue
        begun = time.perf_counter()
        run.results.attempted.append(step.name)
        run.results.write()
        try:
            step.work()
        except Exception:
            run.results.fail(step.name)
        run.results.seconds[step.name] = round(time.perf_counter() - begun, 1)
        run.results.write()
        try:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        except Exception as error:  # after an illegal access nothing works any more in this process
            raise BrokenError(step.name) from error


def measure_all(options: argparse.Namespace) -> bool:
    """Whether the GPU broke, so that a fresh process must measure the rest."""
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "3")  # in each of several processes
    results = Results.continued(options.out)
    import triton

    date = time.strftime("%Y-%m-%d")
    results.machine = f"{date}, {torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}"
    print(results.machine, flush=True)
    spawn = get_context("spawn")
    pool = ProcessPoolExecutor(options.workers, mp_context=spawn)
    peers = ProcessPoolExecutor(5, mp_context=spawn)
    run, broken = Run(results, options.seconds, pool, peers), False
    try:
        run.prepare(set(options.only))
        all_steps(run, set(options.only))
    except BrokenError as step:
        print(f"the GPU answers no more after {step}: a fresh process goes on", flush=True)
        broken = True
    finally:
        results.write()
        stop(pool)
        stop(peers)
    print(f"best: {results.best}")
    print(f"{time.perf_counter() - START:.0f} s, {len(results.failures)} failures", flush=True)
    return broken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=150, help="after these, nothing new is started")
    parser.add_argument("--out", type=Path, default=Path("build/gpu"))
    parser.add_argument("--only", nargs="+", default=["correct", "tune", "table", "peers"])
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 4))
    parser.add_argument("--goes-on", action="store_true", help="keep what gpu.json has, and do not repeat it")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("benchmarks.gpu: no GPU is visible to torch")
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.goes_on:
        (options.out / "gpu.json").unlink(missing_ok=True)
    broken = measure_all(options)
    sys.stdout.flush()
    seconds = left(options.seconds)
    if broken and seconds > 20:
        arguments = ["--out", str(options.out), "--only", *options.only, "--workers", str(options.workers)]
        command = [sys.executable, "-m", "benchmarks.gpu", *arguments, "--seconds", f"{seconds:.0f}", "--goes-on"]
        os.execv(sys.executable, command)
    os._exit(0)  # threads of pools and of the compiler keep nobody waiting


if __name__ == "__main__":
    main()
