"""A checkpoint comes back bit for bit, whatever happened to the process, the disk or the file."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from regard import InputError
from regard.tasks import atomic, checkpoints
from regard.tasks.checkpoints import STATE, SUMS, TENSORS, load, save
from torture.faults import FAULTS, Faults, Killed


def same(a, b) -> bool:
    """Equal in type, structure and every bit."""
    if isinstance(a, torch.Tensor):
        bits = [x.detach().contiguous().reshape(-1).view(torch.uint8) for x in (a, b)]
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(*bits)
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and repr(a) == repr(b)  # repr: NaN and -0.0


def state_of(step: int) -> dict:
    generator = torch.Generator().manual_seed(step)
    return {"step": step, "weights": torch.randn(50, generator=generator), "seen": [step, None]}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# What comes back


def training() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 7, bias=False))
    model[3].weight = model[0].weight  # tied
    groups = [{"params": model[1].parameters(), "lr": 1e-2}, {"params": model[0].parameters()}]
    return model, torch.optim.AdamW(groups, lr=3e-4, amsgrad=True)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(torch.randint(7, (9,))), torch.randint(7, (9,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test_training_goes_on_as_if_nothing_had_happened(tmp_path):
    model, optimizer = training()
    train(model, optimizer, 3)
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "torch": torch.get_rng_state(),
        "python": random.getstate(),
        "sampler": {"epoch": 2, "position": 17, "order": torch.randperm(40)},
        "gradients": [p.grad for p in model.parameters()],
    }
    save(tmp_path, 3, state)
    read = load(tmp_path).state
    assert same({**state, "model": dict(state["model"])}, read)

    torch.set_rng_state(read["torch"])
    train(model, optimizer, 3)
    again, its_optimizer = training()
    again.load_state_dict(read["model"])
    its_optimizer.load_state_dict(read["optimizer"])
    torch.set_rng_state(read["torch"])
    train(again, its_optimizer, 3)
    assert same(dict(model.state_dict()), dict(again.state_dict()))
    assert same(optimizer.state_dict(), its_optimizer.state_dict())
    random.setstate(read["python"])


def test_tied_tensors_are_stored_once_and_come_back_as_one(tmp_path):
    weight = torch.randn(1000, 10)
    path = save(tmp_path, 1, {"a": weight, "b": [weight.detach()], "row": weight[3], "across": weight.T})
    state = load(tmp_path).state
    assert state["a"] is state["b"][0]
    assert torch.equal(state["row"], weight[3])
    assert torch.equal(state["across"], weight.T)
    assert (path / TENSORS).stat().st_size < 2.1 * weight.nbytes  # a, across and one row


def test_names_that_collide_in_the_file_of_tensors(tmp_path):
    one, two, three = torch.ones(1), torch.ones(2), torch.ones(3)
    state = {"a.b": one, "a": {"b": two}, "__metadata__": three, "s": {0: one * 2, "0": two * 2}}
    save(tmp_path, 1, state)
    assert same(state, load(tmp_path).state)


def test_views_of_one_memory_that_mean_different_numbers_are_not_mixed_up(tmp_path):
    z = torch.randn(3, dtype=torch.complex64)
    state = {"z": z, "conj": z.conj(), "imag": z.conj().imag, "real": z.real, "wide": torch.ones(1).expand(4)}
    save(tmp_path, 1, state)
    read = load(tmp_path).state
    assert all(torch.equal(read[key], state[key]) for key in state)


@pytest.mark.parametrize("dtype", sorted(checkpoints.DTYPES, key=str), ids=str)
def test_every_dtype_bit_for_bit(tmp_path, dtype):
    bits = torch.arange(512) % (2 if dtype == torch.bool else 256)
    many = bits.to(torch.uint8).view(dtype)
    state = {"many": many, "one": many[3], "none": many[:0].reshape(0, 4), "strided": many[::2]}
    save(tmp_path, 1, state)
    assert same(state, load(tmp_path).state)


texts = st.text(st.characters(), max_size=5) | st.sampled_from(["$tensor", "__metadata__", "a.b", "\ud800", "$"])
tensors = st.builds(
    lambda shape, dtype: torch.arange(12).view(torch.uint8)[: torch.Size(shape).numel()].reshape(shape).to(dtype),
    st.sampled_from([(), (0,), (2, 3)]),
    st.sampled_from([torch.float32, torch.bfloat16, torch.int64, torch.bool]),
)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | texts | tensors
states = st.dictionaries(
    texts,
    st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.tuples(inner, inner)
            | st.dictionaries(texts | st.integers(0, 3) | st.tuples(st.integers(0, 1), texts), inner, max_size=3)
        ),
        max_leaves=10,
    ),
    max_size=4,
)


@settings(max_examples=100)
@given(state=states)
def test_any_state(tmp_path_factory, state):
    folder = tmp_path_factory.mktemp("any")
    save(folder, 1, state)
    assert same(state, load(folder).state)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({1, 2}, r"cannot hold the set at a\.b; expected tensors, texts"),
        (torch.zeros(2, device="meta"), r"cannot hold the meta tensor at a\.b"),
        (torch.eye(2).to_sparse(), r"cannot hold the torch\.sparse_coo tensor at a\.b"),
        (
            torch.zeros(2, dtype=torch.complex128),
            r"cannot hold the torch\.complex128 tensor at a\.b; gather it or convert",
        ),
    ],
)
def test_what_cannot_be_saved_is_named_and_nothing_is_written(tmp_path, value, message):
    with pytest.raises(InputError, match=message):
        save(tmp_path / "run", 1, {"a": {"b": value}})
    assert names(tmp_path) == []


# Which is which


def test_the_newest_and_the_best_are_kept(tmp_path):
    for step in range(1, 7):
        save(tmp_path, step, state_of(step), keep=2, best=step in (1, 3))
    assert names(tmp_path) == ["step-000003", "step-000005", "step-000006"]
    assert load(tmp_path).step == 6
    assert load(tmp_path, "best").step == 3
    assert same(load(tmp_path, 5).state, state_of(5))
    with pytest.raises(InputError, match="no checkpoint 4 here; steps that are here: 3, 5, 6"):
        load(tmp_path, 4)


def test_one_that_is_passing_pushes_out_no_other_and_goes_when_the_next_is_there(tmp_path):
    for step in (10, 20):
        save(tmp_path, step, state_of(step), keep=2, best=step == 10)
    save(tmp_path, 23, state_of(23), keep=2, passing=True)
    assert load(tmp_path).step == 23
    assert checkpoints.steps(tmp_path) == [10, 20]
    save(tmp_path, 25, state_of(25), keep=2, passing=True)
    assert names(tmp_path) == ["step-000010", "step-000020", "step-000025"]
    save(tmp_path, 30, state_of(30), keep=2)
    assert names(tmp_path) == ["step-000010", "step-000020", "step-000030"]


def test_last_is_what_was_saved_last_not_the_largest_step(tmp_path):
    save(tmp_path, 200, state_of(200))
    save(tmp_path, 110, state_of(110))  # the run went back to an earlier one
    assert load(tmp_path).step == 110


def test_a_step_that_is_saved_again_never_overwrites(tmp_path):
    save(tmp_path, 5, state_of(1))
    assert save(tmp_path, 5, state_of(2)).name == "step-000005.2"
    assert same(load(tmp_path, 5).state, state_of(2))


def test_without_a_best_the_last_is_taken_and_said(tmp_path, caplog):
    save(tmp_path, 5, state_of(5))
    assert load(tmp_path, "best").step == 5
    assert "no checkpoint is marked best; taking the last, step 5" in caplog.text


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_a_folder_without_checkpoints(tmp_path, folder):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match=f"{folder}: (no checkpoint 'last' here|Not a directory)"):
        load(tmp_path / folder)


# Faults of the disk and of the process


def run_with_fault(folder: Path, at: int = -1, fault: BaseException | None = None) -> tuple[int, BaseException | None]:
    """Three checkpoints, then a fourth under a fault: how many calls there were, and what was raised."""
    for step in (1, 2, 3):
        save(folder, step, state_of(step), keep=2, best=step == 1)
    with Faults(at, fault) as faults:
        try:
            save(folder, 4, state_of(4), keep=2)
        except (InputError, Killed) as error:
            return faults.count, error
        return faults.count, None


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_at_any_call_loses_nothing(tmp_path, fault):
    calls, _ = run_with_fault(tmp_path / "counted")
    assert calls > 15
    for at in range(calls):
        folder = tmp_path / str(at)
        _, error = run_with_fault(folder, at, fault)
        last = load(folder)
        assert last.step == 4 if error is None else last.step in (3, 4)
        assert same(last.state, state_of(last.step))
        assert same(load(folder, "best").state, state_of(1))
        if isinstance(error, InputError):
            assert "step 4 was not saved" in str(error)
            assert "the earlier checkpoints are intact" in str(error)
            assert "\n" not in str(error)
        assert all(names(path) == [SUMS, STATE, TENSORS] for path in folder.glob("step-*"))
        save(folder, 5, state_of(5), keep=2)  # and it goes on, with nothing left over
        assert same(load(folder).state, state_of(5))
        assert not [name for name in names(folder) if name.startswith(atomic.LEFTOVERS)]
        assert len(names(folder)) <= 4  # two, the best, and one more where its removal was what failed


def test_everything_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    done, opened = [], {}
    real = {name: getattr(os, name) for name in ("open", "write", "fsync", "rename")}

    def log_open(path, *args, **kwargs):
        descriptor = real["open"](path, *args, **kwargs)
        opened[descriptor] = Path(path).name.replace(atomic.WRITING, "writing ").split(" ")[0]
        return descriptor

    monkeypatch.setattr(os, "open", log_open)
    monkeypatch.setattr(os, "write", lambda d, data: done.append(f"write {opened[d]}") or real["write"](d, data))
    monkeypatch.setattr(os, "fsync", lambda d: done.append(f"fsync {opened[d]}") or real["fsync"](d))
    monkeypatch.setattr(os, "rename", lambda a, b: done.append(f"rename to {Path(b).name}") or real["rename"](a, b))
    save(tmp_path, 1, state_of(1))
    files = [f"{verb} {file}" for file in (STATE, TENSORS, SUMS) for verb in ("write", "fsync")]
    assert done == [*files, "fsync writing", "rename to step-000001", f"fsync {tmp_path.name}"]


def test_the_cure_fits_the_fault(tmp_path):
    _, full = run_with_fault(tmp_path / "a", 1, FAULTS["full"])
    _, locked = run_with_fault(tmp_path / "b", 1, FAULTS["read-only"])
    assert "No space left on device; free some space and resume" in str(full)
    assert "Read-only file system; choose a folder that can be written to" in str(locked)


def test_a_folder_that_one_may_not_write_to(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    save(tmp_path, 1, state_of(1))
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="Permission denied; choose a folder that you may write to"):
        save(tmp_path, 2, state_of(2))
    tmp_path.chmod(0o700)
    assert same(load(tmp_path).state, state_of(1))


@pytest.mark.parametrize("kills", [10, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_kill_9_loses_no_checkpoint(tmp_path, kills):
    command = [sys.executable, "-m", "torture.saving", str(tmp_path), str(kills), "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lost, step = map(int, done.stdout.split())
    assert lost == 0
    assert step >= kills  # it did save, more than once between kills


# Files that are damaged, foreign or hostile


def damage(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if chance.random() < 0.3:
        del data[chance.randrange(len(data)) :]
    else:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


@pytest.mark.parametrize("file", [STATE, TENSORS, SUMS])
def test_a_damaged_file_is_one_clear_line_and_the_newest_whole_one_is_taken(tmp_path, file, caplog):
    whole = tmp_path / "whole"
    save(whole, 1, state_of(1))
    newest = save(whole, 2, state_of(2))
    for seed in range(150):
        both, alone = tmp_path / "both", tmp_path / "alone"
        shutil.copytree(whole, both)
        damage(both / newest.name / file, random.Random(seed))
        shutil.copytree(both / newest.name, alone / newest.name)
        caplog.clear()
        read = load(both)
        assert read.step == 1
        assert same(read.state, state_of(1))
        assert "going on from the newest whole checkpoint, step 1" in caplog.text
        for which in ("last", "best", 2):
            with pytest.raises(InputError, match="not a whole checkpoint: remove the folder step-000002") as raised:
                load(alone, which)
            assert "\n" not in str(raised.value)
            assert str(alone / newest.name) in str(raised.value)
        with pytest.raises(InputError, match="step-000002"):  # asked for by its number: nothing else instead
            load(both, 2)
        shutil.rmtree(both)
        shutil.rmtree(alone)


@pytest.mark.parametrize("file", [STATE, TENSORS, SUMS])
def test_a_file_that_is_missing(tmp_path, file):
    (save(tmp_path, 1, state_of(1)) / file).unlink()
    with pytest.raises(InputError, match=f"{file}: there is no such file; not a whole checkpoint"):
        load(tmp_path)
    save(tmp_path, 1, state_of(9))  # what is damaged is not in the way
    assert same(load(tmp_path).state, state_of(9))


def sign(path: Path) -> None:
    sums = [f"{hashlib.sha256((path / name).read_bytes()).hexdigest()}  {name}\n" for name in (STATE, TENSORS)]
    (path / SUMS).write_text("".join(sums))


@pytest.mark.parametrize("file", [STATE, TENSORS])
def test_a_damaged_file_with_the_right_sums_never_crashes(tmp_path, file):
    whole = save(tmp_path / "whole", 1, {**state_of(1), "more": {1: (float("inf"), torch.ones(()))}})
    refused = 0
    for seed in range(300):
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(whole, tmp_path / "copy" / whole.name)
        damage(tmp_path / "copy" / whole.name / file, random.Random(seed))
        sign(tmp_path / "copy" / whole.name)
        with suppress(InputError):
            load(tmp_path / "copy")
            continue
        refused += 1
    assert refused > 50


HEAD = {"format": checkpoints.FORMAT, "step": 1, "number": 1, "best": False, "passing": False}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "null",
        json.dumps({**HEAD, "format": "another"}),
        json.dumps({**HEAD, "state": []}),
        json.dumps({**HEAD, "state": {}, "number": "7"}),
        json.dumps({**HEAD, "state": {"a": {"$tensor": "unknown"}}}),
        json.dumps({**HEAD, "state": {"a": {"$tensor": []}}}),
        json.dumps({**HEAD, "state": {"a": {"$items": [[["list"], 1]]}}}),
        json.dumps({**HEAD, "state": {"a": {"$code": "print()"}}}),
        json.dumps({**HEAD, "state": {"a": {"$tuple": 1, "$float": 2}}}),
    ],
    ids=range(10),
)
def test_a_strange_description(tmp_path, text):
    path = save(tmp_path, 1, state_of(1))
    (path / STATE).write_text(text)
    sign(path)
    with pytest.raises(InputError, match=r"state\.json: .*; not a whole checkpoint"):
        load(tmp_path)


class Hostile:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def test_a_pickle_under_our_names_is_never_unpickled(tmp_path):
    marker = tmp_path / "executed"
    pickled = pickle.dumps(Hostile(marker))
    torch.save({"weights": Hostile(marker)}, tmp_path / "model.pt")
    for hostile in (pickled, (tmp_path / "model.pt").read_bytes()):
        for file in (STATE, TENSORS, SUMS):
            folder = tmp_path / "run"
            path = save(folder, 1, state_of(1))
            (path / file).write_bytes(hostile)
            if file != SUMS:
                sign(path)
            with pytest.raises(InputError, match="not a whole checkpoint"):
                load(folder)
            shutil.rmtree(folder)
    assert not marker.exists()
    pickle.loads(pickled)
    assert marker.exists()  # it would have


# One file


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "config.toml"
    atomic.write_whole(path, b"old")
    with Faults() as calls:
        atomic.write_whole(path, b"old")
    for at in range(calls.count):
        for fault in FAULTS.values():
            path.write_bytes(b"old")
            with suppress(InputError, Killed), Faults(at, fault):
                atomic.write_whole(path, b"newer")
            assert path.read_bytes() in (b"old", b"newer")
            atomic.clean_up(tmp_path)
            assert names(tmp_path) == ["config.toml"]
