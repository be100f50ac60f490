"""From the scores of one query to its weights: `weights = normalizer(scores, allowed)`.

Each normalizer owns its masking and its precision: half-precision scores are computed in float32, a
pair that is not allowed (or whose score is -inf) gets weight exactly 0 and passes no gradient, and a
row without an allowed pair is exactly 0.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.core.parts import Part, described
from regard.core.shapes import InputError, real, wide

__all__ = ["Entmax", "GumbelHard", "Hard", "Identity", "Normalizer", "ReLU", "Sigmoid", "Softmax", "Sparsemax"]


class Normalizer(nn.Module, Part):
    """Base: a subclass writes `weigh(scores, allowed)`; scores are at least float32, none is -inf."""

    differentiable = True  # with respect to the scores
    noisy = False  # needs a seed
    heads: int | None = None

    def weigh(self, scores: Float[Tensor, "*batch r c"], allowed: Bool[Tensor, "*batch r c"]) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must turn scores into weights")

    def forward(
        self,
        scores: Float[Tensor, "*batch r c"],
        allowed: Bool[Tensor, "*batch r c"] | None = None,
        noise: Float[Tensor, "*batch r c"] | None = None,
    ) -> Float[Tensor, "*batch r c"]:
        exists = scores != float("-inf")
        allowed = exists if allowed is None else exists & allowed
        scores = wide(scores).masked_fill(~allowed, 0.0)  # what is not allowed may be anything, NaN too
        if scores.shape[-1] == 0:
            return scores
        return self.weigh(self.perturb(scores, noise), allowed)

    def extra_repr(self) -> str:
        return described(self)

    def perturb(self, scores: Tensor, noise: Tensor | None) -> Tensor:
        return scores


def _bottom(scores: Tensor, allowed: Tensor) -> Tensor:
    """Forbidden scores become the least finite number: exp() of the difference to any other is 0, and
    a row of nothing else stays finite."""
    return scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)


class Softmax(Normalizer):
    """w = exp(s) / Σ exp(s). With a sink, a learned logit joins the sum and takes weight to no key."""

    fields = ("sink",)

    def __init__(self, sink: bool = False, heads: int | None = None) -> None:
        super().__init__()
        self.heads = heads if sink else None
        self.sink = nn.Parameter(torch.zeros(() if heads is None else (heads, 1, 1))) if sink else None

    def _logits(self, scores: Tensor, allowed: Tensor) -> Tensor:
        logits = _bottom(scores, allowed)
        if self.sink is None:
            return logits
        sink = self.sink.to(scores.dtype).expand(*scores.shape[:-1], 1)
        return torch.cat([logits, sink], dim=-1)

    def weigh(self, scores: Tensor, allowed: Tensor) -> Tensor:
        weights = torch.softmax(self._logits(scores, allowed), dim=-1)[..., : scores.shape[-1]]
        return weights.masked_fill(~allowed, 0.0)

    def logsumexp(self, scores: Tensor, allowed: Tensor) -> Float[Tensor, "*batch r"]:
        """log Σ exp(s), the sink included; -inf for a row with nothing to sum."""
        if scores.shape[-1] == 0:
            lse = scores.new_full(scores.shape[:-1], float("-inf"))
            return lse if self.sink is None else lse + self.sink.to(lse.dtype).squeeze(-1).expand_as(lse)
        lse = self._logits(scores, allowed).logsumexp(-1)
        return lse if self.sink is not None else lse.masked_fill(~allowed.any(-1), float("-inf"))


class Identity(Normalizer):
    """w = s: the raw scores, as in the general formula."""

    def weigh(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return scores


class ReLU(Normalizer):
    """w = max(s, 0); the derivative at 0 is taken as 0."""

    def weigh(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return scores.relu()


class Sigmoid(Normalizer):
    """w = 1 / (1 + exp(-(s + bias))), each pair for itself; bias = -log n keeps a row's sum near 1."""

    fields = ("bias",)

    def __init__(self, bias: float = 0.0) -> None:
        super().__init__()
        self.bias = real("Sigmoid", "bias", bias)

    def weigh(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return torch.sigmoid(scores + self.bias).masked_fill(~allowed, 0.0)


class Entmax(Normalizer):
    """w = [(α-1) s - τ]₊^(1/(α-1)), τ such that the row sums to 1: sparse, and softmax as α → 1.

    α = 1.5 and 2 find τ in closed form from the sorted scores; any other α by bisection. Scores are
    shifted so that the largest is 0; τ then lies in [-1, 0], so whatever is below -1 has weight 0.
    A key exactly at the threshold counts as outside the support.
    """

    fields = ("alpha",)

    def __init__(self, alpha: float = 1.5) -> None:
        super().__init__()
        self.alpha = real("Entmax", "alpha", alpha)
        if not alpha > 1:
            raise InputError(f"Entmax: alpha={alpha}; expected more than 1 (alpha=1 is Softmax())")

    def weigh(self, scores: Tensor, allowed: Tensor) -> Tensor:
        z = _bottom(scores, allowed)
        z = (self.alpha - 1) * (z - z.amax(-1, keepdim=True).detach())
        allowed = allowed & (z > -1)
        z = torch.where(allowed, z, -1.0)  # below -1 a score has no weight: also safe from overflow
        if self.alpha == 2.0:
            return _sparsemax(z, allowed)
        if self.alpha == 1.5:
            return _entmax15(z, allowed)
        return _entmax(z, allowed, self.alpha)


class Sparsemax(Entmax):
    """The projection of the scores onto the simplex: w = [s - τ]₊. Entmax with α = 2."""

    def __init__(self) -> None:
        super().__init__(2.0)


def _sorted_support(z: Tensor, allowed: Tensor, inside: Any) -> Tensor:
    """Which keys have weight: the k largest, where `inside(sorted z, 1..n)` holds for the first k."""
    with torch.no_grad():
        descending = z.sort(dim=-1, descending=True).values
        count = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
        k = inside(descending, count).sum(-1, keepdim=True)
        least = descending.gather(-1, (k - 1).clamp(min=0))
        return allowed & (z >= least)


def _sparsemax(z: Tensor, allowed: Tensor) -> Tensor:
    """Given the support S, τ = (Σ_S z - 1) / |S|: differentiable, so autograd knows every derivative."""
    support = _sorted_support(z, allowed, lambda s, k: 1 + k * s > s.cumsum(-1))
    size = support.sum(-1, keepdim=True).clamp(min=1)
    tau = (torch.where(support, z, 0.0).sum(-1, keepdim=True) - 1) / size
    return torch.where(support, z - tau, 0.0).relu()


def _entmax15(z: Tensor, allowed: Tensor) -> Tensor:
    """Σ_S (z - τ)² = 1 is quadratic in τ: τ = mean - sqrt((1 - Σ_S (z - mean)²) / |S|)."""

    def inside(s: Tensor, k: Tensor) -> Tensor:
        mean = s.cumsum(-1) / k
        scatter = (s.square().cumsum(-1) - k * mean.square()).clamp(min=0)
        return (mean - ((1 - scatter) / k).clamp(min=0).sqrt() < s) & (scatter < 1)

    support = _sorted_support(z, allowed, inside)
    size = support.sum(-1, keepdim=True).clamp(min=1)
    mean = torch.where(support, z, 0.0).sum(-1, keepdim=True) / size
    scatter = torch.where(support, z - mean, 0.0).square().sum(-1, keepdim=True)
    tau = mean - ((1 - scatter) / size).clamp(min=torch.finfo(z.dtype).tiny).sqrt()
    return torch.where(support, (z - tau).relu(), 0.0).square()


def _entmax(z: Tensor, allowed: Tensor, alpha: float) -> Tensor:
    """Bisection finds τ to the last bits; two Newton steps polish it and carry its derivatives (one
    makes the first derivative exact, two the second), so no hand-written backward is needed."""
    power = 1 / (alpha - 1)

    def raised(base: Tensor, exponent: float) -> Tensor:
        positive = base > 0
        return torch.where(positive, torch.where(positive, base, 1.0) ** exponent, 0.0)

    with torch.no_grad():
        # τ lies between -1 (all weight on one key) and -n^(1-α) (all keys equal): halve the exponent's range,
        # since near 0 it is the relative precision of τ that counts.
        n = allowed.sum(-1, keepdim=True).clamp(min=1).to(z.dtype)
        low, high = torch.zeros_like(n), ((1 - alpha) * n.log()).clamp(min=math.log(torch.finfo(z.dtype).tiny))
        for _ in range(64 if z.dtype == torch.float64 else 40):
            middle = (low + high) / 2
            too_low = torch.where(allowed, raised(z + middle.exp(), power), 0.0).sum(-1, keepdim=True) > 1
            low, high = torch.where(too_low, middle, low), torch.where(too_low, high, middle)
        tau = -((low + high) / 2).exp()
        support = allowed & (z > tau)
    for _ in range(2):
        base = torch.where(support, z - tau, 0.0)
        excess = raised(base, power).sum(-1, keepdim=True) - 1
        slope = power * raised(base, power - 1).sum(-1, keepdim=True)
        some = slope > 0
        step = torch.where(some, excess / torch.where(some, slope, 1.0), 0.0)
        tau = tau + step.clamp(tau.detach() / 2, -tau.detach() / 2)
    weights = raised(torch.where(support, z - tau, 0.0), power)
    total = weights.sum(-1, keepdim=True)  # 1, but for rounding, which a large α magnifies
    return weights / torch.where(total > 0, total, 1.0)


class Hard(Normalizer):
    """All weight on the key with the largest score (the first of equals): a choice, not an average.
    The choice has no gradient; the chosen value does. To train it: GumbelHard or sample_attention."""

    differentiable = False

    def weigh(self, scores: Tensor, allowed: Tensor) -> Tensor:
        best = _bottom(scores, allowed).argmax(-1, keepdim=True)
        return torch.zeros_like(scores).scatter(-1, best, 1.0).masked_fill(~allowed, 0.0)


class GumbelHard(Normalizer):
    """One key drawn from softmax(s) by adding Gumbel noise and taking the largest; the gradient is that
    of softmax((s + noise) / temperature) (straight-through). In evaluation: the largest score."""

    fields = ("temperature", "training")
    noisy = True

    def __init__(self, temperature: float = 1.0) -> None:
        super().__init__()
        self.temperature = real("GumbelHard", "temperature", temperature, above=0)

    def perturb(self, scores: Tensor, noise: Tensor | None) -> Tensor:
        return scores if noise is None or not self.training else scores - (-noise.to(scores.dtype).log()).log()

    def weigh(self, scores: Tensor, allowed: Tensor) -> Tensor:
        hard = Hard().weigh(scores.detach(), allowed)
        if not self.training:
            return hard
        soft = Softmax().weigh(scores / self.temperature, allowed)
        return _StraightThrough.apply(hard, soft)


class _StraightThrough(torch.autograd.Function):
    """The value of one, the gradient of the other; hard + soft - soft would not be exactly hard."""

    @staticmethod
    def forward(ctx: Any, hard: Tensor, soft: Tensor) -> Tensor:
        return hard.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, grad
