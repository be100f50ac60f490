"""The join: choose a backend for a resolved call and run it; say why."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import torch
from jaxtyping import Float
from torch import Tensor

from regard.backends import chunked, cpu, reference, sdpa, triton
from regard.core.formula import Call
from regard.core.memory import FEWER, typed_out_of_memory
from regard.core.normalizers import Normalizer
from regard.core.scores import extent_of
from regard.core.shapes import BackendError, pairs
from regard.resolve import AnyMask, AnyScore, Seed, precisely, resolve

# In order of preference: the first that can, and for which the problem is not too small.
BACKENDS: dict[str, ModuleType] = {
    "sdpa": sdpa,
    "triton": triton,
    "cpu": cpu,
    "chunked": chunked,
    "reference": reference,
}
# Up to so many numbers in all pairs, the plain formula costs less than getting a kernel, or blocks, ready.
SMALL = {"cpu": 2**14, "chunked": 2**20}
WRITTEN = 2**20  # up to so many, torch's fused attention may have a mask or bias written out where a kernel need not
CURES = {
    "reference": "backend='chunked' holds a block of pairs at a time",
    "sdpa": "backend='chunked' writes no mask out",
}


def attention(
    query: Float[Tensor, "*batch n_q d_q"],
    key: Float[Tensor, "*batch n_k d_k"],
    value: Float[Tensor, "*batch n_k d_v"],
    *,
    score: AnyScore = None,
    normalizer: Normalizer | None = None,
    mask: AnyMask = None,
    dropout: float = 0.0,
    seed: Seed = None,
    backend: str = "auto",
) -> Float[Tensor, "*batch n_q d_v"]:
    """Σ_i weight(q, k_i) · v_i, for every query: any score, normalizer and mask. The output only.

    `score=None` is `ScaledDot()`, `normalizer=None` is `Softmax()`. A float `mask` is a bias, added to
    the score. Noise (dropout, Gumbel) is a function of `seed`; without one, torch's generator draws it.

    >>> import torch, regard
    >>> q, k, v = torch.zeros(2, 4), torch.randn(3, 4), torch.tensor([[3.0], [6.0], [9.0]])
    >>> regard.attention(q, k, v)  # equal scores: the mean of the values
    tensor([[6.],
            [6.]])
    """
    nothing_asked = score is None and normalizer is None and mask is None and dropout == 0
    if nothing_asked and backend in ("auto", "sdpa") and sdpa.takes_as_they_are(query, key, value):
        try:  # a context around it would take longer than the checks
            return sdpa.scaled_dot_product_attention(query, key, value)
        except (RuntimeError, MemoryError):
            with typed_out_of_memory(query, key, CURES["sdpa"]):
                raise
    with precisely(score, query, key, value) as (query, key, value):
        call, query, key, value = resolve(query, key, value, score, normalizer, mask, dropout, seed)
        chosen, module = choose(backend, query, key, value, call)
        if torch.compiler.is_compiling():
            return module.forward(query, key, value, call)
        with typed_out_of_memory(query, key, CURES.get(chosen, FEWER)):
            return module.forward(query, key, value, call)


@dataclass(frozen=True)
class Explanation:
    """Which backend would run, and why the others would not."""

    backend: str
    refusals: dict[str, str]  # backend -> reason

    def __str__(self) -> str:
        lines = [f"backend: {self.backend}"]
        return "\n".join(lines + [f"  not {name}: {reason}" for name, reason in self.refusals.items()])


def explain(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: AnyScore = None,
    normalizer: Normalizer | None = None,
    mask: AnyMask = None,
    dropout: float = 0.0,
    seed: Seed = None,
    backend: str = "auto",
) -> Explanation:
    """What `attention` with the same arguments would run, without running it.

    >>> import torch, regard
    >>> x = torch.randn(5, 4)
    >>> print(regard.explain(x, x, x, normalizer=regard.normalizers.Sparsemax()))
    backend: reference
      not sdpa: torch's fused attention knows softmax only, not Sparsemax
      not triton: Triton's kernels run on a GPU, the tensors are on cpu
      not cpu: 25 numbers in all pairs are few enough (at most 16,384) for the plain formula
      not chunked: 25 numbers in all pairs are few enough (at most 1,048,576) for the plain formula
    """
    with precisely(score, query, key, value) as (query, key, value):
        call, query, key, value = resolve(query, key, value, score, normalizer, mask, dropout, seed)
    chosen, _ = choose(backend, query, key, value, call)
    refusals = {}
    for name, module in BACKENDS.items():
        if name == chosen:
            continue
        reason = module.why_not(query, key, value, call)
        if reason is None and backend != "auto":
            reason = f"backend={backend!r} was asked for"
        refusals[name] = reason or _later(name, query, key, call)
    return Explanation(chosen, refusals)


def _later(name: str, query: Tensor, key: Tensor, call: Call) -> str:
    """Why a backend that could do it was not the first choice."""
    numbers, few = _numbers(query, key, call), SMALL.get(name, 0)
    if numbers <= few:
        return f"{numbers:,} numbers in all pairs are few enough (at most {few:,}) for the plain formula"
    if name == "reference":
        return f"it would hold {numbers:,} numbers at once, one or more for each pair"
    return "a faster backend serves this call"


def _numbers(query: Tensor, key: Tensor, call: Call) -> int:
    return pairs(extent_of(call.score, query, key)) * call.score.work(query.shape[-1])


def _order(query: Tensor, key: Tensor, call: Call) -> list[str]:
    """Every backend by preference. Torch's fused attention wants a mask or bias written out, and reads all of it:
    above a small size our kernels go first."""
    names = list(BACKENDS)
    kernels = {"cpu": "cpu", "cuda": "triton"}.get(query.device.type)
    # Compiled code is not asked for a size. On a CPU, torch's own kernel needs no wait for a compiler there.
    small = query.device.type == "cpu" if torch.compiler.is_compiling() else _numbers(query, key, call) <= WRITTEN
    if kernels is not None and not small and sdpa.writes(query, key, call):
        names.remove(kernels)
        names.insert(names.index("sdpa"), kernels)
    return names


def choose(backend: str, query: Tensor, key: Tensor, value: Tensor, call: Call) -> tuple[str, ModuleType]:
    if backend != "auto":
        if backend not in BACKENDS:
            raise BackendError(f"backend={backend!r} is unknown; expected 'auto' or one of {', '.join(BACKENDS)}")
        reason = BACKENDS[backend].why_not(query, key, value, call)
        if reason is not None:
            raise BackendError(f"{backend}: {reason}; use backend='auto' or 'reference'")
        return backend, BACKENDS[backend]
    for name in _order(query, key, call):
        module = BACKENDS[name]
        if (name == "triton" and not query.is_cuda) or module.why_not(query, key, value, call) is not None:
            continue  # Triton's interpreter, on the CPU, is for tests
        # Compiled code serves many lengths: comparing one with a limit would compile it once more.
        if name in SMALL and not torch.compiler.is_compiling() and _numbers(query, key, call) <= SMALL[name]:
            continue
        return name, module
    raise AssertionError("reference refuses nothing")
