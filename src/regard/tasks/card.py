"""A model's README.md: what it is, from what data, how good, and what it cannot do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.tasks.atomic import write_whole
from regard.tasks.config import Run
from regard.tasks.model import CARD, Trained

USE = {
    "tag": 'regard tag "The cat sleeps." --model {}',
    "classify": 'regard classify "What a day!" --model {}',
    "translate": 'regard translate "The cat sleeps." --model {}',
    "fill": 'regard fill "The cat ____ ." --model {}',
    "denoise": 'regard denoise "The cat the sleeps." --model {}',
    "generate": 'regard generate "The cat" --model {}',
}


def write_card(folder: Path, run: Run, trained: Trained, figures: dict[str, Any], steps: int, seconds: float) -> None:
    write_whole(folder / CARD, card(folder.name, run, trained, figures, steps, seconds).encode())


def card(name: str, run: Run, trained: Trained, figures: dict[str, Any], steps: int, seconds: float) -> str:
    sizes, task = trained.task.model, trained.task
    numbers = sum(p.numel() for p in trained.network.parameters())
    known = f" Labels: {', '.join(task.labels)}." if task.labels else ""
    lines = [
        f"# {run.card.title or name}",
        "",
        f"A model for `regard {task.name}`: {sizes.kind}, {numbers:,} parameters, {len(task.tokenizer):,} pieces "
        f"({task.tokenizer.kind}).{known}",
        "",
        "```",
        USE[task.name].format(name),
        "```",
        "",
        "## Data",
        "",
        run.card.data or f"Trained on {', '.join(Path(file).name for file in run.data.train)}; nothing more was said.",
        "",
        f"Licence: {run.card.licence or 'not said'}.",
        "",
        "## Results",
        "",
        f"{steps:,} steps, {seconds:,.0f} s of training, seed {run.seed}.",
        "",
    ]
    if figures:
        lines += ["| on validation data | |", "|---|---|"]
        lines += [
            f"| {key} | {value:.4g} |" if isinstance(value, float) else f"| {key} | {value} |"
            for key, value in figures.items()
        ]
    else:
        lines += ["No validation data were given, so nothing is known about its quality."]
    lines += ["", "## Limits", ""]
    lines += [run.card.limits or f"It reads at most {task.longest} pieces at once, and knows what its data showed it."]
    return "\n".join(lines) + "\n"
