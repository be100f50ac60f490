"""The CPU kernels among threads and processes: several callers, forked children, the cache of compiled code."""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from regard import attention, normalizers, scores

pytest.importorskip("numba")
N = 600  # enough for a second thread to be woken


@pytest.fixture(autouse=True)
def _two_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def attended(seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    query, key, value = (torch.randn(2, N, 4, generator=generator) for _ in "qkv")
    return attention(query, key, value, normalizer=normalizers.Sparsemax(), backend="cpu")


def test_several_threads_at_once() -> None:
    right = [attended(seed) for seed in range(12)]
    start = threading.Barrier(6)

    def caller(which: int) -> list[bool]:
        start.wait()
        return [torch.equal(attended(seed), right[seed]) for seed in (which, which + 6) for _ in range(3)]

    with ThreadPoolExecutor(6) as pool:
        assert all(all(same) for same in pool.map(caller, range(6)))


def test_gradients_in_several_threads_at_once() -> None:
    def caller(seed: int) -> list[Tensor]:
        generator = torch.Generator().manual_seed(seed)
        inputs = [torch.randn(N, 4, generator=generator, requires_grad=True) for _ in "qkv"]
        out = attention(*inputs, score=scores.Gaussian(1.0), backend="cpu")
        return list(torch.autograd.grad(out.sum(), inputs))

    right = [caller(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for found, expected in zip(pool.map(caller, range(4)), right, strict=True):
            torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_an_error_in_a_helping_thread_is_raised() -> None:
    from regard.backends.cpu.threads import share

    def run(begin: int, end: int) -> None:
        if begin >= 8:
            raise ValueError("task 8")

    with pytest.raises(ValueError, match="task 8"):
        share(run, 64, 1e9)


class Attended(Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, seed: int) -> Tensor:
        torch.set_num_threads(2)  # a loader's worker has one
        return attended(seed)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_loaders_attend_too() -> None:
    right = torch.stack([attended(seed) for seed in range(4)])  # threads run before the fork
    loader = DataLoader(Attended(), batch_size=1, num_workers=2, multiprocessing_context="fork", timeout=120)
    assert torch.equal(torch.cat(list(loader)), right)


# The cache. An entry of its own that compiles in a second.


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    return tmp_path / "kernels"


def run_fresh_entry() -> None:
    """A kernel as a new process would meet it."""
    from regard.backends.cpu import kernels
    from regard.backends.cpu.kernels.jit import Entry

    pack = Entry(kernels.pack._compiled.py_func)
    source = np.arange(15.0)
    to, most = np.full(3 * 8, np.nan), np.zeros(1)
    pack(source, 5, 3, 3, 8, 1, False, 0, 1, to, most)
    assert np.array_equal(to.reshape(3, 8)[:, :5], source.reshape(5, 3).T)
    assert not to.reshape(3, 8)[:, 5:].any()


def only_file(folder: Path) -> Path:
    (file,) = folder.glob("pack-*.kernel")
    return file


def test_compiled_once_then_read(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    run_fresh_entry()
    assert ["compiling" in m or f"kept in {cache}" in m for m in caplog.messages] == [True, True]
    caplog.clear()
    run_fresh_entry()
    assert not caplog.messages
    assert not list(cache.glob(".*"))  # nothing half-written


@pytest.mark.parametrize("damage", ["half", "empty", "flipped", "another"])
def test_a_damaged_file_is_made_anew(cache: Path, caplog: pytest.LogCaptureFixture, damage: str) -> None:
    run_fresh_entry()
    file = only_file(cache)
    whole = file.read_bytes()
    if damage == "another":  # whole, but not what we expect
        other = pickle.dumps(("something", "else"))
        file.write_bytes(hashlib.sha256(other).digest() + other)
    else:
        flipped = bytes([*whole[:-1], whole[-1] ^ 1])
        file.write_bytes({"half": whole[: len(whole) // 2], "empty": b"", "flipped": flipped}[damage])
    caplog.clear()
    run_fresh_entry()
    assert any("compiled anew" in m for m in caplog.messages)
    caplog.clear()
    run_fresh_entry()
    assert not caplog.messages


@pytest.mark.parametrize("trouble", ["a file stands there", "others may write into it"])
def test_a_folder_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, trouble: str
) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    if trouble == "a file stands there":
        (tmp_path / "kernels").write_text("")
    else:
        (tmp_path / "kernels").mkdir(mode=0o777)
        (tmp_path / "kernels").chmod(0o777)
    run_fresh_entry()
    assert any("cannot be kept" in m for m in caplog.messages)
    assert not list(tmp_path.glob("kernels/*.kernel"))


def test_two_processes_compile_once(cache: Path) -> None:
    code = "import tests.backends.test_cpu_process as t; t.run_fresh_entry()"
    root = Path(__file__).parents[2]
    both = [
        subprocess.Popen([sys.executable, "-c", code], cwd=root, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    said = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted("compiling" in text for text in said) == [False, True]


def test_the_first_call_says_what_it_costs(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "regard")
    run_fresh_entry()
    assert any("compiled in" in m and " s; kept in" in m for m in caplog.messages)
