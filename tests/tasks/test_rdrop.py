"""Two readings of a batch that are made to agree; a run that is begun in one place and trained in another."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from regard.tasks import config, model, training
from regard.tasks.examples import IGNORED
from regard.tasks.rdrop import disagreement
from tests.tasks.small import same, swaps, train, weights


def test_it_is_the_divergence_both_ways_of_what_is_asked_for():
    torch.manual_seed(0)
    logits, target = torch.randn(4, 3, 7), torch.randint(7, (2, 3))
    target[0, 2] = IGNORED
    p, q = logits.log_softmax(-1).chunk(2)
    asked = target != IGNORED
    wanted = [F.kl_div(b[asked], a[asked], reduction="sum", log_target=True) for a, b in ((p, q), (q, p))]
    torch.testing.assert_close(disagreement(logits, torch.cat([target, target])), sum(wanted) / 2)


def test_without_dropout_both_readings_agree_and_training_is_as_without(tmp_path):
    for share, name in ((0.0, "without"), (5.0, "with")):
        train(swaps(tmp_path / "data", optim__dropout=0.0, optim__rdrop=share), tmp_path / name)
    for a, b in zip(weights(tmp_path / "without").values(), weights(tmp_path / "with").values(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_with_dropout_they_are_brought_nearer(tmp_path):
    apart = {}
    for share in (0.0, 20.0):
        keys = {"optim__dropout": 0.3, "optim__rdrop": share, "optim__lr": 5e-3, "schedule__steps": 60}
        run = swaps(tmp_path / "data", **keys)
        task = train(run, tmp_path / str(share)).task
        items = [task.encode(pair) for pair in task.read(run.data.train)]
        network = task.network(dropout=0.3)
        network.load_state_dict(weights(tmp_path / str(share)))
        torch.manual_seed(0)
        with torch.no_grad():
            logits, target = task.logits(network.train(), task.collate(items, 0).twice())
        apart[share] = float(disagreement(logits, target))
    assert apart[20.0] < 0.7 * apart[0.0]


def test_a_run_that_was_begun_is_trained_as_if_it_were_new(tmp_path):
    run = swaps(tmp_path / "data", optim__dropout=0.2)
    train(run, tmp_path / "at once")
    training.begin(run, tmp_path / "begun")
    assert not (tmp_path / "begun" / model.WEIGHTS).exists()
    train(config.read(tmp_path / "begun" / training.RUN), tmp_path / "begun")
    assert same(weights(tmp_path / "at once"), weights(tmp_path / "begun"))


def test_what_was_attended_to_is_fed_to_the_next_step(tmp_path):
    keys = {"model__kind": "attentive", "model__d": 16, "optim__lr": 1e-2, "schedule__steps": 150}
    train(swaps(tmp_path / "data", **keys, model__feeding=True), tmp_path / "feeding")
    trained = model.load(tmp_path / "feeding")
    assert trained.network.input_feeding
    assert [answer.output for answer in trained(["a b", "f c"], beam=1)] == ["b a", "c f"]
