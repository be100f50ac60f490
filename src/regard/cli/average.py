"""regard average: the mean of a run's last checkpoints, as a model of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.core.shapes import InputError


def average(
    run: Annotated[Path, typer.Argument(help="The folder of a run")],
    out: Annotated[Path, typer.Option(help="The new model's folder")],
    last: Annotated[int, typer.Option(min=2, help="Of so many checkpoints")] = 3,
) -> None:
    """Average the weights of a run's last checkpoints: often better than any one of them, and free.

    regard average en-fr --last 3 --out en-fr-mean

    A run keeps as many as checkpoint.keep says (3), one each checkpoint.every steps.
    """
    from regard.tasks import checkpoints, model
    from regard.tasks.averaging import mean_of
    from regard.tasks.training import CHECKPOINTS

    task = model.read_task(run)
    steps = checkpoints.steps(run / CHECKPOINTS)
    if len(steps) < last:
        there = f"{len(steps)} of the {last} checkpoints" + (f" (steps {', '.join(map(str, steps))})" if steps else "")
        cure = f"give --last {len(steps)}, or " if len(steps) > 1 else ""
        raise InputError(
            f"{run / CHECKPOINTS}: {there}; {cure}train with checkpoint.keep={last} and a smaller checkpoint.every"
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: not empty; expected a new folder")
    network = task.network(embedding=model.blank(task))
    network.load_state_dict(mean_of(run / CHECKPOINTS, last))
    card = run / model.CARD
    about = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else f"# {out.name}\n"
    note = f"\nThese weights are the mean of the checkpoints at steps {', '.join(map(str, steps[-last:]))}; figures above are of the run.\n"
    model.save(out, model.Trained(task, network.eval(), out), card=about + note)
    print(f"{out}: the mean of steps {', '.join(map(str, steps[-last:]))} of {run}")
