"""The join: choose a backend for a resolved call and run it; say why."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import torch
from jaxtyping import Float
from torch import Tensor

from regard.backends import chunked, reference, sdpa, triton
from regard.core.formula import Call
from regard.core.normalizers import Normalizer
from regard.core.scores import extent_of
from regard.core.shapes import BackendError, pairs
from regard.resolve import AnyMask, AnyScore, Seed, precisely, resolve

BACKENDS: dict[str, ModuleType] = {"sdpa": sdpa, "triton": triton, "chunked": chunked, "reference": reference}
SMALL = 2**20  # up to so many numbers in all pairs, the plain formula beats any splitting into blocks


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
    with precisely(score, query, key, value) as (query, key, value):
        call, query, key, value = resolve(query, key, value, score, normalizer, mask, dropout, seed)
        return choose(backend, query, key, value, call)[1].forward(query, key, value, call)


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
    numbers = _numbers(query, key, call)
    if name == "chunked" and numbers <= SMALL:
        return f"{numbers:,} numbers in all pairs are few enough (at most {SMALL:,}) for the plain formula"
    if name == "reference" and numbers > SMALL:
        return f"it would hold {numbers:,} numbers at once, one or more for each pair"
    return "a faster backend serves this call"


def _numbers(query: Tensor, key: Tensor, call: Call) -> int:
    return pairs(extent_of(call.score, query, key)) * call.score.work(query.shape[-1])


def choose(backend: str, query: Tensor, key: Tensor, value: Tensor, call: Call) -> tuple[str, ModuleType]:
    if backend != "auto":
        if backend not in BACKENDS:
            raise BackendError(f"backend={backend!r} is unknown; expected 'auto' or one of {', '.join(BACKENDS)}")
        reason = BACKENDS[backend].why_not(query, key, value, call)
        if reason is not None:
            raise BackendError(f"{backend}: {reason}; use backend='auto' or 'reference'")
        return backend, BACKENDS[backend]
    if sdpa.why_not(query, key, value, call) is None:
        return "sdpa", sdpa
    if query.is_cuda and triton.why_not(query, key, value, call) is None:
        return "triton", triton
    if chunked.why_not(query, key, value, call) is not None:
        return "reference", reference
    # Compiled code serves many lengths: comparing one with a limit would compile it once more.
    if not torch.compiler.is_compiling() and _numbers(query, key, call) <= SMALL:
        return "reference", reference
    return "chunked", chunked
