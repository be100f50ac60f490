"""F6: sinusoidal, learned and rotary positions, and what attention is without any."""

import math

import pytest
import torch

import regard
from regard.nn.positions import Learned, Rotary, Sinusoidal

LAYOUTS = ["interleaved", "split"]


def ramp(n: int, d: int) -> torch.Tensor:
    """Any numbers, all different."""
    return torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(n))


# Sinusoidal


@pytest.mark.parametrize("d", [1, 2, 5, 8])
def test_sinusoidal_is_its_formula(d):
    encoding = Sinusoidal(d, base=100.0)(torch.zeros(7, d, dtype=torch.float64))
    for i in range(7):
        for c in range(d):
            angle = i / 100.0 ** ((c - c % 2) / d)
            assert encoding[i, c].item() == pytest.approx(math.cos(angle) if c % 2 else math.sin(angle), abs=1e-12)


def test_sinusoidal_is_added():
    x = ramp(5, 4)
    torch.testing.assert_close(Sinusoidal(4)(x) - x, Sinusoidal(4)(torch.zeros_like(x)))


def test_sinusoidal_holds_nothing_and_knows_any_length():
    module = Sinusoidal(2)
    assert not module.state_dict()
    far = module(torch.zeros(1, 2, dtype=torch.float64), offset=1_000_000)
    assert far[0].tolist() == pytest.approx([math.sin(1e6), math.cos(1e6)], abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_far_positions_are_right_in_small_types(dtype):
    far = Sinusoidal(2, base=7.0)(torch.zeros(1, 2, dtype=dtype), offset=100_001)
    assert far.dtype == dtype
    expected = torch.tensor([[math.sin(100_001), math.cos(100_001)]], dtype=torch.float64)
    assert torch.equal(far, expected.to(torch.float32).to(dtype))


# Learned


def test_learned_adds_its_rows():
    module = Learned(n_max=4, d=2)
    module.weight.data = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])
    assert module(torch.zeros(2, 2)).tolist() == [[1, 10], [2, 20]]
    assert module(torch.ones(2, 2), offset=2).tolist() == [[4, 31], [5, 41]]
    module(torch.zeros(3, 2, 2)).sum().backward()
    assert module.weight.grad.tolist() == [[3, 3], [3, 3], [0, 0], [0, 0]]


def test_learned_refuses_what_is_longer():
    module = Learned(n_max=4, d=2)
    message = r"reaches position 4, the last of n_max=4 is 3; cut the input, make Learned\(n_max=5, d=2\)"
    for offset, n in ((0, 5), (3, 2), (torch.tensor([0, 3]), 2)):
        with pytest.raises(regard.ShapeError, match=message):
            module(torch.zeros(2, n, 2), offset=offset)
    with pytest.raises(regard.InputError, match="offset=-1; expected 0 or more"):
        module(torch.zeros(1, 2), offset=-1)


def test_learned_keeps_half_precision():
    assert Learned(4, 2)(torch.zeros(3, 2, dtype=torch.bfloat16)).dtype == torch.bfloat16


# Rotary


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotary_is_a_rotation_of_complex_numbers(layout):
    """Each pair (a, b) is a + bi, multiplied by e^(i·angle)."""
    d, base = 6, 50.0
    x = ramp(4, d)
    turned = Rotary(d, base, layout).rotate(x, offset=3)
    for row in range(4):
        for m in range(d // 2):
            a, b = (2 * m, 2 * m + 1) if layout == "interleaved" else (m, m + d // 2)
            angle = (row + 3) / base ** (2 * m / d)
            z = complex(x[row, a].item(), x[row, b].item()) * complex(math.cos(angle), math.sin(angle))
            assert turned[row, [a, b]].tolist() == pytest.approx([z.real, z.imag], abs=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rotated", [None, 4])
def test_scores_depend_on_the_distance_only(layout, rotated):
    rotary, q, k = Rotary(8, layout=layout, rotated=rotated), ramp(5, 8), ramp(6, 8)[:5]
    near, far = rotary(q, k), rotary(q, k, offset=1000)
    torch.testing.assert_close(near[0] @ near[1].mT, far[0] @ far[1].mT)
    same_query = rotary.rotate(q[:1].expand(5, 8)) @ rotary.rotate(k[:1].expand(5, 8)).mT  # 5 x 5, by i - j
    for i in range(4):
        torch.testing.assert_close(same_query[i, :4], same_query[i + 1, 1:])
    assert not torch.allclose(same_query[0, 0], same_query[0, 1])


def test_the_distance_counts_far_away_in_float32_too():
    """Angles in float32 would be off by 0.008 there."""
    rotary = Rotary(4, base=10.0)
    q, k = ramp(2, 4).float(), ramp(3, 4)[:2].float()
    near, far = rotary(q, k), rotary(q, k, offset=200_000)
    torch.testing.assert_close(near[0] @ near[1].mT, far[0] @ far[1].mT, atol=1e-5, rtol=0)


def test_position_0_turns_nothing_and_half_a_turn_flips():
    q = torch.tensor([[3.0, 4.0]])
    rotary = Rotary(2)
    assert rotary(q, q)[0].tolist() == [[3, 4]]
    quarter = Rotary(4, base=(2 / math.pi) ** 2).rotate(torch.tensor([[0.0, 0.0, 3.0, 4.0]]), offset=1)
    torch.testing.assert_close(quarter, torch.tensor([[0.0, 0.0, -4.0, 3.0]]))  # the second pair turns by 1/√base = π/2


@pytest.mark.parametrize("layout", LAYOUTS)
def test_partial_rotation_leaves_the_rest(layout):
    x = ramp(5, 6)
    turned = Rotary(6, layout=layout, rotated=4).rotate(x)
    assert torch.equal(turned[:, 4:], x[:, 4:])
    torch.testing.assert_close(turned[:, :4], Rotary(4, layout=layout).rotate(x[:, :4]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_turned_in_float32(dtype):
    x, rotary = ramp(9, 8).to(dtype), Rotary(8)
    q, k = rotary(x, x)
    assert q.dtype == k.dtype == dtype
    assert torch.equal(q, rotary.rotate(x.float()).to(dtype))


def test_query_and_key_may_have_different_heads():
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 1, 5, 8)
    turned_q, turned_k = Rotary(8)(q, k, offset=torch.tensor([0, 7]))
    torch.testing.assert_close(turned_q[1], Rotary(8).rotate(q[1], offset=7))
    torch.testing.assert_close(turned_k[1], Rotary(8).rotate(k[1], offset=7))


def test_rotary_says_what_is_wrong():
    with pytest.raises(regard.InputError, match=r"3 of d=3 numbers cannot be turned in pairs.*rotated=2"):
        Rotary(3)
    with pytest.raises(regard.InputError, match=r"6 of d=4 .*rotated=4"):
        Rotary(4, rotated=6)
    with pytest.raises(regard.InputError, match="layout='half'; expected 'interleaved' or 'split'"):
        Rotary(4, layout="half")
    with pytest.raises(regard.ShapeError, match=r"n_q=1, n_k=3: .* rotary.rotate\(query, offset\)"):
        Rotary(4)(torch.zeros(1, 4), torch.zeros(3, 4))
    with pytest.raises(regard.ShapeError, match=r"key has shape \(3, 6\), Rotary .* d=4"):
        Rotary(4)(torch.zeros(3, 4), torch.zeros(3, 6))


# What all have in common

MODULES = [Sinusoidal(4), Learned(20, 4), Rotary(4), Rotary(4, layout="split", rotated=2)]


def encode(module, x, *args, **kwargs):
    return module.rotate(x, *args, **kwargs) if isinstance(module, Rotary) else module(x, *args, **kwargs)


@pytest.mark.parametrize("module", MODULES, ids=repr)
def test_a_step_at_a_time_is_all_at_once(module):
    x = torch.randn(2, 3, 6, 4)
    steps = [encode(module, x[:, :, i : i + 1], offset=i) for i in range(6)]
    assert torch.equal(torch.cat(steps, dim=-2), encode(module, x))


@pytest.mark.parametrize("module", MODULES, ids=repr)
def test_an_offset_for_each_sequence(module):
    x = torch.randn(2, 3, 5, 4)  # batch heads n d
    together = encode(module, x, offset=torch.tensor([4, 0]))
    assert torch.equal(together, torch.stack([encode(module, x[0], offset=4), encode(module, x[1])]))
    assert torch.equal(encode(module, x, offset=torch.tensor(4)), encode(module, x, offset=4))


@pytest.mark.parametrize("module", MODULES, ids=repr)
def test_left_padding(module):
    """Two words of padding before four, and none before six: the words are encoded as without it."""
    x = torch.randn(2, 3, 6, 4)  # batch heads n d
    padded, whole = encode(module, x[0, :, 2:]), encode(module, x[1])
    by_positions = encode(module, x, positions=torch.tensor([[0, 0, 0, 1, 2, 3], [0, 1, 2, 3, 4, 5]]))
    by_offset = encode(module, x, offset=torch.tensor([-2, 0]))
    for together in (by_positions, by_offset):
        assert torch.equal(together[0, :, 2:], padded)
        assert torch.equal(together[1], whole)


@pytest.mark.parametrize("module", MODULES, ids=repr)
def test_no_rows(module):
    assert encode(module, torch.zeros(2, 0, 4)).shape == (2, 0, 4)
    assert encode(module, torch.zeros(0, 3, 4), offset=torch.zeros(0, dtype=torch.long)).shape == (0, 3, 4)


@pytest.mark.parametrize("module", MODULES, ids=repr)
def test_gradients(module):
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: encode(module, x, offset=2), x)


@pytest.mark.parametrize("module", MODULES, ids=repr)
def test_what_cannot_be_is_said(module):
    x = torch.zeros(2, 3, 4)
    name = type(module).__name__
    with pytest.raises(regard.ShapeError, match=rf"x has shape \(2, 3, 5\), {name} .* d=4"):
        encode(module, torch.zeros(2, 3, 5))
    with pytest.raises(regard.DTypeError, match=rf"x is torch.int64; {name} expects a floating type"):
        encode(module, x.long())
    with pytest.raises(regard.InputError, match="both offset and positions"):
        encode(module, x, offset=1, positions=torch.arange(3))
    with pytest.raises(regard.ShapeError, match=r"positions has shape \(4,\), the input has n=3"):
        encode(module, x, positions=torch.arange(4))
    with pytest.raises(regard.ShapeError, match=r"axis 0 of offset has size 3, the attention has 2"):
        encode(module, x, offset=torch.tensor([0, 1, 2]))
    with pytest.raises(regard.DTypeError, match=r"offset is torch.float32; expected whole numbers"):
        encode(module, x, offset=torch.tensor([0.0, 1.0]))


def test_sizes_that_cannot_be():
    with pytest.raises(regard.InputError, match="Sinusoidal: d=0; expected 1 or more"):
        Sinusoidal(0)
    with pytest.raises(regard.InputError, match=r"Sinusoidal: base=-1.0; expected more than 0"):
        Sinusoidal(2, base=-1.0)
    with pytest.raises(regard.InputError, match="Learned: n_max=0"):
        Learned(0, 2)


def self_attention(x, module):
    if isinstance(module, Rotary):
        return regard.attention(*module(x, x), x)
    x = x if module is None else module(x)
    return regard.attention(x, x, x)


def test_without_positions_a_permutation_only_permutes():
    x, order = ramp(6, 4), torch.tensor([3, 0, 5, 1, 4, 2])
    torch.testing.assert_close(self_attention(x[order], None), self_attention(x, None)[order])


@pytest.mark.parametrize("module", MODULES, ids=repr)
def test_with_positions_it_does_more(module):
    x, order = ramp(6, 4), torch.tensor([3, 0, 5, 1, 4, 2])
    assert not torch.allclose(self_attention(x[order], module), self_attention(x, module)[order], atol=1e-3)
