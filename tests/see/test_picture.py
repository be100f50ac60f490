"""What every renderer draws: taken from records, put together from subwords, rid of special tokens."""

import pytest
import torch

import regard
from regard import InputError
from regard.nn import MultiHeadAttention
from regard.see import Picture
from regard.see import picture as module

TOKENS = ["<s>", "un", "happy", "cat"]


@pytest.fixture
def picture() -> Picture:
    weights = torch.tensor([[0.4, 0.3, 0.2, 0.1], [0.0, 0.5, 0.5, 0.0], [0.2, 0.2, 0.2, 0.4], [1.0, 0.0, 0.0, 0.0]])
    return Picture(weights, TOKENS, TOKENS, special={"<s>"}, row_words=[0, 1, 1, 2], column_words=[0, 1, 1, 2])


def test_words_are_summed_over_keys_and_averaged_over_queries(picture):
    words = picture.whole_words()
    assert words.rows == words.columns == ("<s>", "unhappy", "cat")
    expected = torch.tensor([[0.4, 0.5, 0.1], [0.1, 0.7, 0.2], [1.0, 0.0, 0.0]])
    torch.testing.assert_close(words.weights[0], expected)


def test_special_tokens_leave_their_mass_behind(picture):
    bare = picture.without_special()
    assert bare.rows == ("un", "happy", "cat")
    torch.testing.assert_close(bare.removed[0], torch.tensor([0.0, 0.2, 1.0]))
    torch.testing.assert_close(bare.weights.sum(-1) + bare.removed, torch.ones(1, 3))
    both = bare.whole_words()
    assert both.rows == ("unhappy", "cat")
    torch.testing.assert_close(both.weights[0], torch.tensor([[0.7, 0.2], [0.0, 0.0]]))
    torch.testing.assert_close(both.removed[0], torch.tensor([0.1, 1.0]))
    torch.testing.assert_close(picture.whole_words().without_special().weights, both.weights)  # in either order


def test_from_a_record_are_the_weights_of_the_model():
    attend = MultiHeadAttention(8, heads=2)
    with regard.record(torch.nn.ModuleDict({"self": attend})) as records:
        attend(torch.randn(3, 4, 8))
    seen = Picture.from_record(records["self"], TOKENS, batch=2)
    torch.testing.assert_close(seen.weights, records["self"].weights()[2])
    assert seen.maps == ("self · 1", "self · 2")
    assert Picture.from_record(list(records) * 2, TOKENS).maps == ("self · 1", "self · 2") * 2
    with pytest.raises(InputError, match="batch=3; expected 0 to 2"):
        Picture.from_record(records["self"], TOKENS, batch=3)


def test_a_long_record_comes_pooled_with_its_largest_weights_exact(monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 100)
    monkeypatch.setattr(module, "POOL", 5)
    attend, tokens = MultiHeadAttention(8, heads=2), [str(i) for i in range(20)]
    with regard.record(torch.nn.ModuleDict({"self": attend})) as records:
        attend(torch.randn(1, 20, 8))
    seen, exact = Picture.from_record(records["self"], tokens), records["self"].weights()[0]
    assert repr(seen) == "Picture: 2 maps, 20 queries x 20 keys, pooled to (5, 5)"
    torch.testing.assert_close(seen.weights, exact.reshape(2, 5, 4, 5, 4).sum(-1).mean(2))
    torch.testing.assert_close(seen.top[0], exact.topk(8).values)
    torch.testing.assert_close(exact.gather(-1, seen.top[1]), seen.top[0])
    with pytest.raises(InputError, match="these maps are pooled"):
        seen.without_special()


def test_the_steps_of_a_model_that_writes_become_rows():
    attend = MultiHeadAttention(8, heads=2)
    x = torch.randn(1, 4, 8)
    with regard.record(torch.nn.ModuleDict({"self": attend})) as records:
        for step in range(4):  # as a decoder with a cache: one query, all keys so far
            attend(x[:, step : step + 1], x[:, : step + 1])
        attend(x, mask=regard.masks.causal())
    *steps, whole = records.calls("self")
    torch.testing.assert_close(Picture.from_steps(steps, TOKENS).weights, whole.weights()[0])


def test_bad_input(picture):
    with pytest.raises(InputError, match=r"row_words is \[0, 2, 2, 3\]; expected 4 numbers that count words"):
        Picture(torch.eye(4), TOKENS, TOKENS, row_words=[0, 2, 2, 3])
    with pytest.raises(InputError, match="maps has 2 names for 1 maps"):
        Picture(torch.eye(4), TOKENS, TOKENS, maps=["a", "b"])
    with pytest.raises(InputError, match="no map 'x'; there are 1"):
        picture.only("x")


def test_a_text_without_words_is_a_picture_too() -> None:
    nothing = Picture(torch.zeros(1, 2, 0), ["a", "b"], [], row_words=(0, 0), column_words=())
    words = nothing.whole_words()
    assert (list(words.rows), list(words.columns), tuple(words.weights.shape)) == (["ab"], [], (1, 1, 0))
