"""How an answer is told: the text on stdout, doubts on stderr, or all of it as JSON; and a picture if asked for."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.output import printable

if TYPE_CHECKING:
    from regard.see.picture import Picture
    from regard.tasks.model import Trained
    from regard.tasks.task import Answer, Attended, Options

BEST = "heads that align best"
LAYER = re.compile(r"layers\.(\d+)\.")
TAG = re.compile(r"<2[\w-]+>")  # the language to translate into, before the sentence


@dataclass
class Told:
    trained: Trained
    options: Options
    as_json: bool
    show: bool
    out: Path | None
    rows: int = 0
    strange: list[tuple[int, str]] = field(default_factory=list)  # rows with unknown words, and the first of them
    cut: list[int] = field(default_factory=list)

    def one(self, answer: Answer) -> None:
        """An answer to a person: with its doubts."""
        if self.as_json:
            self._json(answer)
        else:
            self._plain(answer)
            sys.stdout.flush()
            print(doubts(answer), file=sys.stderr)
        self._draw(answer)

    def line(self, answer: Answer) -> None:
        """An answer among many: a line, or as many as were asked for, with the number of the row before each."""
        self.rows += 1
        if answer.unknown:
            self.strange.append((self.rows, answer.unknown[0]))
        if answer.cut:
            self.cut.append(self.rows)
        if self.as_json:
            self._json(answer)
        else:
            self._plain(answer, f"{self.rows}\t")
        self._draw(answer)

    def end(self) -> None:
        """The doubts about all lines together."""
        said = []
        if self.strange:
            row, word = self.strange[0]
            said.append(f"{_count(self.strange, self.rows)} with words that training never saw (row {row}: {word!r})")
        if self.cut:
            said.append(f"{_count(self.cut, self.rows)} longer than the model reads, and cut (row {self.cut[0]})")
        if said and not self.as_json:
            print(f"regard: {'; '.join(said)}; --json says it of each", file=sys.stderr)

    def _plain(self, answer: Answer, row: str = "") -> None:
        if self.options.n_best == 1:
            print(shown(answer.output))
            return
        for output, sure in [(answer.output, answer.confidence), *answer.others][: self.options.n_best]:
            print(f"{row}{sure:.4f}\t{shown(output)}")

    def _json(self, answer: Answer) -> None:
        found = as_json(answer, self.trained.task.name)
        if self.show:
            found["attention"] = [
                {
                    "name": each.name,
                    "rows": each.rows,
                    "columns": each.columns,
                    "weights": _rounded(each.weights.tolist()),
                }
                for each in self.trained.attended(answer)
            ]
        print(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace").decode())

    def _draw(self, answer: Answer) -> None:
        if not (self.out or (self.show and not self.as_json)):
            return
        attended = self.trained.attended(answer)
        if not attended:
            nothing = "there is nothing" if not (answer.source or answer.output) else "this model has no attention"
            print(f"regard: nothing to draw: {nothing} that could be shown", file=sys.stderr)
            return
        picture = picture_of(answer, attended, self.trained.task.name, self.trained.path.name)
        if self.show and not self.as_json:
            from rich.console import Console

            from regard.see.terminal import heatmap

            console, first = Console(highlight=False), picture.only(0).at_first()
            console.print(heatmap(first))
            console.print(first.note, style="dim")
        if self.out is not None:
            save(picture, self.out)
            print(f"regard: drawn into {self.out}", file=sys.stderr)


def picture_of(answer: Answer, attended: list[Attended], task: str = "", model: str = "") -> Picture:
    """All layers, in pieces; `whole_words` puts these together."""
    import torch

    from regard.see.picture import Picture
    from regard.tasks.tokenizers import BOS, EOS, PAD, SPECIAL

    attended = list({each.name: each for each in reversed(attended)}.values())[::-1]  # the best layer comes twice
    first = attended[0]
    ends = [each.removed for each in attended if each.removed is not None]
    removed = torch.stack(ends) if len(ends) == len(attended) else None
    both = answer.output and task in ("translate", "denoise", "classify")
    title = f"{answer.text} → {answer.output}" if both else answer.text if task == "tag" else answer.output
    tags = {token for token in first.columns if TAG.fullmatch(token)} if task == "translate" else set()
    picture = Picture(
        torch.stack([each.weights for each in attended]),
        first.rows,
        first.columns,
        title=_short(shown(title), 120),
        maps=[layer_of(each.name) for each in attended],
        special={SPECIAL[PAD], SPECIAL[BOS], SPECIAL[EOS], *tags},  # an unknown word is a word
        row_words=first.row_words,
        column_words=first.column_words,
        removed=removed,
        view="alignment" if task == "translate" else "text" if task in ("classify", "fill") else "matrix",
        whole=True,
        bare=task == "translate",
    )
    if not model:
        return picture
    mean = (
        ""
        if ", head " in first.name
        else f", in the mean over {'the ' + first.name if BEST in first.name else 'heads'}"
    )
    note = f"Attention of the model {model}{mean}."
    hidden = picture.only(0).at_first().removed
    if hidden is not None and hidden.numel() and hidden.mean() >= 0.005:
        note += f" {hidden.mean():.0%} of it went to tokens that are not shown."
    return replace(picture, note=note)


def layer_of(name: str) -> str:
    found, head = LAYER.search(name), name.partition(", head ")[2]
    layer = f"layer {int(found[1]) + 1}" if found else name.partition(", head ")[0]
    return f"{layer}, head {head}" if head else layer


def save(picture: Picture, out: Path) -> None:
    if out.suffix.lower() == ".html":
        from regard.see.page import save_page

        save_page(picture, out)
    else:
        from regard.see.figure import kind_of
        from regard.see.figure import save as save_figure

        first = picture.only(0).at_first()
        save_figure(first, out, kind_of(first))


def as_json(answer: Answer, task: str) -> dict[str, Any]:
    """What a program may want to know."""
    found: dict[str, Any] = {"text": answer.text, "output": answer.output, "confidence": _rounded(answer.confidence)}
    if task == "tag":
        found["words"] = [{"word": w, "tag": t, "confidence": _rounded(p)} for w, t, p in answer.words]
    elif task == "fill":
        found["blanks"] = [[{"word": w, "confidence": _rounded(p)} for w, p in blank] for blank in answer.blanks]
    else:
        found["others"] = [{"output": o, "confidence": _rounded(p)} for o, p in answer.others]
    return {**found, "unknown": list(answer.unknown), "cut": answer.cut}


def doubts(answer: Answer) -> str:
    """confidence 0.83; training never saw: Zorblax"""
    said = [f"confidence {answer.confidence:.2f}"]
    if len(answer.blanks) > 1 or (answer.blanks and not answer.others):
        said += [f"blank {i}: {_candidates(blank)}" for i, blank in enumerate(answer.blanks, 1)]
    elif answer.blanks:
        said.append(f"or {_candidates(answer.blanks[0][1:])}")
    if answer.unknown:
        said.append(f"training never saw: {', '.join(map(shown, answer.unknown))}")
    if answer.cut:
        said.append("the text was longer than the model reads, and cut")
    return "; ".join(said)


def shown(text: str) -> str:
    """One line, whatever the answer holds: a line of stdin has a line of stdout."""
    return printable(re.sub(r"[\r\n\v\f\x85\u2028\u2029\t]+", " ", text)).encode("utf-8", "replace").decode()


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _candidates(blank: tuple[tuple[str, float], ...]) -> str:
    return ", ".join(f"{shown(word)} {p:.2f}" for word, p in blank[:5])


def _count(rows: list[Any], of: int) -> str:
    return f"{len(rows)} of {of} lines"


def _rounded(x: Any) -> Any:
    return [_rounded(y) for y in x] if isinstance(x, list) else round(float(x), 6)
