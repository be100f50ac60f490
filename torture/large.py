"""Tensors just under and just over 2³¹ elements, where a 32-bit index ends: queries, keys and values, pairs, masks.

An answer must be right or refused with an error that has a type; what is silently wrong breaks the promise. What a
wrong index would miss is marked: far apart stand a few keys (or queries) whose answers are known. Cases that do not
fit into memory are left out, and said; tensors of this size belong on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from regard import BackendError, InputError, attention, masks
from regard.core.formula import weights_of
from regard.resolve import resolve
from torture.progress import track
from torture.table import Figure

NAME = "large"
BAR = "0 silent errors under and over 2³¹ elements"

LIMIT = 2**31
BACKENDS = ("sdpa", "triton", "cpu", "chunked")
GIB = 2**30
SPARE = 4 * GIB  # which stay free for others


@dataclass(frozen=True)
class Case:
    name: str
    check: Callable[[], str | None]  # what is wrong
    memory: int  # bytes that it needs at most


def free(device: str) -> int:
    if device == "cuda":
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info()[0]
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")) - SPARE


def places(n: int) -> Tensor:
    return torch.tensor([0, 1, n // 2, n - 2, n - 1])


def marks(d: int, device: str, dtype: torch.dtype) -> Tensor:
    """Directions that score 60 with themselves and 0 with each other and with nothing: e^60 outweighs 2³¹ zeros."""
    return torch.eye(5, d, device=device, dtype=dtype) * (60 * d**0.5) ** 0.5


def off(found: Tensor, expected: Tensor | float, what: str) -> str | None:
    wrong = float((found.detach().float() - expected).abs().max())
    return None if wrong <= 2e-3 else f"{what} is off by {wrong:.2g}"


def keys(count: int, d: int, backend: str, device: str, dtype: torch.dtype) -> str | None:
    n, marked = count // d, marks(d, device, dtype)
    here = places(n).to(device)
    key = torch.zeros(n, d, device=device, dtype=dtype)
    key[here] = marked
    value = torch.full((n, d), -1.0, device=device, dtype=dtype)
    value[here] = torch.arange(5.0, device=device, dtype=dtype)[:, None]
    key.requires_grad_()
    value.requires_grad_()
    out = attention(marked, key, value, backend=backend)
    wrong = off(out, torch.arange(5.0, device=device)[:, None], "the output")
    of_key, of_value = torch.autograd.grad(out.sum(), (key, value))
    wrong = wrong or off(of_value[here], 1.0, "a marked value's gradient")
    wrong = wrong or off(sum(part.float().sum() for part in of_value.split(2**20)), 5.0 * d, "the values' gradient")  # type: ignore[arg-type]
    return wrong or off(max(part.abs().max() for part in of_key.split(2**20)), 0.0, "the keys' gradient")


def queries(count: int, d: int, backend: str, device: str, dtype: torch.dtype) -> str | None:
    n, marked = count // d, marks(d, device, dtype)
    here = places(n).to(device)
    query = torch.zeros(n, d, device=device, dtype=dtype)
    query[here] = marked
    value = torch.arange(5.0, device=device, dtype=dtype)[:, None].expand(5, d).contiguous()
    query.requires_grad_()
    out = attention(query, marked, value, backend=backend)
    (grad,) = torch.autograd.grad(out[..., 0].sum(), query)
    out = out.detach()
    wrong = off(out[here], torch.arange(5.0, device=device)[:, None], "a marked query's output")
    wrong = wrong or off(grad[here], 0.0, "a marked query's gradient")
    same = grad[2].clone()  # all others see five keys alike: their mean is 2, and they have one gradient
    out[here], grad[here] = 2.0, same
    wrong = wrong or off(max((part - 2.0).abs().max() for part in out.split(2**20)), 0.0, "the output")
    return wrong or off(max((part - same).abs().max() for part in grad.split(2**20)), 0.0, "the queries' gradient")


def pairs(n: int, noisy: bool, backend: str, device: str, dtype: torch.dtype) -> str | None:
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(1, n, 16, generator=generator).to(device, dtype) for _ in range(3)]
    chosen = torch.cat([torch.arange(8), torch.arange(n // 2, n // 2 + 8), torch.arange(n - 8, n)]).to(device)
    how = {"mask": masks.causal(), "dropout": 0.2 if noisy else 0.0, "seed": 2**40 + 1 if noisy else None}
    out = attention(*given, backend=backend, **how)
    call, query, key, value = resolve(*given, None, None, how["mask"], how["dropout"], how["seed"])
    expected = weights_of(query, key, call, chosen) @ value.float()
    return off(
        out[:, chosen] / (2 if dtype != torch.float32 else 1),
        expected / (2 if dtype != torch.float32 else 1),
        "the output",
    )


def written_mask(n: int, backend: str, device: str, dtype: torch.dtype) -> str | None:
    allowed = torch.zeros(n, n, dtype=torch.bool, device=device)
    allowed[:, 0] = True
    allowed[-1, 0], allowed[-1, -1] = False, True
    given = [torch.zeros(n, 16, device=device, dtype=dtype) for _ in range(3)]
    given[2][-1] = 1.0
    out = attention(*given, mask=allowed, backend=backend)
    return off(out[-1], 1.0, "the last row") or off(out[:-1], 0.0, "a row")


def cases(device: str, dtype: torch.dtype, quick: bool) -> list[Case]:
    size, found = dtype.itemsize, []
    under, over = 46_340, 46_341  # whose squares are
    wide = 4 if device == "cpu" else size
    for backend in BACKENDS:
        given = {"backend": backend, "device": device, "dtype": dtype}
        for count in (LIMIT - 64, LIMIT + 64):
            name = f"{count:,} elements, {backend}"
            # Two inputs and two gradients, and what is packed or kept in float32 on the way.
            found.append(
                Case(f"keys and values of {name}", partial(keys, count, 64, **given), count * (4 * size + 4 * wide))
            )
            found.append(
                Case(f"queries of {name}", partial(queries, count, 64, **given), count * (4 * size + 4 * wide))
            )
        for n in (under, over):
            for noisy in (False, True):
                name = f"{n * n:,} pairs, {'dropout, ' if noisy else ''}{backend}"
                found.append(Case(name, partial(pairs, n, noisy, **given), GIB))
            found.append(Case(f"a mask of {n * n:,} elements, {backend}", partial(written_mask, n, **given), 4 * GIB))
    return [case for case in found if case.name.startswith(f"{over * over:,} pairs, cpu")] if quick else found


def run(quick: bool) -> Figure:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if quick and device == "cpu":
        return Figure(NAME, "no GPU here", None)
    told: dict[str, list[str]] = {"wrong": [], "refused": [], "left out": [], "right": []}
    for dtype in (torch.float16,) if device == "cuda" else (torch.float32,):
        for case in track(cases(device, dtype, quick), NAME):
            if case.memory > free(device):
                told["left out"].append(f"{case.name}: left out, it needs {case.memory / GIB:.0f} GiB")
                continue
            try:
                wrong = case.check()
            except (InputError, torch.OutOfMemoryError) as error:
                said = "" if isinstance(error, BackendError) else f": {type(error).__name__}: {str(error)[:120]}"
                told["refused"].append(f"{case.name}: refused{said}")
                continue
            told["wrong" if wrong else "right"].append(f"{case.name}: {wrong or 'right'}")
    figure = ", ".join(f"{len(lines)} {what}" for what, lines in told.items())
    if device == "cpu":
        figure = f"no GPU here; {figure}"
    passed = False if told["wrong"] else None if told["left out"] else True
    return Figure(NAME, figure, passed, [*told["wrong"], *told["left out"], *told["refused"]])
