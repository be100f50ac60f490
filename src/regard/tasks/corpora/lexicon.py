"""The things, qualities and actions that the corpora speak of, by their English names, and what goes with what.

Words stand in the languages' own files; here is only what is the same in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["animal", "person", "food", "drink", "thing", "place"]
ANIMATE = ("animal", "person")


@dataclass(frozen=True)
class Noun:
    kind: Kind
    counted: bool = True  # a cat, two cats; not: bread
    plural: bool = True  # is its plural used? (the English one of fish cannot be told from the singular)
    traits: frozenset[str] = field(default_factory=frozenset)

    @property
    def animate(self) -> bool:
        return self.kind in ANIMATE


def _of(kind: Kind, names: str, *traits: str, counted: bool = True, plural: bool = True) -> dict[str, Noun]:
    return {name: Noun(kind, counted, counted and plural, frozenset(traits)) for name in names.split()}


NOUNS: dict[str, Noun] = {
    **_of("animal", "cat snake", "hunter"),
    **_of("animal", "dog fox wolf bear lion tiger", "hunter", "strong"),
    **_of("animal", "mouse rabbit frog", "prey"),
    **_of("animal", "bird duck", "prey", "flies"),
    **_of("animal", "hen", "prey"),
    **_of("animal", "fish", "prey", plural=False),
    **_of("animal", "horse cow pig goat donkey elephant", "strong"),
    **_of("animal", "monkey"),
    **_of("person", "man woman boy girl child king queen princess farmer teacher doctor student friend grandmother"),
    **_of("person", "soldier chef"),
    **_of("food", "apple banana orange pear"),
    **_of("food", "egg potato carrot tomato", "cooked"),
    **_of("food", "cake"),
    **_of("food", "bread cheese honey", counted=False),
    **_of("food", "rice meat soup", "cooked", counted=False),
    **_of("drink", "milk water tea coffee wine juice", counted=False),
    **_of("thing", "book letter newspaper", "read"),
    **_of("thing", "box bag", "opens"),
    **_of("thing", "door window", "opens", "fixed"),
    **_of("thing", "ball flower hat shirt knife key cup umbrella picture lamp"),
    **_of("thing", "chair table bicycle car", "large"),
    **_of("place", "garden house kitchen forest park street school city field room tree bed bridge river"),
}

# A place, and the prepositions that it is used with. Chairs and tables are things and places.
PLACES: dict[str, tuple[str, ...]] = {
    "garden": ("in", "behind", "near"),
    "house": ("in", "behind", "near"),
    "kitchen": ("in",),
    "forest": ("in", "near"),
    "park": ("in", "near"),
    "street": ("in",),
    "school": ("in", "behind", "near"),
    "city": ("in",),
    "field": ("in",),
    "room": ("in",),
    "table": ("on", "under", "near"),
    "chair": ("on", "under"),
    "bed": ("on", "under", "near"),
    "tree": ("under", "behind", "near"),
    "bridge": ("on", "under", "near"),
    "river": ("near",),
}
PREPOSITIONS = ("in", "on", "under", "behind", "near")

TIMES: dict[str, tuple[str, ...]] = {
    "past": ("yesterday", "last week"),
    "present": ("today", "every day"),
    "future": ("tomorrow", "next week", "today"),
}

COLOURS = ("black", "white", "red", "green", "blue", "yellow", "brown", "gray")
# These may stand before a colour: the small black cat.
LIGHT = ("big", "small", "old", "young", "new", "beautiful")


@dataclass(frozen=True)
class Adjective:
    kinds: tuple[Kind, ...]  # of what it is said
    lasting: bool = True  # a quality, not a state: Spanish es or está


ALIVE: tuple[Kind, ...] = ("animal", "person")
ADJECTIVES: dict[str, Adjective] = {
    **{colour: Adjective(("animal", "thing", "place")) for colour in COLOURS},
    "big": Adjective(("animal", "food", "thing", "place")),
    "small": Adjective(("animal", "person", "food", "thing", "place")),
    "old": Adjective(("animal", "person", "thing", "place")),
    "young": Adjective(ALIVE),
    "new": Adjective(("thing", "place")),
    "beautiful": Adjective(("animal", "person", "thing", "place")),
    "ugly": Adjective(("animal", "thing", "place")),
    "good": Adjective(("food", "drink")),
    "fresh": Adjective(("food",), lasting=False),
    "cold": Adjective(("food", "drink"), lasting=False),
    "hot": Adjective(("food", "drink"), lasting=False),
    "expensive": Adjective(("food", "drink", "thing")),
    "heavy": Adjective(("thing",)),
    "clean": Adjective(("thing", "place"), lasting=False),
    "dirty": Adjective(("animal", "thing", "place"), lasting=False),
    "strong": Adjective(ALIVE),
    "clever": Adjective(ALIVE),
    "dangerous": Adjective(("animal",)),
    "rich": Adjective(("person",)),
    "famous": Adjective(("person",)),
    "happy": Adjective(ALIVE, lasting=False),
    "sad": Adjective(ALIVE, lasting=False),
    "tired": Adjective(ALIVE, lasting=False),
    "sick": Adjective(ALIVE, lasting=False),
}
# What cannot be said well of some nouns, though of their kind: colours of what has none, a big river's cleanness.
NOT_SAID: dict[str, frozenset[str]] = {
    "new": frozenset({"garden", "forest", "street", "city", "field", "tree", "river", "flower"}),
    "old": frozenset({"child", "boy", "girl", "student", "flower", "letter", "field", "ball"}),
    "dirty": frozenset({"tree", "forest", "field", "bridge", "flower"}),
    "clean": frozenset({"tree", "forest", "field", "bridge", "flower"}),
    "ugly": frozenset({"flower", "river", "forest"}),
    "heavy": frozenset({"flower", "letter", "key", "newspaper", "hat", "shirt", "cup", "knife", "ball", "umbrella"}),
    "expensive": frozenset({"egg", "potato", "letter"}),
    "small": frozenset({"man", "woman", "king", "queen", "farmer", "teacher", "doctor", "student", "friend", "grandmother", "soldier", "chef", "rice", "meat", "soup", "honey", "bread", "elephant"}),
    "beautiful": frozenset({"man", "boy", "king", "farmer", "teacher", "doctor", "student", "friend", "grandmother", "soldier", "chef"}),
    "big": frozenset({"elephant", "rice", "meat", "soup", "honey", "bread", "mouse"}),
    "young": frozenset({"child", "boy", "girl", "grandmother"}),
    "strong": frozenset({"mouse", "bird", "fish", "frog", "hen", "duck", "rabbit", "grandmother"}),
    "dangerous": frozenset({"mouse", "rabbit", "hen", "duck", "frog", "fish", "bird", "goat", "cat", "donkey", "pig", "cow"}),
    "fresh": frozenset({"rice", "honey", "soup", "potato", "cake"}),
    "cold": frozenset({"apple", "banana", "orange", "pear", "carrot", "tomato", "honey", "cheese", "bread", "cake", "egg"}),
    "hot": frozenset({"apple", "banana", "orange", "pear", "carrot", "tomato", "honey", "cheese", "cake", "juice", "wine", "egg"}),
    "rich": frozenset({"child", "boy", "girl", "student"}),
    "famous": frozenset({"child", "boy", "girl", "man", "woman", "friend", "grandmother", "student"}),
    **{
        colour: frozenset({"city", "park", "forest", "garden", "street", "school", "kitchen", "field", "river", "newspaper", "letter", "picture", "room", "tree"})
        for colour in COLOURS
    },
}  # fmt: skip
# Which of the colours something alive has.
COATS: dict[str, str] = {
    "cat": "black white gray brown",
    "dog": "black white gray brown",
    "mouse": "black white gray brown",
    "bird": "black white red green blue yellow brown gray",
    "horse": "black white brown gray",
    "cow": "black white brown",
    "pig": "black white brown",
    "goat": "black white brown gray",
    "rabbit": "black white brown gray",
    "fox": "red gray",
    "wolf": "black white gray",
    "bear": "black white brown",
    "lion": "white",
    "tiger": "white",
    "elephant": "gray white",
    "monkey": "black brown gray",
    "snake": "black green yellow brown red",
    "frog": "green brown yellow",
    "duck": "white brown gray yellow",
    "fish": "red blue yellow black white",
    "hen": "black white brown red",
    "donkey": "gray brown black",
}


@dataclass(frozen=True)
class Verb:
    """Who does it, and to what: kinds of nouns, or their traits, or nouns themselves."""

    subjects: tuple[str, ...]
    objects: tuple[str, ...] = ()  # none: without object
    place: bool = True  # may one say where?


PERSON = ("person",)
VERBS: dict[str, Verb] = {
    "eat": Verb(ANIMATE, ("food",)),  # and hunters eat prey
    "drink": Verb(ANIMATE, ("drink",)),
    "see": Verb(ANIMATE, ("animal", "person", "thing")),
    "find": Verb(ANIMATE, ("animal", "food", "thing")),
    "hear": Verb(ANIMATE, ("animal", "person")),
    "catch": Verb(ANIMATE, ("prey", "ball")),
    "steal": Verb(("person", "monkey", "fox"), ("food", "thing")),
    "buy": Verb(PERSON, ("food", "drink", "thing", "horse", "cow", "pig", "goat", "donkey", "hen")),
    "sell": Verb(PERSON, ("food", "drink", "thing", "horse", "cow", "pig", "goat", "donkey", "hen")),
    "wash": Verb(PERSON, ("thing", "dog", "horse", "elephant", "apple", "pear", "carrot", "tomato", "potato")),
    "cook": Verb(PERSON, ("cooked",)),
    "cut": Verb(PERSON, ("apple", "banana", "orange", "pear", "carrot", "tomato", "bread", "cheese", "meat", "cake")),
    "paint": Verb(PERSON, ("chair", "table", "door", "window", "box", "lamp", "bicycle")),
    "draw": Verb(PERSON, ("animal", "thing")),
    "read": Verb(PERSON, ("read",)),
    "write": Verb(PERSON, ("book", "letter")),
    "open": Verb(PERSON, ("opens", "letter", "umbrella")),
    "close": Verb(PERSON, ("opens", "book", "umbrella")),
    "hide": Verb(("person", "dog", "monkey"), ("food", "thing")),
    "lose": Verb(PERSON, ("thing",)),
    "carry": Verb(("person", "horse", "donkey", "elephant"), ("food", "thing")),
    "push": Verb(("person", "strong"), ("chair", "table", "box", "bicycle", "car", "ball", "door", "cow", "donkey")),
    "choose": Verb(PERSON, ("food", "drink", "thing")),
    "sleep": Verb(ANIMATE),
    "run": Verb(ANIMATE),
    "swim": Verb(("person", "dog", "duck", "fish", "frog", "elephant", "bear"), place=False),
    "fly": Verb(("flies",), place=False),
    "jump": Verb(ANIMATE, place=False),
    "play": Verb(("child", "boy", "girl", "friend", "cat", "dog", "monkey")),
    "wait": Verb(ANIMATE),
    "arrive": Verb(ANIMATE, place=False),
    "sing": Verb(("person", "bird")),
    "dance": Verb(("person", "monkey", "bear")),
    "walk": Verb(PERSON),
    "laugh": Verb(PERSON),
    "cry": Verb(PERSON),
    "smile": Verb(PERSON),
    "work": Verb(PERSON),
    "talk": Verb(PERSON),
}
NOT_DONE: dict[str, frozenset[str]] = {  # subjects and objects that do not go with a verb, though their kind does
    "run": frozenset({"snake", "fish", "frog", "duck"}),
    "jump": frozenset({"snake", "elephant", "cow", "hen", "duck", "bird"}),
    "steal": frozenset({"table", "door", "window", "chair"}),
    "buy": frozenset({"letter"}),
    "sell": frozenset({"letter"}),
    "wash": frozenset({"book", "letter", "newspaper", "picture", "flower", "key", "lamp"}),
    "hide": frozenset({"door", "window", "table", "car", "soup", "chair"}),
    "lose": frozenset({"door", "window", "table", "chair", "lamp", "car"}),
    "carry": frozenset({"door", "window", "car", "soup"}),
    "find": frozenset({"door", "window", "soup"}),
    "choose": frozenset({"letter", "soup"}),
    "draw": frozenset({"letter", "picture", "newspaper"}),
    "arrive": frozenset({"fish"}),
}


def fits(noun: str, wanted: tuple[str, ...]) -> bool:
    """Is the noun one of these: by its name, its kind or a trait?"""
    known = NOUNS[noun]
    return noun in wanted or known.kind in wanted or not known.traits.isdisjoint(wanted)


def may_be(noun: str, adjective: str) -> bool:
    """Can one say this adjective of this noun?"""
    kind = NOUNS[noun].kind
    if adjective in COLOURS and kind == "animal":
        return adjective in COATS.get(noun, "").split()
    return kind in ADJECTIVES[adjective].kinds and noun not in NOT_SAID.get(adjective, ())


def subjects_of(verb: str) -> list[str]:
    return [noun for noun in NOUNS if fits(noun, VERBS[verb].subjects) and noun not in NOT_DONE.get(verb, ())]


def objects_of(verb: str, subject: str) -> list[str]:
    """What this subject may do this to; never to its like."""
    wanted = VERBS[verb].objects
    if verb == "eat" and "hunter" in NOUNS[subject].traits:
        wanted = (*wanted, "prey")
    return [n for n in NOUNS if fits(n, wanted) and n not in NOT_DONE.get(verb, ()) and n != subject]
