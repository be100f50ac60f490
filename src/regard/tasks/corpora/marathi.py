"""Marathi: three genders, case endings on oblique forms; in the past who acts on something has -ने, and the verb follows
the object.

Every person as object has -ला, and the verb is then neuter. Nobody is spoken of with the plural of respect.
"""

from __future__ import annotations

from regard.tasks.corpora.lexicon import NOUNS as KNOWN
from regard.tasks.corpora.meaning import BE, Clause, NounPhrase, Realised, Sentence, Token, phrase
from regard.tasks.corpora.verb_last import arranged, realised

# Gender, the noun, its plural, its oblique form, and that of its plural (before endings: with a nasal).
NOUNS: dict[str, str] = {
    "cat": "f मांजर मांजरी मांजरी मांजरीं", "snake": "m साप साप सापा सापां", "dog": "m कुत्रा कुत्रे कुत्र्या कुत्र्यां",
    "fox": "m कोल्हा कोल्हे कोल्ह्या कोल्ह्यां", "wolf": "m लांडगा लांडगे लांडग्या लांडग्यां", "bear": "n अस्वल अस्वले अस्वला अस्वलां",
    "lion": "m सिंह सिंह सिंहा सिंहां", "tiger": "m वाघ वाघ वाघा वाघां", "mouse": "m उंदीर उंदीर उंदरा उंदरां",
    "rabbit": "m ससा ससे सशा सशां", "frog": "m बेडूक बेडूक बेडका बेडकां", "bird": "m पक्षी पक्षी पक्ष्या पक्ष्यां",
    "duck": "n बदक बदके बदका बदकां", "hen": "f कोंबडी कोंबड्या कोंबडी कोंबड्यां", "fish": "m मासा मासे माशा माशां",
    "horse": "m घोडा घोडे घोड्या घोड्यां", "cow": "f गाय गायी गायी गायीं", "pig": "n डुक्कर डुकरे डुकरा डुकरां",
    "goat": "f शेळी शेळ्या शेळी शेळ्यां", "donkey": "n गाढव गाढवे गाढवा गाढवां", "elephant": "m हत्ती हत्ती हत्ती हत्तीं",
    "monkey": "n माकड माकडे माकडा माकडां", "man": "m पुरुष पुरुष पुरुषा पुरुषां", "woman": "f स्त्री स्त्रिया स्त्री स्त्रियां",
    "boy": "m मुलगा मुलगे मुला मुलां", "girl": "f मुलगी मुली मुली मुलीं", "child": "n मूल मुले मुला मुलां",
    "king": "m राजा राजे राजा राजां", "queen": "f राणी राण्या राणी राण्यां", "princess": "f राजकन्या राजकन्या राजकन्ये राजकन्यां",
    "farmer": "m शेतकरी शेतकरी शेतकऱ्या शेतकऱ्यां", "teacher": "m शिक्षक शिक्षक शिक्षका शिक्षकां",
    "doctor": "m डॉक्टर डॉक्टर डॉक्टर डॉक्टरां", "student": "m विद्यार्थी विद्यार्थी विद्यार्थ्या विद्यार्थ्यां",
    "friend": "m मित्र मित्र मित्रा मित्रां", "grandmother": "f आजी आज्या आजी आज्यां", "soldier": "m सैनिक सैनिक सैनिका सैनिकां",
    "chef": "m आचारी आचारी आचाऱ्या आचाऱ्यां", "apple": "n सफरचंद सफरचंदे सफरचंदा सफरचंदां", "banana": "n केळे केळी केळ्या केळ्यां",
    "orange": "n संत्रे संत्री संत्र्या संत्र्यां", "pear": "f नाशपाती नाशपाती नाशपाती नाशपातीं", "egg": "n अंडे अंडी अंड्या अंड्यां",
    "potato": "m बटाटा बटाटे बटाट्या बटाट्यां", "carrot": "n गाजर गाजरे गाजरा गाजरां", "tomato": "m टोमॅटो टोमॅटो टोमॅटो टोमॅटों",
    "cake": "m केक केक केक केकां", "bread": "m पाव पाव पावा पावां", "cheese": "n चीज चीज चीज चीज", "honey": "m मध मध मधा मधां",
    "rice": "m भात भात भाता भातां", "meat": "n मांस मांस मांसा मांसां", "soup": "n सूप सूप सूप सूप", "milk": "n दूध दूध दुधा दुधां",
    "water": "n पाणी पाणी पाण्या पाण्यां", "tea": "m चहा चहा चहा चहां", "coffee": "f कॉफी कॉफी कॉफी कॉफी", "wine": "f वाइन वाइन वाइन वाइन",
    "juice": "m रस रस रसा रसां", "book": "n पुस्तक पुस्तके पुस्तका पुस्तकां", "letter": "n पत्र पत्रे पत्रा पत्रां",
    "newspaper": "n वर्तमानपत्र वर्तमानपत्रे वर्तमानपत्रा वर्तमानपत्रां", "box": "f पेटी पेट्या पेटी पेट्यां",
    "bag": "f पिशवी पिशव्या पिशवी पिशव्यां", "door": "m दरवाजा दरवाजे दरवाज्या दरवाज्यां", "window": "f खिडकी खिडक्या खिडकी खिडक्यां",
    "ball": "m चेंडू चेंडू चेंडू चेंडूं", "flower": "n फूल फुले फुला फुलां", "hat": "f टोपी टोप्या टोपी टोप्यां",
    "shirt": "m सदरा सदरे सदऱ्या सदऱ्यां", "knife": "m चाकू चाकू चाकू चाकूं", "key": "f किल्ली किल्ल्या किल्ली किल्ल्यां",
    "cup": "m कप कप कपा कपां", "umbrella": "f छत्री छत्र्या छत्री छत्र्यां", "picture": "n चित्र चित्रे चित्रा चित्रां",
    "lamp": "m दिवा दिवे दिव्या दिव्यां", "chair": "f खुर्ची खुर्च्या खुर्ची खुर्च्यां", "table": "n टेबल टेबले टेबला टेबलां",
    "bicycle": "f सायकल सायकली सायकली सायकलीं", "car": "f गाडी गाड्या गाडी गाड्यां", "garden": "f बाग बागा बागे बागां",
    "house": "n घर घरे घरा घरां", "kitchen": "n स्वयंपाकघर स्वयंपाकघरे स्वयंपाकघरा स्वयंपाकघरां", "forest": "n जंगल जंगले जंगला जंगलां",
    "park": "n उद्यान उद्याने उद्याना उद्यानां", "street": "f गल्ली गल्ल्या गल्ली गल्ल्यां", "school": "f शाळा शाळा शाळे शाळां",
    "city": "n शहर शहरे शहरा शहरां", "field": "n शेत शेते शेता शेतां", "room": "f खोली खोल्या खोली खोल्यां",
    "tree": "n झाड झाडे झाडा झाडां", "bed": "m पलंग पलंग पलंगा पलंगां", "bridge": "m पूल पूल पुला पुलां", "river": "f नदी नद्या नदी नद्यां",
}  # fmt: skip
# Those that end in -ा agree: काळा, काळी, काळे, before endings काळ्या.
ADJECTIVES: dict[str, str] = {
    "black": "काळा", "white": "पांढरा", "red": "लाल", "green": "हिरवा", "blue": "निळा", "yellow": "पिवळा", "brown": "तपकिरी",
    "gray": "राखाडी", "big": "मोठा", "small": "लहान", "old": "जुना", "young": "तरुण", "new": "नवीन", "beautiful": "सुंदर",
    "ugly": "कुरूप", "good": "चांगला", "fresh": "ताजा", "cold": "थंड", "hot": "गरम", "expensive": "महाग", "heavy": "जड",
    "clean": "स्वच्छ", "dirty": "घाणेरडा", "strong": "बलवान", "clever": "हुशार", "dangerous": "धोकादायक", "rich": "श्रीमंत",
    "famous": "प्रसिद्ध", "happy": "आनंदी", "sad": "दुःखी", "tired": "थकलेला", "sick": "आजारी",
}  # fmt: skip
OLD = "म्हातारा"  # of what is alive
# (What stands before it, with the gender that the verb then follows /) the stem of habits, the stem of what is done,
# and he will do. "0" takes no -ने.
VERBS: dict[str, str] = {
    "eat": "खा खाल् खाईल", "drink": "पि प्याय पिईल", "see": "पाह पाहि पाहील", "find": "शोधून/काढ काढ काढेल",
    "hear": "_चा_आवाज.m/ऐक ऐक ऐकेल", "catch": "पकड पकड पकडेल", "steal": "चोर चोर चोरेल", "buy": "विकत/घे घेत घेईल",
    "sell": "विक विक विकेल", "wash": "धु धुत धुईल", "cook": "शिजव शिजव शिजवेल", "cut": "काप काप कापेल", "paint": "रंगव रंगव रंगवेल",
    "draw": "_चे_चित्र.n/काढ काढ काढेल", "read": "वाच वाच वाचेल", "write": "लिहि लिहि लिहील", "open": "उघड उघड उघडेल",
    "close": "बंद/कर के करेल", "hide": "लपव लपव लपवेल", "lose": "हरव हरव हरवेल", "carry": "ने ने नेईल", "push": "ढकल ढकल ढकलेल",
    "choose": "निवड निवड निवडेल", "sleep": "झोप झोप झोपेल 0", "run": "धाव धाव धावेल 0", "swim": "पोह पोह पोहेल 0",
    "fly": "उड उडा उडेल 0", "jump": "उडी.f/मार मार मारेल", "play": "खेळ खेळ खेळेल 0", "wait": "वाट.f/पाह पाहि पाहील",
    "arrive": "पोहोच पोहोच पोहोचेल 0", "sing": "गा गाय गाईल 0", "dance": "नाच नाच नाचेल 0", "walk": "चाल चाल चालेल 0",
    "laugh": "हस हस हसेल 0", "cry": "रड रड रडेल 0", "smile": "स्मित.n/कर के करेल", "work": "काम.n/कर के करेल",
    "talk": "बोल बोल बोलेल 0",
}  # fmt: skip
# Masculine, feminine, neuter, and the same of many.
DONE = "ला ली ले ले ल्या ली"
WAS = "होता होती होते होते होत्या होती"
WAS_NOT = "नव्हता नव्हती नव्हते नव्हते नव्हत्या नव्हती"
NUMERALS = {"two": "दोन", "three": "तीन", "four": "चार"}
PREPOSITIONS = {"in": "त", "on": "वर", "under": "खाली", "behind": "मागे", "near": "जवळ"}  # written with the noun
TIMES = {"yesterday": "काल", "last week": "गेल्या आठवड्यात", "today": "आज", "every day": "दररोज", "tomorrow": "उद्या", "next week": "पुढच्या आठवड्यात"}  # fmt: skip
LINKS = {"and": "आणि", "but": ",पण", "because": "कारण"}


def realise(sentence: Sentence) -> Realised:
    return realised(sentence, _clause, LINKS)


def _clause(clause: Clause, c: str) -> list[Token]:
    subject, role = clause.subject, f"{c}.subject"
    what, marked = _object(clause, c)
    verb, acting = _verb(clause, c, marked)
    who = _noun_phrase(subject, role, ("नी" if subject.plural else "ने") if acting else "")
    place: list[Token] = []
    if clause.place:
        role = f"{c}.place"
        *rest, noun = _noun_phrase(clause.place.where, role, PREPOSITIONS[clause.place.preposition])
        place = [*rest, Token(noun.form, (role, f"{role}.prep"))]
    asked = [Token("का", (f"{c}.question",))] if clause.question else []
    return arranged(clause, c, who, place, what, [*verb, *asked], TIMES)


def _object(clause: Clause, c: str) -> tuple[list[Token], bool]:
    """The object, and whether it is marked, so that the verb does not follow it."""
    np, role = clause.object, f"{c}.object"
    if np is None:
        if clause.quality is None:
            return [], False
        return phrase(_agreed(clause.quality, clause.subject, False), f"{c}.quality"), False
    denied = clause.negated and np.determiner in ("a", "some")
    if denied and np.plural:
        np = NounPhrase(np.noun, np.determiner, False, np.adjectives)
    before = VERBS[clause.verb].split()[0].split("/")[0].split("_")
    if len(before) > 1:  # -चा आवाज: the ending is the noun's, what it is of belongs to the verb
        return _noun_phrase(np, role, before[1], denied), True
    if KNOWN[np.noun].kind == "person":
        return _noun_phrase(np, role, "ना" if np.plural else "ला", denied), True
    return _noun_phrase(np, role, "", denied), False


def _verb(clause: Clause, c: str, marked: bool) -> tuple[list[Token], bool]:
    """The verb, and whether who does it has -ने."""
    node, nodes_not = (f"{c}.verb",), (f"{c}.not",)
    subject, many = clause.subject, clause.subject.plural
    denial = [Token("नाहीत" if many else "नाही", nodes_not)] if clause.negated else []
    if clause.verb == BE:
        if clause.tense == "past":
            form = _form(WAS_NOT if denial else WAS, subject)
        elif clause.tense == "present":
            form = ("नाहीत" if many else "नाही") if denial else ("आहेत" if many else "आहे")
        else:
            form = ("नस" if denial else "अस") + ("तील" if many else "ेल")
        return [Token(form, (*node, *nodes_not) if denial else node)], False
    described, done, future, *without = VERBS[clause.verb].split()
    before, _, stem = described.rpartition("/")
    before, _, gender = before.partition(".")
    first = [Token(before.rpartition("_")[2], node)] if before else []
    if clause.tense == "present":
        if denial:
            return [*first, Token(stem + "त", node), *denial], False
        return [*first, Token(stem + ("तात" if many else "तो" if _gender(subject) == "m" else "ते"), node)], False
    if clause.tense == "future":
        if denial:
            return [*first, Token(stem + "णार", node), *denial], False
        return [*first, Token(stem + "तील" if many else future, node)], False
    if without:
        return [*first, Token(done + _form(DONE, subject), node), *denial], False
    what = clause.object
    follows, several = gender or "n", False
    if not gender and what and not marked:
        single = clause.negated and what.determiner in ("a", "some")
        follows, several = _gender(what), what.plural and not single
    if denial:
        denial = [Token("नाहीत" if several else "नाही", nodes_not)]
    return [*first, Token(done + DONE.split()["mfn".index(follows) + 3 * several], node), *denial], True


def _form(forms: str, np: NounPhrase) -> str:
    return forms.split()["mfn".index(_gender(np)) + 3 * np.plural]


def _noun_phrase(np: NounPhrase, role: str, ending: str, denied: bool = False) -> list[Token]:
    """With an ending, all of it is oblique."""
    tokens = [Token(_determiner(np, bool(ending), denied), (f"{role}.det",))]
    for adjective in np.adjectives:
        tokens += phrase(_agreed(adjective, np, bool(ending)), f"{role}.{adjective}")
    forms = NOUNS[np.noun].split()[1:]
    tokens.append(Token(forms[2 * bool(ending) + np.plural] + ending, (role,)))
    return [token for token in tokens if token.form]


def _determiner(np: NounPhrase, oblique: bool, denied: bool) -> str:
    if np.determiner == "the":
        return ""
    if not KNOWN[np.noun].counted:
        return "" if denied else _inflected("थोडा", np, oblique)
    if denied:
        return _inflected("कोणता", np, oblique) + "ही"
    return NUMERALS.get(np.determiner) or ("काही" if np.determiner == "some" else "एका" if oblique else "एक")


def _gender(np: NounPhrase) -> str:
    return NOUNS[np.noun][0]


def _agreed(adjective: str, np: NounPhrase, oblique: bool) -> str:
    return _inflected(OLD if adjective == "old" and KNOWN[np.noun].animate else ADJECTIVES[adjective], np, oblique)


def _inflected(word: str, np: NounPhrase, oblique: bool) -> str:
    if not word.endswith("ा"):
        return word
    stem = word[:-1]
    ends = ["ा", "ी", "े", "े", "्या", "ी"]
    end = "्या" if oblique else ends["mfn".index(_gender(np)) + 3 * np.plural]
    if end == "्या" and stem.endswith("र"):
        return stem[:-1] + "ऱ्या"
    return stem + end
