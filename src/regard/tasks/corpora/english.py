"""English: the source of all pairs, with universal parts of speech."""

from __future__ import annotations

from regard.tasks.corpora.meaning import BE, Clause, NounPhrase, Realised, Sentence, Token, phrase, spell

PLURALS = {"mouse": "mice", "fish": "fish", "wolf": "wolves", "man": "men", "woman": "women", "child": "children", "box": "boxes", "knife": "knives", "fox": "foxes", "city": "cities", "potato": "potatoes", "tomato": "tomatoes", "princess": "princesses"}  # fmt: skip
PAST = {"eat": "ate", "drink": "drank", "see": "saw", "find": "found", "hear": "heard", "catch": "caught", "steal": "stole", "buy": "bought", "sell": "sold", "cut": "cut", "draw": "drew", "read": "read", "write": "wrote", "hide": "hid", "lose": "lost", "carry": "carried", "choose": "chose", "sleep": "slept", "run": "ran", "swim": "swam", "fly": "flew", "sing": "sang", "cry": "cried"}  # fmt: skip
ROUTE = {"carry": "carries", "catch": "catches", "wash": "washes", "push": "pushes", "fly": "flies", "cry": "cries"}
TIMES = {
    "yesterday": [("yesterday", "NOUN")],
    "today": [("today", "NOUN")],
    "tomorrow": [("tomorrow", "NOUN")],
    "last week": [("last", "ADJ"), ("week", "NOUN")],
    "next week": [("next", "ADJ"), ("week", "NOUN")],
    "every day": [("every", "DET"), ("day", "NOUN")],
}


def realise(sentence: Sentence) -> Realised:
    tokens: list[Token] = []
    for number, clause in enumerate(sentence.clauses):
        if number:
            if sentence.link != "because":
                tokens.append(Token(",", ("comma",), "PUNCT", glue=True))
            tokens += phrase(str(sentence.link), "link", tag="SCONJ" if sentence.link == "because" else "CCONJ")
        tokens += _clause(clause, str(number), sentence.short)
    return spell(tokens, sentence)


def past(verb: str) -> str:
    return PAST.get(verb, verb + ("d" if verb.endswith("e") else "ed"))


def plural(noun: str) -> str:
    return PLURALS.get(noun, noun + "s")


def _clause(clause: Clause, c: str, short: bool) -> list[Token]:
    many = clause.subject.plural
    subject = _noun_phrase(clause.subject, f"{c}.subject")
    negation = [Token("n't" if short else "not", (f"{c}.not",), "PART", glue=short)] if clause.negated else []
    helper, verb = _verb(clause, c, many)
    if helper and short and clause.negated and helper[0].form == "will":
        helper = [Token("wo", helper[0].nodes, "AUX")]
    if clause.question:
        helper = [Token(helper[0].form, (*helper[0].nodes, f"{c}.question"), "AUX")]
        tokens = [*helper, *subject, *verb]
    else:
        tokens = [*subject, *helper, *negation, *verb]
    if clause.quality:
        tokens.append(Token(clause.quality, (f"{c}.quality",), "ADJ"))
    if clause.object:
        tokens += _noun_phrase(clause.object, f"{c}.object", clause.negated)
    if clause.place:
        tokens.append(Token(clause.place.preposition, (f"{c}.place.prep",), "ADP"))
        tokens += _noun_phrase(clause.place.where, f"{c}.place")
    if clause.time:
        time = [Token(word, (f"{c}.time",), tag) for word, tag in TIMES[clause.time]]
        tokens = time + tokens if clause.time_first else tokens + time
    return tokens


def _verb(clause: Clause, c: str, many: bool) -> tuple[list[Token], list[Token]]:
    """The auxiliary, if there is one, and the verb."""
    node = (f"{c}.verb",)
    if clause.verb == BE:
        if clause.tense == "future":
            return [Token("will", node, "AUX")], [Token("be", node, "AUX")]
        form = ("were" if many else "was") if clause.tense == "past" else ("are" if many else "is")
        return [Token(form, node, "AUX")], []
    verb = clause.verb
    if clause.tense == "future":
        return [Token("will", node, "AUX")], [Token(verb, node, "VERB")]
    if clause.negated or clause.question:
        form = "did" if clause.tense == "past" else "do" if many else "does"
        return [Token(form, node, "AUX")], [Token(verb, node, "VERB")]
    if clause.tense == "past":
        return [], [Token(past(verb), node, "VERB")]
    return [], [Token(verb if many else ROUTE.get(verb, verb + "s"), node, "VERB")]


def _noun_phrase(np: NounPhrase, role: str, negated: bool = False) -> list[Token]:
    adjectives = [Token(adjective, (f"{role}.{adjective}",), "ADJ") for adjective in np.adjectives]
    noun = Token(plural(np.noun) if np.plural else np.noun, (role,), "NOUN")
    rest = [*adjectives, noun]
    determiner = str(np.determiner)
    if determiner == "a" and rest[0].form[0] in "aeiou":
        determiner = "an"
    if determiner == "some" and negated:
        determiner = "any"
    tag = "NUM" if np.determiner in ("two", "three", "four") else "DET"
    return [Token(determiner, (f"{role}.det",), tag), *rest]
