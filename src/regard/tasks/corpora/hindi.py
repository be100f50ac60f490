"""Hindi: postpositions and oblique forms; in the past who acts on something has ने, and the verb follows the object.

An object that is alive and known, and every person, has को; the verb then stands in its neutral form. Nobody is spoken
of with the plural of respect.
"""

from __future__ import annotations

from regard.tasks.corpora.lexicon import NOUNS as KNOWN
from regard.tasks.corpora.meaning import BE, Clause, NounPhrase, Realised, Sentence, Token, phrase
from regard.tasks.corpora.verb_last import arranged, realised

# Gender, the noun, and where they do not follow from its end: plural, oblique, oblique plural.
NOUNS: dict[str, str] = {
    "cat": "f बिल्ली", "snake": "m साँप", "dog": "m कुत्ता", "fox": "f लोमड़ी", "wolf": "m भेड़िया भेड़िये भेड़िये भेड़ियों",
    "bear": "m भालू भालू भालू भालुओं", "lion": "m शेर", "tiger": "m बाघ", "mouse": "m चूहा", "rabbit": "m खरगोश",
    "frog": "m मेंढक", "bird": "f चिड़िया चिड़ियाँ चिड़िया चिड़ियों", "duck": "f बत्तख", "hen": "f मुर्गी", "fish": "f मछली",
    "horse": "m घोड़ा", "cow": "f गाय", "pig": "m सूअर", "goat": "f बकरी", "donkey": "m गधा",
    "elephant": "m हाथी हाथी हाथी हाथियों", "monkey": "m बंदर", "man": "m आदमी आदमी आदमी आदमियों", "woman": "f औरत",
    "boy": "m लड़का", "girl": "f लड़की", "child": "m बच्चा", "king": "m राजा राजा राजा राजाओं", "queen": "f रानी",
    "princess": "f राजकुमारी", "farmer": "m किसान", "teacher": "m शिक्षक", "doctor": "m डॉक्टर", "student": "m छात्र",
    "friend": "m दोस्त", "grandmother": "f दादी", "soldier": "m सैनिक", "chef": "m रसोइया रसोइये रसोइये रसोइयों",
    "apple": "m सेब", "banana": "m केला", "orange": "m संतरा", "pear": "f नाशपाती", "egg": "m अंडा",
    "potato": "m आलू आलू आलू आलुओं", "carrot": "f गाजर", "tomato": "m टमाटर", "cake": "m केक", "bread": "f रोटी",
    "cheese": "m पनीर", "honey": "m शहद", "rice": "m चावल", "meat": "m मांस", "soup": "m सूप", "milk": "m दूध",
    "water": "m पानी पानी पानी पानी", "tea": "f चाय", "coffee": "f कॉफ़ी", "wine": "f शराब", "juice": "m रस", "book": "f किताब",
    "letter": "f चिट्ठी", "newspaper": "m अखबार", "box": "m बक्सा", "bag": "m थैला", "door": "m दरवाज़ा", "window": "f खिड़की",
    "ball": "f गेंद", "flower": "m फूल", "hat": "f टोपी", "shirt": "f कमीज़", "knife": "m चाकू चाकू चाकू चाकुओं", "key": "f चाबी",
    "cup": "m प्याला", "umbrella": "m छाता", "picture": "f तस्वीर", "lamp": "m लैंप", "chair": "f कुर्सी", "table": "f मेज़",
    "bicycle": "f साइकिल", "car": "f कार", "garden": "m बगीचा", "house": "m घर", "kitchen": "f रसोई", "forest": "m जंगल",
    "park": "m पार्क", "street": "f गली", "school": "m स्कूल", "city": "m शहर", "field": "m खेत", "room": "m कमरा", "tree": "m पेड़",
    "bed": "m पलंग", "bridge": "m पुल", "river": "f नदी",
}  # fmt: skip
# Those that end in -ा agree: काला, काले, काली.
ADJECTIVES: dict[str, str] = {
    "black": "काला", "white": "सफ़ेद", "red": "लाल", "green": "हरा", "blue": "नीला", "yellow": "पीला", "brown": "भूरा",
    "gray": "स्लेटी", "big": "बड़ा", "small": "छोटा", "old": "पुराना", "young": "जवान", "new": "नया", "beautiful": "सुंदर",
    "ugly": "बदसूरत", "good": "अच्छा", "fresh": "ताज़ा", "cold": "ठंडा", "hot": "गर्म", "expensive": "महँगा", "heavy": "भारी",
    "clean": "साफ़", "dirty": "गंदा", "strong": "ताकतवर", "clever": "होशियार", "dangerous": "खतरनाक", "rich": "अमीर",
    "famous": "मशहूर", "happy": "खुश", "sad": "दुखी", "tired": "थका हुआ", "sick": "बीमार",
}  # fmt: skip
OLD = "बूढ़ा"  # of what is alive
# What stands before the verb and belongs to it (with its gender, which the verb then follows), / the stem, and for a
# finished deed the verb that completes it: खा लिया. "0" takes no ने.
VERBS: dict[str, str] = {
    "eat": "खा ले", "drink": "पी", "see": "देख", "find": "पा", "hear": "की_आवाज़.f/सुन", "catch": "पकड़ ले", "steal": "चुरा ले",
    "buy": "खरीद", "sell": "बेच दे", "wash": "धो", "cook": "पका", "cut": "काट", "paint": "रंग", "draw": "का_चित्र.m/बना",
    "read": "पढ़", "write": "लिख", "open": "खोल", "close": "बंद/कर", "hide": "छिपा दे", "lose": "खो दे", "carry": "ले/जा 0",
    "push": "धकेल", "choose": "चुन", "sleep": "सो 0", "run": "दौड़ 0", "swim": "तैर 0", "fly": "उड़ 0", "jump": "कूद 0",
    "play": "खेल 0", "wait": "इंतज़ार.m/कर", "arrive": "पहुँच 0", "sing": "गा", "dance": "नाच 0", "walk": "टहल 0",
    "laugh": "हँस 0", "cry": "रो 0", "smile": "मुस्कुरा 0", "work": "काम.m/कर", "talk": "बात.f/कर",
}  # fmt: skip
DONE = {
    "पी": "पिया पिए पी पीं",
    "कर": "किया किए की कीं",
    "ले": "लिया लिए ली लीं",
    "दे": "दिया दिए दी दीं",
    "जा": "गया गए गई गईं",
}
FUTURE = {"पी": "पिए"}
BEING = {"past": "था थे थी थीं", "present": "है हैं है हैं", "future": "होगा होंगे होगी होंगी"}
NUMERALS = {"two": "दो", "three": "तीन", "four": "चार"}
PREPOSITIONS = {"in": "में", "on": "पर", "under": "के नीचे", "behind": "के पीछे", "near": "के पास"}
TIMES = {"yesterday": "कल", "last week": "पिछले हफ़्ते", "today": "आज", "every day": "हर दिन", "tomorrow": "कल", "next week": "अगले हफ़्ते"}  # fmt: skip
LINKS = {"and": "और", "but": ",लेकिन", "because": "क्योंकि"}
MARKS = {".": (Token("।", ("end",), "PUNCT", glue=True),)}


def realise(sentence: Sentence) -> Realised:
    return realised(sentence, _clause, LINKS, MARKS)


def _clause(clause: Clause, c: str) -> list[Token]:
    subject = clause.subject
    what, marked = _object(clause, c)
    verb, acting = _verb(clause, c, marked)
    who = _noun_phrase(subject, f"{c}.subject", oblique=acting)
    who += [Token("ने", (f"{c}.subject",))] if acting else []
    place: list[Token] = []
    if clause.place:
        place = _noun_phrase(clause.place.where, f"{c}.place", oblique=True)
        place += phrase(PREPOSITIONS[clause.place.preposition], f"{c}.place.prep")
    tokens = arranged(clause, c, who, place, what, verb, TIMES)
    return [Token("क्या", (f"{c}.question",)), *tokens] if clause.question else tokens


def _object(clause: Clause, c: str) -> tuple[list[Token], bool]:
    """The object, and whether it is marked, so that the verb does not follow it."""
    np, role = clause.object, f"{c}.object"
    if np is None:
        if clause.quality is None:
            return [], False
        return phrase(_agreed(clause.quality, clause.subject, False), f"{c}.quality"), False
    denied = clause.negated and np.determiner in ("a", "some")
    noun = KNOWN[np.noun]
    if denied and np.plural:
        np = NounPhrase(np.noun, np.determiner, False, np.adjectives)
    of = VERBS[clause.verb].split("/")[0].split("_")
    if len(of) > 1:  # की आवाज़: the noun's postposition, here; what it is of belongs to the verb
        return [*_noun_phrase(np, role, True, denied), Token(of[0], (role,))], True
    if noun.kind == "person" or (noun.animate and np.determiner == "the"):
        return [*_noun_phrase(np, role, True, denied), Token("को", (role,))], True
    return _noun_phrase(np, role, False, denied), False


def _verb(clause: Clause, c: str, marked: bool) -> tuple[list[Token], bool]:
    """The verb, and whether who does it has ने."""
    node, subject = f"{c}.verb", clause.subject
    who = (_gender(subject), subject.plural)
    denial = [Token("नहीं", (f"{c}.not",))] if clause.negated else []
    if clause.verb == BE:
        return [*denial, Token(_form(BEING[clause.tense], who), (node,))], False
    bathed = clause.verb == "wash" and clause.object and KNOWN[clause.object.noun].animate
    described, *more = ["नहला"] if bathed else VERBS[clause.verb].split()
    before, _, stem = described.rpartition("/")
    before, _, gender = before.partition(".")
    first = phrase(before.rpartition("_")[2], node) if before else []
    if clause.tense == "future":
        end = _form("गा गे गी गी", who)
        root = FUTURE.get(stem) or (stem + "ए" if stem[-1] in "ाोूीे" else stem + "े")
        root += ("ँ" if root.endswith("ए") else "ं") * subject.plural
        return [*_with_denial(first, denial, stem), Token(root + end, (node,))], False
    if clause.tense == "present":
        if denial:
            return [*_with_denial(first, denial, stem), Token(stem + _form("ता ते ती तीं", who), (node,))], False
        habit = Token(stem + _form("ता ते ती ती", who), (node,))
        return [*first, habit, Token("हैं" if subject.plural else "है", (node,))], False
    if more == ["0"]:
        return [*_with_denial(first, denial, stem), Token(_done(stem, who), (node,))], False
    # The verb follows its own noun, else an object without को, else nothing.
    what = clause.object
    follows = ("m", False)
    if gender:
        follows = (gender, False)
    elif what and not marked:
        single = clause.negated and what.determiner in ("a", "some")
        follows = (_gender(what), what.plural and not single)
    if more and not denial:
        return [*first, Token(stem, (node,)), Token(_done(more[0], follows), (node,))], True
    return [*first, *denial, Token(_done(stem, follows), (node,))], True


def _with_denial(first: list[Token], denial: list[Token], stem: str) -> list[Token]:
    return [*denial, *first] if stem == "जा" else [*first, *denial]  # नहीं ले गया


def _form(forms: str, agreement: tuple[str, bool]) -> str:
    gender, plural = agreement
    return forms.split()[2 * (gender == "f") + plural]


def _done(stem: str, agreement: tuple[str, bool]) -> str:
    """The perfective participle."""
    if stem in DONE:
        return _form(DONE[stem], agreement)
    return stem + _form("या ए ई ईं" if stem[-1] in "ाो" else "ा े ी ीं", agreement)


def _noun_phrase(np: NounPhrase, role: str, oblique: bool, denied: bool = False) -> list[Token]:
    tokens = [Token(_determiner(np, oblique, denied), (f"{role}.det",))]
    for adjective in np.adjectives:
        tokens += phrase(_agreed(adjective, np, oblique), f"{role}.{adjective}")
    tokens.append(Token(_noun(np, oblique), (role,)))
    return [token for token in tokens if token.form]


def _determiner(np: NounPhrase, oblique: bool, denied: bool) -> str:
    if np.determiner == "the":
        return ""
    if not KNOWN[np.noun].counted:
        return "" if denied else _inflected("थोड़ा", np, oblique)
    if denied:
        return "किसी" if oblique else "कोई"
    return NUMERALS.get(np.determiner) or ("एक" if np.determiner == "a" else "कुछ")


def _gender(np: NounPhrase) -> str:
    return NOUNS[np.noun][0]


def _noun(np: NounPhrase, oblique: bool) -> str:
    gender, noun, *more = NOUNS[np.noun].split()
    if not more:
        stem = noun[:-1]
        if gender == "m":
            more = [stem + "े", stem + "े", stem + "ों"] if noun.endswith("ा") else [noun, noun, noun + "ों"]
        elif noun.endswith("ी"):
            more = [stem + "ियाँ", noun, stem + "ियों"]
        elif noun.endswith("ई"):
            more = [stem + "इयाँ", noun, stem + "इयों"]
        else:
            more = [noun + "ें", noun, noun + "ों"]
    return [noun, *more][2 * oblique + np.plural]


def _agreed(adjective: str, np: NounPhrase, oblique: bool) -> str:
    alive = KNOWN[np.noun].animate
    words = (OLD if adjective == "old" and alive else ADJECTIVES[adjective]).split()
    return " ".join(_inflected(word, np, oblique) for word in words)


def _inflected(word: str, np: NounPhrase, oblique: bool) -> str:
    if word in ("नया", "हुआ"):  # the ending is a vowel of its own: नई, हुए
        return (
            word
            if not (np.plural or oblique or _gender(np) == "f")
            else {"नया": "न", "हुआ": "हु"}[word] + ("ई" if _gender(np) == "f" else "ए")
        )
    if not word.endswith("ा"):
        return word
    return word[:-1] + ("ी" if _gender(np) == "f" else "े" if np.plural or oblique else "ा")
