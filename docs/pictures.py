"""The pictures that the README and the gallery open with, each made by the command that stands beside it.

`python -m docs.pictures` writes docs/pictures/*.png, those of the README; `docs.build` makes a page of all of them.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from docs.sentence import TEXT
from regard import cli, pretrained
from regard.core.shapes import InputError

HERE = Path(__file__).parent
CAT = "This is a cat"
BLACK_CAT = "The black cat ate the mouse."
LANGUAGES = {
    "fr": "French", "it": "Italian", "de": "German", "es": "Spanish", "zh": "Chinese", "hi": "Hindi",
    "mr": "Marathi", "gu": "Gujarati", "kn": "Kannada", "ta": "Tamil",
}  # fmt: skip
WORDS = "dog cat horse cow mouse sheep tree flower grass oak leaf shrub run walk eat sleep jump swim"


@dataclass(frozen=True)
class Shown:
    """One command, without the file that it writes."""

    name: str  # of its files
    title: str
    about: str
    command: tuple[str, ...]
    terminal: tuple[str, ...] = ()  # added where nothing is written into a file
    page: tuple[str, ...] = ()  # added where a page is written
    file: tuple[str, ...] = ()  # added where anything is
    readme: bool = False


SENTENCES = [
    Shown(
        "cat-dot", "“This is a cat”, with dot products",
        "The words have random numbers, the same for the same seed; the page walks through every one of them.",
        ("show", CAT, "--score", "dot"), page=("--view", "walk"),
    ),
    Shown(
        "cat-additive", "“This is a cat”, with additive scores",
        "The same words, the same numbers, another score.",
        ("show", CAT, "--score", "additive"), page=("--view", "walk"), readme=True,
    ),
    Shown(
        "cat-compare", "The two beside each other",
        "And what the first gives more than the second.",
        ("show", CAT, "--score", "dot", "--compare", "additive"), readme=True,
    ),
    Shown(
        "dog", "The dog’s sentence attends to itself",
        "Each word takes its turn as the query. Its vectors are made by hand, so that it can be seen why “he” finds “his”, "
        "and “tail” the dog.",
        ("show", TEXT, "--vectors", "examples/sentence.glove.txt"), readme=True,
    ),
    Shown(
        "words", "A map of word vectors",
        "Animals, plants and verbs fall together (18 words of GloVe).",
        ("show", WORDS, "--vectors", "examples/words.glove.txt"), file=("--view", "vectors"), readme=True,
    ),
]  # fmt: skip


def black_cat(language: str) -> Shown:
    return Shown(
        f"black-cat-{language}", f"The black cat in {LANGUAGES[language]}",
        "Which English word each word looked at. Orange: the order of two neighbours turns round. Green: several words come "
        "from one.",
        ("translate", BLACK_CAT, "--to", language), terminal=("--show",), readme=language in ("fr", "hi"),
    )  # fmt: skip


BLANK = Shown(
    "blank", "What a blank looked at before it was filled", "",
    ("fill", TEXT.replace("happy,", "____ ,"), "--n-best", "5"), terminal=("--show",), readme=True,
)  # fmt: skip


def all_shown() -> Iterator[Shown]:
    """Those that can be made here: a translation needs a model."""
    known = [language for language in LANGUAGES if pretrained.default("translate", language)]
    yield from map(black_cat, known)
    if pretrained.default("fill"):
        yield BLANK
    yield from SENTENCES


def draw(one: Shown, path: Path) -> None:
    run([*into(one, path.name)[:-1], str(path)])


def printed(one: Shown) -> str:
    """What the terminal shows, without colour."""
    return run([*one.command, *one.terminal])


def into(one: Shown, name: str) -> list[str]:
    """The command that writes a file of this name, without the word regard."""
    return [*one.command, *one.file, *(one.page if name.endswith(".html") else ()), "--out", name]


def line(arguments: Iterable[str]) -> str:
    """The command as it is typed."""
    return shlex.join(["regard", *arguments])


def run(arguments: list[str]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(io.StringIO()) as wrong:
        try:
            cli.main(arguments)
        except SystemExit as ended:
            if ended.code:
                raise InputError(f"{line(arguments)}: {wrong.getvalue().strip()}") from None
    return said.getvalue().rstrip()


def main(folder: Path = HERE / "pictures") -> None:
    folder.mkdir(exist_ok=True)
    for one in all_shown():
        if one.readme:
            path = folder / f"{one.name}.png"
            draw(one, path)
            with Image.open(path) as image:  # 256 colours: a fifth of the size, and no difference to be seen
                image.convert("RGB").quantize(256).save(path, optimize=True)
            print(f"{path.stat().st_size / 1000:6.0f} kB  {line(into(one, path.name))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "pictures")
