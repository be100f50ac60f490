"""From a trained model to words: greedy, beam search, sampling. Driven by begin, step and select alone.

All three write until end of sentence or `max_length` tokens (one number for all inputs, or one for each), in
evaluation mode, and give each input the same answer whatever else is in the batch. The first step takes the
token `bos` (one for all, or one for each input: a language model begins with a prompt without its last token,
and bos is that token).
`prefix` forces what each answer begins with; forced tokens are part of the answer, not of its score or length.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.shapes import InputError, ShapeError, wide


class State(Protocol):
    def select(self, rows: Int[Tensor, " m"]) -> State: ...


class Stepper(Protocol):
    """What every model that writes offers."""

    def begin(self, source: Int[Tensor, "B n"], lengths: Int[Tensor, " B"] | None = None) -> State: ...

    def step(self, token: Int[Tensor, " B"], state: State) -> tuple[Float[Tensor, "B V"], State]: ...


@dataclass(frozen=True)
class Hypothesis:
    """One answer: its tokens without bos and eos, and its score."""

    tokens: list[int]
    score: float


@dataclass(frozen=True)
class Decoded:
    """For each input its answers, the best first. Greedy search gives one, sampling n in the order drawn."""

    n_best: list[list[Hypothesis]]

    @property
    def tokens(self) -> list[list[int]]:
        """The first answer to each input."""
        return [answers[0].tokens for answers in self.n_best]

    @property
    def scores(self) -> list[float]:
        return [answers[0].score for answers in self.n_best]


Prefix = Sequence[Sequence[int]] | None


def greedy(
    model: Stepper,
    source: Int[Tensor, "B n"],
    lengths: Int[Tensor, " B"] | None = None,
    *,
    bos: int | Int[Tensor, " B"],
    eos: int,
    max_length: int | Sequence[int] = 128,
    prefix: Prefix = None,
) -> Decoded:
    """The likeliest word at each step. The score is the sum of log-probabilities, end of sentence included."""
    return _write(model, source, lengths, bos, eos, max_length, prefix, 1, lambda log_p, _: log_p.argmax(-1))


def sample(
    model: Stepper,
    source: Int[Tensor, "B n"],
    lengths: Int[Tensor, " B"] | None = None,
    *,
    bos: int | Int[Tensor, " B"],
    eos: int,
    max_length: int | Sequence[int] = 128,
    prefix: Prefix = None,
    n: int = 1,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    seed: int | None = None,
) -> Decoded:
    """Words drawn from softmax(logits / temperature), of the `top_k` likeliest words, and of the fewest
    whose probabilities sum to `top_p`. Scores are the model's own log-probabilities, nothing left out.

    Draw j of step t is a function of (seed, j, t) alone, not of the place in the batch: two equal inputs
    get equal answers, and several different ones come from `n`.
    """
    if not temperature > 0:
        raise InputError(f"temperature={temperature}; expected more than 0 (towards 0 is greedy)")
    if (top_k is not None and top_k < 1) or not 0 < top_p <= 1:
        raise InputError(f"top_k={top_k}, top_p={top_p}; expected top_k of 1 or more and 0 < top_p <= 1")
    if n < 1:
        raise InputError(f"n={n}; expected 1 or more draws")
    generator = torch.Generator()  # on the CPU: the same draws on every device
    generator.manual_seed(int(torch.randint(2**62, ())) if seed is None else seed)

    def draw(log_p: Float[Tensor, "R V"], draws: Int[Tensor, " R"]) -> Int[Tensor, " R"]:
        log_p = log_p.double()
        uniform = torch.rand(n, log_p.shape[-1], generator=generator, dtype=torch.float64)
        gumbel = -(-uniform.clamp(min=1e-300).log()).log()  # the largest of log p + gumbel is one draw from p
        kept = kept_words(log_p / temperature, top_k, top_p)
        return (kept + gumbel.to(kept.device)[draws]).argmax(-1)

    return _write(model, source, lengths, bos, eos, max_length, prefix, n, draw)


def kept_words(logits: Float[Tensor, "R V"], top_k: int | None, top_p: float) -> Float[Tensor, "R V"]:
    """-inf for all but the k likeliest words, then for all but the fewest that reach probability p."""
    ordered, words = logits.sort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        ordered[:, top_k:] = float("-inf")
    if top_p < 1:
        before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)  # probability of all likelier words
        ordered = ordered.masked_fill(before >= top_p, float("-inf"))
    return torch.empty_like(logits).scatter(-1, words, ordered)


Choose = Callable[[Float[Tensor, "R V"], Int[Tensor, " R"]], Int[Tensor, " R"]]  # (log p, number of the draw) -> word


@torch.no_grad()
def _write(
    model: Stepper,
    source: Tensor,
    lengths: Tensor | None,
    bos: int | Tensor,
    eos: int,
    max_length: int | Sequence[int],
    prefix: Prefix,
    n: int,
    choose: Choose,
) -> Decoded:
    """n answers for each input, side by side as rows of one batch; a row leaves when it has ended."""
    with _evaluating(model):
        answers: list[list[int]] = [[] for _ in range(len(source) * n)]
        scores = [0.0] * len(answers)
        forced = _forced(prefix, len(source))
        rows = torch.arange(len(answers), device=source.device)  # the rows still writing
        if len(rows) == 0:
            return Decoded([])
        state = model.begin(source, lengths).select(rows // n)
        token = _first(bos, source)[rows // n]
        total = torch.zeros(len(rows), dtype=torch.float64, device=source.device)
        ends = torch.tensor(_ends(max_length, forced), device=source.device)
        for t in range(int(ends.max())):
            logits, state = model.step(token, state)
            log_p = wide(logits).log_softmax(-1)
            log_p = _only_forced(log_p, forced, (rows // n).tolist(), t)
            token = choose(log_p, rows % n)
            total = total + log_p.gather(-1, token[:, None])[:, 0].double()
            for row, word in zip(rows.tolist(), token.tolist(), strict=True):
                answers[row].append(word)
            going = (token != eos) & (t + 1 < ends[rows // n])
            for row, score in zip(rows[~going].tolist(), total[~going].tolist(), strict=True):
                scores[row] = score
            if not going.all():
                rows, token, total = rows[going], token[going], total[going]
                if len(rows) == 0:
                    break
                state = state.select(going.nonzero()[:, 0])
        found = [Hypothesis(_without(eos, a), s) for a, s in zip(answers, scores, strict=True)]
        return Decoded([found[i : i + n] for i in range(0, len(found), n)])


@torch.no_grad()
def beam(
    model: Stepper,
    source: Int[Tensor, "B n"],
    lengths: Int[Tensor, " B"] | None = None,
    *,
    bos: int | Int[Tensor, " B"],
    eos: int,
    max_length: int | Sequence[int] = 128,
    prefix: Prefix = None,
    width: int = 4,
    n_best: int = 1,
    alpha: float = 0.0,
) -> Decoded:
    """The `n_best` answers found by keeping the `width` likeliest beginnings at each step.

    An answer's score is the sum of its log-probabilities over ((5 + length) / 6)^alpha, end of sentence
    counted in both: alpha = 0 prefers short answers, 1 nearly the mean per word. An input is done when no
    beginning can still become one of its n best. Answers cut off at max_length stand after all that ended.
    """
    if n_best < 1 or width < n_best:
        raise InputError(f"width={width}, n_best={n_best}; expected 1 <= n_best <= width")
    if alpha < 0:
        raise InputError(f"alpha={alpha}; expected 0 or more")
    with _evaluating(model):
        if len(source) == 0:
            return Decoded([])
        device = source.device
        forced = _forced(prefix, len(source))
        ends = _ends(max_length, forced)
        ended: list[list[Hypothesis]] = [[] for _ in forced]  # best first, at most n_best
        inputs = torch.arange(len(source), device=device)  # the inputs still searched
        state = _spread(model.begin(source, lengths), inputs, width)
        token = _first(bos, source)[:, None].expand(-1, width)  # I width
        # All beams begin alike, so only the first may go on.
        total = torch.full((len(source), width), float("-inf"), dtype=torch.float64, device=device)
        total[:, 0] = 0.0
        words = torch.empty(len(source), width, 0, dtype=torch.long, device=device)  # I width t
        t = 0
        while len(inputs):
            logits, state = model.step(token.reshape(-1), state)
            names = inputs.tolist()
            log_p = wide(logits).log_softmax(-1)
            log_p = _only_forced(log_p, forced, [i for i in names for _ in range(width)], t)
            V = log_p.shape[-1]
            # Each beginning can end in one way only: of 2·width candidates, width or more go on. They are among the
            # 2·width likeliest words of each beginning.
            log_p, token = (each.unflatten(0, (-1, width)) for each in log_p.topk(min(2 * width, V)))  # I width k
            candidates = (total[..., None] + log_p.double()).flatten(1)  # I width·k
            total, best = candidates.topk(min(2 * width, width * V), dim=-1)
            parent, token = best // log_p.shape[-1], token.flatten(1).gather(-1, best)
            t += 1

            is_end = (token == eos) & (total > float("-inf"))
            is_end[:, width:] = False  # to end it must be among the width likeliest, like all others
            for place, k in is_end.nonzero().tolist():
                i = names[place]
                sentence = words[place, parent[place, k]].tolist()
                score = float(total[place, k]) / penalty(t - len(forced[i]), alpha)
                _keep(ended[i], Hypothesis(sentence, score), n_best)

            rank = torch.arange(token.shape[-1], device=device) + token.shape[-1] * (token == eos)
            going = rank.argsort(-1)[:, :width]  # the best that have not ended
            total = total.masked_fill(token == eos, float("-inf")).gather(-1, going)
            parent, token = parent.gather(-1, going), token.gather(-1, going)
            if total.shape[-1] < width:
                raise InputError(f"width={width} needs a vocabulary of 2 words or more, the model has {V}")
            before = words.gather(1, parent[..., None].expand(-1, -1, words.shape[-1]))
            words = torch.cat([before, token[..., None]], -1)

            stay = []
            for place, i in enumerate(names):
                left, most = ends[i], ends[i] - len(forced[i])
                hope = float(total[place, 0]) / penalty(most, alpha)  # what the best could still reach
                full = len(ended[i]) == n_best and ended[i][-1].score >= hope
                if t < left and not full and hope > float("-inf"):
                    stay.append(place)
                elif t >= left:
                    cut = zip(words[place].tolist(), total[place].tolist(), strict=True)
                    cut = [Hypothesis(w, s / penalty(most, alpha)) for w, s in cut if s > float("-inf")]
                    ended[i] += cut[: n_best - len(ended[i])]
            here = torch.tensor(stay, dtype=torch.long, device=device)
            rows = (here[:, None] * width + parent[here]).reshape(-1)
            inputs, total, token, words = inputs[here], total[here], token[here], words[here]
            if len(inputs):
                state = state.select(rows)
        return Decoded(ended)


def _spread(state: Any, inputs: Int[Tensor, " I"], width: int) -> Any:
    """Each input's state `width` times, side by side. What all of them read may stay one: from here on rows that are
    selected keep the beams of an input together."""
    if hasattr(state, "spread"):
        return state.spread(inputs, width)
    return state.select(inputs.repeat_interleave(width))


def penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^alpha: 1 for one word, and growing with the length."""
    return ((5 + length) / 6) ** alpha


def _keep(best: list[Hypothesis], new: Hypothesis, n: int) -> None:
    """Put it in its place, equal scores in the order they were found."""
    best.append(new)
    best.sort(key=lambda hypothesis: -hypothesis.score)
    del best[n:]


def _without(eos: int, tokens: list[int]) -> list[int]:
    return tokens[:-1] if tokens and tokens[-1] == eos else tokens


def _first(bos: int | Tensor, source: Tensor) -> Int[Tensor, " B"]:
    """The token that the first step takes, for each input."""
    if isinstance(bos, Tensor):
        if bos.shape != source.shape[:1]:
            raise ShapeError(
                f"bos has shape {tuple(bos.shape)}, source has B={len(source)}; expected one token or ({len(source)},)"
            )
        return bos.to(source.device)
    return torch.full((len(source),), bos, device=source.device)


def _ends(max_length: int | Sequence[int], forced: list[list[int]]) -> list[int]:
    """How many tokens each answer may have, with those that are forced."""
    most = [max_length] * len(forced) if isinstance(max_length, int) else list(max_length)
    if len(most) != len(forced):
        raise ShapeError(f"max_length is for {len(most)} inputs, source has B={len(forced)}; expected one for each")
    if min(most, default=1) < 1:
        raise InputError(f"max_length={max_length}; expected 1 or more")
    return [len(words) + longest for words, longest in zip(forced, most, strict=True)]


def _forced(prefix: Prefix, inputs: int) -> list[list[int]]:
    if prefix is None:
        return [[] for _ in range(inputs)]
    if len(prefix) != inputs:
        raise ShapeError(f"prefix is for {len(prefix)} inputs, source has B={inputs}; expected one list for each")
    return [[int(word) for word in words] for words in prefix]


def _only_forced(log_p: Float[Tensor, "R V"], forced: list[list[int]], inputs: list[int], t: int) -> Tensor:
    """Where a word is forced it is certain, and costs nothing; where not, as it was."""
    places = [(row, forced[i][t]) for row, i in enumerate(inputs) if t < len(forced[i])]
    if places:
        rows, words = torch.tensor(places, device=log_p.device).T
        log_p = log_p.index_fill(0, rows, float("-inf"))
        log_p[rows, words] = 0.0
    return log_p


@contextlib.contextmanager
def _evaluating(model: object) -> Iterator[None]:
    """Evaluation mode, and each module's own mode back afterwards."""
    modes = [(module, module.training) for module in model.modules()] if isinstance(model, nn.Module) else []
    for module, _ in modes:
        module.training = False
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
