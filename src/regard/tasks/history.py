"""How a run went: metrics.jsonl, one object a line, and a picture of the loss."""

from __future__ import annotations

import json
import logging
from io import BytesIO
from pathlib import Path
from typing import Any

from regard.core.shapes import InputError
from regard.tasks.atomic import cure, write_whole

logger = logging.getLogger(__name__)

METRICS, PICTURE = "metrics.jsonl", "loss.png"


class History:
    """Lines are added as they come. A run that goes on forgets what came after its checkpoint."""

    def __init__(self, folder: Path, step: int, writes: bool = True) -> None:
        self.folder, self.writes = folder, writes
        self.lines = [line for line in read(folder) if line["step"] <= step] if writes else []
        self._new: list[dict[str, Any]] = []
        if writes:
            text = "".join(json.dumps(line) + "\n" for line in self.lines)
            write_whole(folder / METRICS, text.encode())

    def add(self, **figures: Any) -> None:
        if self.writes:
            self._new.append({name: _short(value) for name, value in figures.items()})

    def flush(self) -> None:
        if not self.writes or not self._new:
            return
        path = self.folder / METRICS
        try:
            with open(path, "a", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in self._new)
        except OSError as error:
            raise InputError(f"{path}: not written: {error.strerror or error}; {cure(error)}") from error
        self.lines += self._new
        self._new = []

    def close(self) -> None:
        self.flush()
        if self.writes:
            draw(self.lines, self.folder / PICTURE)


def read(folder: Path) -> list[dict[str, Any]]:
    """The lines that are whole: the last one of a killed run may not be."""
    try:
        text = (folder / METRICS).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{folder / METRICS}: {error.strerror or error}; expected the figures of a run") from error
    found = []
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and type(entry.get("step")) is int:
            found.append(entry)
    return found


def draw(lines: list[dict[str, Any]], path: Path) -> None:
    """Loss by step, in training and in validation."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        logger.warning("no picture of the loss: pip install 'regard[see]'")
        return
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, label, style in (("loss", "training", "-"), ("valid loss", "validation", "o-")):
        points = [(line["step"], line[name]) for line in lines if _drawable(line["step"]) and _drawable(line.get(name))]
        if points:
            axes.plot(*zip(*points, strict=True), style, label=label, linewidth=1, markersize=4)
    axes.set_xlabel("step")
    axes.set_ylabel("loss for each word")
    if axes.lines:
        axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    png = BytesIO()
    FigureCanvasAgg(figure).print_png(png)
    write_whole(path, png.getvalue())


def _drawable(value: Any) -> bool:
    """Anybody may have written the file."""
    return type(value) in (int, float) and abs(value) < 1e15  # which NaN is not


def _short(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value
