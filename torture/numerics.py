"""Rounding: how far every score, normalizer, backend and type is from float64, beside plain torch in the same type.

Eager is the formula as anyone would write it (`tests/eager.py`), every step in the type of the inputs. For one call
the error of a tensor (the output; the gradient of query, key, value or a parameter) is its distance from the
reference backend in float64, entry by entry, over all seeds; its ratio is that error over eager's, once for the means
and once for the greatest. Where eager is luckier than any program can be that keeps scores and results in the type, the
error of such a program takes its place: float64, but for scores that are rounded once and a result that is rounded
once. In float32 a tensor may instead stay within 2e-6 of the reference's greatest entry. Every call is made with heads
of width 4 and of width 32, the second over more keys.

Queries with a key at a kink are left out (two equal scores of a hard choice, the threshold of sparsemax, entmax and
ReLU): there the last bit of a score decides, and the error would say which side it fell on. The bar of the means is
for outputs; gradients have the wider one of 3 for the greatest error alone.

On a GPU the rows run there, Triton among them; without one, its interpreter runs a part of them in a process of its own.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import product
from unittest.mock import patch

import torch
from torch import Tensor, nn

from regard import BackendError, Extent, attention, normalizers, scores
from regard.core import noise
from tests import mechanisms
from tests.eager import eager_score, eager_weights
from tests.kinks import distance_to_a_kink
from tests.mechanisms import HEADS, NORMALIZERS, SCORES, Row, normalizer, score
from torture.progress import track
from torture.table import Figure

NAME = "numerics"
MEAN, MOST, GRADIENT, TINY = 1.2, 2.0, 3.0, 2e-6
BAR = f"error over eager's: mean ≤ {MEAN:g}, max ≤ {MOST:g}, gradients max ≤ {GRADIENT:g}; or float32 within {TINY:g}"

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
SIZES = ((4, 48), (32, 80))  # width of a head, number of queries and of keys
NOISE = 11  # the seed of what is drawn inside
MARGIN = 1e-3  # the least distance from a kink, as a share of the greatest score
UNBOUNDED = 1e-2  # the same where the derivative grows without bound towards the kink: entmax with α > 2


@dataclass(frozen=True)
class Ratio:
    """One tensor of one call."""

    call: str
    what: str
    dtype: str
    mean: float
    most: float
    share: float  # the greatest error over the greatest entry of the reference

    @property
    def tiny(self) -> bool:
        return self.dtype == "float32" and self.share <= TINY

    @property
    def kept(self) -> bool:
        if self.what == "output":
            return self.tiny or (self.mean <= MEAN and self.most <= MOST)
        return self.tiny or self.most <= GRADIENT

    def __str__(self) -> str:
        return f"{self.call}, {self.what}: mean {self.mean:.2f}, max {self.most:.2f}, {self.share:.1e} of the greatest"


@dataclass(frozen=True)
class Case:
    score: Row
    normalizer: Row
    dtype: str
    width: int
    n: int
    seeds: int


def with_gradients(
    attend: Callable[..., Tensor], inputs: list[Tensor], parameters: list[Tensor], judged: Tensor
) -> list[Tensor]:
    """Output and gradients, of the queries that are judged."""
    inputs = [x.detach().requires_grad_() for x in inputs]
    out = attend(*inputs).where(judged, 0.0)
    generator = torch.Generator().manual_seed(3)
    grad = torch.randn(out.shape, generator=generator).half().bfloat16()  # exact in every type
    grad = grad.to(out)
    found = torch.autograd.grad(out, [*inputs, *parameters], grad, allow_unused=True, materialize_grads=True)
    return [out.detach(), *found]


def parameters_of(*parts: object) -> dict[str, Tensor]:
    return {name: p for part in parts if isinstance(part, nn.Module) for name, p in part.named_parameters()}


def doubled(part: object) -> object:
    return deepcopy(part).double() if isinstance(part, nn.Module) else part


def ratios(case: Case, backends: Iterable[str], device: str) -> Iterator[Ratio]:
    """Those of every backend that does not refuse."""
    dtype = DTYPES[case.dtype]
    with patch.object(mechanisms, "D", case.width):  # the rows look it up when they make a part
        parts = [score(case.score, dtype=dtype), normalizer(case.normalizer, dtype=dtype)]
    parts = [part.to(device) if isinstance(part, nn.Module) else part for part in parts]
    s, n = parts
    s64, n64 = map(doubled, parts)
    own, own64 = parameters_of(s, n), list(parameters_of(s64, n64).values())
    names = ["output", "query", "key", "value", *own]
    extent = Extent((2, HEADS), case.n, case.n, torch.device(device))
    seed = torch.tensor(NOISE, device=device)
    drawn = noise.uniform(seed, extent.tile(), noise.GUMBEL) if isinstance(n, normalizers.GumbelHard) else None
    errors: dict[str, list[list[Tensor]]] = {}
    sizes: list[list[Tensor]] = []

    def rounded(q: Tensor, k: Tensor) -> Tensor:
        exact = s64(q, k)
        return exact + (exact.to(dtype).double() - exact).detach()

    def eager(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return eager_weights(n, eager_score(s, q, k), drawn) @ v

    for number in range(case.seeds):
        generator = torch.Generator().manual_seed(number)
        inputs = [torch.randn(2, HEADS, case.n, case.width, generator=generator).to(device, dtype) for _ in range(3)]
        inputs64 = [x.double() for x in inputs]
        judged = apart(s64, n64, *inputs64[:2], drawn)
        ours = partial(attention, seed=seed)
        formula = partial(ours, normalizer=n64, backend="reference")
        exact = with_gradients(partial(formula, score=s64), inputs64, own64, judged)
        sizes.append([x.abs().max() for x in exact])
        answers = {"eager": with_gradients(eager, inputs, list(own.values()), judged)}
        once = with_gradients(partial(formula, score=rounded), inputs64, own64, judged)
        answers["rounded"] = [x.to(dtype) for x in once]
        for backend in backends:
            try:
                call = partial(ours, score=s, normalizer=n, backend=backend)
                answers[backend] = with_gradients(call, inputs, list(own.values()), judged)
            except BackendError:
                continue
        for name, answer in answers.items():
            off = [(x.double() - e).abs() for x, e in zip(answer, exact, strict=True)]
            errors.setdefault(name, []).append(off)

    def over_seeds(name: str, place: int) -> tuple[float, float]:
        off = torch.stack([seed[place] for seed in errors[name]])
        return off.mean().item(), off.max().item()

    for backend in errors.keys() - {"eager", "rounded"}:
        call = f"{case.score} × {case.normalizer}, {backend}, {case.dtype}, width {case.width}"
        for place, what in enumerate(names):
            mean, most = over_seeds(backend, place)
            plain, least = over_seeds("eager", place), over_seeds("rounded", place)
            greatest = max(size[place].item() for size in sizes)
            yield Ratio(
                call, what, case.dtype, over(mean, max(plain[0], least[0])), over(most, max(plain[1], least[1])),
                over(most, greatest),
            )  # fmt: skip


def apart(s: Callable, n: object, query: Tensor, key: Tensor, drawn: Tensor | None) -> Tensor:
    """The queries that have no key at a kink."""
    exact = s(query, key).detach()
    if isinstance(s, scores.Exact):  # 0 or 1, on every backend
        return torch.ones_like(exact[..., :1], dtype=torch.bool)
    unbounded = isinstance(n, normalizers.Entmax) and n.alpha > 2
    margin = (UNBOUNDED if unbounded else MARGIN) * exact.abs().max()
    if drawn is not None:
        exact = exact - (-drawn.double().log()).log()
    return (distance_to_a_kink(n, exact) > margin)[..., None]


def over(a: float, b: float) -> float:
    return 0.0 if a == 0 else a / b if b else math.inf


def cases(quick: bool) -> list[Case]:
    if quick:
        pairs = [(s, NORMALIZERS[i % len(NORMALIZERS)], i) for i, s in enumerate(SCORES)]
        return [Case(s, n, list(DTYPES)[i % 3], *SIZES[i % 2], 1) for s, n, i in pairs]
    combined = product(SCORES, NORMALIZERS, DTYPES, SIZES)
    return [Case(s, n, dtype, *size, 3) for s, n, dtype, size in combined]


def interpreted() -> list[Case]:
    """What the interpreter, thousands of times slower than a GPU, gets to do: every score and every normalizer, in
    float16. Matrices of bfloat16 it multiplies wrongly, and in float32 it rounds products that a GPU fuses into sums."""
    pairs = [(s, NORMALIZERS[0]) for s in SCORES] + [(SCORES[1], n) for n in NORMALIZERS[1:]]
    return [Case(s, n, "float16", 16, 32, 1) for s, n in pairs]


def of_interpreter() -> list[Ratio]:
    done = subprocess.run(
        [sys.executable, "-m", "torture.numerics"],
        capture_output=True,
        text=True,
        env={**os.environ, "TRITON_INTERPRET": "1"},
    )
    if done.returncode:
        raise RuntimeError(f"Triton's interpreter: {done.stderr[-2000:]}")
    return [Ratio(**fields) for fields in json.loads(done.stdout)]


def figure_of(found: list[Ratio]) -> Figure:
    """The worst of the ratios that are not tiny; and that every backend took part."""
    broken = sorted((r for r in found if not r.kept), key=lambda r: -max(r.mean, r.most))
    loud = [r for r in found if not r.tiny]
    outputs, gradients = ([r for r in loud if (r.what == "output") == is_output] for is_output in (True, False))
    figure = (
        f"mean {max(r.mean for r in outputs):.2f}, max {max(r.most for r in outputs):.2f}, "
        f"gradients max {max(r.most for r in gradients):.2f}, in {len(found):,} tensors"
    )
    return Figure(NAME, figure, not broken, [str(r) for r in broken])


def run(quick: bool) -> Figure:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    backends = ["reference", "sdpa", "chunked", "triton" if device == "cuda" else "cpu"]
    found = [ratio for case in track(cases(quick), "numerics") for ratio in ratios(case, backends, device)]
    if device == "cpu" and not quick:
        found += of_interpreter()
    return figure_of(found)


if __name__ == "__main__":
    print(json.dumps([ratio.__dict__ for case in interpreted() for ratio in ratios(case, ["triton"], "cpu")]))
