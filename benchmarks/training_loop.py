"""What the training loop costs: `regard train`, whole, beside a plain loop around torch's own modules.

    python -m benchmarks.training_loop --steps 150

Both train a Transformer of the same sizes on the same batches of the same sentences, in one process, taking turns
every few steps. Ours does all that it always does (batches made ahead, clipping, metrics, the check that the loss is
finite, the progress bar's numbers); the plain loop does nothing but forward, backward, clipping and AdamW, on
batches that are ready. Tokens are those of source and target, padding included, for both.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from itertools import cycle
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.training_step import Torch
from regard.tasks import config, training
from regard.tasks.batches import Batches
from regard.tasks.catalogue import prepare, resolved
from regard.tasks.corpora import realiser
from regard.tasks.corpora.sampling import sentences
from regard.tasks.examples import IGNORED, Batch

TURN = 5  # steps


class Padded(Torch):
    """The same model, told where the padding is."""

    def loss(self, batch: Batch) -> torch.Tensor:
        there = torch.arange(batch.source.shape[1]) < batch.lengths[:, None]
        n = batch.given.shape[-1]
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        x, y = (
            self.dropout(self.position(words(tokens)))
            for words, tokens in ((self.source, batch.source), (self.target, batch.given))
        )
        states = self.layers(
            x, y, tgt_mask=mask, tgt_is_causal=True, src_key_padding_mask=~there, memory_key_padding_mask=~there
        )
        return F.cross_entropy(
            self.out(states).flatten(0, 1), batch.target.flatten(), ignore_index=IGNORED, label_smoothing=0.1
        )


def run_of(path: Path, steps: int) -> config.Run:
    table = {
        "task": "translate",
        "data": {"train": [str(path)], "vocabulary": 2000, "tokens": 2048},
        "model": {"d": 128, "heads": 4, "layers": 3, "hidden": 512, "tied": False},
        "schedule": {"steps": steps},
        "checkpoint": {"every": 10**6},
        "machine": {"device": "cpu"},
    }
    return resolved(config.resolve(config.Run, table))


def plain_steps(run: config.Run):
    """One step of the plain loop for each `next`; gives (tokens, seconds)."""
    task, _ = prepare(run)
    read = lambda: (task.encode(example) for example in task.read(run.data.train))  # noqa: E731
    batches = Batches(read, run.data.tokens, run.data.longest, run.seed)
    ready = [task.collate(items, 0) for items in batches.epoch(0)]
    torch.manual_seed(0)
    m = run.model
    model = Padded(len(task.tokenizer), m.d, m.heads, m.layers, m.hidden or 4 * m.d, run.optim.dropout).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=run.optim.lr, betas=run.optim.betas)
    for batch in cycle(ready):
        start = time.perf_counter()
        model.loss(batch).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield batch.source.numel() + batch.target.numel(), time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "train.tsv"
        meanings, sides = sentences("train", 0, 4000), [realiser("en"), realiser("fr")]
        path.write_text("".join("\t".join(say(m).text for say in sides) + "\n" for m in meanings), encoding="utf-8")
        run = run_of(path, options.steps)
        plain, ratios, speeds = plain_steps(run), [], []
        began, tokens = time.perf_counter(), 0.0

        def report(progress: training.Progress) -> None:
            """Called after each of our steps: every few, the other one takes its turn."""
            nonlocal began, tokens
            if progress.step % TURN:
                return
            ours = time.perf_counter() - began
            told = [next(plain) for _ in range(TURN)]
            other = sum(t for t, _ in told) / sum(s for _, s in told)
            mine = counted.pop() / ours
            if progress.step > 4 * TURN:  # both are warm
                ratios.append(mine / other)
                speeds.append((mine, other))
            began = time.perf_counter()

        # What a step of ours was given is only known inside: its backward passes are counted.
        counted = [0]
        inner = training.Loop._backward

        def counting(loop: training.Loop, batch: Batch, *rest: object, **more: object) -> None:
            counted[-1:] = [(counted[-1] if counted else 0) + batch.source.numel() + batch.target.numel()]
            inner(loop, batch, *rest, **more)  # pyright: ignore[reportArgumentType]

        training.Loop._backward = counting  # pyright: ignore[reportAttributeAccessIssue]
        training.train(run, Path(temporary) / "run", report)
    mine, other = (statistics.median(each) for each in zip(*speeds, strict=True))
    print(f"torch {torch.__version__}, {options.threads} threads, {len(ratios)} turns of {TURN} steps each")
    print(f"{'plain loop, nn.Transformer':<28}{other:>10,.0f} tokens/s")
    print(f"{'regard train':<28}{mine:>10,.0f} tokens/s   ratio {statistics.median(ratios):.2f} (median of the turns)")


if __name__ == "__main__":
    main()
