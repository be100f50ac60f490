"""Random masks and extents for hypothesis: everything a mask's public function accepts, and `& | ~` of it.

Tensors are drawn from a seed: their sizes are what is worth shrinking.
"""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from torch import Tensor

from regard import Extent
from regard import masks as M

CPU = torch.device("cpu")
seeds = st.integers(0, 2**31 - 1)


@st.composite
def extents(draw: st.DrawFn, most: int = 12, batches: tuple = ((), (2,), (2, 3), (1, 2), (0,))) -> Extent:
    return Extent(draw(st.sampled_from(batches)), draw(st.integers(0, most)), draw(st.integers(0, most)), CPU)


@st.composite
def integers(draw: st.DrawFn, low: int, high: int, *shape: int) -> Tensor:
    """Whole numbers from low to high, both included."""
    generator = torch.Generator().manual_seed(draw(seeds))
    return torch.randint(low, high + 1, shape, generator=generator)


@st.composite
def leads(draw: st.DrawFn, batch: tuple[int, ...]) -> tuple[int, ...]:
    """Leading axes that line up with the batch from the left."""
    some = batch[: draw(st.integers(0, len(batch)))]
    return tuple(1 if draw(st.booleans()) else size for size in some)


@st.composite
def leaves(draw: st.DrawFn, extent: Extent) -> M.Mask:
    n_q, n_k = extent.n_q, extent.n_k
    aligns: st.SearchStrategy = st.sampled_from(["start", "end"]) | st.integers(-3, n_k)
    aligns = aligns | st.none() if n_q == n_k else aligns
    reach = st.integers(0, 4)
    size = draw(st.integers(1, 5))
    lead = draw(leads(extent.batch))
    kind = draw(st.integers(0, 10))
    if kind == 0:
        return M.causal(draw(aligns))
    if kind == 1:
        return M.window(draw(st.none() | reach), draw(st.none() | reach), draw(aligns))
    if kind == 2:
        return M.strided(size, draw(aligns))
    if kind == 3:
        return M.dilated(draw(reach), draw(reach), size, draw(aligns))
    if kind == 4:
        rows = draw(st.none() | integers(0, n_q, *lead))
        return M.padding(draw(integers(0, n_k, *lead)), rows, draw(st.sampled_from(["left", "right"])))
    if kind == 5:
        ids, key_ids = draw(integers(-1, 3, *lead, n_q)), draw(integers(-1, 3, *lead, n_k))
        if draw(st.booleans()):  # packed as in practice: ascending, the padding last
            ids, key_ids = ((x % 5).sort(-1).values.where(x % 5 < 4, -1) for x in (ids, key_ids))
        return M.documents(ids, key_ids)
    if kind == 6:
        layout = integers(0, 1, -(-n_q // size), -(-n_k // size)).map(Tensor.bool)
        return M.blocks(size, draw(st.none() | layout))
    if kind == 7:
        return M.global_tokens(draw(integers(-1, max(n_q, n_k), *lead, draw(st.integers(0, 3)))))
    if kind == 8:
        return M.random_blocks(size, draw(st.integers(1, 4)), draw(seeds))
    if kind == 9:
        rows = draw(st.sampled_from([(), (1,), (n_q,)]))
        shape = (*(lead if rows else ()), *rows, draw(st.integers(0, 3)))
        return M.positions(draw(integers(-1, n_k, *shape)))
    shape = [*extent.batch, n_q, n_k][draw(st.integers(0, len(extent.batch))) :]
    return M.dense(draw(integers(0, 1, *[1 if draw(st.booleans()) else n for n in shape])).bool())


def masks(extent: Extent) -> st.SearchStrategy[M.Mask]:
    """Any mask that can serve this extent."""

    def combined(part: st.SearchStrategy[M.Mask]) -> st.SearchStrategy[M.Mask]:
        pair = st.tuples(part, part)
        kinds = [part.map(lambda a: ~a), pair.map(lambda ab: ab[0] & ab[1]), pair.map(lambda ab: ab[0] | ab[1])]
        heads = extent.batch[-1] if extent.batch else 0
        if heads:
            kinds.append(st.lists(leaves(extent), min_size=heads, max_size=heads).map(M.per_head))
        return st.one_of(kinds)

    return st.recursive(leaves(extent), combined, max_leaves=4)


def allowed(mask: M.Mask, extent: Extent) -> Tensor:
    """Every pair, written out: [*batch, n_q, n_k]."""
    return mask.allowed(extent.tile()).expand(*extent.batch, extent.n_q, extent.n_k)
