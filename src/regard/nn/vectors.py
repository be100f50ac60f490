"""Word vectors that someone trained: read from GloVe and word2vec files, compared, and drawn as a map.

GloVe text is one word and its d numbers a line. word2vec text has a line "count d" before these; word2vec
binary has the same first line, then for each word the word, a space, d little-endian float32 numbers, and
in some files a newline. Any of them may be packed by gzip or xz.
"""

from __future__ import annotations

import gzip
import logging
import lzma
import math
import os
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import BufferedIOBase
from itertools import islice
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from regard.core.shapes import InputError, ShapeError, wide

__all__ = ["Vectors", "read_vectors", "similarity"]

logger = logging.getLogger(__name__)

FORMATS = "GloVe text, or word2vec text or binary, plain or packed by gzip or xz"
LOOK_AHEAD = 16  # lines from which the format is told
LONGEST = 2**20  # bytes of a line that this look takes in: a file of another kind may have no line ends
CHUNK = 2**20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HEADER = re.compile(rb"\s*(\d{1,12})\s+(\d{1,7})\s*")
OF_NUMBERS = frozenset(b"0123456789.-+eE \t\r\n")


@dataclass(frozen=True, eq=False)
class Vectors:
    """Words and their vectors; `missing` are the words that were asked for and not found.

    >>> dog, cat = [0.3645, 0.9507, 0.7320, 0.5987], [0.2949, 0.7559, 0.6172, 0.4943]
    >>> vectors = Vectors(["dog", "cat", "run"], torch.tensor([dog, cat, [0.9, 0.1, 0.5, 0.2]]))
    >>> [(word, round(r, 4)) for word, r in vectors.nearest("dog", 1)]
    [('cat', 0.9968)]
    """

    words: Sequence[str]
    tensor: Float[Tensor, "n d"] = field(repr=False)
    missing: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.tensor.ndim != 2 or len(self.words) != len(self.tensor):
            raise ShapeError(
                f"Vectors: {len(self.words)} words, the tensor has shape {tuple(self.tensor.shape)}; "
                f"expected [{len(self.words)}, d], one row for each word"
            )

    def __repr__(self) -> str:
        n, d = self.tensor.shape
        return f"Vectors: {n} words, d={d}, {len(self.missing)} missing"

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    def __getitem__(self, word: str) -> Float[Tensor, " d"]:
        return self.tensor[self.row(word)]

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {word: row for row, word in reversed(list(enumerate(self.words)))}  # of equal words, the first

    def row(self, word: str) -> int:
        """Which row of the tensor is this word's."""
        if word not in self._rows:
            raise InputError(
                f"no vector for {word!r} among {len(self)} words; they are compared exactly, case included"
            )
        return self._rows[word]

    def nearest(self, word: str, k: int = 10) -> list[tuple[str, float]]:
        """The k other words most similar to this one, and how similar, nearest first."""
        row = self.row(word)
        near = similarity(self.tensor[row], self.tensor)
        near[row] = torch.nan  # not its own neighbour
        near = near.nan_to_num(nan=-torch.inf)  # nor is a word whose vector is constant
        values, rows = near.topk(min(max(k, 0), len(self)))
        return [(self.words[int(i)], r) for i, r in zip(rows.tolist(), values.tolist(), strict=True) if r > -math.inf]

    def plane(self, words: Sequence[str] | None = None) -> Float[Tensor, "n 2"]:
        """A map of these words (of all, without any): the two directions in which their vectors differ most.

        The principal components of the chosen words, x before y. A component may as well point the other way;
        its largest part is made positive, so that the same words always give the same map.
        """
        chosen = self.tensor if words is None else self.tensor[[self.row(word) for word in words]]
        centred = wide(chosen) - wide(chosen).mean(0)
        axes = torch.linalg.svd(centred, full_matrices=False).Vh[:2]  # 2 d; fewer with one word or d = 1
        largest = axes.gather(1, axes.abs().argmax(1, keepdim=True))
        places = centred @ (axes * largest.sign()).mT
        return F.pad(places, (0, 2 - places.shape[1]))


def similarity(a: Float[Tensor, "*batch d"], b: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
    """Pearson's correlation of two word vectors, from -1 to 1; leading axes broadcast.

    A constant vector correlates with nothing: NaN. Any two one-hot words are as similar as any other two:

    >>> similarity(torch.tensor([1.0, 0, 0, 0, 0]), torch.tensor([0, 0, 1.0, 0, 0]))  # -1 / (5 - 1)
    tensor(-0.2500)
    """
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"similarity: the vectors have shapes {tuple(a.shape)} and {tuple(b.shape)}; expected equal d")
    return (_standard(a) * _standard(b)).sum(-1).clamp(-1, 1)


def _standard(x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
    """Mean 0 and length 1."""
    x = wide(x) if x.is_floating_point() else x.double()
    constant = (x == x[..., :1]).all(-1, keepdim=True)  # asked before rounding makes a difference of the mean
    x = x - x.mean(-1, keepdim=True)
    return torch.where(constant, torch.nan, x / x.norm(dim=-1, keepdim=True))


def read_vectors(
    path: str | os.PathLike[str],
    vocabulary: Iterable[str] | None = None,
    *,
    broken: Literal["raise", "skip"] = "raise",
) -> Vectors:
    """The vectors in a file, of the words of the vocabulary (of all words, without one), in the file's order.

    The format is told from the content. The file is read once, row by row, and only the vocabulary's rows are
    kept, so memory does not grow with the file; the numbers of all other rows are skipped, not checked. Of
    words that stand twice the first is kept, which is logged, as are words not found (`missing`). A broken row
    is an error that names its place, or with broken="skip" left out and counted in the log. Places in a packed
    file are those of its unpacked content.
    """
    if isinstance(vocabulary, str):
        raise InputError(f"read_vectors: vocabulary is the text {vocabulary!r}; expected a list of words")
    if broken not in ("raise", "skip"):
        raise InputError(f"read_vectors: broken={broken!r}; expected 'raise' or 'skip'")
    try:
        with _unpacked(path) as file:
            layout = _layout(path, file)
            kept = _Kept(layout.d, None if vocabulary is None else dict.fromkeys(vocabulary))
            _read(path, file, layout, kept, broken == "skip")
    except _UNPACKING as error:
        raise InputError(f"{path}: cannot be unpacked: {error}; is the file complete?") from None
    except OSError as error:  # what is wrong with the path itself
        raise InputError(f"{path}: {error.strerror or error}; expected {FORMATS}") from None
    if kept.repeated:
        logger.warning("%s: words that stand more than once, the first is kept: %s", path, _some(kept.repeated))
    missing = kept.missing()
    if missing:
        logger.warning(
            "%s: has no vector for %d of %d words: %s", path, len(missing), len(kept.wanted or ()), _some(missing)
        )
    return Vectors(list(kept.rows), kept.tensor(), missing)


class _BrokenError(Exception):
    """What is wrong with one row; where it stands is known further out."""


_UNPACKING = (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError)


class _Kept:
    """The rows kept so far. One flat array of float32: a list of lists of numbers would be ten times as large."""

    def __init__(self, d: int, wanted: dict[str, None] | None) -> None:
        self.d, self.wanted = d, wanted
        self.rows: dict[str, None] = {}  # words, in order
        self.numbers = array("f")
        self.repeated: dict[str, None] = {}

    def wants(self, word: str) -> bool:
        if self.wanted is not None and word not in self.wanted:
            return False
        if word in self.rows:
            self.repeated[word] = None
            return False
        return True

    def add(self, word: str, numbers: array[float]) -> None:
        self.rows[word] = None
        self.numbers.extend(numbers)

    def missing(self) -> list[str]:
        return [word for word in self.wanted or () if word not in self.rows]

    def tensor(self) -> Float[Tensor, "n d"]:
        if not self.rows:
            return torch.empty(0, self.d)
        return torch.frombuffer(self.numbers, dtype=torch.float32).reshape(-1, self.d)


@dataclass(frozen=True)
class _Text:
    """One row a line: the word, which may have spaces in it, and d numbers."""

    d: int
    start: int  # the byte at which rows begin
    promised: int | None  # how many rows the header announces
    unit = "line"

    def rows(self, file: BufferedIOBase) -> Iterator[tuple[int, int, bytes]]:
        """Number, byte offset and content of each row."""
        offset = self.start
        for number, line in enumerate(file, 1 if self.promised is None else 2):
            if not line.isspace():
                yield number, offset, line
            offset += len(line)

    def split(self, line: bytes) -> tuple[bytes, bytes]:
        """The word, and its numbers still as bytes: most rows of a large file are thrown away unread."""
        line = line.strip()
        if line.count(b" ") == self.d:  # as it should be, and quick
            word, _, numbers = line.partition(b" ")
            return word, numbers
        fields = line.rsplit(None, self.d)  # from the right: ". . ." is a word of GloVe
        # A word that ends in a number is taken for a number too many: no file is known to have such words.
        if len(fields) <= self.d or (b" " in fields[0] and _is_number(fields[0].split()[-1])):
            raise self._wrong_count(line)
        return fields[0], line[len(fields[0]) :]

    def floats(self, word: bytes, numbers: bytes) -> array[float]:
        fields = numbers.split()
        if len(fields) != self.d:
            raise self._wrong_count(word + b" " + numbers)
        try:
            return array("f", map(float, fields))
        except ValueError:
            wrong = next(i for i, x in enumerate(fields) if not _is_number(x))
            raise _BrokenError(
                f"{_shown(fields[wrong])}, number {wrong + 1} of {_shown(word)}, is not a number"
            ) from None

    def _wrong_count(self, line: bytes) -> _BrokenError:
        return _BrokenError(f"{_shown(line.split()[0])} has {_width(line)} numbers, expected {self.d}")


@dataclass(frozen=True)
class _Binary:
    """The word, a space, d float32 numbers."""

    d: int
    start: int
    promised: int | None
    unit = "row"

    def rows(self, file: BufferedIOBase) -> Iterator[tuple[int, int, bytes]]:
        number, offset, rest = 0, self.start, b""
        while chunk := file.read(CHUNK):
            rest, at = rest + chunk, 0
            while True:
                while rest[at : at + 1] == b"\n":  # some writers end a row with a newline, some do not
                    at += 1
                space = rest.find(b" ", at)
                end = space + 1 + 4 * self.d
                if space < 0 or end > len(rest):
                    break
                number += 1
                yield number, offset + at, rest[at:end]
                at = end
            offset, rest = offset + at, rest[at:]
        if rest:
            yield number + 1, offset, rest  # cut off

    def split(self, row: bytes) -> tuple[bytes, bytes]:
        word, space, numbers = row.partition(b" ")
        if len(numbers) != 4 * self.d:
            what = f"{_shown(word)} has {len(numbers)} bytes of numbers" if space else f"{len(word)} bytes of a word"
            raise _BrokenError(f"truncated: {what}, expected a word and 4·{self.d} = {4 * self.d} bytes of numbers")
        return word, numbers

    def floats(self, word: bytes, numbers: bytes) -> array[float]:
        return array("f", numbers)


def _read(path: Any, file: BufferedIOBase, layout: _Text | _Binary, kept: _Kept, skip: bool) -> None:
    number, seen, skipped, first = 0, 0, 0, ""
    rows = layout.rows(file)
    while True:
        try:
            row = next(rows, None)
        except _UNPACKING as error:
            where = f"after {layout.unit} {number}" if number else "at its beginning"
            raise InputError(f"{path}: cannot be unpacked {where}: {error}; is the file complete?") from None
        if row is None:
            break
        number, offset, content = row
        seen += 1
        try:
            _take(layout, kept, content)
        except _BrokenError as error:
            problem = f"{layout.unit} {number} (byte {offset}): {error}"
            if not skip:
                raise InputError(f"{path}, {problem}; repair the file, or leave such rows out: broken='skip'") from None
            skipped, first = skipped + 1, first or problem
    if skipped:
        logger.warning("%s: %d broken rows are left out; the first, %s", path, skipped, first)
    if layout.promised not in (None, seen):
        problem = f"{path}: its first line announces {layout.promised} vectors, it has {seen}"
        if not skip:
            raise InputError(f"{problem}; is the file complete? If it may be used as it is: broken='skip'")
        logger.warning(problem)


def _take(layout: _Text | _Binary, kept: _Kept, content: bytes) -> None:
    word, numbers = layout.split(content)
    try:
        text = word.decode()
    except UnicodeDecodeError as error:
        raise _BrokenError(f"the word {_shown(word)} is not UTF-8 at its byte {error.start}") from None
    if kept.wants(text):
        floats = layout.floats(word, numbers)
        if not math.isfinite(sum(floats)):  # the sum of any d float32 numbers is finite in Python's float64
            wrong = next(i for i, x in enumerate(floats) if not math.isfinite(x))
            raise _BrokenError(
                f"number {wrong + 1} of {_shown(word)} is {floats[wrong]}, expected {layout.d} finite numbers"
            )
        kept.add(text, floats)


def _unpacked(path: str | os.PathLike[str]) -> BufferedIOBase:
    """By its first bytes, not its name."""
    with open(path, "rb") as file:
        magic = file.read(6)
    if magic.startswith(b"\x1f\x8b"):
        return gzip.open(path)
    if magic == b"\xfd7zXZ\x00":
        return lzma.open(path)
    return open(path, "rb")


def _layout(path: Any, file: BufferedIOBase) -> _Text | _Binary:
    """The format of a file, which is left where its rows begin."""
    mark = BYTE_ORDER_MARK if file.read(3) == BYTE_ORDER_MARK else b""
    file.seek(len(mark))
    first = file.readline(LONGEST)
    lines = [file.readline(LONGEST) for _ in range(LOOK_AHEAD)]
    if not first.strip() and not b"".join(lines).strip():
        raise InputError(f"{path}: the file is empty; expected {FORMATS}")
    header = HEADER.fullmatch(first)
    if header is not None:
        promised, d = int(header[1]), int(header[2])
        if not promised or not d:
            raise InputError(f"{path}, line 1: announces {promised} vectors of d={d}; expected at least one of each")
        start = len(mark) + len(first)
        file.seek(start)
        return (_Text if _is_text(lines, d) else _Binary)(d, start, promised)
    # The width that most lines agree on, so that a broken first line is the one to be blamed.
    widths = [width for width in map(_width, [first, *lines]) if width]
    if not widths:
        raise InputError(f"{path}: no line is a word and its numbers; expected {FORMATS}")
    file.seek(len(mark))
    return _Text(Counter(widths).most_common(1)[0][0], len(mark), None)


def _is_text(lines: list[bytes], d: int) -> bool:
    if any(_width(line) == d for line in lines):
        return True
    # No whole row in sight. The numbers of a broken text still look like numbers, those of a binary do not.
    _, _, after_word = b"".join(lines).partition(b" ")
    numbers = after_word[: 4 * d]
    return sum(byte in OF_NUMBERS for byte in numbers) > len(numbers) / 2


def _width(line: bytes) -> int:
    """How many numbers stand at the end of a line, after at least one word."""
    count = 0
    for x in reversed(line.split()[1:]):
        if not _is_number(x):
            break
        count += 1
    return count


def _is_number(x: bytes) -> bool:
    try:
        float(x)
    except ValueError:
        return False
    return True


def _shown(word: bytes) -> str:
    """As it may stand in a message: short, with what is not text written out."""
    return repr(word[:40].decode(errors="backslashreplace"))


def _some(words: Iterable[str], most: int = 5) -> str:
    words = list(words)
    rest = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(islice(words, most)) + rest
