"""With attention beats without, by more as sentences grow longer: BLEU by sentence length for an RNN without attention
(H1), with attention of every score, soft and hard (H2), and a Transformer (H3), trained on the same sentences for the
same time; beside them a dictionary, word by word.

    python -m benchmarks.story --minutes 2 --jobs 2 --picture story.png
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from regard.tasks import config, metrics, training
from regard.tasks.corpora import realiser
from regard.tasks.corpora.sampling import sentences
from regard.tasks.data import Pair, read_pair_table
from regard.tasks.task import Options
from regard.tasks.word_by_word import learn

BUCKETS = ((1, 8), (9, 16), (17, 24), (25, 32), (33, 60))  # words of the source


@dataclass(frozen=True)
class Contestant:
    name: str
    model: dict[str, Any]
    lr: float = 4e-3


def attentive(name: str, score: str, normalizer: str = "softmax") -> Contestant:
    parts = {"score": score, "normalizer": normalizer}
    return Contestant(f"H2 {name}", {"kind": "attentive", "d": 96, "bidirectional": False} | parts)


CONTESTANTS = (
    Contestant("H1 no attention", {"kind": "rnn", "d": 96, "hidden": 192, "bidirectional": False}),  # twice the state
    attentive("additive", "additive:64"),
    attentive("bilinear", "bilinear"),
    attentive("scaled dot", "scaled-dot"),
    attentive("gated", "gated"),
    attentive("gaussian", "gaussian:4"),
    attentive("additive, sparsemax", "additive:64", "sparsemax"),
    attentive("additive, hard", "additive:64", "gumbel-hard"),
    Contestant("H3 Transformer", {"kind": "transformer", "d": 96, "heads": 4, "layers": 2}, lr=2e-3),
)


def corpus(folder: Path, language: str, count: int) -> None:
    """train.tsv and test.tsv: texts of one to three sentences, of combinations that the other file does not have."""
    for split, texts in (("train", count), ("test", 600)):
        draw, meanings = random.Random(split), sentences(split, 0, 2 * texts)
        english, other = realiser("en"), realiser(language)
        lines = []
        for _ in range(texts):
            text = list(islice(meanings, draw.choice((1, 2, 3))))
            sides = [" ".join(say(meaning).text for meaning in text) for say in (english, other)]
            lines += ["\t".join(sides) + "\n"] if text else []
        (folder / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")


def train(contestant: Contestant, folder: Path, minutes: float, device: str, tokens: int) -> dict[str, Any]:
    """One model, from nothing to its BLEU in each bucket."""
    torch.set_num_threads(1)
    table = {
        "task": "translate",
        "data": {"train": [str(folder / "train.tsv")], "tokenizer": "bpe", "vocabulary": 2000, "tokens": tokens},
        "model": contestant.model,
        "optim": {"lr": contestant.lr, "warmup": 100, "label_smoothing": 0.0},
        "schedule": {"steps": 20_000, "minutes": minutes},
        "checkpoint": {"every": 100_000, "keep": 1},
        "machine": {"device": device},
    }
    began, steps = time.perf_counter(), 0

    def count(progress: training.Progress) -> None:
        nonlocal steps
        steps = progress.step

    name = contestant.name.replace(" ", "-").replace(",", "")
    trained = training.train(config.resolve(config.Run, table), folder / name, count)
    trained.to("cuda" if torch.cuda.is_available() and device != "cpu" else "cpu")
    pairs = list(read_pair_table(folder / "test.tsv"))
    answers = trained.answer([pair.source for pair in pairs], Options(beam=1))
    figures = by_length([answer.output for answer in answers], pairs)
    return {"name": contestant.name, "bleu": figures, "steps": steps, "seconds": time.perf_counter() - began}


def word_by_word(folder: Path) -> dict[str, Any]:
    """The dictionary that the story begins with, learned from the same pairs: no order, no agreement."""
    began = time.perf_counter()
    table = learn(islice(read_pair_table(folder / "train.tsv"), 1500))
    pairs = list(read_pair_table(folder / "test.tsv"))
    figures = by_length([answer.output for answer in table.answer([pair.source for pair in pairs])], pairs)
    return {"name": "word by word", "bleu": figures, "steps": 0, "seconds": time.perf_counter() - began}


def by_length(outputs: list[str], pairs: list[Pair]) -> dict[str, float | None]:
    figures: dict[str, float | None] = {}
    for low, high in BUCKETS:
        few = [(output, p.target) for output, p in zip(outputs, pairs, strict=True) if low <= words(p) <= high]
        figures[f"{low}-{high}"] = bleu(few) if few else None
    figures["all"] = bleu([(output, p.target) for output, p in zip(outputs, pairs, strict=True)])
    return figures


def words(pair: Pair) -> int:
    return len(pair.source.split())


def bleu(pairs: list[tuple[str, str]]) -> float:
    return float(metrics.translation([a for a, _ in pairs], [b for _, b in pairs])["bleu"])


def table(rows: list[dict[str, Any]]) -> str:
    names = list(rows[0]["bleu"])
    lines = [f"{'BLEU by words':<24}" + "".join(f"{name:>8}" for name in names) + f"{'steps':>8}{'seconds':>9}"]
    for row in rows:
        cells = "".join(f"{'' if value is None else format(value, '.1f'):>8}" for value in row["bleu"].values())
        lines.append(f"{row['name']:<24}{cells}{row['steps']:>8}{row['seconds']:>9.0f}")
    return "\n".join(lines)


def picture(rows: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    names = [name for name in rows[0]["bleu"] if name != "all"]
    kinds = {"H1": ("#b2182b", "-"), "H2": ("#2166ac", "--"), "H3": ("#1b7837", "-"), "wo": ("#888888", "-")}
    signs = iter("os^vDP*X")
    for row in rows:
        colour, line = kinds[row["name"][:2]]
        values = [row["bleu"][name] for name in names]
        sign = next(signs) if line == "--" else "."
        axes.plot(names, values, line, marker=sign, color=colour, label=row["name"], alpha=0.85)
    axes.set_xlabel("words in the English sentence")
    axes.set_ylabel("BLEU")
    axes.set_ylim(0, 102)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--language", default="fr")
    options.add_argument("--texts", type=int, default=20_000, help="to train on")
    options.add_argument("--minutes", type=float, default=2.0, help="of training, for each model")
    options.add_argument("--jobs", type=int, default=2, help="models trained side by side")
    options.add_argument("--tokens", type=int, default=2000, help="in a batch; a GPU takes 16,000 in the same time")
    options.add_argument("--device", default="auto")
    options.add_argument("--only", help="names of contestants, separated by semicolons; all, unless given")
    options.add_argument("--picture", type=Path, help="a file for the curves")
    options.add_argument("--json", type=Path, help="a file for the figures")
    args = options.parse_args()
    wanted = [each for each in CONTESTANTS if args.only is None or each.name in args.only.split(";")]
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as temporary, ProcessPoolExecutor(args.jobs, mp_context=context) as pool:
        folder = Path(temporary)
        corpus(folder, args.language, args.texts)
        waiting = [pool.submit(train, each, folder, args.minutes, args.device, args.tokens) for each in wanted]
        rows = [word_by_word(folder)]
        print(table(rows), flush=True)
        for result in waiting:
            rows.append(result.result())
            print(table(rows[-1:]).splitlines()[-1], flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    if args.picture:
        picture(rows, args.picture)


if __name__ == "__main__":
    main()
