"""What the grammar says: the sentences of the documentation, every word in every language, alignments by hand."""

from __future__ import annotations

import re
from itertools import product

import pytest

from regard.core.shapes import InputError
from regard.tasks.corpora import LANGUAGES, realiser
from regard.tasks.corpora.lexicon import ADJECTIVES, NOUNS, PLACES, TIMES, VERBS, may_be, objects_of, subjects_of
from regard.tasks.corpora.meaning import BE, Clause, NounPhrase, Place, Realised, Sentence, Tense, sure
from regard.tasks.corpora.sampling import SHOWN, sentences
from regard.tasks.words import words_of
from tests.tasks.corpora.alignments import aligned

BLACK_CAT = {
    "en": "The black cat ate the mouse.",
    "fr": "Le chat noir a mangé la souris.",
    "it": "Il gatto nero ha mangiato il topo.",
    "de": "Die schwarze Katze hat die Maus gefressen.",
    "es": "El gato negro se comió el ratón.",
    "zh": "黑猫吃了老鼠。",
    "hi": "काली बिल्ली ने चूहे को खा लिया।",
    "mr": "काळ्या मांजरीने उंदीर खाल्ला.",
    "gu": "કાળી બિલાડીએ ઉંદર ખાધો.",
    "kn": "ಕಪ್ಪು ಬೆಕ್ಕು ಇಲಿಯನ್ನು ತಿಂದಿತು.",
    "ta": "கருப்பு பூனை எலியைத் தின்றது.",
}


@pytest.mark.parametrize("code", ["en", *LANGUAGES])
def test_the_black_cat_in_every_language(code: str) -> None:
    assert realiser(code)(Sentence((SHOWN,))).text == BLACK_CAT[code]


def _everything() -> list[Sentence]:
    """Every noun in both numbers with every determiner, every adjective, verb, tense, place and time."""
    clauses = []
    for name, noun in NOUNS.items():
        determiners = ("the", "a") if noun.counted else ("the", "some")
        forms = [(determiner, False) for determiner in determiners]
        forms += [(determiner, True) for determiner in ("the", "some", "two", "three", "four") if noun.plural]
        if noun.kind == "place":
            forms = [("the", False)]
        known = [adjective for adjective in ADJECTIVES if may_be(name, adjective)]
        phrases = [NounPhrase(name, determiner, plural) for determiner, plural in forms]
        phrases += [NounPhrase(name, d, p, (a,)) for (d, p), a in product(forms[::3], known)]
        clauses += [Clause(phrase, "sleep", "present") for phrase in phrases]
        clauses += [Clause(NounPhrase("cat"), "see", "past", phrase) for phrase in phrases]
        clauses += [Clause(NounPhrase("cat"), "see", "past", p, negated=True) for p in phrases if p.determiner != "two"]
        for adjective, tense, negated in product(known, TIMES, (True, False)):
            clauses.append(Clause(NounPhrase(name), BE, tense, quality=adjective, negated=negated))
    for verb, tense, negated, plural in product(VERBS, TIMES, (True, False), (True, False)):
        subject = next(noun for noun in subjects_of(verb) if NOUNS[noun].plural)
        objects = objects_of(verb, subject)
        what = NounPhrase(objects[0]) if objects else None
        clauses.append(Clause(NounPhrase(subject, plural=plural), verb, tense, what, negated=negated))
        clauses.append(Clause(NounPhrase(subject, plural=plural), verb, tense, what, question=True))
    for name, prepositions in PLACES.items():
        for preposition in prepositions:
            clauses.append(Clause(NounPhrase("cat"), "sleep", place=Place(preposition, NounPhrase(name))))
    for tense, times in TIMES.items():
        for time, first in product(times, (True, False)):
            clauses.append(Clause(NounPhrase("cat"), "sleep", tense, time=time, time_first=first))
    return [Sentence((clause,), end="?" if clause.question else ".") for clause in clauses]


EVERYTHING = _everything()


@pytest.mark.parametrize("code", ["en", *LANGUAGES])
def test_every_word_in_every_form_is_there(code: str) -> None:
    realise = realiser(code)
    for sentence in EVERYTHING:
        realised = realise(sentence)
        _check_words(realised)
        said = {node for token in realised.tokens for node in token.nodes}
        (clause,) = sentence.clauses
        needed = {"0.subject", "0.verb", "end", *(f"0.subject.{adjective}" for adjective in clause.subject.adjectives)}
        needed |= {"0.not"} if clause.negated else set()
        needed |= {"0.object"} if clause.object else set()
        needed |= {"0.quality"} if clause.quality else set()
        needed |= {"0.place", "0.place.prep"} if clause.place else set()
        needed |= {"0.time"} if clause.time else set()
        assert needed <= said, f"{realised.text}: no word says {needed - said}"


def _check_words(realised: Realised) -> None:
    """The text is its words at their places, with single spaces between them and none around."""
    rest = realised.text
    for token, (start, end) in reversed(list(zip(realised.tokens, realised.spans, strict=True))):
        assert realised.text[start:end] == token.form
        assert not re.search(r"\s", token.form)
        rest = rest[:start] + rest[end:]
    assert set(rest) <= {" "}, f"{realised.text!r}: {rest!r} belongs to no word"
    assert realised.text == " ".join(realised.text.split())


@pytest.mark.parametrize("code", ["en", *LANGUAGES])
def test_sampled_sentences_are_their_words(code: str) -> None:
    realise = realiser(code)
    for sentence in sentences("train", 1, 500):
        _check_words(realise(sentence))


def test_english_words_are_those_of_the_tagger() -> None:
    """The corpora split English as `regard tag` will split what a person types."""
    for sentence in sentences("train", 2, 1000):
        realised = realiser("en")(sentence)
        assert list(realised.words) == words_of(realised.text)
        assert all(token.tag for token in realised.tokens)


def test_an_unknown_language_is_an_error() -> None:
    with pytest.raises(InputError, match="language 'xx'; expected one of fr"):
        realiser("xx")


def test_alignment_of_the_black_cat_in_french() -> None:
    assert aligned("fr", Sentence((SHOWN,))) == {
        ("The", "Le"),
        ("black", "noir"),
        ("cat", "chat"),
        ("ate", "a"),
        ("ate", "mangé"),
        ("the", "la"),
        ("mouse", "souris"),
        (".", "."),
    }


def test_what_two_words_say_together_is_aligned_with_both() -> None:
    clause = Clause(NounPhrase("girl"), "drink", "past", NounPhrase("water", "some"), negated=True)
    found = aligned("fr", Sentence((clause,)))
    assert {("not", "n'"), ("not", "pas"), ("did", "a"), ("drink", "bu"), ("any", "d'"), ("water", "eau")} <= found
    assert ("not", "a") not in found


def test_sure_links_are_those_without_a_choice() -> None:
    """will eat: mangera is sure of eat; of did eat and a mangé nobody can say which is which."""

    def certain(tense: Tense, negated: bool) -> set[tuple[str, str]]:
        clause = Clause(NounPhrase("girl"), "eat", tense, NounPhrase("apple"), negated=negated, time="tomorrow")
        source, target = realiser("en")(Sentence((clause,))), realiser("fr")(Sentence((clause,)))
        return {(source.words[i], target.words[j]) for i, j in sure(source.tokens, target.tokens)}

    past = certain("past", negated=True)
    assert past == {("The", "La"), ("girl", "fille"), ("not", "n'"), ("not", "pas"), ("the", "la"), ("apple", "pomme"), ("tomorrow", "demain"), (".", ".")}  # fmt: skip
    future = certain("future", negated=False)
    assert ("eat", "mangera") in future
    assert ("will", "mangera") not in future
    assert {("ate", "a"), ("ate", "mangé")} <= certain("past", negated=False)


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        (Sentence((Clause(NounPhrase("woman"), "write", "future", NounPhrase("letter", "some", True), negated=True),), short=True), "The woman won't write any letters."),
        (Sentence((Clause(NounPhrase("child", "a"), "carry", "present", NounPhrase("umbrella", "a", adjectives=("old", "green"))),), end=""), "A child carries an old green umbrella"),
        (Sentence((Clause(NounPhrase("woman"), "sleep", "present", question=True),), end="?"), "Does the woman sleep?"),
        (Sentence((Clause(NounPhrase("wolf", "four", True), BE, "past", quality="tired", negated=True),)), "Four wolves were not tired."),
        (Sentence((Clause(NounPhrase("woman"), "sleep"), Clause(NounPhrase("child", "a"), "sing", place=Place("in", NounPhrase("garden")))), "but", capital=False, end=""), "the woman slept, but a child sang in the garden"),
    ],
)  # fmt: skip
def test_english(sentence: Sentence, text: str) -> None:
    assert realiser("en")(sentence).text == text
