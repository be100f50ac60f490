"""Gujarati: three genders; in the past who acts on something has -એ, and the verb follows the object, marked or not.

Every person as object has -ને. Nobody is spoken of with the plural of respect.
"""

from __future__ import annotations

from regard.tasks.corpora.lexicon import NOUNS as KNOWN
from regard.tasks.corpora.meaning import BE, Clause, NounPhrase, Realised, Sentence, Token, phrase
from regard.tasks.corpora.verb_last import arranged, realised

# Gender and noun, and its plural where that is not + ઓ (or ો); those in -ો and -ું change: ઘોડો, ઘોડા; કેળું, કેળાં.
NOUNS: dict[str, str] = {
    "cat": "f બિલાડી", "snake": "m સાપ", "dog": "m કૂતરો", "fox": "f લોંકડી", "wolf": "n વરુ", "bear": "n રીંછ", "lion": "m સિંહ",
    "tiger": "m વાઘ", "mouse": "m ઉંદર", "rabbit": "n સસલું", "frog": "m દેડકો", "bird": "n પક્ષી", "duck": "f બતક", "hen": "f મરઘી",
    "fish": "f માછલી", "horse": "m ઘોડો", "cow": "f ગાય", "pig": "n ડુક્કર", "goat": "f બકરી", "donkey": "m ગધેડો",
    "elephant": "m હાથી", "monkey": "m વાંદરો", "man": "m પુરુષ", "woman": "f સ્ત્રી", "boy": "m છોકરો", "girl": "f છોકરી",
    "child": "n બાળક", "king": "m રાજા", "queen": "f રાણી", "princess": "f રાજકુમારી", "farmer": "m ખેડૂત", "teacher": "m શિક્ષક",
    "doctor": "m ડૉક્ટર", "student": "m વિદ્યાર્થી", "friend": "m મિત્ર", "grandmother": "f દાદી", "soldier": "m સૈનિક",
    "chef": "m રસોઈયો", "apple": "n સફરજન", "banana": "n કેળું", "orange": "f નારંગી", "pear": "f નાસપતી", "egg": "n ઈંડું",
    "potato": "m બટાટો", "carrot": "n ગાજર ગાજર", "tomato": "n ટામેટું", "cake": "f કેક કેક", "bread": "f રોટલી", "cheese": "n પનીર",
    "honey": "n મધ", "rice": "m ભાત", "meat": "n માંસ", "soup": "m સૂપ", "milk": "n દૂધ", "water": "n પાણી", "tea": "f ચા",
    "coffee": "f કૉફી", "wine": "m દારૂ", "juice": "m રસ", "book": "n પુસ્તક", "letter": "m પત્ર", "newspaper": "n છાપું",
    "box": "f પેટી", "bag": "f થેલી", "door": "m દરવાજો", "window": "f બારી", "ball": "m દડો", "flower": "n ફૂલ", "hat": "f ટોપી",
    "shirt": "n ખમીસ", "knife": "f છરી", "key": "f ચાવી", "cup": "m પ્યાલો", "umbrella": "f છત્રી", "picture": "n ચિત્ર", "lamp": "m દીવો",
    "chair": "f ખુરશી", "table": "n ટેબલ", "bicycle": "f સાઇકલ", "car": "f ગાડી", "garden": "m બગીચો", "house": "n ઘર",
    "kitchen": "n રસોડું", "forest": "n જંગલ", "park": "n ઉદ્યાન", "street": "f શેરી", "school": "f શાળા", "city": "n શહેર",
    "field": "n ખેતર", "room": "m ઓરડો", "tree": "n ઝાડ", "bed": "m પલંગ", "bridge": "m પુલ", "river": "f નદી",
}  # fmt: skip
# Those that end in -ો agree: કાળો, કાળી, કાળું.
ADJECTIVES: dict[str, str] = {
    "black": "કાળો", "white": "સફેદ", "red": "લાલ", "green": "લીલો", "blue": "વાદળી", "yellow": "પીળો", "brown": "કથ્થઈ",
    "gray": "રાખોડી", "big": "મોટો", "small": "નાનો", "old": "જૂનો", "young": "જુવાન", "new": "નવો", "beautiful": "સુંદર",
    "ugly": "કદરૂપો", "good": "સારો", "fresh": "તાજો", "cold": "ઠંડો", "hot": "ગરમ", "expensive": "મોંઘો", "heavy": "ભારે",
    "clean": "સ્વચ્છ", "dirty": "ગંદો", "strong": "બળવાન", "clever": "હોશિયાર", "dangerous": "ખતરનાક", "rich": "શ્રીમંત",
    "famous": "પ્રખ્યાત", "happy": "ખુશ", "sad": "દુઃખી", "tired": "થાકેલો", "sick": "બીમાર",
}  # fmt: skip
OLD = "ઘરડો"  # of what is alive
# (What stands before it, with the gender that the verb then follows /) he does, the stem of habits and of what will be,
# and what he has done, of a woman where that is another. "0" takes no -એ.
VERBS: dict[str, str] = {
    "eat": "ખાય ખા ખાધો", "drink": "પીએ પી પીધો", "see": "જુએ જો જોયો", "find": "શોધી/કાઢે કાઢ કાઢ્યો",
    "hear": "_નો_અવાજ.m/સાંભળે સાંભળ સાંભળ્યો", "catch": "પકડે પકડ પકડ્યો", "steal": "ચોરે ચોર ચોર્યો", "buy": "ખરીદે ખરીદ ખરીદ્યો",
    "sell": "વેચે વેચ વેચ્યો", "wash": "ધુએ ધો ધોયો", "cook": "રાંધે રાંધ રાંધ્યો", "cut": "કાપે કાપ કાપ્યો", "paint": "રંગે રંગ રંગ્યો",
    "draw": "_નું_ચિત્ર.n/દોરે દોર દોર્યો", "read": "વાંચે વાંચ વાંચ્યો", "write": "લખે લખ લખ્યો", "open": "ખોલે ખોલ ખોલ્યો",
    "close": "બંધ/કરે કર કર્યો", "hide": "સંતાડે સંતાડ સંતાડ્યો", "lose": "ગુમાવે ગુમાવ ગુમાવ્યો", "carry": "લઈ/જાય જા ગયો 0",
    "push": "ધકેલે ધકેલ ધકેલ્યો", "choose": "પસંદ/કરે કર કર્યો", "sleep": "ઊંઘે ઊંઘ ઊંઘ્યો 0", "run": "દોડે દોડ દોડ્યો 0",
    "swim": "તરે તર તર્યો 0", "fly": "ઊડે ઊડ ઊડ્યો 0", "jump": "કૂદે કૂદ કૂદ્યો 0", "play": "રમે રમ રમ્યો 0", "wait": "રાહ.f/જુએ જો જોયો",
    "arrive": "પહોંચે પહોંચ પહોંચ્યો 0", "sing": "ગાય ગા ગાયો", "dance": "નાચે નાચ નાચ્યો 0", "walk": "ચાલે ચાલ ચાલ્યો 0",
    "laugh": "હસે હસ હસ્યો 0", "cry": "રડે રડ રડ્યો 0", "smile": "સ્મિત.n/કરે કર કર્યો", "work": "કામ.n/કરે કર કર્યો",
    "talk": "વાત.f/કરે કર કર્યો",
}  # fmt: skip
BATHE = "નવડાવે નવડાવ નવડાવ્યો"  # to wash what is alive
NUMERALS = {"two": "બે", "three": "ત્રણ", "four": "ચાર"}
PREPOSITIONS = {"on": "પર", "under": "નીચે", "behind": "પાછળ", "near": "પાસે"}
IN = "માં"  # written with the noun
TIMES = {"yesterday": "ગઈકાલે", "last week": "ગયા અઠવાડિયે", "today": "આજે", "every day": "દરરોજ", "tomorrow": "આવતીકાલે", "next week": "આવતા અઠવાડિયે"}  # fmt: skip
LINKS = {"and": "અને", "but": ",પણ", "because": "કારણ કે"}
ENDS = {False: {"m": "ો", "f": "ી", "n": "ું"}, True: {"m": "ા", "f": "ી", "n": "ાં"}}  # of one, of many


def realise(sentence: Sentence) -> Realised:
    return realised(sentence, _clause, LINKS)


def _clause(clause: Clause, c: str) -> list[Token]:
    verb, acting = _verb(clause, c)
    who = _noun_phrase(clause.subject, f"{c}.subject", "એ" if acting else "")
    place: list[Token] = []
    if clause.place:
        role, where = f"{c}.place", clause.place
        if where.preposition == "in":
            *rest, noun = _noun_phrase(where.where, role, IN)
            place = [*rest, Token(noun.form, (role, f"{role}.prep"))]
        else:
            near = Token(PREPOSITIONS[where.preposition], (f"{role}.prep",))
            place = [*_noun_phrase(where.where, role, "-"), near]
    tokens = arranged(clause, c, who, place, _object(clause, c), verb, TIMES)
    return [Token("શું", (f"{c}.question",)), *tokens] if clause.question else tokens


def _object(clause: Clause, c: str) -> list[Token]:
    np, role = _single(clause), f"{c}.object"
    if np is None:
        return [] if clause.quality is None else phrase(_agreed(clause.quality, clause.subject, False), f"{c}.quality")
    denied = clause.negated and np.determiner in ("a", "some")
    before = VERBS[clause.verb].split()[0].split("/")[0].split("_")
    if len(before) > 1:  # -નો અવાજ: the ending is the noun's, what it is of belongs to the verb
        return _noun_phrase(np, role, before[1], denied)
    return _noun_phrase(np, role, "ને" if KNOWN[np.noun].kind == "person" else "", denied)


def _single(clause: Clause) -> NounPhrase | None:
    """The object; not any books: not any book."""
    np = clause.object
    if np and clause.negated and np.plural and np.determiner == "some":
        return NounPhrase(np.noun, np.determiner, False, np.adjectives)
    return np


def _verb(clause: Clause, c: str) -> tuple[list[Token], bool]:
    """The verb, and whether who does it has -એ."""
    node, denial = (f"{c}.verb",), (f"{c}.not",)
    gender, many = _gender(clause.subject), clause.subject.plural
    if clause.verb == BE:
        if clause.tense == "future":
            return ([Token("નહીં", denial), Token("હોય", node)] if clause.negated else [Token("હશે", node)]), False
        if clause.tense == "past":
            form = ("નહોત" if clause.negated else "હત") + ENDS[many][gender]
        else:
            form = "નથી" if clause.negated else "છે"
        return [Token(form, (*node, *denial) if clause.negated else node)], False
    bathed = clause.verb == "wash" and clause.object and KNOWN[clause.object.noun].animate
    described, stem, done, *without = (BATHE if bathed else VERBS[clause.verb]).split()
    before, _, present = described.rpartition("/")
    before, _, followed = before.partition(".")
    first = [Token(before.rpartition("_")[2], node)] if before else []
    never = [Token("નહીં", denial)] if clause.negated else []
    if clause.tense == "present":
        if clause.negated:
            return [*first, Token(stem + "ત" + ENDS[many][gender], node), Token("નથી", denial)], False
        return [*first, Token(present, node), Token("છે", node)], False
    if clause.tense == "future":
        return [*first, Token(stem + "શે", node), *never], False
    if not without:
        what = _single(clause)
        gender, many = followed or "n", False
        if what and not followed:
            gender, many = _gender(what), what.plural
    return [*first, Token(_done(done, gender, many), node), *never], not without


def _done(form: str, gender: str, many: bool) -> str:
    """ખાધો, ખાધી; દોડ્યો, દોડી; જોયો, જોઈ."""
    stem = form[:-1]
    if gender == "f":
        if stem == "ગય":
            return "ગઈ"
        if stem.endswith("્ય"):
            return stem[:-2] + "ી"
        if stem.endswith("ય"):
            return stem[:-1] + "ઈ"
    return stem + ENDS[many][gender]


def _noun_phrase(np: NounPhrase, role: str, ending: str, denied: bool = False) -> list[Token]:
    """With an ending, all of it is oblique; `-` is the oblique form without one."""
    tokens = [Token(_determiner(np, bool(ending), denied), (f"{role}.det",))]
    tokens += [Token(_agreed(adjective, np, bool(ending)), (f"{role}.{adjective}",)) for adjective in np.adjectives]
    noun = _noun(np, bool(ending))
    if ending == "એ" and not np.plural and 0x0A95 <= ord(noun[-1]) <= 0x0AB9:  # a consonant takes the vowel as its sign
        noun += "ે"
    else:
        noun += ending.removeprefix("-")
    tokens.append(Token(noun, (role,)))
    return [token for token in tokens if token.form]


def _noun(np: NounPhrase, oblique: bool) -> str:
    gender, noun, *plural = NOUNS[np.noun].split()
    changing = (
        noun[:-1] if gender == "m" and noun.endswith("ો") else noun[:-2] if gender == "n" and noun.endswith("ું") else ""
    )
    if changing:
        if not np.plural:
            return changing + "ા" if oblique else noun
        many = changing + ENDS[True][gender]
        return many + "ઓ" if oblique else many
    if not np.plural:
        return noun
    return plural[0] if plural else noun + ("ો" if 0x0A95 <= ord(noun[-1]) <= 0x0AB9 else "ઓ")


def _determiner(np: NounPhrase, oblique: bool, denied: bool) -> str:
    if np.determiner == "the":
        return ""
    if not KNOWN[np.noun].counted:
        return "" if denied else _inflected("થોડો", np, oblique)
    if denied:
        return "કોઈ"
    if np.determiner == "some":
        return "કેટલ" + {"m": "ાક", "f": "ીક", "n": "ાંક"}[_gender(np)]
    return NUMERALS.get(np.determiner, "એક")


def _gender(np: NounPhrase) -> str:
    return NOUNS[np.noun][0]


def _agreed(adjective: str, np: NounPhrase, oblique: bool) -> str:
    return _inflected(OLD if adjective == "old" and KNOWN[np.noun].animate else ADJECTIVES[adjective], np, oblique)


def _inflected(word: str, np: NounPhrase, oblique: bool) -> str:
    if not word.endswith("ો"):
        return word
    gender = _gender(np)
    if oblique and not np.plural and gender != "f":
        return word[:-1] + "ા"
    return word[:-1] + ENDS[np.plural][gender]
