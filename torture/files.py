"""Files that are damaged, cut, of another kind, or written to do harm: nothing in them is run, nothing crashes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from torture.table import Figure

NAME = "files"
BAR = "100,000 cases: 0 run code, crash, leave a traceback or say more than one clear line; memory ≤ file + 200 MB"
CASES, QUICK, SEED = 100_000, 500, 1


def run(quick: bool) -> Figure:
    memory = Path("/dev/shm")  # a hundred thousand small files need no disk
    with TemporaryDirectory(prefix="torture-", dir=memory if os.access(memory, os.W_OK) else None) as folder:
        command = [sys.executable, "-m", "torture.fuzzing", folder, str(QUICK if quick else CASES), str(SEED)]
        root = Path(__file__).parents[1]
        done = subprocess.run([*command, *["--quick"] * quick], cwd=root, capture_output=True, text=True)
    if done.returncode:
        return Figure(NAME, "broke off", False, done.stderr.splitlines()[-20:])
    found = json.loads(done.stdout.splitlines()[-1])
    said = f"{found['cases']:,} cases, {found['read']:,} read all the same, {len(found['faults'])} faults, "
    figure = f"{said}memory ≤ file + {found['most'] / 2**20:.0f} MB"
    whole = found["cases"] >= (QUICK if quick else CASES)
    return Figure(NAME, figure, not found["faults"] and whole, found["faults"])
