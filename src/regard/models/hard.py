"""Hard attention that learns: one encoder state for each word, drawn in training, the best in evaluation.

Two trainers, for the same `AttentiveRNN`:

    AttentiveRNN(..., normalizer=GumbelHard())    straight-through: train with the usual cross-entropy
    AttentiveRNN(..., normalizer=Hard())          REINFORCE: train with `Reinforce(model)(source, target, lengths)`
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.core.mask import Mask
from regard.models.rnn import AttentiveRNN
from regard.sampling import Sample, sample_attention


class MovingBaseline(nn.Module):
    """Expect the average of the rewards so far; `decay` says how slowly they are forgotten."""

    mean: Tensor
    seen: Tensor

    def __init__(self, decay: float = 0.95) -> None:
        super().__init__()
        self.decay = decay
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("seen", torch.zeros(()))  # the weights given so far; 1 in the long run

    def forward(self, query: Tensor, reward: Float[Tensor, "B m"], real: Bool[Tensor, "B m"]) -> tuple[Tensor, Tensor]:
        """What was expected before these rewards, for each word, and the loss of expecting it: none here."""
        expected = (self.mean / self.seen.clamp(min=1e-6)).expand_as(reward)
        with torch.no_grad():
            average = torch.where(real, reward, 0.0).sum() / real.sum().clamp(min=1)
            self.mean.lerp_(average.to(self.mean.dtype), 1 - self.decay)
            self.seen.lerp_(torch.ones_like(self.seen), 1 - self.decay)
        return expected, reward.new_zeros(())


class LearnedBaseline(nn.Module):
    """Expect what a linear layer reads off the decoder's state, itself trained by least squares."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.linear = nn.Linear(hidden, 1)

    def forward(
        self, query: Float[Tensor, "B m hidden"], reward: Float[Tensor, "B m"], real: Bool[Tensor, "B m"]
    ) -> tuple[Tensor, Tensor]:
        expected = self.linear(query.detach()).squeeze(-1)
        error = torch.where(real, expected - reward, 0.0).square().sum() / real.sum().clamp(min=1)
        return expected.detach(), error


@dataclass(frozen=True)
class Loss:
    """What REINFORCE minimizes, `total`, and what it is made of, word by word."""

    total: Float[Tensor, ""]
    reward: Float[Tensor, "B m"]  # log-probability of the right word, given what was drawn; 0 at padding
    expected: Float[Tensor, "B m"]  # what the baseline said
    log_prob: Float[Tensor, "B m"]  # of the drawn encoder state
    entropy: Float[Tensor, "B m"]  # of the distribution it was drawn from


class Reinforce(nn.Module):
    """The loss of a model that draws encoder state i with probability π_i = softmax(scores)_i, per word:

    -log p(word | i)  -  (log p(word | i) - expected) · log π_i  -  beta · H(π)

    The first trains the words, the second (its bracket held constant) makes draws likelier that did better
    than expected, the third keeps the choice open while nothing is known. Where the model feeds a_t back, a
    draw also answers for all later words. Its parameters are the model's and the baseline's: optimize both.
    """

    def __init__(
        self, model: AttentiveRNN, baseline: nn.Module | None = None, beta: float = 0.01, padding: int = 0
    ) -> None:
        super().__init__()
        self.model, self.beta, self.padding = model, beta, padding
        self.baseline = MovingBaseline() if baseline is None else baseline

    def forward(
        self,
        source: Int[Tensor, "B n"],
        target: Int[Tensor, "B m1"],
        lengths: Int[Tensor, " B"] | None = None,
        seed: int | None = None,
    ) -> Loss:
        """`target` from the begin-of-sentence token on; what it holds after its end is `padding`."""
        queries: list[Tensor] = []
        samples: list[Sample] = []

        def attend(query: Tensor, key: Tensor, value: Tensor, mask: Mask | None) -> Tensor:
            each = None if seed is None else seed + len(samples)  # of many calls, each draws anew
            drawn = sample_attention(query, key, value, score=self.model.attention.score, mask=mask, seed=each)
            queries.append(query)
            samples.append(drawn)
            return drawn.output

        logits = self.model(source, target[:, :-1], lengths, attend=attend)
        log_prob = torch.cat([drawn.log_prob for drawn in samples], 1)  # B m
        entropy = torch.cat([drawn.entropy for drawn in samples], 1)
        words, real = target[:, 1:], target[:, 1:] != self.padding
        reward = -F.cross_entropy(logits.mT, words.masked_fill(~real, -100), reduction="none")  # B m
        worth = reward.flip(1).cumsum(1).flip(1) if self.model.input_feeding else reward
        worth = worth.detach()
        expected, error = self.baseline(torch.cat(queries, 1), worth, real)
        per_word = -reward - (worth - expected) * log_prob - self.beta * entropy
        total = torch.where(real, per_word, 0.0).sum() / real.sum().clamp(min=1) + error
        return Loss(total, reward, expected, log_prob, entropy)
