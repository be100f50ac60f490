"""A run that is stopped, interrupted or killed anywhere ends with the bits of one that was not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from regard import InputError
from regard.tasks import checkpoints, training
from regard.tasks.training import Stopped
from tests.tasks.small import run_of, same, steps, swaps, train, weights
from torture.killing import equal, left

ACCUMULATE, STEPS = 3, 12
KEYS = {
    "optim__accumulate": ACCUMULATE,
    "schedule__average": 2,
    "checkpoint__every": 2,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    train(swaps(folder, **KEYS), folder / "run")
    return folder / "run"


@pytest.fixture(autouse=True)
def _heard():
    """A shell that starts the tests in the background has SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Signal:
    """Sends a signal to this process at each of these batches, counted over all sittings."""

    def __init__(self, patch: pytest.MonkeyPatch, *at: int, number: int = signal.SIGTERM) -> None:
        self.count, self.at, self.number = 0, at, number
        patch.setattr(training.Loop, "_loss", self.counted(training.Loop._loss))

    def counted(self, real):
        def call(*args):
            self.count += 1
            if self.count in self.at:
                os.kill(os.getpid(), self.number)
            return real(*args)

        return call


@pytest.mark.parametrize(
    ("number", "at"),
    [(signal.SIGINT, 1), (signal.SIGTERM, 3), (signal.SIGTERM, 17), (signal.SIGINT, 18), (signal.SIGTERM, 35)],
)
def test_a_signal_saves_and_exits_and_the_same_command_goes_on(tmp_path, whole, monkeypatch, number, at):
    run = swaps(tmp_path, **KEYS)
    with monkeypatch.context() as patch:
        Signal(patch, at, number=number)
        with pytest.raises(
            Stopped, match=f"stopped at step {at // ACCUMULATE} of {STEPS}, and saved; the same command"
        ):
            train(run, tmp_path / "run")
    assert not (tmp_path / "run" / "model.safetensors").exists()
    place = checkpoints.load(tmp_path / "run" / "checkpoints").state["place"]
    assert (place["step"], place["micro"]) == divmod(at, ACCUMULATE)
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)  # as it was before
    train(run, tmp_path / "run")
    assert equal(left(tmp_path / "run"), left(whole))
    assert steps(tmp_path / "run") == steps(whole)


def test_many_stops_in_one_run(tmp_path, whole, monkeypatch):
    """Mid-epoch and mid-accumulation, wherever chance has it."""
    run = swaps(tmp_path, **KEYS)
    chance = random.Random(7)
    at = sorted(chance.sample(range(1, ACCUMULATE * STEPS), 5))
    places = set()
    with monkeypatch.context() as patch:
        counted = Signal(patch, *at)
        for _ in at:
            with pytest.raises(Stopped):
                train(run, tmp_path / "run")
            place = checkpoints.load(tmp_path / "run" / "checkpoints").state["place"]
            places.add((place["micro"] > 0, place["batch"] > 0))
    assert counted.count == at[-1]  # no batch was done twice
    assert len(places) > 1
    train(run, tmp_path / "run")
    assert equal(left(tmp_path / "run"), left(whole))
    assert (tmp_path / "run" / "metrics.jsonl").read_text().count('"loss"') == STEPS


def test_a_second_signal_is_obeyed_at_once(tmp_path, monkeypatch):
    run = swaps(tmp_path, **KEYS)

    def saved(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)

    Signal(monkeypatch, 1, number=signal.SIGINT)
    monkeypatch.setattr(checkpoints, "save", saved)
    with pytest.raises(KeyboardInterrupt):
        train(run, tmp_path / "run")


def test_in_a_thread_nobody_listens_to_signals_and_it_trains_all_the_same(tmp_path, whole):
    thread = threading.Thread(target=lambda: train(swaps(tmp_path, **KEYS), tmp_path / "run"))
    thread.start()
    thread.join()
    assert same(weights(tmp_path / "run"), weights(whole))


def test_a_damaged_newest_checkpoint_costs_time_but_no_bit(tmp_path, whole, monkeypatch, caplog):
    run = swaps(tmp_path, **KEYS)
    with monkeypatch.context() as patch:
        Signal(patch, 25)
        with pytest.raises(Stopped):
            train(run, tmp_path / "run")
    for newest in (tmp_path / "run" / "checkpoints").glob("step-000008*"):
        data = (newest / "tensors.safetensors").read_bytes()
        (newest / "tensors.safetensors").write_bytes(data[:-1])
    train(run, tmp_path / "run")
    assert "going on from the newest whole checkpoint, step 6" in caplog.text
    assert same(weights(tmp_path / "run"), weights(whole))


def test_without_any_whole_checkpoint_it_says_so(tmp_path):
    run = swaps(tmp_path, **KEYS)
    train(run, tmp_path / "run")
    for path in (tmp_path / "run" / "checkpoints").glob("step-*"):
        (path / "state.json").unlink()
    with pytest.raises(InputError, match=r"there is no such file; not a whole checkpoint: remove the folder step-"):
        train(run, tmp_path / "run")


@pytest.mark.parametrize("task", ["tag", "fill", "denoise"])
def test_the_noise_of_every_task_comes_back(tmp_path, monkeypatch, task):
    rest = "\t_" * 6
    conllu = "".join(f"1\t{a}\t_\t{a}{rest}\n2\t{b}\t_\t{b}{rest}\n\n" for a in "abcd" for b in "abcd")
    (tmp_path / "data").write_text(conllu if task == "tag" else "".join(f"{a} {b} c\n" for a in "abcd" for b in "abcd"))
    run = run_of(task, tmp_path / "data", optim__accumulate=2, data__tokens=24, schedule__steps=8)
    train(run, tmp_path / "whole")
    with monkeypatch.context() as patch:
        Signal(patch, 7)
        with pytest.raises(Stopped):
            train(run, tmp_path / "run")
    train(run, tmp_path / "run")
    assert equal(left(tmp_path / "run"), left(tmp_path / "whole"))


@pytest.mark.parametrize("frozen", [True, False])
def test_vectors_come_back_and_stay_frozen_where_they_were(tmp_path, monkeypatch, frozen):
    (tmp_path / "data").write_text("x\ta b\ny\tb c d\n" * 9)  # d has no vector
    (tmp_path / "vectors").write_text("".join(f"{word} {i}.5 -{i} 1\n" for i, word in enumerate("abc")))
    run = run_of("classify", tmp_path / "data", data__vectors=[str(tmp_path / "vectors")], schedule__steps=8)
    run = replace(run, data=replace(run.data, frozen=frozen))
    train(run, tmp_path / "whole")
    with monkeypatch.context() as patch:
        Signal(patch, 5)
        with pytest.raises(Stopped):
            train(run, tmp_path / "run")
    train(run, tmp_path / "run")
    assert equal(left(tmp_path / "run"), left(tmp_path / "whole"))
    table = next(tensor for name, tensor in weights(tmp_path / "run").items() if name.endswith("vectors.weight"))
    assert ([1.5, -1.0, 1.0] in table.tolist()) is frozen


@pytest.mark.parametrize("kills", [10, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_kill_9_at_random_moments_changes_no_bit(tmp_path, kills):
    command = [sys.executable, "-m", "torture.killing", str(tmp_path), str(kills), "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=kills * 60)
    assert done.returncode == 0, done.stderr
    killed, runs, lost, different = map(int, done.stdout.split())
    assert (killed, lost, different) == (kills, 0, 0)
    assert runs >= 1
