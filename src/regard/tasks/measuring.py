"""How good a model is on files it has not seen: every figure that its task has."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from regard.core.shapes import InputError
from regard.tasks import metrics
from regard.tasks.alignment import links
from regard.tasks.classify import Classify
from regard.tasks.data import Pair, read_pair_table
from regard.tasks.files import PathLike
from regard.tasks.model import Trained
from regard.tasks.task import Options
from regard.tasks.translate import TAG, Translate

TOGETHER = 128  # texts that are answered between two reports


@dataclass(frozen=True)
class Measured:
    figures: dict[str, Any]
    answers: list[str]  # what was written, or the label; nothing where words are labelled


def measure(
    trained: Trained,
    files: Sequence[str],
    *,
    beam: int = 4,
    to: str | None = None,
    lowercase: bool = False,
    most: int | None = None,
    separator: str | None = None,
    gold: PathLike | None = None,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Measured:
    """Loss and accuracy of all examples; BLEU and chrF of what is written; with `gold`, alignments."""
    task, network = trained.task, trained.network
    writes = isinstance(task, Translate)
    if gold is not None and not writes:
        raise InputError(f"{gold}: alignments are of translations; this model can {task.name}")
    if gold is not None and task.model.kind == "rnn":
        raise InputError(f"{gold}: a model of kind 'rnn' has no attention, so there is nothing to align by")
    examples = list(islice(_read(trained, files, to, separator), most))
    items = list(map(task.encode, examples))
    fitting = [item for item in items if len(item) <= task.longest]
    found: dict[str, Any] = {"examples": len(examples)}
    if len(fitting) < len(items):
        found["left out"] = len(items) - len(fitting)  # of loss and accuracy: longer than the model reads
    found |= task.evaluate(network, fitting)
    found["perplexity"] = math.exp(min(found["loss"], 700))
    options, answers = Options(beam=beam), list[str]()
    if writes or isinstance(task, Classify):
        texts = [example.source if isinstance(example, Pair) else example.text for example in examples]
        for start in range(0, len(texts), TOGETHER):
            report(start, len(texts))
            answers += [answer.output for answer in trained.answer(texts[start : start + TOGETHER], options)]
    if writes:
        found |= metrics.translation(answers, [example.target for example in examples], lowercase)
    else:
        found |= task.score(network, examples, options)
    if gold is not None and isinstance(task, Translate):
        truth = metrics.read_gold(gold)[:most]
        if len(truth) != len(examples):
            raise InputError(
                f"{gold}: links of {len(truth)} pairs, but {files[0]} has {len(examples)}; expected as many"
            )
        found["alignment error"] = metrics.alignment_error([links(task, network, pair) for pair in examples], truth)
    return Measured(found, answers)


def _read(trained: Trained, files: Sequence[str], to: str | None, separator: str | None) -> Iterator[Any]:
    task = trained.task
    labels = task.labels or None
    if not isinstance(task, Translate):
        if to is not None or separator is not None:
            raise InputError(f"--{'to' if to else 'separator'} is for translation; this model can {task.name}")
        yield from task.read(files, labels)
        return
    if separator is not None and len(files) != 1:
        raise InputError(f"--separator is for one table; {len(files)} files were given")
    pairs = read_pair_table(files[0], delimiter=separator) if separator else task.read(files, labels)
    for pair in pairs:
        source, target = pair.source.strip(" "), pair.target.strip(" ")
        if to is not None or (task.labels and not TAG.match(source)):
            source = f"<2{task.language(to)}> {TAG.sub('', source)}"
        yield Pair(source, target)
