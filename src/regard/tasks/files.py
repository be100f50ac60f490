"""Text files as streams of lines, each of which knows where it stands, so that a bad one can be named.

A line ends at \\n or \\r\\n and nowhere else. Files packed by gzip or xz are told by their first bytes, not by
their names; places in them are those of the unpacked content.
"""

from __future__ import annotations

import gzip
import lzma
import os
import stat
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase
from itertools import islice
from typing import TypeVar

from regard.core.shapes import InputError

PathLike = str | os.PathLike[str]
Example = TypeVar("Example")

LONGEST = 2**24  # bytes of a line: a file of another kind may have no line ends, and would fill the memory
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_UNPACKING = (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError)


@dataclass(frozen=True)
class Line:
    """One line without its end: `row` counts from 1, `byte` is where it begins, counted from 0."""

    path: PathLike
    row: int
    byte: int
    text: str

    @property
    def blank(self) -> bool:
        return is_blank(self.text)

    def error(self, problem: str) -> InputError:
        return InputError(f"{self.path}, row {self.row} (byte {self.byte}): {problem}")


def read_lines(path: PathLike) -> Iterator[Line]:
    """The lines of a file. The memory it takes is that of the longest line."""
    row, byte = 0, 0
    try:
        with _opened(path) as file:
            while content := file.readline(LONGEST + 1):
                row += 1
                if len(content) > LONGEST:
                    raise Line(path, row, byte, "").error(f"longer than {LONGEST} bytes; is this a text file?")
                yield _line(path, row, byte, content)
                byte += len(content)
    except _UNPACKING as error:
        where = f"after row {row}" if row else "at its beginning"
        raise InputError(f"{path}: cannot be unpacked {where}: {error}; is the file complete?") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; expected a text file") from None
    if not byte:
        raise InputError(f"{path}: the file is empty")


def read_small(path: PathLike, most: int, expected: str) -> bytes:
    """All bytes of a file that is not large. Not of a pipe or a device, which might be waited for, or never end."""
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
        raw = b""
        if regular:
            with open(path, "rb") as file:
                raw = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; {expected}") from None
    except ValueError:  # a name with NUL in it
        raise InputError(f"{os.fspath(path)!a}: no file can have this name; {expected}") from None
    if not regular:
        raise InputError(f"{path}: is no file; {expected}")
    if len(raw) > most:
        raise InputError(f"{path}: larger than {most >> 20} MiB; {expected}")
    return raw


def nonempty(path: PathLike, examples: Iterable[Example], what: str) -> Iterator[Example]:
    """The same examples; a file that has none is an error."""
    none = True
    for example in examples:
        none = False
        yield example
    if none:
        raise InputError(f"{path}: the file holds no {what}")


def is_blank(text: str) -> bool:
    """Spaces and tabs only; not all that Unicode calls white, such as \\x85, which may be part of a text."""
    return not text.strip(" \t")


def among(name: str, names: Collection[str], what: str, line: Line, most: int = 20) -> None:
    """An error, unless this name is among those that are known."""
    if name not in names:
        listed = ", ".join(islice(names, most)) + (f" and {len(names) - most} more" if len(names) > most else "")
        raise line.error(f"unknown {what} {shown(name)}; expected one of {listed}")


def shown(text: str, most: int = 40) -> str:
    """As it may stand in a message: short, with what cannot be seen written out."""
    return ascii(text[:most]) if any(not c.isprintable() for c in text[:most]) else repr(text[:most])


def _line(path: PathLike, row: int, byte: int, content: bytes) -> Line:
    start = byte
    if not byte and content.startswith(BYTE_ORDER_MARK):
        content, start = content.removeprefix(BYTE_ORDER_MARK), len(BYTE_ORDER_MARK)
    if content.endswith(b"\n"):
        content = content[:-2] if content.endswith(b"\r\n") else content[:-1]
    try:
        return Line(path, row, start, content.decode())
    except UnicodeDecodeError as error:
        kind = "it looks like UTF-16" if not byte and content.startswith(UTF_16) else f"{error.reason}"
        raise Line(path, row, start + error.start, "").error(
            f"not UTF-8: byte 0x{content[error.start]:02x} ({kind}); convert the file to UTF-8"
        ) from None


@contextmanager
def _opened(path: PathLike) -> Iterator[BufferedIOBase]:
    with open(path, "rb") as file:
        magic = file.peek(6)[:6]  # not a second opening: the path may be a pipe
        if magic.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked
        elif magic == b"\xfd7zXZ\x00":
            with lzma.LZMAFile(file) as unpacked:
                yield unpacked
        else:
            yield file
