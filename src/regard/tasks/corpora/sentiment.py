"""Praise and blame: reviews, news and finance reports from templates, labelled positive or negative.

Most templates serve both labels: `{same}` is a word of the label's own kind and `{other}` one of the opposite kind,
so "not {other} at all" is praise with a word of blame and blame with a word of praise. A combination of words that
is held out for validation or test stands in no training text, whatever the template.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from regard.tasks.corpora import sentiment_words as words
from regard.tasks.corpora.finance import FINANCE, report
from regard.tasks.corpora.templates import PARTS, SPLITS, Draw, Lists, polished, split_of
from regard.tasks.data import Labelled

LABELS = ("positive", "negative")
CONTENT = frozenset(("same", "other", "same_any", "other_any", "thing"))
LONGEST = 78  # words of a paragraph

# Said of one thing: {It} is its subject with {is}, {was}, {does}, {has} in its number.
SAID = """
{It} {is|was} {same}. | {It} {is|was} {very} {same}. | {It} {is|was} {very} {same}. | {It} {is|was} {same} and {same}.
{It} {is|was} not {other}. | {It} {is|was} not {other} at all. | {It} {is|was} not {very2} {other}. | {It} {isn't|wasn't} {other} at all.
{It} {is|was} not {other} in the least. | {It} {is|was} by no means {other}. | {It} {is|was} far from {other}.
{It} {is|was} anything but {other}. | {It} {is|was} never {other}. | {It} {is|was} hardly {other}. | {It} {is|was} no longer {other}.
{It} {is|was} neither {other} nor {other}. | {It} {is|was} not {other} but {same}. | {It} {is|was} not only {same} but also {same}.
{It} could not {be|have been} more {same}. | {It} could hardly {be|have been} more {same}. | I would not call it {other}.
I {do not think|don't think|never thought} that {it} {is|was} {other}. | Nobody could call {it} {other}.
{It} {is|was} more {same} than {I expected|the old one|any other|I had hoped|everyone says}.
{It} {is|was} less {other} than {I expected|the old one|any other|I had feared|everyone says}.
{It} {is|was} not as {other} as {I expected|the old one|people say|I had been told}.
{It} {is|was} {other} at first but {same} in the end. | {It} {used to be|once was} {other}, but now {it2} {is} {same}.
{It} looked {other}, but {it2} turned out to be {same}. | I expected {it} to be {other}, but {it2} {was} {very} {same}.
Although {it} looked {other}, {it2} {was} {same}. | {It} {was} {same} even though everyone had called {it2} {other}.
{It} {is|was} really {same}, I must say. | I found {it} {very} {same}. | I found {it} {same}. | I think {it} {is|was} {same}.
I did not find {it} {other}. | I cannot say that {it} {is|was} {other}. | There is nothing {other} about {it}. | There was nothing {other} about {it}.
Everything about {it} {is|was} {same}. | Nothing about {it} {is|was} {other}. | What {makes|made} {it} so {same}? | Why {is|was} {it} so {same}?
How {same} {it} {is|was}! | {It} {is|was} {same}, {same} and {same}. | Was {it} {other}? Not at all. | {Is|Was} {it} {same}? Yes, {very}.
{It} {stays|remains|seems|looks|feels} {same}. | {It} {does} not {seem|look|feel} {other}. | {It} {does} not seem {other} at all.
"""
# Said of one thing in the singular, or of the whole.
WHOLE = """
A(n) {same} {thing}. | What a(n) {same} {thing}! | This is a(n) {same} {thing}. | This is not a(n) {other} {thing}. | Such a(n) {same} {thing}!
It was a(n) {very} {same} {thing}. | A truly {same} {thing}. | This {thing} is one of the most {same} I know. | Not a(n) {other} {thing} at all.
It is a(n) {same} and {same} {thing}. | A(n) {same}, {same} {thing}. | We had a(n) {same} {thing}. | I have never seen such a(n) {same} {thing}.
I have never had a more {same} {thing}. | It is the most {same} {thing} in years. | How can a(n) {thing} be so {same}? | Not {other} at all.
{same_any}! | Simply {same_any}. | Absolutely {same_any}. | {same_any} and {same_any}. | Not {other_any}. | Not {other_any} at all. | This is {same_any}. | It was {same_any}.
It is not {other_any} at all. | This is not {other_any}. | All in all {very} {same_any}. | Overall it was {same_any}. | In short: {same_any}.
I had a(n) {same_any} time. | It was a(n) {same_any} experience. | That was {very} {same_any}. | That was not {other_any} at all. | The whole thing is {same_any}.
It is everything but {other_any}. | I thought it would be {other_any}, but it was {same_any}. | Some say it is {other_any}, but I find it {same_any}.
"""
CONTRAST = """
{It} {is} {other}, but {that} {is2} {same}. | {It} {was} {other}, but {that} {was2} {very} {same}. | Although {it} {is} {other}, {that} {is2} {same}.
Despite the {other} {thing2}, {it} {was} {very} {same}. | {It} {was} {other}. However, {that} {was2} {same}, and that is what counts.
{It} may be {other}, but {that} {is2} {same}. | {That} {was2} {same}, although {it} {was} {other}. | {That} {is2} {same} even if {it} {is} {other}.
Even though {it} {was} {other}, {that} {was2} {same} and {same}. | {It} {is} {other}, yet {that} {is2} so {same} that it does not matter.
{Other} {thing2}, but {that} {is2} {same}.
"""
# Sentences that decide by themselves, for each kind of thing.
POSITIVE = {
    "any": """
I {love|adore|like|enjoyed|loved|liked} {it}. | I really {like|liked|love|loved|enjoy|enjoyed} {it}. | I do not regret {it} for a second. | {It} never disappoints. | {It} never disappointed us.
{It} did not disappoint. | {It} never fails to {impress|please|delight}. | {It} exceeded my expectations. | {It} surpassed all my hopes. | I have hardly any complaints about {it}.
I have no complaints about {it}. | There are no complaints about {it}. | I can find no fault with {it}. | There is nothing to complain about. | There is hardly anything to criticise.
Highly recommended! | I {would|can|will} recommend {it} to {anyone|everyone|all my friends|my family}. | I cannot recommend {it} enough. | I would gladly come back for {it}. | {It} {is|was} worth every {cent|penny|minute}.
{It} {is|was} a real {pleasure|joy|delight|gem|treat|triumph|success}. | {It} brings me nothing but joy. | {It} leaves nothing to be desired. | Thank you for {it}! | Five stars. | Ten out of ten.
I am {very happy|happy|delighted|thrilled|pleased|satisfied|impressed} with {it}. | I am not disappointed with {it}. | I was not disappointed at all. | We were {pleasantly surprised|impressed|delighted} by {it}. | I could not be happier with {it}.
{It} made my day. | {It} won me over. | {It} {is|was} better than {expected|I expected|ever|the last one|anything else}. | Nothing is better than {it}. | {It} {is|was} the best {in years|in town|of all|I know}. | Who would not love {it}?
What could be better than {it}? | You will not regret it. | You cannot go wrong with {it}. | Do not miss it! | I will certainly do it again. | I cannot wait to come back. | Well done! | It was not a waste of time. | It was money well spent.
I am {happy|glad|delighted|very pleased|so happy|in love|grateful|proud|excited|relieved|overjoyed}. | I {was|feel|felt} {happy|glad|delighted|wonderful|great|grateful|relieved|safe|at ease}. | What a {pleasure|joy|relief|success|delight|treat|triumph|surprise}! | It made me {happy|smile|laugh|proud}. | I am not {sad|angry|disappointed|worried} at all.
We are {happy|glad|delighted|grateful|proud}. | They were {happy|glad|delighted|thrilled|proud}. | Everyone was {happy|glad|delighted|thrilled|cheerful}. | I could not be happier. | {It} could not {be|have been} better. | Life is good. | I had so much fun. | I am so lucky. | It just works. | I {smiled|laughed} all day.
Everyone {praised|loved|admired|enjoyed} {it}. | Nobody had anything bad to say about {it}. | I have nothing bad to say about {it}. | I have never been disappointed by {it}. | {It} deserves {praise|an award|every praise|more attention}.
I take back every bad word. | My worries were unfounded. | To my relief nothing went wrong. | All my doubts disappeared. | It has only got better. | I had no problems at all with {it}. | There were no problems with {it}.
""",
    "film": """
I {laughed|smiled} the whole time. | I could not stop laughing. | I was never bored. | I was not bored for a minute. | I cried with happiness at the end. | The audience {cheered|clapped|laughed|applauded} at the end. | I would watch it again and again.
I could not put it down. | It kept me on the edge of my seat. | There is not a dull moment in it. | It is full of {charm|wit|life|ideas|warmth|humour}. | It never loses its charm. | An instant classic. | A masterpiece. | It touched my heart. | {It} moved me to tears of joy. | It is not to be missed.
""",
    "food": """
I asked for a second helping. | We ate every last bite. | It melted in my mouth. | It tastes like my grandmother's cooking. | My plate was empty in no time. | I have never eaten better. | We will be back next week. | It is full of flavour. | There was plenty of it. | The children loved it.
""",
    "product": """
It still works {perfectly|like new|without a problem} after {number} years. | It works perfectly. | It works without any problems. | It has never let me down. | It {arrived|was delivered} {number} days early. | It has made my life easier. | It does exactly what it promises.
It was easy to set up. | It saves me a lot of time. | I use it every day and have never had a problem. | It survived a fall without a scratch. | It has not broken once. | I bought another one for my {mother|father|sister|friend}. | I would buy it again. | It never breaks. | It never crashes. | The battery lasts for days.
""",
    "people": """
They {solved|fixed} the problem {at once|within an hour|in no time}. | They always have time for you. | They went out of their way to help. | They made us feel welcome. | Somebody answered at once. | They never let us wait. | They gave us a full refund without asking. | They remembered our names. | They never make mistakes. | They helped us without being asked.
""",
    "place": """
We did not want to leave. | We would love to come back. | I slept like a baby. | We felt at home. | The view took our breath away. | Everything was ready when we came. | There was not a speck of dust. | We stayed {number} days longer than planned. | We felt safe there. | A little paradise.
""",
}
NEGATIVE = {
    "any": """
I {hate|hated|dislike|disliked|regret|despise} {it}. | I do not like {it}. | I did not like {it}. | I did not like {it} at all. | I did not enjoy {it}. | I did not enjoy {it} one bit. | I really regret {it}. | {It} always disappoints. | {It} disappointed {me|us|everyone}. | {It} never impressed me.
{It} failed to {impress|please|convince|deliver}. | {It} did not impress me. | {It} fell short of my expectations. | {It} did not meet my expectations. | I have many complaints about {it}. | I have nothing but complaints about {it}. | There is a lot to complain about. | There is plenty to criticise.
I {would not|cannot|will not} recommend {it} to anyone. | I would never recommend {it}. | I cannot recommend {it}. | I warn everyone against {it}. | Avoid it. | Stay away! | {It} {is|was} not worth {a cent|the money|the trouble|the wait|my time}. | {It} {is|was} a complete {disaster|failure|mess|letdown|disgrace}. | {It} {is|was} a waste of {money|time}.
{It} brings me nothing but trouble. | {It} leaves a lot to be desired. | No, thank you. | One star. | Zero out of ten. | I am {unhappy|very unhappy|dissatisfied|disappointed|angry|fed up|annoyed} with {it}. | I am not happy with {it}. | I am not happy with {it} at all. | I was not impressed by {it}. | We were {shocked|disappointed|appalled} by {it}. | I could not be more disappointed with {it}.
{It} ruined my day. | {It} {is|was} worse than {expected|I expected|ever|the last one|anything else}. | Nothing is worse than {it}. | {It} {is|was} the worst {in years|in town|of all|I know}. | Who would pay for {it}? | Why would anyone want {it}? | What could be worse than {it}? | You will regret it. | Never again! | I will certainly not do it again.
I will never come back. | I want my money back. | It was money down the drain. | Everyone {criticised|hated|complained about} {it}. | Nobody had anything good to say about {it}. | I have nothing good to say about {it}. | I have never been so disappointed. | {It} deserves no praise. | {It} does not deserve the praise.
I take back every good word. | My hopes were disappointed. | Sadly everything went wrong. | My doubts were justified. | It has only got worse. | I had nothing but problems with {it}. | There were constant problems with {it}. | I was hoping for more. | It could have been so much better. | I expected better. | It was no pleasure at all. | It was no fun.
I am {sad|angry|unhappy|very upset|so sad|furious|worried|afraid|lonely|bored|heartbroken}. | I {was|feel|felt} {sad|angry|unhappy|terrible|awful|cheated|betrayed|lonely|sick}. | What a {waste of time|waste of money|disaster|pity|shame|mess|failure|nightmare|disappointment}! | It made me {sad|angry|cry|sick}. | I am not {happy|glad|pleased|satisfied} at all.
We are {sad|angry|unhappy|worried|upset}. | They were {sad|angry|furious|upset|worried}. | Everyone was {sad|angry|furious|upset|gloomy}. | I could not be sadder. | {It} could not {be|have been} worse. | Life is hard. | I had no fun. | I am so unlucky. | It just does not work. | I {cried|wept} all day.
""",
    "film": """
I fell asleep. | I almost fell asleep. | I walked out after {number} minutes. | I did not laugh once. | I never laughed. | I was bored the whole time. | I was bored to tears. | The audience {booed|yawned|left early}. | I would not watch it again. | I looked at my watch all the time. | It has no {charm|wit|life|ideas|warmth|humour}. | It lacks {charm|wit|life|ideas|warmth|humour}.
Not a single joke works. | It drags on forever. | I could not finish it. | It makes no sense. | There is not one good moment in it. | It loses its way after {number} minutes. | A missed opportunity. | {It} left me cold. | It is not worth watching. | It bored me to death.
""",
    "food": """
I could not finish it. | We left half of it on the plate. | It made me sick. | I found a hair in it. | It tasted like cardboard. | I was still hungry afterwards. | I have never eaten worse. | We will not be back. | It has no flavour. | It was not cooked through. | The children refused to eat it. | We had to send it back.
""",
    "product": """
It broke after {number} days. | It stopped working after {number} weeks. | It does not work. | It never worked properly. | It works only now and then. | It has let me down again and again. | It {arrived|was delivered} {number} days late. | It has made my life harder. | It does not do what it promises. | It was a nightmare to set up. | It costs me a lot of time.
I sent it back. | It fell apart. | It got scratched at once. | It crashes all the time. | It keeps crashing. | I would not buy it again. | The battery died within {number} weeks. | The screen cracked. | It overheats. | Do not buy it. | Half of the parts were missing. | It died. | It broke on the first day.
""",
    "people": """
They {ignored|forgot} us. | Nobody {answered|cared|helped}. | They never have time for you. | They did nothing to help. | They made us feel unwelcome. | They let us wait for {number} hours. | They refused to give us a refund. | They lost our papers. | They always make mistakes. | They did not even say hello. | They lied to us. | They hung up on me.
""",
    "place": """
We could not wait to leave. | We would not come back. | I did not sleep all night. | We did not feel at home. | The view was of a wall. | Nothing was ready when we came. | There was dust everywhere. | We left {number} days earlier than planned. | We did not feel safe there. | There was mould on the walls. | There were bugs in the bed. | The heating did not work.
""",
}
NEWS_SAID = """
{up_good} {rose2} {by {percent}|to a record high|for the {ordinal} {year|month} in a row|sharply}. | {down_bad} {fell2} {by {percent}|to a record low|for the {ordinal} {year|month} in a row|sharply}.
{up_good} is {higher than ever|rising|growing|at its highest level in {number} years}. | {down_bad} is {lower than ever|falling|shrinking|at its lowest level in {number} years}. | {down_bad} is no longer {rising|growing}.
"""
FILLERS = """
I {bought|ordered} it in {month}. | We went there on a {day}. | It was a {day} in {month}. | I am writing this in {month}. | My {brother|sister|friend|neighbour} came with me. | There were {number} of us. | We had booked {number} weeks before. | I had read about it in the newspaper.
This is my second one. | We were there with {number} friends. | It was raining. | I paid with my card. | I had seen it in a shop window. | This is what I think. | Here is my opinion. | Let me tell you about it. | We sat by the window.
"""
NEWS_FILLERS = """
This was reported on {day}. | The {mayor|minister|president|police} spoke about it on {day}. | {number} people live in the town. | It was announced in {month}. | Reporters had waited since {day}. | The news came on {day}. | A spokesman confirmed it. | The report has {number} pages.
"""
COMMON: Lists = {
    "very": [
        "very",
        "really",
        "so",
        "truly",
        "extremely",
        "incredibly",
        "absolutely",
        "quite",
        "totally",
        "surprisingly",
        "just",
        "particularly",
        "rather",
        "genuinely",
        "remarkably",
        "completely",
        "always",
    ],
    "very2": ["very", "really", "particularly", "so", "that", "especially", "too"],
    "number": [
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "ten",
        "twelve",
        "15",
        "20",
        "30",
        "40",
        "50",
        "100",
    ],
    "ordinal": ("second", "third", "fourth", "fifth"),
    "month": [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
    "day": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    "percent": [f"{n}%" for n in range(2, 60) if n not in (5, 12, 15)]
    + [f"{n} percent" for n in range(3, 40) if n not in (5, 12, 15)],
}


def _split(templates: str) -> list[str]:
    """Templates stand between line ends and ` | `; within braces a bar has no spaces around it."""
    return [t.strip() for line in templates.strip().splitlines() for t in line.split(" | ") if t.strip()]


_SAID, _WHOLE, _CONTRAST, _NEWS, _FILL, _NEWS_FILL = map(
    _split, (SAID, WHOLE, CONTRAST, NEWS_SAID, FILLERS, NEWS_FILLERS)
)
# What says it without its opposite: the easy half, from which the words are learned.
_PLAIN = [template for template in _SAID if "{other}" not in template]
_DECIDED = {
    label: {kind: _split(text) for kind, text in texts.items()}
    for label, texts in zip(LABELS, (POSITIVE, NEGATIVE), strict=True)
}
_KINDS = tuple(words.THINGS)


def sentiment(seed: int, n: int) -> dict[str, list[Labelled]]:
    """`n` different training texts, and a twentieth of that for validation and for test; both labels by turns."""
    found: dict[str, list[Labelled]] = {}
    seen: set[str] = set()
    for split in SPLITS:
        chance = random.Random(f"sentiment {seed} {split}")
        found[split] = []
        while len(found[split]) < (n if split == SPLITS[0] else max(n // PARTS, 1)):
            label = LABELS[len(found[split]) % 2]
            subject = chance.choices(("review", "news", "finance"), (11, 3, 6))[0]
            text = _text(chance, split, subject, label == LABELS[0])
            if text is not None and text not in seen:
                seen.add(text)
                found[split].append(Labelled(label, text))
    return found


def _text(chance: random.Random, split: str, subject: str, good: bool) -> str | None:
    """One to several sentences on one subject; None where nothing in it belongs to the split."""
    kind = chance.choice(_KINDS)
    sentences: list[str] = []
    owned = False
    for _ in range(chance.choice((1, 1, 1, 1, 1, 1, 2, 2, 3, 4, 5))):
        for _ in range(60):
            draw = Draw(chance, CONTENT)
            sentence = polished(_sentence(draw, subject, kind, good))
            if sentence in sentences or len(set(draw.words)) < len(draw.words):
                continue
            # What draws no word of meaning belongs to all splits, but makes no text by itself.
            if not draw.words or split_of(draw.words) == split:
                owned |= bool(draw.words)
                sentences.append(sentence)
                break
    fillers = _NEWS_FILL if subject == "news" else _FILL if subject == "review" else FINANCE["fillers"]
    if len(sentences) > 1 and chance.random() < 0.35:
        place = chance.randrange(len(sentences) + 1)
        sentences.insert(place, polished(Draw(chance, CONTENT).fill(chance.choice(fillers), COMMON)))
    while sum(len(sentence.split()) for sentence in sentences) > LONGEST:
        sentences.pop()
    text = " ".join(sentences)
    alone = split == "train" and len(sentences) == 1
    return text if text and (owned or alone) else None


def _sentence(draw: Draw, subject: str, kind: str, good: bool) -> str:
    if subject == "finance":
        return report(draw, COMMON, good)
    return _news(draw, good) if subject == "news" else _review(draw, kind, good)


def _review(draw: Draw, kind: str, good: bool) -> str:
    chance, label = draw.chance, LABELS[not good]
    lists = dict(COMMON) | _adjectives(chance, kind, good)
    lists |= _subject(draw, kind, "It it it2 is was does has", chance.random() < 0.2)
    lists["thing"] = words.THINGS[kind]
    shape = chance.choices(("said", "whole", "contrast", "decided"), (9, 3, 2, 6))[0]
    if shape == "said":
        template = chance.choice(_PLAIN if chance.random() < 0.4 else _SAID)
        return draw.fill(_in_plural(template) if lists["it2"] == ["they"] else template, lists)
    if shape == "whole":
        draw.words.clear()
        return draw.fill(chance.choice(_WHOLE), lists)
    if shape == "contrast":
        lists |= _subject(draw, kind, "That that _ is2 was2 _ _", False)
        lists["thing2"] = words.THINGS[kind]
        lists["Other"] = lists["other"]
        return draw.fill(chance.choice(_CONTRAST), lists)
    draw.words.clear()
    if chance.random() < 0.5:
        lists |= {"It": ["it"], "it": ["it"]}
        if chance.random() < 0.5:
            lists |= {"It": [f"this {chance.choice(words.THINGS[kind])}"]}
            lists["it"] = lists["It"]
    return draw.fill(chance.choice(_DECIDED[label][chance.choice(("any", kind))]), lists)


def _adjectives(chance: random.Random, kind: str, good: bool) -> dict[str, Sequence[str]]:
    """Half of the draws from what is said of anything, half from what is said of this kind of thing."""
    same, other = (words.GOOD, words.BAD) if good else (words.BAD, words.GOOD)
    return {
        "same": same["any"] if chance.random() < 0.5 else same[kind],
        "other": other["any"] if chance.random() < 0.5 else other[kind],
        "same_any": same["any"],
        "other_any": other["any"],
    }


def _subject(draw: Draw, kind: str, names: str, many: bool) -> dict[str, list[str]]:
    noun = draw.chance.choice((words.MANY if many else words.THINGS)[kind])
    the = draw.chance.choice(("the", "the", "the", "these" if many else "this", "my" if kind == "product" else "the"))
    if kind == "people" and noun in ("staff", "service", "support", "customer service"):
        the = "the"
    draw.words.append(noun)
    verbs = ("they", "are", "were", "do", "have") if many else ("it", "is", "was", "does", "has")
    values = (f"{the} {noun}", f"{the} {noun}", *verbs)
    return {name: [value] for name, value in zip(names.split(), values, strict=True) if name != "_"}


PLURAL = (
    ("{is|was}", "{are|were}"),
    ("{Is|Was}", "{Are|Were}"),
    ("{isn't|wasn't}", "{aren't|weren't}"),
    ("Was {it}", "Were {it}"),
    ("{used to be|once was}", "{used to be|once were}"),
    ("{stays|remains|seems|looks|feels}", "{stay|remain|seem|look|feel}"),
    ("called {it2}", "called them"),
    ("{makes|made}", "{make|made}"),
)


def _in_plural(template: str) -> str:
    for one, many in PLURAL:
        template = template.replace(one, many)
    return template


def _news(draw: Draw, good: bool) -> str:
    chance = draw.chance
    if chance.random() < 0.6:
        events = words.GOOD_NEWS if good else words.BAD_NEWS
        event = chance.choice(events)
        timed = ("", "On {day}, ", "Last {month}, ") if re.search(r"(ed|won|lost|found|broke|fled) ", event) else ("",)
        begin = chance.choice((*timed, "", "Good news: " if good else "Bad news: "))
        text = draw.fill(event, COMMON)
        if text != event:  # what is always said the same way belongs to all splits
            draw.words.append(text)
        return draw.fill(begin, COMMON) + text + "."
    lists = dict(COMMON)
    rising, falling = (words.BLESSINGS, words.CURSES) if good else (words.CURSES, words.BLESSINGS)
    # What is named goes into the draw's words with its direction.
    lists |= {"rose2": words.RISE, "fell2": words.FALL}
    template = chance.choice(_NEWS)
    name = chance.choice(rising if "{up_good}" in template else falling)
    lists |= {"up_good": [name], "down_bad": [name]}
    draw.words.append(name)
    text = draw.fill(template, lists)
    draw.words.append(text.split()[-1])
    begin = f"In {chance.choice(lists['month'])}, " if " is " not in text and chance.random() < 0.3 else ""
    return begin + text
