"""The dictionary as a baseline: what it learns, what it says of words it does not know, and what it cannot do."""

from __future__ import annotations

import pytest

from regard.core.shapes import InputError
from regard.tasks import word_by_word
from regard.tasks.corpora import SOURCE, realiser
from regard.tasks.corpora.sampling import sentences
from regard.tasks.data import Pair
from regard.tasks.word_by_word import WordByWord, joined, learn

HOUSE = [Pair("das Haus", "the house"), Pair("das Buch", "the book"), Pair("ein Buch", "a book")]


def test_model_one_finds_the_textbook_s_translations() -> None:
    """The example of every textbook: das, Haus, Buch, ein from three pairs, no word of which stands alone."""
    assert learn(HOUSE).entries == {"das": "the", "haus": "house", "buch": "book", "ein": "a"}


def test_one_round_by_hand() -> None:
    """After one round from equal shares, each pair gives each of its three source words (none too) a third of both
    target words: "das" has a third of "the" twice, of "house" and "book" once. So "the" leads; with "Haus", "the" and
    "house" are equal, and the first by the alphabet is taken."""
    assert learn(HOUSE, rounds=1).entries["das"] == "the"
    assert learn(HOUSE, rounds=1).entries["haus"] == "house"


def test_each_word_is_replaced_where_it_stands() -> None:
    table = WordByWord({"the": "le", "black": "noir", "cat": "chat", "ate": "a mangé", "n't": ""})
    assert table("The black cat ate.") == "Le noir chat a mangé."
    assert table(["The cat", "the cat did n't eat"]) == ["Le chat", "le chat did eat"]


def test_what_it_does_not_know_stays_and_is_said() -> None:
    (answer,) = WordByWord({"the": "le"}).answer(["The zebra, the okapi."])
    assert answer.output == "Le zebra, le okapi."
    assert answer.unknown == ("zebra", "okapi")
    assert answer.confidence == pytest.approx(1 - 2 / 6)  # six words, the two marks among them
    assert WordByWord({}).answer([""])[0].output == ""


def test_words_are_joined_as_people_write_them() -> None:
    assert joined(["l'", "arbre", ",", "vert", "."]) == "l'arbre, vert."
    assert joined(["黑", "猫", "吃", "了", "。"]) == "黑猫吃了。"
    assert joined(["बिल्ली", "सोई", "।"]) == "बिल्ली सोई।"


def test_chinese_is_learned_by_characters() -> None:
    pairs = [Pair("cat eats", "猫吃"), Pair("cat sleeps", "猫睡"), Pair("dog eats", "狗吃")]
    assert learn(pairs).entries == {"cat": "猫", "eats": "吃", "sleeps": "睡", "dog": "狗"}


def test_from_the_grammar_it_knows_every_word_but_no_order() -> None:
    table = word_by_word.from_grammar("fr", count=2000)
    assert table("The black cat ate the mouse.") == "Le noir chat a mangé le souris."  # neither moved nor agreed
    assert not table.answer(["The old woman sings in the garden."])[0].unknown


def test_it_is_scored_as_models_are() -> None:
    """A table can be perfect where words correspond one to one, and cannot where they move."""
    straight = [Pair("a b c d e", "A B C D E"), Pair("e d c b a", "E D C B A")]
    table = WordByWord({letter: letter.upper() for letter in "abcde"})
    assert table.score(straight)["bleu"] == pytest.approx(100.0)
    assert table.score([Pair("a b c d e", "E D C B A")])["bleu"] < 20.0


def test_word_order_and_agreement_cost_most_where_they_differ_most() -> None:
    """Learned from pairs of the corpora: French is nearer to English, word by word, than Hindi with its verb at the end."""
    found = {}
    for code in ("fr", "hi"):
        said = {split: [Pair(realiser(SOURCE)(s).text, realiser(code)(s).text) for s in sentences(split, 0, n)]
                for split, n in (("train", 1500), ("test", 150))}  # fmt: skip
        found[code] = float(learn(said["train"], rounds=5).score(said["test"])["bleu"])
    assert found["hi"] < found["fr"] < 60.0


def test_a_table_is_a_file_that_people_can_read(tmp_path) -> None:
    table = WordByWord({"ate": "a mangé", "n't": "", "cat": "chat"})
    table.save(tmp_path / "fr.tsv")
    assert (tmp_path / "fr.tsv").read_text() == "ate\ta mangé\ncat\tchat\nn't\t-\n"
    assert word_by_word.load(tmp_path / "fr.tsv") == table


def test_bad_input_is_one_clear_error(tmp_path) -> None:
    with pytest.raises(InputError, match="learn: no pairs; expected at least one"):
        learn([])
    with pytest.raises(InputError, match="rounds=0; expected 1 or more"):
        learn(HOUSE, rounds=0)
    with pytest.raises(InputError, match="score: no pairs"):
        WordByWord({}).score([])
    with pytest.raises(InputError, match="language 'xx'; expected one of fr"):
        word_by_word.from_grammar("xx")
    (tmp_path / "bad.tsv").write_text("cat\n")
    with pytest.raises(InputError, match="row 1"):
        word_by_word.load(tmp_path / "bad.tsv")
