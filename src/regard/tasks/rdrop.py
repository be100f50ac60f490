"""R-Drop (Liang and others, 2021): a network reads a batch twice, each time with dropout of its own, and is asked to
say the same both times."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from regard.tasks.examples import IGNORED


def disagreement(logits: Float[Tensor, "*n C"], target: Int[Tensor, "*n"]) -> Float[Tensor, ""]:
    """½ (KL(p‖q) + KL(q‖p)), summed over all that is asked for: p from the first half of the rows, q from the second,
    which ask the same.

    >>> import torch
    >>> logits = torch.tensor([[0.0, 0.0], [0.0, 0.0]])
    >>> float(disagreement(logits, torch.tensor([1, 1])))
    0.0
    """
    p, q = logits.reshape(-1, logits.shape[-1]).float().log_softmax(-1).chunk(2)
    asked = target.reshape(-1).chunk(2)[0] != IGNORED
    both = ((p.exp() - q.exp()) * (p - q)).sum(-1) / 2  # p (log p - log q) + q (log q - log p)
    return both[asked].sum()
