"""Which backend a GPU would be given, on tensors that only say where they are."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from regard import masks as M
from regard.dispatch import choose
from regard.resolve import resolve

pytest.importorskip("triton")


@pytest.mark.parametrize(
    ("mask", "chosen"),
    [
        (None, "sdpa"),
        (M.causal(), "sdpa"),
        (M.window(64, 64), "triton"),  # torch would need it written out
        (M.causal() & M.documents(torch.zeros(1024, dtype=torch.long)), "triton"),
    ],
)
def test_a_mask_that_torch_would_have_written_out_goes_to_our_kernels_on_a_gpu(
    mask: M.Mask | None, chosen: str
) -> None:
    with FakeTensorMode(allow_non_fake_inputs=True):
        x = torch.empty(2, 8, 1024, 64, device="cuda", dtype=torch.bfloat16)
        call, *tensors = resolve(x, x, x, None, None, None)
        call = call.__class__(call.score, call.normalizer, mask)
        assert choose("auto", *tensors, call)[0] == chosen
