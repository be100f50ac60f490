"""A sentence through a bottleneck and back: encode to a smaller latent, reconstruct from it alone.

The denoising form is the same model, shown a corrupted sentence and asked for the whole one:
`model(*corrupt(source, lengths, seed), target)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.mask import Mask
from regard.core.masks import padding
from regard.core.shapes import InputError
from regard.models.transformer import State, TransformerEncoder, Writer
from regard.nn.attention import MultiHeadAttention
from regard.nn.word_loss import Read


class Autoencoder(nn.Module):
    """`slots` learned queries look at the encoded sentence; what each finds is one latent vector of
    d_latent numbers. The decoder reads these slots · d_latent numbers and nothing else.

    >>> import torch
    >>> model = Autoencoder(vocabulary=50, d=16, heads=2, layers=1, slots=2, d_latent=8, n_max=20)
    >>> model.encode(torch.tensor([[5, 8, 2, 4, 9]])).shape  # 5 words of 16 numbers, now 2 of 8
    torch.Size([1, 2, 8])
    """

    def __init__(
        self,
        vocabulary: int | nn.Module,
        d: int = 256,
        heads: int = 4,
        layers: int = 3,
        hidden: int | None = None,
        *,
        slots: int = 4,
        d_latent: int = 64,
        n_max: int = 64,
        mask: Mask | Sequence[Mask] | None = None,
        dropout: float = 0.0,
        tied: bool = True,
        **parts: Any,
    ) -> None:
        super().__init__()
        if slots * d_latent >= n_max * d:
            raise InputError(
                f"slots={slots} of d_latent={d_latent} hold {slots * d_latent} numbers, a sentence of n_max={n_max} "
                f"words {n_max * d}; a latent must be smaller than what it stands for"
            )
        self.encoder = TransformerEncoder(
            vocabulary, d, heads, layers, hidden, n_max=n_max, mask=mask, dropout=dropout, **parts
        )
        self.queries = nn.Parameter(torch.randn(slots, d))
        self.pool = MultiHeadAttention(d, heads, d_out=d_latent)
        self.norm = nn.LayerNorm(d_latent)
        self.widen = nn.Linear(d_latent, d)
        # The decoder writes a begin token first, so it may be one longer.
        self.writer = Writer(vocabulary, d, heads, layers, hidden, n_max=n_max + 1, dropout=dropout, tied=tied, **parts)

    def encode(
        self, source: Int[Tensor, "*batch n"], lengths: Int[Tensor, "*batch"] | None = None
    ) -> Float[Tensor, "*batch slots d_latent"]:
        states = self.encoder(source, lengths)
        queries = self.queries.expand(*states.shape[:-2], -1, -1)
        found = self.pool(queries, states, mask=None if lengths is None else padding(lengths))
        return self.norm(found)

    def decode(
        self,
        latent: Float[Tensor, "*batch slots d_latent"],
        target: Int[Tensor, "*batch n"],
        *,
        read: Read | None = None,
    ) -> Float[Tensor, "*batch n V"]:
        return self.writer(target, self.widen(latent), read=read)

    def forward(
        self,
        source: Int[Tensor, "*batch n_k"],
        target: Int[Tensor, "*batch n"],
        lengths: Int[Tensor, "*batch"] | None = None,
        *,
        read: Read | None = None,
    ) -> Float[Tensor, "*batch n V"]:
        return self.decode(self.encode(source, lengths), target, read=read)

    def begin(self, source: Int[Tensor, "B n_k"], lengths: Int[Tensor, " B"] | None = None) -> State:
        return self.writer.begin(self.widen(self.encode(source, lengths)))

    def step(self, token: Int[Tensor, " B"], state: State) -> tuple[Float[Tensor, "B V"], State]:
        return self.writer.step(token, state)


def corrupt(
    tokens: Int[Tensor, "B n"],
    lengths: Int[Tensor, " B"],
    seed: int,
    *,
    mask_id: int,
    pad_id: int = 0,
    drop: float = 0.1,
    mask: float = 0.1,
    swap: float = 0.1,
) -> tuple[Int[Tensor, "B n"], Int[Tensor, " B"]]:
    """Sentences with words missing, masked and swapped with the next one, each with its own
    probability; and their new lengths. A function of the seed. At least one word of a sentence stays.

    >>> import torch
    >>> corrupt(torch.tensor([[3, 4, 5]]), torch.tensor([3]), 0, mask_id=1, drop=0, mask=1, swap=0)[0]
    tensor([[1, 1, 1]])
    """
    for name, share in (("drop", drop), ("mask", mask), ("swap", swap)):
        if not 0 <= share <= 1:
            raise InputError(f"corrupt: {name}={share}; expected a probability, 0 to 1")
    generator = torch.Generator().manual_seed(seed)
    n = tokens.shape[-1]
    column = torch.arange(n)
    words, size = tokens.cpu(), lengths.cpu()
    real = column < size[:, None]

    def drawn(share: float) -> Tensor:
        return (torch.rand(words.shape, generator=generator) < share) & real

    # Words change places by their sort keys: i + 1.5 comes after i + 1.
    moved = column + 1.5 * drawn(swap)
    order = torch.where(real, moved, n + 2.0 + column).argsort(dim=-1, stable=True)
    words = words.gather(-1, order).masked_fill(drawn(mask), mask_id)
    luck = torch.rand(words.shape, generator=generator).masked_fill(~real, -1.0)
    lucky = column == luck.argmax(-1, keepdim=True) if n else real
    kept = real & (~drawn(drop) | lucky)
    left = kept.sum(-1)
    words = words.gather(-1, (~kept).int().argsort(dim=-1, stable=True))
    words = words.masked_fill(column >= left[:, None], pad_id)
    return words.to(tokens.device), left.to(lengths)
