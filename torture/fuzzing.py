"""Damaged and hostile files, one after another, before each reader of the library, in a process that may crash.

    python -m torture.fuzzing FOLDER CASES SEED [--quick] [--only NAME]

Each reader has a child of its own, with a limit on its memory. Prints one line of JSON: how many cases there were,
how many of them were read without complaint, and what went wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from regard import InputError
from torture.mutation import foreign, pickles
from torture.readers import Reader, readers

logger = logging.getLogger("torture")
MORE = 200 * 2**20  # bytes of memory that reading a file may take beside the file's own size
ROOM = 3 * 2**30  # of addresses: what a library reserves and never touches is not counted above
SECONDS, STUCK = 30, 120  # of computing in one case; without a sign of life
LONGEST = 1500  # characters of a message that somebody shall read
CRASHES = 25  # of one reader, before it is given up
# What reading a file never does.
FORBIDDEN = (
    "pickle.find_class", "os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "socket.", "os.remove",
    "os.rename", "os.mkdir", "os.rmdir", "shutil.", "ctypes.dlopen", "sqlite3.enable_load_extension", "webbrowser.",
)  # fmt: skip


class TooLongError(BaseException):
    """Not an Exception: no reader may swallow it."""


def fuzzed(folder: Path, cases: int, seed: int, quick: bool, only: str | None) -> dict[str, Any]:
    made = [reader for reader in readers(folder, quick) if only in (None, reader.name)]
    marker = folder / "executed"
    hostile = pickles(marker)
    total = sum(reader.share for reader in made)
    figures: dict[str, Any] = {"cases": 0, "read": 0, "most": 0, "faults": []}
    for reader in made:
        count = max(15, round(cases * reader.share / total))
        started = time.perf_counter()
        found = watched(reader, folder, count, seed, quick, hostile)
        logger.info("%s: %d cases in %.0f s", reader.name, found["cases"], time.perf_counter() - started)
        for name in ("cases", "read", "faults"):
            figures[name] += found[name]
        figures["most"] = max(figures["most"], found["most"])
        if marker.exists():
            figures["faults"].append(f"{reader.name}: code of a file was run")
            marker.rmdir()
    return figures


def watched(reader: Reader, folder: Path, count: int, seed: int, quick: bool, hostile: list[bytes]) -> dict[str, Any]:
    """All cases of one reader: in a child, and in another one where that crashed."""
    at = mmap.mmap(-1, 8)
    figures: dict[str, Any] = {"cases": 0, "read": 0, "most": 0, "faults": []}
    start, crashes = 0, 0
    while start < count and crashes < CRASHES:
        at[:8] = struct.pack("q", start)
        told = folder / "told.jsonl"
        told.unlink(missing_ok=True)
        child = os.fork()
        if not child:
            _child(reader, folder, (start, count), seed, quick, hostile, at, told)
        status = _ended(child, at)
        for line in told.read_text().splitlines() if told.exists() else ():
            figures["faults"] += json.loads(line).get("faults", [])
        (reached,) = struct.unpack("q", at[:8])
        if status == 0:
            last = json.loads(told.read_text().splitlines()[-1])
            figures["read"] += last["read"]
            figures["most"] = max(figures["most"], last["most"])
            figures["cases"] += count - start
            break
        crashes += 1
        why = f"was killed by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"ended with {status}"
        figures["faults"].append(f"{reader.name}, case {reached}: the process {why}{_said(folder / 'stderr')}")
        figures["cases"] += reached + 1 - start
        start = reached + 1
    return figures


def _said(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
    return f": {lines[-1][:300]}" if lines else ""


def _ended(child: int, at: mmap.mmap) -> int:
    """Its status; it is killed where it gives no sign of life."""
    seen, since = b"", time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        if at[:8] != seen:
            seen, since = at[:8], time.monotonic()
        elif time.monotonic() - since > STUCK:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)


def _child(
    reader: Reader, folder: Path, span: tuple[int, int], seed: int, quick: bool, hostile: list[bytes], at: mmap.mmap, told: Path
) -> None:  # fmt: skip
    code = 1
    try:
        stderr = os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(stderr, 2)
        with open(told, "w") as lines:
            try:
                figures = _cases(reader, folder, span, seed, quick, hostile, at, lines)
                json.dump(figures, lines)
                code = 0
            except BaseException:
                json.dump({"faults": [f"{reader.name}: the harness: {traceback.format_exc()}"]}, lines)
                code = 3
            lines.write("\n")
    finally:
        os._exit(code)


def _cases(
    reader: Reader, folder: Path, span: tuple[int, int], seed: int, quick: bool, hostile: list[bytes], at: mmap.mmap, lines: Any
) -> dict[str, int]:  # fmt: skip
    case = folder / "cases" / reader.inside
    _clear(case.parent)
    _write(case, reader.files)
    reader.read(case)  # it is whole, and all is imported that is needed
    more = [] if quick else list(reader.more())
    log, asked = _logged(), _audited(case.parent)
    signal.signal(signal.SIGPROF, _too_long)
    addresses = _status("VmSize")
    if addresses:
        resource.setrlimit(resource.RLIMIT_AS, (addresses + ROOM, addresses + ROOM))
    read, most = 0, 0
    for number in range(*span):
        at[:8] = struct.pack("q", number)
        chance = random.Random(f"{reader.name} {seed} {number}")
        _clear(case.parent)
        if number < len(more):
            _write(case, more[number])
        else:
            _damage(reader, case, chance, hostile)
        size = sum(path.stat().st_size for path in case.rglob("*") if path.is_file())
        asked.clear()
        log.clear()
        os.lseek(2, 0, os.SEEK_SET)
        os.ftruncate(2, 0)
        before = _reset_peak()
        fault = None
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            reader.read(case)
            read += 1
        except InputError as error:
            fault = unclear(str(error), case)
        except OSError as error:  # the command line says it in one line
            fault = unclear(f"{error.filename}: {error.strerror}", case)
        except BaseException as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            said = " ".join(str(error).split())[:200]
            fault = f"{type(error).__name__}: {said} ({Path(place.filename).name}:{place.lineno})"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        grown = _status("VmHWM") - before
        most = max(most, grown - size)
        if grown > size + MORE:
            fault = f"{grown / 2**20:.0f} MB of memory for a file of {size / 2**20:.1f} MB"
        fault = fault or next(iter(asked), None) or next((f"{f} (in the log)" for f in map(_line, log) if f), None)
        spilled = os.fstat(2).st_size
        if spilled and not fault:
            fault = f"stderr: {(folder / 'stderr').read_text(errors='replace')[:200]!r}"
        if fault:
            print(json.dumps({"faults": [f"{reader.name}, case {number}: {fault}"]}), file=lines, flush=True)
    return {"read": read, "most": most}


def unclear(said: str, case: Path) -> str | None:
    """Why this message is not one clear line."""
    if str(case) not in said and str(case.parent) not in said:
        return f"does not name the file: {said[:200]!r}"
    return _line(said)


def _line(said: str) -> str | None:
    if len(said.splitlines()) != 1:
        return f"is not one line: {said[:200]!r}"
    if len(said) > LONGEST:
        return f"a message of {len(said):,} characters: {said[:100]!r}"
    if any(not c.isprintable() for c in said):
        return f"holds what cannot be printed: {said[:200]!a}"
    return None


def _too_long(*_: Any) -> None:
    raise TooLongError(f"computes for more than {SECONDS} s")


def _logged() -> list[str]:
    found: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    logging.getLogger().handlers[:] = [Handler()]
    return found


def _audited(own: Path) -> list[str]:
    """What is done that reading never does; files that History writes lie in its own folder."""
    found: list[str] = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(FORBIDDEN):
            ours = str(arguments[0]).startswith(str(own)) or ".writing-" in str(arguments[0])
            if not (event.startswith(("os.re", "os.mkdir", "shutil.rmtree")) and ours):
                found.append(f"{event}{str(arguments)[:100]}")
        elif event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
            elsewhere = not str(arguments[0]).startswith((str(own.parent), "/proc/self/clear_refs"))
            found.extend([f"wrote {arguments[0]!r}"] * elsewhere)

    sys.addaudithook(hook)
    return found


def _status(name: str) -> int:
    """A figure of this process's memory in bytes; 0 where the system does not say."""
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0


def _reset_peak() -> int:
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return _status("VmRSS")


def _write(case: Path, files: dict[str, bytes]) -> None:
    case.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (case / name).write_bytes(data)


def _clear(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()


def _damage(reader: Reader, case: Path, chance: random.Random, hostile: list[bytes]) -> None:
    _write(case, reader.files)
    for name in _chosen(reader, chance):
        path, what = case / name, chance.random()
        if what < 0.08:
            path.write_bytes(foreign(chance, hostile))
        elif what < 0.12:
            path.unlink()
            if what > 0.115:
                path.mkdir()
            elif what > 0.11:
                path.symlink_to("/nowhere/else")
            elif what > 0.105 and reader.pipes:
                path.symlink_to("/dev/zero")
            elif what > 0.1 and reader.pipes:
                os.mkfifo(path)
        else:
            path.write_bytes(chance.choice(reader.change(name))(reader.files[name], chance))
    reader.repair(case, chance)


def _chosen(reader: Reader, chance: random.Random) -> Iterator[str]:
    names = list(reader.files)
    yield from chance.sample(names, chance.choice((1, 1, 1, min(2, len(names)))))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="of one reader, by its name")
    parser.add_argument("--verbose", action="store_true", help="say what each reader took")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    logging.basicConfig(level=logging.INFO if asked.verbose else logging.WARNING, format="%(message)s")
    print(json.dumps(fuzzed(asked.folder, asked.cases, asked.seed, asked.quick, asked.only)))
