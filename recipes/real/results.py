"""The page of results: tables from what was measured. What has no figure yet has a dash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

HEAD = """# Results on real text

Every figure is on a dev part, unless it says test; models were chosen on dev parts only. All were trained by
`regard train` on one H200, several side by side, and are measured again by

```
python -m recipes.real prepare --data FOLDER     the text as training reads it
python -m recipes.real begin                     tokenizers and folders of the runs
python -m recipes.real train NAME,NAME NAME …    those with a comma one after the other, the others side by side
python -m recipes.real measure                   every figure below
```

`regard train recipes/real/….toml …` trains one of them; the commands are below. Seconds are those of training, on a
card that was shared. Beam 5, length penalty 0.6, the mean of the last checkpoints."""


def written(found: Found) -> str:
    parts = [HEAD, captions(found), many(found), labels(found), pronounced(found), aligned(found), commands(found)]
    return "\n\n".join(parts) + "\n"


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
        ]
    )


def many(found: Found) -> str:
    here = found.get("many", {})
    rows = []
    for code, name in NAMES.items():
        dev, own = here.get("dev", {}).get(code, {}), here.get("built in", {}).get(code, {})
        rows.append([name, *(number(each.get(key)) for each in (dev, own) for key in ("bleu", "chrf"))])
    signatures = {each["bleu signature"] for each in here.get("dev", {}).values()}
    said = ", ".join(f"`{each}`" for each in sorted(signatures)) or "—"
    parts = [
        "## English into ten languages (Tatoeba and the built-in corpora)",
        f"One model, {size(here)} parameters, {whole(here.get('seconds'))} s. French is measured on `eng-fra.dev`, the "
        "other languages on sentences whose English side is in no language's training text. "
        f"sacreBLEU: {said}; Gujarati, Kannada and Tamil have the grammar's sentences only.",
        table(["", "dev BLEU", "dev chrF", "built-in test BLEU", "built-in test chrF"], rows),
    ]
    back = found.get("french-english", {})
    if back:
        parts.append(
            f"French into English, on the same dev part: {number(back['bleu'])} BLEU, {number(back['chrf'])} chrF."
        )
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
