"""Tagging by letters: a word that training never saw is told by how it is written."""

from __future__ import annotations

import random

import pytest

from regard import InputError
from regard.tasks import model
from regard.tasks.letters import MOST, spelled
from tests.tasks.small import run_of, train


def sentence(draw: random.Random) -> list[tuple[str, str]]:
    """Words of no language: what ends in -o is a thing, in -as happens, in -e is how."""
    ends = (("o", "NOUN"), ("as", "VERB"), ("e", "ADV"))
    words = []
    for _ in range(draw.randint(2, 6)):
        end, tag = draw.choice(ends)
        words.append(("".join(draw.choice("bdfgklmnprstv") + draw.choice("aeiou") for _ in range(2)) + "n" + end, tag))
    return words


def conllu(path, sentences):
    lines = []
    for words in sentences:
        lines += ["\t".join([str(i), word, "_", tag, *"______"]) for i, (word, tag) in enumerate(words, 1)] + [""]
    path.write_text("\n".join(lines) + "\n")
    return path


def tags(folder, **keys):
    draw = random.Random(1)
    file = conllu(folder / "words.conllu", [sentence(draw) for _ in range(400)])
    sizes = {"model__kind": "rnn", "model__cell": "lstm", "model__letters": 16, "model__layers": 2}
    steps = {
        "schedule__steps": 150,
        "optim__lr": 1e-2,
        "data__tokens": 256,
        "data__tokenizer": "word",
        "data__vocabulary": 300,
    }
    return run_of("tag", file, **(sizes | steps | keys))


def test_words_that_training_never_saw_are_told_by_their_letters(tmp_path):
    train(tags(tmp_path), tmp_path / "model")
    trained = model.load(tmp_path / "model")
    draw = random.Random(2)
    unseen = [sentence(draw) for _ in range(100)]
    answers = trained([" ".join(word for word, _ in words) for words in unseen])
    found = [label for answer in answers for _, label, _ in answer.words]
    wanted = [tag for words in unseen for _, tag in words]
    assert sum(a == b for a, b in zip(found, wanted, strict=True)) > 0.97 * len(wanted)


def test_a_long_text_is_tagged_part_by_part_word_for_word(tmp_path):
    """Each part has its own words' letters: they are the same as in a text that needs no parts."""
    trained = train(tags(tmp_path, data__longest=8), tmp_path / "model")
    draw = random.Random(3)
    words = [word for _ in range(10) for word, _ in sentence(draw)]
    (whole,) = trained.answer([" ".join(words)])
    parts = trained.answer([" ".join(words[i : i + 8]) for i in range(0, len(words), 8)])
    assert [label for _, label, _ in whole.words] == [label for part in parts for _, label, _ in part.words]
    assert [word for word, _, _ in whole.words] == words


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"model__kind": "transformer"}, "model.letters=16: .* model.kind='rnn'"),
        ({"data__tokenizer": "bpe"}, "model.letters=16: .* data.tokenizer='bpe'; take 'word'"),
        ({"model__letters": 15}, "an even number"),
    ],
)
def test_what_cannot_read_letters_says_so(tmp_path, keys, said):
    with pytest.raises(InputError, match=said):
        train(tags(tmp_path, **keys), tmp_path / "model")


def test_other_tasks_have_no_letters(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("a b\nb a\n")
    with pytest.raises(InputError, match=r"model\.letters: fill does not read words by their letters; tag does"):
        train(run_of("fill", file, model__letters=8), tmp_path / "model")


def test_of_a_long_word_both_ends_are_read():
    word = "ab" * 100 + "ing"
    assert len(spelled(word)) == MOST
    assert spelled(word)[-3:] == spelled("ing")
    assert spelled("\ud800") == spelled("?")  # half a character is no text
