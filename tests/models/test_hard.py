"""Hard attention learns where to look; REINFORCE's gradient is right on average."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import regard
from regard import normalizers as N
from regard.models.hard import LearnedBaseline, MovingBaseline, Reinforce
from regard.models.rnn import AttentiveRNN

SIZE = 4  # letters, and digits


def tables(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """A word is a letter and its digit; a table has each letter once; one of them is asked."""
    letters = torch.rand(count, SIZE).argsort(1)
    digits = torch.randint(SIZE, (count, SIZE))
    place = torch.randint(SIZE, (count, 1))
    target = torch.cat([letters.gather(1, place), SIZE + digits.gather(1, place)], 1)
    return letters * SIZE + digits, target, place[:, 0]


def small(normalizer: N.Normalizer, **options: object) -> AttentiveRNN:
    score = regard.scores.Bilinear(8, 8)
    return AttentiveRNN(SIZE**2, 2 * SIZE, 16, 8, score=score, normalizer=normalizer, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("trainer", ["gumbel", "moving baseline", "learned baseline"])
def test_it_finds_the_one_position_that_matters(trainer):
    model = small(N.GumbelHard() if trainer == "gumbel" else N.Hard())
    baseline = LearnedBaseline(8) if trainer == "learned baseline" else MovingBaseline()
    module = model if trainer == "gumbel" else Reinforce(model, baseline, beta=0.05, padding=-1)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-2)
    for _ in range(500):
        source, target, _ = tables(64)
        loss = module(source, target).total if module is not model else words_loss(model, source, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    model.eval()
    source, target, place = tables(1000)
    looks = []

    def attend(query, key, value, mask):
        out = model.attention(query, key, value, mask=mask)
        looks.append((key == out).all(-1).float().argmax(-1))  # which encoder state was taken
        return out

    answer = model(source, target[:, :1], attend=attend)[:, 0].argmax(-1)
    assert (answer == target[:, 1]).float().mean() > 0.95
    assert (looks[0] == place).float().mean() > 0.95


def words_loss(model: AttentiveRNN, source: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(model(source, target[:, :-1]).mT, target[:, 1:])


@pytest.mark.parametrize("feeding", [False, True], ids=["", "input feeding"])
def test_its_gradient_is_that_of_the_enumerated_expectation(feeding):
    """E[Σ log p(word | draws)] over all SIZE² pairs of draws of two steps, against 3,000 drawn sequences."""
    model = small(N.Hard(), input_feeding=feeding).double()
    for weight in model.parameters():
        torch.nn.init.normal_(weight)  # draws differ much, and change what follows
    source, _, _ = tables(1)
    target = torch.tensor([[1, 5, 6]])
    parameter = model.attention.score.weight

    expected = torch.zeros(())
    for choices in torch.cartesian_prod(torch.arange(SIZE), torch.arange(SIZE)):
        log_pi = []

        def attend(query, key, value, mask, choices=choices, log_pi=log_pi):
            m = query.shape[1]
            here = choices[len(log_pi) : len(log_pi) + m]
            weights = regard.attention_weights(query, key, score=model.attention.score)[0]  # m n
            log_pi += weights.log()[torch.arange(m), here].unbind()
            return value[:, here]

        logits = model(source, target[:, :-1], attend=attend)
        reward = logits.log_softmax(-1)[0, [0, 1], target[0, 1:]].sum()
        expected = expected + sum(log_pi).exp() * reward
    (exact,) = torch.autograd.grad(-expected / 2, parameter)  # the loss is a mean over two words

    trainer = Reinforce(model, MovingBaseline(), beta=0.0, padding=-1)
    draws = 3000
    many, targets = source.expand(draws, -1), target.expand(draws, -1)
    trainer(many, targets, seed=1)  # the baseline learns what to expect
    # The gradient of each drawn sequence apart: the score's weight gets a copy for each.
    copies = parameter.detach().expand(draws, 1, -1, -1).squeeze(1).clone().requires_grad_()
    del model.attention.score.weight
    model.attention.score.weight = copies
    (each,) = torch.autograd.grad(trainer(many, targets, seed=2).total * draws, copies)
    mean, error = each.mean(0), each.std(0) / draws**0.5
    assert (exact.abs() > 3 * error).any()  # there is something to find
    assert ((mean - exact).abs() < 4 * error).all()
    assert ((mean - exact).abs() < 3 * error).float().mean() > 0.95  # of 64 numbers nearly all within 3


def test_the_loss_by_hand():
    model = small(N.Hard())
    trainer = Reinforce(model, beta=0.5, padding=-1)
    source, target, _ = tables(3)
    loss = trainer(source, target, seed=0)
    by_hand = -loss.reward - (loss.reward - loss.expected).detach() * loss.log_prob - 0.5 * loss.entropy
    torch.testing.assert_close(loss.total, by_hand.mean())
    assert (loss.expected == 0).all()  # nothing seen yet
    assert (loss.log_prob < 0).all()
    assert (loss.reward < 0).all()
    after = trainer(source, target, seed=0)
    torch.testing.assert_close(after.expected, loss.reward.mean().expand(3, 1))  # one batch seen: its mean


def test_entropy_of_an_even_choice():
    model = small(N.Hard())
    torch.nn.init.zeros_(model.attention.score.weight)
    source, target, _ = tables(3)
    loss = Reinforce(model, padding=-1)(source, target)
    torch.testing.assert_close(loss.entropy, torch.full((3, 1), SIZE).log())
    torch.testing.assert_close(loss.log_prob, -loss.entropy)


@pytest.mark.parametrize("feeding", [False, True], ids=["", "input feeding"])
def test_padding_does_not_count(feeding):
    model = small(N.Hard(), input_feeding=feeding).double()
    source = torch.randint(SIZE**2, (2, 5))
    lengths = torch.tensor([3, 4])
    target = torch.tensor([[1, 5, 6], [2, 7, 0]])
    wider = torch.cat([target, torch.zeros(2, 3, dtype=torch.long)], 1)
    a = Reinforce(model)(source, target, lengths, seed=1)
    b = Reinforce(model)(source, wider, lengths, seed=1)  # the same draws: noise knows seed and place alone
    torch.testing.assert_close(a.total, b.total)
    torch.testing.assert_close(a.reward, b.reward[:, :2])
    assert (b.reward[:, 2:] == 0).all()
    assert a.reward[1, 1] == 0


def test_each_step_draws_anew():
    def of_key_alone(query, key):
        return 3 * key.sum(-1)[..., None, :].expand(*query.shape[:-1], key.shape[-2])

    model = AttentiveRNN(SIZE**2, 2 * SIZE, 16, 8, score=of_key_alone, normalizer=N.Hard(), input_feeding=True)
    source, _, _ = tables(20)
    loss = Reinforce(model, padding=-1)(source, torch.zeros(20, 3, dtype=torch.long), seed=0)
    torch.testing.assert_close(loss.entropy[:, 0], loss.entropy[:, 1])  # equal odds at both steps
    assert (loss.log_prob[:, 0] - loss.log_prob[:, 1]).abs().max() > 0.1


def test_a_learned_baseline_learns_from_its_own_loss_only():
    model = small(N.Hard())
    trainer = Reinforce(model, LearnedBaseline(8), padding=-1)
    source, target, _ = tables(5)
    trainer(source, target, seed=0).total.backward()
    with_baseline = {n: p.grad.clone() for n, p in model.named_parameters()}
    assert (trainer.baseline.linear.weight.grad != 0).any()

    for parameter in trainer.parameters():
        parameter.grad = None
    loss = trainer(source, target, seed=0)
    (
        -loss.reward - (loss.reward - loss.expected).detach() * loss.log_prob - trainer.beta * loss.entropy
    ).mean().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, with_baseline[name])
