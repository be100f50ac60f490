"""The score that CONTRIBUTING.md adds is real: its class, taken from the text, passes through the table's tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import regard
from regard.backends import chunked
from regard.core import scores
from tests.mechanisms import MASKS, NORMALIZERS, Row, ids, mask, normalizer, problem

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()


@pytest.fixture(scope="module")
def cosine() -> scores.Score:
    source, row = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    names = dict(vars(scores), F=torch.nn.functional)
    exec(source, names)
    scores_with_it = type("S", (), {"Cosine": names["Cosine"]})
    made = eval(row.strip().removesuffix(","), {"Row": Row, "S": scores_with_it})
    return made.make()


def test_its_values(cosine: scores.Score) -> None:
    """cos 0 = 1, cos 90 degrees = 0, cos 180 degrees = -1, over a temperature of one half."""
    query, key = torch.tensor([[2.0, 0.0]]), torch.tensor([[5.0, 0.0], [0.0, 3.0], [-1.0, 0.0]])
    assert cosine(query, key).tolist() == [[2.0, 0.0, -2.0]]


@pytest.mark.parametrize("weights", **ids(NORMALIZERS))
@pytest.mark.parametrize("pairs", **ids(MASKS))
def test_backends_agree(cosine: scores.Score, weights: Row, pairs: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "BUDGET", 2**5)
    results = []
    for backend in ("reference", "chunked"):
        inputs = problem()
        out = regard.attention(
            *inputs, score=cosine, normalizer=normalizer(weights), mask=mask(pairs), backend=backend, seed=7
        )
        grads = torch.autograd.grad(out.square().sum(), inputs, allow_unused=True)
        results.append([out, *(torch.zeros(()) if g is None else g for g in grads)])
    for ours, expected in zip(*results, strict=True):
        assert torch.allclose(ours, expected.to(ours.dtype), atol=1e-9)
