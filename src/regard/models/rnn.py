"""RNN encoder-decoders: without attention (H1), where one vector must carry the whole sentence, and
with attention over every encoder state (H2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.mask import Mask
from regard.core.masks import padding
from regard.core.normalizers import Normalizer
from regard.core.products import Linear
from regard.core.scores import Additive, Pairwise, Score
from regard.models.cells import RNNEncoder, make_cell
from regard.nn.attention import Attention
from regard.nn.word_loss import Read, words

Attend = Callable[[Tensor, Tensor, Tensor, Mask | None], Tensor]  # (query, key, value, mask) -> output


@dataclass
class State:
    """What the decoder keeps between steps, one row for each sentence."""

    cell: tuple[Float[Tensor, "B hidden"], ...]
    memory: Float[Tensor, "B n width"] | None = None  # all encoder states, where there is attention
    lengths: Int[Tensor, " B"] | None = None
    context: Float[Tensor, "B width"] | None = None  # the last a_t, where it is fed back

    def select(self, rows: Int[Tensor, " m"]) -> State:
        """Keep these rows, in this order."""
        self.cell = tuple(part[rows] for part in self.cell)
        for name in ("memory", "lengths", "context"):
            tensor = getattr(self, name)
            if tensor is not None:
                setattr(self, name, tensor[rows])
        return self


class RNNEncoderDecoder(nn.Module):
    """The decoder sees the sentence only through the encoder's last state:

    a_t = b + W h_{t-1} + U x_t,  h_t = tanh(a_t),  o_t = c + V h_t,  ŷ_t = softmax(o_t)

    in both halves (only the decoder has an output). The model gives o_t, the logits. `cell` may also be
    "gru" or "lstm".

    >>> import torch
    >>> model = RNNEncoderDecoder(source_vocabulary=50, target_vocabulary=60, d=8, hidden=16)
    >>> model(torch.tensor([[5, 8, 2]]), torch.tensor([[1, 9]])).shape
    torch.Size([1, 2, 60])
    """

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        d: int = 256,
        hidden: int = 256,
        *,
        cell: str = "rnn",
        bidirectional: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder = RNNEncoder(source_vocabulary, d, hidden, cell, bidirectional, dropout)
        self.embedding, self.dropout = nn.Embedding(target_vocabulary, d), nn.Dropout(dropout)
        self.cell = make_cell(cell, d, hidden)
        self.word = nn.Linear(hidden, target_vocabulary)  # o = c + V h

    def forward(
        self,
        source: Int[Tensor, "B n"],
        target: Int[Tensor, "B m"],
        lengths: Int[Tensor, " B"] | None = None,
        *,
        read: Read | None = None,
    ) -> Float[Tensor, "B m V"]:
        """`read` takes the output layer's place: instead of logits comes what it makes of (states, V, c)."""
        return self.decode(target, self.begin(source, lengths), read=read)[0]

    def begin(self, source: Int[Tensor, "B n"], lengths: Int[Tensor, " B"] | None = None) -> State:
        _, last = self.encoder(source, lengths)
        return State(last)

    def step(self, token: Int[Tensor, " B"], state: State) -> tuple[Float[Tensor, "B V"], State]:
        logits, state = self.decode(token[:, None], state)
        return logits[:, 0], state

    def decode(
        self, target: Int[Tensor, "B m"], state: State, *, read: Read | None = None
    ) -> tuple[Float[Tensor, "B m V"], State]:
        """Logits after each of these words, and the state after the last."""
        x = self.dropout(self.embedding(target))
        states, state.cell = self.cell(x, state.cell)
        return words(self.word, self.dropout(states), read), state


class AttentiveRNN(RNNEncoderDecoder):
    """Every encoder state reaches the decoder. Each step scores them all against its own state H_t,
    normalizes, takes the weighted sum a_t, and reads the word off a feed-forward layer over [H_t; a_t].

    `score` compares H_t, of width `hidden`, with encoder states, of width `hidden` (twice that if
    `bidirectional`); the default is Bahdanau's. `normalizer` chooses soft or hard: `GumbelHard()` trains
    as it is, `Hard()` by `regard.models.hard.Reinforce`. With `input_feeding` the next step also reads
    a_t; without, all steps of a known target attend in one call.

    >>> import regard, torch
    >>> model = AttentiveRNN(50, 60, d=8, hidden=16, score=regard.scores.Bilinear(16, 16))
    >>> model(torch.tensor([[5, 8, 2]]), torch.tensor([[1, 9]])).shape
    torch.Size([1, 2, 60])
    """

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        d: int = 256,
        hidden: int = 256,
        *,
        cell: str = "rnn",
        bidirectional: bool = False,
        score: Score | Pairwise | None = None,
        normalizer: Normalizer | None = None,
        input_feeding: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(
            source_vocabulary,
            target_vocabulary,
            d,
            hidden,
            cell=cell,
            bidirectional=bidirectional,
            dropout=dropout,
        )
        width = self.encoder.width
        self.attention = Attention(Additive(hidden, width, hidden) if score is None else score, normalizer)
        self.feed_forward = Linear(hidden + width, hidden)
        self.input_feeding = input_feeding
        if input_feeding:
            self.cell = make_cell(cell, d + width, hidden)

    def forward(
        self,
        source: Int[Tensor, "B n"],
        target: Int[Tensor, "B m"],
        lengths: Int[Tensor, " B"] | None = None,
        attend: Attend | None = None,
        *,
        read: Read | None = None,
    ) -> Float[Tensor, "B m V"]:
        """`attend` takes the attention's place, to draw from its scores, or to look at its arguments; `read` the
        output layer's."""
        return self.decode(target, self.begin(source, lengths), attend, read=read)[0]

    def begin(self, source: Int[Tensor, "B n"], lengths: Int[Tensor, " B"] | None = None) -> State:
        memory, last = self.encoder(source, lengths)
        context = memory.new_zeros(len(memory), memory.shape[-1]) if self.input_feeding else None
        return State(last, memory, lengths, context)

    def decode(
        self, target: Int[Tensor, "B m"], state: State, attend: Attend | None = None, *, read: Read | None = None
    ) -> tuple[Float[Tensor, "B m V"], State]:
        x = self.dropout(self.embedding(target))
        if not self.input_feeding:
            H, state.cell = self.cell(x, state.cell)
            return self._words(H, self._attend(H, state, attend), read), state
        steps = []
        for x_t in x.split(1, dim=1):
            assert state.context is not None
            H, state.cell = self.cell(torch.cat([x_t, state.context[:, None]], -1), state.cell)
            a = self._attend(H, state, attend)
            state.context = a[:, 0]
            steps.append((H, a))
        H, a = (torch.cat(column, 1) for column in zip(*steps, strict=True))
        return self._words(H, a, read), state

    def _attend(self, H: Float[Tensor, "B m hidden"], state: State, attend: Attend | None) -> Tensor:
        assert state.memory is not None
        mask = None if state.lengths is None else padding(state.lengths)
        return (attend or self.attention)(H, state.memory, state.memory, mask)

    def _words(
        self, H: Float[Tensor, "B m hidden"], a: Float[Tensor, "B m width"], read: Read | None
    ) -> Float[Tensor, "B m V"]:
        x = torch.tanh(self.feed_forward(torch.cat([H, a], -1)))
        return words(self.word, self.dropout(x), read)
