"""Train the models that come with the library, each by its recipe, and put them where they are looked up.

    python -m recipes                       all of them, from nothing
    python -m recipes tag fill --jobs 1     these
    python -m recipes --ship build/shipped  into another folder

The corpora are written to scratch/corpora first, if they are not there; runs are in scratch/models: one that was
stopped goes on, one that is finished (its weights are there) is not trained again, wherever it was trained.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import islice
from pathlib import Path

import torch

from regard import pretrained
from regard.tasks import config, model, training
from regard.tasks.alignment import Linked, choose
from regard.tasks.corpora import LANGUAGES, aligned
from regard.tasks.corpora.files import write
from regard.tasks.data import Pair
from regard.tasks.measuring import measure
from regard.tasks.translate import Translate
from regard.tasks.writing import Aligner

HERE, SCRATCH = Path(__file__).parent, Path("scratch")
CORPORA, MODELS = SCRATCH / "corpora", SCRATCH / "models"
SENTENCES = 40_000  # for training, in each language
ALIGNED = 50  # with gold links, in each language, to find the layer and head that align best

ABOUT = {  # recipe → what the index says of it
    "translate": "English into ten languages",
    "tag": "parts of speech of English words",
    "sentiment": "praise or blame, in reviews, news and finance reports",
    "fill": "the missing words of short stories",
    "denoise": "damaged sentences, restored",
    "generate": "short stories, continued",
}


def train(name: str, device: str, threads: int) -> str:
    if (MODELS / name / model.WEIGHTS).exists():
        return name
    torch.set_num_threads(threads)
    run = config.read(HERE / f"{name}.toml", [f"machine.device={device}"])

    def tell(progress: training.Progress) -> None:
        if progress.figures:
            said = {key: round(x, 4) for key, x in progress.figures.items() if isinstance(x, float)}
            print(f"{name} {progress.step}: {progress.tokens_per_second:,.0f} tokens/s {said}", flush=True)

    training.train(run, MODELS / name, tell)
    return name


def ship(name: str, folder: Path, most: int, device: str) -> None:
    """Float16 weights and the card, with figures on what was held out."""
    trained = model.load(MODELS / name)
    if isinstance(trained.task, Translate):
        trained.task.aligner = aligner(trained)
    into = folder / name
    shutil.rmtree(into, ignore_errors=True)
    model.save(into, trained, half=True)
    shutil.copy(MODELS / name / model.CARD, into / model.CARD)
    place = "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"
    half = model.load(into).to(place)  # what is measured is what is shipped
    lines = ["", "## On combinations that training never saw", "", "| | |", "|---|---|"]
    for test in tests(name):
        translates = isinstance(half.task, Translate)
        code = test.name.split(".")[0] if translates else None
        found = measure(half, [str(test)], most=most, to=code).figures
        if translates:
            rows = islice(aligned.read_aligned(CORPORA / f"{code}.test.alignment.tsv"), most)
            found["alignment error"] = aligned.error(half, rows, to=code)
        said = ", ".join(f"{key} {value:.4g}" for key, value in found.items() if isinstance(value, float))
        lines.append(f"| {test.name} | {said} |")
    with open(into / model.CARD, "a", encoding="utf-8") as card:
        card.write("\n".join(lines) + "\n")
    print("\n".join(lines), flush=True)


def aligner(trained: model.Trained) -> Aligner:
    """Where cross-attention aligns best: from a few of the validation sentences of each language, which were not
    trained on. Training itself never saw a link."""
    examples = [
        Linked(Pair(f"<2{code}> {row.source}", row.target), row.gold, row.source_spans, row.target_spans)
        for code in LANGUAGES
        for row in islice(aligned.read_aligned(CORPORA / f"{code}.valid.alignment.tsv"), ALIGNED)
    ]
    # The places of a source's words are those of the text behind its tag.
    best, error = choose(trained.task, trained.network, examples)  # pyright: ignore[reportArgumentType]
    print(f"{best}: alignment error {error:.3f} on {len(examples)} sentences", flush=True)
    return best


def tests(name: str) -> list[Path]:
    run = config.read(HERE / f"{name}.toml")
    if name != "translate":
        return [Path(file.replace(".valid.", ".test.")) for file in run.data.valid]
    return [CORPORA / f"{code}.test.tsv" for code in LANGUAGES]


def index(folder: Path, names: list[str]) -> None:
    """Adds these recipes to what the index has."""
    path = folder / pretrained.INDEX
    listed = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name in names:
        task = json.loads((folder / name / model.CONFIG).read_text(encoding="utf-8"))
        entry = {"folder": name, "task": task["task"], "about": ABOUT[name]}
        listed[name] = entry | ({"to": task["labels"]} if task["labels"] and name == "translate" else {})
        for code in listed[name].get("to", ()):
            listed[f"en-{code}"] = entry | {"to": [code], "about": f"English into {LANGUAGES[code].capitalize()}"}
    path.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    options = argparse.ArgumentParser(
        prog="python -m recipes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("names", nargs="*", help=f"of {', '.join(ABOUT)}; all, unless given")
    options.add_argument("--jobs", type=int, default=1, help="models that are trained side by side")
    options.add_argument("--threads", type=int, default=2, help="of each of them")
    options.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    options.add_argument("--ship", type=Path, default=pretrained.HERE, help="the folder they are put into")
    options.add_argument("--most", type=int, default=1000, help="test examples that are measured for the card")
    asked = options.parse_args()
    names = asked.names or list(ABOUT)
    for name in names:
        if name not in ABOUT:
            options.error(f"{name}: no such recipe; expected one of {', '.join(ABOUT)}")
    if not CORPORA.exists():
        write(CORPORA, 0, SENTENCES)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(asked.jobs, mp_context=context) as pool:
        for done in as_completed([pool.submit(train, name, asked.device, asked.threads) for name in names]):
            name = done.result()
            ship(name, asked.ship, asked.most, asked.device)
            index(asked.ship, [name])
