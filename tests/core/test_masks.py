"""Masks: each against a matrix that a person can check, and block maps against the written-out mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from regard import DeviceError, DTypeError, Extent, InputError, ShapeError, attention
from regard import masks as M
from tests.mechanisms import HEADS, MASKS, Row, ids
from tests.mechanisms import mask as mask_of
from tests.strategies import CPU, allowed, extents, masks


def picture(mask: M.Mask, n_q: int, n_k: int, batch: tuple[int, ...] = ()) -> str | list:
    """One word per query, x where it may attend; nested lists over the batch."""

    def draw(x: Tensor) -> str | list:
        if x.ndim > 2:
            return [draw(part) for part in x]
        return " ".join("".join("x" if pair else "." for pair in row) for row in x.tolist())

    extent = Extent(batch, n_q, n_k, CPU)
    mask.check(extent)
    return draw(allowed(mask, extent))


# What each mask allows


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (M.causal(), "x... xx.. xxx. xxxx"),
        (M.causal("start"), "x... xx.. xxx. xxxx"),
        (M.causal(2), "xxx. xxxx xxxx xxxx"),
        (M.causal(-2), ".... .... x... xx.."),
        (M.window(1, 0), "x... xx.. .xx. ..xx"),
        (M.window(0, 2), "xxx. .xxx ..xx ...x"),
        (M.window(None, 0), "x... xx.. xxx. xxxx"),
        (M.window(0, None), "xxxx .xxx ..xx ...x"),
        (M.window(None, None), "xxxx xxxx xxxx xxxx"),
        (M.window(0, 0, 1), ".x.. ..x. ...x ...."),
        (M.strided(2), "x.x. .x.x x.x. .x.x"),
        (M.strided(3, 1), ".x.. ..x. x..x .x.."),
        (M.strided(1), "xxxx xxxx xxxx xxxx"),
        (M.dilated(1, 0, 2), "x... .x.. x.x. .x.x"),
        (M.dilated(0, 1, 3), "x..x .x.. ..x. ...x"),
        (M.padding(torch.tensor(3)), "xxx. xxx. xxx. xxx."),
        (M.padding(torch.tensor(3), side="left"), ".xxx .xxx .xxx .xxx"),
        (M.padding(torch.tensor(1), torch.tensor(2)), "x... x... .... ...."),
        (M.padding(torch.tensor(1), torch.tensor(2), side="left"), ".... .... ...x ...x"),
        (M.padding(torch.tensor(0)), ".... .... .... ...."),
        (M.documents(torch.tensor([0, 0, 1, 1])), "xx.. xx.. ..xx ..xx"),
        (M.documents(torch.tensor([7, 2, 7, -1])), "x.x. .x.. x.x. ...."),
        (M.documents(torch.tensor([0, 0, 1, 1]), torch.tensor([1, 0, -1, 2])), ".x.. .x.. x... x..."),
        (M.blocks(2), "xx.. xx.. ..xx ..xx"),
        (M.blocks(3), "xxx. xxx. xxx. ...x"),
        (M.blocks(2, torch.tensor([[False, True], [True, True]])), "..xx ..xx xxxx xxxx"),
        (M.blocks(3, torch.tensor([[False, True], [True, False]])), "...x ...x ...x xxx."),
        (M.global_tokens([1]), ".x.. xxxx .x.. .x.."),
        (M.global_tokens([0, -1, 9]), "xxxx x... x... x..."),
        (M.positions([0, 3]), "x..x x..x x..x x..x"),
        (M.positions([-1, 9]), ".... .... .... ...."),
        (M.positions(torch.tensor([[0, 1], [2, -1], [-1, -1], [3, 3]])), "xx.. ..x. .... ...x"),
        (M.dense(torch.eye(4).bool()), "x... .x.. ..x. ...x"),
        (M.dense(torch.tensor([[True, False, False, True]])), "x..x x..x x..x x..x"),
        (M.causal() & M.window(1, 1), "x... xx.. .xx. ..xx"),
        (M.strided(2) | M.causal(), "x.x. xx.x xxx. xxxx"),
        (~M.causal(), ".xxx ..xx ...x ...."),
        (~(M.window(1, 1) | M.positions([0])), "..xx ...x .... .x.."),
    ],
)
def test_each_mask_allows_what_its_rule_says(mask: M.Mask, expected: str) -> None:
    assert picture(mask, 4, 4) == expected


@pytest.mark.parametrize(
    ("align", "two_of_four", "four_of_two"),
    [
        ("start", "x... xx..", "x. xx xx xx"),
        ("end", "xxx. xxxx", ".. .. x. xx"),
        (1, "xx.. xxx.", "xx xx xx xx"),
        (-1, ".... x...", ".. x. xx xx"),
    ],
)
def test_align_says_at_which_key_query_0_stands(align: str | int, two_of_four: str, four_of_two: str) -> None:
    assert picture(M.causal(align), 2, 4) == two_of_four
    assert picture(M.causal(align), 4, 2) == four_of_two


def test_every_aligned_mask_moves_with_its_align() -> None:
    assert picture(M.window(0, 0, "end"), 2, 4) == "..x. ...x"
    assert picture(M.strided(2, "end"), 2, 4) == "x.x. .x.x"
    assert picture(M.strided(2, "end"), 2, 5) == ".x.x. x.x.x"
    assert picture(M.dilated(1, 0, 2, "end"), 2, 5) == ".x.x. ..x.x"


def test_lengths_line_up_with_the_batch_from_the_left() -> None:
    per_element = M.padding(torch.tensor([1, 2]))
    assert picture(per_element, 1, 3, (2,)) == ["x..", "xx."]
    assert picture(per_element, 1, 3, (2, 2)) == [["x..", "x.."], ["xx.", "xx."]]
    per_element_and_head = M.padding(torch.tensor([[1, 2], [3, 0]]))
    assert picture(per_element_and_head, 1, 3, (2, 2)) == [["x..", "xx."], ["xxx", "..."]]
    per_head = M.padding(torch.tensor([[1, 2]]))
    assert picture(per_head, 1, 3, (2, 2)) == [["x..", "xx."], ["x..", "xx."]]


def test_ids_and_positions_line_up_from_the_left_too() -> None:
    assert picture(M.documents(torch.tensor([[0, 0], [0, 1]])), 2, 2, (2, 1)) == [["xx xx"], ["x. .x"]]
    assert picture(M.global_tokens(torch.tensor([[0], [1]])), 2, 2, (2, 1)) == [["xx x."], [".x xx"]]
    lists = torch.tensor([[[0], [1]], [[1], [-1]]])
    assert picture(M.positions(lists), 2, 2, (2, 1)) == [["x. .x"], [".x .."]]


def test_tables_line_up_from_the_right_as_tensors_do() -> None:
    tables = torch.tensor([[[True, False]], [[False, True]]])  # two heads, one query, two keys
    assert picture(M.dense(tables), 1, 2, (2, 2)) == [["x.", ".x"], ["x.", ".x"]]
    assert picture(M.blocks(2, torch.tensor([[[True]], [[False]]])), 2, 2, (2,)) == ["xx xx", ".. .."]


def test_per_head_gives_each_head_its_own_mask() -> None:
    mask = M.per_head([M.causal(), M.padding(torch.tensor([1, 2]))])
    assert picture(mask, 2, 2, (2, 2)) == [["x. xx", "x. x."], ["x. xx", "xx xx"]]
    assert picture(mask & ~M.window(0, 0), 2, 2, (2, 2)) == [[".. x.", ".. x."], [".. x.", ".x x."]]


def test_random_blocks_gives_each_block_of_queries_as_many_different_blocks_of_keys() -> None:
    for seed in (0, 1, 2**40, -5):
        pairs = allowed(M.random_blocks(3, 2, seed), Extent((), 12, 30, CPU))
        per_block = pairs.reshape(4, 3, 10, 3)
        assert (per_block == per_block[:, :1, :, :1]).all()  # whole blocks
        assert (per_block[:, 0, :, 0].sum(-1) == 2).all()
    extent = Extent((), 64, 64, CPU)
    assert torch.equal(allowed(M.random_blocks(2, 3, 7), extent), allowed(M.random_blocks(2, 3, 7), extent))
    assert not torch.equal(allowed(M.random_blocks(2, 3, 7), extent), allowed(M.random_blocks(2, 3, 8), extent))


def test_random_blocks_reaches_every_block_about_equally_often() -> None:
    pairs = allowed(M.random_blocks(1, 1, 3), Extent((), 4000, 10, CPU))
    expected = 4000 / 10
    chi2 = ((pairs.sum(0) - expected) ** 2 / expected).sum()
    assert chi2 < 27.9  # 9 degrees of freedom, p = 0.001


def test_random_blocks_takes_all_blocks_when_there_are_fewer_than_asked_for() -> None:
    assert picture(M.random_blocks(2, 5), 2, 4) == "xxxx xxxx"


def test_small_integer_types_do_not_overflow() -> None:
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
        for side in ("left", "right"):
            wide = M.padding(torch.tensor(100), torch.tensor(7), side=side)
            narrow = M.padding(torch.tensor(100, dtype=dtype), torch.tensor(7, dtype=dtype), side=side)
            extent = Extent((), 300, 40_000, CPU)
            assert torch.equal(allowed(narrow, extent), allowed(wide, extent))


# What is not a mask, or not for this problem

THREE_OF_FIVE = Extent((2, 4), 3, 5, CPU)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: M.causal("middle"), InputError, r"causal: align='middle' is not 'start', 'end' or a whole number"),
        (lambda: M.window(1, 1, 0.5), InputError, r"window: align=0\.5 is not 'start'"),
        (lambda: M.strided(2, "left"), InputError, r"strided: align='left' is not"),
        (lambda: M.window(-1, 0), InputError, r"window: left=-1; expected a whole number, 0 or more"),
        (lambda: M.window(0, 1.5), InputError, r"window: right=1\.5; expected a whole number, 0 or more"),
        (lambda: M.strided(0), InputError, r"strided: stride=0; expected a whole number, 1 or more"),
        (lambda: M.dilated(1, 1, 0), InputError, r"dilated: step=0; expected a whole number, 1 or more"),
        (lambda: M.blocks(0), InputError, r"blocks: size=0; expected a whole number, 1 or more"),
        (lambda: M.random_blocks(0, 1), InputError, r"random_blocks: size=0; expected a whole number, 1 or more"),
        (lambda: M.random_blocks(1, 0), InputError, r"random_blocks: count=0; expected a whole number, 1 or more"),
        (lambda: M.padding(torch.tensor([1]), side="both"), InputError, r"padding: side='both' is not 'left' or 'right'"),
        (lambda: M.padding([1, 2]), DTypeError, r"padding: lengths is list; expected a tensor of whole numbers"),
        (lambda: M.padding(torch.tensor([1.0])), DTypeError, r"padding: lengths is torch\.float32; expected a tensor of"),
        (
            lambda: M.padding(torch.tensor([1]), torch.tensor([True])),
            DTypeError,
            r"padding: query_lengths is torch\.bool; expected a tensor of whole numbers",
        ),
        (lambda: M.documents(torch.zeros(3)), DTypeError, r"documents: ids is torch\.float32; expected"),
        (
            lambda: M.documents(torch.zeros(3).long(), torch.zeros(3)),
            DTypeError,
            r"documents: key_ids is torch\.float32; expected",
        ),
        (lambda: M.global_tokens([0.5]), DTypeError, r"global_tokens: index is torch\.float32; expected"),
        (lambda: M.positions([True]), DTypeError, r"positions: index is torch\.bool; expected"),
        (lambda: M.dense([[True]]), DTypeError, r"dense: list where a bool tensor was expected \(True = may attend\)"),
        (lambda: M.dense(torch.zeros(2, 2)), DTypeError, r"dense: torch\.float32 .*a float tensor is a bias: pass it as mask"),
        (lambda: M.dense(torch.tensor([True])), ShapeError, r"dense: the mask has shape \(1,\); expected \[\.\.\., n_q, n_k\]"),
        (lambda: M.blocks(2, torch.zeros(2, 2)), DTypeError, r"blocks: layout: torch\.float32 where a bool tensor"),
        (lambda: M.per_head([]), InputError, r"per_head: expected a list of masks, one per head"),
        (lambda: M.per_head([M.causal(), None]), InputError, r"per_head: expected a list of masks, one per head"),
        (
            lambda: M.causal() & torch.ones(2, 2).bool(),
            DTypeError,
            r"mask & Tensor: both sides must be masks; for a bool tensor use dense\(tensor\)",
        ),
        (lambda: M.causal() | None, DTypeError, r"mask \| NoneType: both sides must be masks"),
    ],
)  # fmt: skip
def test_a_bad_argument_is_named(make, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (M.causal(), r"causal: n_q=3, n_k=5: which key does query 0 stand at\? align='start'"),
        (M.window(1, 1), r"window: n_q=3, n_k=5: which key"),
        (M.strided(2), r"strided: n_q=3, n_k=5: which key"),
        (M.dilated(1, 1, 2), r"n_q=3, n_k=5: which key"),
        (M.padding(torch.tensor([1, 2, 3])), r"axis 0 of lengths has size 3, the attention has 2 .*expected 2 or 1"),
        (M.padding(torch.ones(2, 3).long()), r"axis 1 of lengths has size 3, the attention has 4 .*expected 4 or 1"),
        (M.padding(torch.ones(2, 4, 1).long()), r"lengths has leading axes \(2, 4, 1\).*at most 2 of them"),
        (M.padding(torch.tensor([1, 2]), torch.tensor([1, 2, 3])), r"axis 0 of lengths has size 3"),
        (M.documents(torch.zeros(4).long()), r"documents: 4 ids for 3 positions; give one id per position"),
        (M.documents(torch.zeros(3).long()), r"documents: 3 key ids for 5 positions; .*documents\(ids, key_ids="),
        (M.documents(torch.zeros(3, 3).long(), torch.zeros(5).long()), r"documents: axis 0 of ids has size 3"),
        (M.blocks(2, torch.ones(2, 2).bool()), r"layout is \(2, 2\) blocks of 2, n_q=3 and n_k=5 need \(2, 3\)"),
        (M.blocks(2, torch.ones(3, 2, 3).bool()), r"blocks: layout has leading axes \(3,\), the attention has \(2, 4\)"),
        (M.global_tokens(torch.zeros(3, 1).long()), r"global_tokens: axis 0 of index has size 3"),
        (M.positions(torch.zeros(2, 1).long()), r"positions: lists for 2 queries, n_q=3; expected 3, or 1"),
        (M.positions(torch.zeros(3, 3, 1).long()), r"positions: axis 0 of index has size 3"),
        (M.dense(torch.ones(2, 5).bool()), r"dense: the mask has n_q=2, the attention has n_q=3; expected 3 or 1"),
        (M.dense(torch.ones(3, 4).bool()), r"dense: the mask has n_k=4, the attention has n_k=5; expected 5 or 1"),
        (M.dense(torch.ones(2, 3, 5).bool()), r"dense: the mask has leading axes \(2,\).*tensor\[:, None\]"),
        (M.per_head([M.positions([0])] * 3), r"per_head: 3 masks for 4 heads \(axis -3 of query\)"),
        (M.per_head([M.causal()] * 4), r"causal: n_q=3, n_k=5"),
        (~(M.positions([0]) & M.causal()), r"causal: n_q=3, n_k=5"),
        (M.causal() | M.positions([0]), r"causal: n_q=3, n_k=5"),
    ],
)  # fmt: skip
def test_a_mask_for_another_problem_is_refused(mask: M.Mask, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        mask.check(THREE_OF_FIVE)


def test_a_mask_of_ones_own_says_what_is_missing() -> None:
    class Odd(M.Mask):
        pass

    with pytest.raises(NotImplementedError, match="Odd must say which pairs of a tile are allowed"):
        Odd().allowed(THREE_OF_FIVE.tile())


# Block maps


def spread(blocks: Tensor, extent: Extent, block_q: int, block_k: int) -> Tensor:
    """What is said of a block, said of each of its pairs."""
    rows, cols = torch.arange(extent.n_q) // block_q, torch.arange(extent.n_k) // block_k
    return blocks.expand(*extent.batch, *blocks.shape[-2:])[..., rows[:, None], cols]


def check_sound(mask: M.Mask, extent: Extent, block_q: int, block_k: int) -> None:
    blocks, pairs = mask.blocks(extent, block_q, block_k), allowed(mask, extent)
    for kind in blocks:
        assert kind.shape[-2:] == (-(-extent.n_q // block_q), -(-extent.n_k // block_k))
    assert (blocks.empty.int() + blocks.partial + blocks.full == 1).all()
    assert pairs[spread(blocks.full, extent, block_q, block_k)].all()
    assert not pairs[spread(blocks.empty, extent, block_q, block_k)].any()


def check_exact(mask: M.Mask, extent: Extent, block_q: int, block_k: int, single: bool = True) -> None:
    """Partial is said only of a block that holds both kinds of pairs (or, unless `single`, one pair)."""
    blocks, pairs = mask.blocks(extent, block_q, block_k), allowed(mask, extent)
    partial = blocks.partial.expand(*extent.batch, *blocks.partial.shape[-2:])
    for row in range(partial.shape[-2]):
        for col in range(partial.shape[-1]):
            block = pairs[
                ..., row * block_q : (row + 1) * block_q, col * block_k : (col + 1) * block_k
            ].flatten(-2)  # fmt: skip
            mixed = block.any(-1) & ~block.all(-1)
            if single or block.shape[-1] > 1:
                assert torch.equal(partial[..., row, col], mixed)


@pytest.mark.parametrize("row", **ids([row for row in MASKS if mask_of(row) is not None]))
def test_the_block_map_of_every_mask_is_sound(row: Row) -> None:
    for block_q in range(1, 7):
        for block_k in range(1, 7):
            check_sound(mask_of(row), Extent((2, HEADS), 5, 5, CPU), block_q, block_k)


@given(st.data(), extents(), st.integers(1, 7), st.integers(1, 7))
def test_the_block_map_of_any_combination_is_sound(data: st.DataObject, extent: Extent, block_q: int, block_k: int):
    mask = data.draw(masks(extent))
    mask.check(extent)
    check_sound(mask, extent, block_q, block_k)


@pytest.mark.parametrize(("n_q", "n_k"), [(0, 0), (0, 4), (4, 0)])
def test_without_queries_or_keys_there_are_no_blocks(n_q: int, n_k: int) -> None:
    blocked = torch.ones(-(-n_q // 2), -(-n_k // 2)).bool()
    for mask in (
        M.causal("end"),
        M.strided(2, "start"),
        M.padding(torch.tensor(0)),
        M.documents(torch.zeros(n_q).long(), torch.zeros(n_k).long()),
        M.blocks(2),
        M.blocks(2, blocked),
        M.global_tokens([0]),
        M.random_blocks(2, 2),
        M.positions([0]),
        M.positions(torch.zeros(n_q, 1).long()),
        M.dense(torch.ones(n_q, n_k).bool()),
    ):
        check_sound(mask, Extent((), n_q, n_k, CPU), 2, 2)


@given(st.data(), extents())
def test_a_tile_is_a_cut_of_the_whole(data: st.DataObject, extent: Extent) -> None:
    mask = data.draw(masks(extent))
    rows = torch.tensor(data.draw(st.lists(st.integers(0, extent.n_q - 1), max_size=5) if extent.n_q else st.just([])))
    cols = torch.tensor(data.draw(st.lists(st.integers(0, extent.n_k - 1), max_size=5) if extent.n_k else st.just([])))
    rows, cols = rows.long(), cols.long()
    cut = mask.allowed(extent.tile(rows, cols)).expand(*extent.batch, len(rows), len(cols))
    assert torch.equal(cut, allowed(mask, extent)[..., rows[:, None], cols])


@given(
    extents(batches=((2,),)),
    st.integers(1, 7),
    st.integers(1, 7),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(-3, 9),
)
def test_rules_call_partial_only_what_is_mixed(
    extent: Extent, block_q: int, block_k: int, left: int, right: int, align: int
) -> None:
    lengths = torch.tensor([left, 2 * right])
    for mask in (
        M.causal(align),
        M.window(left, right, align),
        M.window(left, None, align),
        M.blocks(left + 1),
        M.blocks(left + 1, torch.ones(-(-extent.n_q // (left + 1)), -(-extent.n_k // (left + 1))).bool()),
        M.padding(lengths),
        M.padding(lengths, lengths.flip(0), side="left"),
        M.global_tokens([left, right]),
        M.positions([left, left + 1, left + 2]),
        ~M.causal(align),
    ):
        check_exact(mask, extent, block_q, block_k)
    check_exact(M.strided(left + 1, align), extent, block_q, block_k, single=False)


def test_packed_documents_skip_each_other() -> None:
    packed = M.documents(torch.tensor([0, 0, 1, 1, 2, 2, -1, -1]))
    blocks = packed.blocks(Extent((), 8, 8, CPU), 2, 2)
    assert torch.equal(blocks.full, torch.diag(torch.tensor([True, True, True, False])))
    assert not (blocks.partial | blocks.full)[~torch.eye(4).bool()].any()


def test_the_largest_id_is_not_taken_for_padding() -> None:
    check_sound(M.documents(torch.tensor([127, 127, -1, -1], dtype=torch.int8)), Extent((), 4, 4, CPU), 1, 2)


class Largest(TorchDispatchMode):
    """Remembers the size of the largest tensor that any operation made."""

    size = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        sizes = [x.untyped_storage().nbytes() // x.element_size() for x in tree_leaves(out) if isinstance(x, Tensor)]
        self.size = max(self.size, *sizes, 0)
        return out


N = 2**20


@pytest.mark.parametrize(
    ("mask", "most"),
    [  # most: numbers in the largest tensor, where n² would be 2^40
        (M.causal(), 2**16),
        (M.window(1000, 0), 2**16),
        (M.dilated(8, 8, 64), 2**16),
        (M.strided(512), 2**16),
        (M.padding(torch.tensor([N, 12_345]), torch.tensor([N, 12_345])), 2**17),
        (M.padding(torch.tensor([N, 12_345]), side="left"), 2**17),
        (M.blocks(1000), 2**16),
        (M.blocks(4096, torch.eye(256).bool()), 2**17),
        (M.random_blocks(64, 3), 2**16),
        (M.documents(torch.arange(N) // 5000), 2 * N),
        (M.global_tokens([0, 7]), 2 * N),
        (M.positions([0, 7]), 2 * N),
        (M.positions(torch.arange(N)[:, None]), 2 * N),
        (M.per_head([M.causal(), M.window(5, 5)]), 2**17),
        (~(M.causal() & M.documents(torch.arange(N) // 5000) | M.global_tokens([3])), 2 * N),
    ],
)
def test_a_million_positions_need_no_matrix(mask: M.Mask, most: int) -> None:
    extent = Extent((2, 2), N, N, CPU)
    mask.check(extent)
    with Largest() as largest:
        blocks = mask.blocks(extent, 4096, 4096)
    assert blocks.full.shape[-2:] == (256, 256)
    assert largest.size <= most


@pytest.mark.parametrize(
    "make",
    [
        lambda index: M.global_tokens(index),
        lambda index: M.window(1, 1) | M.positions(index),
        lambda index: M.per_head([M.causal(), ~M.global_tokens(index)]),
    ],
)
def test_a_plain_list_follows_the_queries_to_their_device_and_a_tensor_does_not(make: Callable[[Any], M.Mask]) -> None:
    x = torch.empty(2, 2, 6, 4, device="meta")
    mask = make([0, 5])
    assert attention(x, x, x, mask=mask, backend="chunked").device == x.device
    assert attention(*[torch.randn(2, 2, 6, 4)] * 3, mask=mask).device.type == "cpu"  # and back
    with pytest.raises(DeviceError, match="has a tensor on cpu, query is on meta"):
        attention(x, x, x, mask=make(torch.tensor([0, 5])))


def test_a_list_is_copied_to_a_device_once() -> None:
    mask, meta = M.global_tokens([0, 5]), torch.device("meta")
    assert mask.on(meta) is mask.on(meta)
    assert mask.on(CPU) is mask
