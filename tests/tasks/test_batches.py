"""Every example once an epoch, in an order that seed and epoch decide, never more tokens than a batch may have."""

from __future__ import annotations

import random
import threading
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard import InputError
from regard.tasks.ahead import ahead
from regard.tasks.batches import Batches, by_size
from regard.tasks.examples import IGNORED, Batch, Item, counted, lengths_of, padded


def item(n: int, m: int | None = None, mark: int = 0) -> Item:
    return Item((mark,) * n, (mark,) * (n if m is None else m))


def items(count: int, seed: int = 0) -> list[Item]:
    chance = random.Random(seed)
    return [item(chance.randint(1, 9), chance.randint(1, 9), mark) for mark in range(count)]


def marks(batches: list[list[Item]]) -> list[int]:
    return [each.source[0] for batch in batches for each in batch]


def batches_of(data: list[Item], **keys) -> Batches:
    return Batches(lambda: iter(data), **{"tokens": 40, "longest": 9, "seed": 1, **keys})


lengths = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=40)


@settings(max_examples=100)
@given(shapes=lengths, tokens=st.integers(30, 200), seed=st.integers(0, 9))
def test_each_example_once_and_no_batch_too_large(shapes, tokens, seed):
    data = [item(n, m, mark) for mark, (n, m) in enumerate(shapes)] + [item(1, 1, len(shapes))]
    found = list(batches_of(data, tokens=tokens, longest=30, seed=seed).epoch(3))
    assert sorted(marks(found)) == list(range(len(data)))
    for batch in found:
        assert batch
        assert len(batch) * max(map(len, batch)) <= tokens


@given(shapes=lengths, tokens=st.integers(1, 60))
def test_what_is_by_size_keeps_its_order(shapes, tokens):
    data = [item(n, m) for n, m in shapes]
    found = list(by_size(data, tokens))
    assert [each for batch in found for each in batch] == data
    assert all(len(batch) == 1 or len(batch) * max(map(len, batch)) <= tokens for batch in found)


def test_a_batch_has_similar_lengths():
    data = [item(n) for n in [1, 9] * 20]
    assert all(len({len(each) for each in batch}) == 1 for batch in batches_of(data, tokens=18).epoch(0))


def test_the_order_is_that_of_the_seed_and_the_epoch():
    data = items(60)
    first = marks(list(batches_of(data).epoch(0)))
    assert first == marks(list(batches_of(data).epoch(0)))
    assert first != marks(list(batches_of(data).epoch(1)))
    assert first != marks(list(batches_of(data, seed=2).epoch(0)))


@pytest.mark.parametrize("pool", [10**6, 100], ids=["one pool", "several pools"])
def test_a_run_goes_on_where_it_was(pool):
    def stream(*place):
        source = batches_of(items(60), pool=pool).forever(*place)
        return [(epoch, done, [i.source[0] for i in batch]) for epoch, done, batch in (next(source) for _ in range(60))]

    whole = stream()
    for k in (1, 7, 23, 40):
        epoch, done, _ = whole[k - 1]
        assert stream(epoch, done)[: 60 - k] == whole[k:]
    assert len({epoch for epoch, _, _ in whole}) > 2


def test_a_file_larger_than_a_pool_is_read_again_and_one_that_fits_is_not():
    data, reads = items(60), []

    def read():
        reads.append(1)
        return iter(data)

    small = Batches(read, 40, 9, pool=50)
    for epoch in range(3):
        assert sorted(marks(list(small.epoch(epoch)))) == list(range(60))
    assert len(reads) == 3
    large = Batches(read, 40, 9)
    for epoch in range(3):
        list(large.epoch(epoch))
    assert len(reads) == 4


def test_what_is_too_long_is_left_out_and_said_once(caplog):
    batches = batches_of([item(3, mark=1), item(3, 10, mark=2), item(10, 3, mark=3)], pool=5)
    for epoch in range(2):
        assert marks(list(batches.epoch(epoch))) == [1]
    assert caplog.text.count("2 examples are longer than data.longest=9 and left out") == 1


def test_nothing_is_left_to_train_on():
    with pytest.raises(InputError, match=r"no example is left to train on: all are longer than data.longest=9"):
        list(batches_of([item(10)]).epoch(0))


def test_an_example_must_fit_a_batch():
    with pytest.raises(InputError, match=r"data\.longest=9 is more than data.tokens=8: .* make data.tokens larger"):
        batches_of([], tokens=8)


def test_the_number_of_batches():
    batches = batches_of(items(60))
    assert batches.count() == len(list(batches.epoch(0)))


# Shares of several processes


@given(rows=st.integers(1, 9), processes=st.integers(1, 5))
def test_all_rows_are_someone_s_and_none_is_two_s(rows, processes):
    source = [(row + 5,) * (row % 3 + 1) for row in range(rows)]
    batch = Batch(padded(source), lengths_of(source), padded(source, IGNORED), words=padded(source, -1), units=7)
    shares = [batch.share(rank, processes) for rank in range(processes)]
    asked = [row for share in shares for row in share.target.tolist() if counted(torch.tensor([row]))]
    assert sorted(asked) == sorted(batch.target.tolist())
    assert all(len(share.source) == len(share.target) == len(share.lengths) > 0 for share in shares)
    assert sum(counted(share.target) for share in shares) == counted(batch.target)
    assert {share.units for share in shares} == {7}  # of the whole batch, by which the loss is divided


def test_padding():
    assert padded([[5, 6], [], [7]]).tolist() == [[5, 6], [0, 0], [7, 0]]
    assert padded([[5, 6], [7]], IGNORED).tolist() == [[5, 6], [7, IGNORED]]
    assert padded([]).numel() == 0
    assert padded([[], []]).shape == (2, 0)


# Made ahead


def test_ahead_keeps_the_order_and_is_at_most_so_far_ahead():
    made = []

    def source():
        for i in range(10):
            made.append(i)
            yield i

    things = ahead(source(), most=2)
    assert next(things) == 0
    time.sleep(0.3)
    assert len(made) <= 4  # the one that was taken, two that wait, one in the hand
    assert list(things) == list(range(1, 10))


def test_an_error_of_the_source_comes_out_in_its_place():
    def source():
        yield 1
        raise InputError("row 7 is bad")

    things = ahead(source())
    assert next(things) == 1
    with pytest.raises(InputError, match="row 7 is bad"):
        next(things)


def test_who_takes_no_more_ends_the_thread():
    before = threading.active_count()
    things = ahead(iter(range(1000)))
    next(things)
    things.close()
    limit = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < limit:
        time.sleep(0.05)
    assert threading.active_count() == before
