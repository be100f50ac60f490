"""Any string through every task and every picture: an answer to each, nothing unescaped, places of the original."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import torch

import regard
from regard import InputError, pretrained
from regard.cli import told
from regard.cli.pictures import Asked, picture_of
from regard.see.figure import encoded
from regard.see.page import page
from regard.see.payload import pack
from regard.see.picture import Picture
from regard.see.terminal import heatmap
from regard.tasks import tokenizers
from regard.tasks.fill import BLANK
from regard.tasks.model import Trained
from regard.tasks.task import Answer, Options
from regard.web.operations import picture_of_answer
from torture.progress import track
from torture.service import models
from torture.strings import strings
from torture.table import Figure

NAME = "text"
BAR = "10,000 strings through every task and picture: 0 exceptions, 0 unescaped, offsets index the original"
COUNT, QUICK, SHIPPED, SEED = 10_000, 24, 200, 11
TOGETHER = 25  # texts that are answered together
DRAWN = {"svg": 10, "png": 50, "pdf": 50}  # one string in so many, as a file that matplotlib writes
WIDEST = 40  # pieces of a picture that matplotlib draws
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
SVG = "{http://www.w3.org/2000/svg}"
HARMLESS = {
    "svg",
    "g",
    "path",
    "use",
    "defs",
    "style",
    "clipPath",
    "rect",
    "image",
    "text",
    "metadata",
    "linearGradient",
    "stop",
    "title",
}


@dataclass
class Found:
    wrong: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)

    def check(self, what: str, text: str, do: Callable[[], Iterable[str]]) -> None:
        """Run it; whatever it complains about is wrong, and whatever it raises but for one clear line."""
        self.done[what] += 1
        try:
            for complaint in do():
                self.wrong[f"{what}: {complaint}: {_short(text)}"] += 1
        except InputError as error:
            if len(str(error).splitlines()) != 1:
                self.wrong[f"{what}: an error of several lines: {_short(text)}"] += 1
        except Exception as error:
            self.wrong[f"{what}: {type(error).__name__}: {' '.join(str(error).split())[:150]}: {_short(text)}"] += 1


def run(quick: bool) -> Figure:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with TemporaryDirectory(prefix="torture-") as folder:
            found = _run(Path(folder), QUICK if quick else COUNT, quick)
    finally:
        torch.set_num_threads(threads)
    detail = [f"{what} ({count})" for what, count in found.wrong.most_common()]
    answers = sum(count for what, count in found.done.items() if what.startswith("answer"))
    pictures = sum(found.done.values()) - answers - found.done["offsets"]
    figure = f"{QUICK if quick else COUNT:,} strings: {answers:,} answers, {pictures:,} pictures, {len(detail)} faults"
    return Figure(NAME, figure, not detail, detail)


def _run(folder: Path, count: int, quick: bool) -> Found:
    found = Found()
    trained = {task: regard.load(place) for task, place in models(folder, data__longest=48).items()}
    known = ["the", "black", "cat", "sees", "a", "dog", "नमस्ते", "שלום", "中文", "é"]
    made = [
        tokenizers.train(kind, known, 300, lowercase)
        for kind in ("word", "bpe", "bytes")
        for lowercase in (False, True)
    ]
    every = list(strings(count, SEED))
    for start in track(range(0, count, TOGETHER), "texts"):
        texts = every[start : start + TOGETHER]
        for text in texts:
            for tokenizer in made:
                found.check("offsets", text, lambda text=text, tokenizer=tokenizer: offsets(tokenizer, text))
        for place, task in enumerate(trained):
            answered(
                found, trained[task], texts, lambda number, place=place, start=start: (number + start) % 6 == place
            )
        for number, text in enumerate(texts, start):
            found.check("show", text, lambda text=text, number=number: shown(text, number))
    for name in () if quick else pretrained.names():
        answered(found, pretrained.load(name), every[:: count // SHIPPED], lambda number: number % 4 == 0)
    return found


# Tasks


def answered(found: Found, trained: Trained, texts: list[str], drawn: Callable[[int], bool]) -> None:
    """Together where that goes, as they would be in a file; those that are `drawn` with their pictures."""
    task = trained.task.name
    asked = [text if task != "fill" or BLANK.search(text) else f"{text[:30]} ____ {text[30:]}" for text in texts]
    options = (
        Options(beam=2, n_best=2, longest=12, seed=1)
        if task != "generate"
        else Options(temperature=0.8, longest=8, seed=1)
    )
    try:
        answers = trained.answer(asked, options)
    except Exception:
        answers = [None] * len(asked)  # which one it was, each of them says alone
    for number, (text, answer) in enumerate(zip(asked, answers, strict=True)):

        def do(number: int = number, text: str = text, answer: Answer | None = answer) -> Iterator[str]:
            one = answer or trained.answer([text], options)[0]
            yield from complaints(task, text, one)
            if drawn(number):
                picture = picture_of_answer("tiny", trained, one)
                if picture is not None:
                    found.check(f"picture of {task}", text, lambda: pictures(picture, number))

        found.check(f"answer of {task}", text, do)


def complaints(task: str, text: str, answer: Answer) -> Iterator[str]:
    if answer.text != text:
        yield "its text is not the original"
    as_json = json.loads(json.dumps(told.as_json(answer, task), ensure_ascii=False).encode("utf-8", "replace"))
    if as_json["text"] != text.encode("utf-8", "replace").decode():
        yield "JSON has another text"
    if len(told.shown(answer.output).splitlines()) > 1 or control(told.shown(answer.output)):
        yield "its line on a terminal is not one line of what can be printed"
    if control(told.doubts(answer)):
        yield "its doubts hold control characters"
    at = 0
    for word, _, _ in answer.words:
        place = text.find(word, at)
        if place < 0:
            yield f"the word {_short(word)} is not where it should be in the original"
            break
        at = place + len(word)
    for word in answer.unknown:
        if word not in text:
            yield f"the unknown {_short(word)} is not of the original"


def offsets(tokenizer: tokenizers.Tokenizer, text: str) -> Iterator[str]:
    text = text[:5000]
    pieces = tokenizer.encode(text)
    before = 0
    for token, id, (start, end) in zip(pieces.tokens, pieces.ids, pieces.offsets, strict=True):
        if not 0 <= start <= end <= len(text) or start < before:
            yield f"{tokenizer.kind}: piece {token!a} at {start}:{end} of {len(text)} characters"
            return
        before = start
        part = text[start:end]
        small = "".join(c.lower() for c in part) if tokenizer.lowercase else part
        if tokenizer.kind == "word" and id != tokenizers.UNK and unicodedata.normalize("NFC", small) != token:
            yield f"word: {token!a} stands for {part!a}"
    if tokenizer.kind == "bytes" and not tokenizer.lowercase:
        clean = re.sub("[\ud800-\udfff]", "\ufffd", text)
        if tokenizer.decode(pieces.ids) != clean:
            yield "bytes: decode(encode(text)) is another text"
        if not _covered(pieces.offsets, len(text)):
            yield "bytes: offsets leave characters out"


def _covered(spans: Iterable[tuple[int, int]], size: int) -> bool:
    reached = 0
    for start, end in spans:
        if start > reached:
            return False
        reached = max(reached, end)
    return reached == size


# Pictures


def shown(text: str, number: int) -> Iterator[str]:
    """As `regard show` draws a sentence. A thousand characters, which is what the page takes."""
    picture = picture_of(
        text[:1000], [Asked("scaled-dot", "softmax"), Asked("additive", "sparsemax")], walk=number % 7 == 0
    )
    yield from pictures(picture, number)


def pictures(picture: Picture, number: int) -> Iterator[str]:
    drawn = heatmap(picture.only(0)).text(100, "none")
    if control(COLOURS.sub("", drawn).replace("\n", "")):
        yield "control characters in the terminal's picture"
    json.dumps(pack(picture), allow_nan=False).encode()
    yield from unescaped(page(picture))
    if max(picture.weights.shape[1:]) > WIDEST:
        return
    for form, one_in in DRAWN.items():
        if number % one_in == 0:
            data = encoded(picture.only(0), form, dpi=40)
            if form == "svg":
                yield from foreign_elements(data)


class Structure(HTMLParser):
    """The elements of a page and the names of their attributes, in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.ended: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.ended.append(tag)


def structure(text: str) -> tuple[Any, Any]:
    parser = Structure()
    parser.feed(text)
    parser.close()
    return parser.found, parser.ended


EXPECTED = structure(page(Picture(torch.eye(1), ["a"], ["a"], title="a")))


def unescaped(written: str) -> Iterator[str]:
    written.encode()
    if structure(written) != EXPECTED:
        yield "the page has other elements than a page of plain letters"
    start = written.index('id="payload">') + len('id="payload">')
    json.loads(written[start : written.index("</script>", start)])


def foreign_elements(svg: bytes) -> Iterator[str]:
    for element in ElementTree.fromstring(svg).iter():
        name = element.tag.removeprefix(SVG)
        if element.tag.startswith(SVG) and name not in HARMLESS:
            yield f"the SVG holds <{name}>"
        if any(attribute.lower().startswith("on") for attribute in element.attrib):
            yield "the SVG holds an event handler"


def control(text: str) -> bool:
    return any(unicodedata.category(c) in ("Cc", "Cs") for c in text)


def _short(text: str) -> str:
    return ascii(text[:40]) + ("…" if len(text) > 40 else "")
