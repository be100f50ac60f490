"""Pictures of answers: whole words of every script, without special tokens, whose share of the weight is said."""

import pytest
import torch

import regard
from regard.cli.told import picture_of
from regard.see.alignment import Links
from regard.tasks.task import Answer, Attended

BLACK_CAT = "The black cat ate the mouse."


def test_what_is_not_shown_is_counted():
    weights, ends = torch.tensor([[0.2, 0.5, 0.2], [0.1, 0.1, 0.7]]), torch.tensor([0.1, 0.1])
    attended = Attended(
        "layers.1.cross_attention", ("Le", "chat"), ("<2fr>", "The", "cat"), weights, (0, 1), (0, 1, 2), ends
    )
    picture = picture_of(Answer("The cat", "Le chat", 0.9), [attended, attended], "translate", "en-fr")
    assert (picture.title, picture.maps, picture.view) == ("The cat → Le chat", ("layer 2",), "alignment")
    first = picture.at_first()
    assert (first.rows, first.columns) == (("Le", "chat"), ("The", "cat"))
    torch.testing.assert_close(first.weights[0], weights[:, 1:])
    torch.testing.assert_close(first.removed[0], torch.tensor([0.3, 0.2]))
    assert picture.note == "Attention of the model en-fr, in the mean over heads. 25% of it went to tokens that are not shown."  # fmt: skip


@pytest.fixture(scope="module")
def first():
    """first("fr"): the picture that `regard translate` draws of the black cat, by the model that is shipped."""

    def draw(language: str):
        model = regard.load(f"en-{language}")
        answer = model(BLACK_CAT)
        return answer, picture_of(answer, model.attended(answer), "translate", language).only(0).at_first()

    return draw


def test_the_black_cat_in_french(first):
    answer, picture = first("fr")
    assert answer.output == "Le chat noir a mangé la souris."
    assert picture.rows == ("Le", "chat", "noir", "a", "mangé", "la", "souris", ".")
    links = Links.of(picture.weights[0])
    read = {word: picture.columns[j] for word, j in zip(picture.rows, links.key, strict=True)}
    assert (read["chat"], read["noir"]) == ("cat", "black")  # turned round
    assert [links.inverted[picture.rows.index(word)] for word in ("chat", "noir")] == [True, True]
    assert (read["a"], read["mangé"], read["souris"]) == ("ate", "ate", "mouse")  # "ate" holds for two


@pytest.mark.parametrize("language", ["hi", "ta", "zh", "kn", "gu"])
def test_words_of_every_script(first, language):
    answer, picture = first(language)
    assert picture.columns == ("The", "black", "cat", "ate", "the", "mouse", ".")
    assert "".join(picture.rows) == answer.output.replace(" ", "")
    if language == "zh":  # written without spaces: the pieces are the words
        assert len(picture.rows) >= 4
    else:
        assert len(picture.rows) == len(answer.output.split()) + 1  # and what ends the sentence


def test_an_unknown_word_is_no_special_token():
    attended = Attended("layers.1.cross_attention", ("Le",), ("<2fr>", "<unk>"), torch.tensor([[0.2, 0.8]]))
    picture = picture_of(Answer("Zorblax", "Le", 0.1), [attended], "translate", "en-fr")
    assert picture.at_first().columns == ("<unk>",)


def test_a_word_that_training_never_saw_is_shown_as_it_was_written():
    model = regard.load("sentiment")
    answer = model("NVIDIA reported revenue of $30.0 billion, up 15% and up 122%.")
    assert (answer.output, answer.unknown) == ("positive", ("NVIDIA",))
    picture = picture_of(answer, model.attended(answer), "classify", "sentiment")
    assert (picture.view, picture.columns[:2]) == ("text", ("NVIDIA", "reported"))
