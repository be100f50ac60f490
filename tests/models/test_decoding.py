"""Decoding, against a model whose every probability can be read off a table."""

import itertools
import math

import pytest
import torch
from torch import Tensor

import regard
from regard.models.decoding import Hypothesis, beam, greedy, kept_words, penalty, sample
from regard.models.rnn import AttentiveRNN

BOS, EOS = 0, 1


class Written:
    """The state: what each row has written so far."""

    def __init__(self, rows: list[tuple[int, ...]]) -> None:
        self.rows = rows

    def select(self, rows: Tensor) -> "Written":
        return Written([self.rows[row] for row in rows.tolist()])


class Table:
    """A model that looks the next word's probabilities up by what is written; a source is the name of its table."""

    def __init__(self, *tables: dict[tuple[int, ...], list[float]]) -> None:
        self.tables = tables

    def begin(self, source: Tensor, lengths: Tensor | None = None) -> Written:
        return Written([(name,) for name in source[:, 0].tolist()])

    def step(self, token: Tensor, state: Written) -> tuple[Tensor, Written]:
        rows = [(*row, word) for row, word in zip(state.rows, token.tolist(), strict=True)]
        anything = [0.25] * 4  # after what is impossible
        shares = [self.tables[row[0]].get(row[1:], anything) for row in rows]
        return torch.tensor(shares, dtype=torch.float64).log(), Written(rows)


# Words: 0 begins, 1 ends, 2 and 3. Greedy takes 2 (0.6) and is then lost: 0.6 · 0.45 · 1 = 0.27.
# The other way round: 0.4 · 0.9 · 1 = 0.36.
TRAP = {
    (0,): [0, 0, 0.6, 0.4],
    (0, 2): [0, 0.2, 0.45, 0.35],
    (0, 3): [0, 0.05, 0.05, 0.9],
    (0, 2, 2): [0, 1, 0, 0],
    (0, 2, 3): [0, 1, 0, 0],
    (0, 3, 2): [0, 1, 0, 0],
    (0, 3, 3): [0, 1, 0, 0],
}
ONE = torch.tensor([[0]])


def found(*answers: tuple[list[int], float]) -> list[Hypothesis]:
    return [Hypothesis(tokens, pytest.approx(math.log(p))) for tokens, p in answers]  # type: ignore[arg-type]


def test_greedy_walks_into_the_trap():
    assert greedy(Table(TRAP), ONE, bos=BOS, eos=EOS).n_best == [found(([2, 2], 0.27))]


def test_beam_does_not():
    decoded = beam(Table(TRAP), ONE, bos=BOS, eos=EOS, width=2)
    assert decoded.n_best == [found(([3, 3], 0.36))]
    assert decoded.tokens == [[3, 3]]
    assert decoded.scores == [pytest.approx(math.log(0.36))]


def test_n_best_in_order():
    decoded = beam(Table(TRAP), ONE, bos=BOS, eos=EOS, width=4, n_best=4)
    assert decoded.n_best == [found(([3, 3], 0.36), ([2, 2], 0.27), ([2, 3], 0.21), ([2], 0.12))]


def test_length_penalty_by_hand():
    assert penalty(1, 0.7) == 1
    assert penalty(7, 1.0) == 2  # (5 + 7) / 6
    decoded = beam(Table(TRAP), ONE, bos=BOS, eos=EOS, width=4, n_best=4, alpha=1.0)
    three, two = 8 / 6, 7 / 6  # words, end of sentence counted
    by_hand = [math.log(0.36) / three, math.log(0.27) / three, math.log(0.21) / three, math.log(0.12) / two]
    assert [answer.score for answer in decoded.n_best[0]] == pytest.approx(by_hand)


def test_length_penalty_turns_the_order():
    table = {(0,): [0, 0.5, 0.5, 0], (0, 2): [0, 0.9, 0.1, 0], (0, 2, 2): [0, 1, 0, 0]}
    assert beam(Table(table), ONE, bos=BOS, eos=EOS, width=3, alpha=0.0).tokens == [[]]  # 0.5 before 0.45
    assert beam(Table(table), ONE, bos=BOS, eos=EOS, width=3, alpha=1.0).tokens == [[2]]  # log 0.45 · 6/7 > log 0.5


def random_table(words: int, longest: int, seed: int) -> dict[tuple[int, ...], list[float]]:
    generator = torch.Generator().manual_seed(seed)
    return {
        (BOS, *written): torch.rand(words, generator=generator).double().pow(3).tolist()
        for n in range(longest)
        for written in itertools.product(range(words), repeat=n)
    }


def enumerated(table: dict, words: int, longest: int, alpha: float) -> list[Hypothesis]:
    """Every answer there is: those that end, best first, then those cut off, best first."""
    ends, cut = [], []
    others = [word for word in range(words) if word != EOS]
    for n in range(longest + 1):
        for written in itertools.product(others, repeat=n):
            answer = [*written, EOS] if n < longest else list(written)
            log_p = sum(
                math.log(table[(BOS, *answer[:t])][word] / sum(table[(BOS, *answer[:t])]))
                for t, word in enumerate(answer)
            )
            hypothesis = Hypothesis(list(written), log_p / penalty(len(answer), alpha))
            (ends if n < longest else cut).append(hypothesis)
    return sorted(ends, key=lambda h: -h.score) + sorted(cut, key=lambda h: -h.score)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_as_wide_as_the_tree_finds_everything(seed, alpha):
    table = random_table(words=3, longest=4, seed=seed)
    everything = enumerated(table, words=3, longest=4, alpha=alpha)
    assert len(everything) == 1 + 2 + 4 + 8 + 16
    for n_best in (1, 5, 31):
        decoded = beam(Table(table), ONE, bos=BOS, eos=EOS, width=64, n_best=n_best, alpha=alpha, max_length=4)
        assert [h.tokens for h in decoded.n_best[0]] == [h.tokens for h in everything[:n_best]]
        assert [h.score for h in decoded.n_best[0]] == pytest.approx([h.score for h in everything[:n_best]])


@pytest.mark.parametrize("seed", range(6))
def test_a_beam_of_one_is_greedy(seed):
    model = Table(random_table(words=4, longest=5, seed=seed))
    a = greedy(model, ONE, bos=BOS, eos=EOS, max_length=5)
    b = beam(model, ONE, bos=BOS, eos=EOS, max_length=5, width=1)
    assert a.tokens == b.tokens
    assert a.scores == pytest.approx(b.scores)


def test_end_of_sentence_stops_and_max_length_too():
    forever = {(0, *[2] * n): [0, 0, 1, 0] for n in range(7)}
    at_once = {(0,): [0, 1, 0, 0]}
    both = torch.tensor([[0], [1]])
    for decode in (greedy, beam, sample):
        decoded = decode(Table(forever, at_once), both, bos=BOS, eos=EOS, max_length=7)
        assert decoded.tokens == [[2] * 7, []]
        assert decoded.scores == pytest.approx([0, 0])


def test_each_input_may_have_its_own_longest_answer():
    """As if it stood alone: also where a beam would go on to a longer answer that is better."""
    late = {(0,): [0, 0.4, 0.6, 0], (0, 2): [0, 0, 1, 0], (0, 2, 2): [0, 1, 0, 0]}
    for decode in (greedy, beam, sample):
        options = {"bos": BOS, "eos": EOS} | ({"seed": 0} if decode is sample else {})
        together = decode(Table(late), ONE.repeat(3, 1), **options, max_length=[1, 2, 9])
        alone = [decode(Table(late), ONE, **options, max_length=most).n_best[0] for most in (1, 2, 9)]
        assert together.n_best == alone
    with pytest.raises(regard.ShapeError, match=r"max_length is for 2 inputs, source has B=3"):
        greedy(Table(late), ONE.repeat(3, 1), bos=BOS, eos=EOS, max_length=[1, 2])


def test_a_forced_beginning_costs_nothing():
    for decode in (greedy, beam):
        decoded = decode(Table(TRAP), ONE, bos=BOS, eos=EOS, prefix=[[3]])
        assert decoded.n_best == [found(([3, 3], 0.9))]
    decoded = greedy(Table(TRAP), ONE.repeat(3, 1), bos=BOS, eos=EOS, prefix=[[], [3, 2], [2]], max_length=1)
    assert decoded.tokens == [[2], [3, 2], [2, 2]]  # max_length counts what is not forced
    scores = [math.log(0.6), 0.0, math.log(0.45)]
    assert decoded.scores == pytest.approx(scores)


def test_sampled_words_come_as_often_as_they_should():
    """χ² over all six answers of the trap, 5,000 draws; 20.5 is passed once in a thousand."""
    draws = sample(Table(TRAP), ONE, bos=BOS, eos=EOS, n=5000, seed=1).n_best[0]
    shares = {(2,): 0.12, (2, 2): 0.27, (2, 3): 0.21, (3,): 0.02, (3, 2): 0.02, (3, 3): 0.36}
    counts = {answer: sum(h.tokens == list(answer) for h in draws) for answer in shares}
    assert sum(counts.values()) == 5000
    assert sum((counts[a] - 5000 * p) ** 2 / (5000 * p) for a, p in shares.items()) < 20.5
    for h in draws[:50]:
        assert h.score == pytest.approx(math.log(shares[tuple(h.tokens)]))


def test_temperature_sharpens():
    """At 1/2 probabilities are squared: 0.36 to 0.16, which is 9 to 4."""
    draws = sample(Table(TRAP), ONE, bos=BOS, eos=EOS, n=4000, seed=2, temperature=0.5, max_length=1).n_best[0]
    twos = sum(h.tokens == [2] for h in draws) / 4000
    assert abs(twos - 9 / 13) < 4 * math.sqrt(9 / 13 * 4 / 13 / 4000)
    assert {round(math.exp(h.score), 6) for h in draws} == {0.6, 0.4}  # the model's own


def test_top_k_and_top_p_by_hand():
    logits = torch.tensor([[0.5, 0.1, 0.3, 0.1]]).log()

    def kept(top_k: int | None = None, top_p: float = 1.0) -> list[bool]:
        return kept_words(logits, top_k, top_p).isfinite()[0].tolist()

    assert kept() == [True] * 4
    assert kept(top_k=1) == [True, False, False, False]
    assert kept(top_k=3) == [True, True, True, False]  # the first of equals
    assert kept(top_k=9) == [True] * 4
    assert kept(top_p=0.4) == [True, False, False, False]
    assert kept(top_p=0.7) == [True, False, True, False]
    assert kept(top_p=0.85) == [True, True, True, False]
    assert kept(top_k=2, top_p=0.6) == [True, False, False, False]  # of two, the first has 0.5 / 0.8


def test_sampling_is_a_function_of_the_seed():
    model = Table(random_table(words=4, longest=5, seed=0))

    def draw(seed: int) -> list[Hypothesis]:
        return sample(model, ONE, bos=BOS, eos=EOS, n=20, max_length=5, seed=seed).n_best[0]

    assert draw(3) == draw(3)
    assert draw(3) != draw(4)


DECODERS = {
    "greedy": greedy,
    "beam": lambda *args, **kwargs: beam(*args, **kwargs, width=3, n_best=3, alpha=0.6),
    "sample": lambda *args, **kwargs: sample(*args, **kwargs, n=3, seed=5),
}


@pytest.mark.parametrize("decode", DECODERS.values(), ids=DECODERS)
def test_the_same_whatever_the_batch_and_the_padding(decode):
    model = AttentiveRNN(9, 9, d=6, hidden=8, cell="gru", score=regard.scores.Bilinear(8, 8)).double()
    with torch.no_grad():  # so that answers differ, and end at different times
        for weight in (model.word.weight, model.feed_forward.weight, model.embedding.weight):
            weight.normal_()
        model.word.bias[EOS] += 1.5
    lengths = torch.tensor([5, 1, 3, 4, 2, 5, 3, 1])
    source = torch.randint(2, 9, (8, 5))
    options = {"bos": BOS, "eos": EOS, "max_length": 12}
    together = decode(model, source, lengths, **options).n_best
    assert len({len(answer.tokens) for answers in together for answer in answers}) > 1
    assert len({tuple(answers[0].tokens) for answers in together}) > 1
    wider = torch.cat([source, torch.randint(2, 9, (8, 3))], 1).flip(0)
    assert_same(decode(model, wider, lengths.flip(0), **options).n_best[::-1], together)
    for i, length in enumerate(lengths.tolist()):
        assert_same(decode(model, source[i : i + 1, :length], None, **options).n_best, together[i : i + 1])


def assert_same(a: list[list[Hypothesis]], b: list[list[Hypothesis]]) -> None:
    assert [[h.tokens for h in answers] for answers in a] == [[h.tokens for h in answers] for answers in b]
    assert [h.score for answers in a for h in answers] == pytest.approx([h.score for answers in b for h in answers])


def test_each_input_may_begin_with_its_own_token():
    model = AttentiveRNN(9, 9, d=6, hidden=8).double()
    source = torch.randint(2, 9, (2, 4))
    each = greedy(model, source, bos=torch.tensor([3, 5]), eos=EOS, max_length=6).tokens
    alone = [greedy(model, source[i : i + 1], bos=bos, eos=EOS, max_length=6).tokens[0] for i, bos in enumerate((3, 5))]
    assert each == alone


def test_decoding_is_evaluation_and_leaves_the_mode_alone():
    model = AttentiveRNN(9, 9, d=6, hidden=8, dropout=0.9)
    model.encoder.eval()
    source = torch.randint(2, 9, (2, 4))
    assert greedy(model, source, bos=0, eos=1) == greedy(model, source, bos=0, eos=1)
    assert (model.training, model.encoder.training, model.dropout.training) == (True, False, True)


def test_no_inputs():
    model = AttentiveRNN(9, 9, d=6, hidden=8)
    for decode in (greedy, beam, sample):
        assert decode(model, torch.zeros(0, 4, dtype=torch.long), bos=0, eos=1).n_best == []


@pytest.mark.parametrize(
    ("decode", "wrong", "message"),
    [
        (beam, {"width": 2, "n_best": 3}, "width=2, n_best=3; expected 1 <= n_best <= width"),
        (beam, {"alpha": -1.0}, "alpha=-1.0; expected 0 or more"),
        (greedy, {"max_length": 0}, "max_length=0; expected 1 or more"),
        (greedy, {"prefix": [[], []]}, "prefix is for 2 inputs, source has B=1"),
        (greedy, {"bos": torch.tensor([0, 0])}, r"bos has shape \(2,\), source has B=1"),
        (sample, {"temperature": 0.0}, "temperature=0.0; expected more than 0"),
        (sample, {"top_p": 0.0}, "top_p=0.0; expected"),
        (sample, {"n": 0}, "n=0; expected 1 or more"),
    ],
)
def test_refusals(decode, wrong, message):
    with pytest.raises(regard.InputError, match=message):
        decode(Table(TRAP), ONE, **{"bos": BOS, "eos": EOS, **wrong})
