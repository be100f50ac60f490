"""H1 against its four equations, H2 against the weighted sum; steps, padding and batches change nothing."""

import numpy as np
import pytest
import torch
from torch import Tensor

import regard
from regard import normalizers as N
from regard import scores as S
from regard.models.cells import GRU, LSTM, Plain
from regard.models.rnn import AttentiveRNN, RNNEncoderDecoder

D, HIDDEN = 5, 6


def words(*shape: int) -> Tensor:
    return torch.randint(3, 11, shape)


def test_h1_is_its_equations_in_numpy():
    model = RNNEncoderDecoder(11, 13, D, HIDDEN).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.6)
    source, target = words(1, 7), words(1, 4)
    p = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}

    h = np.zeros(HIDDEN)
    for x in p["encoder.embedding.weight"][source[0]]:
        a = p["encoder.cell.b"] + p["encoder.cell.W"] @ h + p["encoder.cell.U"] @ x
        h = np.tanh(a)
    rows = []
    for x in p["embedding.weight"][target[0]]:
        a = p["cell.b"] + p["cell.W"] @ h + p["cell.U"] @ x
        h = np.tanh(a)
        o = p["word.bias"] + p["word.weight"] @ h
        rows.append(np.exp(o) / np.exp(o).sum())

    ours = model(source, target).softmax(-1)[0].detach().numpy()
    np.testing.assert_allclose(ours, np.stack(rows), atol=1e-14)


@pytest.mark.parametrize(("cell", "torchs"), [(Plain, torch.nn.RNN), (GRU, torch.nn.GRU), (LSTM, torch.nn.LSTM)])
def test_cells_are_torchs(cell, torchs):
    ours, theirs = cell(D, HIDDEN), torchs(D, HIDDEN, batch_first=True)
    if cell is Plain:
        weights = {"weight_hh_l0": ours.W, "weight_ih_l0": ours.U, "bias_hh_l0": ours.b, "bias_ih_l0": 0 * ours.b}
    else:
        weights = ours.rnn.state_dict()
    theirs.load_state_dict(weights)
    x = torch.randn(3, 7, D)
    state = tuple(torch.zeros(3, HIDDEN) for _ in range(cell.parts))
    torch.testing.assert_close(ours(x, state)[0], theirs(x)[0])


@pytest.mark.parametrize("cell", [Plain, GRU, LSTM])
def test_the_last_state_is_that_of_the_last_real_word(cell):
    model, x = cell(D, HIDDEN), torch.randn(4, 7, D)
    lengths = torch.tensor([7, 1, 0, 3])
    state = tuple(torch.randn(4, HIDDEN) for _ in range(cell.parts))
    _, last = model(x, state, lengths)
    for row, n in enumerate(lengths.tolist()):
        here = slice(row, row + 1)
        _, alone = model(x[here, :n], tuple(part[here] for part in state))
        for ours, theirs in zip(last, alone, strict=True):
            torch.testing.assert_close(ours[here], theirs)


def test_h1_sees_the_last_state_only():
    model = RNNEncoderDecoder(11, 13, D, HIDDEN)
    state = model.begin(words(2, 7))
    assert [tensor.shape for tensor in state.cell] == [(2, HIDDEN)]
    assert (state.memory, state.context) == (None, None)


def attentive(score: object = None, normalizer: object = None, **options: object) -> AttentiveRNN:
    return AttentiveRNN(11, 13, D, HIDDEN, score=score, normalizer=normalizer, **options).double()  # type: ignore[arg-type]


def test_h2_by_hand():
    """Each step: score every encoder state, softmax, weighted sum a, [H; a], feed-forward, word."""
    model = attentive(S.Dot())
    source, target = words(1, 7), words(1, 4)
    memory, (H,) = model.encoder(source)
    for t, logits in enumerate(model(source, target)[0]):
        _, (H,) = model.cell(model.embedding(target[:, t : t + 1]), (H,))
        scores = torch.stack([H[0] @ h for h in memory[0]])
        weights = scores.exp() / scores.exp().sum()
        a = sum(w * h for w, h in zip(weights, memory[0], strict=True))
        both = torch.tanh(model.feed_forward(torch.cat([H[0], a])))
        torch.testing.assert_close(logits, model.word(both))


def test_equal_scores_give_the_mean_of_the_encoder_states():
    model = attentive(S.ScaledDot(scale=0.0))
    seen = []

    def attend(query, key, value, mask):
        out = model.attention(query, key, value, mask=mask)
        seen.append((value, out))
        return out

    model(words(2, 7), words(2, 4), torch.tensor([7, 3]), attend=attend)
    [(memory, contexts)] = seen  # one call for all four steps
    torch.testing.assert_close(contexts[0], memory[0].mean(0).expand(4, -1))
    torch.testing.assert_close(contexts[1], memory[1, :3].mean(0).expand(4, -1))


def test_input_feeding_by_hand():
    model = attentive(S.Dot(), input_feeding=True)
    source, target = words(1, 3), words(1, 4)
    memory, (H,) = model.encoder(source)
    a = torch.zeros(1, HIDDEN, dtype=torch.float64)
    for t, logits in enumerate(model(source, target)[0]):
        x = torch.cat([model.embedding(target[:, t]), a], -1)
        _, (H,) = model.cell(x[:, None], (H,))
        a = (H @ memory[0].T).softmax(-1) @ memory[0]
        torch.testing.assert_close(logits, model.word(torch.tanh(model.feed_forward(torch.cat([H, a], -1))))[0])


MODELS = {
    "H1": lambda cell: RNNEncoderDecoder(11, 13, D, HIDDEN, cell=cell),
    "H1, bidirectional": lambda cell: RNNEncoderDecoder(11, 13, D, HIDDEN, cell=cell, bidirectional=True),
    "H2": lambda cell: AttentiveRNN(11, 13, D, HIDDEN, cell=cell),
    "H2, input feeding": lambda cell: AttentiveRNN(11, 13, D, HIDDEN, cell=cell, input_feeding=True),
    "H2, all": lambda cell: AttentiveRNN(11, 13, D, HIDDEN, cell=cell, input_feeding=True, bidirectional=True),
}
every_model = pytest.mark.parametrize(
    ("make", "cell"),
    [(make, cell) for make in MODELS.values() for cell in ("rnn", "gru", "lstm")],
    ids=[f"{name}, {cell}" for name in MODELS for cell in ("rnn", "gru", "lstm")],
)
LENGTHS = torch.tensor([7, 1, 0, 3])


@every_model
def test_steps_are_teacher_forcing(make, cell):
    model, source, target = make(cell), words(4, 7), words(4, 5)
    logits = model(source, target, LENGTHS)
    state = model.begin(source, LENGTHS)
    for t in range(5):
        step, state = model.step(target[:, t], state)
        torch.testing.assert_close(step, logits[:, t], atol=1e-5, rtol=0)


@every_model
def test_a_batch_of_one_is_a_batch_of_many(make, cell):
    model, source, target = make(cell), words(4, 7), words(4, 5)
    logits = model(source, target, LENGTHS)
    for row, n in enumerate(LENGTHS.tolist()):
        here = slice(row, row + 1)
        torch.testing.assert_close(model(source[here, :n], target[here]), logits[here], atol=1e-5, rtol=0)


@every_model
def test_padding_changes_nothing(make, cell):
    """Neither what stands in it, nor how long it is; and no gradient reaches it."""
    model, source, target = make(cell), words(4, 7), words(4, 5)
    real = torch.arange(9) < LENGTHS[:, None]
    wider = torch.where(real, torch.cat([source, words(4, 2)], 1), 1)  # 1 stands nowhere else
    logits = model(wider, target, LENGTHS)
    torch.testing.assert_close(logits, model(source, target, LENGTHS), atol=1e-5, rtol=0)
    logits.square().sum().backward()
    gradient = model.encoder.embedding.weight.grad
    assert (gradient[1] == 0).all()
    assert (gradient[source[0, 0]] != 0).any()


@every_model
def test_select_keeps_rows(make, cell):
    model, source, target = make(cell), words(4, 7), words(4, 5)
    rows = torch.tensor([3, 0, 0])
    _, state = model.step(target[:, 0], model.begin(source, LENGTHS))
    ours, _ = model.step(target[rows, 1], state.select(rows))
    torch.testing.assert_close(ours, model(source, target, LENGTHS)[rows, 1], atol=1e-5, rtol=0)


SCORES = {
    "default": lambda: None,
    "dot": S.Dot,
    "scaled dot": S.ScaledDot,
    "bilinear": lambda: S.Bilinear(HIDDEN, HIDDEN),
    "additive": lambda: S.Additive(HIDDEN, HIDDEN, 4),
    "gated": lambda: S.Gated(HIDDEN, HIDDEN),
    "gaussian": lambda: S.Gaussian(2.0),
    "soft cap": lambda: S.SoftCap(S.Dot(), 3.0),
    "own function": lambda: lambda query, key: -(query[..., :, None, :] - key[..., None, :, :]).abs().sum(-1),
}
NORMALIZERS = {
    "softmax": N.Softmax,
    "sigmoid": N.Sigmoid,
    "sparsemax": N.Sparsemax,
    "entmax": lambda: N.Entmax(1.5),
    "identity": N.Identity,
    "gumbel": lambda: N.GumbelHard(0.5),
    "hard": N.Hard,
}


@pytest.mark.parametrize("feeding", [False, True], ids=["", "input feeding"])
@pytest.mark.parametrize(
    ("score", "normalizer"),
    [(score, N.Softmax) for score in SCORES.values()] + [(SCORES["default"], n) for n in NORMALIZERS.values()],
    ids=[*SCORES, *NORMALIZERS],
)
def test_any_score_and_normalizer_has_gradients(score, normalizer, feeding):
    model = attentive(score(), normalizer(), input_feeding=feeding)
    model(words(3, 7), words(3, 4), torch.tensor([7, 2, 4])).square().sum().backward()
    choice_only = isinstance(model.attention.normalizer, N.Hard)  # trains by REINFORCE
    for name, parameter in model.named_parameters():
        if choice_only and name.startswith("attention"):
            continue
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert (parameter.grad != 0).any(), name


def test_hard_attention_takes_one_encoder_state():
    model = attentive(normalizer=N.GumbelHard()).eval()
    looked = []

    def attend(query, key, value, mask):
        looked.append((value, model.attention(query, key, value, mask=mask)))
        return looked[-1][1]

    model(words(3, 7), words(3, 4), torch.tensor([7, 2, 4]), attend=attend)
    [(memory, contexts)] = looked
    same = (contexts[:, :, None] == memory[:, None]).all(-1)  # B m n
    assert same.any(-1).all()


def test_a_score_of_the_wrong_width_says_so():
    with pytest.raises(regard.ShapeError, match=rf"key has d_k={2 * HIDDEN}.* try Bilinear"):
        attentive(S.Dot(), bidirectional=True)(words(1, 3), words(1, 2))


def test_unknown_cell():
    with pytest.raises(regard.InputError, match="cell='elman'; expected one of 'rnn', 'gru', 'lstm'"):
        RNNEncoderDecoder(5, 5, cell="elman")
