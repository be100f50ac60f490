"""Files that somebody damaged, cut, or wrote to do harm."""

from __future__ import annotations

import copy
import gzip
import json
import lzma
import pickle
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

PIECES = [
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\n", b"\r", b"\r\n", b"\t", b'"', b"\\", b",", b";", b"=", b"[", b"{", b"]",
    b"\x1b[31m", b"\x1b]0;x\x07", "\u202e\u2028\u200d\x85".encode(), b"\xed\xa0\x80", b"\\ud800", b"NaN", b"1e999", b"-1",
    b"0", b"9" * 5000, b"[" * 5000, b'{"a":' * 3000, b"a" * 70_000, b"\xff" * 8, b"\x7f\xff\xff\xff", b"../../etc/passwd",
    b"<script>", b"$(id)", b"'; DROP TABLE t; --", b"2020-01-01", b"1979-05-27T07:32:00Z", b"null", b"true", b"none", b" ",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 7, 1.5, -0.5, 1e308, 2**31, 2**53, 2**63, 2**64, -(2**63), 10**400, "", "x", "none",
    "transformer", "rnn", "softmax", "gaussian:0", "entmax:1e9", "\ud800", "\x00", "\x1b[31m", "a" * 50_000, [], {},
    [[]], [None], {"a": {}}, [2**31, 2**16], [1, 1], [10**9, 10**9], "../../../etc/passwd", float("nan"), float("inf"),
]  # fmt: skip


class Hostile:
    """What makes a folder when it is unpickled: nobody may."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        import os

        return os.mkdir, (str(self.marker),)


def pickles(marker: Path) -> list[bytes]:
    """As Python writes it, and as torch does."""
    from io import BytesIO

    import torch

    saved = BytesIO()
    torch.save({"weights": Hostile(marker)}, saved)
    return [pickle.dumps(Hostile(marker)), pickle.dumps(Hostile(marker), 0), saved.getvalue()]


def of_bytes(data: bytes, chance: random.Random) -> bytes:
    """One to four small accidents."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(len(found) + 1)
        to = min(len(found), at + chance.choice((1, 2, 8, 64, 1000)))
        what = chance.randrange(9)
        if what <= 1 and found:
            found[min(at, len(found) - 1)] ^= 1 << chance.randrange(8)
        elif what == 2:
            del found[at:]
        elif what == 3:
            del found[at:to]
        elif what == 4:
            found[at:at] = found[at:to] * chance.choice((1, 2, 50))
        elif what == 5:
            found[at:at] = chance.choice(PIECES)
        elif what == 6:
            found[at:to] = chance.choice(PIECES)
        elif what == 7:
            found[at:to] = chance.randbytes(to - at)
        else:
            other = chance.randrange(len(found) + 1)
            found[at:to], found[other:other] = b"", found[at:to]
    return bytes(found)


def of_json(data: bytes, chance: random.Random) -> bytes:
    """Another value, a key too many or too few, somewhere inside."""
    tree = json.loads(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        places = list(_places(tree))
        if not places:
            break
        holder, key = chance.choice(places)
        what = chance.randrange(6)
        if what <= 2:
            holder[key] = copy.deepcopy(chance.choice(VALUES))
        elif what == 3:
            del holder[key]
        elif what == 4:
            other_holder, other = chance.choice(places)
            try:
                holder[key] = json.loads(json.dumps(other_holder[other]))
            except (KeyError, IndexError):
                holder[key] = {}
        elif isinstance(holder, dict):
            holder[chance.choice([*map(str, holder), "extra", "", "$tensor", "__class__", "\x00"])] = holder.pop(key)
        else:
            holder.append(holder[key])
    return json.dumps(tree, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")


def _places(tree: Any, most: int = 400) -> list[tuple[Any, Any]]:
    """Every (container, key), without descending into long tables for ever."""
    found: list[tuple[Any, Any]] = []
    left = [tree]
    while left and len(found) < most:
        node = left.pop(0)
        keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
        for key in keys[:60]:
            found.append((node, key))
            left.append(node[key])
    return found


def of_safetensors(data: bytes, chance: random.Random) -> bytes:
    """The header is JSON behind its length: another header, or another length."""
    (size,) = struct.unpack("<Q", data[:8])
    header, rest = data[8 : 8 + size], data[8 + size :]
    if chance.random() < 0.3:
        size = chance.choice((0, 1, size - 1, size + 1, 100_000_000, 2**31, 2**63, 2**64 - 1))
        return struct.pack("<Q", size) + header + rest
    header = of_json(header, chance)
    return struct.pack("<Q", len(header)) + header + rest


def packed(inner: Callable[[bytes, random.Random], bytes], kind: str) -> Callable[[bytes, random.Random], bytes]:
    """Damage inside a packed file, or of the packing itself."""
    pack = {"gz": lambda data: gzip.compress(data, 1), "xz": lambda data: lzma.compress(data, preset=0)}[kind]
    unpack = {"gz": gzip.decompress, "xz": lzma.decompress}[kind]

    def change(data: bytes, chance: random.Random) -> bytes:
        return of_bytes(data, chance) if chance.random() < 0.5 else pack(inner(unpack(data), chance))

    return change


def foreign(chance: random.Random, hostile: list[bytes]) -> bytes:
    """Another file altogether under this name."""
    return chance.choice(
        [
            *hostile * 3,
            b"",
            b"\n",
            chance.randbytes(chance.choice((1, 100, 5000))),
            b"\x89PNG\r\n\x1a\n" + chance.randbytes(50),
            b"PK\x03\x04" + chance.randbytes(50),
            b"PAR1" + chance.randbytes(50) + b"PAR1",
            b"SQLite format 3\x00" + chance.randbytes(100),
            gzip.compress(b"a" * 2_000_000),
            lzma.compress(b"a b\n" * 500_000, preset=0),
            gzip.compress(chance.choice(hostile)),
            b"#!/bin/sh\ntouch executed\n",
            b"import os; os.mkdir('executed')\n",
            b"<?php system('id'); ?>",
            ("é" * 500).encode("utf-16"),
            b"[" * 100_000,
            b"9" * 100_000,
            b"null",
        ]
    )
