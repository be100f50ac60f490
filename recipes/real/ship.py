"""The model into many languages as it comes with the library: float16, and a card that says what it can and cannot do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from recipes.real.measure import EVERYDAY, RESULTS
from recipes.real.results import EVERYDAY_IN, NAMES, number, table
from recipes.real.runs import MODELS
from recipes.shipping import aligner
from regard import pretrained
from regard.tasks import model

FROM, NAME = "many", "everyday"
ABOUT = "everyday English into ten languages"

CARD = """# Everyday English into ten languages

A model for `regard translate`: transformer, {parameters:,} parameters, {pieces:,} pieces (bpe). Labels: {labels}.

```
regard translate "Where is the train station?" --to fr --model everyday
```

## Data

Sentence pairs of the Tatoeba project (https://tatoeba.org, CC BY 2.0 FR; the French ones by way of
https://www.manythings.org/anki, CC BY 2.0): French 163,000, Marathi 36,000, German 26,000, Italian 21,000, Chinese
17,000, Spanish 16,000, Hindi 5,000; and sentences that the project's own grammar makes. Gujarati, Kannada and
Tamil know the grammar's sentences only. No alignment was shown in training; heads that align were chosen on fifty
sentences of the grammar in each language.

Licence: weights Apache-2.0; the data CC BY 2.0 FR and CC BY 2.0, with attribution to Tatoeba and manythings.org.

## Results

Trained in two sittings of {seconds} and 439 s on a card that it shared, seed 1. On sentences whose English side is in
no language's training text (French: `eng-fra.dev`), beam 5:

{figures}

sacreBLEU {signature}; Chinese by its tokenizer `zh`. Of the grammar: the held-out combinations that `translate`,
the model beside this one, is made for.

## What it cannot do

It has seen little of most languages, and 12 MB of weights hold little: sentences of more than a dozen words, idioms,
names and rare words come out wrong or invented, and it does not always say so by a low score. Of the twenty sentences
below nineteen are right in French, fifteen in Spanish, twelve in German and eleven in Italian; nobody has read its
Hindi, Marathi and Chinese. In Gujarati, Kannada and Tamil it knows animals, people, food, colours, sizes and actions,
and answers anything else with nonsense, some of it in another language. For the grammar's sentences take `translate`,
which makes fewer mistakes there: this one writes "El gato negro se comió al ratón." and a wrong ending in one Marathi
adjective of the black cat.

Twenty everyday sentences, good and bad alike:

{everyday}
"""


def ship(folder: Path = pretrained.HERE) -> None:
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))[FROM]
    trained = model.load(MODELS / FROM)
    trained.task.aligner = aligner(trained)  # pyright: ignore[reportAttributeAccessIssue]
    into = folder / NAME
    shutil.rmtree(into, ignore_errors=True)
    model.save(into, trained, half=True)
    (into / model.CARD).write_text(card(found, trained), encoding="utf-8")
    path = folder / pretrained.INDEX
    listed = json.loads(path.read_text(encoding="utf-8"))
    listed[NAME] = {"folder": NAME, "task": "translate", "about": ABOUT, "to": list(trained.task.labels)}
    path.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")


def card(found: dict[str, Any], trained: model.Trained) -> str:
    rows = []
    for code, name in NAMES.items():
        dev, own = found["dev"].get(code, {}), found["built in"].get(code, {})
        rows.append([name, *(number(each.get(key)) for each in (dev, own) for key in ("bleu", "chrf"))])
    said = [[text, *(found["everyday"][code][place] for code in EVERYDAY_IN)] for place, text in enumerate(EVERYDAY)]
    return CARD.format(
        parameters=found["parameters"],
        pieces=len(trained.task.tokenizer),
        labels=", ".join(trained.task.labels),
        seconds=found["seconds"],
        figures=table(["", "dev BLEU", "chrF", "grammar BLEU", "chrF"], rows),
        signature=f"`{found['dev']['fr']['bleu signature']}`",
        everyday=table(["English", *(NAMES[code] for code in EVERYDAY_IN)], said),
    )
