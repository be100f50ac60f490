"""Kannada: case endings on the noun, the verb at the end, which agrees with persons as he, she or they and with all else
as it; what is asked or denied is an ending of the verb.

A quality is said of its subject in one word with the copula: ಕಪ್ಪಾಗಿತ್ತು, it was black.
"""

from __future__ import annotations

from regard.tasks.corpora.lexicon import NOUNS as KNOWN
from regard.tasks.corpora.meaning import BE, Clause, NounPhrase, Realised, Sentence, Token, phrase
from regard.tasks.corpora.verb_last import arranged, realised

# Class and noun, and its plural where that does not follow. i: ends in i or e; a; u: an u that endings replace; v: one
# that stays. Persons: m (-ನು), h (a man's word that ends in i), f (ends in i or e).
NOUNS: dict[str, str] = {
    "cat": "u ಬೆಕ್ಕು", "snake": "u ಹಾವು", "dog": "i ನಾಯಿ", "fox": "i ನರಿ", "wolf": "a ತೋಳ", "bear": "i ಕರಡಿ", "lion": "a ಸಿಂಹ",
    "tiger": "i ಹುಲಿ", "mouse": "i ಇಲಿ", "rabbit": "a ಮೊಲ", "frog": "i ಕಪ್ಪೆ", "bird": "i ಹಕ್ಕಿ", "duck": "i ಬಾತುಕೋಳಿ", "hen": "i ಕೋಳಿ",
    "fish": "u ಮೀನು", "horse": "i ಕುದುರೆ", "cow": "v ಹಸು", "pig": "i ಹಂದಿ", "goat": "i ಮೇಕೆ", "donkey": "i ಕತ್ತೆ", "elephant": "i ಆನೆ",
    "monkey": "i ಕೋತಿ", "man": "m ಮನುಷ್ಯ", "woman": "f ಮಹಿಳೆ", "boy": "m ಹುಡುಗ", "girl": "f ಹುಡುಗಿ", "child": "v ಮಗು ಮಕ್ಕಳು",
    "king": "m ರಾಜ", "queen": "f ರಾಣಿ", "princess": "f ರಾಜಕುಮಾರಿ", "farmer": "m ರೈತ", "teacher": "m ಶಿಕ್ಷಕ", "doctor": "m ವೈದ್ಯ",
    "student": "h ವಿದ್ಯಾರ್ಥಿ", "friend": "m ಸ್ನೇಹಿತ", "grandmother": "f ಅಜ್ಜಿ", "soldier": "m ಸೈನಿಕ", "chef": "m ಬಾಣಸಿಗ",
    "apple": "u ಸೇಬು", "banana": "u ಬಾಳೆಹಣ್ಣು", "orange": "i ಕಿತ್ತಳೆ", "pear": "u ಮರಸೇಬು", "egg": "i ಮೊಟ್ಟೆ", "potato": "i ಆಲೂಗಡ್ಡೆ",
    "carrot": "i ಗಜ್ಜರಿ", "tomato": "v ಟೊಮೆಟೊ", "cake": "u ಕೇಕು", "bread": "i ರೊಟ್ಟಿ", "cheese": "u ಗಿಣ್ಣು", "honey": "a ಜೇನುತುಪ್ಪ",
    "rice": "a ಅನ್ನ", "meat": "a ಮಾಂಸ", "soup": "u ಸೂಪು", "milk": "u ಹಾಲು", "water": "u ನೀರು", "tea": "v ಚಹಾ", "coffee": "i ಕಾಫಿ",
    "wine": "u ವೈನು", "juice": "a ರಸ", "book": "a ಪುಸ್ತಕ", "letter": "a ಪತ್ರ", "newspaper": "i ಪತ್ರಿಕೆ", "box": "i ಪೆಟ್ಟಿಗೆ", "bag": "a ಚೀಲ",
    "door": "u ಬಾಗಿಲು", "window": "i ಕಿಟಕಿ", "ball": "u ಚೆಂಡು", "flower": "u ಹೂವು", "hat": "i ಟೋಪಿ", "shirt": "i ಅಂಗಿ", "knife": "v ಚಾಕು",
    "key": "i ಕೀಲಿ", "cup": "u ಬಟ್ಟಲು", "umbrella": "i ಛತ್ರಿ", "picture": "a ಚಿತ್ರ", "lamp": "a ದೀಪ", "chair": "i ಕುರ್ಚಿ", "table": "u ಮೇಜು",
    "bicycle": "u ಸೈಕಲ್ಲು", "car": "u ಕಾರು", "garden": "a ತೋಟ", "house": "i ಮನೆ", "kitchen": "i ಅಡುಗೆಮನೆ", "forest": "u ಕಾಡು",
    "park": "a ಉದ್ಯಾನ", "street": "i ಬೀದಿ", "school": "i ಶಾಲೆ", "city": "a ನಗರ", "field": "a ಹೊಲ", "room": "i ಕೋಣೆ", "tree": "a ಮರ",
    "bed": "i ಹಾಸಿಗೆ", "bridge": "i ಸೇತುವೆ", "river": "i ನದಿ",
}  # fmt: skip
# Before a noun / with the copula, which begins where this ends. `*`: with the ending of the person, ನಾ, ಳಾ or ರಾ, for
# which stands ವಾ (or ದಾ) where nobody is meant.
ADJECTIVES: dict[str, str] = {
    "black": "ಕಪ್ಪು/ಕಪ್ಪಾಗಿ", "white": "ಬಿಳಿ/ಬಿಳಿಯಾಗಿ", "red": "ಕೆಂಪು/ಕೆಂಪಾಗಿ", "green": "ಹಸಿರು/ಹಸಿರಾಗಿ", "blue": "ನೀಲಿ/ನೀಲಿಯಾಗಿ",
    "yellow": "ಹಳದಿ/ಹಳದಿಯಾಗಿ", "brown": "ಕಂದು/ಕಂದು_ಬಣ್ಣದಲ್ಲಿ", "gray": "ಬೂದು/ಬೂದು_ಬಣ್ಣದಲ್ಲಿ", "big": "ದೊಡ್ಡ/ದೊಡ್ಡದಾಗಿ",
    "small": "ಚಿಕ್ಕ/ಚಿಕ್ಕವ*ಗಿ", "old": "ಹಳೆಯ/ಹಳೆಯದಾಗಿ", "young": "ಎಳೆಯ/ಎಳೆಯವ*ಗಿ", "new": "ಹೊಸ/ಹೊಸದಾಗಿ",
    "beautiful": "ಸುಂದರವಾದ/ಸುಂದರವಾಗಿ", "ugly": "ಕುರೂಪವಾದ/ಕುರೂಪವಾಗಿ", "good": "ಒಳ್ಳೆಯ/ಚೆನ್ನಾಗಿ", "fresh": "ತಾಜಾ/ತಾಜಾ_ಆಗಿ",
    "cold": "ತಣ್ಣನೆಯ/ತಣ್ಣಗಿ", "hot": "ಬಿಸಿ/ಬಿಸಿಯಾಗಿ", "expensive": "ದುಬಾರಿ/ದುಬಾರಿಯಾಗಿ", "heavy": "ಭಾರವಾದ/ಭಾರವಾಗಿ",
    "clean": "ಸ್ವಚ್ಛವಾದ/ಸ್ವಚ್ಛವಾಗಿ", "dirty": "ಕೊಳಕು/ಕೊಳಕಾಗಿ", "strong": "ಬಲಿಷ್ಠ/ಬಲಿಷ್ಠ*ಗಿ", "clever": "ಚತುರ/ಚತುರ*ಗಿ",
    "dangerous": "ಅಪಾಯಕಾರಿ/ಅಪಾಯಕಾರಿಯಾಗಿ", "rich": "ಶ್ರೀಮಂತ/ಶ್ರೀಮಂತ*ಗಿ", "famous": "ಪ್ರಸಿದ್ಧ/ಪ್ರಸಿದ್ಧ*ಗಿ",
    "happy": "ಸಂತೋಷಗೊಂಡ/ಸಂತೋಷವಾಗಿ", "sad": "ದುಃಖಿತ/ದುಃಖಿತ*ಗಿ", "tired": "ದಣಿದ/ದಣಿದಿ", "sick": "ಅಸ್ವಸ್ಥ/ಅಸ್ವಸ್ಥ*ಗಿ",
}  # fmt: skip
OLD = {"person": "ವಯಸ್ಸಾದ/ವಯಸ್ಸಾದವ*ಗಿ", "animal": "ಮುದಿ/ಮುದಿಯಾಗಿ"}  # not as a thing is
# (What stands before it /) what has been done (by persons + ನು), it did, and the stem of all other forms.
VERBS: dict[str, str] = {
    "eat": "ತಿಂದ ತಿಂದಿತು ತಿನ್ನು", "drink": "ಕುಡಿದ ಕುಡಿಯಿತು ಕುಡಿಯು", "see": "ನೋಡಿದ ನೋಡಿತು ನೋಡು",
    "find": "ಕಂಡುಹಿಡಿದ ಕಂಡುಹಿಡಿಯಿತು ಕಂಡುಹಿಡಿಯು", "hear": "ಧ್ವನಿಯನ್ನು/ಕೇಳಿದ ಕೇಳಿತು ಕೇಳು", "catch": "ಹಿಡಿದ ಹಿಡಿಯಿತು ಹಿಡಿಯು",
    "steal": "ಕದ್ದ ಕದ್ದಿತು ಕದಿಯು", "buy": "ಖರೀದಿಸಿದ ಖರೀದಿಸಿತು ಖರೀದಿಸು", "sell": "ಮಾರಿದ ಮಾರಿತು ಮಾರು", "wash": "ತೊಳೆದ ತೊಳೆಯಿತು ತೊಳೆಯು",
    "cook": "ಬೇಯಿಸಿದ ಬೇಯಿಸಿತು ಬೇಯಿಸು", "cut": "ಕತ್ತರಿಸಿದ ಕತ್ತರಿಸಿತು ಕತ್ತರಿಸು", "paint": "ಬಣ್ಣ/ಬಳಿದ ಬಳಿಯಿತು ಬಳಿಯು",
    "draw": "ಚಿತ್ರವನ್ನು/ಬಿಡಿಸಿದ ಬಿಡಿಸಿತು ಬಿಡಿಸು", "read": "ಓದಿದ ಓದಿತು ಓದು", "write": "ಬರೆದ ಬರೆಯಿತು ಬರೆಯು", "open": "ತೆರೆದ ತೆರೆಯಿತು ತೆರೆಯು",
    "close": "ಮುಚ್ಚಿದ ಮುಚ್ಚಿತು ಮುಚ್ಚು", "hide": "ಬಚ್ಚಿಟ್ಟ ಬಚ್ಚಿಟ್ಟಿತು ಬಚ್ಚಿಡು", "lose": "ಕಳೆದುಕೊಂಡ ಕಳೆದುಕೊಂಡಿತು ಕಳೆದುಕೊಳ್ಳು",
    "carry": "ಹೊತ್ತೊಯ್ದ ಹೊತ್ತೊಯ್ದಿತು ಹೊತ್ತೊಯ್ಯು", "push": "ತಳ್ಳಿದ ತಳ್ಳಿತು ತಳ್ಳು", "choose": "ಆರಿಸಿದ ಆರಿಸಿತು ಆರಿಸು", "sleep": "ಮಲಗಿದ ಮಲಗಿತು ಮಲಗು",
    "run": "ಓಡಿದ ಓಡಿತು ಓಡು", "swim": "ಈಜಿದ ಈಜಿತು ಈಜು", "fly": "ಹಾರಿದ ಹಾರಿತು ಹಾರು", "jump": "ಜಿಗಿದ ಜಿಗಿಯಿತು ಜಿಗಿಯು", "play": "ಆಡಿದ ಆಡಿತು ಆಡು",
    "wait": "ಕಾದ ಕಾಯಿತು ಕಾಯು", "arrive": "ಆಗಮಿಸಿದ ಆಗಮಿಸಿತು ಆಗಮಿಸು", "sing": "ಹಾಡಿದ ಹಾಡಿತು ಹಾಡು", "dance": "ಕುಣಿದ ಕುಣಿಯಿತು ಕುಣಿಯು",
    "walk": "ನಡೆದ ನಡೆಯಿತು ನಡೆಯು", "laugh": "ನಕ್ಕ ನಕ್ಕಿತು ನಗು", "cry": "ಅತ್ತ ಅತ್ತಿತು ಅಳು", "smile": "ಮುಗುಳ್ನಕ್ಕ ಮುಗುಳ್ನಕ್ಕಿತು ಮುಗುಳ್ನಗು",
    "work": "ಕೆಲಸ/ಮಾಡಿದ ಮಾಡಿತು ಮಾಡು", "talk": "ಮಾತನಾಡಿದ ಮಾತನಾಡಿತು ಮಾತನಾಡು",
}  # fmt: skip
CASES = {"hear": "gen", "draw": "gen", "paint": "dat"}  # of the object, where it is not the accusative
# he, she, they, it, several of it: without the vowel that the quality ends in
WHO = ("m", "f", "they", "it", "its")
BEING = {
    "past": ["ದ್ದನು", "ದ್ದಳು", "ದ್ದರು", "ತ್ತು", "ದ್ದವು"],
    "present": ["ದ್ದಾನೆ", "ದ್ದಾಳೆ", "ದ್ದಾರೆ", "ದೆ", "ವೆ"],
    "future": ["ರುವನು", "ರುವಳು", "ರುವರು", "ರುವುದು", "ರುವುವು"],
}
NOT_BEING = {"past": "ರಲಿಲ್ಲ", "present": "ಲ್ಲ", "future": "ರುವುದಿಲ್ಲ"}
ENDS = {
    "past": ["ನು", "ಳು", "ರು", "-", "ವು"],
    "present": ["ತ್ತಾನೆ", "ತ್ತಾಳೆ", "ತ್ತಾರೆ", "ತ್ತದೆ", "ತ್ತವೆ"],
    "future": ["ವನು", "ವಳು", "ವರು", "ವುದು", "ವುವು"],
}
NUMERALS = {"two": ("ಎರಡು", "ಇಬ್ಬರು"), "three": ("ಮೂರು", "ಮೂವರು"), "four": ("ನಾಲ್ಕು", "ನಾಲ್ವರು")}  # of things, of persons
PREPOSITIONS = {"on": "ಮೇಲೆ", "under": "ಕೆಳಗೆ", "behind": "ಹಿಂದೆ", "near": "ಹತ್ತಿರ"}
TIMES = {"yesterday": "ನಿನ್ನೆ", "last week": "ಕಳೆದ ವಾರ", "today": "ಇಂದು", "every day": "ಪ್ರತಿದಿನ", "tomorrow": "ನಾಳೆ", "next week": "ಮುಂದಿನ ವಾರ"}  # fmt: skip
LINKS = {"and": "ಮತ್ತು", "but": ",ಆದರೆ", "because": ",ಏಕೆಂದರೆ"}


def realise(sentence: Sentence) -> Realised:
    return realised(sentence, _clause, LINKS)


def _clause(clause: Clause, c: str) -> list[Token]:
    who = _noun_phrase(clause.subject, f"{c}.subject", "nom")
    place: list[Token] = []
    if clause.place:
        role, where = f"{c}.place", clause.place
        if where.preposition == "in":
            *rest, noun = _noun_phrase(where.where, role, "gen")
            place = [*rest, Token(noun.form + "ಲ್ಲಿ", (role, f"{role}.prep"))]
        else:
            place = _noun_phrase(where.where, role, "gen")
            place.append(Token(PREPOSITIONS[where.preposition], (f"{role}.prep",)))
    what: list[Token] = []
    if clause.object:
        what = _object(clause.object, f"{c}.object", CASES.get(clause.verb, "acc"), clause.negated)
    return arranged(clause, c, who, place, what, _verb(clause, c), TIMES)


def _object(np: NounPhrase, role: str, case: str, negated: bool) -> list[Token]:
    if not (negated and np.determiner in ("a", "some")):
        return _noun_phrase(np, role, case)
    words = _noun_phrase(NounPhrase(np.noun, "the", False, np.adjectives), role, case)
    if not KNOWN[np.noun].counted:
        return words
    # not any: ಯಾವ … -ಊ, an ending that the last word of the object takes, which may be the verb's own (ಚಿತ್ರವನ್ನೂ)
    last = words[-1].form if case == "gen" else words[-1].form[:-1] + "ೂ"
    return [Token("ಯಾವ", (f"{role}.det",)), *words[:-1], Token(last, (role,))]


def _verb(clause: Clause, c: str) -> list[Token]:
    node, person = f"{c}.verb", WHO.index(_who(clause.subject))
    nodes = [node, *([f"{c}.not"] if clause.negated else []), *([f"{c}.question"] if clause.question else [])]
    first: list[Token] = []
    if clause.verb == BE:
        assert clause.quality is not None
        *words, last = _quality(clause.quality, clause.subject).split("_")
        first = phrase(" ".join(words), f"{c}.quality")
        form = last + (NOT_BEING[clause.tense] if clause.negated else BEING[clause.tense][person])
        nodes.append(f"{c}.quality")
    else:
        described, it_did, stem = VERBS[clause.verb].split()
        before, _, done = described.rpartition("/")
        what = clause.object
        if clause.verb in ("hear", "draw") and clause.negated and what and what.determiner in ("a", "some"):
            before = before[:-1] + "ೂ"
        first = phrase(before, node)
        if clause.negated:
            form = stem[:-1] + "ಲಿಲ್ಲ" if clause.tense == "past" else stem + "ವುದಿಲ್ಲ"
        elif clause.tense == "past":
            form = it_did if WHO[person] == "it" else done + ENDS["past"][person]
        else:
            form = stem + ENDS[clause.tense][person]
    if clause.question:  # -ಏ
        form = form[:-1] + "ೇ" if form.endswith("ು") else form + "ಯೇ"
    return [*first, Token(form, tuple(nodes))]


def _who(np: NounPhrase) -> str:
    kind = NOUNS[np.noun][0]
    if np.plural:
        return "they" if KNOWN[np.noun].kind == "person" else "its"
    return {"m": "m", "h": "m", "f": "f"}.get(kind, "it")


def _quality(adjective: str, np: NounPhrase) -> str:
    form = _forms(adjective, np).split("/")[1]
    person = {"m": "ನಾ", "f": "ಳಾ", "they": "ರಾ"}.get(_who(np))
    if person:
        return form.replace("*", person)
    return form.replace("ವ*", "ದಾ").replace("*", "ವಾ")


def _forms(adjective: str, np: NounPhrase) -> str:
    if adjective == "old" and KNOWN[np.noun].animate:
        return OLD[KNOWN[np.noun].kind]
    return ADJECTIVES[adjective]


def _noun_phrase(np: NounPhrase, role: str, case: str) -> list[Token]:
    tokens = [Token(_determiner(np), (f"{role}.det",))]
    for adjective in np.adjectives:
        tokens.append(Token(_forms(adjective, np).split("/")[0], (f"{role}.{adjective}",)))
    tokens.append(Token(_noun(np, case), (role,)))
    return [token for token in tokens if token.form]


def _noun(np: NounPhrase, case: str) -> str:
    kind, noun, *plural = NOUNS[np.noun].split()
    if np.plural:
        many = plural[0] if plural else noun + {"m": "ರು", "f": "ಯರು"}.get(kind, "ಗಳು")
        return {"nom": many, "acc": many[:-1] + "ನ್ನು", "gen": many[:-1], "dat": many[:-1] + "ಿಗೆ"}[case]
    if kind in "ihf":
        return noun + {"nom": "", "acc": "ಯನ್ನು", "gen": "ಯ", "dat": "ಗೆ"}[case]
    if kind == "u":
        return {"nom": noun, "acc": noun[:-1] + "ನ್ನು", "gen": noun[:-1] + "ಿನ", "dat": noun[:-1] + "ಿಗೆ"}[case]
    if kind == "v":
        return noun + {"nom": "", "acc": "ವನ್ನು", "gen": "ವಿನ", "dat": "ವಿಗೆ"}[case]
    if kind == "m":
        return noun + {"nom": "ನು", "acc": "ನನ್ನು", "gen": "ನ", "dat": "ನಿಗೆ"}[case]
    return noun + {"nom": "", "acc": "ವನ್ನು", "gen": "ದ", "dat": "ಕ್ಕೆ"}[case]


def _determiner(np: NounPhrase) -> str:
    person = KNOWN[np.noun].kind == "person" and (np.plural or NOUNS[np.noun][0] != "v")
    if np.determiner in NUMERALS:
        return NUMERALS[np.determiner][person]
    if np.determiner == "a":
        return "ಒಬ್ಬ" if person else "ಒಂದು"
    if np.determiner == "some":
        return "ಕೆಲವು" if np.plural else "ಸ್ವಲ್ಪ"
    return ""
