"""regard ls: what the backends themselves say."""

import inspect
import json

from regard import normalizers, scores
from regard.dispatch import BACKENDS
from regard.mechanisms import NORMALIZERS, SCORES, make_normalizer, make_score


def test_every_pair_is_listed_with_the_backends_that_can(regard):
    listed = json.loads(regard("ls", "--json").out)
    assert len(listed) == len(SCORES) * len(NORMALIZERS)
    of = {(row["score"], row["normalizer"]): row for row in listed}
    assert "sdpa" in of["scaled-dot", "softmax"]["backends"]
    assert "sdpa" not in of["scaled-dot", "sparsemax"]["backends"]
    assert "not Sparsemax" in of["scaled-dot", "sparsemax"]["refusals"]["sdpa"]
    for row in listed:
        assert "reference" in row["backends"]  # the formula can do everything
        assert {*row["backends"], *row["refusals"]} == set(BACKENDS)


def test_the_answer_is_the_backends_own(regard, monkeypatch):
    monkeypatch.setattr(BACKENDS["chunked"], "why_not", lambda *_: "it is Sunday")
    ran = regard("ls")
    assert "chunked refuses, because\n  it is Sunday\n" in ran.out
    assert "hr" not in ran.out


def test_the_table_fits_a_terminal(regard):
    table = regard("ls").out.split("\n\n")[1].splitlines()
    assert all(len(line) <= 80 for line in table)
    assert [line.split()[0] for line in table[2:]] == list(SCORES)


def test_every_mechanism_of_the_library_has_a_name():
    def classes(module, base):
        return {c for c in vars(module).values() if inspect.isclass(c) and issubclass(c, base) and c is not base}

    assert {type(make_score(name, 4, 4)) for name in SCORES} == classes(scores, scores.Score)
    assert {type(make_normalizer(name)) for name in NORMALIZERS} == classes(normalizers, normalizers.Normalizer)
    assert make_normalizer("sigmoid:-2").bias == -2
    assert make_score("Scaled_Dot:0.5", 4, 4).scale == 0.5
