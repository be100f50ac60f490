"""The autoencoder: all that the decoder knows passes a smaller latent; sentences corrupted as asked."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import regard
from regard.models.autoencoder import Autoencoder, corrupt
from regard.models.decoding import greedy
from regard.nn import MultiHeadAttention

SOURCE = torch.tensor([[3, 4, 5, 6, 7, 8], [9, 10, 0, 0, 0, 0]])
LENGTHS = torch.tensor([6, 2])
TARGET = torch.tensor([[1, 3, 4, 5], [1, 9, 10, 2]])


def model(**parts) -> Autoencoder:
    torch.manual_seed(0)
    return Autoencoder(20, 16, 2, 1, slots=3, d_latent=5, n_max=8, **parts).eval()


def test_the_latent_is_smaller_and_is_all_that_the_decoder_reads():
    module = model()
    latent = module.encode(SOURCE, LENGTHS)
    assert latent.shape == (2, 3, 5)
    assert torch.equal(module.decode(latent, TARGET), module(SOURCE, TARGET, LENGTHS))
    assert latent[0].numel() < SOURCE.shape[1] * 16
    with pytest.raises(regard.InputError, match=r"slots=8 of d_latent=16 hold 128 numbers, .* n_max=8 words 128"):
        Autoencoder(20, 16, 2, 1, slots=8, d_latent=16, n_max=8)


def test_the_latent_is_what_the_learned_queries_find():
    """With queries of zero, and zero biases, every score is equal: each slot is the mean state, projected."""
    module = model()
    assert isinstance(module.pool, MultiHeadAttention)
    for parameter in (module.queries, module.pool.w_q.bias):
        nn.init.zeros_(parameter)
    states = module.encoder(SOURCE, LENGTHS)
    mean = torch.stack([states[0].mean(0), states[1, :2].mean(0)])
    expected = module.norm(module.pool.w_o(module.pool.w_v(mean)))
    torch.testing.assert_close(module.encode(SOURCE, LENGTHS), expected[:, None].expand(-1, 3, -1))


def test_padding_changes_nothing():
    module = model()
    full = module(SOURCE, TARGET, LENGTHS)
    torch.testing.assert_close(full[1:], module(SOURCE[1:, :2], TARGET[1:]), atol=1e-5, rtol=1e-5)


def test_steps_are_the_full_forward():
    module = model(position="rotary")
    state, steps = module.begin(SOURCE, LENGTHS), []
    for token in TARGET.unbind(-1):
        logits, state = module.step(token, state)
        steps.append(logits)
    torch.testing.assert_close(torch.stack(steps, 1), module(SOURCE, TARGET, LENGTHS), atol=1e-5, rtol=1e-5)


def test_learns_to_write_what_it_read():
    """Sentences of three words of six each, through four numbers: a decoder that did not read could not."""
    torch.manual_seed(0)
    module = Autoencoder(8, 32, 2, 1, slots=1, d_latent=8, n_max=3)
    optimizer = torch.optim.AdamW(module.parameters(), lr=4e-3)
    words = torch.cartesian_prod(*[torch.arange(2, 8)] * 3)
    target = torch.cat([torch.ones(len(words), 1, dtype=torch.long), words], dim=1)
    for _ in range(150):
        loss = nn.functional.cross_entropy(module(words, target[:, :-1]).flatten(0, 1), words.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    written = greedy(module.eval(), words, bos=1, eos=0, max_length=3).tokens
    assert sum(row == word for row, word in zip(written, words.tolist(), strict=True)) > 0.95 * len(words)


# Corruption

SENTENCES = torch.tensor([[3, 4, 5, 6, 7, 8], [9, 10, 11, 0, 0, 0], [12, 0, 0, 0, 0, 0]])
SIZES = torch.tensor([6, 3, 1])
NONE = {"drop": 0.0, "mask": 0.0, "swap": 0.0}


def test_nothing_to_do():
    tokens, lengths = corrupt(SENTENCES, SIZES, 0, mask_id=1, **NONE)
    assert torch.equal(tokens, SENTENCES)
    assert torch.equal(lengths, SIZES)


def test_all_masked():
    tokens, lengths = corrupt(SENTENCES, SIZES, 0, mask_id=1, **{**NONE, "mask": 1.0})
    assert tokens.tolist() == [[1] * 6, [1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0]]
    assert torch.equal(lengths, SIZES)


def test_all_dropped_but_one():
    tokens, lengths = corrupt(SENTENCES, SIZES, 0, mask_id=1, **{**NONE, "drop": 1.0})
    assert lengths.tolist() == [1, 1, 1]
    assert tokens[2].tolist() == [12, 0, 0, 0, 0, 0]
    assert all(row[0] in sentence for row, sentence in zip(tokens.tolist(), SENTENCES.tolist(), strict=True))
    assert not tokens[:, 1:].any()


def test_dropping_keeps_the_order():
    for seed in range(20):
        tokens, lengths = corrupt(SENTENCES, SIZES, seed, mask_id=1, **{**NONE, "drop": 0.5})
        for row, n in zip(tokens, lengths.tolist(), strict=True):
            assert row[:n].tolist() == sorted(row[:n].tolist())
            assert not row[n:].any()


def test_swapped_words_change_places_with_a_neighbour():
    seen = set()
    for seed in range(30):
        tokens, lengths = corrupt(SENTENCES, SIZES, seed, mask_id=1, **{**NONE, "swap": 0.3})
        assert torch.equal(tokens.sort(-1).values, SENTENCES.sort(-1).values)
        assert torch.equal(lengths, SIZES)
        assert not tokens[2, 1:].any()
        # A word never moves forward by more than its neighbour's place.
        place = tokens[0].argsort()
        assert (place - torch.arange(6)).max() <= 1
        seen.add(tuple(tokens[0].tolist()))
    assert len(seen) > 5
    assert (3, 4, 6, 5, 7, 8) in seen or (4, 3, 5, 6, 7, 8) in seen


def test_corruption_is_a_function_of_the_seed():
    tokens = torch.randint(3, 99, (50, 20))
    lengths = torch.full((50,), 20)
    first, second, other = (corrupt(tokens, lengths, seed, mask_id=1) for seed in (7, 7, 8))
    assert torch.equal(first[0], second[0])
    assert torch.equal(first[1], second[1])
    assert not torch.equal(first[0], other[0])
    dropped = 1 - first[1].sum().item() / 1000
    masked = (first[0] == 1).sum().item() / first[1].sum().item()
    assert dropped == pytest.approx(0.1, abs=0.04)  # 1000 draws: four standard deviations
    assert masked == pytest.approx(0.1, abs=0.04)


def test_a_share_that_is_none():
    with pytest.raises(regard.InputError, match="corrupt: drop=2; expected a probability, 0 to 1"):
        corrupt(SENTENCES, SIZES, 0, mask_id=1, drop=2)
