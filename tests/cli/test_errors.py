"""Whatever is wrong: exit status 2 and one clear line, never a traceback."""

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import regard as library

GPA = Path(__file__).parents[2] / "examples" / "gpa.csv"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("gpa.csv").write_text(GPA.read_text())
    Path("majors.csv").write_text("student,major\nAnn,Physics\n")
    Path("empty.csv").write_text("")
    Path("header.csv").write_text("gpa,salary\n")
    Path("null.csv").write_text("gpa,salary\n,1\n")
    Path("ragged.csv").write_text("gpa,salary\n1,2\n1,2,3\n")
    Path("latin.csv").write_bytes("gpa,salary\n1,\xe9\n".encode("latin1"))
    Path("text.csv").write_text("gpa,salary\n1,2\noops,3\n")
    Path("gpa.xlsx").write_text("x")
    for name in ("not.db", "not.parquet", "not.csv.gz"):
        Path(name).write_text("hello")
    with sqlite3.connect("two.db") as connection:
        connection.execute("CREATE TABLE people (gpa REAL)")
        connection.execute("CREATE TABLE places (gpa REAL)")
    connection.close()


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("gone.csv", "", r"gone\.csv: No such file"),
        ("gpa.xlsx", "", r"gpa\.xlsx: unknown kind of file; expected \.csv"),
        ("empty.csv", "", r"empty\.csv: the file is empty"),
        ("header.csv", "", r"header\.csv: no rows"),
        ("ragged.csv", "", r"ragged\.csv: line 3 has 3 cells, the header has 2"),
        ("latin.csv", "", r"latin\.csv: not UTF-8"),
        ("not.csv.gz", "", r"not\.csv\.gz: not a gzip file"),
        ("not.parquet", "", r"not\.parquet: .*Parquet"),
        ("not.db", "", r"not\.db: file is not a database"),
        ("two.db", "", r"two\.db: has 2 tables; choose one by --table: people, places"),
        ("two.db", "--table peple", r"two\.db: no table 'peple'; did you mean people\?"),
        ("gpa.csv", "--table people", r"--table people is for SQLite"),
        ("gpa.csv", "--key gpaa", r"no column 'gpaa'; did you mean gpa\? there is: gpa, salary"),
        ("gpa.csv", "--value Salary", r"no column 'Salary'; did you mean salary\?"),
        ("gpa.csv", "--query abc", r"--query 'abc' is not a number, and column 'gpa' holds numbers"),
        ("gpa.csv", "--query nan", r"--query 'nan' is not a number"),
        ("gpa.csv", "--query 3,5", r"--query '3,5' is not a number"),
        ("gpa.csv", "--key gpa --key salary", r"--query '3': expected 2 parts \(gpa, salary\).* got 1"),
        ("text.csv", "--score gaussian", r"column 'gpa' holds the text 'oops' \(row 2\); use --score exact"),
        ("gpa.csv", "--score gausian:1", r"no score is called 'gausian'; did you mean gaussian\? there is: additive,"),
        ("gpa.csv", "--score gaussian:x", r"sigma is 'x'; expected a number, such as gaussian:1\.0"),
        ("gpa.csv", "--score gaussian:", r"sigma is ''; expected a number"),
        ("gpa.csv", "--score gaussian:inf", r"sigma is 'inf'; expected a number"),
        ("gpa.csv", "--score gaussian:-1", r"sigma=-1\.0; expected more than 0"),
        ("gpa.csv", "--score gaussian:1e-200", r"sigma=1e-200; expected more than 0"),
        ("gpa.csv", "--score additive:2.5", r"hidden is '2\.5'; expected a whole number from 1"),
        ("gpa.csv", "--score exact:1", r"exact takes no number"),
        ("gpa.csv", "--normalizer softmx", r"no normalizer is called 'softmx'; did you mean softmax\?"),
        ("gpa.csv", "--normalizer entmax:1", r"alpha=1\.0; expected more than 1"),
    ],
)
def test_one_line_and_status_2(regard, folder, table, options, message):
    given = options.split()
    for name, default in (("--key", "gpa"), ("--value", "salary"), ("--query", "3")):
        given += [] if name in given else [name, default]
    ran = regard("lookup", table, *given)
    assert ran.code == 2
    assert ran.out == ""
    assert re.fullmatch(rf"regard: .*{message}.*\n", ran.err)


def test_rows_that_are_all_without_a_key(regard, folder):
    ran = regard("lookup", "null.csv", "--key", "gpa", "--value", "salary", "--query", "3")
    assert ran.code == 2
    assert ran.err.endswith("regard: null.csv: no rows to search\n")


@pytest.mark.parametrize("arguments", [("frobnicate",), ("lookup",), ("lookup", "gpa.csv", "--kee", "3")])
def test_usage(regard, arguments):
    ran = regard(*arguments)
    assert ran.code == 2
    assert "Error: " in ran.err


def test_version_and_help(regard):
    assert regard("--version").out == f"regard {library.__version__}\n"
    assert "lookup" in regard("--help").out
    assert "gaussian[:sigma]" in regard("lookup", "--help").out


def _process(code: str, *, shell: str = "{}") -> subprocess.CompletedProcess[str]:
    command = shell.format(f'"{sys.executable}" -c "{code}"')
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"})


def test_without_typer_one_line_says_what_to_install():
    ran = _process("import sys; sys.modules['typer'] = None; from regard.cli import main; main([])")
    assert ran.returncode == 2
    assert ran.stderr == "regard: the command line needs typer and rich; pip install 'regard[cli]'\n"


def test_a_reader_that_stops_is_no_error():
    ran = _process("from regard.cli import main; main(['ls', '--json'])", shell="{} | head -c 1")
    assert ran.stderr == ""
    assert ran.stdout == "["
