"""regard lookup: the answer, the rows that weigh most, every kind of file."""

import gzip
import json
import math
import sqlite3
from pathlib import Path

import duckdb
import pytest

GPA = Path(__file__).parents[2] / "examples" / "gpa.csv"
ROWS = [tuple(map(float, line.split(","))) for line in GPA.read_text().split()[1:]]
SOFT = ("--key", "gpa", "--value", "salary", "--query", "3.5", "--score", "gaussian:0.1")


def by_hand(query: float, sigma: float) -> tuple[list[float], float]:
    raw = [math.exp(-((query - gpa) ** 2) / (2 * sigma**2)) for gpa, _ in ROWS]
    weights = [w / sum(raw) for w in raw]
    return weights, sum(w * salary for w, (_, salary) in zip(weights, ROWS, strict=True))


def test_a_soft_lookup_prints_the_answer_and_the_rows_that_weigh_most(regard):
    ran = regard("lookup", GPA, *SOFT)
    weights, value = by_hand(3.5, 0.1)
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert ran.err == ""
    assert lines[0] == f"salary = {value:.2f}"
    assert lines[1] == "at gpa = 3.5 (gaussian:0.1, softmax)"
    table = [line.split() for line in lines[4:]]
    assert table[0] == ["row", "gpa", "salary", "weight"]
    order = sorted(range(12), key=lambda i: -weights[i])[:5]
    assert [row[0] for row in table[1:]] == [str(i + 1) for i in order]
    assert [row[3] for row in table[1:]] == [f"{weights[i]:.4f}" for i in order]


def test_json_is_one_object(regard):
    ran = regard("lookup", GPA, *SOFT, "--json", "--top", 2)
    weights, value = by_hand(3.5, 0.1)
    said = json.loads(ran.out)
    assert said["value"] == pytest.approx(value)
    assert said["rows"] == 12
    assert [row["row"] for row in said["found"]] == [9, 8]
    assert [row["weight"] for row in said["found"]] == pytest.approx([weights[8], weights[7]])
    assert said["found"][0]["key"] == [3.5]
    assert said["found"][0]["value"] == 62000


def _gz(folder: Path) -> Path:
    path = folder / "gpa.csv.gz"
    path.write_bytes(gzip.compress(GPA.read_bytes()))
    return path


def _semicolons(folder: Path) -> Path:
    path = folder / "gpa*.csv"  # a name that DuckDB would take for a pattern
    (folder / "gpa-decoy.csv").write_text("gpa;salary\n1;2\n")
    path.write_text("\ufeff" + GPA.read_text().replace(",", ";"))
    return path


def _parquet(folder: Path) -> Path:
    path = folder / "gpa.parquet"
    duckdb.read_csv(str(GPA)).write_parquet(str(path))
    return path


def _sqlite(folder: Path) -> Path:
    path = folder / "gpa #1?.db"
    with sqlite3.connect(path) as connection:
        connection.execute('CREATE TABLE "my ""table" (gpa REAL, salary INTEGER)')
        connection.executemany('INSERT INTO "my ""table" VALUES (?, ?)', ROWS)
    connection.close()
    return path


@pytest.mark.parametrize("make", [_gz, _semicolons, _parquet, _sqlite])
def test_every_kind_of_file_answers_the_same(regard, tmp_path, make):
    assert regard("lookup", make(tmp_path), *SOFT).out == regard("lookup", GPA, *SOFT).out


def test_a_sqlite_file_is_not_written(regard, tmp_path):
    path = _sqlite(tmp_path)
    before = path.read_bytes()
    regard("lookup", path, *SOFT)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_exact_lookup_of_texts(regard, tmp_path):
    path = tmp_path / "majors.csv"
    path.write_text("student,major\nAnn,Physics\nBob,Law\nAnn,Music\n")
    ask = ("lookup", path, "--key", "student", "--value", "major", "--query")
    assert regard(*ask, "Bob").out.startswith("major = Law\nat student = Bob (exact, identity)\n")
    assert regard(*ask, "Ann").out.startswith("major = Physics, Music\n")
    nothing = regard(*ask, "Zoe")
    assert nothing.out == "nothing found\nat student = Zoe (exact, identity)\n"
    assert nothing.code == 0
    said = json.loads(regard(*ask, "Zoe", "--json").out)
    assert (said["value"], said["found"]) == (None, [])
    inverse = regard("lookup", path, "--key", "major", "--value", "student", "--query", "Law")
    assert inverse.out.startswith("student = Bob\n")


def test_several_keys_are_a_vector_and_may_have_any_name(regard, tmp_path):
    path = tmp_path / "points.csv"
    path.write_text('x,"y""; DROP TABLE t; --",z\n0,0,10\n0,1,20\n')
    ran = regard(
        *("lookup", path, "--key", "x", "--key", 'y"; DROP TABLE t; --', "--value", "z", "--query", "0,0.5"),
        *("--score", "gaussian:1"),
    )
    assert ran.out.startswith("z = 15\n")  # as near to one as to the other


def test_whole_numbers_that_no_float_holds_are_found(regard, tmp_path):
    path = tmp_path / "ids.csv"
    path.write_text("id,name\n9007199254740992,a\n9007199254740993,b\n")
    ran = regard("lookup", path, "--key", "id", "--value", "name", "--query", "9007199254740993")
    assert ran.out.startswith("name = b\n")


def test_rows_without_a_number_are_skipped_aloud(regard, tmp_path):
    path = tmp_path / "holes.csv"
    path.write_text("gpa,salary\n3.5,100\n,200\n3.5,\nnan,300\n")
    ran = regard("lookup", path, *SOFT)
    assert ran.code == 0
    assert ran.out.startswith("salary = 100\n")
    assert ran.err == "regard: 3 of 4 rows skipped: no gpa or no salary\n"


def test_parameters_come_from_the_seed(regard):
    ask = ("lookup", GPA, "--key", "gpa", "--value", "salary", "--query", "3.5", "--score", "additive:8", "--json")
    assert regard(*ask).out == regard(*ask).out
    assert regard(*ask).out != regard(*ask, "--seed", 1).out


def test_a_table_cannot_write_to_the_terminal(regard, tmp_path):
    path = tmp_path / "escape.csv"
    path.write_text("k,v\na,\x1b[31m[bold]red\n")
    ran = regard("lookup", path, "--key", "k", "--value", "v", "--query", "a")
    assert "\x1b" not in ran.out
    assert "[bold]red" in ran.out
