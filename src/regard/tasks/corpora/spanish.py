"""Spanish: one word for the past, `se` with what is eaten up, `a` before persons, adjectives that follow, ¿ and ¡."""

from __future__ import annotations

from regard.tasks.corpora.lexicon import ADJECTIVES as QUALITIES
from regard.tasks.corpora.lexicon import NOUNS as KINDS
from regard.tasks.corpora.meaning import BE, Clause, NounPhrase, Realised, Sentence, Token, phrase, spell

# The noun's gender (a: feminine, but el in the singular), and its forms; the plural where it is not + s or + es.
NOUNS: dict[str, str] = {
    "cat": "m gato", "snake": "f serpiente", "dog": "m perro", "fox": "m zorro", "wolf": "m lobo", "bear": "m oso",
    "lion": "m león leones", "tiger": "m tigre", "mouse": "m ratón ratones", "rabbit": "m conejo", "frog": "f rana",
    "bird": "m pájaro", "duck": "m pato", "hen": "f gallina", "fish": "m pez", "horse": "m caballo", "cow": "f vaca",
    "pig": "m cerdo", "goat": "f cabra", "donkey": "m burro", "elephant": "m elefante", "monkey": "m mono",
    "man": "m hombre", "woman": "f mujer", "boy": "m chico", "girl": "f chica", "child": "m niño", "king": "m rey",
    "queen": "f reina", "princess": "f princesa", "farmer": "m granjero", "teacher": "m profesor",
    "doctor": "m médico", "student": "m estudiante", "friend": "m amigo", "grandmother": "f abuela",
    "soldier": "m soldado", "chef": "m cocinero", "apple": "f manzana", "banana": "m plátano", "orange": "f naranja",
    "pear": "f pera", "egg": "m huevo", "potato": "f patata", "carrot": "f zanahoria", "tomato": "m tomate",
    "cake": "m pastel", "bread": "m pan", "cheese": "m queso", "honey": "f miel", "rice": "m arroz", "meat": "f carne",
    "soup": "f sopa", "milk": "f leche", "water": "a agua", "tea": "m té", "coffee": "m café", "wine": "m vino",
    "juice": "m zumo", "book": "m libro", "letter": "f carta", "newspaper": "m periódico", "box": "f caja",
    "bag": "f bolsa", "door": "f puerta", "window": "f ventana", "ball": "f pelota", "flower": "f flor",
    "hat": "m sombrero", "shirt": "f camisa", "knife": "m cuchillo", "key": "f llave", "cup": "f taza",
    "umbrella": "m paraguas paraguas", "picture": "m cuadro", "lamp": "f lámpara", "chair": "f silla",
    "table": "f mesa", "bicycle": "f bicicleta", "car": "m coche", "garden": "m jardín", "house": "f casa",
    "kitchen": "f cocina", "forest": "m bosque", "park": "m parque", "street": "f calle", "school": "f escuela",
    "city": "f ciudad", "field": "m campo", "room": "f habitación", "tree": "m árbol", "bed": "f cama",
    "bridge": "m puente", "river": "m río",
}  # fmt: skip
# Masculine, and the plural where it is not + s or + es.
ADJECTIVES: dict[str, str] = {
    "black": "negro", "white": "blanco", "red": "rojo", "green": "verde", "blue": "azul", "yellow": "amarillo",
    "brown": "marrón marrones", "gray": "gris", "big": "grande", "small": "pequeño", "old": "viejo",
    "young": "joven jóvenes", "new": "nuevo", "beautiful": "hermoso", "ugly": "feo", "good": "bueno",
    "fresh": "fresco", "cold": "frío", "hot": "caliente", "expensive": "caro", "heavy": "pesado", "clean": "limpio",
    "dirty": "sucio", "strong": "fuerte", "clever": "inteligente", "dangerous": "peligroso", "rich": "rico",
    "famous": "famoso", "happy": "feliz felices", "sad": "triste", "tired": "cansado", "sick": "enfermo",
}  # fmt: skip
# he does, they do, he did, they did, he will do (they: + n)
VERBS: dict[str, str] = {
    "eat": "come comen comió comieron comerá", "drink": "bebe beben bebió bebieron beberá",
    "see": "ve ven vio vieron verá", "find": "encuentra encuentran encontró encontraron encontrará",
    "hear": "oye oyen oyó oyeron oirá", "catch": "atrapa atrapan atrapó atraparon atrapará",
    "steal": "roba roban robó robaron robará", "buy": "compra compran compró compraron comprará",
    "sell": "vende venden vendió vendieron venderá", "wash": "lava lavan lavó lavaron lavará",
    "cook": "cocina cocinan cocinó cocinaron cocinará", "cut": "corta cortan cortó cortaron cortará",
    "paint": "pinta pintan pintó pintaron pintará", "draw": "dibuja dibujan dibujó dibujaron dibujará",
    "read": "lee leen leyó leyeron leerá", "write": "escribe escriben escribió escribieron escribirá",
    "open": "abre abren abrió abrieron abrirá", "close": "cierra cierran cerró cerraron cerrará",
    "hide": "esconde esconden escondió escondieron esconderá", "lose": "pierde pierden perdió perdieron perderá",
    "carry": "lleva llevan llevó llevaron llevará", "push": "empuja empujan empujó empujaron empujará",
    "choose": "elige eligen eligió eligieron elegirá", "sleep": "duerme duermen durmió durmieron dormirá",
    "run": "corre corren corrió corrieron correrá", "swim": "nada nadan nadó nadaron nadará",
    "fly": "vuela vuelan voló volaron volará", "jump": "salta saltan saltó saltaron saltará",
    "play": "juega juegan jugó jugaron jugará", "wait": "espera esperan esperó esperaron esperará",
    "arrive": "llega llegan llegó llegaron llegará", "sing": "canta cantan cantó cantaron cantará",
    "dance": "baila bailan bailó bailaron bailará", "walk": "camina caminan caminó caminaron caminará",
    "laugh": "ríe ríen rio rieron reirá", "cry": "llora lloran lloró lloraron llorará",
    "smile": "sonríe sonríen sonrió sonrieron sonreirá", "work": "trabaja trabajan trabajó trabajaron trabajará",
    "talk": "habla hablan habló hablaron hablará",
}  # fmt: skip
REFLEXIVE = ("laugh",)
FINISHED = ("eat", "drink")  # with `se` where there is an end to it: se comió el ratón, but comió pan
OF_ANIMALS = ("see", "hear", "wash", "find", "catch", "push")  # these have `a` before an animal one knows, too
# ser, of what lasts, and estar, of states
SER = "es son era eran será"
ESTAR = "está están estaba estaban estará"
NUMERALS = {"two": "dos", "three": "tres", "four": "cuatro"}
PREPOSITIONS = {"in": "en", "on": "sobre", "under": "debajo de", "behind": "detrás de", "near": "cerca de"}
TIMES = {"yesterday": "ayer", "last week": "la semana pasada", "today": "hoy", "every day": "todos los días", "tomorrow": "mañana", "next week": "la próxima semana"}  # fmt: skip
LINKS = {"and": "y", "but": "pero", "because": "porque"}
OPENING = {"?": "¿", "!": "¡"}


def realise(sentence: Sentence) -> Realised:
    tokens: list[Token] = []
    for number, clause in enumerate(sentence.clauses):
        if sentence.link and number:
            comma = [Token(",", ("comma",), glue=True)] if sentence.link != "because" else []
            tokens += [*comma, Token(LINKS[sentence.link], ("link",))]
        tokens += _clause(clause, str(number))
    if opening := OPENING.get(sentence.end):
        first = Token(tokens[0].form, tokens[0].nodes, glue=True)
        tokens = [Token(opening, ("end",)), first, *tokens[1:]]
    return spell(tokens, sentence)


def _clause(clause: Clause, c: str) -> list[Token]:
    subject = _noun_phrase(clause.subject, f"{c}.subject")
    verb = _verb(clause, c)
    if clause.quality:
        verb.append(Token(_agreed(clause.quality, clause.subject), (f"{c}.quality",)))
    tokens = [*verb, *subject] if clause.question else [*subject, *verb]
    if clause.object:
        tokens += _object(clause, clause.object, f"{c}.object")
    if clause.place:
        place = _noun_phrase(clause.place.where, f"{c}.place")
        tokens += _contracted(phrase(PREPOSITIONS[clause.place.preposition], f"{c}.place.prep"), place)
    if clause.time:
        time = phrase(TIMES[clause.time], f"{c}.time")
        tokens = time + tokens if clause.time_first else tokens + time
    return tokens


def _verb(clause: Clause, c: str) -> list[Token]:
    if clause.verb == BE:
        assert clause.quality is not None
        forms = (SER if QUALITIES[clause.quality].lasting else ESTAR).split()
    else:
        forms = VERBS[clause.verb].split()
    many = clause.subject.plural
    form = {"present": forms[many], "past": forms[2 + many], "future": forms[4] + "n" * many}[clause.tense]
    reflexive = clause.verb in REFLEXIVE
    if clause.verb in FINISHED and (what := clause.object):
        reflexive = KINDS[what.noun].counted or what.determiner == "the"
    tokens = phrase("se " * reflexive + form, f"{c}.verb")
    return [Token("no", (f"{c}.not",)), *tokens] if clause.negated else tokens


def _object(clause: Clause, np: NounPhrase, role: str) -> list[Token]:
    tokens = _noun_phrase(np, role, clause.negated)
    kind = KINDS[np.noun].kind
    if kind == "person" or (kind == "animal" and np.determiner == "the" and clause.verb in OF_ANIMALS):
        return _contracted([Token("a", (role,))], tokens)
    return tokens


def _noun_phrase(np: NounPhrase, role: str, denied: bool = False) -> list[Token]:
    none = denied and np.determiner == "some" and np.plural  # any books: ningún libro
    if none:
        np = NounPhrase(np.noun, "some", False, np.adjectives)
    gender, singular, *several = NOUNS[np.noun].split()
    noun = Token((several[0] if several else _plural(singular)) if np.plural else singular, (role,))
    before, after = [], []
    for adjective in np.adjectives:
        token = Token(_agreed(adjective, np), (f"{role}.{adjective}",))
        if adjective == "good" or (len(np.adjectives) == 2 and adjective == np.adjectives[0]):
            before.append(Token(_shortened(token.form, np), token.nodes))
        else:
            after.append(token)
    words = [*before, noun, *after]
    feminine = gender != "m" and not (gender == "a" and not before and not np.plural)
    if np.determiner in NUMERALS:
        determiner = NUMERALS[np.determiner]
    elif np.determiner == "the":
        determiner = ("las" if feminine else "los") if np.plural else ("la" if feminine else "el")
    elif none:
        determiner = "ninguna" if feminine else "ningún"
    elif np.determiner == "a":
        determiner = "una" if feminine else "un"
    elif np.plural:
        determiner = "unas" if feminine else "unos"
    else:
        return words
    return [Token(determiner, (f"{role}.det",)), *words]


def _contracted(before: list[Token], words: list[Token]) -> list[Token]:
    """de + el is del, a + el is al."""
    if before[-1].form in ("a", "de") and words[0].form == "el":
        joined = Token(before[-1].form + "l", (*before[-1].nodes, *words[0].nodes))
        return [*before[:-1], joined, *words[1:]]
    return [*before, *words]


def _agreed(adjective: str, np: NounPhrase) -> str:
    form, *several = ADJECTIVES[adjective].split()
    if form.endswith("o") and NOUNS[np.noun][0] != "m":
        form = form[:-1] + "a"
    return (several[0] if several else _plural(form)) if np.plural else form


def _shortened(form: str, np: NounPhrase) -> str:
    """Before a noun: un gran perro, el buen vino."""
    return form if np.plural else {"grande": "gran", "bueno": "buen"}.get(form, form)


def _plural(form: str) -> str:
    return form + ("s" if form[-1] in "aeiouéóíá" else "es")
