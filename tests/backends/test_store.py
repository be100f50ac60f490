"""The cache of compiled kernels repairs itself, and is only trusted where nobody else may have written."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("numba")

from regard.backends.cpu import store


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    return tmp_path / "kernels"


def test_what_is_kept_comes_back(folder):
    assert store.read("strip") is None
    assert store.write("strip", b"machine code")
    assert store.read("strip") == b"machine code"
    assert len(os.listdir(folder)) == 1


@pytest.mark.parametrize("most", [0, 10, 32, 33])
def test_a_half_written_file_is_removed_and_made_anew(folder, most, caplog):
    store.write("strip", b"machine code")
    (path,) = folder.iterdir()
    path.write_bytes(path.read_bytes()[:most])
    assert store.read("strip") is None
    assert "is damaged; it is compiled anew" in caplog.text
    assert not path.exists()
    assert store.write("strip", b"machine code")
    assert store.read("strip") == b"machine code"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners here")
def test_a_folder_that_others_may_write_to_is_not_trusted(folder):
    store.write("strip", b"machine code")
    folder.chmod(0o777)
    assert store.read("strip") is None
    assert not store.write("strip", b"other code")
    folder.chmod(0o700)
    assert store.read("strip") == b"machine code"


def test_a_place_that_cannot_be_written_costs_time_only(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in its way")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "file"))
    assert store.read("strip") is None
    assert not store.write("strip", b"machine code")
    with store.alone("strip"):
        pass


CALL = """
import torch, regard
q = torch.randn(1, 1, 40, 8)
print(float((regard.attention(q, q, q, backend="cpu") - regard.attention(q, q, q, backend="reference")).abs().max()))
"""


@pytest.mark.slow
def test_a_cache_that_was_cut_off_costs_time_only(tmp_path):
    """Compiled in one process, cut, and compiled again in another."""
    environment = {**os.environ, "REGARD_CACHE": str(tmp_path)}
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", CALL], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) < 1e-5
        kept = [path for path in (tmp_path / "kernels").iterdir() if path.suffix == ".kernel"]
        assert kept
        for path in kept:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
