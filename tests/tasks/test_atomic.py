"""Every file that a user asks for is written whole or not at all; where it cannot be, one line says why."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from regard import InputError
from regard.see import Picture, save, save_page
from regard.tasks import config, exporting, model
from regard.tasks.atomic import write_whole
from regard.tasks.corpora import files as corpora
from regard.tasks.history import draw
from tests.tasks.small import swaps, train

OLD = b"what was there before"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    return train(swaps(folder), folder / "run")


def writers(trained):
    """Everything that writes a file to a place of the user's choice, by the name that it takes."""
    picture = Picture(torch.eye(2), ["a", "b"], ["a", "b"])
    return {
        "x.html": lambda path: save_page(picture, path),
        "x.png": lambda path: save(picture, path),
        "x.svg": lambda path: save(picture, path),
        "loss.png": lambda path: draw([{"step": 1, "loss": 2.0}], path),
        "run.toml": lambda path: config.write(path, config.Optim()),
        "tokenizer.json": trained.task.tokenizer.save,
        "model.onnx": lambda path: exporting.export(trained, path),
    }


NAMES = ("x.html", "x.png", "x.svg", "loss.png", "run.toml", "tokenizer.json", "model.onnx")


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_is_one_line_and_leaves_the_old_file(tmp_path, trained, name, monkeypatch):
    write = writers(trained)[name]
    path = tmp_path / name
    path.write_bytes(OLD)

    def full(descriptor, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(InputError, match=f"{name}: not written: No space left on device; free some space") as error:
            write(path)
    assert "\n" not in str(error.value)
    assert path.read_bytes() == OLD
    assert os.listdir(tmp_path) == [name]
    write(path)
    assert len(path.read_bytes()) > len(OLD)
    assert os.listdir(tmp_path) == [name]


LOCKED = """
import contextlib, os, sys
from regard.cli import main
for out in sys.argv[1:]:
    with contextlib.suppress(SystemExit):
        main(["show", "a b", "--out", out])  # the first time allowed, so that all is imported that is needed
    if os.getuid() == 0:
        os.setresuid(65534, 65534, 65534)
main(["show", "a b", "--out", out])
"""


@pytest.mark.skipif(not hasattr(os, "setresuid"), reason="no users here")
@pytest.mark.parametrize("name", ["x.html", "x.png"])
def test_a_folder_that_one_may_not_write_to_is_one_line(tmp_path, name):
    """By a process that is really not allowed to, also where root runs the tests."""
    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / name).write_bytes(OLD)
    (folder / name).chmod(0o666)
    folder.chmod(0o555)
    for above in (tmp_path, *tmp_path.parents):  # tests that run side by side have a folder more
        if above.stat().st_mode & 0o005 != 0o005:
            above.chmod(above.stat().st_mode | 0o055)
    command = [sys.executable, "-c", LOCKED, str(tmp_path / name), str(folder / name)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    line = f"regard: {folder / name}: not written: Permission denied; choose a folder that you may write to: what was"
    assert [text.startswith(line) for text in done.stderr.splitlines()] == [True, True]
    assert (folder / name).read_bytes() == OLD


def test_a_missing_folder_and_a_folder_in_the_way(tmp_path):
    with pytest.raises(InputError, match="No such file or directory; make the folder first"):
        write_whole(tmp_path / "nowhere" / "x", b"new")
    (tmp_path / "x").mkdir()
    with pytest.raises(InputError, match="Is a directory; a folder has this name; choose another"):
        write_whole(tmp_path / "x", b"new")
    assert os.listdir(tmp_path) == ["x"]


def test_a_link_is_followed_and_the_mode_is_kept(tmp_path):
    (tmp_path / "real").write_bytes(OLD)
    (tmp_path / "real").chmod(0o600)
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o600


def test_a_device_stays_a_device():
    write_whole(Path(os.devnull), b"new")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_device_that_is_full_is_one_line():
    with pytest.raises(InputError, match="No space left on device"):
        write_whole(Path("/dev/full"), b"new")


def test_a_model_that_is_saved_is_there_whole_or_not_at_all(tmp_path, trained, monkeypatch):
    real = os.write
    for most in range(3):
        left = most

        def full(descriptor, data):
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(descriptor, data)

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(InputError, match="copy: not written: No space left on device; free some space"):
                model.save(tmp_path / "copy", trained)
        assert os.listdir(tmp_path) == []
    model.save(tmp_path / "copy", trained)
    assert model.load(tmp_path / "copy")("a b").text == "a b"
    with pytest.raises(InputError, match="copy: not written: Directory not empty; there is something there already"):
        model.save(tmp_path / "copy", trained)


def test_corpora_are_there_whole_or_not_at_all(tmp_path, monkeypatch):
    def full(descriptor, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(InputError, match="corpora: not written: No space left on device; free some space"):
            corpora.write(tmp_path / "corpora", 0, 5, ["fr"])
    assert os.listdir(tmp_path) == []
