"""A disk that fails at one call, and a process that dies there."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any

CALLS = ("open", "write", "fsync", "rename", "replace", "mkdir", "unlink", "rmdir")


class Killed(BaseException):
    """Not an Exception: nothing may catch it."""


class Faults:
    """Counts the calls that change the disk; lets number `at` fail, and when killed every later one too.

    A write that fails has written a half.
    """

    def __init__(self, at: int = -1, fault: BaseException | None = None) -> None:
        self.count, self.at, self.fault = 0, at, fault
        self._real = {name: getattr(os, name) for name in CALLS}

    def __enter__(self) -> Faults:
        for name, real in self._real.items():
            setattr(os, name, self._wrapped(name, real))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, real in self._real.items():
            setattr(os, name, real)

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            here, self.count = self.count, self.count + 1
            if self.fault and (here == self.at or (here > self.at and isinstance(self.fault, Killed))):
                if name == "write" and here == self.at:
                    real(args[0], args[1][: len(args[1]) // 2])
                raise self.fault
            return real(*args, **kwargs)

        return call


FAULTS: dict[str, BaseException] = {
    "full": OSError(errno.ENOSPC, "No space left on device"),
    "read-only": OSError(errno.EROFS, "Read-only file system"),
    "killed": Killed(),
}
