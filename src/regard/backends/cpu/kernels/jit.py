"""How kernels are compiled: no reference counts, no Python inside, division by zero as IEEE says; and kept."""

from __future__ import annotations

import hashlib
import os
import pickle
import time
from typing import Any

from numba import njit as _njit
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps
from numba.extending import intrinsic as _intrinsic

from regard.backends.cpu import store

_FLAGS = {"nogil": True, "error_model": "numpy", "_nrt": False}
# numba's decorators change the arguments of what they decorate, which their types do not say.
njit: Any = _njit
intrinsic: Any = _intrinsic
inner: Any = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_FLAGS)  # called by kernels only

# A child that is forked while a thread compiles would wait for ever for a thread that it does not have.
os.register_at_fork(
    before=global_compiler_lock.acquire,
    after_in_parent=global_compiler_lock.release,
    after_in_child=global_compiler_lock.release,
)


class _Kept(NullCache):
    """numba's cache of compiled functions, in our own store."""

    def __init__(self, name: str) -> None:
        self.name, self.kept = name, False

    def key(self, sig: Any) -> str:
        return f"{self.name}-{hashlib.sha256(str(sig).encode()).hexdigest()[:12]}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        data = store.read(self.key(sig))
        if data is None:
            return None
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(data))
        except Exception as error:
            store.logger.warning("%s cannot be used (%s); it is compiled anew", self.key(sig), error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        self.kept = store.write(self.key(sig), dumps(data._reduce()))


class Entry:
    """A kernel that Python calls. The first call for a type of numbers reads it or compiles it."""

    def __init__(self, function: Any) -> None:
        self._compiled = njit(no_cfunc_wrapper=True, **_FLAGS)(function)
        self._compiled._cache = self._cache = _Kept(function.__name__)
        self._ready: set[Any] = set()

    def _prepare(self, arguments: tuple) -> None:
        kinds = tuple(self._compiled.typeof_pyval(x) for x in arguments)
        key = self._cache.key(kinds)
        if store.read(key) is None:
            with store.alone(key):
                self._compile(kinds, key)
        else:
            self._compiled.compile(kinds)

    def _compile(self, kinds: Any, key: str) -> None:
        if store.read(key) is not None:  # another process was first
            self._compiled.compile(kinds)
            return
        store.logger.warning("regard: compiling attention for this processor (%s), once", self._cache.name)
        start = time.perf_counter()
        self._compiled.compile(kinds)
        took = time.perf_counter() - start
        kept = f"kept in {store.folder()}" if self._cache.kept else f"cannot be kept: {store.folder()} is not writable"
        store.logger.warning("regard: compiled in %.0f s; %s", took, kept)

    def __call__(self, *arguments: Any) -> None:
        of_floats = arguments[-2].dtype.char  # the last array but one always is of the call's type
        if of_floats not in self._ready:
            self._prepare(arguments)
            self._ready.add(of_floats)
        self._compiled(*arguments)


entry = Entry
