"""Every promise, a small part of each: `make torture` measures them in full."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from torture.__main__ import main
from torture.table import ROWS, Figure, measure, module_of


@pytest.mark.parametrize("row", ROWS)
def test_the_promise_is_kept(row: str) -> None:
    figure = measure(row, quick=True)
    if figure.passed is None:
        pytest.skip(figure.figure)
    assert figure.passed, "\n".join([figure.figure, *figure.detail])
    assert module_of(row).NAME == figure.row == row


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch):
    """Rows that end as they are told: True, False, None (not measured here), or by breaking off."""

    def told(**ends: object) -> None:
        for row, end in ends.items():

            def run(quick: bool, row: str = row, end: object = end) -> Figure:
                if isinstance(end, Exception):
                    raise end
                return Figure(row, f"{row} was {end}", end, [f"a line of {row}"])

            monkeypatch.setitem(sys.modules, f"torture.{row}", SimpleNamespace(NAME=row, BAR=f"bar of {row}", run=run))

    return told


def test_the_table_says_what_was_kept_what_was_broken_and_what_was_not_measured(rows, capsys) -> None:
    rows(numerics=True, large=None, crash=False, files=ZeroDivisionError("why"))
    assert main(["numerics", "large", "crash", "files"]) == 1
    lines = capsys.readouterr().out.splitlines()
    for row, ok in (("numerics", "yes"), ("large", "skipped"), ("crash", "no"), ("files", "no")):
        assert [True for line in lines if f" {row} " in line and f"bar of {row}" in line and f" {ok} " in line], row
    assert "crash: a line of crash" in lines
    assert "files: ZeroDivisionError: why" in lines


def test_what_is_skipped_breaks_no_promise(rows, capsys) -> None:
    rows(numerics=True, large=None)
    assert main(["numerics", "large"]) == 0


def test_a_row_that_does_not_exist_is_named(capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["numeric"])
    assert "no row numeric; there are numerics, gradients," in capsys.readouterr().err
