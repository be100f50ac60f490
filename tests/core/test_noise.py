"""Noise: uniform, independent, and the same for the same (seed, element, query, key) wherever it is computed."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from regard import Extent
from regard.core.noise import DROPOUT, GUMBEL, new_seed, uniform

N = 400  # N² draws: the standard error of a mean is 1/N times one draw's


def draw(seed: int = 1, stream: int = DROPOUT, batch: tuple[int, ...] = (), n_q: int = N, n_k: int = N) -> Tensor:
    return uniform(torch.tensor(seed), Extent(batch, n_q, n_k, torch.device("cpu")).tile(), stream)


SEEDS = [0, 1, 2**31, 2**32, 2**62 - 1]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("stream", [DROPOUT, GUMBEL])
def test_draws_are_uniform_strictly_between_0_and_1(seed: int, stream: int) -> None:
    x = draw(seed, stream)
    assert x.dtype == torch.float32
    assert x.min() > 0
    assert x.max() < 1
    x = x.double()
    assert abs(x.mean() - 1 / 2) < 4 * (1 / 12) ** 0.5 / N
    assert abs(x.var() - 1 / 12) < 4 * (1 / 180) ** 0.5 / N
    counts = (x * 100).long().flatten().bincount(minlength=100)
    chi2 = ((counts - N * N / 100) ** 2 / (N * N / 100)).sum()
    assert 45 < chi2 < 180  # 99 degrees of freedom: p = 1e-6 on either side


def test_the_least_and_the_largest_draw_are_inside_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for bits in (0, 2**32 - 1):
        monkeypatch.setattr("regard.core.noise.mix", lambda x, bits=bits: torch.full_like(x, bits))
        assert 0 < draw(n_q=1, n_k=1).item() < 1


def correlation(x: Tensor, y: Tensor) -> float:
    return torch.corrcoef(torch.stack([x.flatten(), y.flatten()]).double())[0, 1].abs().item()


ABOVE = torch.triu_indices(N, N, 1)  # the pairs i < j
NEIGHBOURS = {
    "seeds": lambda: (draw(1), draw(2)),
    "seeds far apart": lambda: (draw(1), draw(1 + 2**32)),
    "streams": lambda: (draw(stream=DROPOUT), draw(stream=GUMBEL)),
    "rows": lambda: (draw()[1:], draw()[:-1]),
    "columns": lambda: (draw()[:, 1:], draw()[:, :-1]),
    "(i, j) and (j, i)": lambda: tuple(draw()[ij[0], ij[1]] for ij in (ABOVE, ABOVE.flip(0))),
    "batch elements": lambda: tuple(draw(batch=(2,))),
    "heads": lambda: tuple(draw(batch=(1, 2))[0]),
}


@pytest.mark.parametrize("pair", NEIGHBOURS)
def test_neighbours_are_independent(pair: str) -> None:
    x, y = NEIGHBOURS[pair]()
    limit = 4.5 / x.numel() ** 0.5
    assert correlation(x, y) < limit
    assert correlation((x - 0.5).square(), (y - 0.5).square()) < limit
    assert (x == y).float().mean() < 1e-4


def test_each_row_and_each_column_is_uniform() -> None:
    x = draw()
    for axis in (0, 1):
        assert (x.mean(axis) - 1 / 2).abs().max() < 5 * (1 / 12 / N) ** 0.5


def test_the_same_seed_gives_the_same_bits() -> None:
    assert torch.equal(draw(7, batch=(2, 3), n_q=5, n_k=6), draw(7, batch=(2, 3), n_q=5, n_k=6))
    assert not torch.equal(draw(7, n_q=5, n_k=6), draw(8, n_q=5, n_k=6))


def test_a_tile_is_a_cut_of_the_whole() -> None:
    extent = Extent((2, 3), 50, 60, torch.device("cpu"))
    rows, cols = torch.tensor([0, 49, 7, 7]), torch.tensor([59, 3])
    tile = uniform(torch.tensor(5), extent.tile(rows, cols), DROPOUT)
    assert torch.equal(tile, uniform(torch.tensor(5), extent.tile(), DROPOUT)[..., rows[:, None], cols])


def test_more_keys_leave_the_noise_of_the_first_as_it_was() -> None:
    assert torch.equal(draw(batch=(2,), n_q=9, n_k=9)[:, :4, :5], draw(batch=(2,), n_q=4, n_k=5))


def lowbias32(x: int) -> int:
    """C. Wellons' hash in exact integers, each step cut to 32 bits as uint32 does."""
    x = (x ^ x >> 16) * 0x7FEB352D % 2**32
    x = (x ^ x >> 15) * 0x846CA68B % 2**32
    return x ^ x >> 16


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("stream", [DROPOUT, GUMBEL])
def test_a_kernel_with_32_bit_integers_draws_the_same_bits(seed: int, stream: int) -> None:
    x = draw(seed, stream, batch=(2, 2), n_q=70, n_k=90)
    for b, h, i, j in [(0, 0, 0, 0), (1, 0, 69, 89), (1, 1, 3, 64), (0, 1, 69, 0)]:
        key = lowbias32(lowbias32((seed + stream * 0x9E3779B9) % 2**32) ^ seed >> 32)
        row = lowbias32(lowbias32(key ^ lowbias32(2 * b + h)) ^ lowbias32(i))
        bits = lowbias32(row ^ lowbias32((j + 0x85EBCA6B) % 2**32))
        assert x[b, h, i, j].item() == (2 * (bits >> 9) + 1) / 2**24  # the middle of one of 2^23 cells


def test_the_hash_moves_every_bit() -> None:
    """lowbias32 is a permutation of 32 bits; one flipped bit of the input flips about half of the output."""
    inputs = range(1000)
    assert len({lowbias32(x) for x in inputs}) == 1000
    flipped = [bin(lowbias32(x) ^ lowbias32(x ^ 1 << bit)).count("1") for x in inputs for bit in range(32)]
    assert 15.5 < sum(flipped) / len(flipped) < 16.5


def test_torchs_own_seed_makes_fresh_seeds_repeatable() -> None:
    cpu = torch.device("cpu")
    torch.manual_seed(3)
    first, second = new_seed(cpu), new_seed(cpu)
    assert first != second
    torch.manual_seed(3)
    assert new_seed(cpu) == first
