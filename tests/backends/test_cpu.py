"""The compiled kernels give what `reference` gives: values and gradients, for every part they know."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from regard import attention
from tests.mechanisms import MASKS, NORMALIZERS, SCORES, Row, mask, normalizer, problem, score

pytest.importorskip("numba")
SEED = 11
KNOWN = [row for row in SCORES if row.name != "own function"]


def value_and_gradients(backend: str, inputs: tuple[Tensor, ...], **call: object) -> list[Tensor]:
    parts = [call.get("score"), call.get("normalizer")]
    leaves = [*inputs, *(p for part in parts if isinstance(part, nn.Module) for p in part.parameters())]
    bias = call.get("mask")
    if isinstance(bias, Tensor) and bias.requires_grad:
        leaves.append(bias)
    out = attention(*inputs, backend=backend, **call)
    grad = torch.randn(out.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).to(out.dtype)
    return [out, *torch.autograd.grad(out, leaves, grad, allow_unused=True, materialize_grads=True)]


def agree(inputs: tuple[Tensor, ...], **call: object) -> None:
    ours, reference = (value_and_gradients(b, inputs, **call) for b in ("cpu", "reference"))
    torch.testing.assert_close(ours, reference, rtol=1e-9, atol=1e-9)


# Every (score, mask), and so every (score, normalizer) and (normalizer, mask).
TRIPLES = [
    pytest.param(s, NORMALIZERS[(i + j) % len(NORMALIZERS)], m, id=f"{s}-{NORMALIZERS[(i + j) % len(NORMALIZERS)]}-{m}")
    for i, s in enumerate(KNOWN)
    for j, m in enumerate(MASKS)
]


@pytest.mark.parametrize(("of_score", "of_normalizer", "of_mask"), TRIPLES)
def test_every_part_agrees(of_score: Row, of_normalizer: Row, of_mask: Row) -> None:
    agree(problem(), score=score(of_score), normalizer=normalizer(of_normalizer), mask=mask(of_mask), seed=SEED)
