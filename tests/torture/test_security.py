"""SECURITY.md names rows that exist, and the limits that the code has."""

from __future__ import annotations

import re
from pathlib import Path

from regard.cli import tables
from regard.web.guard import Guard
from regard.web.server import DRAIN
from torture.files import CASES
from torture.table import ROWS

TEXT = (Path(__file__).parents[2] / "SECURITY.md").read_text()


def test_every_row_that_is_named_exists() -> None:
    named = {
        row
        for line in re.findall(r"^`make torture ROW=.*$", TEXT, re.M)
        for row in re.findall(r"`(?:make torture ROW=)?(\w+)`", line)
    }
    assert named == {"files", "crash", "resume", "distributed", "text", "http", "load"}
    assert named <= set(ROWS)


def test_limits_are_those_of_the_code() -> None:
    guard = Guard(None)
    for said in (
        f"at most {guard.largest // 1024} KiB and must be whole after {guard.seconds:.0f} s",
        f"for {DRAIN} s at most",
        f"up to {tables.FACTOR} times\n  its size",
        f"longer than {tables.SECONDS:.0f} s",
        f"{CASES:,} damaged and hostile files",
    ):
        assert said in TEXT
