"""Two gloo ranks that train together, again and again, until something happens to one of them.

    python -m torture.pairs FOLDER TRIALS SEED

Its own process, which imports once and forks the ranks, with the environment that torchrun gives them, but nobody who
ends the one when the other is dead: each has to notice by itself. Prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import sys
import time
import traceback
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed.fsdp
from lightning.fabric import Fabric  # noqa: F401  here, so that no child has to
from lightning.fabric.strategies.model_parallel import ModelParallelStrategy  # noqa: F401

from regard.tasks import training
from regard.tasks.config import Run
from tests.tasks.small import apart, run_of, weights

BOUND, SECONDS = 1e-5, 60.0
PATIENCE = 150.0  # before this process itself gives a rank up
WAYS = ("ddp", "fsdp")
ENDS = ("kill",) * 12 + ("exception",) * 8 + ("stop",) * 3 + ("freeze",)


def uneven(folder: Path, chance: random.Random) -> Run:
    """Texts of any length; batches with fewer rows than ranks, or with nothing to learn in a row of theirs."""
    path = folder / "data.tsv"
    lengths = [chance.choice((1, 1, 2, 5, 9, 15)) for _ in range(chance.choice((3, 7, 20)))]
    path.write_text(
        "".join(f"{'xy'[i % 2]}\t{' '.join(chance.choices('abcdef', k=n))}\n" for i, n in enumerate(lengths))
    )
    keys: dict[str, Any] = {
        "data__tokens": chance.choice((16, 32)), "optim__dropout": 0.0, "optim__accumulate": chance.choice((1, 2, 3)),
        "schedule__steps": 8, "schedule__evaluate": 4, "checkpoint__every": 2,
    }  # fmt: skip
    return run_of("classify", path, **keys)


def pair(run: Run, folder: Path, end: tuple[int, int, str] = (-1, 0, "")) -> tuple[list[int], float]:
    """How both ranks ended, and how long the later one took after what happened to the other."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    happened = folder.with_suffix(".happened")
    happened.unlink(missing_ok=True)
    children = [_rank(rank, port, run, folder, end, happened) for rank in range(2)]
    ended: dict[int, int] = {}
    started = time.monotonic()
    while len(ended) < 2:
        for child in children:
            if child not in ended:
                done, status = os.waitpid(child, os.WNOHANG)
                ended.update({child: os.waitstatus_to_exitcode(status)} if done else {})
        frozen = children[end[0]] if end[2] == "freeze" else None
        if time.monotonic() - started > PATIENCE or (frozen and set(children) - {frozen} <= set(ended)):
            for child in set(children) - set(ended):
                os.kill(child, signal.SIGKILL)
        time.sleep(0.02)
    took = time.time() - happened.stat().st_mtime if happened.exists() else 0.0
    return [ended[child] for child in children], took


def _rank(rank: int, port: int, run: Run, folder: Path, end: tuple[int, int, str], happened: Path) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.environ |= {
            "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0",
        }  # fmt: skip
        log = os.open(folder.with_suffix(f".{rank}.log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)

        def report(now: training.Progress) -> None:
            if (rank, now.step) != end[:2]:
                return
            happened.touch()
            if end[2] == "exception":
                raise RuntimeError("something broke in one rank")
            os.kill(os.getpid(), {"kill": signal.SIGKILL, "stop": signal.SIGTERM, "freeze": signal.SIGSTOP}[end[2]])

        with suppress(training.Stopped):
            training.train(run, folder, report)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def trial(folder: Path, chance: random.Random, end: str, way: str) -> tuple[str, float, float]:
    """What went wrong, or nothing; the seconds until all had ended; how far DDP and FSDP2 are apart."""
    folder.mkdir()
    run = uneven(folder, chance)
    training.train(run, folder / "one")
    expected = weights(folder / "one")
    runs = {each: replace(run, machine=replace(run.machine, parallel=each)) for each in WAYS}  # pyright: ignore
    other = WAYS[1 - WAYS.index(way)]
    codes, _ = pair(runs[other], folder / other)
    if codes != [0, 0]:
        return f"uneven data, {other}: ended with {codes}", 0.0, 0.0
    happens = chance.randrange(2), chance.randrange(1, 8), end
    codes, took = pair(runs[way], folder / way, happens)
    wrong = f"{way}, {end} of rank {happens[0]} at step {happens[1]}: "
    if end == "stop" and codes != [0, 0]:
        return f"{wrong}ended with {codes}, expected [0, 0]", took, 0.0
    if end != "stop" and 0 in codes:
        return f"{wrong}a rank went on alone: {codes}", took, 0.0
    if took > SECONDS:
        return f"{wrong}{took:.0f} s until all had ended", took, 0.0
    again, _ = pair(runs[way], folder / way)
    if again != [0, 0]:
        return f"{wrong}the restart ended with {again}", took, 0.0
    between = apart(weights(folder / way), weights(folder / other))
    alone = max(apart(weights(folder / each), expected) for each in WAYS)
    if max(between, alone) > BOUND:
        return f"{wrong}weights differ by {max(between, alone):.1e}", took, between
    return "", took, max(between, alone)


def main(folder: Path, trials: int, seed: int) -> dict[str, Any]:
    chance = random.Random(seed)
    wrong, longest, furthest = [], 0.0, 0.0
    for number in range(trials):
        end = ENDS[chance.randrange(len(ENDS))] if number else "kill"
        place = folder / f"trial-{number}"
        said, took, distance = trial(place, chance, end, WAYS[number % 2])
        wrong += [f"trial {number}: {said}"] * bool(said)
        longest, furthest = max(longest, took), max(furthest, distance)
        if not said:
            shutil.rmtree(place)
    return {"trials": trials, "wrong": wrong, "longest": longest, "furthest": furthest}


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
