"""Who is seen at all, found from blocks, must be who is seen in the written-out mask."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard import Extent, attention
from regard import masks as M
from regard.core import visibility
from regard.core.visibility import blank_unseen, seen
from regard.scores import Additive
from tests.mechanisms import HEADS, MASKS, D, Row, ids
from tests.mechanisms import mask as mask_of
from tests.strategies import CPU, allowed, extents, masks


def check(mask: M.Mask, extent: Extent) -> None:
    queries, keys = seen(mask, extent)
    pairs = allowed(mask, extent)
    assert torch.equal(queries, pairs.any(-1))
    assert torch.equal(keys, pairs.any(-2))


@pytest.mark.parametrize("block", [1, 2, 3, 64])
@pytest.mark.parametrize("row", **ids([row for row in MASKS if mask_of(row) is not None]))
def test_seen_is_any_pair_of_the_row_or_column(row: Row, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visibility, "BLOCK", block)
    check(mask_of(row), Extent((2, HEADS), 5, 5, CPU))


@given(st.data(), extents(), st.integers(1, 6))
def test_seen_is_any_pair_for_every_combination_of_masks(data: st.DataObject, extent: Extent, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(visibility, "BLOCK", block)
        check(data.draw(masks(extent)), extent)


@pytest.mark.parametrize(
    "mask",
    [
        M.window(2, 0, align=-150),
        M.causal(align=100),
        M.padding(torch.tensor([130, 0]), torch.tensor([64, 65])),
        M.positions([0, 64, 199]) & M.window(10, 10, "start"),
        M.per_head([M.random_blocks(3, 1), ~M.global_tokens([64, 65])]),
    ],
)
def test_seen_with_blocks_as_large_as_in_use(mask: M.Mask) -> None:
    check(mask, Extent((2, 2), 150, 200, CPU))


def test_a_mask_that_knows_nothing_of_blocks_is_looked_at_pair_by_pair() -> None:
    class Primes(M.Mask):
        def allowed(self, tile) -> Tensor:
            j = tile.j.expand(tile.i.shape[0], -1)
            return torch.tensor([[int(x) in (2, 3, 5, 7) for x in row] for row in j.tolist()]).reshape(j.shape)

    assert seen(Primes(), Extent((), 2, 9, CPU))[1].tolist() == [n in (2, 3, 5, 7) for n in range(9)]


def problem(lead: tuple[int, ...] = (2, HEADS)) -> list[Tensor]:
    return [torch.ones(*lead, 5, D) for _ in range(3)]


@pytest.mark.parametrize("row", **ids([row for row in MASKS if mask_of(row) is not None]))
def test_what_nobody_sees_becomes_zero_and_nothing_else_changes(row: Row) -> None:
    extent = Extent((2, HEADS), 5, 5, CPU)
    pairs = allowed(mask_of(row), extent)
    query, key, value = blank_unseen(*problem(), mask_of(row), extent)
    assert torch.equal(query, pairs.any(-1)[..., None].float().expand_as(query))
    for x in (key, value):
        assert torch.equal(x, pairs.any(-2)[..., None].float().expand_as(x))


def test_a_shared_tensor_is_seen_when_any_that_share_it_see_it() -> None:
    mask, extent = M.padding(torch.tensor([1, 3])), Extent((2, HEADS), 5, 5, CPU)
    for lead in ((), (1,), (HEADS,), (1, 1), (1, HEADS)):
        _, key, _ = blank_unseen(*problem(lead), mask, extent)
        assert torch.equal(key, torch.tensor([1.0, 1, 1, 0, 0])[:, None].expand(*lead, 5, D))
    _, key, _ = blank_unseen(*problem((2, 1)), mask, extent)
    assert key[:, 0, :, 0].tolist() == [[1, 0, 0, 0, 0], [1, 1, 1, 0, 0]]


@given(st.data(), extents(batches=((), (2,), (2, 3))))
def test_certainty_about_the_diagonal_is_warranted(data: st.DataObject, extent: Extent) -> None:
    mask = data.draw(masks(extent))
    if mask.on_diagonal():
        assert allowed(mask, extent).diagonal(0, -2, -1).all()


@pytest.mark.parametrize("n_q", [0, 1, 2, 5])
@pytest.mark.parametrize("n_k", [0, 1, 3, 5])
@pytest.mark.parametrize("align", ["start", "end", 1, -2, 7])
@pytest.mark.parametrize(("left", "right"), [(None, 0), (0, 0), (1, 0), (0, 2), (None, None), (2, None)])
def test_a_band_that_claims_to_see_all_does(n_q, n_k, align, left, right):
    """The claim spares the search; a wrong one would let NaN through. It is also never missed."""
    extent, mask = Extent((), n_q, n_k, CPU), M.window(left, right, align)
    dense = mask.allowed(extent.tile())
    truth = bool(dense.any(0).all() and dense.any(1).all())
    claimed = mask.sees_all(extent)
    assert claimed == truth if n_q and n_k else truth or not claimed


@pytest.mark.parametrize("mask", [None, M.causal("start")], ids=["no mask", "causal"])
@pytest.mark.parametrize(("batch", "n_q"), [(0, 5), (1, 0)])
def test_without_any_query_no_key_leaves_a_trace(mask, batch, n_q):
    """A NaN key that an empty batch, or no query at all, looks at: W_k's gradient is 0, not NaN."""
    score = Additive(2, 2, 3)
    query, key = torch.zeros(batch, n_q, 2), torch.full((1, 5, 2), float("nan"), requires_grad=True)
    for backend in ("reference", "chunked"):
        out = attention(query, key, torch.zeros(1, 5, 1), score=score, mask=mask, backend=backend)
        gradients = torch.autograd.grad(out.sum(), [key, score.w_k], allow_unused=True)
        assert all(g is None or not g.any() for g in gradients)
