"""torch.compile and torch.export: one graph, the eager result, no recompilation per length."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch
import torch._functorch.config as functorch
import torch._inductor.config as inductor
from torch import Tensor, nn
from torch._dynamo.utils import counters

from regard import attention, masks, normalizers, scores
from tests.mechanisms import HEADS, NORMALIZERS, SCORES, D, Row, normalizer, score

LENGTHS = [5, 17, 33, 64, 100]
BACKENDS = ["reference", "chunked", "auto"]


@pytest.fixture(autouse=True)
def _compile_anew() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    # The caches on disk do not notice when the Python code of a custom operator changes.
    with functorch.patch(enable_autograd_cache=False), inductor.patch(force_disable_caches=True):
        yield
    torch._dynamo.reset()


def problem(n: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n)
    shapes = (2, HEADS, n, D), (2, HEADS, n, D), (2, HEADS, n, 3)
    return tuple(torch.randn(shape, dtype=dtype, generator=generator).requires_grad_() for shape in shapes)


def value_and_gradients(function: Callable, inputs: tuple[Tensor, ...], parts: tuple, *rest: Tensor) -> list[Tensor]:
    parameters = [p for part in parts if isinstance(part, nn.Module) for p in part.parameters()]
    out = function(*inputs, *rest)
    leaves = [*inputs, *parameters]
    return [out, *torch.autograd.grad(out.sin().sum(), leaves, allow_unused=True, materialize_grads=True)]


def compiles(function: Callable, parts: tuple = (), rest: Callable = lambda n: (), backend: str = "aot_eager") -> None:
    """`function(query, key, value, *rest(n))` gives the eager result at every length, from at most two
    graphs: one for the first length, and one for all others."""
    compiled = torch.compile(function, fullgraph=True, backend=backend)
    for n in LENGTHS:
        eager = value_and_gradients(function, problem(n), parts, *rest(n))
        torch.testing.assert_close(
            value_and_gradients(compiled, problem(n), parts, *rest(n)), eager, rtol=1e-9, atol=1e-9
        )
    assert counters["stats"]["unique_graphs"] <= 2


def lengths(n: int) -> tuple[Tensor]:
    return (torch.tensor([n, n // 2]),)


def ids_of_documents(n: int) -> tuple[Tensor]:
    return (torch.stack([torch.arange(n) // 4, torch.arange(n) // 7]),)


def table(n: int) -> tuple[Tensor]:
    return (torch.arange(n * n).reshape(n, n) % 3 == 0,)


def bias(n: int) -> tuple[Tensor]:
    return (torch.arange(n * n).reshape(n, n).double().sin(),)


# Dynamo (torch 2.13) cannot trace `~` on any object but a tensor, so this one is made before.
NEITHER = ~(masks.window(1, 1) | masks.positions([0]))

# A mask of given tensors, and the tensors at each length.
MASKS = {
    "causal": (masks.causal, None),
    "window": (lambda: masks.window(2, 1), None),
    "dilated": (lambda: masks.dilated(1, 1, 2), None),
    "strided": (lambda: masks.strided(2), None),
    "padding": (masks.padding, lengths),
    "padding, left": (lambda x: masks.padding(x, side="left"), lengths),
    "padding of queries too": (lambda x: masks.padding(x, x), lengths),
    "documents": (masks.documents, ids_of_documents),
    "blocks": (lambda: masks.blocks(3), None),
    "global tokens": (lambda: masks.global_tokens([0]) | masks.window(0, 1), None),
    "random blocks": (lambda: masks.random_blocks(2, 1), None),
    "positions": (lambda: masks.positions([1, 3]), None),
    "dense": (masks.dense, table),
    "bool tensor": (lambda x: x, table),
    "float tensor": (lambda x: x, bias),
    "per head": (lambda x: masks.per_head([masks.causal(), masks.padding(x)]), lengths),
    "causal and padding": (lambda x: masks.causal() & masks.padding(x), lengths),
    "neither window nor first key": (lambda: NEITHER, None),
}


DOTS = [row for row in SCORES if row.name.split(",")[0] in ("dot", "scaled dot", "bilinear", "alibi", "relative bias")]


def side_by_side(backend: str, *tables: list) -> list:
    """Each row of each table at least once, met by some row of every other."""
    longest = max(map(len, tables))
    triples = [[table[n % len(table)] for table in tables] for n in range(longest)]
    return [pytest.param(backend, *triple, id="-".join(map(str, [backend, *triple]))) for triple in triples]


@pytest.mark.parametrize(
    ("backend", "of_score", "of_normalizer", "of_mask"),
    side_by_side("reference", SCORES, NORMALIZERS, list(MASKS))
    + side_by_side("chunked", [row for row in SCORES if row.name != "own function"], NORMALIZERS, list(MASKS))
    + side_by_side("sdpa", DOTS, NORMALIZERS[:1], list(MASKS))
    + side_by_side("auto", [SCORES[5], SCORES[-1], DOTS[0]], NORMALIZERS[:1], ["causal", "padding", "dense"]),
)
def test_every_part_compiles(backend: str, of_score: Row, of_normalizer: Row, of_mask: str) -> None:
    s, n = score(of_score), normalizer(of_normalizer)
    make, tensors = MASKS[of_mask]

    def function(query: Tensor, key: Tensor, value: Tensor, *of_mask: Tensor) -> Tensor:
        mask = make(*of_mask)
        return attention(query, key, value, score=s, normalizer=n, mask=mask, backend=backend, seed=3)

    # AOTAutograd has something to add where there are operators of our own with a backward: `chunked`.
    compiles(function, (s, n), tensors or (lambda n: ()), "aot_eager" if backend in ("chunked", "auto") else "eager")


def test_a_score_class_of_ones_own_compiles_through_reference() -> None:
    class Scaled(scores.Score):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.tensor(0.7, dtype=torch.float64))

        def pair(self, query: Tensor, key: Tensor) -> Tensor:
            return self.w * query @ key.mT

    s = Scaled()
    compiles(partial(attention, score=s), (s,))
    with pytest.raises(Exception, match="a score, normalizer or mask of your own compiles through backend='reference'"):
        torch.compile(partial(attention, score=s, backend="chunked"), fullgraph=True, backend="eager")(*problem(5))


@pytest.mark.parametrize("backend", BACKENDS[:2])
@pytest.mark.parametrize("kind", ["int", "tensor"])
def test_dropout_compiles_to_the_same_noise(backend: str, kind: str) -> None:
    def function(query: Tensor, key: Tensor, value: Tensor, seed: Tensor | int) -> Tensor:
        return attention(query, key, value, dropout=0.3, seed=seed, backend=backend)

    compiles(function, rest=lambda n: (7 if kind == "int" else torch.tensor(7),))


@pytest.mark.parametrize("backend", BACKENDS[:2])
def test_a_new_seed_does_not_compile_anew(backend: str) -> None:
    compiled = torch.compile(partial(attention, dropout=0.3, backend=backend), fullgraph=True, backend="aot_eager")
    inputs = problem(9)
    drawn = [compiled(*inputs, seed=torch.tensor(seed)) for seed in (1, 2, 2)]
    assert not torch.equal(drawn[0], drawn[1])
    assert torch.equal(drawn[1], drawn[2])
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize("backend", BACKENDS[:2])
def test_dropout_without_a_seed_draws_anew_in_each_call(backend: str) -> None:
    compiled = torch.compile(partial(attention, dropout=0.5, backend=backend), fullgraph=True, backend="aot_eager")
    inputs = problem(9)
    assert not torch.equal(compiled(*inputs), compiled(*inputs))


class Attention(nn.Module):
    """What a model would export: parameters, lengths that are an input, one length that is free."""

    def __init__(self, s: scores.Score, n: normalizers.Normalizer, backend: str) -> None:
        super().__init__()
        self.score, self.normalizer, self.backend = s, n, backend

    def forward(self, query: Tensor, key: Tensor, value: Tensor, lengths: Tensor) -> Tensor:
        mask = masks.causal() & masks.padding(lengths)
        return attention(
            query, key, value, score=self.score, normalizer=self.normalizer, mask=mask, backend=self.backend
        )


@pytest.mark.parametrize("strict", [False, True], ids=["non-strict", "strict"])
@pytest.mark.parametrize(
    ("backend", "of_score", "of_normalizer"),
    [
        ("reference", scores.Gaussian, normalizers.Sparsemax),
        ("chunked", scores.Gaussian, normalizers.Sparsemax),
        ("chunked", lambda: scores.Additive(D, D, 5, heads=HEADS), normalizers.Softmax),
        ("sdpa", scores.ScaledDot, normalizers.Softmax),
        ("auto", scores.Gaussian, normalizers.Entmax),
    ],
)
def test_exports_with_a_free_length(backend: str, of_score: Callable, of_normalizer: Callable, strict: bool) -> None:
    module = Attention(of_score(), of_normalizer(), backend).double()
    free = torch.export.Dim("n", min=2, max=2048)  # for sdpa, below its limit for a written-out mask
    exported = torch.export.export(
        module,
        (*problem(12), *lengths(12)),
        dynamic_shapes=({2: free}, {2: free}, {2: free}, None),
        strict=strict,
    ).module()
    for n in (12, 31, 100):
        given = (*problem(n), *lengths(n))
        torch.testing.assert_close(exported(*given), module(*given), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_inductor(backend: str) -> None:
    s = scores.Additive(D, D, 5).double()
    compiles(partial(attention, score=s, mask=masks.causal(), backend=backend), (s,), backend="inductor")
