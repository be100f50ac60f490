"""All tasks by name, and from a configuration and its data to a task that is ready to train."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from regard.core.shapes import InputError
from regard.nn.embeddings import Pretrained
from regard.nn.vectors import Vectors, read_vectors
from regard.tasks import tokenizers
from regard.tasks.classify import Classify
from regard.tasks.config import Run
from regard.tasks.denoise import Denoise
from regard.tasks.fill import Fill
from regard.tasks.generate import Generate
from regard.tasks.tag import Tag
from regard.tasks.task import Task
from regard.tasks.tokenizers import PAD, SPECIAL, Tokenizer
from regard.tasks.translate import Translate

logger = logging.getLogger(__name__)

TASKS: dict[str, type[Task]] = {task.name: task for task in (Tag, Classify, Translate, Fill, Denoise, Generate)}
READ_BY_VECTORS = ("tag", "classify", "fill")
MOST_LABELS = 1000


def resolved(run: Run) -> Run:
    """The run with the kinds that suit its task filled in."""
    task = TASKS[run.task]
    if run.data.vectors and run.task not in READ_BY_VECTORS:
        raise InputError(f"data.vectors: {run.task} does not read by vectors; {', '.join(READ_BY_VECTORS)} do")
    if len(run.data.vectors) > 1:
        raise InputError(f"data.vectors: {len(run.data.vectors)} files; expected one")
    if run.model.letters and run.task != "tag":
        raise InputError(f"model.letters: {run.task} does not read words by their letters; tag does")
    kind = run.data.tokenizer or ("word" if run.data.vectors or run.model.letters else task.tokens)
    if run.data.vectors and kind != "word":
        raise InputError(f"data.vectors are of words, but data.tokenizer={kind!r}; take 'word', or no vectors")
    return replace(
        run, data=replace(run.data, tokenizer=kind), model=replace(run.model, kind=run.model.kind or task.kind)
    )


def prepare(run: Run) -> tuple[Task, Pretrained | None]:
    """One pass over the training data: its labels, and a tokenizer that learned from it. The same data give the same
    task, in every process."""
    task = TASKS[run.task]
    labels: Counter[str] = Counter()
    vectors = read_vectors(run.data.vectors[0]) if run.data.vectors else None

    def texts() -> Iterator[Any]:
        for example in task.read(run.data.train):
            labels.update(task.labels_of(example))
            yield from task.texts(example)
        if vectors is not None:
            yield from ([word] for word in vectors.words)

    assert run.data.tokenizer is not None
    tokenizer = tokenizers.train(run.data.tokenizer, texts(), run.data.vocabulary, run.data.lowercase)
    if len(labels) > MOST_LABELS:
        raise InputError(
            f"{run.data.train[0]}: more than {MOST_LABELS:,} different labels, such as {next(iter(labels))!r}; "
            f"is the label in the right column?"
        )
    if task.labelled and len(labels) < 2:
        raise InputError(f"{run.data.train[0]}: all labels are {next(iter(labels), '')!r}; expected two or more")
    embedding = None if vectors is None else _embedding(tokenizer, vectors, run)
    shape = None if embedding is None else (embedding.weight.shape[0], embedding.weight.shape[1])
    return task(tokenizer, run.model, run.data.longest, sorted(labels), shape, run.data.mask), embedding


def restore(name: str, tokenizer: Tokenizer, state: dict[str, Any], model: Any) -> Task:
    """The task of a model's folder."""
    vectors = state["vectors"]
    shape = None if vectors is None else (int(vectors[0]), int(vectors[1]))
    return TASKS[name](tokenizer, model, int(state["longest"]), state["labels"], shape, float(state["noise"]))


def _embedding(tokenizer: Tokenizer, vectors: Vectors, run: Run) -> Pretrained:
    """A row for each piece: the vector of the word, also where only its lower case has one."""
    known = set(vectors.words)
    words = [tokenizer.piece(id) for id in range(len(tokenizer))]
    words = [word if word in known else word.lower() for word in words[len(SPECIAL) :]]
    with torch.random.fork_rng(devices=[]):  # rows of words without a vector are drawn
        torch.manual_seed(run.seed)
        return Pretrained.from_vectors(
            [*SPECIAL, *words], vectors, run.data.frozen, unknown="normal", padding_index=PAD
        )
