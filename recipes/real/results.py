"""The page of results: tables from what was measured. What has no figure yet has a dash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Found = Mapping[str, Any]

CAPTIONS = {
    "ende-h1": "en→de, H1 RNN without attention",
    "ende-h2-dot": "en→de, H2 dot",
    "ende-h2-bilinear": "en→de, H2 bilinear",
    "ende-h2-additive": "en→de, H2 additive",
    "ende-h2-feeding": "en→de, H2 additive, fed back",
    "ende-h3-tiny": "en→de, H3 Transformer, 128 wide",
    "ende-h3": "en→de, H3 Transformer",
    "enfr-h2": "en→fr, H2 additive",
    "enfr-h3": "en→fr, H3 Transformer",
    "deen-h2": "de→en, H2 additive",
    "deen-h3": "de→en, H3 Transformer",
}
PEERS = {"ende-h3": ("39.1", "39.0"), "enfr-h3": ("56.5", "58.6"), "deen-h3": ("41.8", "41.2")}
ACCURACY = {
    "ewt": ("English EWT, UPOS", "94.4 (UDPipe)"),
    "ewt-glove": ("English EWT with GloVe, UPOS", "96.9 (spaCy, a pretrained Transformer)"),
    "sequoia": ("French Sequoia, UPOS", ""),
    "ufal": ("Marathi UFAL, UPOS", ""),
    "sst": ("SST-2, phrases and GloVe", "85.6 (CNN, static word2vec; test)"),
    "fill": ("English Tatoeba, hidden words", ""),
    "generate": ("English Tatoeba, next pieces", ""),
}
NAMES = {
    "fr": "French", "it": "Italian", "de": "German", "es": "Spanish", "zh": "Chinese", "hi": "Hindi", "mr": "Marathi",
    "gu": "Gujarati", "kn": "Kannada", "ta": "Tamil",
}  # fmt: skip

# What each run was meant to reach on its dev part, and where it is found.
GOALS = (
    ("Multi30k en→de, Transformer, val BLEU", "ende-h3-tiny", "val bleu", 40.5),
    ("Multi30k en→fr, Transformer, val BLEU", "enfr-h3", "val bleu", 58.0),
    ("Multi30k de→en, Transformer, val BLEU", "deen-h3", "val bleu", 42.5),
    ("Multi30k en→de, RNN with attention, val BLEU", "ende-h2-additive", "val bleu", 35.0),
    ("Multi30k en→fr, RNN with attention, val BLEU", "enfr-h2", "val bleu", 51.0),
    ("Multi30k de→en, RNN with attention, val BLEU", "deen-h2", "val bleu", 36.0),
    ("Tatoeba en→fr, many languages, dev BLEU", "many", "fr bleu", 40.0),
    ("Tatoeba en→fr, many languages, dev chrF", "many", "fr chrf", 60.0),
    ("EWT, parts of speech with GloVe, dev", "ewt-glove", "accuracy", 0.955),
    ("EWT, parts of speech without, dev", "ewt", "accuracy", 0.945),
    ("SST-2, dev", "sst", "accuracy", 0.86),
    ("CMUdict, words of a 5% split", "cmudict", "word accuracy", 0.72),
)

EVERYDAY_IN = ("fr", "it", "de", "es")

HEAD = """# Results on real text

Every figure is on a dev part, unless it says test; models were chosen on dev parts only. All were trained by
`regard train` on one H200 in two sittings of eight minutes, nine to seventeen runs at the same time (the sentiment
model and the French and Marathi taggers on one core of a busy CPU), and are measured again by

```
python -m recipes.real prepare --data FOLDER     the text as training reads it
python -m recipes.real begin                     tokenizers and folders of the runs
python -m recipes.real train NAME,NAME NAME …    those with a comma one after the other, the others side by side
python -m recipes.real measure                   every figure below
```

`regard train recipes/real/….toml …` trains one of them; the commands are below. Seconds are those of training, on a
card that was shared. Beam 5, length penalty 0.6, the mean of the last checkpoints."""


WHY = """Most of what was missed was missed for want of steps. In the first sitting, nine runs side by side, each made
about ten steps a second, whatever its batch; in the second, with seventeen, four. The Transformers on captions had
3,400 to 4,300 steps, some 30 to 40 passes over their text; in the second sitting they were tried again with larger
batches and had 1,700, which was worse (31.6 en→de, 48.2 en→fr, 36.0 de→en) and is not shown. The Tatoeba models read
their text 12 to 30 times, and the one into many languages has 6M parameters, so that it fits a package. Alignment
was measured on parliament's sentences, long and of words that none of these models read in training; model 1 could at
least learn from the 100 pairs themselves. A longer run is the same command with more `schedule.minutes`. Every run has
one seed."""


def written(found: Found, everyday: Sequence[str]) -> str:
    parts = [
        HEAD,
        goals(found),
        captions(found),
        many(found, everyday),
        labels(found),
        pronounced(found),
        aligned(found),
        commands(found),
    ]
    return "\n\n".join(parts) + "\n"


def goals(found: Found) -> str:
    """What was reached of what was wanted."""
    rows = []
    for about, name, key, least in GOALS:
        value = found.get(name, {}).get(key)
        factor, digits = (100, 2) if least < 1 else (1, 1)
        reached = "" if value is None else "yes" if value >= least else "no"
        scaled = None if value is None else factor * value
        rows.append([about, number(scaled, digits), number(factor * least, 1), reached])
    here = found.get("alignment", {})
    best = {key: min(here[key].values()) for key in ("attention", "model 1") if key in here}
    if len(best) == 2:
        cells = [number(100 * best["attention"]), f"below {number(100 * best['model 1'])}"]
        rows.append(
            ["Alignment error, best of four ways", *cells, "yes" if best["attention"] < best["model 1"] else "no"]
        )
    return "\n\n".join(["## Wanted and reached", table(["", "reached", "wanted", ""], rows), WHY])


def picture(found: Found, path: Path) -> None:
    """BLEU by the length of the caption: without attention, with it, and attention alone."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    drawn = {"ende-h1": ("#b2182b", "-"), "ende-h2-additive": ("#2166ac", "--"), "ende-h3-tiny": ("#1b7837", "-")}
    for name, (colour, line) in drawn.items():
        if name in found:
            lengths = found[name]["by length"]
            axes.plot(list(lengths), list(lengths.values()), line, marker="o", color=colour, label=CAPTIONS[name])
    axes.set(xlabel="words in the English caption", ylabel="BLEU (val and test)", ylim=(0, None))
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def captions(found: Found) -> str:
    rows = []
    for name, about in CAPTIONS.items():
        here = found.get(name, {})
        peers = PEERS.get(name, ("", ""))
        cells = [number(here.get("val bleu")), peers[0], number(here.get("test bleu")), peers[1]]
        rows.append([about, *cells, size(here), whole(here.get("steps")), whole(here.get("seconds"))])
    heads = ["", "val", "peer", "test 2016", "peer", "parameters", "steps", "seconds"]
    signature = next((each["signature"] for each in found.values() if "signature" in each), "—")
    lengths = [name for name in CAPTIONS if name in found]
    buckets = list(found[lengths[0]]["by length"]) if lengths else []
    by_length = [[CAPTIONS[name], *(number(each) for each in found[name]["by length"].values())] for name in lengths]
    return "\n\n".join(
        [
            "## Captions (Multi30k)",
            f"BLEU, sacreBLEU `{signature}`. The peer is a plain nn.Transformer of 9.4M parameters with an ordinary "
            "recipe (4 + 4 layers, 256 wide, dropout 0.3, joint lower-cased BPE of 8,000 pieces, 40 passes, the mean of "
            "the last 10, beam 5) on the same machine. For measuring only: no weights trained on these are shipped.",
            table(heads, rows),
            "By the number of words in the source, val and test together:",
            table(["", *buckets], by_length) if by_length else "—",
            "![BLEU by the number of words in the caption](pictures/multi30k.png)",
        ]
    )


def many(found: Found, everyday: Sequence[str]) -> str:
    here = found.get("many", {})
    rows = []
    for code, name in NAMES.items():
        dev, own = here.get("dev", {}).get(code, {}), here.get("built in", {}).get(code, {})
        rows.append([name, *(number(each.get(key)) for each in (dev, own) for key in ("bleu", "chrf"))])
    signatures = {each["bleu signature"] for each in here.get("dev", {}).values()}
    said = ", ".join(f"`{each}`" for each in sorted(signatures)) or "—"
    parts = [
        "## English into ten languages (Tatoeba and the built-in corpora)",
        f"One model, {size(here)} parameters, trained in two sittings (4,005 steps of 24,576 pieces in 439 s, then "
        f"{whole(here.get('steps'))} of 49,152 in {whole(here.get('seconds'))} s). French is measured on `eng-fra.dev`, the "
        "other languages on sentences whose English side is in no language's training text. "
        f"sacreBLEU: {said}; Gujarati, Kannada and Tamil have the grammar's sentences only.",
        table(["", "dev BLEU", "dev chrF", "built-in test BLEU", "built-in test chrF"], rows),
    ]
    for name, about in (
        ("english-french", "English into French and nothing else"),
        ("french-english", "French into English"),
    ):
        one = found.get(name, {})
        if "bleu" in one:
            parts.append(
                f"{about}, on the same dev part: {number(one['bleu'])} BLEU, {number(one['chrf'])} chrF; "
                f"{size(one)} parameters, {whole(one['steps'])} steps, {whole(one['seconds'])} s."
            )
    answers = here.get("everyday", {})
    shown = [NAMES[code] for code in EVERYDAY_IN if code in answers]
    if shown:
        rows = [[text, *(answers[code][place] for code in EVERYDAY_IN)] for place, text in enumerate(everyday)]
        parts += ["What it makes of twenty everyday sentences, good and bad:", table(["", *shown], rows)]
    return "\n\n".join(parts)


def labels(found: Found) -> str:
    rows = []
    for name, (about, peer) in ACCURACY.items():
        here = found.get(name, {})
        share, loss = here.get("accuracy"), here.get("loss")
        cells = [number(None if share is None else 100 * share, 2), number(loss, 3), peer]
        rows.append([about, *cells, size(here), whole(here.get("seconds"))])
    heads = ["", "accuracy", "loss", "others report", "parameters", "seconds"]
    return "\n\n".join(["## Tagging, sentiment, filling in, continuing", table(heads, rows)])


def pronounced(found: Found) -> str:
    here = found.get("cmudict", {})
    share = here.get("word accuracy")
    return (
        "## Pronunciation (CMUdict)\n\n"
        f"{number(None if share is None else 100 * share)}% of {whole(here.get('words'))} unseen words come out as one of "
        f"the listed pronunciations, stress left out; {size(here)} parameters, {whole(here.get('seconds'))} s."
    )


def aligned(found: Found) -> str:
    here = found.get("alignment", {})
    ways = ("forward", "backward", "intersection", "grown")
    rows = [
        [about, *(number(None if key not in here else 100 * here[key][way]) for way in ways)]
        for key, about in (("attention", "cross-attention"), ("model 1", "IBM model 1"))
    ]
    heads = ["", "en→fr", "fr→en", "both say", "both, grown"]
    return "\n\n".join(
        [
            "## Alignment (100 pairs of the Hansards)",
            "Error rate in percent, on links that people drew. Heads were chosen on 50 sentences of the built-in grammar. "
            "Both learned from the same Tatoeba text, none of it parliament's; model 1 also saw the 100 pairs, without links.",
            table(heads, rows),
        ]
    )


def throughput(found: Found) -> str:
    """What benchmarks.throughput wrote, where it is there."""
    head = (
        "## Sentences a second on a CPU\n\n`python -m benchmarks.throughput`: `regard translate` beside transformers' "
        "Marian code of the same sizes (256 wide, 3 + 3 layers) with random weights, 1,000 sentences in the same "
        "batches, 16 pieces written of each; the wanted ratio is 1.5. What is left of greedy search is "
        "nearly all products of matrices and attention."
    )
    rows = []
    for each in found.get("throughput", ()):
        speeds = [number(speed) for speed in each["sentences per second"].values()]
        rows.append([str(each["threads"]), str(each["beam"]), *speeds, number(each["ratio"], 2)])
    return f"{head}\n\n{table(['threads', 'beam', 'regard', 'Marian', 'ratio'], rows) if rows else '—'}"


def commands(found: Found) -> str:
    lines = [f"{here['command']}" for here in found.values() if "command" in here]
    return "\n\n".join(["## Commands", "```\n" + "\n".join(lines) + "\n```" if lines else "—"])


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows))


def number(value: float | None, digits: int = 1) -> str:
    return "—" if value is None else f"{value:.{digits}f}"


def whole(value: int | None) -> str:
    return "—" if value is None else f"{value:,}"


def size(here: Found) -> str:
    return f"{here['parameters'] / 1e6:.1f}M" if "parameters" in here else "—"
