"""Everything of this library that reads a file: a whole specimen of the file, and what reads it."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import itertools
import json
import lzma
import random
import sqlite3
import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

import regard
from regard.cli import main
from regard.cli.tables import read_columns
from regard.nn.vectors import read_vectors
from regard.tasks import checkpoints, config, history, tokenizers
from regard.tasks.catalogue import TASKS
from regard.tasks.data import (
    read_labelled,
    read_labelled_table,
    read_pair_table,
    read_pairs,
    read_plain,
    read_table,
    read_tagged,
)
from regard.tasks.metrics import read_gold
from torture.mutation import of_bytes, of_json, of_safetensors, packed

Files = dict[str, bytes]
Change = Callable[[bytes, random.Random], bytes]
TEXTS = {task: "the cat ____ milk" if task == "fill" else "the cat sees the dog" for task in TASKS}


@dataclass(frozen=True)
class Reader:
    """`read` takes the folder in which the files are. `share` of all cases are its own."""

    name: str
    files: Files
    read: Callable[[Path], Any]
    changes: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)  # by file; else bytes
    share: float = 1.0
    repair: Callable[[Path, random.Random], None] = lambda folder, chance: None  # so that damage gets further in
    more: Callable[[], Iterator[Files]] = lambda: iter(())  # hostile ones, written by hand
    inside: str = "case"  # the folder's name
    pipes: bool = False  # it waits for none: files that a user names may be pipes, those of a folder may not

    def change(self, name: str) -> tuple[Change, ...]:
        return self.changes.get(name, (of_bytes,))


def readers(folder: Path, quick: bool) -> list[Reader]:
    """All of them; `folder` is for the models that are trained for it."""
    if not quick:
        _packed_bombs()  # made once, before there are children
    found = [*_texts(), *_tables(folder), _config(), _tokenizer()]
    found += [*_models(folder, quick), _checkpoint(folder), _metrics()]
    return [*found, *_commands({reader.name: reader for reader in found})]


def through(examples: Any) -> None:
    deque(examples, 0)


# Text


ROWS = [
    ("good", "the cat sees the dog"),
    ("bad", "le chien n'a pas vu le chat"),
    ("good", "köttbullar 中文 नमस्ते 👩‍👩‍👧"),
]
CONLLU = "# text = The cat sleeps.\n" + "".join(
    f"{i}\t{word}\t_\t{tag}" + "\t_" * 6 + "\n"
    for i, (word, tag) in enumerate((("The", "DET"), ("cat", "NOUN"), ("sleeps", "VERB"), (".", "PUNCT")), 1)
)
CONLLU = f"{CONLLU}\n1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n{CONLLU.partition(chr(10))[2]}\n"
TSV = "".join(f"{a}\t{b}\n" for a, b in ROWS) * 4
CSV = "label,text\n" + "".join(f'{a},"{b}, ""so"""\n' for a, b in ROWS) * 4
PLAIN = "".join(f"{b}\n" for _, b in ROWS) * 4


def _texts() -> list[Reader]:
    plain = {
        "tagged": ("x.conllu", CONLLU, lambda path: through(read_tagged(path))),
        "labelled": ("x.tsv", TSV, lambda path: through(read_labelled(path))),
        "labelled table": ("x.csv", CSV, lambda path: through(read_labelled_table(path))),
        "table": ("x.tsv", TSV, lambda path: through(read_table(path, (1, 2)))),
        "pairs in a table": ("x.csv", CSV, lambda path: through(read_pair_table(path))),
        "plain": ("x.txt", PLAIN, lambda path: through(read_plain(path))),
        "gold": ("x.gold", "1-1 2p3 10-7\n\n3-3\n" * 5, read_gold),
    }
    found = []
    for name, (file, text, read) in plain.items():
        data = text.encode()
        whole = partial(_read_one, read, file)
        found.append(Reader(name, {file: data}, whole))
        for kind, pack in (
            ("gz", lambda data: gzip.compress(data, 1)),
            ("xz", lambda data: lzma.compress(data, preset=0)),
        ):
            if name in ("tagged", "labelled table"):
                changes = {f"{file}.{kind}": (packed(of_bytes, kind),)}
                reads = partial(_read_one, read, f"{file}.{kind}")
                found.append(
                    Reader(
                        f"{name}.{kind}",
                        {f"{file}.{kind}": pack(data)},
                        reads,
                        changes,
                        0.3,
                        more=partial(_bombs, f"{file}.{kind}"),
                    )
                )
    aligned = {"x.en": PLAIN.encode(), "x.fr": PLAIN.upper().encode()}
    found.append(Reader("pairs", aligned, lambda folder: through(read_pairs(folder / "x.en", folder / "x.fr"))))
    return [*found, *_vectors()]


def _read_one(read: Callable[[Path], Any], file: str, folder: Path) -> Any:
    return read(folder / file)


def _bombs(file: str) -> Iterator[Files]:
    """Small when packed, large when not: one long line, and many short ones."""
    yield from ({file: data} for data in _packed_bombs())


@cache
def _packed_bombs() -> list[bytes]:
    units = (b"a" * 1000, 300_000), (b"a\tb\n" * 250, 5_000), (b"\n" * 1000, 1_000)
    found = [pack(unit * times) for unit, times in units for pack in (partial(gzip.compress, compresslevel=1), _xz)]
    return [*found, b"".join(gzip.compress(b"a" * 1000) for _ in range(2000))]


def _xz(data: bytes) -> bytes:
    return lzma.compress(data, preset=0)


def _vectors() -> list[Reader]:
    words = ["the", "cat", "sees", "नमस्ते", "中"]
    numbers = [[round(0.1 * i - 0.3 * j, 2) for j in range(4)] for i in range(len(words))]
    glove = "".join(f"{w} {' '.join(map(str, n))}\n" for w, n in zip(words, numbers, strict=True)).encode()
    head = b"%d 4\n" % len(words)
    binary = head + b"".join(
        w.encode() + b" " + struct.pack("<4f", *n) + b"\n" for w, n in zip(words, numbers, strict=True)
    )
    found = []
    for name, data in (("GloVe", glove), ("word2vec text", head + glove), ("word2vec binary", binary)):
        found.append(Reader(name, {"x.vec": data}, lambda folder: read_vectors(folder / "x.vec"), more=_vector_heads))
    for kind, data in (("gz", gzip.compress(binary)), ("xz", lzma.compress(glove))):
        changes = {"x.vec": (packed(of_bytes, kind),)}
        reads = lambda folder: read_vectors(folder / "x.vec", ["the", "cat", "dog"])  # noqa: E731
        found.append(Reader(f"vectors.{kind}", {"x.vec": data}, reads, changes, 0.3, more=partial(_bombs, "x.vec")))
    return found


def _vector_heads() -> Iterator[Files]:
    for head in (b"999999999999 9999999\n", b"1 9999999\n", b"999999999999 1\n", b"0 0\n", b"1 0\n"):
        for rest in (b"", b"a ", b"a 1\n", b"a " + b"\x00" * 5000, b"a " * 5000):
            yield {"x.vec": head + rest}


# Tables of `regard lookup`


def _tables(folder: Path) -> list[Reader]:
    read = partial(_columns, "x.db")
    found = [
        Reader("lookup.csv", {"x.csv": b"key,value\n" + b"".join(b"%d,%d.5\n" % (i, i * i) for i in range(40))}, partial(_columns, "x.csv"), share=0.5),
        Reader("lookup.db", {"x.db": _sqlite(folder / "x.db")}, read, share=0.5, more=partial(_hostile_tables, folder / "hostile.db")),
        Reader("lookup.parquet", {"x.parquet": _parquet(folder / "x.parquet")}, partial(_columns, "x.parquet"), share=0.3, more=partial(_hostile_parquet, folder / "h.parquet")),
    ]  # fmt: skip
    packed_csv = gzip.compress(found[0].files["x.csv"])
    changes = {"x.csv.gz": (packed(of_bytes, "gz"),)}
    more = partial(_bombs, "x.csv.gz")
    return [
        *found,
        Reader("lookup.csv.gz", {"x.csv.gz": packed_csv}, partial(_columns, "x.csv.gz"), changes, 0.3, more=more),
    ]


def _columns(name: str, folder: Path) -> Any:
    return read_columns(folder / name, ["key", "value"])


def _sqlite(path: Path, *statements: str) -> bytes:
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        if not statements:
            connection.execute("CREATE TABLE t (key REAL, value TEXT)")
            connection.executemany("INSERT INTO t VALUES (?, ?)", [(i / 2, f"row {i}") for i in range(200)])
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path.read_bytes()


def _hostile_tables(path: Path) -> Iterator[Files]:
    """Views that never end, or make large things of nothing."""
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS key, x AS value FROM c"
    large = "SELECT 1 AS key, zeroblob(900000000) AS value"
    text = "SELECT 1 AS key, replace(hex(zeroblob(50000000)), '0', 'aaaaaaaa') AS value"
    ten = "SELECT 1 AS x UNION ALL " + " UNION ALL ".join(["SELECT 1"] * 99)
    product = f"SELECT 1 AS key, 2 AS value FROM {', '.join(f'({ten}) AS t{i}' for i in range(6))}"
    busy = "SELECT count(*) AS key, 1 AS value FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c)"
    for body in (endless, large, text, product, busy):
        yield {"x.db": _sqlite(path, f"CREATE VIEW t AS {body}")}
    yield {"x.db": _sqlite(path, 'CREATE TABLE "t"" ; DROP TABLE x" (key, value)')}
    yield {
        "x.db": _sqlite(
            path, "CREATE TABLE t (key, value AS (hex(zeroblob(400000000))))", "INSERT INTO t(key) VALUES (1), (2)"
        )
    }


def _parquet(path: Path, query: str = "SELECT i / 2 AS key, 'row ' || i AS value FROM range(200) r(i)") -> bytes:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path.read_bytes()


def _hostile_parquet(path: Path) -> Iterator[Files]:
    """Few bytes that stand for many rows."""
    yield {"x.parquet": _parquet(path, "SELECT 1 AS key, 2 AS value FROM range(50000000)")}
    yield {"x.parquet": _parquet(path, "SELECT 1 AS key, repeat('a', 1000000) AS value FROM range(20000)")}
    yield {"x.parquet": _parquet(path, "SELECT 1 AS key, repeat('a', 300000000) AS value")}
    yield {"x.parquet": _parquet(path, "SELECT 1 AS key, range(100000) AS value FROM range(10)")}


# Configurations, tokenizers, models


def _config() -> Reader:
    run = config.resolve(config.Run, {"task": "tag", "data": {"train": ["a.conllu"]}})
    return Reader(
        "run.toml", {"run.toml": config.to_toml(run).encode()}, lambda folder: config.read(folder / "run.toml")
    )


def _tokenizer() -> Reader:
    made = tokenizers.train("bpe", [text for _, text in ROWS], 120)
    return Reader(
        "tokenizer.json",
        {"tokenizer.json": made.to_json().encode()},
        lambda folder: tokenizers.load(folder).encode("the cat नमस्ते\ud800"),
        {"tokenizer.json": (of_bytes, of_json, of_json)},
    )


KINDS = [
    ("translate", "transformer"), ("tag", "transformer"), ("classify", "attentive"), ("fill", "transformer"),
    ("denoise", "autoencoder"), ("generate", "transformer"), ("translate", "attentive"), ("classify", "rnn"), ("tag", "rnn"),
]  # fmt: skip


def _models(folder: Path, quick: bool) -> list[Reader]:
    from tests.tasks.small import run_of, train
    from tests.web.small import corpus

    found = []
    changes: dict[str, tuple[Change, ...]] = {
        "config.json": (of_bytes, of_json, of_json),
        "tokenizer.json": (of_bytes, of_json),
        "model.safetensors": (of_bytes, of_safetensors),
    }
    for task, kind in KINDS[1:2] if quick else KINDS:
        into = folder / f"{task}-{kind}"
        keys: dict[str, Any] = {"model__kind": kind, "data__tokens": 512, "data__longest": 64, "data__tokenizer": "bpe"}
        train(run_of(task, corpus(task, folder), schedule__steps=2, model__d=8, **keys, data__vocabulary=60), into)
        files = {name: (into / name).read_bytes() for name in changes}
        found.append(
            Reader(
                f"{task} {kind}",
                files,
                partial(_answer, TEXTS[task]),
                changes,
                0.25,
                more=partial(_hostile_models, files),
                pipes=True,
            )
        )
    return found


def _answer(text: str, folder: Path) -> Any:
    """A model that loads answers, too."""
    model = regard.load(folder)
    answer = model(text)
    json.dumps(answer.output)
    return model.attended(answer)


def _hostile_models(files: Files) -> Iterator[Files]:
    """Sizes that no memory holds."""
    plain = json.loads(files["config.json"])
    for key, value in itertools.product(("d", "heads", "layers", "hidden", "slots", "latent"), (2**16, 1000)):
        yield {**files, "config.json": json.dumps({**plain, "model": {**plain["model"], key: value}}).encode()}
    wide = {"d": 65536, "hidden": 65536, "layers": 1000, "heads": 1}
    for more in ({"model": {**plain["model"], **wide}}, {"vectors": [2**31 - 1, 2**16]}, {"longest": 2**20}):
        yield {**files, "config.json": json.dumps({**plain, **more}).encode()}
    zeros = b"".join(
        struct.pack("<Q", len(h)) + h
        for h in [json.dumps({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()]
    )
    yield {**files, "model.safetensors": zeros}


def _checkpoint(folder: Path) -> Reader:
    state = {"weights": torch.arange(6.0), "place": {"step": 3, "best": float("inf")}, "seen": [(1, None), {2: "x"}]}
    path = checkpoints.save(folder / "run", 3, state)
    names = (checkpoints.STATE, checkpoints.TENSORS, checkpoints.SUMS)
    changes: dict[str, tuple[Change, ...]] = {
        checkpoints.STATE: (of_bytes, of_json),
        checkpoints.TENSORS: (of_bytes, of_safetensors),
    }

    def signed(folder: Path, chance: random.Random) -> None:
        paths = [folder / name for name in names[:2]]
        if chance.random() < 0.7 and all(path.is_file() for path in paths):
            sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths]
            path = folder / checkpoints.SUMS
            if path.is_file() or not path.exists():  # it may be a pipe, or a folder
                path.unlink(missing_ok=True)
                path.write_text("".join(sums))

    def read(folder: Path) -> Any:
        return checkpoints.load(folder.parent)

    files = {name: (path / name).read_bytes() for name in names}
    return Reader("checkpoint", files, read, changes, 1.5, signed, inside=path.name, pipes=True)


def _metrics() -> Reader:
    lines = [{"step": i, "loss": 2.5 / (i + 1), "lr": 1e-3, "valid loss": 1.0} for i in range(10)]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()

    def read(folder: Path) -> None:
        went = history.History(folder, 100)
        went.close()

    return Reader("metrics.jsonl", {"metrics.jsonl": data}, read, {"metrics.jsonl": (of_bytes, of_lines)}, 0.02)


def of_lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    place = chance.randrange(len(lines))
    lines[place] = of_json(lines[place], chance) + b"\n"
    return b"".join(lines)


# The command line itself


COMMANDS: dict[str, tuple[str, str, float]] = {  # what is asked, with whose files, and how often
    "regard tag": ("tag transformer", "tag|the cat sees the dog|--model|{}", 0.1),
    "regard lookup": ("lookup.csv", "lookup|{}/x.csv|--key|key|--value|value|--query|3", 0.1),
    "regard show": ("GloVe", "show|the cat|--vectors|{}/x.vec", 0.1),
    "regard train": (
        "tagged",
        "train|tag|{}/x.conllu|--out|{}/out|schedule.steps=1|model.d=8|model.heads=1|model.layers=1|data.tokenizer=word",
        0.01,
    ),
}


def _commands(made: dict[str, Reader]) -> list[Reader]:
    return [
        replace(made[whose], name=name, read=partial(_command, said), share=share, more=lambda: iter(()))
        for name, (whose, said, share) in COMMANDS.items()
    ]


def _command(said: str, folder: Path) -> None:
    """As a shell runs it: status 0, or status 2 and one line on stderr."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            main([part.replace("{}", str(folder)) for part in said.split("|")])
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
    if code != 0:
        lines = errors.getvalue().splitlines()
        if code != 2 or len(lines) != 1 or not lines[0].startswith("regard: "):
            raise RuntimeError(f"exit status {code}, {len(lines)} lines: {lines[:2]}")
        raise regard.InputError(lines[0])
