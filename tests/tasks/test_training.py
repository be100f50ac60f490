"""The loop does what a plain loop in torch does, and what it leaves behind is what its folder promises."""

from __future__ import annotations

import errno
import json
import math
import os
from dataclasses import replace

import pytest
import torch
from torch import nn

import regard
from regard import InputError
from regard.tasks import atomic, checkpoints, config, training
from regard.tasks.batches import Batches
from regard.tasks.config import Optim
from regard.tasks.training import hash_of, rate_at
from tests.tasks.small import apart, run_of, same, steps, swaps, train, weights


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a finished run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    train(swaps(folder), folder / "run")
    return folder / "run"


# What it computes


def by_hand(run, trained) -> nn.Module:
    """The same run in the words of torch alone: no dropout, no checkpoint, no Fabric."""
    task, optim = trained.task, run.optim
    torch.manual_seed(run.seed)
    network = task.network()
    learned = list(network.parameters())
    groups = [
        {"params": [p for p in learned if p.ndim > 1], "weight_decay": optim.weight_decay},
        {"params": [p for p in learned if p.ndim <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, betas=optim.betas, eps=1e-6)
    examples = [task.encode(example) for example in task.read(run.data.train)]
    stream = Batches(lambda: iter(examples), run.data.tokens, run.data.longest, run.seed).forever()
    for step in range(1, run.schedule.steps + 1):
        batches = [task.collate(next(stream)[2], 0) for _ in range(optim.accumulate)]
        loss = torch.zeros(())
        for batch in batches:
            logits = network(batch.source, batch.given, batch.lengths)
            loss = loss + nn.functional.cross_entropy(
                logits.flatten(0, 1), batch.target.flatten(), reduction="sum", label_smoothing=optim.label_smoothing
            )
        loss = loss / sum(int((batch.target >= 0).sum()) for batch in batches)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), optim.clip)
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, run.schedule.steps, optim)
        optimizer.step()
    return network


@pytest.fixture
def in_float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_weights_are_those_of_a_plain_loop(tmp_path, accumulate, in_float64):
    """Adam divides by the size of a gradient, and so makes a lot of what rounding does to a small one."""
    keys = {"optim__dropout": 0.0, "optim__accumulate": accumulate, "optim__clip": 0.5, "optim__lr": 1e-3}
    trained = train(swaps(tmp_path, **keys), tmp_path / "run")
    run = config.read(tmp_path / "run" / "run.toml")
    oracle = by_hand(run, trained)
    assert apart(weights(tmp_path / "run"), dict(oracle.state_dict())) < 1e-10
    torch.manual_seed(run.seed)
    assert apart(weights(tmp_path / "run"), dict(trained.task.network().state_dict())) > 2e-3  # it did move
    assert steps(tmp_path / "run") == [6, 8, 12]  # the last three of every fourth, and of each evaluation


def test_the_loss_falls_and_the_answers_become_right(tmp_path):
    keys = {"schedule__steps": 160, "schedule__evaluate": 40, "optim__lr": 1e-2, "optim__dropout": 0.0}
    reports = []
    trained = train(swaps(tmp_path, **keys, model__d=32), tmp_path / "run", reports.append)
    losses = [report.figures["loss"] for report in reports if report.figures]
    assert len(losses) == 4
    assert losses[0] < 0.5 * math.log(len(trained.task.tokenizer))  # better than guessing among all words
    assert losses[-1] < 0.5 * losses[0]
    assert trained("a f", beam=1).output == "f a"
    assert trained.figures["accuracy"] > 0.95
    assert [report.step for report in reports] == list(range(1, 161))
    assert all(report.tokens_per_second > 0 and report.seconds_left >= 0 for report in reports)


def test_the_seed_decides_everything(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        torch.rand(3)  # whatever was drawn before does not matter
        train(swaps(tmp_path, seed=seed), tmp_path / name)
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert apart(weights(tmp_path / "a"), weights(tmp_path / "c")) > 0.01


def test_evaluating_more_often_changes_no_weight(tmp_path):
    for name, evaluate in (("a", 3), ("b", 12)):
        train(swaps(tmp_path, schedule__evaluate=evaluate, schedule__average=1), tmp_path / name)
    read = [checkpoints.load(tmp_path / name / "checkpoints").state["model"] for name in "ab"]
    assert same(*read)


def test_bfloat16_learns_too(tmp_path):
    trained = train(swaps(tmp_path, machine__precision="bfloat16", optim__lr=1e-2), tmp_path / "run")
    assert {p.dtype for p in trained.network.parameters()} == {torch.float32}
    assert trained.figures["loss"] < 2.3


# The learning rate

RATE = Optim(lr=1.0, warmup=10)


@pytest.mark.parametrize("decay", ["linear", "cosine", "root", "constant"])
def test_it_rises_in_a_line(decay):
    assert [rate_at(step, 100, replace(RATE, decay=decay)) for step in (1, 5, 10)] == [0.1, 0.5, 1.0]


def test_it_falls_as_was_said():
    linear = [rate_at(step, 19, replace(RATE, decay="linear")) for step in range(11, 20)]
    assert linear == pytest.approx([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    assert rate_at(15, 19, replace(RATE, decay="cosine")) == pytest.approx(0.5)
    assert rate_at(40, 100, replace(RATE, decay="root")) == pytest.approx(0.5)  # √(10/40)
    assert rate_at(99, 100, replace(RATE, decay="constant")) == 1.0
    assert all(rate_at(100, 100, replace(RATE, decay=decay)) > 0 for decay in ("linear", "cosine"))
    assert rate_at(1, 100, replace(RATE, warmup=0)) > 0.99


def test_time_that_is_gone_counts_as_steps_do():
    assert rate_at(15, 1000, replace(RATE, decay="linear"), gone=0.75) == pytest.approx(0.25)
    assert rate_at(15, 1000, replace(RATE, decay="linear"), gone=1.0) == 0.0


def test_seeds_of_different_places_differ():
    seeds = {hash_of(seed, step, micro, rank) for seed in range(5) for step in range(50) for micro in (0, 1) for rank in (0, 1)}  # fmt: skip
    assert len(seeds) == 5 * 50 * 2 * 2


# When it stops


def test_it_stops_when_nothing_improves_and_stays_so(tmp_path, caplog):
    keys = {"schedule__steps": 100, "schedule__evaluate": 2, "schedule__patience": 2, "optim__lr": 1e-30}
    run = swaps(tmp_path, **keys)
    reports = []
    train(run, tmp_path / "run", reports.append)
    assert reports[-1].step == 6  # the first evaluation is the best, two more are not better
    assert "no improvement in 2 evaluations: stopped at step 6" in caplog.text
    before = weights(tmp_path / "run")
    train(run, tmp_path / "run", reports.append)
    assert reports[-1].step == 6
    assert same(before, weights(tmp_path / "run"))


def test_it_stops_when_its_minutes_are_over(tmp_path):
    reports = []
    train(swaps(tmp_path, schedule__steps=10**6, schedule__minutes=0.02), tmp_path / "run", reports.append)
    assert 1 < reports[-1].step < 10**4
    assert reports[-1].figures["loss"] > 0
    assert reports[-1].seconds_left < 1.2


def test_what_diverges_says_so_and_leaves_finite_checkpoints(tmp_path):
    run = swaps(tmp_path, optim__lr=1e30, optim__warmup=0, checkpoint__every=1)
    with pytest.raises(InputError, match=r"run: at step \d the .* is (nan|inf): training diverged, .*smaller optim.lr"):
        train(run, tmp_path / "run")
    state = checkpoints.load(tmp_path / "run" / "checkpoints").state["model"]
    assert all(tensor.isfinite().all() for tensor in state.values())


# What it leaves


def test_the_folder_of_a_finished_run(tmp_path):
    run = swaps(tmp_path, schedule__average=2, card__title="Mirror", card__licence="CC0", card__data="Two letters.")
    trained = train(run, tmp_path / "run")
    folder = tmp_path / "run"
    assert sorted(os.listdir(folder)) == [
        "README.md", "checkpoints", "config.json", "loss.png", "metrics.jsonl", "model.safetensors", "run.toml",
        "tokenizer.json",
    ]  # fmt: skip
    told = (folder / "README.md").read_text()
    assert told.startswith("# Mirror\n")
    assert all(text in told for text in ("Two letters.", "Licence: CC0.", "12 steps", f"{trained.figures['loss']:.4g}"))
    assert (folder / "loss.png").read_bytes().startswith(b"\x89PNG")
    resolved = config.read(folder / "run.toml")
    assert (resolved.model.kind, resolved.optim.warmup, resolved.schedule.steps) == ("transformer", 1, 12)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == list(range(1, 13))
    assert [line["step"] for line in lines if "valid loss" in line] == [6, 12]
    assert all(math.isfinite(line["loss"]) for line in lines if "loss" in line)


def test_a_finished_model_answers_as_before_when_it_is_loaded(tmp_path):
    trained = train(swaps(tmp_path), tmp_path / "run")
    read = regard.load(tmp_path / "run")
    texts = ["a b", "f c", "", "a z"]
    assert read(texts) == trained(texts)
    assert read(["a z"])[0].unknown == ("z",)


def test_the_same_command_again_changes_nothing(tmp_path):
    run = swaps(tmp_path)
    train(run, tmp_path / "run")
    before = {p.name: p.read_bytes() for p in (tmp_path / "run").iterdir() if p.is_file() and p.name != "loss.png"}
    train(run, tmp_path / "run")
    assert before == {name: (tmp_path / "run" / name).read_bytes() for name in before}


def test_how_long_where_nothing_is_said(tmp_path):
    run = swaps(tmp_path)
    run = replace(run, schedule=replace(run.schedule, steps=None, minutes=1e-9))
    train(run, tmp_path / "run")
    resolved = config.read(tmp_path / "run" / "run.toml")
    assert resolved.schedule.steps == 300  # 40 passes over two or three batches are fewer
    assert resolved.optim.warmup == 30


# What it refuses


def test_another_run_in_the_same_folder(tmp_path):
    train(swaps(tmp_path), tmp_path / "run")
    with pytest.raises(
        InputError, match=r"says 'lr = 0.0005', now it is 'lr = 0.1': another run; give it another folder"
    ):
        train(swaps(tmp_path, optim__lr=0.1), tmp_path / "run")
    train(swaps(tmp_path, machine__device="cpu", checkpoint__keep=1, card__title="Other"), tmp_path / "run")


def test_a_folder_that_holds_something_else(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="not empty, and no run is in it; expected a new folder"):
        train(swaps(tmp_path), tmp_path / "run")
    with pytest.raises(InputError, match="Not a directory"):
        train(swaps(tmp_path), tmp_path / "swapped.tsv")


def test_a_run_that_was_killed_before_its_first_step_begins_again(tmp_path, whole):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".writing-0123456789abcdef").write_text("half a tok")
    (folder / "tokenizer.json").write_bytes((whole / "tokenizer.json").read_bytes())
    train(swaps(tmp_path), folder)
    assert same(weights(whole), weights(folder))
    assert not [name for name in os.listdir(folder) if name.startswith(atomic.LEFTOVERS)]


def test_validation_examples_that_are_all_too_long(tmp_path):
    (tmp_path / "long.tsv").write_text("a " * 20 + "\tb\n")
    with pytest.raises(InputError, match=r"long.tsv: all examples are longer than data\.longest=16"):
        train(swaps(tmp_path, data__valid=[str(tmp_path / "long.tsv")]), tmp_path / "run")


@pytest.mark.parametrize(
    ("task", "text", "message"),
    [
        ("tag", "", r"data: the file is empty"),
        ("tag", "1\tcat\n", r"data, row 1 \(byte 0\): 2 columns, expected the 10 of CoNLL-U"),
        ("classify", "yes\n", r"data, row 1 \(byte 0\): 'yes' is one field, expected label<TAB>text"),
        ("classify", "yes\ta\nyes\tb\n", r"data: all labels are 'yes'; expected two or more"),
        ("translate", "a\n", r"data, row 1 \(byte 0\): no column 2; the row has 1 field"),
        ("fill", "\n\n", r"data: the file holds no text"),
    ],
)
def test_bad_data_are_one_clear_line_and_leave_nothing(tmp_path, task, text, message):
    (tmp_path / "data").write_text(text)
    with pytest.raises(InputError, match=message) as raised:
        train(run_of(task, tmp_path / "data"), tmp_path / "run")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "run").exists()


def test_a_label_that_training_never_saw(tmp_path):
    (tmp_path / "train").write_text("yes\ta b\nno\tc d\n")
    (tmp_path / "valid").write_text("yes\ta b\nperhaps\tc d\n")
    with pytest.raises(InputError, match=r"valid, row 2 .*: unknown label 'perhaps'; expected one of no, yes"):
        train(run_of("classify", tmp_path / "train", data__valid=[str(tmp_path / "valid")]), tmp_path / "run")


# A disk that is full


@pytest.mark.parametrize("name", ["run.toml", "metrics.jsonl", "model.safetensors", "README.md", "loss.png"])
def test_a_full_disk_is_one_clear_line_and_the_same_command_goes_on(tmp_path, whole, name, monkeypatch):
    run = swaps(tmp_path)
    replaced = os.replace

    def full(source, target):
        if os.path.basename(target) == name:
            raise OSError(errno.ENOSPC, "No space left on device")
        replaced(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(InputError, match=f"{name}: not written: No space left on device; free some space"):
            train(run, tmp_path / "run")
    assert not [path for path in (tmp_path / "run").iterdir() if path.name.startswith(atomic.LEFTOVERS)]
    train(run, tmp_path / "run")
    assert same(weights(whole), weights(tmp_path / "run"))


def test_figures_of_a_killed_run_are_those_of_its_checkpoint(tmp_path):
    run = swaps(tmp_path)
    train(run, tmp_path / "run")
    path = tmp_path / "run" / "metrics.jsonl"
    before = path.read_text()
    with path.open("a") as file:
        file.write('{"step": 13, "loss": 1.0}\n[]\n{"step": "x"}\n{"step": 14, "lo')
    training.train(run, tmp_path / "run")
    assert path.read_text() == before
