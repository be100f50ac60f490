"""Learn to reverse a sequence of 1 to 20 symbols: an RNN without attention (H1), with attention (H2), and
a Transformer (H3). Prints how many unseen sequences of each length come out exactly right.

    python -m benchmarks.reverse
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.models.decoding import greedy
from regard.models.rnn import AttentiveRNN, RNNEncoderDecoder
from regard.scores import Bilinear

PAD, BOS, EOS, FIRST = 0, 1, 2, 3
SYMBOLS, LONGEST, VOCABULARY = 20, 20, 23
LENGTHS = (1, 2, 3, 5, 8, 10, 12, 15, 18, 20)


def transformer() -> nn.Module:
    from regard.models.transformer import Transformer

    return Transformer(VOCABULARY, VOCABULARY, d=128, heads=4, layers=2, hidden=256)


def attentive() -> nn.Module:
    return AttentiveRNN(VOCABULARY, VOCABULARY, 64, 128, cell="gru", score=Bilinear(128, 128))


MODELS = (
    ("H1 GRU, no attention", lambda: RNNEncoderDecoder(VOCABULARY, VOCABULARY, 64, 128, cell="gru"), 3e-3, 128),
    ("H2 GRU, attention", attentive, 3e-3, 128),
    ("H3 Transformer", transformer, 1e-3, 64),
)


def sequences(lengths: Tensor, unseen: bool) -> Tensor:
    """Random symbols, padded. One sequence in ten, chosen by its content, is never trained on."""
    source = torch.randint(FIRST, VOCABULARY, (len(lengths), LONGEST))
    source[torch.arange(LONGEST) >= lengths[:, None]] = PAD
    wrong = is_unseen(source) != unseen
    if wrong.any():
        source[wrong] = sequences(lengths[wrong], unseen)
    return source


def is_unseen(source: Tensor) -> Tensor:
    weights = torch.arange(1, LONGEST + 1) ** 2 * 7 + 1
    return (source * weights).sum(-1) % 10 == 0


def reversed_(source: Tensor, lengths: Tensor) -> Tensor:
    """BOS, the symbols from last to first, EOS, padding."""
    target = torch.full((len(source), LONGEST + 2), PAD)
    target[:, 0] = BOS
    place = lengths[:, None] - 1 - torch.arange(LONGEST)  # which symbol comes when
    target[:, 1:-1] = torch.where(place >= 0, source.gather(1, place.clamp(min=0)), PAD)
    return target.scatter(1, lengths[:, None] + 1, EOS)


def train(model: nn.Module, minutes: float, lr: float, batch: int, warmup: int = 200) -> tuple[int, float]:
    """Until the minutes are over, or until 2,000 unseen sequences in a row come out right."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    start, step = time.perf_counter(), 0
    while (gone := time.perf_counter() - start) < 60 * minutes:
        done = gone / (60 * minutes)  # the learning rate falls to 0 as the time runs out
        optimizer.param_groups[0]["lr"] = lr * min(1, (step + 1) / warmup, 2 * (1 - done))
        lengths = torch.randint(1, LONGEST + 1, (batch,))
        source = sequences(lengths, unseen=False)
        target = reversed_(source, lengths)
        logits = model(source, target[:, :-1], lengths)
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 100 == 0:
            print(f"\r  step {step}, loss {loss.item():.4f}, {gone:.0f} s ", end="", flush=True)
            if loss < 0.003 and accuracy(model, torch.randint(1, LONGEST + 1, (500,))) == 1:
                break
    print("\r" + " " * 60, end="\r")
    return step, time.perf_counter() - start


def accuracy(model: nn.Module, lengths: Tensor) -> float:
    """The share of unseen sequences that come out exactly right, end of sentence included."""
    source = sequences(lengths, unseen=True)
    found = greedy(model, source, lengths, bos=BOS, eos=EOS, max_length=LONGEST + 2).tokens
    wanted = [row[:n].flip(0).tolist() for row, n in zip(source, lengths.tolist(), strict=True)]
    return sum(f == w for f, w in zip(found, wanted, strict=True)) / len(wanted)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--minutes", type=float, default=4.5, help="at most, for each model")
    options.add_argument("--threads", type=int, default=2)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    print(f"{'':<22}" + "".join(f"{n:>7}" for n in LENGTHS) + f"{'all':>7}{'steps':>7}{'seconds':>9}")
    for name, make, lr, batch in MODELS:
        torch.manual_seed(args.seed)
        model = make()
        steps, seconds = train(model, args.minutes, lr, batch)
        each = [accuracy(model, torch.full((500,), n)) for n in LENGTHS]
        whole = accuracy(model, torch.randint(1, LONGEST + 1, (2000,)))
        cells = "".join(f"{share:>7.1%}" for share in (*each, whole))
        print(f"{name:<22}{cells}{steps:>7}{seconds:>9.0f}", flush=True)


if __name__ == "__main__":
    main()
