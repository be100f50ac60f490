"""German: three genders, cases that adjectives show, the verb second, its other half last; all of it last after weil."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from regard.tasks.corpora.lexicon import NOUNS as KINDS
from regard.tasks.corpora.meaning import BE, Clause, NounPhrase, Place, Realised, Sentence, Token, phrase, spell

Case = Literal["nominative", "accusative", "dative", "genitive"]

# Gender, singular, plural (of places: genitive); w: weak, in the accusative as in the plural (den Löwen).
NOUNS: dict[str, str] = {
    "cat": "f Katze Katzen", "snake": "f Schlange Schlangen", "dog": "m Hund Hunde", "fox": "m Fuchs Füchse",
    "wolf": "m Wolf Wölfe", "bear": "m Bär Bären w", "lion": "m Löwe Löwen w", "tiger": "m Tiger Tiger",
    "mouse": "f Maus Mäuse", "rabbit": "n Kaninchen Kaninchen", "frog": "m Frosch Frösche", "bird": "m Vogel Vögel",
    "duck": "f Ente Enten", "hen": "f Henne Hennen", "fish": "m Fisch Fische", "horse": "n Pferd Pferde",
    "cow": "f Kuh Kühe", "pig": "n Schwein Schweine", "goat": "f Ziege Ziegen", "donkey": "m Esel Esel",
    "elephant": "m Elefant Elefanten w", "monkey": "m Affe Affen w", "man": "m Mann Männer", "woman": "f Frau Frauen",
    "boy": "m Junge Jungen w", "girl": "n Mädchen Mädchen", "child": "n Kind Kinder", "king": "m König Könige",
    "queen": "f Königin Königinnen", "princess": "f Prinzessin Prinzessinnen", "farmer": "m Bauer Bauern w",
    "teacher": "m Lehrer Lehrer", "doctor": "m Arzt Ärzte", "student": "m Student Studenten w",
    "friend": "m Freund Freunde", "grandmother": "f Großmutter Großmütter", "soldier": "m Soldat Soldaten w",
    "chef": "m Koch Köche", "apple": "m Apfel Äpfel", "banana": "f Banane Bananen", "orange": "f Orange Orangen",
    "pear": "f Birne Birnen", "egg": "n Ei Eier", "potato": "f Kartoffel Kartoffeln", "carrot": "f Karotte Karotten",
    "tomato": "f Tomate Tomaten", "cake": "m Kuchen Kuchen", "bread": "n Brot -", "cheese": "m Käse -",
    "honey": "m Honig -", "rice": "m Reis -", "meat": "n Fleisch -", "soup": "f Suppe -", "milk": "f Milch -",
    "water": "n Wasser -", "tea": "m Tee -", "coffee": "m Kaffee -", "wine": "m Wein -", "juice": "m Saft -",
    "book": "n Buch Bücher", "letter": "m Brief Briefe", "newspaper": "f Zeitung Zeitungen", "box": "f Kiste Kisten",
    "bag": "f Tasche Taschen", "door": "f Tür Türen", "window": "n Fenster Fenster", "ball": "m Ball Bälle",
    "flower": "f Blume Blumen", "hat": "m Hut Hüte", "shirt": "n Hemd Hemden", "knife": "n Messer Messer",
    "key": "m Schlüssel Schlüssel", "cup": "f Tasse Tassen", "umbrella": "m Regenschirm Regenschirme",
    "picture": "n Bild Bilder", "lamp": "f Lampe Lampen", "chair": "m Stuhl Stühle", "table": "m Tisch Tische",
    "bicycle": "n Fahrrad Fahrräder", "car": "n Auto Autos", "garden": "m Garten Gartens", "house": "n Haus Hauses",
    "kitchen": "f Küche Küche", "forest": "m Wald Waldes", "park": "m Park Parks", "street": "f Straße Straße",
    "school": "f Schule Schule", "city": "f Stadt Stadt", "field": "n Feld Feldes", "room": "n Zimmer Zimmers",
    "tree": "m Baum Baumes", "bed": "n Bett Bettes", "bridge": "f Brücke Brücke", "river": "m Fluss Flusses",
}  # fmt: skip
GENITIVES = {"table": "Tisches"}  # of things that are places
# What endings are put to; what stands alone where it is another word.
ADJECTIVES: dict[str, str] = {
    "black": "schwarz", "white": "weiß", "red": "rot", "green": "grün", "blue": "blau", "yellow": "gelb",
    "brown": "braun", "gray": "grau", "big": "groß", "small": "klein", "old": "alt", "young": "jung", "new": "neu",
    "beautiful": "schön", "ugly": "hässlich", "good": "gut", "fresh": "frisch", "cold": "kalt", "hot": "heiß",
    "expensive": "teur teuer", "heavy": "schwer", "clean": "sauber", "dirty": "schmutzig", "strong": "stark",
    "clever": "klug", "dangerous": "gefährlich", "rich": "reich", "famous": "berühmt", "happy": "glücklich",
    "sad": "traurig", "tired": "müd müde", "sick": "krank",
}  # fmt: skip
# Of m, f, n and plural, in the order of Case; behind it the adjective's ending.
DEFINITE = {
    "m": "der-e den-en dem-en des-en",
    "f": "die-e die-e der-en der-en",
    "n": "das-e das-e dem-en des-en",
    "p": "die-en die-en",
}
INDEFINITE = {"m": "-er en-en", "f": "e-e e-e", "n": "-es -es", "p": "e-en e-en"}  # ein-, kein-
STRONG = {"m": "er en", "f": "e e", "n": "es es", "p": "e e"}  # the adjective's, where no article shows the case
CASES: tuple[Case, ...] = ("nominative", "accusative", "dative", "genitive")
# to do, he does, done; with sein where that is said; with what parts from the verb and goes last
VERBS: dict[str, str] = {
    "eat": "essen isst gegessen", "feed": "fressen frisst gefressen", "drink": "trinken trinkt getrunken",
    "guzzle": "saufen säuft gesoffen", "see": "sehen sieht gesehen", "find": "finden findet gefunden",
    "hear": "hören hört gehört", "catch": "fangen fängt gefangen", "steal": "stehlen stiehlt gestohlen",
    "buy": "kaufen kauft gekauft", "sell": "verkaufen verkauft verkauft", "wash": "waschen wäscht gewaschen",
    "cook": "kochen kocht gekocht", "cut": "schneiden schneidet geschnitten", "paint": "streichen streicht gestrichen",
    "draw": "zeichnen zeichnet gezeichnet", "read": "lesen liest gelesen", "write": "schreiben schreibt geschrieben",
    "open": "öffnen öffnet geöffnet", "close": "schließen schließt geschlossen",
    "hide": "verstecken versteckt versteckt", "lose": "verlieren verliert verloren",
    "carry": "tragen trägt getragen", "push": "schieben schiebt geschoben",
    "choose": "wählen wählt gewählt haben aus", "sleep": "schlafen schläft geschlafen",
    "run": "rennen rennt gerannt sein", "swim": "schwimmen schwimmt geschwommen sein",
    "fly": "fliegen fliegt geflogen sein", "jump": "springen springt gesprungen sein",
    "play": "spielen spielt gespielt", "wait": "warten wartet gewartet",
    "arrive": "kommen kommt gekommen sein an", "sing": "singen singt gesungen", "dance": "tanzen tanzt getanzt",
    "walk": "gehen geht gegangen sein spazieren_", "laugh": "lachen lacht gelacht", "cry": "weinen weint geweint",
    "smile": "lächeln lächelt gelächelt", "work": "arbeiten arbeitet gearbeitet", "talk": "reden redet geredet",
}  # fmt: skip
GUZZLERS = ("horse", "cow", "pig", "donkey", "elephant")  # of large animals one says saufen
HABEN, SEIN = ("hat", "haben"), ("ist", "sind")
NUMERALS = {"two": "zwei", "three": "drei", "four": "vier"}
PREPOSITIONS = {"in": "in", "on": "auf", "under": "unter", "behind": "hinter", "near": "in der Nähe"}
OPEN_GROUND = ("street", "field")  # auf der Straße, auf dem Feld
TIMES = {"yesterday": "gestern", "last week": "letzte Woche", "today": "heute", "every day": "jeden Tag", "tomorrow": "morgen", "next week": "nächste Woche"}  # fmt: skip
LINKS = {"and": "und", "but": "aber", "because": "weil"}


@dataclass(frozen=True)
class Predicate:
    """The word that is conjugated, and what closes the sentence; `joined` is all of it behind weil."""

    finite: list[Token]
    rest: list[Token]
    joined: list[Token]


def realise(sentence: Sentence) -> Realised:
    tokens: list[Token] = []
    for number, clause in enumerate(sentence.clauses):
        if sentence.link and number:
            tokens += [Token(",", ("comma",), glue=True), Token(LINKS[sentence.link], ("link",))]
        tokens += _clause(clause, str(number), bool(number) and sentence.link == "because")
    return spell(tokens, sentence)


def _clause(clause: Clause, c: str, dependent: bool) -> list[Token]:
    subject = _noun_phrase(clause.subject, f"{c}.subject", "nominative")
    predicate = _predicate(clause, c)
    time = phrase(TIMES[clause.time], f"{c}.time") if clause.time else []
    what, denied = _object(clause, c)
    middle = [*what]
    if clause.negated and not denied:
        middle.append(Token("nicht", (f"{c}.not",)))
    if clause.quality:
        forms = ADJECTIVES[clause.quality].split()
        middle.append(Token(forms[-1], (f"{c}.quality",)))
    if clause.place:
        middle += _place(clause.place, c)
    if dependent:
        return [*subject, *time, *middle, *predicate.joined]
    if clause.question:
        asking = [Token(predicate.finite[0].form, (*predicate.finite[0].nodes, f"{c}.question"))]
        return [*asking, *subject, *time, *middle, *predicate.rest]
    if clause.time_first:
        return [*time, *predicate.finite, *subject, *middle, *predicate.rest]
    return [*subject, *predicate.finite, *time, *middle, *predicate.rest]


def _predicate(clause: Clause, c: str) -> Predicate:
    node, many, tense = f"{c}.verb", clause.subject.plural, clause.tense
    will = phrase("werden" if many else "wird", node)
    if clause.verb == BE:
        rest = phrase("sein", node) if tense == "future" else []
        finite = will if rest else phrase(("waren" if many else "war") if tense == "past" else SEIN[many], node)
        return Predicate(finite, rest, rest + finite)
    infinitive, one, participle, auxiliary, prefix = [*VERBS[_verb(clause)].split(), "haben", ""][:5]
    if len(VERBS[_verb(clause)].split()) == 4:
        prefix = ""
    apart, together = prefix.rstrip("_"), prefix.replace("_", " ")  # kommt an, ankommen; geht spazieren
    if tense == "future":
        rest = phrase(together + infinitive, node)
        return Predicate(will, rest, rest + will)
    if tense == "past":
        rest, finite = phrase(together + participle, node), phrase((SEIN if auxiliary == "sein" else HABEN)[many], node)
        return Predicate(finite, rest, rest + finite)
    form = infinitive if many else one
    return Predicate(phrase(form, node), phrase(apart, node), phrase(together + form, node))


def _verb(clause: Clause) -> str:
    """People essen and trinken; animals fressen, and large ones saufen."""
    subject = clause.subject.noun
    if clause.verb == "eat" and KINDS[subject].kind == "animal":
        return "feed"
    return "guzzle" if clause.verb == "drink" and subject in GUZZLERS else clause.verb


def _object(clause: Clause, c: str) -> tuple[list[Token], bool]:
    """The object; does it say already that the clause is denied?"""
    if clause.object is None:
        return [], False
    denied = clause.negated and clause.object.determiner in ("a", "some")
    return _noun_phrase(clause.object, f"{c}.object", "accusative", f"{c}.not" if denied else None), denied


def _place(place: Place, c: str) -> list[Token]:
    nodes = (f"{c}.place.prep",)
    near = place.preposition == "near"
    tokens = _noun_phrase(place.where, f"{c}.place", "genitive" if near else "dative")
    preposition = PREPOSITIONS[place.preposition]
    if place.preposition == "in" and place.where.noun in OPEN_GROUND:
        preposition = "auf"
    if preposition == "in" and tokens[0].form == "dem":
        return [Token("im", (*nodes, *tokens[0].nodes)), *tokens[1:]]
    return [*phrase(preposition, *nodes), *tokens]


def _noun_phrase(np: NounPhrase, role: str, case: Case, denial: str | None = None) -> list[Token]:
    gender = "p" if np.plural else NOUNS[np.noun][0]
    at, det = CASES.index(case), f"{role}.det"
    determiner, ending, nodes = "", STRONG[gender].split()[at] if at < 2 else "", (det,)
    if np.determiner == "the":
        determiner, ending = DEFINITE[gender].split()[at].split("-")
    elif denial or np.determiner == "a":
        article, ending = INDEFINITE[gender].split()[at].split("-")
        determiner = ("kein" if denial else "ein") + article
        nodes = (denial, det) if denial else nodes
    elif np.determiner in NUMERALS:
        determiner = NUMERALS[np.determiner]
    elif np.plural:
        determiner = "einige"
    adjectives = [Token(ADJECTIVES[a].split()[0] + ending, (f"{role}.{a}",)) for a in np.adjectives]
    return [*([Token(determiner, nodes)] if determiner else []), *adjectives, Token(_noun(np, case), (role,))]


def _noun(np: NounPhrase, case: Case) -> str:
    _, singular, other, *weak = NOUNS[np.noun].split()
    if case == "genitive":
        return GENITIVES.get(np.noun, other)
    return other if np.plural or (weak and case != "nominative") else singular
