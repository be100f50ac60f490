"""French: gender and number agree, most adjectives follow, articles elide and contract, the past has two words."""

from __future__ import annotations

from regard.tasks.corpora.meaning import BE, Clause, NounPhrase, Realised, Sentence, Token, phrase, spell

# The noun's gender and its forms (_ is a space); the plural is only named where it is not singular + s.
NOUNS: dict[str, str] = {
    "cat": "m chat", "snake": "m serpent", "dog": "m chien", "fox": "m renard", "wolf": "m loup", "bear": "m ours ours",
    "lion": "m lion", "tiger": "m tigre", "mouse": "f souris souris", "rabbit": "m lapin", "frog": "f grenouille",
    "bird": "m oiseau oiseaux", "duck": "m canard", "hen": "f poule", "fish": "m poisson", "horse": "m cheval chevaux",
    "cow": "f vache", "pig": "m cochon", "goat": "f chèvre", "donkey": "m âne", "elephant": "m éléphant",
    "monkey": "m singe", "man": "m homme", "woman": "f femme", "boy": "m garçon", "girl": "f fille",
    "child": "m enfant", "king": "m roi", "queen": "f reine", "princess": "f princesse", "farmer": "m fermier",
    "teacher": "m professeur", "doctor": "m médecin", "student": "m étudiant", "friend": "m ami",
    "grandmother": "f grand-mère grands-mères", "soldier": "m soldat", "chef": "m cuisinier", "apple": "f pomme",
    "banana": "f banane", "orange": "f orange", "pear": "f poire", "egg": "m œuf", "potato": "f pomme_de_terre pommes_de_terre",
    "carrot": "f carotte", "tomato": "f tomate", "cake": "m gâteau gâteaux", "bread": "m pain",
    "cheese": "m fromage", "honey": "m miel", "rice": "m riz", "meat": "f viande", "soup": "f soupe",
    "milk": "m lait", "water": "f eau", "tea": "m thé", "coffee": "m café", "wine": "m vin", "juice": "m jus",
    "book": "m livre", "letter": "f lettre", "newspaper": "m journal journaux", "box": "f boîte", "bag": "m sac",
    "door": "f porte", "window": "f fenêtre", "ball": "m ballon", "flower": "f fleur", "hat": "m chapeau chapeaux",
    "shirt": "f chemise", "knife": "m couteau couteaux", "key": "f clé", "cup": "f tasse", "umbrella": "m parapluie",
    "picture": "m tableau tableaux", "lamp": "f lampe", "chair": "f chaise", "table": "f table", "bicycle": "m vélo",
    "car": "f voiture", "garden": "m jardin", "house": "f maison", "kitchen": "f cuisine", "forest": "f forêt",
    "park": "m parc", "street": "f rue", "school": "f école", "city": "f ville", "field": "m champ",
    "room": "f chambre", "tree": "m arbre", "bed": "m lit", "bridge": "m pont", "river": "f rivière",
}  # fmt: skip
# Masculine, feminine, and their plurals where they are not + s.
ADJECTIVES: dict[str, str] = {
    "black": "noir noire", "white": "blanc blanche", "red": "rouge rouge", "green": "vert verte",
    "blue": "bleu bleue", "yellow": "jaune jaune", "brown": "marron marron marron marron",
    "gray": "gris grise gris grises", "big": "grand grande", "small": "petit petite",
    "old": "vieux vieille vieux vieilles", "young": "jeune jeune", "new": "nouveau nouvelle nouveaux nouvelles",
    "beautiful": "beau belle beaux belles", "ugly": "laid laide", "good": "bon bonne",
    "fresh": "frais fraîche frais fraîches", "cold": "froid froide", "hot": "chaud chaude", "expensive": "cher chère",
    "heavy": "lourd lourde", "clean": "propre propre", "dirty": "sale sale", "strong": "fort forte",
    "clever": "intelligent intelligente", "dangerous": "dangereux dangereuse dangereux dangereuses",
    "rich": "riche riche", "famous": "célèbre célèbre", "happy": "heureux heureuse heureux heureuses",
    "sad": "triste triste", "tired": "fatigué fatiguée", "sick": "malade malade",
}  # fmt: skip
BEFORE = ("big", "small", "old", "young", "new", "beautiful", "good")
BEFORE_VOWEL = {"vieux": "vieil", "nouveau": "nouvel", "beau": "bel"}
# he does, they do, he will do (they: -ont), done; with être where that is said
VERBS: dict[str, str] = {
    "eat": "mange mangent mangera mangé", "drink": "boit boivent boira bu", "see": "voit voient verra vu",
    "find": "trouve trouvent trouvera trouvé", "hear": "entend entendent entendra entendu",
    "catch": "attrape attrapent attrapera attrapé", "steal": "vole volent volera volé",
    "buy": "achète achètent achètera acheté", "sell": "vend vendent vendra vendu", "wash": "lave lavent lavera lavé",
    "cook": "cuisine cuisinent cuisinera cuisiné", "cut": "coupe coupent coupera coupé",
    "paint": "peint peignent peindra peint", "draw": "dessine dessinent dessinera dessiné", "read": "lit lisent lira lu",
    "write": "écrit écrivent écrira écrit", "open": "ouvre ouvrent ouvrira ouvert", "close": "ferme ferment fermera fermé",
    "hide": "cache cachent cachera caché", "lose": "perd perdent perdra perdu", "carry": "porte portent portera porté",
    "push": "pousse poussent poussera poussé", "choose": "choisit choisissent choisira choisi",
    "sleep": "dort dorment dormira dormi", "run": "court courent courra couru", "swim": "nage nagent nagera nagé",
    "fly": "vole volent volera volé", "jump": "saute sautent sautera sauté", "play": "joue jouent jouera joué",
    "wait": "attend attendent attendra attendu", "arrive": "arrive arrivent arrivera arrivé être",
    "sing": "chante chantent chantera chanté", "dance": "danse dansent dansera dansé",
    "walk": "marche marchent marchera marché", "laugh": "rit rient rira ri", "cry": "pleure pleurent pleurera pleuré",
    "smile": "sourit sourient sourira souri", "work": "travaille travaillent travaillera travaillé",
    "talk": "parle parlent parlera parlé",
}  # fmt: skip
BEING = {"past": ("était", "étaient"), "present": ("est", "sont"), "future": ("sera", "seront")}
NUMERALS = {"two": "deux", "three": "trois", "four": "quatre"}
PREPOSITIONS = {"in": "dans", "on": "sur", "under": "sous", "behind": "derrière", "near": "près"}
TIMES = {"yesterday": "hier", "last week": "la semaine dernière", "today": "aujourd'hui", "every day": "tous les jours", "tomorrow": "demain", "next week": "la semaine prochaine"}  # fmt: skip
LINKS = {"and": "et", "but": "mais"}
MARKS = {mark: (Token(mark, ("end",)),) for mark in "!?"}  # with a space before them


def realise(sentence: Sentence) -> Realised:
    tokens: list[Token] = []
    for number, clause in enumerate(sentence.clauses):
        words = _clause(clause, str(number))
        if sentence.link == "because" and number:
            words = [Token("parce", ("link",)), *_elided("que", words, "link")]
        elif sentence.link and number:
            words = [*([Token(",", ("comma",), glue=True)]), Token(LINKS[sentence.link], ("link",)), *words]
        tokens += words
    return spell(tokens, sentence, MARKS)


def _clause(clause: Clause, c: str) -> list[Token]:
    subject = _noun_phrase(clause.subject, f"{c}.subject")
    helper, rest = _verb(clause, c)
    if clause.negated:
        helper = _elided("ne", helper, f"{c}.not")
        helper.append(Token("pas", (f"{c}.not",)))
    tokens = [*subject, *helper, *rest]
    if clause.quality:
        tokens.append(Token(_agreed(clause.quality, clause.subject), (f"{c}.quality",)))
    if clause.object:
        tokens += _noun_phrase(clause.object, f"{c}.object", clause.negated)
    if clause.place:
        tokens += _place(clause, c)
    if clause.question:
        asked = f"{c}.question"
        tokens = [Token("est-ce", (asked,)), *_elided("que", tokens, asked)]
    if clause.time:
        time = phrase(TIMES[clause.time], f"{c}.time")
        tokens = time + tokens if clause.time_first else tokens + time
    return tokens


def _verb(clause: Clause, c: str) -> tuple[list[Token], list[Token]]:
    """The verb that is conjugated, which negation encloses, and its participle."""
    node, many = (f"{c}.verb",), clause.subject.plural
    if clause.verb == BE:
        return [Token(BEING[clause.tense][many], node)], []
    one, several, future, participle, *auxiliary = VERBS[clause.verb].split()
    if clause.tense == "present":
        return [Token(several if many else one, node)], []
    if clause.tense == "future":
        return [Token(future[:-1] + "ont" if many else future, node)], []
    if auxiliary:
        participle += "e" * (_gender(clause.subject) == "f") + "s" * many
        return [Token("sont" if many else "est", node)], [Token(participle, node)]
    return [Token("ont" if many else "a", node)], [Token(participle, node)]


def _noun_phrase(np: NounPhrase, role: str, denied: bool = False) -> list[Token]:
    forms = NOUNS[np.noun].split()
    noun = (forms[2] if len(forms) > 2 else forms[1] + "s") if np.plural else forms[1]
    words = phrase(noun.replace("_", " "), role)
    for adjective in reversed(np.adjectives):  # each before what follows it, or behind the noun
        form = _agreed(adjective, np)
        if adjective in BEFORE:
            form = BEFORE_VOWEL.get(form, form) if not np.plural and _elides(words[0]) else form
            words = [Token(form, (f"{role}.{adjective}",)), *words]
        else:
            words = [*words, Token(form, (f"{role}.{adjective}",))]
    return _determined(np, words, f"{role}.det", denied)


def _determined(np: NounPhrase, words: list[Token], det: str, denied: bool) -> list[Token]:
    feminine = _gender(np) == "f"
    if np.determiner in NUMERALS:
        return [Token(NUMERALS[np.determiner], (det,)), *words]
    if np.determiner == "the":
        if np.plural:
            return [Token("les", (det,)), *words]
        return _elided("la" if feminine else "le", words, det)
    if denied:
        return _elided("de", words, det)
    if np.determiner == "a":
        return [Token("une" if feminine else "un", (det,)), *words]
    if np.plural:  # des chats, but de petits chats
        leading = any(word.form == _agreed(a, np) for a in np.adjectives if a in BEFORE for word in words[:1])
        return _elided("de", words, det) if leading else [Token("des", (det,)), *words]
    if _elides(words[0]) or feminine:
        return [Token("de", (det,)), *_elided("la", words, det)]
    return [Token("du", (det,)), *words]


def _place(clause: Clause, c: str) -> list[Token]:
    assert clause.place is not None
    words = _noun_phrase(clause.place.where, f"{c}.place")
    prep = f"{c}.place.prep"
    tokens = [Token(PREPOSITIONS[clause.place.preposition], (prep,))]
    if clause.place.preposition == "near":  # près de + le is près du
        if words[0].form == "le":
            return [*tokens, Token("du", (prep, *words[0].nodes)), *words[1:]]
        tokens.append(Token("de", (prep,)))
    return [*tokens, *words]


def _gender(np: NounPhrase) -> str:
    return NOUNS[np.noun][0]


def _agreed(adjective: str, np: NounPhrase) -> str:
    forms = ADJECTIVES[adjective].split()
    forms = forms if len(forms) == 4 else [*forms, *(form + "s" for form in forms)]
    return forms[2 * np.plural + (_gender(np) == "f")]


def _elides(word: Token) -> bool:
    """Does it begin with a vowel that is heard? Of the words here, every h is silent and elides (homme)."""
    return word.form[0] in "aeiouâéèêœh"


def _elided(article: str, words: list[Token], *nodes: str) -> list[Token]:
    """le, la, de, ne, que before these words: l', d', n', qu' before a vowel, written without a space."""
    if _elides(words[0]):
        first = Token(words[0].form, words[0].nodes, words[0].tag, glue=True)
        return [Token(article[:-1] + "'", nodes), first, *words[1:]]
    return [Token(article, nodes), *words]
