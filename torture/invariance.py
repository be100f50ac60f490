"""What must not matter: padding on either side, the rest of the batch, the order of rows, a cache.

Calls: every score and normalizer on every backend, a sequence alone beside one that is padded left or right in a batch
of others, in another order. Models: the logits of every network that the library ships (small ones, trained on the
spot, where it ships none for a task), each text alone, among others, in another order, and step by step with a cache
beside all at once. Differences are shares of the greatest number. Answers: what these models say to 1,000 texts, one
by one, all together, and in another order; not one may change.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from regard import BackendError, attention, masks, pretrained
from regard.dispatch import BACKENDS
from regard.tasks import corpora
from regard.tasks import model as models
from regard.tasks.corpora.sampling import sentences
from regard.tasks.examples import Batch, Item, lengths_of, padded
from regard.tasks.fill import Fill
from regard.tasks.generate import Generate
from regard.tasks.model import Trained
from regard.tasks.tag import Tag, members
from regard.tasks.task import Answer
from regard.tasks.tokenizers import BOS, EOS, MASK
from regard.tasks.words import words_of
from regard.tasks.writing import Writing
from tests.cli.learned import DATA, data_of, learned
from tests.mechanisms import HEADS, NORMALIZERS, SCORES, D, normalizer, score
from torture.progress import track
from torture.table import Figure

NAME = "invariance"
CLOSE, TEXTS = 1e-5, 1000
BAR = f"float32 ≤ {CLOSE:g}, 0 changed outputs in {TEXTS:,} texts"

NOISY = ("gumbel hard",)  # what is drawn depends on the place in the batch; in evaluation it is Hard
PLACED = ("alibi", "relative bias", "soft cap, biased additive")  # scores that look at positions


def apart(a: Tensor, b: Tensor) -> float:
    """The greatest difference as a share of the greatest number; infinite where one of them is no number."""
    if not (a.isfinite().all() and b.isfinite().all()):
        return torch.inf
    return float((a - b).abs().max() / b.abs().max().clamp(min=1)) if b.numel() else 0.0


# Calls


@torch.no_grad()
def of_calls(device: str, every: int) -> Iterator[tuple[str, float]]:
    lengths = [7, 1, 12, 5]
    order = torch.tensor([2, 0, 3, 1])
    pairs = [(s, n) for s in SCORES for n in NORMALIZERS if n.name not in NOISY]
    for of_score, of_normalizer in pairs[::every]:
        s, n = score(of_score, dtype=torch.float32), normalizer(of_normalizer, dtype=torch.float32)
        s, n = (part.to(device) if isinstance(part, nn.Module) else part for part in (s, n))
        generator = torch.Generator().manual_seed(1)
        rows = [[torch.randn(HEADS, m, D, generator=generator).to(device) for _ in range(3)] for m in lengths]
        sides = ("right",) if of_score.name in PLACED else ("right", "left")
        for backend in BACKENDS:
            call = partial(attention, score=s, normalizer=n, backend=backend)
            try:
                alone = [call(*row) for row in rows]
                for side in sides:
                    together = [beside([row[part] for row in rows], side) for part in range(3)]
                    real = torch.tensor(lengths, device=device)
                    found = call(*together, mask=masks.padding(real, side=side))
                    turned = call(*(x[order] for x in together), mask=masks.padding(real[order], side=side))
                    for place, out in enumerate(alone):
                        at = slice(0, lengths[place]) if side == "right" else slice(12 - lengths[place], None)
                        name = f"{of_score} × {of_normalizer}, {backend}, padding {side}"
                        yield name, apart(found[place, :, at], out)
                        yield f"{name}, rows in another order", apart(turned[order.argsort()[place], :, at], out)
            except BackendError:  # a backend that does not know these parts
                continue


def beside(rows: list[Tensor], side: str) -> Tensor:
    """Sequences of different lengths as one tensor; what pads them is far from 0."""
    most = max(x.shape[-2] for x in rows)
    wide = []
    for x in rows:
        fill = x.new_full((*x.shape[:-2], most - x.shape[-2], x.shape[-1]), 37.0)
        wide.append(torch.cat([x, fill] if side == "right" else [fill, x], dim=-2))
    return torch.stack(wide)


# Models


def shipped() -> dict[str, Trained]:
    """Every folder once."""
    folders = {one.folder: name for name, one in pretrained.names().items()}
    return {name: models.load(folder) for folder, name in folders.items()}


def every_task() -> dict[str, Trained]:
    found = shipped()
    there = {of.task.name for of in found.values()}
    return found | trained(tuple(task for task in DATA if task not in there))


def trained(tasks: tuple[str, ...]) -> dict[str, Trained]:
    return {f"{task}, small": models.load(learned(task)) for task in tasks}


def texts_for(of: Trained, count: int) -> list[str]:
    """English sentences for what is shipped; words of its data, in any order, for what is small."""
    chance = random.Random(0)
    if of.path.parent.joinpath("data.tsv").exists():
        known = sorted({word for line in data_of(of.path).read_text().split("\n") for word in line.split() if word})
        found = [" ".join(chance.choices(known, k=chance.randint(1, 12))) for _ in range(count)]
    else:
        meanings = sentences("test", 0, count)
        found = [corpora.realiser(corpora.SOURCE)(meaning).text for meaning in meanings]
    if of.task.labels and of.task.name == "translate":
        found = [f"<2{chance.choice(of.task.labels)}> {text}" for text in found]
    if of.task.name == "fill":
        found = [blanked(text.split(), chance) for text in found]
    if of.task.name == "generate":
        found = [" ".join(text.split()[: chance.randint(0, 4)]) for text in found]
    return found


def blanked(words: list[str], chance: random.Random) -> str:
    words[chance.randrange(len(words))] = "___"
    return " ".join(words)


def item_of(of: Trained, text: str, answer: Answer) -> Item:
    """What the network reads, and writes, for this answer."""
    if isinstance(of.task, Tag):
        encoded = of.task.tokenizer.encode_words(words_of(text))
        return Item(encoded.ids, (0,) * len(encoded.words), members(encoded))
    if isinstance(of.task, Fill):
        return Item((BOS, *answer.source, EOS), ())
    if isinstance(of.task, Generate):
        return Item((*answer.source, *answer.target), ())
    return Item(answer.source, answer.target or (0,))


@torch.no_grad()
def logits_of(of: Trained, items: list[Item]) -> list[Tensor]:
    """For each text, all that the network says of it."""
    device = next(of.network.parameters()).device
    if isinstance(of.task, Fill):  # which hides words at random in training
        rows = [item.source for item in items]
        source = padded(rows).to(device)
        found = of.network(source, lengths_of(rows).to(device), source == MASK)
        return list(found.split([row.count(MASK) for row in rows]))
    batch = collated(of, items).to(device)
    found, _ = of.task.logits(of.network, batch)
    if found.ndim == 2:
        return list(found)
    return [row[:m] for row, m in zip(found, written(of, items), strict=True)]


def collated(of: Trained, items: list[Item]) -> Batch:
    """As it is read; in training, denoising damages it first."""
    collate = Writing.collate if isinstance(of.task, Writing) else type(of.task).collate
    return collate(of.task, items, 0)  # type: ignore[arg-type]


def written(of: Trained, items: list[Item]) -> list[int]:
    """How many rows of logits belong to each text."""
    if isinstance(of.task, Tag):
        return [len(item.target) for item in items]
    return [len(item.source if isinstance(of.task, Generate) else item.target) + 1 for item in items]


@torch.no_grad()
def stepped(of: Trained, items: list[Item]) -> list[Tensor]:
    """The same logits, a word at a time with a cache; a text that is continued has a beginning of its own length."""
    device = next(of.network.parameters()).device
    network: Any = of.network
    batch = collated(of, items).to(device)
    counts = written(of, items)
    if isinstance(of.task, Writing):
        state = network.begin(batch.source, batch.lengths)
        given, begun = batch.given, [0] * len(items)
    else:
        begun = [count // 2 for count in counts]
        prompts = [row[:n].tolist() for row, n in zip(batch.source, begun, strict=True)]
        state = network.begin(padded(prompts).to(device), lengths_of(prompts).to(device))
        given = padded([row[n:].tolist() for row, n in zip(batch.source, begun, strict=True)]).to(device)
    assert given is not None
    found = []
    for token in given.unbind(-1):
        logits, state = network.step(token, state)
        found.append(logits)
    together = torch.stack(found, dim=1)
    return [row[: count - n] for row, count, n in zip(together, counts, begun, strict=True)]


def of_model(name: str, of: Trained, texts: list[str]) -> Iterator[tuple[str, float]]:
    answers = of(texts)
    items = [item_of(of, text, answer) for text, answer in zip(texts, answers, strict=True)]
    # A text of nothing gives the network nothing to read or to say.
    items = [
        item for item in items if item.source and (not isinstance(of.task, Tag) or len(item.source) <= of.task.longest)
    ]
    alone = [logits_of(of, [item])[0] for item in items]
    order = torch.randperm(len(items), generator=torch.Generator().manual_seed(0)).tolist()
    together, turned = logits_of(of, items), logits_of(of, [items[i] for i in order])
    for place, i in enumerate(order):
        yield f"{name}, alone or in a batch", apart(together[i], alone[i])
        yield f"{name}, rows in another order", apart(turned[place], alone[i])
    if isinstance(of.task, Writing | Generate):
        for logits, whole in zip(stepped(of, items), alone, strict=True):
            yield f"{name}, step by step", apart(logits, whole[len(whole) - len(logits) :])


# Answers


def said(answer: Answer) -> tuple[Any, ...]:
    blanks = tuple(tuple(word for word, _ in blank) for blank in answer.blanks)
    return answer.output, tuple((word, label) for word, label, _ in answer.words), blanks[:1]


def changed(name: str, of: Trained, texts: list[str]) -> Iterator[str]:
    order = list(range(len(texts)))
    random.Random(1).shuffle(order)
    together = of(texts)
    turned = dict(zip(order, of([texts[i] for i in order]), strict=True))
    for i, text in enumerate(track(texts, f"{NAME}, {name}")):
        answers = {"together": together[i], "in another order": turned[i]}
        alone = said(of(text))
        for way, answer in answers.items():
            if said(answer) != alone:
                yield f"{name}, {way}: {text!r} becomes {said(answer)[0]!r}, alone {alone[0]!r}"


def run(quick: bool) -> Figure:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    every = list(of_calls(device, 41 if quick else 1))
    zoo = trained(("translate",)) if quick else every_task()
    moved: list[str] = []
    count = 0
    for name, of in zoo.items():
        of.to(device)
        texts = texts_for(of, 30 if quick else TEXTS)
        every += of_model(name, of, texts[:40])
        moved += changed(name, of, texts)
        count += len(texts)
    every.sort(key=lambda each: -each[1])
    far = [f"{name}: {difference:.1e}" for name, difference in every if not difference <= CLOSE]
    figure = f"float32 ≤ {every[0][1]:.1e} in {len(every):,}; {len(moved)} changed of {count:,}, {len(zoo)} models"
    return Figure(NAME, figure, not far and not moved, [*moved, *far])
