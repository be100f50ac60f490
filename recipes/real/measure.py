"""Every figure of docs/results.md, from the models that are there; what is missing is left out, and said."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from recipes.real.links import attended, counted, errors
from recipes.real.results import picture, written
from recipes.real.runs import DATA, MODELS, RUNS
from recipes.real.train import BEAM, answer, answers_of
from recipes.shipping import CORPORA
from regard.tasks import metrics, model
from regard.tasks.alignment import Linked, choose
from regard.tasks.corpora import LANGUAGES
from regard.tasks.corpora.aligned import read_aligned
from regard.tasks.data import Pair, read_pair_table
from regard.tasks.files import read_lines
from regard.tasks.metrics import Gold, read_gold

RESULTS, PAGE, PICTURE = Path("scratch/real/results.json"), Path("docs/results.md"), Path("docs/pictures/multi30k.png")
HISTORY, THROUGHPUT = "metrics.jsonl", Path("scratch/real/throughput.json")  # which benchmarks.throughput writes
BUCKETS = ((1, 8), (9, 11), (12, 14), (15, 18), (19, 40))  # words of the source; a fifth of the captions each, about
LINKED = 50  # built-in sentences with gold links, to choose heads by
EVERYDAY = (
    "Where is the train station?",
    "I would like a cup of tea, please.",
    "It has been raining all day.",
    "Can you help me?",
    "How much does this cost?",
    "My sister lives in Paris.",
    "I forgot my keys at home.",
    "We are going to the beach tomorrow.",
    "She doesn't like coffee.",
    "What time does the shop open?",
    "He is reading a book in the garden.",
    "I'm sorry, I don't understand.",
    "The children are playing outside.",
    "Do you speak English?",
    "I have never seen such a beautiful house.",
    "Please close the door.",
    "They arrived late because of the snow.",
    "If I had known, I would have called you.",
    "The doctor told me to stay in bed for three days.",
    "Our neighbours bought a new car last week, but they already want to sell it.",
)


def measure(names: Iterable[str], device: str = "cpu") -> None:
    """Adds to what was measured before."""
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in names:
        if not (MODELS / name / model.CARD).exists():
            print(f"{name}: not trained yet", flush=True)
            continue
        began = time.perf_counter()
        found[name] = trained(name) | figures(name, device)
        said = {key: round(each, 4) for key, each in found[name].items() if isinstance(each, float)}
        print(f"{name}: {said}, {time.perf_counter() - began:.0f} s", flush=True)
        save(found)
    if {"many", "french-english"} & set(names) and {"many", "french-english"} <= set(found):
        found["alignment"] = alignment()
        save(found)
        print(f"alignment: {found['alignment']}", flush=True)
    if THROUGHPUT.exists():
        found["throughput"] = json.loads(THROUGHPUT.read_text(encoding="utf-8"))
    PAGE.write_text(written(found, EVERYDAY), encoding="utf-8")
    picture(found, PICTURE)


def save(found: dict[str, Any]) -> None:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def trained(name: str) -> dict[str, Any]:
    """What its card says of its training, and its size."""
    folder = MODELS / name
    card = (folder / model.CARD).read_text(encoding="utf-8")
    steps, seconds = re.search(r"^([\d,]+) steps, ([\d,]+) s of training", card, re.MULTILINE).groups()  # pyright: ignore
    network = model.empty(model.read_task(folder))
    return {
        "parameters": sum(each.numel() for each in network.parameters()),
        "steps": int(steps.replace(",", "")),
        "seconds": int(seconds.replace(",", "")),
        "command": " ".join(["regard train", f"recipes/real/{RUNS[name].recipe}.toml", *RUNS[name].keys]),
    }


def figures(name: str, device: str) -> dict[str, Any]:
    recipe = RUNS[name].recipe
    if recipe.startswith("multi30k"):
        return captions(name, device)
    if recipe == "many":
        return languages(name, device)
    if recipe == "cmudict":
        return pronounced(name, device)
    if recipe == "english-french":
        return translated(name, device, list(rows(DATA / "fr.dev.tsv")))
    if recipe == "french-english":
        return translated(name, device, [(b, a) for a, b in rows(DATA / "fr.dev.tsv")])
    return accuracy(name, device)


def captions(name: str, device: str) -> dict[str, Any]:
    """BLEU of val and test, lower-cased; by length over both."""
    answer(name, device)
    found: dict[str, Any] = {}
    every: list[tuple[str, str, str]] = []
    (source, target) = (Path(file) for file in RUNS[name].run().data.valid)
    for part in ("val", "test"):
        asked, wanted = (file.with_name(file.name.replace(".val.", f".{part}.")) for file in (source, target))
        texts = [[line.text for line in read_lines(file)] for file in (asked, answers_of(name, asked), wanted)]
        score = metrics.translation(texts[1], texts[2], lowercase=True)
        found |= {f"{part} bleu": score["bleu"], f"{part} chrf": score["chrf"], "signature": score["bleu signature"]}
        every += zip(*texts, strict=True)
    found["by length"] = by_length(every)
    return found


def by_length(every: Sequence[tuple[str, str, str]]) -> dict[str, float]:
    """BLEU of the sentences with so many words in the source."""
    found = {}
    for low, high in BUCKETS:
        few = [(output, wanted) for text, output, wanted in every if low <= len(text.split()) <= high]
        if few:
            score = metrics.translation([a for a, _ in few], [b for _, b in few], lowercase=True)
            found[f"{low}-{high}"] = float(score["bleu"])
    return found


def languages(name: str, device: str) -> dict[str, Any]:
    """Each language's dev part, what the grammar makes, and what a person might ask."""
    ours = model.load(MODELS / name).to(device)
    found: dict[str, Any] = {"dev": {}, "built in": {}, "everyday": {}}
    for code in LANGUAGES:
        for part, path in (("dev", DATA / f"{code}.dev.tsv"), ("built in", CORPORA / f"{code}.test.tsv")):
            if path.exists():
                pairs = list(islice(rows(path), 5000 if part == "dev" else 300))
                answers = [each.output for each in ours([source for source, _ in pairs], to=code, beam=BEAM)]
                found[part][code] = metrics.translation(answers, [target for _, target in pairs])
        found["everyday"][code] = [each.output for each in ours(list(EVERYDAY), to=code, beam=BEAM)]
    found["fr bleu"], found["fr chrf"] = (found["dev"]["fr"][each] for each in ("bleu", "chrf"))
    return found


def translated(name: str, device: str, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    ours = model.load(MODELS / name).to(device)
    answers = [each.output for each in ours([source for source, _ in pairs], beam=BEAM)]
    return dict(metrics.translation(answers, [target for _, target in pairs]))


def pronounced(name: str, device: str) -> dict[str, Any]:
    """The share of words whose answer is one of the listed pronunciations."""
    answer(name, device)
    (asked,) = (Path(file) for file in RUNS[name].asked)
    listed: dict[str, set[str]] = {}
    for word, sounds in rows(DATA / "cmudict.dev.tsv"):
        listed.setdefault(word, set()).add(sounds)
    answers = [line.text for line in read_lines(answers_of(name, asked))]
    words = [line.text for line in read_lines(asked)]
    right = sum(" ".join(said.split()) in listed[word] for word, said in zip(words, answers, strict=True))
    return {"words": len(words), "word accuracy": right / len(words)}


def accuracy(name: str, device: str) -> dict[str, Any]:
    """Loss and accuracy of all that is asked for in the dev part; where the weights are not here, as the run found
    them for its best checkpoint, which is its model."""
    if not (MODELS / name / model.WEIGHTS).exists():
        lines = map(json.loads, (MODELS / name / HISTORY).read_text(encoding="utf-8").splitlines())
        best = min((each for each in lines if "valid loss" in each), key=lambda each: each["valid loss"])
        return {key: best[f"valid {key}"] for key in ("loss", "accuracy")}
    ours = model.load(MODELS / name).to(device)
    task, files = ours.task, RUNS[name].run().data.valid
    items = [task.encode(example) for example in task.read(files, task.labels or None)]
    return task.evaluate(ours.network, [item for item in items if len(item) <= task.longest])


def alignment() -> dict[str, Any]:
    """The error rate on people's links; heads are chosen on the grammar's, so these stay unseen."""
    forward, backward = model.load(MODELS / "many"), model.load(MODELS / "french-english")
    built_in = list(islice(read_aligned(CORPORA / "fr.valid.alignment.tsv"), LINKED))
    ahead = [Linked(Pair(f"<2fr> {r.source}", r.target), r.gold, r.source_spans, r.target_spans) for r in built_in]
    back = [Linked(Pair(r.target, r.source), turned(r.gold), r.target_spans, r.source_spans) for r in built_in]
    found: dict[str, Any] = {}
    for name, trained, linked in (("en-fr", forward, ahead), ("fr-en", backward, back)):
        trained.task.aligner, error = choose(trained.task, trained.network, linked)  # pyright: ignore
        found[name] = {"aligner": str(trained.task.aligner), "error on built-in sentences": error}  # pyright: ignore
    pairs, gold = list(read_pair_table(DATA / "hansards.tsv")), read_gold(DATA / "hansards.gold")
    found["attention"] = errors(attended(forward, backward, "fr", pairs), gold)
    text = [Pair(source, target) for target, source in rows(DATA / "fren.train.tsv")]
    found["model 1"] = errors(counted(text, pairs), gold)
    return found


def turned(gold: Gold) -> Gold:
    return Gold(*(frozenset((j, i) for i, j in links) for links in (gold.sure, gold.possible)))


def rows(path: Path) -> Iterable[tuple[str, str]]:
    return ((pair.source, pair.target) for pair in read_pair_table(path))
