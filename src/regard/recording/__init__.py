"""Watch every attention of a model while it runs: `with regard.record(model) as records: model(x)`.

Queries, keys and masks are kept as the model made them (views, not copies); weights and statistics are
computed from them when asked for, and never more than was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from torch import nn

from regard.recording.records import Record, Records
from regard.recording.watching import Watcher

__all__ = ["Record", "Records", "record"]


@contextmanager
def record(
    model: nn.Module, *, only: str | Sequence[str] | None = None, keep: int | None = None, copy: bool = False
) -> Iterator[Records]:
    """Watch the attentions of a model: those of regard.nn, nn.MultiheadAttention, Hugging Face models. The
    output does not change by a bit.

    `only` names those to watch ("decoder*", or a list of such), `keep` how many of the latest calls of each to
    keep. What is kept are views of the model's own tensors: a record can be read until the model overwrites
    them, and says so if it has; `copy=True` keeps copies instead.

    >>> import torch, regard
    >>> from regard.nn.attention import MultiHeadAttention
    >>> model = torch.nn.ModuleDict({"attention": MultiHeadAttention(8, heads=2)})
    >>> with record(model) as records:
    ...     output = model["attention"](torch.randn(1, 5, 8), mask=regard.masks.causal())
    >>> records["attention"].weights(rows=0)  # the first word sees only itself
    tensor([[[[1., 0., 0., 0., 0.]],
             [[1., 0., 0., 0., 0.]]]])
    """
    watcher = Watcher(model, [only] if isinstance(only, str) else only, keep, copy)
    with ExitStack() as undo:
        watcher.watch(undo)
        yield watcher.records
