"""G: one-hot, learned and pretrained embeddings."""

import logging

import pytest
import torch

import regard
from regard.nn.embeddings import Embedding, OneHot, Pretrained
from regard.nn.vectors import Vectors


def test_one_hot_picks_rows():
    module = OneHot(3, 2)
    module.weight.data = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert module(torch.tensor([2, 0])).tolist() == [[5, 6], [1, 2]]
    assert module.dense(torch.tensor([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("shape", [(), (7,), (2, 3), (0,), (2, 0)])
def test_one_hot_is_the_dense_product_in_values_and_gradients(shape):
    module = OneHot(5, 3).double()
    ids = torch.randint(5, shape)
    out, product = module(ids), module.dense(ids) @ module.weight
    assert torch.equal(out, product)
    upstream = torch.randn(*shape, 3, dtype=torch.float64)
    (sparse,) = torch.autograd.grad(out, module.weight, upstream)
    (dense,) = torch.autograd.grad(product, module.weight, upstream)
    torch.testing.assert_close(sparse, dense)


def test_one_hot_of_a_large_vocabulary():
    """The dense rows of these 100,000 words would take 800 GB."""
    module = OneHot(2_000_000, 2)
    ids = torch.arange(100_000) * 20
    assert torch.equal(module(ids), module.weight[::20])


def test_embedding_is_scaled_by_the_root_of_d():
    plain, scaled = Embedding(3, 4), Embedding(3, 4, scaled=True)
    scaled.load_state_dict(plain.state_dict())
    ids = torch.tensor([[2, 1]])
    assert torch.equal(plain(ids), plain.weight[ids])
    assert torch.equal(scaled(ids), 2 * plain.weight[ids])  # √4


def test_embeddings_start_with_numbers_of_variance_1():
    ids = torch.arange(1000)
    for module in (Embedding(1000, 100), Embedding(1000, 100, scaled=True)):
        assert module(ids).std().item() == pytest.approx(1, abs=0.01)


def test_the_padding_row_is_zero_and_stays_zero():
    module = Embedding(3, 2, padding_index=1)
    assert module.weight[1].tolist() == [0, 0]
    module(torch.tensor([0, 1, 1])).sum().backward()
    assert module.weight.grad.tolist() == [[1, 1], [0, 0], [0, 0]]


def test_pretrained_is_frozen_or_not():
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    ids = torch.tensor([1])
    frozen, trained = Pretrained(table), Pretrained(table, frozen=False)
    assert frozen(ids).tolist() == trained(ids).tolist() == [[3, 4]]
    assert not frozen(ids).requires_grad
    trained(ids).sum().backward()
    assert trained.weight.grad.tolist() == [[0, 0], [1, 1]]
    with torch.no_grad():
        trained.weight += 1
    assert table.tolist() == [[1, 2], [3, 4]]  # what was given is not changed


def test_from_vectors_puts_each_word_in_its_row(caplog):
    vectors = Vectors(["cat", "dog"], torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    with caplog.at_level(logging.WARNING):
        module = Pretrained.from_vectors(["dog", "zebra", "cat", "dog"], vectors)
    assert module.weight.tolist() == [[3, 4], [0, 0], [1, 2], [3, 4]]
    assert "1 of 4 words have no vector: unknown='zeros'" in caplog.text


def test_unknown_words_may_be_random_like_the_known_ones():
    vectors = Vectors(["a", "b"], torch.tensor([[0.0, 50.0], [2.0, 50.0]]))
    words = ["a", "b", "<pad>", *(f"word {i}" for i in range(5000))]
    table = Pretrained.from_vectors(words, vectors, unknown="normal", padding_index=2).weight
    assert table[:3].tolist() == [[0, 50], [2, 50], [0, 0]]
    assert table[3:].mean(0).tolist() == pytest.approx([1, 50], abs=0.1)
    assert table[3:].std(0).tolist() == pytest.approx([1, 0], abs=0.1)


def test_no_word_known():
    vectors = Vectors(["a"], torch.ones(1, 2))
    assert Pretrained.from_vectors(["x", "y"], vectors, unknown="normal").weight.tolist() == [[0, 0], [0, 0]]


MODULES = [OneHot(3, 2), Embedding(3, 2), Pretrained(torch.zeros(3, 2))]


@pytest.mark.parametrize("module", MODULES, ids=repr)
def test_ids_that_are_no_words(module):
    name = type(module).__name__
    with pytest.raises(
        regard.InputError, match=rf"{name}: id 3 is not in the vocabulary; expected 0 to 2, vocabulary_size=3"
    ):
        module(torch.tensor([0, 3]))
    with pytest.raises(regard.InputError, match=rf"{name}: id -1 is not"):
        module(torch.tensor([0, -1]))
    with pytest.raises(regard.DTypeError, match=rf"{name}: ids are torch.float32; expected whole numbers"):
        module(torch.tensor([0.0]))
    assert module(torch.tensor([1], dtype=torch.int32)).shape == (1, 2)


def test_what_cannot_be_is_said():
    vectors = Vectors(["a"], torch.ones(1, 2))
    with pytest.raises(regard.InputError, match="OneHot: vocabulary_size=0; expected 1 or more"):
        OneHot(0, 2)
    with pytest.raises(regard.InputError, match="padding_index=3; expected None, or 0 to 2"):
        Embedding(3, 2, padding_index=3)
    with pytest.raises(regard.ShapeError, match=r"vectors is torch.float32 of shape \(3,\); expected .*from_vectors"):
        Pretrained(torch.zeros(3))
    with pytest.raises(regard.InputError, match="vocabulary is the text 'dog'; expected a list of words"):
        Pretrained.from_vectors("dog", vectors)
    with pytest.raises(regard.InputError, match="unknown='ones'; expected 'zeros' or 'normal'"):
        Pretrained.from_vectors(["a"], vectors, unknown="ones")
