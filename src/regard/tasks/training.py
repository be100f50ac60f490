"""The training loop. One for all tasks, one process or many.

Everything that chance decides is a function of (seed, step): the order of the batches, their noise, dropout. So
what a checkpoint must hold is weights, optimizer and the place in the data, and a run that was stopped anywhere
goes on as if it had not been, to the last bit on a CPU.
"""

from __future__ import annotations

import logging
import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.shapes import InputError
from regard.tasks import checkpoints, config, model, networks, parallel, tokenizers
from regard.tasks.ahead import ahead
from regard.tasks.atomic import LEFTOVERS, clean_up, make_folder
from regard.tasks.averaging import mean_of
from regard.tasks.batches import Batches
from regard.tasks.card import write_card
from regard.tasks.catalogue import prepare, resolved
from regard.tasks.config import Optim, Run
from regard.tasks.examples import Batch, Item
from regard.tasks.history import History
from regard.tasks.model import Trained
from regard.tasks.rdrop import disagreement
from regard.tasks.task import Options, Task, loss_of

logger = logging.getLogger(__name__)

RUN, CHECKPOINTS = "run.toml", "checkpoints"
PASSES, FEWEST, MOST = 40, 300, 20_000  # how long to train where nothing is said

Window = tuple[list[Batch], tuple[int, int]]  # the batches of one step, and the place in the data after them


@dataclass(frozen=True)
class Progress:
    """What a loop says of itself after a step."""

    step: int
    steps: int
    loss: float
    tokens_per_second: float
    seconds_left: float
    figures: dict[str, Any] = field(default_factory=dict)  # of an evaluation, if there was one


class Stopped(Exception):  # noqa: N818  nothing went wrong
    """Somebody asked the run to stop. Its state is saved; the same command goes on."""


@dataclass
class Place:
    """Where a run is: between which batches of which epoch, and what it has found so far."""

    step: int = 0
    micro: int = 0  # batches of the next step whose gradients are already there
    epoch: int = 0
    batch: int = 0  # of this epoch, done
    best: float = math.inf  # smaller is better
    since: int = 0  # evaluations since then
    loss: float = 0.0  # of the step that is under way
    seconds: float = 0.0  # of training, in all sittings

    def state(self) -> dict[str, Any]:
        return dict(vars(self))


def train(run: Run, folder: Path | str, report: Callable[[Progress], None] = lambda _: None) -> Trained:
    """Train, or go on with, the run in this folder; the finished model is in it afterwards.

    Raises `Stopped` after SIGINT or SIGTERM, with everything saved.
    """
    folder = Path(folder)
    fabric = parallel.start(run.machine)
    run, task, embedding = _task_of(resolved(run), folder)
    batches, valid, examples = _data(run, task)
    run = _schedule(run, batches)
    torch.manual_seed(run.seed)
    network = task.network(run.optim.dropout, embedding)  # before the folder: sizes that do not fit leave nothing
    fabric.barrier()  # all have seen whether a run was here before one begins
    if fabric.global_rank == 0:
        _describe(run, folder, task)
    network = fabric.setup_module(network)
    learned = [p for p in parallel.bare(network).parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in learned if p.ndim > 1], "weight_decay": run.optim.weight_decay},
        {"params": [p for p in learned if p.ndim <= 1], "weight_decay": 0.0},  # biases and norms
    ]
    on_cpu = fabric.device.type == "cpu"  # where torch by itself takes a dozen passes over all numbers
    optimizer = torch.optim.AdamW(groups, lr=run.optim.lr, betas=run.optim.betas, eps=1e-6, fused=on_cpu or None)
    optimizer = fabric.setup_optimizers(optimizer)

    place = _resume(folder, network, optimizer.optimizer)
    history = History(folder, place.step, writes=fabric.global_rank == 0)
    loop = Loop(run, folder, fabric, task, network, optimizer, place, history, report)
    with stop_asked() as asked, closing(ahead(loop.windows(batches))) as windows:
        loop.run_through(windows, valid, examples, asked)
    return loop.finish(valid, examples)


def begin(run: Run, folder: Path | str) -> None:
    """The folder of a run with all but the training: `train` goes on with it, here or where no tokenizer is made."""
    folder = Path(folder)
    run, task, _ = _task_of(resolved(run), folder)
    if run.schedule.steps is None or run.optim.warmup is None:
        run = _schedule(run, _data(run, task)[0])
    _describe(run, folder, task)


@dataclass
class Loop:
    """What is the same at every step."""

    run: Run
    folder: Path
    fabric: Any
    task: Task
    network: nn.Module
    optimizer: Any
    place: Place
    history: History
    report: Callable[[Progress], None]
    rate: float = 0.0  # of learning, at the last step

    def run_through(
        self, windows: Iterator[Window], valid: list[Item], examples: list[Any], asked: Callable[[], bool]
    ) -> None:
        run, place, steps = self.run, self.place, self.steps
        rate = Rate()
        while place.step < steps and not self._over() and not self._tired():
            started = time.perf_counter()
            window, epochs = next(windows)
            units = sum(batch.units for batch in window)
            for micro, batch in enumerate(window):
                if micro < place.micro:
                    continue  # its gradients came with the checkpoint
                self._backward(batch, units, micro, last=micro == len(window) - 1)
                place.micro = micro + 1
                if self.fabric.world_size == 1 and place.micro < len(window) and asked():
                    self._stop()
            loss, wished = parallel.together(self.fabric, place.loss, float(asked()))
            self._step(loss)
            place.step, place.micro, (place.epoch, place.batch) = place.step + 1, 0, epochs
            place.loss = 0.0
            place.seconds += time.perf_counter() - started
            speed = rate.add(sum(batch.source.numel() + batch.target.numel() for batch in window))
            left = (time.perf_counter() - started) if not speed else self._left(rate)
            self.history.add(step=place.step, loss=loss, lr=self.rate, tokens_per_second=speed)
            figures = {}
            done = place.step == steps or self._over()
            if valid and (place.step % run.schedule.evaluate == 0 or done):
                figures = self._evaluate(valid, examples)
            if place.step % run.checkpoint.every == 0 or figures or done:
                self._save(best=bool(figures) and place.since == 0)
            self.report(Progress(place.step, steps, loss, speed, left, figures))
            if wished:
                self._stop()
        if self._tired():
            logger.warning("no improvement in %d evaluations: stopped at step %d", place.since, place.step)

    @property
    def steps(self) -> int:
        assert self.run.schedule.steps is not None
        return self.run.schedule.steps

    def windows(self, batches: Batches) -> Iterator[Window]:
        source = batches.forever(self.place.epoch, self.place.batch)
        while True:
            window, after = [], (0, 0)
            for epoch, done, items in islice(source, self.run.optim.accumulate):
                # A text as seed, hashed by Python's random, would do as well; this is the same on every machine.
                chance = (self.run.seed * 1_000_003 + epoch) * 1_000_003 + done
                window.append(self.task.collate(items, chance % 2**31))
                after = epoch, done
            yield window, after

    def _backward(self, batch: Batch, units: int, micro: int, last: bool) -> None:
        fabric, run = self.fabric, self.run
        # Dropout of this batch in this process, whatever came before.
        torch.manual_seed(hash_of(run.seed, self.place.step, micro, fabric.global_rank))
        self.network.train()
        batch = batch.share(fabric.global_rank, fabric.world_size).to(fabric.device)
        batch = batch.twice() if run.optim.rdrop else batch
        with fabric.no_backward_sync(self.network, enabled=not last):
            loss = self._loss(batch) / max(units, 1)
            fabric.backward(loss * fabric.world_size)  # which averages over the processes
        self.place.loss += float(loss.detach())

    def _loss(self, batch: Batch) -> Tensor:
        smoothing, rdrop = self.run.optim.label_smoothing, self.run.optim.rdrop
        if not rdrop:
            return self.task.loss(self.network, batch, smoothing)
        logits, target = self.task.logits(self.network, batch)
        return loss_of(logits, target, smoothing) / 2 + rdrop * disagreement(logits, target)

    def _step(self, loss: float) -> None:
        self._check("loss", loss)
        self.rate = rate_at(self.place.step + 1, self.steps, self.run.optim, self._gone())
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate
        clip = math.inf if self.run.optim.clip is None else self.run.optim.clip
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), clip)
        self._check("gradient's norm", float(parallel.whole(norm)))
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _check(self, what: str, number: float) -> None:
        """Before the weights are touched: what is saved is finite."""
        if not math.isfinite(number):
            raise InputError(
                f"{self.folder}: at step {self.place.step + 1} the {what} is {number}: training diverged, and would do "
                f"so again; begin in another folder, with a smaller optim.lr, a longer optim.warmup or optim.clip=1"
            )

    def _evaluate(self, valid: list[Item], examples: list[Any]) -> dict[str, Any]:
        """Every process does all of it: the same numbers, and no one waits for another."""
        figures = scored(self.task, self._plain(), valid, examples, self.run.data.tokens)
        now = figures[self.task.aim] if self.task.aim == "loss" else -figures[self.task.aim]
        self.place.since = self.place.since + 1 if now >= self.place.best else 0
        self.place.best = min(now, self.place.best)
        self.history.add(step=self.place.step, **{f"valid {name}": value for name, value in figures.items()})
        return figures

    def _plain(self) -> nn.Module:
        """The network as one process can run it."""
        if self.fabric.world_size == 1 or self.run.machine.parallel == "ddp":
            return parallel.bare(self.network)
        plain = self.task.network(embedding=model.blank(self.task)).to(self.fabric.device)
        plain.load_state_dict(parallel.weights(self.network))
        return plain

    def _save(self, best: bool = False, passing: bool = False) -> None:
        state = {
            "place": self.place.state(),
            "model": parallel.weights(self.network),
            "optimizer": parallel.optimizer_state(self.network, self.optimizer.optimizer),
            "gradients": parallel.gradients(self.network) if self.place.micro else {},
        }
        if self.fabric.global_rank == 0:
            keep = max(self.run.checkpoint.keep, self.run.schedule.average)
            self.history.flush()  # first: lines of later steps than the checkpoint's are forgotten, none is missing
            checkpoints.save(self.folder / CHECKPOINTS, self.place.step, state, keep, best=best, passing=passing)

    def _stop(self) -> None:
        self._save(passing=True)
        self.fabric.barrier()
        raise Stopped(f"stopped at step {self.place.step} of {self.steps}, and saved; the same command goes on")

    def _tired(self) -> bool:
        patience = self.run.schedule.patience
        return patience is not None and self.place.since >= patience

    def _over(self) -> bool:
        return self._gone() >= 1

    def _gone(self) -> float:
        """The share of its minutes that is over; 0 where it has no limit."""
        minutes = self.run.schedule.minutes
        # Clocks differ: the first process says what time it is.
        return 0.0 if minutes is None else float(self.fabric.broadcast(self.place.seconds / (60 * minutes)))

    def _left(self, rate: Rate) -> float:
        left = rate.seconds * (self.steps - self.place.step)
        minutes = self.run.schedule.minutes
        return left if minutes is None else min(left, 60 * minutes - self.place.seconds)

    def finish(self, valid: list[Item], examples: list[Any]) -> Trained:
        """The best weights, or the mean of the last ones, as a model in the folder."""
        network = self.task.network(embedding=model.blank(self.task))
        if self.fabric.world_size > 1:
            self.fabric.barrier()
        state = mean_of(self.folder / CHECKPOINTS, self.run.schedule.average, best=bool(valid))
        network.load_state_dict(state)
        trained = Trained(self.task, network.eval(), self.folder)
        network.to(self.fabric.device)
        figures = scored(self.task, network, valid, examples, self.run.data.tokens) if valid else {}
        network.to("cpu")
        trained.figures = figures
        if self.fabric.global_rank == 0:
            model.save_weights(self.folder, state)
            write_card(self.folder, self.run, trained, figures, self.place.step, self.place.seconds)
            self.history.close()
        return trained


def scored(task: Task, network: nn.Module, valid: list[Item], examples: list[Any], tokens: int) -> dict[str, Any]:
    figures: dict[str, Any] = task.evaluate(network, valid, tokens)
    if examples:
        figures |= task.score(network, examples, Options(beam=1))
    return figures


@dataclass
class Rate:
    """Speed over the last steps, so that a slow start does not show for long."""

    seconds: float = 0.0  # a step
    tokens: float = 0.0
    last: float = field(default_factory=time.perf_counter)

    def add(self, tokens: int, memory: float = 0.95) -> float:
        now = time.perf_counter()
        seconds, self.last = now - self.last, now
        self.seconds = seconds if not self.seconds else memory * self.seconds + (1 - memory) * seconds
        self.tokens = tokens if not self.tokens else memory * self.tokens + (1 - memory) * tokens
        return self.tokens / max(self.seconds, 1e-9)


def rate_at(step: int, steps: int, optim: Optim, gone: float = 0.0) -> float:
    """The learning rate of a step, from 1: up in a line, then down as `decay` says, with the steps or with the share
    of the time that is gone, whichever ends sooner."""
    warmup = optim.warmup or 0
    if step <= warmup:
        return optim.lr * step / warmup
    done = max((step - warmup) / (steps - warmup + 1), gone)  # the last step still moves
    if optim.decay == "linear":
        return optim.lr * max(1 - done, 0.0)
    if optim.decay == "cosine":
        return optim.lr * 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))
    if optim.decay == "root":
        return optim.lr * math.sqrt(max(warmup, 1) / step)
    return optim.lr


def hash_of(*numbers: int) -> int:
    """One seed from several numbers, in which none is lost."""
    mixed = 0
    for number in numbers:
        mixed = ((mixed ^ (number & 0xFFFFFFFF)) * 0x9E3779B97F4A7C15 + 0xBF58476D1CE4E5B9) & (2**63 - 1)
        mixed ^= mixed >> 31
    return mixed


@contextmanager
def stop_asked() -> Iterator[Callable[[], bool]]:
    """SIGINT and SIGTERM are remembered, not obeyed at once; a second one is obeyed."""
    asked: list[int] = []
    before: dict[int, Any] = {}

    def remember(number: int, _: Any) -> None:
        asked.append(number)
        for each, handler in before.items():
            signal.signal(each, handler)

    try:
        for each in (signal.SIGINT, signal.SIGTERM):
            before[each] = signal.signal(each, remember)
    except ValueError:  # not the main thread: whoever started it stops it
        before.clear()
    try:
        yield lambda: bool(asked)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


# Before the first step


def _task_of(run: Run, folder: Path) -> tuple[Run, Task, nn.Module | None]:
    """The task that is trained here already, or a new one from the data."""
    earlier = folder / RUN
    if earlier.exists():
        before = config.read(earlier)
        _same(run, before, earlier)
        task = model.read_task(folder)
        embedding = model.blank(task)  # its numbers come with the checkpoint
        if embedding is not None and not checkpoint_there(folder):
            task, embedding = _prepared(run)
        if isinstance(embedding, nn.Module):
            frozen = run.data.frozen
            getattr(embedding, "vectors", embedding).weight.requires_grad_(not frozen)
        return replace(run, schedule=before.schedule, optim=before.optim), task, embedding
    if not _empty(folder):
        raise InputError(f"{folder}: not empty, and no run is in it; expected a new folder, or one with a {RUN}")
    return run, *_prepared(run)


def _prepared(run: Run) -> tuple[Task, nn.Module | None]:
    task, vectors = prepare(run)
    torch.manual_seed(run.seed)
    return task, networks.embedding_of(task.model, vectors)


def _empty(folder: Path) -> bool:
    """Also where a run was killed before it had written all that it begins with."""
    try:
        names = {path.name for path in folder.iterdir() if not path.name.startswith(LEFTOVERS)}
    except FileNotFoundError:
        return True
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}; expected a folder for the run") from error
    return names <= {model.CONFIG, tokenizers.FILE}


def checkpoint_there(folder: Path) -> bool:
    return any((folder / CHECKPOINTS).glob("step-*"))


def _same(run: Run, before: Run, path: Path) -> None:
    """A run that goes on is the run that began; only the machine, the card and how it is saved may change."""

    def essence(run: Run) -> dict[str, Any]:
        lines = config.to_toml(
            replace(run, machine=before.machine, card=before.card, checkpoint=before.checkpoint)
        ).splitlines()
        return {line.split(" = ")[0]: line for line in lines if " = " in line}

    now, then = essence(run), essence(before)
    # What was left out is filled in when a run begins.
    filled = {"steps", "warmup"}
    for key in {**now, **then}:
        if now.get(key) != then.get(key) and not (key in filled and key not in now):
            raise InputError(
                f"{path} says {then.get(key, key + ' left out')!r}, now it is {now.get(key, key + ' left out')!r}: "
                f"another run; give it another folder, or go on with the first"
            )


def _data(run: Run, task: Task) -> tuple[Batches, list[Item], list[Any]]:
    labels = task.labels or None

    def read() -> Iterator[Item]:
        return (task.encode(example) for example in task.read(run.data.train, labels))

    batches = Batches(read, run.data.tokens, run.data.longest, run.seed)
    if not run.data.valid:
        return batches, [], []
    examples = list(task.read(run.data.valid, labels))
    valid = [item for item in map(task.encode, examples) if len(item) <= run.data.longest]
    if not valid:
        raise InputError(f"{run.data.valid[0]}: all examples are longer than data.longest={run.data.longest}")
    return batches, valid, examples[: run.schedule.written]


def _schedule(run: Run, batches: Batches) -> Run:
    """How many steps, where nothing is said."""
    steps, warmup = run.schedule.steps, run.optim.warmup
    if steps is None:
        a_pass = math.ceil(batches.count() / run.optim.accumulate)
        steps = min(max(PASSES * a_pass, FEWEST), MOST)
    if warmup is None:
        warmup = min(400, steps // 10)
    return replace(run, schedule=replace(run.schedule, steps=steps), optim=replace(run.optim, warmup=warmup))


def _describe(run: Run, folder: Path, task: Task) -> None:
    make_folder(folder)
    clean_up(folder)
    model.describe(folder, task)
    config.write(folder / RUN, run)


def _resume(folder: Path, network: nn.Module, optimizer: torch.optim.Optimizer) -> Place:
    if not checkpoint_there(folder):
        return Place()
    found = checkpoints.load(folder / CHECKPOINTS).state
    parallel.load_weights(network, found["model"])
    parallel.load_optimizer_state(network, optimizer, found["optimizer"])
    parallel.load_gradients(network, found["gradients"])
    return Place(**found["place"])
