"""Italian: articles that hear the next word (il, lo, l'), prepositions that take them in, and essere for arriving."""

from __future__ import annotations

import re

from regard.tasks.corpora.meaning import BE, Clause, NounPhrase, Realised, Sentence, Token, phrase, spell

# Gender, singular, plural.
NOUNS: dict[str, str] = {
    "cat": "m gatto gatti", "snake": "m serpente serpenti", "dog": "m cane cani", "fox": "f volpe volpi",
    "wolf": "m lupo lupi", "bear": "m orso orsi", "lion": "m leone leoni", "tiger": "f tigre tigri",
    "mouse": "m topo topi", "rabbit": "m coniglio conigli", "frog": "f rana rane", "bird": "m uccello uccelli",
    "duck": "f anatra anatre", "hen": "f gallina galline", "fish": "m pesce pesci", "horse": "m cavallo cavalli",
    "cow": "f mucca mucche", "pig": "m maiale maiali", "goat": "f capra capre", "donkey": "m asino asini",
    "elephant": "m elefante elefanti", "monkey": "f scimmia scimmie", "man": "m uomo uomini", "woman": "f donna donne",
    "boy": "m ragazzo ragazzi", "girl": "f ragazza ragazze", "child": "m bambino bambini", "king": "m re re",
    "queen": "f regina regine", "princess": "f principessa principesse", "farmer": "m contadino contadini",
    "teacher": "m professore professori", "doctor": "m medico medici", "student": "m studente studenti",
    "friend": "m amico amici", "grandmother": "f nonna nonne", "soldier": "m soldato soldati", "chef": "m cuoco cuochi",
    "apple": "f mela mele", "banana": "f banana banane", "orange": "f arancia arance", "pear": "f pera pere",
    "egg": "m uovo uova", "potato": "f patata patate", "carrot": "f carota carote", "tomato": "m pomodoro pomodori",
    "cake": "f torta torte", "bread": "m pane -", "cheese": "m formaggio -", "honey": "m miele -", "rice": "m riso -",
    "meat": "f carne -", "soup": "f zuppa -", "milk": "m latte -", "water": "f acqua -", "tea": "m tè -",
    "coffee": "m caffè -", "wine": "m vino -", "juice": "m succo -", "book": "m libro libri",
    "letter": "f lettera lettere", "newspaper": "m giornale giornali", "box": "f scatola scatole", "bag": "f borsa borse",
    "door": "f porta porte", "window": "f finestra finestre", "ball": "f palla palle", "flower": "m fiore fiori",
    "hat": "m cappello cappelli", "shirt": "f camicia camicie", "knife": "m coltello coltelli", "key": "f chiave chiavi",
    "cup": "f tazza tazze", "umbrella": "m ombrello ombrelli", "picture": "m quadro quadri", "lamp": "f lampada lampade",
    "chair": "f sedia sedie", "table": "m tavolo tavoli", "bicycle": "f bicicletta biciclette", "car": "f macchina macchine",
    "garden": "m giardino -", "house": "f casa -", "kitchen": "f cucina -", "forest": "f foresta -", "park": "m parco -",
    "street": "f strada -", "school": "f scuola -", "city": "f città -", "field": "m campo -", "room": "f stanza -",
    "tree": "m albero -", "bed": "m letto -", "bridge": "m ponte -", "river": "m fiume -",
}  # fmt: skip
CHANGING = ("egg",)  # masculine alone, feminine where they are several: le uova
# Masculine; -o has all four forms, -e two; others are written out, or never change.
ADJECTIVES: dict[str, str] = {
    "black": "nero", "white": "bianco bianca bianchi bianche", "red": "rosso", "green": "verde",
    "blue": "blu blu blu blu", "yellow": "giallo", "brown": "marrone", "gray": "grigio grigia grigi grigie",
    "big": "grande", "small": "piccolo", "old": "vecchio vecchia vecchi vecchie", "young": "giovane", "new": "nuovo",
    "beautiful": "bello", "ugly": "brutto", "good": "buono", "fresh": "fresco fresca freschi fresche", "cold": "freddo",
    "hot": "caldo", "expensive": "costoso", "heavy": "pesante", "clean": "pulito",
    "dirty": "sporco sporca sporchi sporche", "strong": "forte", "clever": "intelligente", "dangerous": "pericoloso",
    "rich": "ricco ricca ricchi ricche", "famous": "famoso", "happy": "felice", "sad": "triste",
    "tired": "stanco stanca stanchi stanche", "sick": "malato",
}  # fmt: skip
BEFORE = ("big", "small", "old", "young", "new", "beautiful", "ugly", "good")
# he does, they do, he will do (they: -anno), done; with essere where that is said
VERBS: dict[str, str] = {
    "eat": "mangia mangiano mangerà mangiato", "drink": "beve bevono berrà bevuto", "see": "vede vedono vedrà visto",
    "find": "trova trovano troverà trovato", "hear": "sente sentono sentirà sentito",
    "catch": "cattura catturano catturerà catturato", "steal": "ruba rubano ruberà rubato",
    "buy": "compra comprano comprerà comprato", "sell": "vende vendono venderà venduto",
    "wash": "lava lavano laverà lavato", "cook": "cucina cucinano cucinerà cucinato",
    "cut": "taglia tagliano taglierà tagliato", "paint": "dipinge dipingono dipingerà dipinto",
    "draw": "disegna disegnano disegnerà disegnato", "read": "legge leggono leggerà letto",
    "write": "scrive scrivono scriverà scritto", "open": "apre aprono aprirà aperto",
    "close": "chiude chiudono chiuderà chiuso", "hide": "nasconde nascondono nasconderà nascosto",
    "lose": "perde perdono perderà perso", "carry": "porta portano porterà portato",
    "push": "spinge spingono spingerà spinto", "choose": "sceglie scelgono sceglierà scelto",
    "sleep": "dorme dormono dormirà dormito", "run": "corre corrono correrà corso",
    "swim": "nuota nuotano nuoterà nuotato", "fly": "vola volano volerà volato", "jump": "salta saltano salterà saltato",
    "play": "gioca giocano giocherà giocato", "wait": "aspetta aspettano aspetterà aspettato",
    "arrive": "arriva arrivano arriverà arrivato essere", "sing": "canta cantano canterà cantato",
    "dance": "balla ballano ballerà ballato", "walk": "cammina camminano camminerà camminato",
    "laugh": "ride ridono riderà riso", "cry": "piange piangono piangerà pianto",
    "smile": "sorride sorridono sorriderà sorriso", "work": "lavora lavorano lavorerà lavorato",
    "talk": "parla parlano parlerà parlato",
}  # fmt: skip
BEING = {"past": ("era", "erano"), "present": ("è", "sono"), "future": ("sarà", "saranno")}
NUMERALS = {"two": "due", "three": "tre", "four": "quattro"}
# What takes the article in: ne + il is nel; dei, degli are "some".
JOINED = {"in": "ne", "on": "su", "near": "a", "some": "de"}
APART = {"under": "sotto", "behind": "dietro"}
TIMES = {"yesterday": "ieri", "last week": "la settimana scorsa", "today": "oggi", "every day": "ogni giorno", "tomorrow": "domani", "next week": "la prossima settimana"}  # fmt: skip
LINKS = {"and": "e", "but": "ma", "because": "perché"}
VOWEL = re.compile(r"[aeiou]")
HARD = re.compile(r"s[^aeiou]|z|gn|ps|x|y")  # what asks for lo, uno, bello


def realise(sentence: Sentence) -> Realised:
    tokens: list[Token] = []
    for number, clause in enumerate(sentence.clauses):
        if sentence.link and number:
            comma = [Token(",", ("comma",), glue=True)] if sentence.link != "because" else []
            tokens += [*comma, Token(LINKS[sentence.link], ("link",))]
        tokens += _clause(clause, str(number))
    return spell(tokens, sentence)


def _clause(clause: Clause, c: str) -> list[Token]:
    """A question has the order of a statement."""
    tokens = _noun_phrase(clause.subject, f"{c}.subject")
    if clause.negated:
        tokens.append(Token("non", (f"{c}.not",)))
    tokens += _verb(clause, c)
    if clause.quality:
        tokens.append(Token(_agreed(clause.quality, clause.subject), (f"{c}.quality",)))
    if clause.object:
        tokens += _noun_phrase(clause.object, f"{c}.object", clause.negated)
    if clause.place:
        words, prep = _words(clause.place.where, f"{c}.place"), (f"{c}.place.prep",)
        article = _article(words[0].form, _gender(clause.place.where), False)
        det = f"{c}.place.det"
        if clause.place.preposition in JOINED:
            near = [Token("vicino", prep)] if clause.place.preposition == "near" else []
            joined = _joined(JOINED[clause.place.preposition], article)
            tokens += [*near, *_written(joined, words, *prep, det)]
        else:
            tokens += [Token(APART[clause.place.preposition], prep), *_written(article, words, det)]
    if clause.time:
        time = phrase(TIMES[clause.time], f"{c}.time")
        tokens = time + tokens if clause.time_first else tokens + time
    return tokens


def _verb(clause: Clause, c: str) -> list[Token]:
    node, many = f"{c}.verb", clause.subject.plural
    if clause.verb == BE:
        return phrase(BEING[clause.tense][many], node)
    one, several, future, participle, *auxiliary = VERBS[clause.verb].split()
    if clause.tense == "present":
        return phrase(several if many else one, node)
    if clause.tense == "future":
        return phrase(future[:-1] + "anno" if many else future, node)
    if auxiliary:
        ending = {"m": "oi", "f": "ae"}[_gender(clause.subject)][many]
        return phrase(f"{'sono' if many else 'è'} {participle[:-1]}{ending}", node)
    return phrase(f"{'hanno' if many else 'ha'} {participle}", node)


def _noun_phrase(np: NounPhrase, role: str, denied: bool = False) -> list[Token]:
    none = denied and np.determiner == "some" and np.plural  # any books: nessun libro
    if none:
        np = NounPhrase(np.noun, "some", False, np.adjectives)
    words, det, gender = _words(np, role), f"{role}.det", _gender(np)
    first = words[0].form
    if np.determiner in NUMERALS:
        return [Token(NUMERALS[np.determiner], (det,)), *words]
    if np.determiner == "the":
        return _written(_article(first, gender, np.plural), words, det)
    if np.determiner == "a" or none:
        return _written(("nessun" if none else "un") + _ending(first, gender), words, det)
    if denied:
        return words
    return _written(_joined(JOINED["some"], _article(first, gender, np.plural)), words, det)


def _words(np: NounPhrase, role: str) -> list[Token]:
    """The noun with what stands before and behind it."""
    words = [Token(NOUNS[np.noun].split()[1 + np.plural], (role,))]
    for adjective in reversed(np.adjectives):
        nodes = (f"{role}.{adjective}",)
        if adjective == "beautiful" and _gender(np) == "m":  # bel, bello, bell', bei, begli: as il, lo, l', i, gli
            words = _written(_joined("be", _article(words[0].form, "m", np.plural)), words, *nodes)
        elif adjective == "good" and _gender(np) == "m" and not np.plural:
            words = [Token("buon" + _ending(words[0].form, "m"), nodes), *words]
        elif adjective in BEFORE:
            words = [Token(_agreed(adjective, np), nodes), *words]
        else:
            words = [*words, Token(_agreed(adjective, np), nodes)]
    return words


def _article(first: str, gender: str, several: bool) -> str:
    """The definite article before a word."""
    if gender == "f":
        return "le" if several else "l'" if VOWEL.match(first) else "la"
    if VOWEL.match(first):
        return "gli" if several else "l'"
    if HARD.match(first):
        return "gli" if several else "lo"
    return "i" if several else "il"


def _ending(first: str, gender: str) -> str:
    """Of un-, nessun-, buon-."""
    if gender == "f":
        return "'" if VOWEL.match(first) else "a"
    return "o" if HARD.match(first) else ""


def _joined(stem: str, article: str) -> str:
    """nel, nello, nell', nella, nei, negli: the article's l is doubled, and il loses its i."""
    return stem + {"il": "l", "i": "i", "gli": "gli"}.get(article, "l" + article)


def _written(article: str, words: list[Token], *nodes: str) -> list[Token]:
    """Before these words; without a space behind an apostrophe."""
    first = Token(words[0].form, words[0].nodes, glue=article.endswith("'"))
    return [Token(article, nodes), first, *words[1:]]


def _gender(np: NounPhrase) -> str:
    return "f" if np.noun in CHANGING and np.plural else NOUNS[np.noun][0]


def _agreed(adjective: str, np: NounPhrase) -> str:
    forms = ADJECTIVES[adjective].split()
    if len(forms) == 1:
        stem = forms[0][:-1]
        forms = (
            [forms[0], stem + "a", stem + "i", stem + "e"]
            if forms[0].endswith("o")
            else 2 * [forms[0]] + 2 * [stem + "i"]
        )
    return forms[2 * np.plural + (_gender(np) == "f")]
