"""The formulas of every score and normalizer as anyone would write them in torch, each step in the type of its inputs:
what precision is measured against."""

from __future__ import annotations

from collections.abc import Callable

import entmax
import torch
from torch import Tensor, nn

from regard import normalizers, scores
from tests.mechanisms import laplace


def eager_score(s: object, q: Tensor, k: Tensor) -> Tensor:
    def own(name: str) -> Tensor:
        return getattr(s, name).to(q.dtype)

    def each_pair(q: Tensor, k: Tensor, combine: Callable) -> Tensor:
        return combine(q[..., :, None, :], k[..., None, :, :])

    match s:
        case scores.SoftCap():
            return s.cap * torch.tanh(eager_score(s.score, q, k) / s.cap)
        case scores.ScaledDot():
            return q @ k.mT * s.factor(q.shape[-1])
        case scores.Bilinear():
            return q @ own("weight") @ k.mT
        case scores.Dot():
            return q @ k.mT
        case scores.Additive():
            hidden = each_pair(q @ own("w_q"), k @ own("w_k"), torch.add) + own("b")[..., None, :]
            return tanh_sum(hidden, own("v"))
        case scores.TanhSum():
            return tanh_sum(each_pair(q, k, torch.add), own("v"))
        case scores.Gated():
            W_q, W_k = own("gate").split(q.shape[-1], dim=-2)
            return torch.sigmoid(q @ W_q + (k @ W_k).mT) * (q @ k.mT)
        case scores.Gaussian():
            return -each_pair(q, k, torch.sub).square().sum(-1) / (2 * s.sigma**2)
        case scores.Exact():
            return each_pair(q, k, torch.eq).all(-1).to(q.dtype)
        case scores.Score():  # a score with a bias
            i, j = (torch.arange(x.shape[-2], device=x.device) for x in (q, k))
            distance = j - i[:, None]
            if isinstance(s.bias, scores.Alibi):
                bias = -s.bias.slopes * distance.abs()
            else:
                bias = s.bias.table[:, distance.clamp(-2, 2) + 2]
            return eager_score(s.score, q, k) + bias.to(q.dtype)
    return laplace(q, k)


def tanh_sum(hidden: Tensor, v: Tensor) -> Tensor:
    units = torch.tanh(hidden)
    return units @ v if v.ndim == 1 else (units @ v[:, None, :, None]).squeeze(-1)  # the second: its own for each head


def eager_weights(n: nn.Module, s: Tensor, noise: Tensor | None = None) -> Tensor:
    """`noise` is for GumbelHard in training: uniform numbers, one for each pair."""
    match n:
        case normalizers.Softmax(sink=None):
            return torch.softmax(s, -1)
        case normalizers.Softmax():
            return torch.softmax(torch.cat([s, n.sink.to(s.dtype).expand(*s.shape[:-1], 1)], -1), -1)[..., :-1]
        case normalizers.Identity():
            return s
        case normalizers.ReLU():
            return s.relu()
        case normalizers.Sigmoid():
            return torch.sigmoid(s + n.bias)
        case normalizers.Sparsemax():
            return entmax.sparsemax(s, dim=-1)
        case normalizers.Entmax(alpha=1.5):
            return entmax.entmax15(s, dim=-1)
        case normalizers.Entmax():
            return entmax.entmax_bisect(s, alpha=n.alpha, dim=-1)
        case normalizers.GumbelHard() if noise is not None:
            s = s - (-noise.log()).log().to(s.dtype)  # 16 bits are too few for what is drawn near 1
            soft = torch.softmax(s / n.temperature, -1)
            return one_hot(s) + soft - soft.detach()
    return one_hot(s)  # hard, and gumbel hard in evaluation


def one_hot(s: Tensor) -> Tensor:
    return nn.functional.one_hot(s.argmax(-1), s.shape[-1]).to(s.dtype)
