"""Where compiled kernels are kept from one process to the next: $REGARD_CACHE, else $XDG_CACHE_HOME/regard,
else ~/.cache/regard. Each file begins with its own checksum: a half-written one is removed and made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

logger = logging.getLogger("regard")
PATIENCE = 180.0  # seconds to wait for another process that compiles the same


@lru_cache(maxsize=1)
def _fingerprint() -> str:
    """Code compiled from other sources, by another numba or for another processor is another thing."""
    import llvmlite
    import llvmlite.binding as llvm
    import numba

    digest = hashlib.sha256()
    for path in [Path(__file__).with_name("codes.py"), *sorted(Path(__file__).with_name("kernels").glob("*.py"))]:
        digest.update(path.read_bytes())
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:
        features = ""
    for text in (
        numba.__version__,
        llvmlite.__version__,
        platform.python_version(),
        llvm.get_host_cpu_name(),
        features,
    ):
        digest.update(text.encode())
    return digest.hexdigest()[:20]


def folder() -> Path:
    chosen = os.environ.get("REGARD_CACHE")
    if chosen:
        return Path(chosen) / "kernels"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "regard" / "kernels"


def _own(where: Path) -> bool:
    """Whether the folder is there and nobody else may have written into it: what it holds will be run."""
    try:
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        state = where.stat()
    except (OSError, RuntimeError):
        return False
    return not hasattr(os, "getuid") or (state.st_uid == os.getuid() and not state.st_mode & 0o022)


def _path(name: str) -> Path | None:
    where = folder()
    return where / f"{name}-{_fingerprint()}.kernel" if _own(where) else None


def read(name: str) -> bytes | None:
    """What was kept under this name, if it is whole."""
    path = _path(name)
    if path is None:
        return None
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    if hashlib.sha256(whole[32:]).digest() == whole[:32]:
        return whole[32:]
    logger.warning("%s is damaged; it is compiled anew", path)
    with contextlib.suppress(OSError):
        path.unlink()
    return None


def write(name: str, data: bytes) -> bool:
    """Keep it: there whole or not at all."""
    path = _path(name)
    if path is None:
        return False
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    except OSError:
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(data).digest() + data)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        return False
    return True


@contextlib.contextmanager
def alone(name: str) -> Iterator[None]:
    """One process compiles, the others wait and read what it kept; where files cannot be locked, each for itself."""
    path = _path(name)
    handle = None
    with contextlib.suppress(OSError, ImportError):
        import fcntl

        if path is not None:
            handle = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.1)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)
