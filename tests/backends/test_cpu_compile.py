"""The CPU kernels as operators: compiled code with changing lengths, exported programs, torch's own checks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch._functorch.config as functorch
from torch import Tensor, nn
from torch._dynamo.utils import counters

from regard import attention, masks, normalizers, scores
from regard.backends import cpu
from regard.resolve import resolve

pytest.importorskip("numba")


@pytest.fixture(autouse=True)
def _compile_anew() -> Iterator[None]:
    torch._dynamo.reset()
    # The cache on disk does not notice when the Python code of a custom operator changes.
    with functorch.patch(enable_autograd_cache=False):
        yield
    torch._dynamo.reset()


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.score, self.normalizer = scores.Additive(6, 6, 8) + scores.Alibi(2), normalizers.Softmax(sink=True)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, lengths: Tensor) -> Tensor:
        mask = masks.padding(lengths)
        return attention(
            query,
            key,
            value,
            score=self.score,
            normalizer=self.normalizer,
            mask=mask,
            dropout=0.2,
            seed=3,
            backend="cpu",
        )


def inputs(n: int) -> tuple[Tensor, ...]:
    torch.manual_seed(n)
    return *(torch.randn(2, 2, n, 6, requires_grad=True) for _ in "qkv"), torch.tensor([n, n // 2])


def test_compiled_code_serves_every_length() -> None:
    model = Model()
    counters.clear()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for n in (20, 33, 47, 65, 300):
        given, found = inputs(n), []
        for run in (model, compiled):
            out = run(*given)
            found.append([out, *torch.autograd.grad(out.square().sum(), [*given[:3], *model.parameters()])])
        torch.testing.assert_close(found[1], found[0], rtol=1e-5, atol=1e-5)
    assert counters["stats"]["unique_graphs"] <= 2  # one for the first length, one for all others


def test_an_exported_program_serves_every_length() -> None:
    model, n = Model().eval(), torch.export.Dim("n", min=4, max=4096)
    shapes = (*({2: n} for _ in "qkv"), None)
    program = torch.export.export(model, inputs(20), dynamic_shapes=shapes).module()
    for n in (20, 31, 300):
        torch.testing.assert_close(program(*inputs(n)), model(*inputs(n)))


@pytest.mark.parametrize("mask", [None, masks.window(2, 2), masks.dilated(3, 3, 2)], ids=["none", "window", "dilated"])
def test_torch_finds_nothing_wrong_with_the_operators(mask: masks.Mask | None) -> None:
    query, key, value = (torch.randn(2, 2, 9, 4, dtype=torch.float64, requires_grad=True) for _ in "qkv")
    call, *tensors = resolve(query, key, value, scores.TanhSum(4).double(), normalizers.Entmax(1.5), mask)
    arguments = cpu._arguments(*tensors, call)
    torch.library.opcheck(torch.ops.regard.cpu.default, arguments)
    out, stat = torch.ops.regard.cpu(*arguments)
    wanted = [True] * 4 + [False] * 3
    detached = [x.detach() if isinstance(x, Tensor) else x for x in arguments]
    torch.library.opcheck(
        torch.ops.regard.cpu_backward.default,
        (torch.ones_like(out), stat.detach(), *detached, wanted),
        test_utils=("test_schema", "test_faketensor"),
    )


def test_gradients_by_finite_differences() -> None:
    part = scores.TanhSum(3).double()
    query, key, value = (torch.randn(1, n, 3, dtype=torch.float64, requires_grad=True) for n in (4, 6, 6))
    run = lambda *x: attention(*x, score=part, normalizer=normalizers.Sigmoid(), backend="cpu")  # noqa: E731
    assert torch.autograd.gradcheck(run, (query, key, value))
