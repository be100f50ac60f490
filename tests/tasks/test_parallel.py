"""Two processes under plain torchrun compute what one does, and none waits for one that is dead."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

import regard
from regard.tasks import checkpoints
from tests.tasks.small import apart, run_of, same, swaps, train, weights
from torture.ranks import job, launch

# Dropout is drawn for each rank; all else does not depend on how many there are.
KEYS = {"optim__dropout": 0.0, "optim__accumulate": 2, "checkpoint__every": 3}
BOUND = 1e-5
BOTH = ("ddp", "fsdp")
WAYS = {"swap": BOTH, "tag": BOTH, "classify": ("ddp",), "attentive": ("ddp",), "fill": ("fsdp",), "generate": ("ddp",)}


def runs(folder):
    """Name → a run; some of their batches have fewer rows than there are ranks, or rows that ask for nothing."""
    conllu = "".join(
        "".join(f"{i}\tw{i % 3}\t_\t{'XY'[i % 2]}" + "\t_" * 6 + "\n" for i in range(1, n + 1)) + "\n"
        for n in (1, 9, 2, 15, 3)
    )
    (folder / "tag").write_text(conllu)
    (folder / "classify").write_text("x\ta\ny\tb c\nx\ta b a b a b a b\n")
    (folder / "text").write_text("a b c\nb a\nc c c c c c c\n")
    one = {**KEYS, "data__tokens": 16}
    return {
        "swap": swaps(folder, **KEYS),
        "attentive": swaps(folder, **KEYS, model__kind="attentive"),
        "tag": run_of("tag", folder / "tag", **one, model__kind="rnn"),
        "classify": run_of("classify", folder / "classify", **one),
        "fill": run_of("fill", folder / "text", **one),
        "generate": run_of("generate", folder / "text", **one, schedule__minutes=5),
    }


def in_parallel(run, how):
    return replace(run, machine=replace(run.machine, parallel=how))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of all runs, by one process and by two in both ways; and of runs that were stopped and go on."""
    folder = tmp_path_factory.mktemp("parallel")
    jobs = []
    for name, run in runs(folder).items():
        train(run, folder / f"{name}-one")
        jobs += [job(in_parallel(run, how), folder / f"{name}-{how}") for how in WAYS[name]]
        if name == "swap":
            for how in WAYS[name]:
                stopped = job(in_parallel(run, how), folder / f"stopped-{how}", dies=(1, 5, "stop"))
                jobs += [stopped, {**stopped, "dies": (-1, 0, "")}]
    done = launch(folder, *jobs)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.mark.parametrize(("name", "how"), [(name, how) for name, ways in WAYS.items() for how in ways])
def test_two_ranks_give_the_weights_of_one_process(trained, name, how):
    assert apart(weights(trained / f"{name}-one"), weights(trained / f"{name}-{how}")) < BOUND
    optimizers = [
        checkpoints.load(trained / f"{name}-{way}" / "checkpoints").state["optimizer"] for way in ("one", how)
    ]
    for parameter, state in optimizers[0].items():
        assert apart(state, optimizers[1][parameter]) < BOUND


@pytest.mark.parametrize("how", BOTH)
def test_they_report_the_loss_of_all(trained, how):
    lines = [(trained / f"swap-{way}" / "metrics.jsonl").read_text().splitlines() for way in ("one", how)]
    assert len(lines[0]) == len(lines[1]) > 10
    for one, two in zip(*lines, strict=True):
        one, two = map(json.loads, (one, two))
        assert one["step"] == two["step"]
        for name in ("loss", "valid loss", "valid accuracy"):
            assert one.get(name) == pytest.approx(two.get(name), abs=1e-4)


@pytest.mark.parametrize("how", BOTH)
def test_a_stop_of_one_rank_stops_all_and_they_go_on_to_the_same_bits(trained, how):
    assert same(weights(trained / f"stopped-{how}"), weights(trained / f"swap-{how}"))


def test_what_two_trained_answers_here(trained):
    assert regard.load(trained / "swap-fsdp")("a b").text == "a b"


@pytest.mark.parametrize("how", ["kill", pytest.param("exception", marks=pytest.mark.slow)])
def test_a_dead_rank_ends_the_others_within_a_minute_and_a_restart_goes_on(tmp_path, trained, how):
    run = in_parallel(swaps(tmp_path, **KEYS), "ddp")
    started = time.monotonic()
    done = launch(tmp_path, job(run, tmp_path / "run", dies=(1, 7, how)))
    assert time.monotonic() - started < 60 + 30  # of which up to 30 on a busy machine are spent starting
    assert done.returncode != 0
    assert ("something broke in one rank" if how == "exception" else "exitcode  : -9") in done.stderr
    assert checkpoints.load(tmp_path / "run" / "checkpoints").step == 6
    train(run, tmp_path / "run")  # on one process: what a run is does not depend on where it runs
    assert apart(weights(tmp_path / "run"), weights(trained / "swap-one")) < BOUND
