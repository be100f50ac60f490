"""Hard attention learns where to look. A table of 10 letters and their digits is read, in any order; then
one letter is asked. Only one position matters, and each trainer must find it, looking at one at a time.
Prints how often the digit is right, and how often the look fell on the letter's own position (1 in 10 by chance).

    python -m benchmarks.hard
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import Tensor
from torch.nn import functional as F

import regard
from regard.models.hard import LearnedBaseline, MovingBaseline, Reinforce
from regard.models.rnn import AttentiveRNN

SIZE, D, HIDDEN, BATCH = 10, 64, 32, 128


def tables(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Tables (count, SIZE) of words letter·SIZE + digit; targets (count, 2): the letter asked, then its
    digit, written SIZE + digit; and where the answer stands."""
    letters = torch.rand(count, SIZE).argsort(1)
    digits = torch.randint(SIZE, (count, SIZE))
    place = torch.randint(SIZE, (count, 1))
    target = torch.cat([letters.gather(1, place), SIZE + digits.gather(1, place)], 1)
    return letters * SIZE + digits, target, place[:, 0]


def model_with(normalizer: regard.normalizers.Normalizer) -> AttentiveRNN:
    """Small and with the plain cell: a larger GRU remembers the whole table, and need not look."""
    score = regard.scores.Additive(HIDDEN, HIDDEN, HIDDEN)
    return AttentiveRNN(SIZE * SIZE, 2 * SIZE, D, HIDDEN, cell="rnn", score=score, normalizer=normalizer)


def train(model: AttentiveRNN, trainer: Reinforce | None, minutes: float) -> int:
    """Until nearly every look is right, or until the minutes are over. With a trainer by REINFORCE, else
    by the usual cross-entropy, which straight-through Gumbel also takes."""
    module = model if trainer is None else trainer
    optimizer = torch.optim.Adam(module.parameters(), lr=3e-3)
    start, step = time.perf_counter(), 0
    while time.perf_counter() - start < 60 * minutes:
        source, target, _ = tables(BATCH)
        if trainer is None:
            loss = F.cross_entropy(model(source, target[:, :1])[:, 0], target[:, 1])
        else:
            loss = trainer(source, target).total
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 100 == 0 and min(evaluate(model)) > 0.97:
            break
    return step


@torch.no_grad()
def evaluate(model: AttentiveRNN, count: int = 2000) -> tuple[float, float]:
    """How often the digit is right, and how often the look is, on tables never seen."""
    model.eval()
    looks: list[Tensor] = []

    def attend(query: Tensor, key: Tensor, value: Tensor, mask: object) -> Tensor:
        parts = {"score": model.attention.score, "normalizer": regard.normalizers.Hard()}
        looks.append(regard.attention_weights(query, key, **parts)[:, 0].argmax(-1))
        return regard.attention(query, key, value, **parts)

    source, target, place = tables(count)
    answer = model(source, target[:, :1], attend=attend)[:, 0].argmax(-1)
    model.train()
    return (answer == target[:, 1]).float().mean().item(), (looks[0] == place).float().mean().item()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--minutes", type=float, default=2.0, help="at most, for each trainer")
    options.add_argument("--threads", type=int, default=2)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    print(f"{'trainer':<34}{'digit right':>12}{'look right':>12}{'steps':>8}{'seconds':>9}")
    for name, normalizer, baseline in (
        ("soft, for comparison", regard.normalizers.Softmax(), None),
        ("REINFORCE, moving baseline", regard.normalizers.Hard(), MovingBaseline()),
        ("REINFORCE, learned baseline", regard.normalizers.Hard(), LearnedBaseline(HIDDEN)),
        ("straight-through Gumbel", regard.normalizers.GumbelHard(), None),
    ):
        torch.manual_seed(args.seed)
        model = model_with(normalizer)
        trainer = None if baseline is None else Reinforce(model, baseline, beta=0.05, padding=-1)
        start = time.perf_counter()
        step = train(model, trainer, args.minutes)
        digit, look = evaluate(model)
        print(f"{name:<34}{digit:>12.1%}{look:>12.1%}{step:>8}{time.perf_counter() - start:>9.0f}", flush=True)


if __name__ == "__main__":
    main()
