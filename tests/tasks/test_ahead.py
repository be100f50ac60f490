"""Batches are made ahead, and a run that has a time limit ends with a small learning rate."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from regard.tasks.ahead import ahead
from regard.tasks.config import Optim
from regard.tasks.training import rate_at


def test_same_things_in_the_same_order() -> None:
    assert list(ahead(range(100))) == list(range(100))


def test_it_is_never_more_than_asked_ahead() -> None:
    made = []

    def things() -> Iterator[int]:
        for number in range(10):
            made.append(number)
            yield number

    taken = ahead(things(), most=2)
    assert next(taken) == 0
    time.sleep(0.3)
    assert made == [0, 1, 2, 3]  # one taken, two waiting, one in hand


def test_an_error_comes_out_where_the_next_thing_was_awaited() -> None:
    def things() -> Iterator[int]:
        yield 1
        raise ValueError("line 2 is bad")

    taken = ahead(things())
    assert next(taken) == 1
    with pytest.raises(ValueError, match="line 2 is bad"):
        next(taken)


def test_no_thread_is_left_behind() -> None:
    before = threading.active_count()
    taken = ahead(iter(int, 1))  # without end
    next(taken)
    taken.close()
    assert threading.active_count() == before


def test_the_rate_falls_with_the_time_where_time_is_limited() -> None:
    optim = Optim(lr=1.0, warmup=0, decay="linear")
    assert rate_at(1, 1000, optim, gone=0.75) == pytest.approx(0.25)
    assert rate_at(900, 1000, optim, gone=0.1) == pytest.approx(1 - 900 / 1001)
