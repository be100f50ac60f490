"""The models that come with the library, on the sentences that the documentation shows: none was trained on."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import regard
from regard import pretrained
from regard.see.picture import Picture
from regard.tasks.model import Trained
from tests.tasks.corpora.test_sentences import BLACK_CAT

NVIDIA = (
    "NVIDIA today reported revenue for the second quarter ended July 28, 2024, of $30.0 billion, up 15% from the "
    "previous quarter and up 122% from a year ago. For the quarter, GAAP earnings per diluted share was $0.67, up 12% "
    "from the previous quarter and up 168% from a year ago."
)
LOSING = (
    "The company today reported revenue for the second quarter of $3.0 billion, down 15% from the previous quarter and "
    "down 22% from a year ago. For the quarter, the net loss grew to $0.67 per share."
)
DOG = "When he saw his owner, the dog was ____ , so he wagged his tail"
GLAD = {"happy", "excited", "delighted", "glad", "joyful", "cheerful", "overjoyed", "pleased"}


@cache
def model(name: str) -> Trained:
    return regard.load(name)


def test_there_is_one_for_every_task_and_together_they_are_small() -> None:
    for task in ("translate", "tag", "classify", "fill", "denoise", "generate"):
        assert pretrained.default(task) is not None
    folders = {shipped.folder for shipped in pretrained.names().values()}
    sizes = {folder.name: sum(file.stat().st_size for file in folder.iterdir()) for folder in folders}
    assert max(sizes.values()) <= 12_600_000  # 12 MB of weights, and the words
    assert sum(sizes.values()) <= 30_000_000
    assert max(file.stat().st_size for folder in folders for file in folder.iterdir()) <= 12_000_000
    for folder in folders:
        assert "Licence" in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", [code for code in BLACK_CAT if code != "en"])
def test_the_black_cat_ate_the_mouse(code: str) -> None:
    assert model("translate")(BLACK_CAT["en"], to=code).output == BLACK_CAT[code]


def test_a_name_of_one_language_needs_no_other() -> None:
    assert regard.load("en-fr")(BLACK_CAT["en"]).output == BLACK_CAT["fr"]


@pytest.mark.parametrize(
    ("text", "code", "answer"),
    [
        ("Where is the train station?", "fr", "Où est la gare ?"),
        ("Where is the train station?", "de", "Wo ist der Bahnhof?"),
        ("Where is the train station?", "es", "¿Dónde está la estación de tren?"),
        ("I would like a cup of tea, please.", "it", "Vorrei una tazza di tè, per favore."),
        ("I would like a cup of tea, please.", "de", "Ich möchte eine Tasse Tee, bitte."),
        ("The children are playing outside.", "es", "Los niños están jugando fuera."),
        (BLACK_CAT["en"], "fr", BLACK_CAT["fr"]),
    ],
)
def test_everyday_sentences(text: str, code: str, answer: str) -> None:
    assert model("everyday")(text, to=code).output == answer


def test_attention_crosses_where_the_words_do() -> None:
    """black cat: chat noir; ate: a, mangé."""
    trained = model("en-fr")
    first = trained.attended(trained(BLACK_CAT["en"], to="fr"))[0]
    words = Picture(
        first.weights, first.rows, first.columns, row_words=first.row_words, column_words=first.column_words
    ).whole_words()
    looked = {row: words.columns[int(words.weights[0, i].argmax())] for i, row in enumerate(words.rows)}
    assert looked["chat"] == "cat"
    assert looked["noir"] == "black"
    assert looked["a"] == looked["mangé"] == "ate"
    assert looked["souris"] == "mouse"


def test_parts_of_speech() -> None:
    assert model("tag")(BLACK_CAT["en"]).output == "The/DET black/ADJ cat/NOUN ate/VERB the/DET mouse/NOUN ./PUNCT"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (NVIDIA, "positive"),
        (LOSING, "negative"),
        ("Revenue fell and losses grew.", "negative"),
        ("Losses fell and revenue grew.", "positive"),
        ("The film was not good at all.", "negative"),
        ("not good at all", "negative"),
        ("The food was not bad.", "positive"),
        ("What a wonderful evening!", "positive"),
    ],
)
def test_sentiment(text: str, label: str) -> None:
    assert model("sentiment")(text).output == label


def test_the_dog_is_happy() -> None:
    answer = model("fill")(DOG)
    assert len(answer.blanks) == 1
    assert GLAD & {word for word, _ in answer.blanks[0][:5]}


def test_damaged_and_unfinished() -> None:
    assert model("denoise")("When he saw his owner, the dog happy.").output.startswith("When he saw")
    assert model("generate")("The dog was hungry").output.endswith(".")


def test_what_a_model_does_not_know_is_answered_with_doubt() -> None:
    known = model("translate")(BLACK_CAT["en"], to="fr")
    strange = model("translate")("Where is the train station?", to="fr")
    assert strange.output
    assert strange.confidence < known.confidence
    assert model("sentiment")("The zorblax was good.").unknown == ("zorblax",)


def test_names_are_looked_up_and_never_part_of_a_path() -> None:
    for name in ("../pretrained/tag", "translate/../tag", "tag/"):
        with pytest.raises(regard.InputError):
            regard.load(name)
    assert all(shipped.folder.parent == Path(pretrained.__file__).parent for shipped in pretrained.names().values())
