"""Requests that the API's description allows, and such that it forbids, made up by schemathesis in every phase."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from torture.service import models, serving
from torture.table import Figure

NAME = "http"
BAR = "1,000 examples for each operation, all phases and checks, positive and negative, NUL allowed: 0 failures"
EXAMPLES, SEED = 1_000, 1
PHASES = "examples,coverage,fuzzing,stateful"


def run(quick: bool) -> Figure:
    if find_spec("schemathesis") is None:
        return Figure(NAME, "schemathesis is not installed", None)
    with TemporaryDirectory(prefix="torture-") as folder:
        log = Path(folder) / "log"
        places = {} if quick else models(Path(folder))
        with serving(places, log, "--timeout", "120", "--waiting", "64") as service:
            code, report = made_up(f"http://{service.host}:{service.port}", Path(folder), quick)
            alive = service.process.poll() is None
        said = log.read_text()
    generated = re.search(r"(\d[\d,]*) generated", report)
    operations = re.search(r"Tested: (\d+)", report) or re.search(r"(\d+) tested", report)
    count = int(generated[1].replace(",", "")) if generated else 0
    of = f" of {operations[1]} operations" if operations else ""
    failures = [] if code == 0 else summary(report)
    failures += ["the server wrote into its log:", *said.splitlines()[-20:]] if "Traceback" in said else []
    failures += [] if alive else ["the server had ended"]
    figure = f"{count:,} requests{of}, {'0' if not failures else 'some'} failures"
    return Figure(NAME, figure, not failures and count > (20 if quick else 5 * EXAMPLES), failures)


def summary(report: str) -> list[str]:
    """What failed, and how to see it again."""
    said = [line.strip() for line in report.splitlines()]
    return [line for line in said if line.startswith(("- ", "curl ", "[", "`", "____"))] or said[-60:]


def made_up(address: str, folder: Path, quick: bool) -> tuple[int, str]:
    options = ["--checks", "all", "--mode", "all", "--generation-allow-x00", "true", "--seed", str(SEED)]
    options += ["-n", "4", "--phases", "fuzzing"] if quick else ["-n", str(EXAMPLES), "--phases", PHASES]
    options += ["--suppress-health-check", "all", "--request-timeout", "150", "--max-response-time", "150"]
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json", *options]
    plain = {**os.environ, "NO_COLOR": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr
