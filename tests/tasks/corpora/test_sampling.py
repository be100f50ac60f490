"""What is sampled: the same from the same seed, tests apart from training, nothing like what the documents show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from regard.core.shapes import InputError
from regard.tasks.corpora import LANGUAGES, SOURCE, realiser
from regard.tasks.corpora.english import plural
from regard.tasks.corpora.files import aligned, gold, write
from regard.tasks.corpora.lexicon import ADJECTIVES, VERBS, may_be, objects_of, subjects_of
from regard.tasks.corpora.meaning import BE, Clause, NounPhrase, Place, Sentence
from regard.tasks.corpora.sampling import SHOWN, SPLITS, sentences, split_of
from regard.tasks.data import read_pair_table, read_table, read_tagged
from regard.tasks.translate import Translate

DOG = "When he saw his owner, the dog was happy, so he wagged his tail."
NVIDIA = (
    "NVIDIA reported revenue for the second quarter ended July 28, 2024, of $30.0 billion, up 15% from the previous "
    "quarter and up 122% from a year ago. GAAP earnings per diluted share was $0.67, up 12% from the previous quarter "
    "and up 168% from a year ago."
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("corpora") / "out"
    write(out, 0, 600)
    return out


def one_word_apart(left: list[str], right: list[str]) -> bool:
    """At most one word changed, added or left out: then what precedes and what follows it are the same."""
    if abs(len(left) - len(right)) > 1:
        return False
    same = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    return any(left[same + i :] == right[same + j :] for i, j in ((0, 0), (1, 1), (0, 1), (1, 0)))


def folded(words: Sequence[str]) -> list[str]:
    """Without case and without marks, which are no words."""
    return [word.lower() for word in words if any(c.isalnum() for c in word)]


def test_one_word_apart() -> None:
    cat = ["the", "black", "cat", "ate", "the", "mouse"]
    assert one_word_apart(cat, cat)
    assert one_word_apart(cat, ["the", "black", "dog", "ate", "the", "mouse"])
    assert one_word_apart(cat, ["the", "cat", "ate", "the", "mouse"])
    assert one_word_apart(cat, ["the", "black", "cat", "ate", "the", "mouse", "today"])
    assert not one_word_apart(cat, ["the", "white", "dog", "ate", "the", "mouse"])
    assert not one_word_apart(cat, ["the", "ate", "black", "cat", "the", "mouse"])


def _likely() -> Iterator[Clause]:
    """All that share two parts with the black cat: what could come nearest to it, of all that is ever sampled."""
    for verb in VERBS:
        for subject in subjects_of(verb):
            adjectives = [(), *((a,) for a in ADJECTIVES if may_be(subject, a))]
            for what, how in product(objects_of(verb, subject), adjectives):
                clause = replace(SHOWN, subject=NounPhrase(subject, adjectives=how), verb=verb, object=NounPhrase(what))
                same = (subject == "cat") + (how == ("black",)) + (verb == "eat") + (what == "mouse")
                if same >= 2 and split_of(clause):
                    yield clause


def test_what_may_be_sampled_is_no_near_copy_in_any_language() -> None:
    """Two English words could be one in another language."""
    likely = list(_likely())
    assert len(likely) > 1000
    for code in (SOURCE, *LANGUAGES):
        say = realiser(code)
        shown = folded(say(Sentence((SHOWN,))).words)
        for clause in likely:
            said = say(Sentence((clause,)))
            assert not one_word_apart(folded(said.words), shown), said.text
            if " " in said.text:
                assert not one_word_apart(folded(said.text.split()), folded(say(Sentence((SHOWN,))).text.split())), said


def test_nothing_written_is_like_a_sentence_of_the_documentation(folder: Path) -> None:
    _check_written(folder, 600)


@pytest.mark.slow
def test_nothing_of_a_large_corpus_is_like_a_sentence_of_the_documentation(tmp_path: Path) -> None:
    write(tmp_path / "out", 0, 30_000)
    _check_written(tmp_path / "out", 30_000)


def _check_written(folder: Path, count: int) -> None:
    """Read from the files: of every split and language, as words of the grammar and as words between spaces."""
    shown = {code: realiser(code)(Sentence((SHOWN,))) for code in (SOURCE, *LANGUAGES)}
    read = 0
    for code in LANGUAGES:
        for split in SPLITS:
            columns = ("source", "target", "source_words", "target_words")
            for source, target, *words in read_table(folder / f"{code}.{split}.alignment.tsv", columns):
                read += 1
                for text, split_text, own in ((source, words[0], SOURCE), (target, words[1], code)):
                    assert not one_word_apart(folded(split_text.split()), folded(shown[own].words)), text
                    if len(shown[own].text.split()) > 1:  # where spaces separate words
                        assert not one_word_apart(folded(text.split()), folded(shown[own].text.split())), text
                for other in (DOG, NVIDIA):
                    assert not one_word_apart(folded(source.split()), folded(other.split()))
    assert read == len(LANGUAGES) * (count + 2 * (count // 20))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"tense": "future"},
        {"negated": True},
        {"question": True},
        {"time": "yesterday"},
        {"place": Place("in", NounPhrase("kitchen"))},
        {"subject": NounPhrase("dog", adjectives=("black",))},
        {"subject": NounPhrase("cat", adjectives=("white",))},
        {"subject": NounPhrase("cat")},
        {"subject": NounPhrase("cat", "two", True, ("black",))},
        {"verb": "see"},
        {"object": NounPhrase("fish")},
        {"object": NounPhrase("mouse", "a", adjectives=("small",))},
    ],
    ids=str,
)
def test_the_black_cat_and_what_is_near_it_belong_nowhere(change: dict) -> None:
    assert split_of(replace(SHOWN, **change)) is None


def test_what_is_further_from_it_belongs_somewhere() -> None:
    assert split_of(Clause(NounPhrase("dog"), "eat", object=NounPhrase("mouse"))) in SPLITS
    assert split_of(Clause(NounPhrase("cat", adjectives=("black",)), "sleep")) in SPLITS


def _combinations(sentence: Sentence) -> set[tuple]:
    """Who, how, does what to whom; written here once more, apart from the code that draws the splits."""
    return {
        (
            c.subject.noun,
            c.subject.adjectives,
            c.verb,
            c.object.noun if c.object else c.quality if c.verb == BE else None,
        )
        for c in sentence.clauses
    }


def test_no_combination_of_a_test_is_trained_on() -> None:
    found = {split: [_combinations(s) for s in sentences(split, 0, 1000)] for split in SPLITS}
    seen = {split: set().union(*each) for split, each in found.items()}
    assert not seen["train"] & seen["test"]
    assert not seen["train"] & seen["valid"]
    assert not seen["valid"] & seen["test"]
    assert len(seen["test"]) > 150


def test_every_word_of_a_test_is_in_training() -> None:
    """Combinations are new in a test, words are not."""
    say, sizes = realiser("en"), {"train": 5000, "test": 500}
    words = {split: {w.lower() for s in sentences(split, 0, n) for w in say(s).words} for split, n in sizes.items()}
    assert words["test"] <= words["train"]


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    one, two, other = tmp_path / "one", tmp_path / "deep" / "two", tmp_path / "other"
    for out, seed in ((one, 3), (two, 3), (other, 4)):
        write(out, seed, 50)
    names = sorted(path.name for path in one.iterdir())
    assert [(two / name).read_bytes() for name in names] == [(one / name).read_bytes() for name in names]
    assert (other / "train.tsv").read_bytes() != (one / "train.tsv").read_bytes()


def test_all_sentences_differ_and_the_first_stay_when_more_are_asked_for() -> None:
    few, many = list(sentences("train", 0, 100)), list(sentences("train", 0, 4000))
    assert many[:100] == few
    assert len({realiser("en")(sentence).text for sentence in many}) == 4000


def test_an_english_sentence_has_one_meaning() -> None:
    """Otherwise nobody could translate it: they cut the bread, today or yesterday? The fish, one or several?"""
    say, verbs = realiser("en"), set()
    for clause in (clause for sentence in sentences("train", 0, 3000) for clause in sentence.clauses):
        verbs.add(clause.verb)
        said = say(Sentence((clause,))).text
        if clause.tense == "present":
            assert say(Sentence((replace(clause, tense="past"),))).text != said
        for np in (clause.subject, clause.object):
            assert not (np and np.plural and plural(np.noun) == np.noun), said
    assert verbs == {BE, *VERBS}


def test_lengths_reach_beyond_twenty_words() -> None:
    lengths = [len(realiser("en")(sentence).words) for sentence in sentences("train", 0, 2000)]
    assert min(lengths) <= 4
    assert sum(length > 20 for length in lengths) > 40


def test_training_reads_what_is_written(folder: Path) -> None:
    pairs = list(Translate.read([str(folder / "train.tsv")], tuple(LANGUAGES)))
    assert len(pairs) == 600 * len(LANGUAGES)
    assert {label for pair in pairs for label in Translate.labels_of(pair)} == set(LANGUAGES)
    assert len(list(read_pair_table(folder / "fr.test.tsv"))) == 30
    tagged = list(read_tagged(folder / "en.test.conllu"))
    assert len(tagged) == 30
    assert {tag for sentence in tagged for tag in sentence.tags} >= {"DET", "ADJ", "NOUN", "VERB", "AUX", "PUNCT"}


def test_places_and_links_in_the_alignment_file_are_of_its_text(folder: Path) -> None:
    for code in LANGUAGES:
        rows = read_table(folder / f"{code}.test.alignment.tsv", ("target", "target_words", "target_places", "links"))
        for text, words, places, pairs in rows:
            spans = [tuple(map(int, place.split(":"))) for place in places.split()]
            assert [text[start:end] for start, end in spans] == words.split()
            assert all(0 <= int(pair.split("-")[1]) < len(spans) for pair in pairs.split())


def test_rows_by_hand() -> None:
    """Will and eat are one word in French; there, what stands between spaces has the article within."""
    clause = Clause(NounPhrase("donkey"), "eat", "future", NounPhrase("egg"))
    pair = realiser("en")(Sentence((clause,))), realiser("fr")(Sentence((clause,)))
    assert aligned(*pair).split("\t") == [
        "The donkey will eat the egg.",
        "L'âne mangera l'œuf.",
        "The donkey will eat the egg .",
        "L' âne mangera l' œuf .",
        "0:3 4:10 11:15 16:19 20:23 24:27 27:28",
        "0:2 2:5 6:13 14:16 16:19 19:20",
        "0-0 1-1 2-2 3-2 4-3 5-4 6-5",
        "0-0 1-1 3-2 4-3 5-4 6-5",
    ]
    assert gold(*pair) == "1-1 2-1 3p2 4-2 5-3 6-3"


def test_errors_say_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(InputError, match="expected a new or an empty folder"):
        write(tmp_path, 0, 10)
    with pytest.raises(InputError, match="language 'klingon'; expected one of fr"):
        write(tmp_path / "new", 0, 10, ["klingon"])
    with pytest.raises(InputError, match="sentences=0"):
        write(tmp_path / "new", 0, 0)
    with pytest.raises(InputError, match="split 'dev'; expected one of train, valid, test"):
        next(sentences("dev", 0, 1))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
