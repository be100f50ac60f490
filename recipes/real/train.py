"""Many runs side by side on one machine, within a number of seconds; what they made, in files of a limited size.

A run is begun where the tokenizers are made, and trained where the time is counted: its schedule.minutes are set to
what is left of its share. What has not finished when its share is over gets the mean of its last checkpoints.
"""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from recipes.real.runs import MODELS, RUNS
from regard.tasks import checkpoints, config, model, training
from regard.tasks.averaging import mean_of
from regard.tasks.card import write_card
from regard.tasks.files import read_lines
from regard.tasks.task import Options

BEGINNING, SAVING, ANSWERING = 40, 20, 60  # seconds of a run that are not training
BEAM = 5
PART = 15 * 2**20  # bytes of a file that comes back
LOG, RUN = "log.txt", training.RUN


def begin(names: Iterable[str]) -> None:
    for name in names:
        folder = MODELS / name
        if not (folder / RUN).exists():
            training.begin(RUNS[name].run(), folder)
        print(folder, flush=True)


def side_by_side(slots: Sequence[Sequence[str]], seconds: float, device: str) -> dict[str, str]:
    """Each slot's runs one after the other, the slots at the same time; what became of each."""
    end = time.monotonic() + seconds
    found: dict[str, str] = {}

    def work(names: Sequence[str]) -> None:
        for place, name in enumerate(names):
            share = (end - time.monotonic()) / (len(names) - place)
            try:
                found[name] = one(name, share, device)
            except Exception as error:  # the others go on
                found[name] = f"{type(error).__name__}: {error}"
            print(f"{name}: {found[name]}", flush=True)

    with ThreadPoolExecutor(len(slots)) as pool:
        list(pool.map(work, slots))
    return found


def one(name: str, share: float, device: str) -> str:
    """Train a run that was begun, and let it answer what it will be measured by."""
    folder, began = MODELS / name, time.monotonic()
    answering = ANSWERING if RUNS[name].asked else 0
    training_ends = share - SAVING - answering
    run = config.read(folder / RUN)
    minutes = max(training_ends - BEGINNING, 1.0) / 60
    most = run.schedule.minutes or minutes
    config.write(folder / RUN, replace(run, schedule=replace(run.schedule, minutes=min(minutes, most))))
    keys = [str(folder / RUN), "--out", str(folder), f"machine.device={device}"]
    called("regard", ["train", *keys], folder / LOG, training_ends)
    left = share - (time.monotonic() - began)
    called("recipes.real", ["answer", name, "--device", device], folder / LOG, max(left, 10.0))
    there = (folder / model.WEIGHTS).exists()
    return f"{'trained' if there else 'no weights'} in {time.monotonic() - began:.0f} s; {last_line(folder / LOG)}"


def called(module: str, arguments: list[str], log: Path, seconds: float) -> int:
    """A Python of its own, asked to stop when its time is over, and ended soon after."""
    with open(log, "a", encoding="utf-8") as file:
        process = subprocess.Popen([sys.executable, "-m", module, *arguments], stdout=file, stderr=subprocess.STDOUT)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
        try:
            return process.wait(8)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").replace("\r", "\n").split("\n")
    return next((line.strip()[:120] for line in reversed(lines) if line.strip()), "")


def answer(name: str, device: str, beam: int = BEAM) -> None:
    """answers.FILE for each file that the run is asked, a line for each of its lines."""
    folder = MODELS / name
    if not (folder / model.WEIGHTS).exists() and training.checkpoint_there(folder):
        settle(folder)
    files = [Path(file) for file in RUNS[name].asked]
    missing = [file for file in files if not answers_of(name, file).exists()]
    if not missing:
        return
    trained = model.load(folder).to(device)
    for file in missing:
        answers = trained.answer([line.text for line in read_lines(file)], Options(beam=beam))
        answers_of(name, file).write_text("".join(f"{each.output}\n" for each in answers), encoding="utf-8")


def settle(folder: Path) -> None:
    """The model of a run that was stopped: the mean of its last checkpoints."""
    run, place = config.read(folder / RUN), checkpoints.load(folder / training.CHECKPOINTS).state["place"]
    model.save_weights(folder, mean_of(folder / training.CHECKPOINTS, run.schedule.average, best=True))
    write_card(folder, run, model.load(folder), {}, place["step"], place["seconds"])


def answers_of(name: str, file: Path) -> Path:
    return MODELS / name / f"answers.{file.name}"


def pack(names: Iterable[str], into: Path, most: int) -> list[str]:
    """models.tar.00, 01, …: all that is small of each run, and its weights in float16, in this order, while they fit.
    The names of those whose weights did not."""
    tar, left_out = io.BytesIO(), []
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for name in names:
            folder = MODELS / name
            for path in sorted(folder.glob("*")):
                if path.is_file() and path.name != model.WEIGHTS and not path.name.startswith("."):
                    archive.add(path, f"{name}/{path.name}")
        for name in names:
            with suppress(FileNotFoundError):
                weights = halved(MODELS / name / model.WEIGHTS)
                if tar.tell() + len(weights) > most:
                    left_out.append(name)
                    continue
                entry = tarfile.TarInfo(f"{name}/{model.WEIGHTS}")
                entry.size = len(weights)
                archive.addfile(entry, io.BytesIO(weights))
    into.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(parts(tar.getvalue())):
        (into / f"models.tar.{number:02}").write_bytes(part)
    return left_out


def parts(raw: bytes) -> Iterator[bytes]:
    for start in range(0, len(raw), PART):
        yield raw[start : start + PART]


def halved(path: Path) -> bytes:
    from safetensors.torch import load_file, save

    if not path.exists():
        raise FileNotFoundError(path)
    return save({name: each.half() if each.is_floating_point() else each for name, each in load_file(path).items()})


def unpack(folder: Path) -> None:
    """What `pack` wrote, into the folder of models."""
    raw = b"".join(path.read_bytes() for path in sorted(folder.glob("models.tar.*")))
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        archive.extractall(MODELS, filter="data")
