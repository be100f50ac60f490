"""What `regard bench` measures: mechanisms, each as we call it, as anyone would write it in torch, and as others do."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from regard import masks as M
from regard import normalizers as N
from regard import scores as S

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]  # (query, key, value) -> output
Formula = Callable[[Tensor, Tensor], Tensor]  # scores or weights, each in the type of its inputs


@dataclass(frozen=True)
class Peer:
    """Another's way to the same output. `library` must be there; FlexAttention trains on a GPU only."""

    make: Callable[[Work, dict[str, Any]], Attend]
    library: str = "torch"
    compiles: bool = False
    trains_on_cpu: bool = True
    exact: bool = True  # False: it computes something else, such as all pairs where we skip some


@dataclass(frozen=True)
class Work:
    """One mechanism at one size. `call` makes what our call takes, given the size; `eager` does it by hand."""

    name: str
    call: Callable[[Work], dict[str, Any]]
    eager: Callable[[Work, dict[str, Any]], Attend]
    n: int = 1024
    heads: int = 8
    d: int = 64
    peers: dict[str, Peer] = field(default_factory=dict)

    def inputs(self, device: str, dtype: torch.dtype, n: int | None = None) -> list[Tensor]:
        """Fresh ones: random queries, keys and values that want gradients."""
        shape = (1, self.heads, n or self.n, self.d)
        return [torch.randn(shape, device=device, dtype=dtype, requires_grad=True) for _ in "qkv"]


def attend(score: Callable[[Tensor, Tensor], Tensor], normalize: Callable[[Tensor], Tensor]) -> Attend:
    return lambda q, k, v: normalize(score(q, k)) @ v


def softmax(s: Tensor) -> Tensor:
    return torch.softmax(s, -1)


def scaled_dot(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT * q.shape[-1] ** -0.5


def distances(q: Tensor, k: Tensor) -> Tensor:
    return torch.arange(k.shape[-2], device=q.device) - torch.arange(q.shape[-2], device=q.device)[:, None]


def windowed(width: int) -> Formula:
    return lambda q, k: scaled_dot(q, k).masked_fill(distances(q, k).abs() > width, -math.inf)


def alibi(slopes: Tensor) -> Formula:
    return lambda q, k: scaled_dot(q, k) - slopes.to(q) * distances(q, k).abs()


def additive(v: Tensor) -> Formula:
    return lambda q, k: torch.tanh(q[..., :, None, :] + k[..., None, :, :]) @ v.to(q)


def gaussian(sigma: float) -> Formula:
    return lambda q, k: -(q[..., :, None, :] - k[..., None, :, :]).square().sum(-1) / (2 * sigma**2)


def gated(gate: Tensor) -> Formula:
    def score(q: Tensor, k: Tensor) -> Tensor:
        of_query, of_key = gate.to(q).split(q.shape[-1], dim=-2)
        return torch.sigmoid(q @ of_query + (k @ of_key).mT) * (q @ k.mT)

    return score


def sparsemax(s: Tensor) -> Tensor:
    """By sorting, as published (Martins and Astudillo 2016)."""
    z = s.sort(dim=-1, descending=True).values
    sums, places = z.cumsum(-1) - 1, torch.arange(1, s.shape[-1] + 1, device=s.device)
    support = (places * z > sums).sum(-1, keepdim=True)
    return (s - sums.gather(-1, support - 1) / support).relu()


def entmax15(s: Tensor) -> Tensor:
    """By sorting, as published (Peters, Niculae and Martins 2019)."""
    s = s / 2
    z = s.sort(dim=-1, descending=True).values
    places = torch.arange(1, s.shape[-1] + 1, device=s.device, dtype=s.dtype)
    mean, square = z.cumsum(-1) / places, z.square().cumsum(-1) / places
    tau = mean - ((1 - places * (square - mean.square())) / places).clamp_min(0).sqrt()
    support = (tau <= z).sum(-1, keepdim=True)
    return (s - tau.gather(-1, support - 1)).relu().square()


def sdpa(**options: Any) -> Peer:
    return Peer(
        lambda work, call: lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options), exact=not options
    )


def entmax(name: str) -> Peer:
    def make(work: Work, call: dict[str, Any]) -> Attend:
        normalize = getattr(importlib.import_module("entmax"), name)
        return attend(scaled_dot, lambda s: normalize(s, dim=-1))

    return Peer(make, "entmax")


def flex(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Peer:
    def make(work: Work, call: dict[str, Any]) -> Attend:
        from torch.nn.attention.flex_attention import flex_attention

        compiled: Any = torch.compile(flex_attention, dynamic=False)
        options = change(call)
        return lambda q, k, v: compiled(q, k, v, **options)

    return Peer(make, compiles=True, trains_on_cpu=False)


def capped(call: dict[str, Any]) -> dict[str, Any]:
    cap = call["score"].cap
    return {"score_mod": lambda s, b, h, i, j: torch.tanh(s / cap) * cap}


def _additive(work: Work) -> dict[str, Any]:
    score = S.TanhSum(work.d)
    torch.nn.init.normal_(score.v, std=work.d**-0.5)
    return {"score": score}


WORKS = (
    Work("additive", _additive, lambda w, call: attend(additive(call["score"].v), softmax), heads=1),
    Work("dot product", lambda w: {}, lambda w, call: attend(scaled_dot, softmax), peers={"sdpa": sdpa()}),
    Work(
        "window of 64",
        lambda w: {"mask": M.window(64, 64)},
        lambda w, call: attend(windowed(64), softmax),
        n=8192,
        heads=1,
        peers={"sdpa, all pairs": sdpa(is_causal=False)},
    ),
    Work("gated", lambda w: {"score": S.Gated(w.d, w.d)}, lambda w, call: attend(gated(call["score"].gate), softmax)),
    Work("relu", lambda w: {"normalizer": N.ReLU()}, lambda w, call: attend(scaled_dot, torch.relu)),
    Work(
        "sigmoid",
        lambda w: {"normalizer": N.Sigmoid(-math.log(w.n))},
        lambda w, call: attend(scaled_dot, lambda s: torch.sigmoid(s - math.log(w.n))),
    ),
    Work(
        "sparsemax",
        lambda w: {"normalizer": N.Sparsemax()},
        lambda w, call: attend(scaled_dot, sparsemax),
        peers={"entmax": entmax("sparsemax")},
    ),
    Work(
        "entmax 1.5",
        lambda w: {"normalizer": N.Entmax(1.5)},
        lambda w, call: attend(scaled_dot, entmax15),
        peers={"entmax": entmax("entmax15")},
    ),
    Work(
        "gaussian",
        lambda w: {"score": S.Gaussian(w.d**0.5)},
        lambda w, call: attend(gaussian(w.d**0.5), softmax),
        heads=1,
    ),
    Work(
        "alibi",
        lambda w: {"score": S.ScaledDot() + S.Alibi(w.heads)},
        lambda w, call: attend(alibi(call["score"].bias.slopes), softmax),
    ),
    Work(
        "soft cap",
        lambda w: {"score": S.SoftCap(S.ScaledDot(), 20.0)},
        lambda w, call: attend(lambda q, k: 20 * torch.tanh(scaled_dot(q, k) / 20), softmax),
        peers={"flex": flex(capped)},
    ),
)
