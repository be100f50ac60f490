"""One training step of the attentive RNN on batches like Multi30k's: ours, and the same model in plain torch.

A step is what a training loop does: forward, cross-entropy, backward, a clipped gradient, AdamW. The plain model is
written as torch's tutorials write it, but all its decoder's steps attend in one call, which is faster than a loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.models.rnn import AttentiveRNN
from regard.nn.word_loss import word_loss

SIZE, PAD, BEGIN = 128, 0, 1
Batch = tuple[Tensor, Tensor, Tensor, Tensor]  # words, their numbers in each row, what the decoder reads and writes
Step = Callable[[Batch], float]


class Plain(nn.Module):
    def __init__(self, vocabulary: int, d: int, hidden: int) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(vocabulary, d), nn.Embedding(vocabulary, d)
        self.encoder = nn.RNN(d, hidden, batch_first=True)
        self.decoder = nn.RNN(d, hidden, batch_first=True)
        self.query, self.key = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.feed_forward, self.word = nn.Linear(2 * hidden, hidden), nn.Linear(hidden, vocabulary)

    def forward(self, source: Tensor, lengths: Tensor, given: Tensor) -> Tensor:
        packed = pack_padded_sequence(self.source(source), lengths, batch_first=True, enforce_sorted=False)
        packed, last = self.encoder(packed)
        memory, _ = pad_packed_sequence(packed, batch_first=True)
        states, _ = self.decoder(self.target(given), last)
        units = torch.tanh(self.query(states)[:, :, None] + self.key(memory)[:, None])
        real = torch.arange(memory.shape[1]) < lengths[:, None]
        weights = torch.softmax(self.score(units)[..., 0].masked_fill(~real[:, None], -math.inf), -1)
        return self.word(torch.tanh(self.feed_forward(torch.cat([states, weights @ memory], -1))))


def eager(model: Plain, fused: bool = False) -> Step:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused)

    def step(batch: Batch) -> float:
        source, lengths, given, wanted = batch
        logits = model(source, lengths, given)
        loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=PAD)
        return update(model, optimizer, loss)

    return step


def ours(model: AttentiveRNN) -> Step:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step(batch: Batch) -> float:
        source, lengths, given, wanted = batch
        read = partial(word_loss, target=wanted, ignored=PAD)
        loss = model(source, given, lengths, read=read) / int((wanted != PAD).sum())
        return update(model, optimizer, loss)

    return step


def update(model: nn.Module, optimizer: torch.optim.Optimizer, loss: Tensor) -> float:
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return float(loss.detach())


def alike(vocabulary: int, d: int, hidden: int) -> tuple[AttentiveRNN, Plain]:
    """The same numbers in both."""
    torch.manual_seed(0)
    a, b = AttentiveRNN(vocabulary, vocabulary, d, hidden), Plain(vocabulary, d, hidden)
    score = a.attention.score
    pairs = [
        *((b.source.weight, a.encoder.embedding.weight), (b.target.weight, a.embedding.weight)),
        *((b.query.weight, score.w_q.T), (b.key.weight, score.w_k.T), (b.query.bias, score.b[0])),
        (b.score.weight, score.v[None]),
        *((getattr(b, n).weight, getattr(a, n).weight) for n in ("feed_forward", "word")),
        *((getattr(b, n).bias, getattr(a, n).bias) for n in ("feed_forward", "word")),
    ]
    for theirs, cell in ((b.encoder, a.encoder.cell), (b.decoder, a.cell)):
        nothing = torch.zeros_like(cell.b)
        numbers = {"weight_ih_l0": cell.U, "weight_hh_l0": cell.W, "bias_ih_l0": cell.b, "bias_hh_l0": nothing}
        pairs += [(getattr(theirs, name), value) for name, value in numbers.items()]
    with torch.no_grad():
        for to, value in pairs:
            to.copy_(value)
    return a, b


def batches(vocabulary: int, count: int, together: bool) -> list[Batch]:
    """English and German words of random Multi30k pairs: 13 on average, logarithms spread by 0.3, correlated by 0.86,
    4 to 41 and 2 to 45. In random order; or `together`: sorted by length first, as our training loop does."""
    torch.manual_seed(1)
    chance = torch.randn(2, count * SIZE)
    chance[1] = 0.86 * chance[0] + math.sqrt(1 - 0.86**2) * chance[1]
    source = (2.53 + 0.30 * chance[0]).exp().round().clamp(4, 41).long()
    target = (2.48 + 0.33 * chance[1]).exp().round().clamp(2, 45).long() + 1  # with the sentence's end
    if together:
        order = (source + target).argsort()
        source, target = source[order], target[order]
    made = [_batch(vocabulary, *few) for few in zip(source.split(SIZE), target.split(SIZE), strict=True)]
    return [made[i] for i in torch.randperm(count)]


def _batch(vocabulary: int, source: Tensor, target: Tensor) -> Batch:
    words, wanted = (torch.randint(3, vocabulary, (len(x), int(x.max()))) for x in (source, target))
    words, wanted = (
        x.masked_fill(torch.arange(x.shape[1]) >= n[:, None], PAD) for x, n in ((words, source), (wanted, target))
    )
    return words, source, F.pad(wanted, (1, 0), value=BEGIN)[:, :-1], wanted
