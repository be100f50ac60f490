"""The Transformer in its three forms: step by step is all at once, batch and padding change nothing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import regard
from regard import masks as M
from regard import normalizers as N
from regard import scores as S
from regard.models.decoding import greedy
from regard.models.transformer import POSITIONS, Transformer, TransformerDecoder, TransformerEncoder
from regard.nn.embeddings import Pretrained
from tests.mechanisms import NORMALIZERS, SCORES, Row, ids

V, D, HEADS = 20, 8, 2
SOURCE = torch.tensor([[3, 4, 5, 6, 7, 8], [9, 10, 0, 0, 0, 0], [11, 12, 13, 14, 0, 0]])
LENGTHS = torch.tensor([6, 2, 4])
TARGET = torch.tensor([[1, 5, 6, 7, 8], [1, 9, 9, 9, 2], [1, 3, 2, 0, 0]])
# Random weights say nothing of order, so the sharper the attention the better a mistake shows.
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def model(**parts) -> Transformer:
    torch.manual_seed(0)
    return Transformer(V, V, D, HEADS, layers=2, hidden=16, n_max=16, **parts).eval()


def language_model(**parts) -> TransformerDecoder:
    torch.manual_seed(0)
    return TransformerDecoder(V, D, HEADS, layers=2, hidden=16, n_max=32, **parts).eval()


def stepped(module: nn.Module, state, tokens: Tensor) -> Tensor:
    logits = []
    for token in tokens.unbind(-1):
        one, state = module.step(token, state)
        logits.append(one)
    return torch.stack(logits, dim=1)


def differs(a: Tensor, b: Tensor) -> bool:
    return (a - b).abs().max().item() > 1e-4


# The encoder


@pytest.mark.parametrize("position", POSITIONS)
def test_order_is_seen_when_there_is_a_position(position):
    torch.manual_seed(0)
    encoder = TransformerEncoder(V, D, HEADS, layers=2, position=position, n_max=16).eval()
    order = torch.tensor([4, 0, 2, 5, 1, 3])
    tokens = SOURCE[:1]
    assert differs(encoder(tokens[:, order]), encoder(tokens)[:, order]) == (position is not None)


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_padding_and_the_rest_of_the_batch_change_nothing(position, norm):
    encoder = TransformerEncoder(V, D, HEADS, layers=2, position=position, norm=norm, n_max=16).eval()
    states = encoder(SOURCE, LENGTHS)
    other = encoder(SOURCE.masked_fill(SOURCE == 0, 17), LENGTHS)
    for row, n in enumerate(LENGTHS.tolist()):
        assert torch.equal(states[row, :n], other[row, :n])
        torch.testing.assert_close(states[row, :n], encoder(SOURCE[row : row + 1, :n])[0], **CLOSE)


def test_leading_axes_are_free():
    encoder = TransformerEncoder(V, D, HEADS, layers=1).eval()
    states = encoder(SOURCE.reshape(3, 1, 6), LENGTHS[:, None])
    torch.testing.assert_close(states[:, 0], encoder(SOURCE, LENGTHS), **CLOSE)
    torch.testing.assert_close(encoder(SOURCE[0]), states[0, 0], **CLOSE)


def test_a_mask_limits_how_far_a_word_reaches():
    """Two layers of a window of one word: a change at 0 reaches 2 and no further."""
    encoder = TransformerEncoder(V, D, HEADS, layers=2, mask=M.window(1, 1)).eval()
    changed = SOURCE[:1].clone()
    changed[0, 0] = 15
    moved = (encoder(SOURCE[:1]) - encoder(changed)).abs().amax(-1)[0] > 1e-7
    assert moved.tolist() == [True, True, True, False, False, False]


def test_an_embedding_that_exists_already():
    vectors = torch.randn(V, D)
    encoder = TransformerEncoder(Pretrained(vectors), D, HEADS, layers=1, position=None)
    assert torch.equal(encoder.words(SOURCE), vectors[SOURCE])


# Causality


@pytest.mark.parametrize("position", POSITIONS)
def test_no_word_sees_a_later_one(position):
    decoder, writer = language_model(position=position), model(position=position)
    for call in (decoder, lambda tokens: writer(SOURCE[:1], tokens)):
        tokens = TARGET[:1]
        for t in range(5):
            later = tokens.clone()
            later[:, t] = 18
            assert torch.equal(call(tokens)[:, :t], call(later)[:, :t])
            assert differs(call(tokens)[:, t:], call(later)[:, t:])


# Step by step


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_steps_are_the_full_forward(position, norm):
    module = model(position=position, norm=norm)
    full = module(SOURCE, TARGET, LENGTHS)
    torch.testing.assert_close(stepped(module, module.begin(SOURCE, LENGTHS), TARGET), full, **CLOSE)
    for row, n in enumerate(LENGTHS.tolist()):  # a batch of one, without padding
        alone = slice(row, row + 1)
        torch.testing.assert_close(full[alone], module(SOURCE[alone, :n], TARGET[alone]), **CLOSE)


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("prompt", [0, 1, 6])
def test_a_language_model_goes_on_from_prompts_of_any_length(position, prompt):
    module = language_model(position=position)
    source, lengths = SOURCE[:, :prompt], LENGTHS.clamp(max=prompt)
    logits = stepped(module, module.begin(source, lengths), TARGET)
    for row, n in enumerate(lengths.tolist()):
        whole = torch.cat([source[row, :n], TARGET[row]])[None]
        torch.testing.assert_close(logits[row], module(whole)[0, n:], **CLOSE)


@pytest.mark.parametrize(
    "mask",
    [M.window(2, 0), [M.window(1, 0), M.strided(2)], M.blocks(3)],
    ids=["window", "per head", "blocks"],
)
def test_steps_see_what_the_mask_shows_their_rows(mask):
    decoder, writer = language_model(mask=mask), model(target_mask=mask)
    torch.testing.assert_close(stepped(decoder, decoder.begin(SOURCE[:, :0]), TARGET), decoder(TARGET), **CLOSE)
    steps = stepped(writer, writer.begin(SOURCE, LENGTHS), TARGET)
    torch.testing.assert_close(steps, writer(SOURCE, TARGET, LENGTHS), **CLOSE)
    plain = language_model()
    assert differs(plain(TARGET), decoder(TARGET))


def test_prompts_of_different_lengths_need_a_mask_that_moves_with_them():
    moving = language_model(mask=M.window(2, 0) & ~M.strided(3))
    logits = stepped(moving, moving.begin(SOURCE, LENGTHS), TARGET)
    whole = torch.cat([SOURCE[1, :2], TARGET[1]])[None]
    torch.testing.assert_close(logits[1], moving(whole)[0, 2:], **CLOSE)
    with pytest.raises(regard.InputError, match=r"BlockDiagonal names positions from the start; .* \(lengths=None"):
        language_model(mask=M.blocks(3)).begin(SOURCE, LENGTHS)


def test_greedy_words_are_those_of_the_full_forward():
    module = model()
    written = greedy(module, SOURCE, LENGTHS, bos=1, eos=2, max_length=8).tokens
    for row, n in enumerate(LENGTHS.tolist()):
        tokens = [1]
        while len(tokens) <= 8 and tokens[-1] != 2:
            logits = module(SOURCE[row : row + 1, :n], torch.tensor([tokens]))
            tokens.append(int(logits[0, -1].argmax()))
        assert written[row] == [token for token in tokens[1:] if token != 2]


def test_select_keeps_rows_in_an_order():
    for module in (model(), language_model()):
        state = module.begin(SOURCE, LENGTHS)
        _, state = module.step(TARGET[:, 0], state)
        rows = torch.tensor([2, 0, 2])
        logits, _ = module.step(TARGET[rows, 1], state.select(rows))
        state = module.begin(SOURCE[rows], LENGTHS[rows])
        torch.testing.assert_close(logits, stepped(module, state, TARGET[rows, :2])[:, 1], **CLOSE)


# Any score, normalizer, number of heads


@pytest.mark.parametrize("row", **ids(SCORES))
def test_every_score(row: Row):
    score = row.make()
    module = model(score=score, position=None) if not isinstance(score, S.Score) else model(score=score)
    module.train()
    logits = module(SOURCE, TARGET, LENGTHS)
    nn.functional.cross_entropy(logits.flatten(0, 1), TARGET.flatten()).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in module.parameters())


STEPPED = [row for row in SCORES if row.name not in ("alibi", "relative bias", "soft cap, biased additive")]


@pytest.mark.parametrize("row", **ids(STEPPED))
def test_every_score_step_by_step(row: Row):
    module = model(score=row.make())
    steps = stepped(module, module.begin(SOURCE, LENGTHS), TARGET)
    torch.testing.assert_close(steps, module(SOURCE, TARGET, LENGTHS), **CLOSE)


@pytest.mark.parametrize("row", **ids(NORMALIZERS))
def test_every_normalizer_step_by_step(row: Row):
    module = model(normalizer=row.make())
    steps = stepped(module, module.begin(SOURCE, LENGTHS), TARGET)
    torch.testing.assert_close(steps, module(SOURCE, TARGET, LENGTHS), **CLOSE)


def test_a_relative_bias_says_how_steps_align():
    module = language_model(score=S.ScaledDot() + S.RelativeBias(HEADS, 3, align="end"), position=None)
    torch.testing.assert_close(stepped(module, module.begin(SOURCE), TARGET), _after(module), **CLOSE)


def _after(module: TransformerDecoder) -> Tensor:
    return module(torch.cat([SOURCE, TARGET], dim=1))[:, SOURCE.shape[1] :]


@pytest.mark.parametrize(
    "parts", [{"key_heads": 1}, {"d_head": 2, "d_v": 3}, {"score": [S.Dot(), S.Additive(4, 4, 3)]}], ids=str
)
@pytest.mark.parametrize("position", [None, "rotary", "alibi"])
def test_heads_of_every_form(parts, position):
    module = language_model(position=position, **parts)
    torch.testing.assert_close(stepped(module, module.begin(SOURCE), TARGET), _after(module), **CLOSE)


def test_each_attention_has_parameters_of_its_own():
    module = model(score=S.Additive(4, 4, 3), normalizer=N.Softmax(sink=True))
    parameters = dict(module.named_parameters(remove_duplicate=False))
    assert len({id(p) for p in parameters.values()}) == len(parameters)
    assert sum(name.endswith("normalizer.sink") for name in parameters) == 6  # two encoder layers, two decoder layers


# Embeddings and files


def test_tied_words_and_shared_words_are_saved_once():
    def sizes(module: nn.Module) -> list[str]:
        return [name for name, tensor in module.state_dict().items() if tensor.shape == (V, D)]

    assert len(sizes(model(tied=False))) == 3
    assert len(sizes(model(tied=True))) == 2
    assert len(sizes(model(tied=True, shared=True))) == 1
    shared = model(shared=True)
    assert shared.writer.words.embedding is shared.encoder.words.embedding
    with pytest.raises(regard.InputError, match="source_vocabulary=3, target_vocabulary=4; one embedding"):
        Transformer(3, 4, D, HEADS, shared=True)


@pytest.mark.parametrize("shared", [False, True])
def test_safetensors_keep_every_bit(tmp_path, shared):
    safetensors = pytest.importorskip("safetensors.torch")
    one = model(shared=shared, score=S.Additive(4, 4, 3), position="learned")
    safetensors.save_file(one.state_dict(), tmp_path / "model.safetensors")
    two = model(shared=shared, score=S.Additive(4, 4, 3), position="learned")
    for parameter in two.parameters():
        nn.init.zeros_(parameter)
    two.load_state_dict(safetensors.load_file(tmp_path / "model.safetensors"))
    assert torch.equal(one(SOURCE, TARGET, LENGTHS), two(SOURCE, TARGET, LENGTHS))


def test_a_position_that_is_unknown():
    with pytest.raises(regard.InputError, match="position='rotarry'; expected one of 'sinusoidal', 'learned'"):
        model(position="rotarry")


def test_dropout_only_in_training():
    module = model(dropout=0.3)
    assert torch.equal(module(SOURCE, TARGET), module(SOURCE, TARGET))
    module.train()
    torch.manual_seed(1)
    first = module(SOURCE, TARGET)
    torch.manual_seed(1)
    assert torch.equal(module(SOURCE, TARGET), first)
    assert differs(module(SOURCE, TARGET), first)


@pytest.mark.slow
def test_learns_to_reverse():
    """A short run: a model that cannot look at the right word stays at one in ten."""
    torch.manual_seed(0)
    module = Transformer(12, 12, 32, 4, layers=2)
    optimizer = torch.optim.AdamW(module.parameters(), lr=2e-3)

    def batch(size: int) -> tuple[Tensor, Tensor]:
        words = torch.randint(2, 12, (size, 6))
        return words, torch.cat([torch.ones(size, 1, dtype=torch.long), words.flip(1)], dim=1)

    for _ in range(500):
        source, target = batch(64)
        logits = module(source, target[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    source, target = batch(200)
    written = greedy(module.eval(), source, bos=1, eos=0, max_length=6).tokens
    assert sum(row == expected for row, expected in zip(written, target[:, 1:].tolist(), strict=True)) > 190
