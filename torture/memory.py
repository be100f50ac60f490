"""Memory of every fused path, forward and backward: how its peak grows with n, and what happens when there is none.

    python -m torture.memory [--quick]     what the row starts, in a process of its own

The peak is what the operating system (or the GPU's allocator) says that one call took, beyond its inputs; each length
is measured in a child that is forked with the kernels loaded. Four heads fill a block of pairs at 1,024 positions
already, so that nothing is left that could hide a quadratic part.

Memory that runs out raises torch.OutOfMemoryError. On the CPU there is one exception: in the backward of torch's own
fused attention no code of ours runs, and torch raises a RuntimeError.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from regard import BackendError, attention, explain, masks, normalizers, scores
from torture.table import Figure
from torture.zoo import moved

NAME = "memory"
MOST = 2.2
BAR = f"growth ≤ {MOST:g} per doubling, 1k to 16k; out of memory: a typed error, and the next call works"

HEADS, D = 4, 16
LENGTHS = (1024, 2048, 4096, 8192, 16384)
PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "softmax": lambda: {},
    "softmax, causal": lambda: {"mask": masks.causal()},
    "sparsemax, padding": lambda: {"normalizer": normalizers.Sparsemax(), "mask": masks.padding(torch.tensor([900]))},
    "entmax 1.3, window": lambda: {"normalizer": normalizers.Entmax(1.3), "mask": masks.window(300, 20)},
    "additive, causal": lambda: {"score": scores.Additive(D, D, 4), "mask": masks.causal()},
    "gaussian, sigmoid, dropout": lambda: {
        "score": scores.Gaussian(2.0), "normalizer": normalizers.Sigmoid(), "dropout": 0.1, "seed": 3,
    },
    "alibi": lambda: {"score": scores.ScaledDot() + scores.Alibi(HEADS, align="start")},
}  # fmt: skip
QUICK = ("softmax, causal",)
FUSED = ("sdpa", "cpu", "triton", "chunked")


def inputs(n: int, device: str) -> list[Tensor]:
    generator = torch.Generator().manual_seed(n)
    return [torch.randn(1, HEADS, n, D, generator=generator).to(device).requires_grad_() for _ in range(3)]


def forward_and_backward(backend: str, parts: dict[str, Any], given: list[Tensor]) -> None:
    attention(*given, backend=backend, **parts).sum().backward()


def status(field: str) -> int:
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def peak_of_child(call: Callable[[], None]) -> int:
    """The greatest resident memory of a forked child, beyond what it began with."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            before = status("VmRSS")
            call()
            os.write(write, str(status("VmHWM") - before).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        answer = told.read()
    os.waitpid(child, 0)
    if not answer:
        raise RuntimeError("a child ended without an answer")
    return int(answer)


def peak_of_gpu(call: Callable[[], None]) -> int:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    return torch.cuda.max_memory_allocated() - before


def made(name: str, device: str) -> dict[str, Any]:
    parts = PARTS[name]()
    return {key: on(part, device) for key, part in parts.items()}


def on(part: Any, device: str) -> Any:
    if isinstance(part, masks.Mask):
        return moved(part, device)
    return part.to(device) if isinstance(part, torch.nn.Module) else part


def growth(quick: bool, device: str) -> dict[str, list[int]]:
    """Path → the peak at each length."""
    peaks: dict[str, list[int]] = {}
    for name, backend in [(name, backend) for name in (QUICK if quick else PARTS) for backend in FUSED]:
        parts = made(name, device)
        try:
            explain(*inputs(LENGTHS[-1], device), backend=backend, **parts)  # one that would write n² numbers refuses
        except BackendError:
            continue
        forward_and_backward(backend, parts, inputs(128, device))  # loads and compiles what it needs
        for n in LENGTHS[:3] if quick else LENGTHS:
            call = partial(forward_and_backward, backend, parts, inputs(n, device))
            peaks.setdefault(f"{name}, {backend}", []).append(
                (peak_of_gpu if device == "cuda" else peak_of_child)(call)
            )
    return peaks


# Out of memory.

LARGE = 200_000  # queries: 50 MB for the output, as many for a gradient
LEFT = 2**23  # bytes that may still be taken


@contextmanager
def exhausted(device: str) -> Iterator[None]:
    """Next to nothing is left."""
    if device == "cuda":
        whole = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + LEFT) / whole)
    else:
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (status("VmSize") + LEFT, before[1]))
    try:
        yield
    finally:
        if device == "cuda":
            torch.cuda.set_per_process_memory_fraction(1.0)
        else:
            resource.setrlimit(resource.RLIMIT_AS, before)


def attempts(quick: bool, device: str) -> dict[str, str]:
    """Path, way → what it raised, and whether the next call gives what it gave before."""
    found = {}
    for name, backend in [(name, backend) for name in (QUICK if quick else PARTS) for backend in FUSED]:
        parts = made(name, device)
        small = inputs(128, device)
        few = [x[..., :64, :] for x in small]
        many = torch.zeros(1, HEADS, LARGE, D, device=device, requires_grad=True)
        if "mask" in parts:
            parts["mask"] = masks.causal("start")
        try:
            explain(many, *few[1:], backend=backend, **parts)
        except BackendError:
            continue
        before = attention(*few, backend=backend, **parts)
        before.sum().backward()
        graph = attention(many, *few[1:], backend=backend, **parts)
        ways: dict[str, Callable[[], Any]] = {
            "forward": lambda: attention(many, *few[1:], backend=backend, **parts),  # noqa: B023
            "backward": lambda: graph.backward(torch.ones_like(graph[..., :1]).expand_as(graph)),  # noqa: B023
        }
        for way, call in ways.items():
            with exhausted(device):
                raised = error_of(call)
                again = attention(*few, backend=backend, **parts)
            works = "works" if torch.equal(before, again) else "is wrong"
            found[f"{name}, {backend}, {way}"] = f"{raised}, the next call {works}"
    return found


def error_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}{'' if isinstance(error, torch.OutOfMemoryError) else f' {error}'}"
    return "nothing was raised"


def measured(quick: bool) -> Figure:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    peaks, errors = growth(quick, device), attempts(quick, device)
    steps = {path: max(b / a for a, b in pairwise(peak)) for path, peak in peaks.items()}
    broken = [f"{path}: ×{step:.2f}, {peaks[path]}" for path, step in steps.items() if step > MOST]
    broken += [f"{way}: {what}" for way, what in errors.items() if not typed(way, what)]
    figure = f"growth {max(steps.values()):.2f} on {len(steps)} paths; {len(errors)} ways out of memory, {sum(map(typed, errors, errors.values()))} as promised"
    return Figure(NAME, figure, not broken, broken)


def typed(way: str, what: str) -> bool:
    if "sdpa, backward" in way and what.startswith("RuntimeError") and "can't allocate memory" in what:
        return what.endswith("the next call works")
    return what == "OutOfMemoryError, the next call works"


def run(quick: bool) -> Figure:
    command = [sys.executable, "-m", "torture.memory", *(["--quick"] if quick else [])]
    # Every tensor of its own pages, given back when it is freed: else the peak would be that of the allocator.
    env = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return Figure(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    print(json.dumps(asdict(measured("--quick" in sys.argv))))
