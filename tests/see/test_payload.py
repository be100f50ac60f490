"""What is packed for the page is the picture: exact where it is small, within a hundredth of the row where it is not."""

import base64
import json
import zlib

import numpy as np
import pytest
import torch

from regard.see import Picture
from regard.see import payload as module
from regard.see.payload import pack
from regard.see.statistics import entropy


def floats(text: str) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(base64.b64decode(text), "<f4").copy())


def unpacked(packed: dict) -> torch.Tensor:
    """What view.js does, in numpy."""
    data = base64.b64decode(packed["data"])
    if packed.get("deflated"):
        data = zlib.decompress(data)
    kind = {"f32": "<f4", "u8": np.uint8, "i8": np.int8}[packed["kind"]]
    whole = torch.from_numpy(np.frombuffer(data, kind).astype(np.float32)).reshape(packed["shape"])
    return whole * floats(packed["scale"])[:, None] if "scale" in packed else whole


def of(weights: torch.Tensor, **described) -> Picture:
    n, m = weights.shape[-2:]
    return Picture(weights, [f"q{i}" for i in range(n)], [f"k{j}" for j in range(m)], **described)


def test_a_small_picture_is_exact():
    picture = of(torch.randn(3, 20, 30))
    packed = json.loads(json.dumps(pack(picture), allow_nan=False))  # as it reaches the page
    for i in range(3):
        assert packed["maps"][i]["kind"] == "f32"
        assert torch.equal(unpacked(packed["maps"][i]), picture.weights[i])


@pytest.mark.parametrize("n", [200, 600])
@pytest.mark.parametrize(
    "make", [lambda x: (5 * x).softmax(-1), lambda x: x, lambda x: 1e-30 * x, lambda x: x.relu() ** 8]
)
def test_a_large_one_is_within_a_hundredth_of_the_largest_weight_of_its_row(n, make):
    weights = make(torch.randn(n, n))
    weights[3] = 0
    packed = pack(of(weights))["maps"][0]
    assert packed["kind"] == ("i8" if (weights < 0).any() else "u8")
    off = (unpacked(packed) - weights).abs()
    assert bool((off <= 0.01 * weights.abs().amax(-1, keepdim=True)).all())
    assert unpacked(packed)[3].count_nonzero() == 0


def test_bytes_take_less_room():
    weights = (3 * torch.randn(12, 512, 512)).softmax(-1)
    assert len(json.dumps(pack(of(weights)))) < 0.25 * 4 * weights.numel()


def test_small_maps_for_the_overview_keep_every_peak():
    weights = torch.zeros(2, 300, 300)
    weights[0, 123, 45], weights[1, 299, 0] = 1.0, -2.0
    maps = pack(of(weights))["maps"]
    assert unpacked(maps[0]["thumb"]).max() == 1.0
    assert unpacked(maps[1]["thumb"]).min() == -2.0
    assert "thumb" not in pack(of(torch.eye(300)))["maps"][0]  # there is no overview of one map


def test_numbers_about_the_maps():
    weights = torch.randn(2, 5, 5).softmax(-1)
    removed = torch.rand(2, 5)
    packed = pack(of(weights, removed=removed, special={"q1", "k0"}, maps=["a", "b"]))
    torch.testing.assert_close(floats(packed["maps"][1]["entropy"]), entropy(weights[1]))
    torch.testing.assert_close(floats(packed["maps"][1]["removed"]), removed[1])
    patterns = packed["maps"][0]["patterns"]
    assert patterns["diagonal"] == pytest.approx(weights[0].diagonal().mean().item(), abs=1e-6)
    assert patterns["previous"] == pytest.approx(weights[0].diagonal(-1).mean().item(), abs=1e-6)
    assert patterns["first"] == pytest.approx(weights[0, :, 0].mean().item(), abs=1e-6)
    assert patterns["entropy"] == pytest.approx(entropy(weights[0]).mean().item(), abs=1e-6)
    assert packed["special_rows"] == [False, True, False, False, False]
    assert packed["special_columns"] == [True, False, False, False, False]


def test_pooled_maps_carry_their_exact_largest_weights():
    best = torch.rand(1, 7, 2), torch.randint(9, (1, 7, 2))
    picture = Picture(torch.rand(1, 3, 4), list("abcdefg"), list("uvwxyzabc"), top=best, entropy=torch.rand(1, 7))
    packed = pack(picture)
    assert packed["pooled"]
    top = packed["maps"][0]["top"]
    assert top["k"] == 2
    assert torch.equal(floats(top["weights"]).reshape(1, 7, 2), best[0])
    assert np.frombuffer(base64.b64decode(top["indices"]), "<i4").reshape(1, 7, 2).tolist() == best[1].tolist()
    assert torch.equal(floats(packed["maps"][0]["entropy"]), picture.entropy[0])


def test_what_cannot_be_seen_is_written_out():
    packed = pack(
        Picture(torch.eye(2), ["a\tb", "\u202ecat"], [" cat", ""], title="\x1b[2J", maps=["\u200b"], note="\x00")
    )
    assert packed["rows"] == ["a␉b", "⟨202E⟩cat"]
    assert packed["columns"] == ["␣cat", "∅"]
    assert (packed["title"], packed["note"], packed["maps"][0]["name"]) == ("␛[2J", "␀", "⟨200B⟩")


def test_an_empty_picture_can_be_packed():
    for n, m in ((0, 3), (3, 0), (0, 0)):
        packed = pack(of(torch.zeros(n, m)))
        assert packed["maps"][0]["shape"] == [n, m]
        json.dumps(packed, allow_nan=False)


def test_the_rollout_of_a_model_comes_along(monkeypatch):
    weights = torch.randn(4, 6, 6).softmax(-1)
    described = {"maps": list("abcd"), "layers": [0, 0, 1, 1]}
    first, second = (w.mean(0) / 2 + torch.eye(6) / 2 for w in (weights[:2], weights[2:]))
    torch.testing.assert_close(unpacked(pack(of(weights, **described))["rollout"]), second @ first)
    assert pack(of(weights))["rollout"] is None
    monkeypatch.setattr(module, "ROLLOUT", 5)
    assert pack(of(weights, **described))["rollout"] is None
