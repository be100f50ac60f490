"""regard bench, at sizes that take no time."""

import json
import math

import pytest
import torch

from regard import attention
from regard.cli import bench
from regard.cli.timing import Runner, error, gradients, peak, poisoned, ratio, results
from regard.cli.works import WORKS

pytest.importorskip("numba")
SMALL = ("--n", 40, "--heads", 2, "--seconds", 1, "--no-compiled")


@pytest.mark.parametrize("work", WORKS, ids=[work.name for work in WORKS])
def test_the_formulas_are_what_we_compute(work):
    """Otherwise the table would compare different things."""
    inputs, call = work.inputs("cpu", torch.float64, 50), work.call(work)
    call = {name: part.double() if isinstance(part, torch.nn.Module) else part for name, part in call.items()}
    ours = results(Runner(lambda *x: attention(*x, backend="reference", **call)), inputs)
    torch.testing.assert_close(results(Runner(work.eager(work, call)), inputs), ours)
    for peer in work.peers.values():
        if peer.library == "entmax" and pytest.importorskip("entmax"):
            torch.testing.assert_close(results(Runner(peer.make(work, call)), inputs), ours)


def test_a_table_for_people(regard):
    ran = regard("bench", *SMALL, "--only", "relu", "--only", "dot product")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("machine: ")
    assert f"torch {torch.__version__}" in lines[1]
    assert any(line.startswith("relu, n = 40 x 2  ") and "regard (" in line for line in lines)
    assert sum(line.split()[0] == "eager" for line in lines if line.split()) == 2
    assert "x: how many times as long as ours." in ran.out


def test_json_holds_every_figure(regard):
    ran = regard("bench", *SMALL, "--only", "additive", "--json")
    said = json.loads(ran.out)
    ours, eager = said["rows"]
    assert ours["who"].startswith("regard (")
    assert eager["who"] == "eager"
    for row in (ours, eager):
        assert (row["mechanism"], row["n"], row["heads"], row["missing"]) == ("additive", 40, 2, None)
        assert all(row[name] > 0 for name in ("forward_ms", "backward_ms", "first_seconds"))
        assert max(row["error"], row["gradient_error"]) < 1e-5
    assert ours["forward_ratio"] == 1
    assert eager["forward_ratio"] > 0


def test_without_a_gpu_one_line_says_so(regard, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    ran = regard("bench", "--gpu")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "regard: --gpu: torch finds no GPU here; leave it out to measure the CPU\n"


def test_an_unknown_mechanism_is_named_with_the_nearest(regard):
    ran = regard("bench", "--only", "sparsmax")
    assert ran.code == 2
    assert "no mechanism is called 'sparsmax'; did you mean sparsemax?" in ran.err


def test_what_fails_or_has_no_time_is_said(regard, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no compiler\nmore")

    monkeypatch.setattr(torch, "compile", broken)
    monkeypatch.setattr(bench, "COMPILING", 1e9)
    small = SMALL[:-1]
    ran = regard("bench", *small, "--only", "relu")
    assert "– torch.compile: RuntimeError: no compiler\n" in ran.out
    monkeypatch.setattr(bench, "COMPILING", 0.0)
    assert "– torch.compile: no time left to compile" in regard("bench", *small, "--only", "relu").out


def test_error_is_a_share_and_nan_shows():
    right = [torch.tensor([2.0, -4.0], dtype=torch.float64)]
    assert error([torch.tensor([2.0, -3.0])], right) == 0.25
    assert error([torch.tensor([math.nan, -4.0])], right) == math.inf


def test_ratios_are_taken_turn_by_turn():
    assert ratio([2.0, 30.0, 4.0], [1.0, 10.0, 1.0]) == 3.0
    assert ratio([], [1.0]) is None


def test_unwritten_memory_shows_as_nan():
    with poisoned():
        assert torch.empty(100).isnan().all()
    assert not torch.are_deterministic_algorithms_enabled()


def test_peaks_are_seen():
    found = peak(lambda: torch.ones(16 * 2**20).sum(), "cpu")  # 64 MiB
    if found is None:
        pytest.skip("this system does not tell")
    assert 60e6 < found < 90e6


def test_gradients_are_those_of_the_sum():
    x = torch.ones(3, requires_grad=True)
    assert torch.equal(gradients(x * 2, [x])[0], torch.full((3,), 2.0))
