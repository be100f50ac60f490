"""Two gloo ranks on this machine, under plain torchrun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from regard.tasks import config
from regard.tasks.config import Run


def job(run: Run, folder: Path, **more: Any) -> dict[str, Any]:
    path = folder.with_suffix(".toml")
    config.write(path, run)
    return {"run": str(path), "folder": str(folder), **more}


def launch(folder: Path, *jobs: dict[str, Any], ranks: int = 2, seconds: float = 300) -> subprocess.CompletedProcess:
    path = folder / "jobs.json"
    path.write_text(json.dumps(jobs))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    return subprocess.run(
        [*torchrun, "-m", "torture.worker", str(path)],
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
