"""Requests that the API's own description allows, and such that it forbids, made up by schemathesis: every answer is
one that the description promises, and nothing is ever an error of the server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from regard.web.work import Work
from tests.web.small import served

pytest.importorskip("schemathesis")


def run(address: str, folder: Path, *options: str) -> str:
    """The report; what it found in the network is of no interest, so it runs apart from this process."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json"]
    plain = {**os.environ, "NO_COLOR": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([*command, *options], cwd=folder, env=plain, capture_output=True, text=True, timeout=3600)
    report = done.stdout + done.stderr
    assert done.returncode == 0, report[-6000:]
    return report


def test_a_few_requests_of_every_phase(models, tmp_path):
    with served(models, Work(threads=2, waiting=32, seconds=60)) as address:
        report = run(address, tmp_path, "--checks", "all", "-n", "4", "--seed", "1", "--phases", "examples,fuzzing")
    found = re.search(r"(\d+) generated", report)
    assert found
    assert int(found[1]) > 30


@pytest.mark.slow
def test_a_thousand_requests_of_every_operation(models, tmp_path):
    with served(models, Work(threads=2, waiting=32, seconds=60)) as address:
        report = run(address, tmp_path, "--checks", "all", "-n", "1000", "--seed", os.environ.get("SEED", "1"))
    assert re.search(r"(\d+) generated", report)
