"""The rows see what they are there to see: each is shown something broken."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from regard import OutOfMemoryError, attention, masks, normalizers
from regard.backends import chunked
from regard.core import noise
from regard.tasks.task import Answer
from tests import test_properties
from tests.mechanisms import NORMALIZERS, SCORES
from torture import determinism, gradients, invariance, large, memory, numerics, properties

CPU = "cpu"


# numerics


def kept(dtype: str) -> dict[str, bool]:
    case = numerics.Case(SCORES[1], NORMALIZERS[0], dtype, 32, 80, 1)
    return {ratio.what: ratio.kept for ratio in numerics.ratios(case, ["chunked"], CPU)}


def test_sums_in_half_precision_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(kept("float32").values())
    monkeypatch.setattr(chunked, "blend", lambda weights, value: (weights.bfloat16() @ value.bfloat16()).float())
    assert not kept("float32")["output"]


def test_a_wrong_gradient_is_no_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = chunked._attend

    def attend(query: Tensor, key: Tensor, *rest: object) -> Tensor:
        return whole(query, key * 0.5 + key.detach() * 0.5, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(chunked, "_attend", attend)
    assert kept("float16") == {"output": True, "query": True, "key": False, "value": True}


@pytest.mark.parametrize(
    ("what", "dtype", "mean", "most", "share", "kept"),
    [
        ("output", "float16", 1.2, 2.0, 1e-3, True),
        ("output", "float16", 1.3, 2.0, 1e-3, False),
        ("output", "float16", 1.2, 2.1, 1e-3, False),
        ("output", "float16", 1.2, 2.1, 1e-6, False),
        ("output", "float32", 9.0, 9.0, 2e-6, True),
        ("query", "float16", 9.0, 3.0, 1e-3, True),
        ("query", "float16", 1.0, 3.1, 1e-3, False),
        ("query", "float16", math.nan, math.nan, math.nan, False),
    ],
)
def test_the_bar(what: str, dtype: str, mean: float, most: float, share: float, kept: bool) -> None:
    ratio = numerics.Ratio("a call", what, dtype, mean, most, share)
    assert ratio.kept == kept
    loud = numerics.Ratio("another", "output", "float16", 1.0, 1.0, 1.0)
    quiet = numerics.Ratio("another", "key", "float16", 1.0, 1.0, 1.0)
    assert numerics.figure_of([ratio, loud, quiet]).passed == kept


# gradients


def test_a_gradient_that_is_cut_off_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[str | None]:
        return [one.broken() for one in gradients.of_calls() if one.name.startswith("bilinear × sigmoid, chunked")]

    assert broken() == [None]
    weigh = normalizers.Sigmoid.weigh
    monkeypatch.setattr(normalizers.Sigmoid, "weigh", lambda self, s, a: weigh(self, s * 0.5 + s.detach() * 0.5, a))
    (line,) = broken()
    assert line is not None
    assert "bilinear × sigmoid, chunked: " in line


# determinism


def test_noise_that_is_no_function_of_the_seed_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    state = torch.Generator().manual_seed(0)

    def drawn(seed: Tensor, tile: object, stream: int) -> Tensor:
        return torch.rand(tile.i.shape[0], tile.j.shape[1], generator=state)  # type: ignore[attr-defined]

    calls = {name: call for name, call in determinism.calls(0, CPU) if "reference" in name}
    with_dropout, without = (
        calls["dot × softmax, reference, dropout=0.3"],
        calls["dot × softmax, reference, dropout=0.0"],
    )
    assert determinism.equal(with_dropout(), with_dropout())
    monkeypatch.setattr(noise, "uniform", drawn)
    assert determinism.equal(without(), without())
    assert not determinism.equal(with_dropout(), with_dropout())


# properties


def test_memory_that_nobody_wrote_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows without a key are left out, and would hold whatever was there before."""

    output = chunked._output
    monkeypatch.setattr(chunked, "_output", lambda *given: torch.empty_like(output(*given)))
    test = test_properties.test_bool_masks_and_biases_of_minus_infinity_or_the_least_number_agree
    with properties.poisoned():
        assert torch.empty(2).isnan().all()
        _, lines = properties.repeated("a property", test, 60, quick=True)
    assert lines[0].startswith("a property: AssertionError")
    assert not torch.are_deterministic_algorithms_enabled()


# invariance


def test_a_number_that_is_none_is_far_from_every_other() -> None:
    assert invariance.apart(torch.tensor([1.0, math.nan]), torch.tensor([1.0, 2.0])) == math.inf
    assert invariance.apart(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0])) == 0.5


def test_padding_that_is_attended_to_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "padding", lambda lengths, side: None)
    found = dict(invariance.of_calls(CPU, every=50))
    assert max(found.values()) > 0.1


def test_an_answer_that_depends_on_its_company_is_seen() -> None:
    def model(texts: str | list[str]) -> Answer | list[Answer]:
        if isinstance(texts, str):
            return Answer(texts, texts.upper(), 1.0)
        return [Answer(text, text.upper() if place else text, 1.0) for place, text in enumerate(texts)]

    (line,) = [line for line in invariance.changed("a model", model, ["a", "b", "c"]) if "together" in line]  # type: ignore[arg-type]
    assert line == "a model, together: 'a' becomes 'a', alone 'A'"


# memory


def test_the_peak_is_that_of_the_call() -> None:
    """Twice 64 MiB at once, of which one is given back."""

    def call() -> None:
        one = torch.ones(2**24)
        del one
        two, three = torch.ones(2**24), torch.ones(2**24)
        assert two[0] == three[0]

    assert 2**27 <= memory.peak_of_child(call) < 2**27 + 2**23


@pytest.mark.parametrize("backend", ["reference", "chunked", "cpu"])
def test_memory_that_runs_out_has_a_type(backend: str) -> None:
    """Asked for more than any machine has: keys that are one number, seen 2⁴⁵ times."""
    many = torch.zeros(1, 1, 1).expand(2**20, 2**25, 1)
    with pytest.raises(
        OutOfMemoryError, match=r"not enough memory for 1,048,576 x 33,554,432 queries and 3 keys.*; "
    ) as told:
        attention(many, torch.zeros(3, 1), torch.zeros(3, 1), backend=backend)
    assert isinstance(told.value, torch.OutOfMemoryError)
    assert isinstance(told.value, MemoryError)
    assert isinstance(told.value.__cause__, RuntimeError | MemoryError)


# large


@pytest.mark.parametrize("case", [large.keys, large.queries], ids=["keys", "queries"])
@pytest.mark.parametrize("backend", ["sdpa", "chunked", "cpu"])
def test_marks_are_found_where_they_are(case: Callable, backend: str) -> None:
    assert case(64 * 300, 64, backend, CPU, torch.float32) is None


def test_an_end_that_is_not_reached_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = chunked._attend

    def attend(query: Tensor, key: Tensor, *rest: object) -> Tensor:
        return whole(query, torch.cat([key[:-1], key[:1]]), *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(chunked, "_attend", attend)
    assert "the output is off by" in str(large.keys(64 * 300, 64, "chunked", CPU, torch.float32))
