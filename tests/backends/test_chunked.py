"""What chunked promises beyond agreeing with the reference: bounded memory, and no silent wrong derivative."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch.autograd import forward_ad

import regard
from regard import normalizers as N
from regard import scores as S
from tests.mechanisms import problem


def test_a_second_derivative_is_refused_aloud() -> None:
    inputs = problem()
    out = regard.attention(*inputs, normalizer=N.Sigmoid(), backend="chunked")
    (first,) = torch.autograd.grad(out.square().sum(), inputs[0], create_graph=True)
    with pytest.raises(regard.BackendError, match="no second derivatives; use backend='reference'"):
        first.square().sum().backward()


def test_forward_mode_goes_to_the_reference() -> None:
    query, key, value = (x.detach() for x in problem())
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(query, torch.ones_like(query))
        with pytest.raises(regard.BackendError, match="no forward-mode derivatives"):
            regard.attention(dual, key, value, normalizer=N.ReLU(), backend="chunked")
        assert regard.explain(dual, key, value, normalizer=N.ReLU()).backend == "reference"
        tangent = forward_ad.unpack_dual(regard.attention(dual, key, value, normalizer=N.ReLU())).tangent
    assert tangent.abs().sum() > 0


def test_bilinear_in_float16_where_q_w_leaves_the_range() -> None:
    """q W is 100,000, beyond float16; the scores are 4,000."""
    score = S.Bilinear(4, 4).half()
    with torch.no_grad():
        score.weight.copy_(200 * torch.eye(4))
    query, key = torch.full((3, 4), 500.0).half(), torch.full((3, 4), 0.01).half()
    for backend in ("sdpa", "chunked", "reference"):
        assert torch.equal(regard.attention(query, key, key, score=score, backend=backend), key)


MEASURE = """
import resource, torch, regard
from regard import scores as S, normalizers as N
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
def run(n):
    q, k, v = (torch.randn(1, 1, n, 8, requires_grad=True) for _ in range(3))
    regard.attention(q, k, v, score=S.Additive(8, 8, 16), normalizer=N.{normalizer}, backend="chunked").sum().backward()
run(64)
before = peak()
run({n})
print(peak() - before)
"""


@pytest.mark.parametrize("normalizer", ["Softmax()", "Entmax(1.5)"])
def test_memory_beyond_the_inputs_stays_bounded(normalizer: str) -> None:
    """n = 2,048, hidden 16: the n x n x hidden tensor alone would be 268 MB, and backward keeps several."""
    code = MEASURE.format(normalizer=normalizer, n=2048)
    grown = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert grown < 200
