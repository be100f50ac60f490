"""Words read by their letters: what training never saw, or saw once, is told by how it is written."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.core.masks import padding
from regard.core.shapes import InputError
from regard.models.cells import RNNEncoder
from regard.nn.attention import Attention

STACKS: dict[str, type[nn.RNN | nn.GRU | nn.LSTM]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class LetterReader(nn.Module):
    """The letters of each word to one vector: a GRU reads them from both ends, a learned query attends to its states.

    Letters are numbers from 1 to `letters`; 0 is a pad. What has no letters is a vector of zeros.

    >>> import torch
    >>> LetterReader(letters=26, d=8)(torch.tensor([[[3, 1, 20], [1, 0, 0]]])).shape
    torch.Size([1, 2, 8])
    """

    def __init__(self, letters: int, d: int, dropout: float = 0.0) -> None:
        super().__init__()
        if d < 2 or d % 2:
            raise InputError(f"letters: d={d}; expected an even number, half of it for each direction")
        self.d = d
        self.rnn = RNNEncoder(letters + 1, d, d // 2, "gru", bidirectional=True, dropout=dropout)
        self.rnn.join = nn.ModuleList()  # which would learn nothing: no decoder begins with the last state
        self.query = nn.Parameter(torch.randn(1, d) * d**-0.5)
        self.attention = Attention()

    def forward(self, letters: Int[Tensor, "B n c"]) -> Float[Tensor, "B n d"]:
        rows = letters.flatten(0, 1)
        lengths = (rows > 0).sum(-1)
        states, _ = self.rnn(rows, lengths)
        query = self.query.to(states.dtype).expand(len(rows), -1, -1)
        found = self.attention(query, states, states, mask=padding(lengths))  # B·n 1 d
        return found[:, 0].unflatten(0, letters.shape[:2])


class LetterTagger(nn.Module):
    """A label for each word of a sentence, from the word's own vector and from its letters; layers of an RNN read
    the sentence from both ends.

    `words` gives the vectors of ids. In training a share `hide` of the words is read as the word `unknown`, so that
    their letters must do.
    """

    def __init__(
        self,
        words: nn.Module,
        d: int,
        letters: LetterReader,
        hidden: int,
        layers: int,
        labels: int,
        *,
        cell: str = "lstm",
        dropout: float = 0.0,
        hide: float = 0.0,
        unknown: int = 0,
    ) -> None:
        super().__init__()
        if cell not in STACKS:
            raise InputError(f"cell={cell!r}; expected one of {', '.join(map(repr, STACKS))}")
        self.words, self.letters, self.dropout = words, letters, nn.Dropout(dropout)
        between = dropout if layers > 1 else 0.0
        self.rnn = STACKS[cell](d + letters.d, hidden, layers, batch_first=True, bidirectional=True, dropout=between)
        self.label = nn.Linear(2 * hidden, labels)
        self.hide, self.unknown = hide, unknown

    def forward(
        self, source: Int[Tensor, "B n"], lengths: Int[Tensor, " B"], letters: Int[Tensor, "B n c"]
    ) -> Float[Tensor, "B n labels"]:
        if self.training and self.hide:
            hidden = torch.rand(source.shape, device=source.device) < self.hide
            source = source.masked_fill(hidden, self.unknown)
        words, spelled = self.words(source), self.letters(letters)
        x = self.dropout(torch.cat([words, spelled.to(words.dtype)], -1))
        packed = pack_padded_sequence(x, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=x.shape[1])
        return self.label(self.dropout(states))
