"""Tables whose few bytes stand for more than any memory holds, and errors that quote what a file has in it."""

from __future__ import annotations

import gzip
import re
import sqlite3
from contextlib import closing

import duckdb
import pytest

from regard.cli import tables

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS key, x AS value FROM c"
BUSY = "SELECT count(*) AS key, 1 AS value FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c)"


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (ENDLESS, "would take .* MB of memory, far more than the file has"),
        ("SELECT 1 AS key, zeroblob(900000000) AS value", "string or blob too big"),
        (BUSY, "it computes for too long"),
    ],
)
def test_views_of_a_database(tmp_path, regard, monkeypatch, view, message):
    monkeypatch.setattr(tables, "SECONDS", 1.0)
    monkeypatch.setattr(tables, "SPARE", 2**20)
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute(f"CREATE VIEW t AS {view}")
        connection.commit()
    ran = regard("lookup", tmp_path / "x.db", "--key", "key", "--value", "value", "--query", "1")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert re.search(message, ran.err)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT 1 AS key, 2 AS value FROM range(50000000)", "would take .* MB of memory, far more than the file has"),
        ("SELECT 1 AS key, range(10) AS value", "column 'value' holds lists or records"),
    ],
)
def test_parquet(tmp_path, regard, query, message):
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{tmp_path}/x.parquet' (FORMAT parquet)")
    ran = regard("lookup", tmp_path / "x.parquet", "--key", "key", "--value", "value", "--query", "1")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert re.search(message, ran.err)


def test_a_line_without_end_in_a_packed_table(tmp_path, regard):
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"a" * 20_000_000, 1))
    ran = regard("lookup", tmp_path / "x.csv.gz", "--key", "key", "--value", "value", "--query", "1")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "a line of more than 16777216 characters" in ran.err


@pytest.mark.parametrize("name", ["\x1b]0;owned\x07", "a" * 100_000, "\u202eyek"])
def test_an_error_is_one_short_line_that_can_be_printed(tmp_path, regard, name):
    (tmp_path / "x.csv").write_text(f"{name},value\n1,2\n")
    ran = regard("lookup", tmp_path / "x.csv", "--key", "key", "--value", "value", "--query", "1")
    assert ran.code == 2
    assert ran.err.startswith(f"regard: {tmp_path / 'x.csv'}: no column 'key'; ")
    assert ran.err.count("\n") == 1
    assert ran.err.strip("\n").isprintable()
    assert len(ran.err) < 2000
