"""Some columns of a CSV, Parquet or SQLite file, as Python values. The file is only read."""

from __future__ import annotations

import csv
import gzip
import re
import sqlite3
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from glob import escape
from pathlib import Path
from typing import Any

from regard.cli.output import printable
from regard.core.shapes import InputError, MissingError
from regard.mechanisms import nearest

CSV, PARQUET, SQLITE = (".csv", ".csv.gz", ".tsv", ".tsv.gz"), (".parquet",), (".db", ".sqlite", ".sqlite3")
NESTED = re.compile(r"\]$|^(STRUCT|MAP|UNION|VARIANT)")  # as DuckDB names types
LONGEST = 2**24  # characters of a line
CELL = 100  # bytes that a value takes in Python, about
FACTOR, SPARE = 64, 64 * 2**20  # of memory: so many times the file, and so much more
SECONDS = 20.0  # that a view of a database may compute, and one more for each MB


def read_columns(path: Path, columns: Sequence[str], table: str | None = None) -> list[tuple[Any, ...]]:
    """The rows of a file, cut to these columns; `table` names one of several in a SQLite file."""
    name = path.name.lower()
    if not name.endswith(CSV + PARQUET + SQLITE):
        raise InputError(f"{path}: unknown kind of file; expected {', '.join(CSV + PARQUET + SQLITE)}")
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise InputError(f"{path}: is no file; expected a table")
    with open(path, "rb") as file:  # says what is wrong with the path before any library does, in its own words
        if not file.read(1):
            raise InputError(f"{path}: the file is empty")
    if name.endswith(SQLITE):
        return _sqlite(path, columns, table)
    if table is not None:
        raise InputError(f"{path}: --table {table} is for SQLite; this file is one table")
    if name.endswith(CSV):
        delimiter = _check_csv(path)
        # Types are decided by all rows: a text in the last one must not be an error.
        source = """read_csv(?, delim = ?, header = true, skip = 0, quote = '"', escape = '"', comment = '', sample_size = -1)"""
        return _duckdb(path, columns, source, [escape(str(path)), delimiter])
    return _duckdb(path, columns, "read_parquet(?)", [escape(str(path))])


def _duckdb(path: Path, columns: Sequence[str], source: str, parameters: list[str]) -> list[tuple[Any, ...]]:
    try:
        import duckdb
    except ImportError:
        raise MissingError("CSV and Parquet files need duckdb; pip install 'regard[cli]'") from None
    # Nothing is fetched from anywhere, nothing is written anywhere.
    alone = {"autoinstall_known_extensions": False, "autoload_known_extensions": False, "temp_directory": ""}
    room = {"memory_limit": f"{128 + 8 * path.stat().st_size // 10**6}MB", "threads": 2}
    try:
        with duckdb.connect(config={**alone, **room}) as connection:
            described = connection.execute(f"DESCRIBE SELECT * FROM {source}", parameters).fetchall()
            _check(path, columns, [row[0] for row in described])
            nested = [row[0] for row in described if row[0] in columns and NESTED.search(row[1])]
            if nested:
                raise InputError(f"{path}: column {nested[0]!r} holds lists or records; expected numbers or texts")
            sums = " + ".join(f"coalesce(sum(strlen({_quoted([column])}::VARCHAR)), 0)" for column in columns)
            count, length = connection.execute(f"SELECT count(*), {sums} FROM {source}", parameters).fetchall()[0]
            _fits(path, count * len(columns) * CELL + int(length))
            return connection.execute(f"SELECT {_quoted(columns)} FROM {source}", parameters).fetchall()
    except (duckdb.Error, RuntimeError, OverflowError, UnicodeError) as error:
        said = (str(error).splitlines() or [""])[0]  # what follows is advice on DuckDB's own options
        raise InputError(f"{path}: {_plain(said.partition('Error: ')[2] or said)}") from None


def _fits(path: Path, needed: int) -> None:
    """A few bytes may stand for a thousand million rows: what they would take as Python values is counted first."""
    if needed > FACTOR * path.stat().st_size + SPARE:
        raise InputError(f"{path}: its rows would take {needed / 1e6:,.0f} MB of memory, far more than the file has")


def _plain(said: str) -> str:
    """A library's message, which may quote what it read."""
    said = printable(" ".join(said.split()))
    return said if len(said) <= 300 else f"{said[:300]} …"


def _check_csv(path: Path) -> str:
    """The delimiter, seen in the header. DuckDB would guess it from all rows, and so take a file with one
    broken row for a single column, or skip rows in silence; its message does not name the broken one."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            header = next(_lines(path, file), "")
            delimiter = max(",;\t|", key=header.count)
            file.seek(0)
            rows = csv.reader(_lines(path, file), delimiter=delimiter)
            width = len(next(rows, []))
            for row in rows:
                if row and len(row) != width:
                    raise InputError(f"{path}: line {rows.line_num} has {len(row)} cells, the header has {width}")
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{path}: not a gzip file, or cut off") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8; convert it, for example by iconv -f latin1 -t utf-8") from None
    except csv.Error as error:
        raise InputError(f"{path}: {error}") from None
    return delimiter


def _lines(path: Path, file: Any) -> Iterator[str]:
    while line := file.readline(LONGEST + 1):
        if len(line) > LONGEST:
            raise InputError(f"{path}: a line of more than {LONGEST} characters; is this a table?")
        yield line


def _sqlite(path: Path, columns: Sequence[str], table: str | None) -> list[tuple[Any, ...]]:
    # By the standard library: DuckDB downloads its sqlite extension at first use, which fails offline, and
    # the copies of it on PyPI fit one version of DuckDB each and lag behind.
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            _bound(connection, path.stat().st_size)
            listed = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            tables = [name for (name,) in connection.execute(listed)]
            table = _chosen(path, tables, table)
            info = connection.execute("SELECT name FROM pragma_table_xinfo(?)", [table])
            _check(path, columns, [name for (name,) in info])
            rows, taken = [], 0
            for row in connection.execute(f"SELECT {_quoted(columns)} FROM {_quoted([table])}"):
                rows.append(row)
                taken += 80 + sum(map(sys.getsizeof, row))
                _fits(path, taken)
            return rows
    except (sqlite3.Error, OverflowError, UnicodeError, MemoryError) as error:
        why = "it computes for too long" if str(error) == "interrupted" else _plain(str(error))
        raise InputError(f"{path}: {why}") from None


def _bound(connection: sqlite3.Connection, size: int) -> None:
    """A view may compute for ever, and make large things of nothing."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, size + 2**20)
    connection.execute("PRAGMA trusted_schema = OFF")
    until = time.monotonic() + SECONDS + size / 1e6
    connection.set_progress_handler(lambda: time.monotonic() > until, 100_000)


def _chosen(path: Path, tables: list[str], table: str | None) -> str:
    if not tables:
        raise InputError(f"{path}: has no table")
    if table is None:
        if len(tables) > 1:
            raise InputError(f"{path}: has {len(tables)} tables; choose one by --table: {', '.join(tables)}")
        return tables[0]
    if table not in tables:
        raise InputError(f"{path}: no table {table!r}; {nearest(table, tables)}")
    return table


def _check(path: Path, columns: Sequence[str], known: list[str]) -> None:
    for column in columns:
        if column not in known:
            raise InputError(f"{path}: no column {column!r}; {nearest(column, known)}")


def _quoted(names: Sequence[str]) -> str:
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)
