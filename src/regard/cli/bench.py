"""regard bench: how fast attention is on this machine, beside the same formulas written in torch."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import regard
from regard.cli.output import print_table
from regard.cli.timing import Runner, error, median, peak, poisoned, ratio, results, take_turns, timed
from regard.cli.works import WORKS, Work
from regard.core.shapes import InputError
from regard.mechanisms import nearest

CHECKED = 256  # queries and keys where the error is measured
COMPILING = 0.7  # of the time: after it nothing new is given to torch.compile


@dataclass(frozen=True)
class Row:
    """One way to compute one mechanism. A ratio says how many times as long as ours it takes."""

    mechanism: str
    n: int
    heads: int
    who: str
    forward_ms: float | None = None
    backward_ms: float | None = None
    forward_ratio: float | None = None
    both_ratio: float | None = None
    memory: int | None = None  # bytes at the peak of forward and backward, beyond the inputs
    error: float | None = None  # of the output, against float64, as a share of the largest number
    gradient_error: float | None = None
    first_seconds: float | None = None  # the first call, with what is compiled then
    missing: str | None = None  # why there are no figures


def bench(
    only: Annotated[list[str] | None, typer.Option(help="One mechanism, by name; may be given several times")] = None,
    n: Annotated[int | None, typer.Option(min=16, help="Queries and keys, instead of each mechanism's own")] = None,
    heads: Annotated[int | None, typer.Option(min=1, help="Heads, instead of each mechanism's own")] = None,
    seconds: Annotated[float, typer.Option(min=1, help="About how long it may take")] = 100,
    gpu: Annotated[bool, typer.Option(help="On the GPU, in bfloat16")] = False,
    compiled: Annotated[bool, typer.Option(help="Measure torch.compile too")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object")] = False,
) -> None:
    """Measure mechanisms on this machine: ours, plain torch, torch.compile, and other libraries that are installed.

    They take turns on the same random inputs; times are medians. Errors are measured against float64.
    """
    if gpu and not torch.cuda.is_available():
        raise InputError("--gpu: torch finds no GPU here; leave it out to measure the CPU")
    works = [replace(work, n=n or work.n, heads=heads or work.heads) for work in _named(only)]
    device, dtype = ("cuda", torch.bfloat16) if gpu else ("cpu", torch.float32)
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    rows: list[Row] = []
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=len(works))
        clock = Clock(seconds, len(works))
        for work in works:
            bar.update(task, description=work.name)
            rows += measured(work, device, dtype, clock, compiled, lambda who: bar.update(task, description=who))
            clock.left -= 1
            bar.advance(task)
    about = machine(gpu)
    if as_json:
        print(json.dumps({"machine": about, "rows": [asdict(row) for row in rows]}))
        return
    print("\n".join(f"{name}: {value}" for name, value in about.items()) + "\n")
    _print(rows)


def _named(names: list[str] | None) -> list[Work]:
    known = {work.name: work for work in WORKS}
    for name in names or ():
        if name not in known:
            raise InputError(f"bench: no mechanism is called {name!r}; {nearest(name, known)}")
    return [known[name] for name in dict.fromkeys(names or known)]


class Clock:
    """The time that is left, for so many mechanisms."""

    def __init__(self, seconds: float, works: int) -> None:
        self.seconds, self.left, self.start = seconds, works, time.perf_counter()

    def share(self) -> float:
        """For the turns of the next mechanism."""
        return max(0.0, self.seconds - (time.perf_counter() - self.start)) / (2 * max(self.left, 1))

    def may_compile(self) -> bool:
        return time.perf_counter() - self.start < COMPILING * self.seconds


def machine(gpu: bool = False) -> dict[str, str]:
    """What the figures hold for."""
    device = torch.cuda.get_device_name() if gpu else f"{_processor()}, {torch.get_num_threads()} threads"
    return {
        "machine": f"{device}, load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else device,
        "software": f"regard {regard.__version__}, torch {torch.__version__}, Python {platform.python_version()}",
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def measured(
    work: Work, device: str, dtype: torch.dtype, clock: Clock, compiled: bool, say: Callable[[str], None]
) -> Iterator[Row]:
    """The rows of one mechanism, ours first."""
    torch.manual_seed(0)
    torch._dynamo.reset() if compiled else None
    call = work.call(work)
    for part in call.values():
        if isinstance(part, torch.nn.Module):
            part.to(device)
    inputs = work.inputs(device, dtype)
    backend = regard.explain(*inputs, **call).backend
    makers = _makers(work, call, backend, device, compiled)
    learned = tuple(p for part in call.values() if isinstance(part, torch.nn.Module) for p in part.parameters())
    runners: dict[str, Runner] = {}
    rows: dict[str, Row] = {}
    small = min(CHECKED, work.n)
    checked = work.inputs(device, torch.float64, small)
    right = results(Runner(work.eager(work, call)), checked)
    as_given = [x.detach().to(dtype).requires_grad_() for x in checked]
    for who, (make, compiles, trains) in makers.items():
        say(f"{work.name}: {who}")
        rows[who] = Row(work.name, work.n, work.heads, who)
        if compiles and not clock.may_compile():
            rows[who] = replace(rows[who], missing="no time left to compile; give it more by --seconds")
            continue
        try:
            runner = Runner(make(), trains, learned if trains else ())
            given = inputs if compiles else as_given
            first = timed(lambda runner=runner, given=given: _once(runner, given), device)
            with poisoned():
                found = results(runner, as_given)
            memory = peak(lambda runner=runner: _once(runner, inputs), device)
        except Exception as reason:  # torch.compile without a compiler, a peer that refuses: said, not hidden
            rows[who] = replace(rows[who], missing=f"{type(reason).__name__}: {str(reason).strip().splitlines()[0]}")
            continue
        runners[who] = runner
        rows[who] = replace(
            rows[who],
            memory=memory,
            error=error(found[:1], right) if _exact(work, who) else None,
            gradient_error=error(found[1:], right[1:]) if trains and _exact(work, who) else None,
            first_seconds=first,
        )
    times = take_turns(runners, lambda: work.inputs(device, dtype), device, clock.share())
    ours = times[next(iter(makers))]
    for who, row in rows.items():
        if who in times:
            t = times[who]
            row = replace(
                row,
                forward_ms=_ms(median(t.forward)),
                backward_ms=_ms(median(t.backward)),
                forward_ratio=ratio(t.forward, ours.forward),
                both_ratio=ratio(t.both, ours.both),
            )
        yield row


def _once(runner: Runner, inputs: Any) -> None:
    with torch.no_grad():
        runner.attend(*inputs)
    if runner.trains:
        torch.autograd.grad(runner.attend(*inputs).sum(), inputs)


def _makers(
    work: Work, call: dict[str, Any], backend: str, device: str, compiled: bool
) -> dict[str, tuple[Callable[[], Any], bool, bool]]:
    """Who takes part: (make it, does it compile, does it train)."""
    made: dict[str, tuple[Callable[[], Any], bool, bool]] = {
        f"regard ({backend})": (
            lambda: lambda q, k, v: regard.attention(q, k, v, backend=backend, **call),
            False,
            True,
        ),
        "eager": (lambda: work.eager(work, call), False, True),
    }
    if compiled:
        made["torch.compile"] = (lambda: torch.compile(work.eager(work, call), dynamic=False), True, True)
    for who, peer in work.peers.items():
        if importlib.util.find_spec(peer.library) and (compiled or not peer.compiles):
            trains = peer.trains_on_cpu or device == "cuda"
            made[who] = (lambda peer=peer: peer.make(work, call), peer.compiles, trains)
    return made


def _exact(work: Work, who: str) -> bool:
    return who not in work.peers or work.peers[who].exact


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3


def _print(rows: list[Row]) -> None:
    columns = ["mechanism", "who", "forward", "", "backward", "both", "memory", "error", "of gradients", "first call"]
    table = []
    for place, row in enumerate(rows):
        new = place == 0 or rows[place - 1].mechanism != row.mechanism
        if row.missing is not None:
            table.append([row.mechanism if new else "", row.who, "–", *[""] * 7])
            continue
        table.append(
            [
                f"{row.mechanism}, n = {row.n:,} x {row.heads}" if new else "",
                row.who,
                _text(row.forward_ms, "{:.2f} ms"),
                "" if new else _text(row.forward_ratio, "{:.1f}x"),
                _text(row.backward_ms, "{:.2f} ms"),
                "" if new else _text(row.both_ratio, "{:.1f}x"),
                _text(None if row.memory is None else row.memory / 1e6, "{:.1f} MB"),
                _text(row.error, "{:.0e}"),
                _text(row.gradient_error, "{:.0e}"),
                _text(row.first_seconds, "{:.2f} s"),
            ]
        )
    print_table(columns, table, left=(0, 1))
    print("\nx: how many times as long as ours. Memory: the peak of forward and backward, beyond the inputs.")
    for reason in dict.fromkeys(f"{row.who}: {row.missing}" for row in rows if row.missing is not None):
        print("–", reason)


def _text(x: float | None, form: str) -> str:
    return "" if x is None else form.format(x)
