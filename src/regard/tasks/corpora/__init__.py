"""Parallel sentences that a small grammar makes: correct, deterministic, with gold alignments and parts of speech.

    meaning.py    what a sentence says, and the words that say it      lexicon.py   what goes with what
    sampling.py   meanings at random, and what is kept for tests       files.py     what training reads
    english.py, french.py, …   one small file for each language

To add a language:

1. A module with `realise(sentence: Sentence) -> Realised`. It has words for every name in `lexicon.NOUNS`, `ADJECTIVES`,
   `VERBS`, `PREPOSITIONS` and `TIMES`, for the determiners and links of `meaning`, and for `be`; with whatever the
   language needs to know of them (gender, case forms, classifier): french.py is the pattern. `lexicon.NOUNS[name]`
   says what is animate or counted.
2. `realise` makes a list of `Token`s in order, each with the nodes that it says, and ends with `meaning.spell`, which
   joins, capitalises and sets the mark at the end (`marks=` where it is not . ! or ?). `glue=True` on a token that no
   space separates from the one before. The nodes of clause c (0 or 1), where "role" is `c.subject`, `c.object`, `c.place`:

       role             the noun, and what marks its case or its role (a postposition, "de" in "près de": c.place.prep)
       role.det         article, numeral, classifier, partitive: also two words for one, as in "de la"
       role.ADJECTIVE   by its English name, with particles that belong to it
       c.verb           all words of the verb: auxiliary and participle, prefix, aspect, reflexive "se"; the copula
       c.not            all words of the negation; c.quality: the adjective of "be"; c.time: all words of it
       c.question       what asks (est-ce que); c.place.prep: the preposition
       link, comma, end between clauses, and what stands at the end (also ¿)

   A word that says two things has both nodes: French "du" is preposition and article, German "kein" is not and
   article. What no other language could share (the "à" that marks an object) has the node of what it marks.
   Words joined in writing are one token, unless they can be cut where another word begins (l' + arbre).
3. One line in `LANGUAGES`, and sentences that you know to be right in tests/tasks/corpora.

What a meaning can be is said at `meaning.Clause`; nothing else comes. Sample and read aloud:
`[realise(s).text for s in sampling.sentences("train", 0, 100)]`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from regard.core.shapes import InputError
from regard.tasks.corpora.meaning import Realised, Sentence

__all__ = ["LANGUAGES", "realiser"]

SOURCE = "en"
LANGUAGES = {  # code → module
    "fr": "french",
    "es": "spanish",
    "it": "italian",
    "de": "german",
    "zh": "chinese",
    "hi": "hindi",
    "mr": "marathi",
    "gu": "gujarati",
    "kn": "kannada",
    "ta": "tamil",
}


def realiser(code: str) -> Callable[[Sentence], Realised]:
    """What says a meaning in this language."""
    name = "english" if code == SOURCE else LANGUAGES.get(code)
    if name is None:
        raise InputError(f"language {code!r}; expected one of {', '.join(LANGUAGES)}")
    return import_module(f"{__name__}.{name}").realise
