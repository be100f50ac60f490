"""What is trained on real text: each run a recipe beside this file, and what is different from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from regard.tasks import config
from regard.tasks.config import Run

HERE = Path(__file__).parent
DATA, MODELS = Path("scratch/real/data"), Path("scratch/real/models")


@dataclass(frozen=True)
class Real:
    recipe: str
    keys: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()  # files whose lines are translated after training, one answer a line

    def run(self, *more: str) -> Run:
        return config.read(HERE / f"{self.recipe}.toml", [*self.keys, *more])


def captions(recipe: str, source: str, target: str, *keys: str) -> Real:
    files = {part: [str(DATA / f"multi30k.{part}.{code}") for code in (source, target)] for part in ("train", "val")}
    ours = (f"data.train={','.join(files['train'])}", f"data.valid={','.join(files['val'])}")
    asked = tuple(str(DATA / f"multi30k.{part}.{source}") for part in ("val", "test"))
    return Real(recipe, (*ours, *keys), asked)


def treebank(name: str, *keys: str) -> Real:
    return Real("tag", (f"data.train={DATA / name}.train.conllu", f"data.valid={DATA / name}.dev.conllu", *keys))


TINY = ("model.d=128", "model.heads=4", "model.hidden=256", "optim.lr=4e-3", "optim.warmup=1000", "optim.rdrop=0")
NARROW = ("data.vocabulary=4000", "data.tokens=1024", "schedule.steps=2500")
GLOVE = "scratch/data/glove_100d_subset/glove.100d.subset.txt.xz"
VECTORS = (f"data.vectors={GLOVE}", "data.vocabulary=60000", "data.frozen=false")

RUNS = {
    "many": Real("many"),
    "english-french": Real("english-french"),
    "french-english": Real("french-english"),
    "ende-h3": captions("multi30k", "en", "de"),
    "ende-h3-tiny": captions("multi30k", "en", "de", *TINY),
    "enfr-h3": captions("multi30k", "en", "fr"),
    "deen-h3": captions("multi30k", "de", "en"),
    "ende-h1": captions("multi30k-rnn", "en", "de", "model.kind=rnn", "model.hidden=768"),
    "ende-h2-additive": captions("multi30k-rnn", "en", "de"),
    "ende-h2-feeding": captions("multi30k-rnn", "en", "de", "model.feeding=true"),
    "ende-h2-bilinear": captions("multi30k-rnn", "en", "de", "model.score=bilinear"),
    "ende-h2-dot": captions(
        "multi30k-rnn", "en", "de", "model.score=dot", "model.bidirectional=false", "model.hidden=640"
    ),
    "enfr-h2": captions("multi30k-rnn", "en", "fr"),
    "deen-h2": captions("multi30k-rnn", "de", "en"),
    "ewt": treebank("ewt"),
    "ewt-glove": treebank("ewt", *VECTORS),
    "sequoia": treebank("sequoia", *NARROW),
    "ufal": treebank("ufal", *NARROW, "schedule.steps=1500", "data.tokens=512"),
    "fill": Real("fill"),
    "generate": Real("generate"),
    "sst": Real("sst"),
    "cmudict": Real("cmudict", asked=(str(DATA / "cmudict.dev.words"),)),
}
