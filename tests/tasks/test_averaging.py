"""The mean of the last checkpoints, counted by hand."""

from __future__ import annotations

import pytest
import torch

from regard import InputError
from regard.tasks import checkpoints
from regard.tasks.averaging import mean_of


def save(folder, step: int, value: float, **kind) -> None:
    model = {"w": torch.tensor([value, 2 * value]), "count": torch.tensor(step)}
    checkpoints.save(folder, step, {"model": model}, keep=9, **kind)


def test_the_mean_of_the_last_two(tmp_path):
    for step, value in ((1, 100.0), (2, 1.0), (3, 2.0)):
        save(tmp_path, step, value)
    found = mean_of(tmp_path, 2)
    assert found["w"].tolist() == [1.5, 3.0]
    assert found["w"].dtype == torch.float32
    assert found["count"].item() == 3  # whole numbers have no mean: the newest


def test_sums_are_in_double_precision(tmp_path):
    for step, value in ((1, 1e8), (2, 1.0), (3, -1e8)):
        save(tmp_path, step, value)
    assert mean_of(tmp_path, 3)["w"][0].item() == pytest.approx(1 / 3)  # float32 would give 0


def test_fewer_than_were_asked_for(tmp_path):
    save(tmp_path, 1, 1.0)
    assert mean_of(tmp_path, 5)["w"].tolist() == [1.0, 2.0]


def test_a_step_that_was_saved_twice_counts_once_and_a_stop_not_at_all(tmp_path):
    save(tmp_path, 1, 1.0)
    save(tmp_path, 2, 50.0)
    save(tmp_path, 2, 3.0)  # the run went back and did step 2 again
    save(tmp_path, 2, 70.0, passing=True)
    checkpoints.save(tmp_path, 3, {"model": {"w": torch.tensor([5.0, 10.0]), "count": torch.tensor(3)}}, keep=9)
    assert mean_of(tmp_path, 3)["w"].tolist() == [3.0, 6.0]


def test_one_is_the_best_or_the_last_as_it_is(tmp_path):
    save(tmp_path, 1, 1.0, best=True)
    save(tmp_path, 2, 2.0)
    assert mean_of(tmp_path)["w"].tolist() == [2.0, 4.0]
    assert mean_of(tmp_path, best=True)["w"].tolist() == [1.0, 2.0]


def test_of_nothing_there_is_no_mean(tmp_path):
    with pytest.raises(InputError, match="no checkpoint here; expected a run that has trained"):
        mean_of(tmp_path, 2)
