"""Recurrent cells: what one step makes of a word and of the state before it, for whole sequences.

A state is a tuple of (B, hidden) tensors, the first of which is h; zeros before the first word. Steps
beyond a row's length change nothing: the last state is that of the last real word.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.core.products import linear
from regard.core.shapes import InputError
from regard.models import recurrence

State = tuple[Tensor, ...]


class Plain(nn.Module):
    """a_t = b + W h_{t-1} + U x_t,  h_t = tanh(a_t)"""

    parts = 1  # tensors in a state

    def __init__(self, d: int, hidden: int) -> None:
        super().__init__()
        bound = hidden**-0.5
        self.W = nn.Parameter(torch.empty(hidden, hidden).uniform_(-bound, bound))
        self.U = nn.Parameter(torch.empty(hidden, d).uniform_(-bound, bound))
        self.b = nn.Parameter(torch.zeros(hidden))

    def forward(
        self, x: Float[Tensor, "B n d"], state: State, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B n hidden"], State]:
        """All states, and the last one."""
        (h,) = state
        a = linear(x, self.U, self.b)  # of all words: it waits for no state
        states = recurrence.states(a, self.W, h, lengths)
        return states, (states[:, -1] if states.shape[1] else h,)


class GRU(nn.Module):
    """Gates decide what to forget and what to take in."""

    parts = 1
    kind: type[nn.GRU | nn.LSTM] = nn.GRU

    def __init__(self, d: int, hidden: int) -> None:
        super().__init__()
        self.rnn = self.kind(d, hidden, batch_first=True)

    def forward(
        self, x: Float[Tensor, "B n d"], state: State, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B n hidden"], State]:
        if 0 in x.shape[:2]:
            return x.new_zeros(*x.shape[:2], state[0].shape[-1]), state
        before = tuple(part[None] for part in state)  # 1 B hidden: torch has an axis for layers
        before = before[0] if self.parts == 1 else before
        if lengths is None:
            states, after = self.rnn(x, before)
        else:
            # torch packs no empty row: it gets one step, whose result is dropped.
            packed = pack_padded_sequence(x, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False)
            packed, after = self.rnn(packed, before)
            states, _ = pad_packed_sequence(packed, batch_first=True, total_length=x.shape[1])
        after = tuple(part[0] for part in (after if isinstance(after, tuple) else (after,)))
        if lengths is not None:
            some = (lengths > 0)[:, None]
            after = tuple(torch.where(some, new, old) for new, old in zip(after, state, strict=True))
        return states, after


class LSTM(GRU):
    """A GRU's relative with a second state, the memory c, that gates protect."""

    parts = 2
    kind = nn.LSTM


CELLS: dict[str, type[Plain | GRU]] = {"rnn": Plain, "gru": GRU, "lstm": LSTM}


def make_cell(cell: str, d: int, hidden: int) -> Plain | GRU:
    if cell not in CELLS:
        raise InputError(f"cell={cell!r}; expected one of {', '.join(map(repr, CELLS))}")
    return CELLS[cell](d, hidden)


class RNNEncoder(nn.Module):
    """Words to one state for each, and the state of the last real word. With `bidirectional`, a second
    cell reads from the end; each word gets both states side by side, and a linear layer joins the two
    last states into one of the decoder's width.
    """

    def __init__(
        self, vocabulary: int, d: int, hidden: int, cell: str = "rnn", bidirectional: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.hidden, self.width = hidden, 2 * hidden if bidirectional else hidden
        self.embedding: nn.Module = nn.Embedding(vocabulary, d)
        self.dropout = nn.Dropout(dropout)
        self.cell = make_cell(cell, d, hidden)
        self.backward_cell = make_cell(cell, d, hidden) if bidirectional else None
        self.join = nn.ModuleList(nn.Linear(2 * hidden, hidden) for _ in range(self.cell.parts * bidirectional))

    def forward(
        self, words: Int[Tensor, "B n"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B n width"], State]:
        x = self.dropout(self.embedding(words))
        start = tuple(x.new_zeros(len(x), self.hidden) for _ in range(self.cell.parts))
        states, last = self.cell(x, start, lengths)
        if self.backward_cell is None:
            return states, last
        back, first = self.backward_cell(turned(x, lengths), start, lengths)
        # Without `join`, where no decoder follows, there is no last state.
        last = tuple(torch.tanh(join(torch.cat(pair, -1))) for join, *pair in zip(self.join, last, first, strict=False))
        return torch.cat([states, turned(back, lengths)], -1), last


def turned(x: Float[Tensor, "B n d"], lengths: Int[Tensor, " B"] | None) -> Float[Tensor, "B n d"]:
    """The real words in reverse order; pads stay where they are."""
    if lengths is None:
        return x.flip(1)
    t = torch.arange(x.shape[1], device=x.device)
    index = torch.where(t < lengths[:, None], lengths[:, None] - 1 - t, t)  # B n
    return x.gather(1, index[..., None].expand_as(x))
