"""Short stories for filling in and for going on: somebody, what happens, what is felt then, and what is done about it.

Feelings follow from events and lead to deeds that suit who feels: a dog wags his tail, a cat purrs, a boy claps his
hands. A combination of who, event and deed that is held out for validation or test stands in no training text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import pairwise

from regard.tasks.corpora.templates import PARTS, SPLITS, Draw, near, polished, split_of, words_in
from regard.tasks.data import Plain

# What models of these stories are shown with; a sentence that is one or two words away from it is left out.
SHOWN = "When he saw his owner, the dog was happy, so he wagged his tail."
SHOWN_TOO = "The black cat ate the mouse."
AWAY = 2

FEELINGS = {
    "joy": ("happy", "glad", "excited", "happy", "delighted", "pleased", "cheerful", "joyful", "overjoyed"),
    "fear": ("afraid", "scared", "frightened", "nervous", "terrified", "worried"),
    "grief": ("sad", "unhappy", "lonely", "upset", "miserable", "disappointed"),
    "anger": ("angry", "furious", "annoyed", "cross", "mad"),
    "hunger": ("hungry", "starving", "very hungry", "still hungry"),
    "thirst": ("thirsty", "very thirsty", "still thirsty"),
    "weariness": ("tired", "sleepy", "exhausted", "weary"),
    "cold": ("cold", "freezing", "very cold"),
    "wonder": ("surprised", "curious", "amazed", "astonished"),
}
OPPOSITE = {"joy": "grief", "grief": "joy", "fear": "joy", "anger": "joy", "weariness": "joy", "wonder": "fear"}

# Who: the kinds that can do the same things.
PETS = ("dog", "puppy", "cat", "kitten", "horse", "pony", "parrot", "rabbit", "donkey", "hamster", "goat", "lamb")
KINDS = {
    "dog": ("dog", "puppy", "old dog", "little dog", "brown dog", "white puppy", "poodle"),
    "cat": ("cat", "kitten", "old cat", "grey cat", "fat cat", "white kitten"),
    "horse": ("horse", "pony", "donkey", "white horse", "foal", "young horse"),
    "bird": ("parrot", "duck", "blackbird", "goose", "canary", "owl", "little bird"),
    "small": ("rabbit", "hamster", "mouse", "squirrel", "hare", "little rabbit"),
    "farm": ("cow", "goat", "lamb", "sheep", "calf", "pig"),
    "wild": ("lion", "bear", "wolf", "tiger", "fox", "monkey", "elephant"),
    "male": ("boy", "man", "farmer", "king", "grandfather", "little boy", "old man", "baker", "prince", "fisherman"),
    "female": ("girl", "woman", "teacher", "queen", "grandmother", "little girl", "old woman", "nurse", "princess"),
}
NAMES = {
    "male": ("Tom", "Ben", "Max", "Paul", "Ravi", "Leo", "Sam", "Peter", "Omar", "Jack"),
    "female": ("Anna", "Mia", "Lucy", "Maria", "Asha", "Ella", "Sara", "Emma", "Nina", "Jane"),
}
PEOPLE = frozenset(NAMES)
TAME = frozenset(("dog", "cat", "horse", "bird", "small", "farm"))

EVENTS = {
    "joy": {
        "tame": """saw {his} owner | heard {his} owner | heard {his} owner at the door | smelled {his} owner | saw {his} master |
            heard {his} master | saw {his} food | smelled {his} dinner | found {his} ball | found {his} toy | got a treat |
            got a new toy | saw {his} friend | could go outside | heard {his} name | came home | went for a walk |
            played with the children | saw {his} owner come home | met {his} owner again | was praised""",
        "wild": "found some food | saw {his} friend | played in the sun | found the river | came home | met {his} brother | saw the spring",
        "people": """saw {his} mother | saw {his} friend | heard the good news | got a present | won the game | won the race |
            found {his} keys | heard the music | got a letter from {his} friend | came home | met {his} brother again |
            saw the sea | found the treasure | passed the test | ate the cake | got a puppy | heard {his} favourite song""",
    },
    "fear": {
        "tame": "heard the thunder | saw a snake | saw a wolf | heard a loud noise | heard the storm | saw the doctor | saw a fox | was lost | smelled a fox",
        "wild": "heard the hunter | saw a fire | heard a loud noise | saw a snake | heard the thunder | smelled smoke | heard a shot",
        "people": "heard the thunder | saw a snake | saw a bear | heard a strange noise | walked through the dark forest | saw a ghost | heard a wolf | was lost in the forest",
    },
    "grief": {
        "tame": "lost {his} toy | missed {his} owner | was alone | was left alone | could not go outside | lost {his} friend | stayed at home alone | heard {his} owner leave | saw {his} owner leave",
        "wild": "lost {his} friend | was alone | could not find {his} mother | was far from home | lost {his} way",
        "people": "lost {his} keys | lost the game | lost {his} hat | broke {his} cup | missed {his} friend | was alone | failed the test | heard the bad news | lost {his} doll | missed the bus",
    },
    "anger": {
        "tame": "saw a stranger | saw a thief | saw another animal in {his} bed | lost {his} dinner to the fox",
        "wild": "saw a hunter | saw a stranger | lost {his} dinner",
        "people": "saw the thief | heard the lie | found the broken window | saw the mess | had to wait for hours",
    },
    "hunger": {
        "tame": "had not eaten all day | saw the empty bowl | smelled the meat | smelled the kitchen | had no breakfast",
        "wild": "had not eaten for days | found no food | had not eaten all day",
        "people": "had not eaten all day | had no breakfast | smelled the bread | worked until noon | forgot {his} lunch",
    },
    "thirst": {
        "tame": "ran in the sun | played in the heat | saw the empty bowl of water | had no water",
        "wild": "walked through the desert | ran in the sun | had no water",
        "people": "worked in the sun | ran in the heat | walked through the desert | ate salty fish",
    },
    "weariness": {
        "tame": "ran all day | played all day | had a long walk | did not sleep at night",
        "wild": "walked all night | ran all day | hunted all night",
        "people": "worked all day | worked all night | walked all day | read until midnight | did not sleep at night | danced all evening",
    },
    "cold": {
        "tame": "walked in the snow | sat in the rain | slept outside in winter",
        "wild": "walked in the snow | slept in the snow | swam in the icy river",
        "people": "walked in the snow | lost {his} coat | sat in the rain | fell into the lake",
    },
    "wonder": {
        "tame": "saw a mirror | saw a butterfly | heard a strange song | saw the first snow | found an egg",
        "wild": "saw a mirror | saw a balloon | found an egg | heard a strange song",
        "people": "saw a rainbow | saw a shooting star | found a strange letter | heard a talking parrot | saw a blue egg",
    },
}
DEEDS = {
    "joy": {
        "dog": "wagged {his} tail | barked with joy | jumped up and down | ran in circles | wagged {his} tail and barked | licked {his} owner's hand | ran to the door",
        "cat": "purred | purred loudly | rubbed against {his} owner's legs | rolled on the carpet | swished {his} tail",
        "horse": "neighed | trotted to the fence | galloped across the field | swished {his} tail | nodded {his} head",
        "bird": "sang | sang a song | flapped {his} wings | danced on one leg | whistled",
        "small": "hopped around | jumped in the grass | twitched {his} nose | ran in {his} wheel",
        "farm": "jumped over the fence | ran across the field | skipped in the meadow | wagged {his} tail",
        "wild": "rolled in the grass | jumped around | danced in the sun",
        "people": "smiled | laughed | danced | sang a song | clapped {his} hands | jumped for joy | hugged {his} mother | laughed and danced",
    },
    "fear": {
        "dog": "hid under the bed | ran away | trembled | put {his} tail between {his} legs | whined",
        "cat": "hid under the sofa | climbed a tree | ran away | hissed | trembled",
        "horse": "galloped away | trembled | kicked the door",
        "bird": "flew away | screeched | hid in {his} nest",
        "small": "ran into {his} hole | hid in the straw | trembled | ran away",
        "farm": "ran into the barn | trembled | ran away",
        "wild": "ran into the forest | ran away | hid in the cave | climbed a tree",
        "people": "ran home | ran away | hid under the bed | screamed | trembled | closed {his} eyes | called for help",
    },
    "grief": {
        "dog": "whined | howled | lay down in {his} basket | hung {his} head",
        "cat": "meowed | lay down in {his} basket | did not eat",
        "horse": "hung {his} head | stood in the corner",
        "bird": "did not sing | sat still in {his} cage",
        "small": "sat still in the corner | did not eat",
        "farm": "hung {his} head | bleated all night",
        "wild": "howled at the moon | went back to {his} cave | lay down under a tree",
        "people": "cried | wept | went to {his} room | wrote a letter to {his} friend | did not say a word | sat alone by the window",
    },
    "anger": {
        "dog": "growled | barked | barked loudly | showed {his} teeth",
        "cat": "hissed | scratched the chair | showed {his} claws",
        "horse": "kicked the fence | stamped {his} foot",
        "bird": "screeched | pecked the fox",
        "small": "bit the fox | stamped {his} foot",
        "farm": "kicked the bucket | lowered {his} head",
        "wild": "roared | showed {his} teeth | growled",
        "people": "shouted | stamped {his} foot | slammed the door | called the police",
    },
    "hunger": {
        "dog": "begged for food | went to the kitchen | emptied {his} bowl | ate a bone | stole a sausage",
        "cat": "went to the kitchen | emptied {his} bowl | caught a fish | licked the plate",
        "horse": "ate some hay | ate an apple | looked for grass",
        "bird": "ate some seeds | looked for worms | picked up the crumbs",
        "small": "ate a carrot | nibbled on a nut | looked for seeds",
        "farm": "ate some grass | ate some hay | looked for grass",
        "wild": "went hunting | looked for food | caught a fish",
        "people": "ate some bread | cooked some soup | went to the kitchen | baked a cake | ate two apples | made a sandwich",
    },
    "thirst": {
        "any": "drank some water | went to the river | looked for water | drank from the lake",
        "people": "drank some water | drank a glass of milk | made some tea | drank a cup of tea",
    },
    "weariness": {
        "any": "fell asleep | lay down | yawned | slept all afternoon | lay down in the shade",
        "people": "went to bed | fell asleep | yawned | closed {his} eyes | slept until noon | lay down on the sofa",
    },
    "cold": {
        "any": "shivered | sat by the fire | went inside | shivered all night",
        "people": "shivered | put on {his} coat | made a fire | sat by the fire | went inside",
    },
    "wonder": {
        "any": "stood still | opened {his} eyes wide | looked again | came closer",
        "people": "stood still | opened {his} eyes wide | asked {his} mother | rubbed {his} eyes | looked again",
    },
}
SUDDEN = ("joy", "fear", "anger", "wonder")
# {who} with its article, {he} and {his} of its sex; two feelings of one kind never differ in what follows.
SENTENCES = """
When {he} {event}, {who} was {feel}, so {he} {deed}. | When {he} {event}, {who} was {feel}, so {he} {deed}. | When {who} {event}, {he} was {feel}, so {he} {deed}.
When {who} {event}, {he} was {feel}. | {who} was {feel} because {he} {event}. | {who} {deed} because {he} was {feel}. | Because {he} was {feel}, {who} {deed}.
{who} was so {feel1} that {he} {deed}. | After {he} {event}, {who} was {feel} and {deed}. | {who} {event}. {He} was {feel}, so {he} {deed}. | {who} was {feel}, so {he} {deed}.
Because {he} {event}, {who} felt {feel}. | {who} felt {feel} when {he} {event}. | {who} {event} and {deed}. {He} was {feel}. | Was {who} {feel}? Yes, {he} {deed}.
{who} {event}, so {he} was {feel}. | {who} {deed} when {he} {event}. | {who} {deed} because {he} {event}. | {who} was not {unfelt} but {feel}, so {he} {deed}. | {who} {event}, and because {he} was {feel}, {he} {deed}.
Why was {who} {feel}? Because {he} {event}. | As soon as {he} {event}, {who} {deed}. | {who} had never been so {feel1}, so {he} {deed}. | {He} was {feel} when {he} {event}, so {he} {deed}.
"""
OPENINGS = """
It was a {sunny|cold|rainy|quiet|long} {day|morning|evening}. | One day it {rained|snowed|was very hot}. | Once upon a time there was a {happy|poor|young|wise} {king|farmer|woman}. | It was {spring|summer|autumn|winter}. |
It was already {late|dark|evening}. | The sun {was shining|rose over the hills|went down}. | One {morning|evening|day} something happened. | The {house|garden|farm|village} was quiet.
"""
PET_OPENINGS = """
{name} had a {pet}. | {name} lived with {name_his} {pet} in a small house. | {name} and {name_his} {pet} were good friends. | {name} loved {name_his} {pet}. | Every day {name} played with {name_his} {pet}.
"""
ENDINGS = """
Then everything was quiet again. | In the end everybody went home. | The next day it happened again. | {He} never forgot that day. | Then {he} went to sleep. | That was a {good|long|strange} day. | {His} friends {laughed|came to see {him}|were happy too}.
"""


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.replace("\n", " ").split(" | ") if part.strip()]


def _lines(text: str) -> list[str]:
    return [part.strip(" |") for line in text.strip().splitlines() for part in line.split(" | ") if part.strip(" |")]


_EVENTS: dict[str, dict[str, list[str]]] = {
    feeling: {who: _split(text) for who, text in by.items()} for feeling, by in EVENTS.items()
}
_DEEDS = {feeling: {who: _split(text) for who, text in by.items()} for feeling, by in DEEDS.items()}
_SENTENCES, _OPENINGS, _PET_OPENINGS, _ENDINGS = map(_lines, (SENTENCES, OPENINGS, PET_OPENINGS, ENDINGS))
_TURNS = [template for template in _SENTENCES if template.startswith("{who}") and "never" not in template]
_HIS = {"she": "he", "her": "his"}
_HER = re.compile(r"\b(?:she|her)\b", re.IGNORECASE)
_SHOWN = [words_in(SHOWN), words_in(SHOWN_TOO)]


def stories(seed: int, n: int) -> dict[str, list[Plain]]:
    """`n` different training texts of one to five sentences, and a twentieth of that for validation and for test."""
    found: dict[str, list[Plain]] = {}
    seen: set[str] = set()
    for split in SPLITS:
        lines = _texts(random.Random(f"stories {seed} {split}"), split)
        found[split] = []
        while len(found[split]) < (n if split == SPLITS[0] else max(n // PARTS, 1)):
            text = next(lines)
            if text not in seen:
                seen.add(text)
                found[split].append(Plain(text))
    return found


def _texts(chance: random.Random, split: str) -> Iterator[str]:
    while True:
        text = _story(chance, split)
        if text is not None and apart(text):
            yield text


def apart(text: str) -> bool:
    """No sentence, and no two neighbours, come near to what the models are shown with."""
    parts = [part for part in text.replace("?", ".").split(".") if part.strip()]
    runs = [*parts, *(f"{a} {b}" for a, b in pairwise(parts))]
    runs = [_HER.sub(lambda word: _HIS[word[0].lower()], run) for run in runs]  # her dog is no other dog
    return not any(near(run, shown, AWAY if shown is _SHOWN[0] else 1) for run in runs for shown in _SHOWN)


def _story(chance: random.Random, split: str) -> str | None:
    kind = chance.choices(tuple(KINDS), (4, 4, 2, 2, 2, 1, 2, 4, 4))[0]
    male = kind == "male" or (kind != "female" and chance.random() < 0.5)
    who = chance.choice(KINDS[kind])
    named = kind in PEOPLE and chance.random() < 0.5
    if named:
        who = chance.choice(NAMES[kind])
    he, his, him = ("he", "his", "him") if male else ("she", "her", "her")
    common = {"who": [who if named else f"the {who}"], "he": [he], "He": [he.capitalize()]}
    common |= {"his": [his], "His": [his.capitalize()], "him": [him]}
    sentences: list[str] = []
    # A story may turn from one feeling to another.
    for turn in range(chance.choice((1, 1, 1, 1, 2))):
        feeling = chance.choices(tuple(FEELINGS), (6, 3, 3, 2, 2, 1, 2, 1, 1))[0]
        sentence = _sentence(chance, split, kind, who, feeling, common, _TURNS if turn else _SENTENCES)
        if sentence is None:
            return None
        if turn:
            sentence = f"{chance.choice(('Later,', 'The next day', 'Then', 'In the evening,'))} " + (
                sentence if sentence.startswith(who) and named else sentence[0].lower() + sentence[1:]
            )
        sentences.append(sentence)
    if kind in TAME and who in PETS and chance.random() < 0.3:
        sex = chance.choice(("male", "female"))
        given = {"name": [chance.choice(NAMES[sex])], "name_his": ["his" if sex == "male" else "her"], "pet": [who]}
        name = given["name"][0]
        sentences.insert(0, Draw(chance, frozenset()).fill(chance.choice(_PET_OPENINGS).replace("{name}", name), given))
    elif chance.random() < 0.25:
        sentences.insert(0, Draw(chance, frozenset()).fill(chance.choice(_OPENINGS), common))
    if len(sentences) > 1 and chance.random() < 0.3:
        ending = chance.choice(_ENDINGS).replace("{him}", him)
        sentences.append(Draw(chance, frozenset()).fill(ending, common))
    return polished(" ".join(sentences))


def _sentence(
    chance: random.Random,
    split: str,
    kind: str,
    who: str,
    feeling: str,
    common: dict[str, list[str]],
    templates: list[str],
) -> str | None:
    group = "people" if kind in PEOPLE else "tame" if kind in TAME else "wild"
    deeds = _DEEDS[feeling]
    event = chance.choice(_EVENTS[feeling][group])
    deed = chance.choice(deeds.get("people" if group == "people" else kind, deeds.get("any", [])))
    template = chance.choice(templates)
    if template.startswith("As soon as") and feeling not in SUDDEN:
        return None
    told = [who, *([event] if "{event}" in template else []), *([deed] if "{deed}" in template else [])]
    if split_of(told) != split:
        return None
    plain = [word for word in FEELINGS[feeling] if " " not in word]
    lists = common | {"feel1": plain, "event": [event], "deed": [deed], "feel": list(FEELINGS[feeling])}
    unfelt = [word for word in FEELINGS[OPPOSITE.get(feeling, "joy")] if " " not in word]
    return polished(Draw(chance, frozenset()).fill(template, lists | {"unfelt": unfelt}))
