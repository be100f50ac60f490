"""Tamil: case endings on the noun, the verb at the end, which agrees with persons as he, she or they and with all else as
it; what is asked is an ending of the verb. A hard consonant (க, ச, த, ப) doubles behind the ending -ஐ: எலியைத் தின்றது.

Behind colours it is not doubled, as is usual in print today. Teachers and doctors have the form of respect.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from regard.tasks.corpora.lexicon import NOUNS as KNOWN
from regard.tasks.corpora.meaning import BE, Clause, NounPhrase, Realised, Sentence, Token, phrase
from regard.tasks.corpora.verb_last import arranged, realised

# Class (n: it, m: he, f: she, h: he, with respect) and noun; where they do not follow, what is seen, and many of it.
NOUNS: dict[str, str] = {
    "cat": "n பூனை", "snake": "n பாம்பு பாம்பை", "dog": "n நாய்", "fox": "n நரி", "wolf": "n ஓநாய்", "bear": "n கரடி", "lion": "n சிங்கம்",
    "tiger": "n புலி", "mouse": "n எலி", "rabbit": "n முயல் முயலை", "frog": "n தவளை", "bird": "n பறவை", "duck": "n வாத்து வாத்தை",
    "hen": "n கோழி", "fish": "n மீன் மீனை", "horse": "n குதிரை", "cow": "n பசு பசுவை பசுக்கள்", "pig": "n பன்றி", "goat": "n ஆடு ஆட்டை",
    "donkey": "n கழுதை", "elephant": "n யானை", "monkey": "n குரங்கு குரங்கை", "man": "m மனிதன் மனிதனை மனிதர்கள்",
    "woman": "f பெண் பெண்ணை", "boy": "m சிறுவன் சிறுவனை சிறுவர்கள்", "girl": "f சிறுமி", "child": "n குழந்தை",
    "king": "m அரசன் அரசனை அரசர்கள்", "queen": "f அரசி", "princess": "f இளவரசி", "farmer": "m உழவன் உழவனை உழவர்கள்",
    "teacher": "h ஆசிரியர் ஆசிரியரை", "doctor": "h மருத்துவர் மருத்துவரை", "student": "m மாணவன் மாணவனை மாணவர்கள்",
    "friend": "m நண்பன் நண்பனை நண்பர்கள்", "grandmother": "f பாட்டி", "soldier": "m படைவீரன் படைவீரனை படைவீரர்கள்",
    "chef": "m சமையல்காரன் சமையல்காரனை சமையல்காரர்கள்", "apple": "n ஆப்பிள் ஆப்பிளை", "banana": "n வாழைப்பழம்",
    "orange": "n ஆரஞ்சு ஆரஞ்சை", "pear": "n பேரிக்காய்", "egg": "n முட்டை", "potato": "n உருளைக்கிழங்கு உருளைக்கிழங்கை",
    "carrot": "n கேரட் கேரட்டை கேரட்டுகள்", "tomato": "n தக்காளி", "cake": "n கேக் கேக்கை கேக்குகள்", "bread": "n ரொட்டி",
    "cheese": "n பாலாடைக்கட்டி", "honey": "n தேன் தேனை", "rice": "n சோறு சோற்றை", "meat": "n இறைச்சி", "soup": "n சூப் சூப்பை",
    "milk": "n பால் பாலை", "water": "n தண்ணீர் தண்ணீரை", "tea": "n தேநீர் தேநீரை", "coffee": "n காபி", "wine": "n ஒயின் ஒயினை",
    "juice": "n பழச்சாறு பழச்சாற்றை", "book": "n புத்தகம்", "letter": "n கடிதம்", "newspaper": "n செய்தித்தாள் செய்தித்தாளை",
    "box": "n பெட்டி", "bag": "n பை", "door": "n கதவு கதவை", "window": "n ஜன்னல் ஜன்னலை", "ball": "n பந்து பந்தை",
    "flower": "n பூ பூவை பூக்கள்", "hat": "n தொப்பி", "shirt": "n சட்டை", "knife": "n கத்தி", "key": "n சாவி", "cup": "n கோப்பை",
    "umbrella": "n குடை", "picture": "n படம்", "lamp": "n விளக்கு விளக்கை", "chair": "n நாற்காலி", "table": "n மேசை",
    "bicycle": "n மிதிவண்டி", "car": "n கார் காரை", "garden": "n தோட்டம்", "house": "n வீடு வீட்டை", "kitchen": "n சமையலறை",
    "forest": "n காடு காட்டை", "park": "n பூங்கா பூங்காவை", "street": "n தெரு தெருவை", "school": "n பள்ளி", "city": "n நகரம்",
    "field": "n வயல் வயலை", "room": "n அறை", "tree": "n மரம்", "bed": "n கட்டில் கட்டிலை", "bridge": "n பாலம்", "river": "n ஆறு ஆற்றை",
}  # fmt: skip
# Before a noun / with the copula. `*`: with the ending of the person: -வனாக, -வளாக, -வராக, -வர்களாக, else -தாக.
ADJECTIVES: dict[str, str] = {
    "black": "கருப்பு/கருப்பாக", "white": "வெள்ளை/வெள்ளையாக", "red": "சிவப்பு/சிவப்பாக", "green": "பச்சை/பச்சையாக",
    "blue": "நீல/நீலமாக", "yellow": "மஞ்சள்/மஞ்சளாக", "brown": "பழுப்பு/பழுப்பாக", "gray": "சாம்பல்_நிற/சாம்பல்_நிறமாக",
    "big": "பெரிய/பெரிதாக", "small": "சிறிய/சிறிய*", "old": "பழைய/பழையதாக", "young": "இளம்/இளமையாக", "new": "புதிய/புதிதாக",
    "beautiful": "அழகான/அழகாக", "ugly": "அசிங்கமான/அசிங்கமாக", "good": "நல்ல/நன்றாக", "fresh": "புத்தம்புதிய/புத்தம்புதிதாக",
    "cold": "குளிர்ந்த/குளிர்ச்சியாக", "hot": "சூடான/சூடாக", "expensive": "விலையுயர்ந்த/விலையுயர்ந்ததாக", "heavy": "கனமான/கனமாக",
    "clean": "சுத்தமான/சுத்தமாக", "dirty": "அழுக்கான/அழுக்காக", "strong": "வலிமையான/வலிமையாக", "clever": "புத்திசாலியான/புத்திசாலியாக",
    "dangerous": "ஆபத்தான/ஆபத்தானதாக", "rich": "வசதியான/வசதியாக", "famous": "புகழ்பெற்ற/புகழ்பெற்ற*",
    "happy": "மகிழ்ச்சியான/மகிழ்ச்சியாக", "sad": "சோகமான/சோகமாக", "tired": "களைப்பான/களைப்பாக", "sick": "நோய்வாய்ப்பட்ட/நோய்வாய்ப்பட்ட*",
}  # fmt: skip
OLD = "வயதான/வயதான*"  # of what is alive
PERSON = {"m": "வனாக", "f": "வளாக", "h": "வராக", "they": "வர்களாக"}
# (What stands before it /) has done, does, will do (he, she), it will do, and the infinitive. Where the first ends in -ின,
# of one thing it is -ியது: ஓடினான், ஓடியது.
VERBS: dict[str, str] = {
    "eat": "தின்ற தின்கிற தின்ப தின்னும் தின்ன", "drink": "குடித்த குடிக்கிற குடிப்ப குடிக்கும் குடிக்க",
    "see": "பார்த்த பார்க்கிற பார்ப்ப பார்க்கும் பார்க்க", "find": "கண்டுபிடித்த கண்டுபிடிக்கிற கண்டுபிடிப்ப கண்டுபிடிக்கும் கண்டுபிடிக்க",
    "hear": "குரலைக்/கேட்ட கேட்கிற கேட்ப கேட்கும் கேட்க", "catch": "பிடித்த பிடிக்கிற பிடிப்ப பிடிக்கும் பிடிக்க",
    "steal": "திருடின திருடுகிற திருடுவ திருடும் திருட", "buy": "வாங்கின வாங்குகிற வாங்குவ வாங்கும் வாங்க",
    "sell": "விற்ற விற்கிற விற்ப விற்கும் விற்க", "wash": "கழுவின கழுவுகிற கழுவுவ கழுவும் கழுவ",
    "cook": "சமைத்த சமைக்கிற சமைப்ப சமைக்கும் சமைக்க", "cut": "வெட்டின வெட்டுகிற வெட்டுவ வெட்டும் வெட்ட",
    "paint": "வண்ணம்/பூசின பூசுகிற பூசுவ பூசும் பூச", "draw": "வரைந்த வரைகிற வரைவ வரையும் வரைய",
    "read": "படித்த படிக்கிற படிப்ப படிக்கும் படிக்க", "write": "எழுதின எழுதுகிற எழுதுவ எழுதும் எழுத",
    "open": "திறந்த திறக்கிற திறப்ப திறக்கும் திறக்க", "close": "மூடின மூடுகிற மூடுவ மூடும் மூட",
    "hide": "மறைத்த மறைக்கிற மறைப்ப மறைக்கும் மறைக்க", "lose": "தொலைத்த தொலைக்கிற தொலைப்ப தொலைக்கும் தொலைக்க",
    "carry": "சுமந்த சுமக்கிற சுமப்ப சுமக்கும் சுமக்க", "push": "தள்ளின தள்ளுகிற தள்ளுவ தள்ளும் தள்ள",
    "choose": "தேர்ந்தெடுத்த தேர்ந்தெடுக்கிற தேர்ந்தெடுப்ப தேர்ந்தெடுக்கும் தேர்ந்தெடுக்க",
    "sleep": "தூங்கின தூங்குகிற தூங்குவ தூங்கும் தூங்க", "run": "ஓடின ஓடுகிற ஓடுவ ஓடும் ஓட", "swim": "நீந்தின நீந்துகிற நீந்துவ நீந்தும் நீந்த",
    "fly": "பறந்த பறக்கிற பறப்ப பறக்கும் பறக்க", "jump": "குதித்த குதிக்கிற குதிப்ப குதிக்கும் குதிக்க",
    "play": "விளையாடின விளையாடுகிற விளையாடுவ விளையாடும் விளையாட", "wait": "காத்திருந்த காத்திருக்கிற காத்திருப்ப காத்திருக்கும் காத்திருக்க",
    "arrive": "வந்து/சேர்ந்த சேர்கிற சேர்வ சேரும் சேர", "sing": "பாடின பாடுகிற பாடுவ பாடும் பாட",
    "dance": "நடனமாடின நடனமாடுகிற நடனமாடுவ நடனமாடும் நடனமாட", "walk": "நடந்த நடக்கிற நடப்ப நடக்கும் நடக்க",
    "laugh": "சிரித்த சிரிக்கிற சிரிப்ப சிரிக்கும் சிரிக்க", "cry": "அழுத அழுகிற அழுவ அழும் அழ",
    "smile": "புன்னகைத்த புன்னகைக்கிற புன்னகைப்ப புன்னகைக்கும் புன்னகைக்க", "work": "வேலை/செய்த செய்கிற செய்வ செய்யும் செய்ய",
    "talk": "பேசின பேசுகிற பேசுவ பேசும் பேச",
}  # fmt: skip
DINE = "சாப்பிட்ட சாப்பிடுகிற சாப்பிடுவ சாப்பிடும் சாப்பிட"  # persons eat
BATHE = "குளிப்பாட்டின குளிப்பாட்டுகிற குளிப்பாட்டுவ குளிப்பாட்டும் குளிப்பாட்ட"  # to wash what is alive
LAUNDER = "துவைத்த துவைக்கிற துவைப்ப துவைக்கும் துவைக்க"  # and clothes
BEING = "இருந்த இருக்கிற இருப்ப இருக்கும் இருக்க"
ENDS = {"m": "ான்", "f": "ாள்", "h": "ார்", "they": "ார்கள்"}
CASES = {"hear": "ின்", "paint": "ுக்கு"}  # of the object, where it is not the accusative
HARD = "கசதப"
NUMERALS = {"two": "இரண்டு", "three": "மூன்று", "four": "நான்கு"}
PREPOSITIONS = {"on": "மீது", "under": "கீழே", "behind": "பின்னால்", "near": "அருகில்"}
TIMES = {"yesterday": "நேற்று", "last week": "கடந்த வாரம்", "today": "இன்று", "every day": "தினமும்", "tomorrow": "நாளை", "next week": "அடுத்த வாரம்"}  # fmt: skip
LINKS = {"and": ",மேலும்", "but": ",ஆனால்", "because": ",ஏனென்றால்"}


def realise(sentence: Sentence) -> Realised:
    return realised(sentence, _clause, LINKS)


def _clause(clause: Clause, c: str) -> list[Token]:
    who = _noun_phrase(clause.subject, f"{c}.subject", "")
    place: list[Token] = []
    if clause.place:
        role, where = f"{c}.place", clause.place
        if where.preposition == "in":
            *rest, noun = _noun_phrase(where.where, role, "ில்")
            place = [*rest, Token(noun.form, (role, f"{role}.prep"))]
        else:
            place = _noun_phrase(where.where, role, "ின்")
            place.append(Token(PREPOSITIONS[where.preposition], (f"{role}.prep",)))
    what: list[Token] = []
    if clause.object:
        what = _object(clause.object, f"{c}.object", CASES.get(clause.verb, "ை"), clause.negated)
    elif clause.quality:
        what = phrase(_quality(clause.quality, clause.subject), f"{c}.quality")
    return _doubled(arranged(clause, c, who, place, what, _verb(clause, c), TIMES))


def _doubled(tokens: list[Token]) -> list[Token]:
    """Behind -ஐ of an object, and behind எந்த, a hard consonant begins on the word before."""
    for i, (word, following) in enumerate(pairwise(tokens)):
        hard = following.form[0] in HARD
        marked = any(node.endswith(".object") for node in word.nodes) and word.form.endswith("ை")
        if hard and (marked or word.form == "எந்த"):
            tokens[i] = replace(word, form=word.form + following.form[0] + "்")
    return tokens


def _object(np: NounPhrase, role: str, case: str, negated: bool) -> list[Token]:
    if not (negated and np.determiner in ("a", "some")):
        return _noun_phrase(np, role, case)
    words = _noun_phrase(NounPhrase(np.noun, "the", False, np.adjectives), role, case)
    if not KNOWN[np.noun].counted:
        return words
    # not any: எந்த … -உம், an ending that the last word of the object takes, which may be the verb's own (குரலையும்)
    last = words[-1].form
    if case == "ை":
        last += "யும்"
    elif case == "ுக்கு":
        last = last[:-1] + "ும்"
    return [Token("எந்த", (f"{role}.det",)), *words[:-1], Token(last, (role,))]


def _verb(clause: Clause, c: str) -> list[Token]:
    node = f"{c}.verb"
    denied = (f"{c}.not",) if clause.negated else ()
    asked = (f"{c}.question",) if clause.question else ()
    described, does, will, it_will, to = _words(clause).split()
    before, _, done = described.rpartition("/")
    what = clause.object
    if clause.verb == "hear" and clause.negated and what and what.determiner in ("a", "some"):
        before = "குரலையும்"
    first = phrase(before, node)
    person, past = _who(clause.subject), clause.tense == "past"
    if clause.negated and clause.verb == BE and clause.tense == "present":
        return [Token("இல்லை", (node, *denied))]
    if clause.negated and clause.tense == "future":
        if person in ENDS:
            return [*first, Token(to, (node,)), Token("மாட்ட" + ENDS[person], denied)]
        return [*first, Token(to + "ாது", (node, *denied))]
    if clause.negated:
        return [*first, Token(to + "வில்லை" if past else will + "தில்லை", (node, *denied))]
    if person in ENDS:
        form = {"past": done, "present": does, "future": will}[clause.tense] + ENDS[person]
    elif clause.tense == "future":
        form = it_will
    elif past:
        form = _of_things(done, person)
    else:
        form = does + "து" if person == "it" else does[:-2] + "ின்றன"
    return [*first, Token(_asked(form) if asked else form, (node, *asked))]


def _words(clause: Clause) -> str:
    """The verb's forms: people dine, clothes are laundered and animals bathed."""
    what = clause.object
    if clause.verb == BE:
        return BEING
    if clause.verb == "eat" and KNOWN[clause.subject.noun].kind == "person":
        return DINE
    if clause.verb == "wash" and what and (what.noun == "shirt" or KNOWN[what.noun].animate):
        return LAUNDER if what.noun == "shirt" else BATHE
    return VERBS[clause.verb]


def _of_things(done: str, person: str) -> str:
    if done.endswith("ின"):
        return done[:-1] + "யது" if person == "it" else done
    return done + ("து" if person == "it" else "ன")


def _asked(form: str) -> str:
    """With -ஆ: தின்றதா, தின்றானா, தின்றனவா."""
    if form.endswith("்"):
        return form[:-1] + "ா"
    if form.endswith("து"):
        return form[:-1] + "ா"
    return form + "வா"


def _who(np: NounPhrase) -> str:
    if np.plural:
        return "they" if KNOWN[np.noun].kind == "person" else "its"
    kind = NOUNS[np.noun][0]
    return kind if kind in ENDS else "it"


def _quality(adjective: str, np: NounPhrase) -> str:
    alive = KNOWN[np.noun].animate
    form = (OLD if adjective == "old" and alive else ADJECTIVES[adjective]).split("/")[1].replace("_", " ")
    form = form.replace("*", PERSON.get(_who(np), "தாக"))
    if _who(np) == "its" and form.endswith("தாக") and not form.endswith("ிதாக"):  # those: பழையவையாக; but பெரிதாக
        return form.removesuffix("தாக") + "வையாக"
    return form


def _noun_phrase(np: NounPhrase, role: str, case: str) -> list[Token]:
    tokens = []
    for adjective in np.adjectives:
        forms = OLD if adjective == "old" and KNOWN[np.noun].animate else ADJECTIVES[adjective]
        tokens += phrase(forms.split("/")[0].replace("_", " "), f"{role}.{adjective}")
    tokens.append(Token(_noun(np, case), (role,)))
    determiner = NUMERALS.get(np.determiner, "")
    if np.determiner == "a":
        determiner = "ஓர்" if tokens[0].form[0] in "அஆஇஈஉஊஎஏஐஒஓஔ" else "ஒரு"
    elif np.determiner == "some":
        determiner = "சில" if np.plural else "கொஞ்சம்"
    return [Token(determiner, (f"{role}.det",)), *tokens] if determiner else tokens


def _noun(np: NounPhrase, case: str) -> str:
    """Endings replace the -ஐ of what is seen."""
    _, noun, *more = NOUNS[np.noun].split()
    if np.plural:
        many = more[1] if len(more) > 1 else noun[:-2] + "ங்கள்" if noun.endswith("ம்") else noun + "கள்"
        return many[:-1] + case if case else many
    if not case:
        return noun
    if more:
        seen = more[0]
    elif noun.endswith("ம்"):
        seen = noun[:-2] + "த்தை"
    elif noun.endswith("ய்"):
        seen = noun[:-1] + "ை"
    else:
        seen = noun + "யை"
    if case == "ுக்கு" and noun[-1] in "ிை":
        return noun + "க்கு"
    return seen[:-1] + case
