"""Files and folders that are there whole or not at all, also after a crash or a cut of power.

Everything is written under a temporary name beside its final one, brought to the disk, and then renamed.
What a killed process leaves behind begins with one of `LEFTOVERS`; `clean_up` removes it.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from regard.core.shapes import InputError

CURES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EROFS: "choose a folder that can be written to",
    errno.EACCES: "choose a folder that you may write to",
    errno.EPERM: "choose a folder that you may write to",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.ENOENT: "make the folder first",
    errno.EISDIR: "a folder has this name; choose another",
    errno.ENOTEMPTY: "there is something there already; choose a new folder",
    errno.ENOTDIR: "a file is in its way; choose another place",
}

WRITING, REMOVING = LEFTOVERS = (".writing-", ".removing-")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file; what stood there before stays until the new one is on the disk. A link is followed, the mode of
    the file that was there is kept; a device or a pipe is written to, since nothing can stand in its place."""
    try:
        real = Path(os.path.realpath(path))
        before = real.stat() if real.exists() else None
        if before is not None and not (stat.S_ISREG(before.st_mode) or stat.S_ISDIR(before.st_mode)):
            real.write_bytes(data)
            return
        temporary = real.parent / f"{WRITING}{token_hex(8)}"
        try:
            _write(temporary, data, before and stat.S_IMODE(before.st_mode))
            os.replace(temporary, real)
            sync_folder(real.parent)
        finally:
            with suppress(OSError):  # after the rename there is nothing left to remove
                temporary.unlink()
    except OSError as error:
        intact = ": what was there before is intact" if os.path.lexists(path) else ""
        raise InputError(f"{path}: not written: {error.strerror or error}; {cure(error)}{intact}") from error


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """A new folder with these files. It must not exist yet, or be empty."""
    temporary = path.parent / f"{WRITING}{token_hex(8)}"
    try:
        temporary.mkdir()
        for name, data in files.items():
            _write(temporary / name, data)
        sync_folder(temporary)
        os.rename(temporary, path)
        sync_folder(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Gone in one step for whoever looks: a folder is never seen half removed under its own name."""
    temporary = path.parent / f"{REMOVING}{token_hex(8)}"
    os.rename(path, temporary)
    shutil.rmtree(temporary)


def make_folder(path: Path) -> None:
    """The folder and its parents, each of them durable."""
    try:
        if not path.is_dir():
            make_folder(path.parent)
            path.mkdir(exist_ok=True)
            sync_folder(path.parent)
    except OSError as error:
        raise InputError(f"{path}: the folder was not made: {error.strerror or error}; {cure(error)}") from error


def cure(error: OSError) -> str:
    return CURES.get(error.errno or 0, "see to the folder")


def clean_up(folder: Path) -> None:
    """Remove what killed writers left. Only for a folder that has one writer."""
    for path in folder.iterdir():
        if path.name.startswith(LEFTOVERS):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """A rename is durable only once the folder that holds the name is."""
    if os.name == "nt":  # where a folder cannot be opened, and renames are journaled
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(path: Path, data: bytes, mode: int | None = None) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(descriptor, mode)
        rest = memoryview(data)
        while rest:  # a single call may write less than all, and at most 2 GiB
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
