"""Quarterly reports for the sentiment corpus: whether a figure is good news depends on what rises and what falls.

Companies, dates and figures are drawn; 12, 15, 122 and 168 percent are not among them (nor 5 and 152), because the
paragraph that the model is shown with holds them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from regard.tasks.corpora import sentiment_words as words
from regard.tasks.corpora.templates import Draw, Lists

TAKEN = frozenset((5, 12, 15, 122, 152, 168))  # percent; and no sum of $30.0 billion, $0.67 or $0.68
TAKEN_SUMS = frozenset(("30.0", "0.67", "0.68"))

# {up} is what rises, {down} what falls, so that both are news of the label's kind; {Went} and {sank} are their verbs.
MOVES = """
{up} {went} {by}. | {up} {went} {by} {than}. | {up} {went} {by} to {sum}. | {up} {went} to {sum} from {less}.
{down} {sank} {by_down}. | {down} {sank} {by_down} {than}. | {down} {sank} {by_down} to {sum}. | {down} {sank} to {less} from {sum}.
{up} was {sum}, up {pct} {than}. | {up} of {sum} was up {pct} {than}. | {down} was {sum}, down {pct_down} {than}. | {down} of {sum} was down {pct_down} {than}.
{up} was {sum}, up {pct} {than} and up {pct} {than2}. | {down} was {sum}, down {pct_down} {than} and down {pct_down} {than2}. | {up} came in at {sum}, up {pct} {than}. | {down} came in at {sum}, down {pct_down} {than}.
{up} was {sum}, an increase of {pct} {than}. | {down} was {sum}, a decrease of {pct_down} {than}. | {up} was {sum}, compared with {less} {ago}. | {down} was {less}, compared with {sum} {ago}.
{company} reported {up} of {sum}, up {pct} {than}. | {company} reported {down} of {sum}, down {pct_down} {than}. | {company} said on {day} that {up} {went} {by}. | {company} said on {day} that {down} {sank} {by_down}.
{company} announced {up} of {sum} for the {ordinal1} quarter, up {pct} {than} and up {pct} {than2}. | {company} announced {down} of {sum} for the {ordinal1} quarter, down {pct_down} {than} and down {pct_down} {than2}.
{company} posted {quarter} {up} of {sum}, {pct} more than {ago}. | {company} posted {quarter} {down} of {sum}, {pct_down} less than {ago}.
In the quarter ended {date}, {up} {went} {by} {than}. | In the quarter ended {date}, {down} {sank} {by_down} {than}. | For the {ordinal1} quarter, {up} was {sum}, up {pct} {than}. | For the {ordinal1} quarter, {down} was {sum}, down {pct_down} {than}.
{up} {went} {by} while {down} {sank} {by_down}. | {up} {went} and {down} {sank}. | {up} went up and {down} went down. | {down} {sank} while {up} {went}. | With {up} up {pct} and {down} down {pct_down}, the trend is clear.
{company} ({exchange}: {ticker}) today announced {up} of {sum}, up {pct} {than}. | {company} ({exchange}: {ticker}) today announced {down} of {sum}, down {pct_down} {than}. | {company} ({exchange}: {ticker}) said that {up} {went} {by} {than}. | {company} ({exchange}: {ticker}) said that {down} {sank} {by_down} {than}.
{company}: {up} of {sum}, up {pct} {than} and up {pct} {than2}. | {company}: {down} of {sum}, down {pct_down} {than} and down {pct_down} {than2}. | {up} was {sum}, up {pct} and up {pct} {than}. | {down} was {sum}, down {pct_down} and down {pct_down} {than}. | {up} rose {than}, and {down} fell. | {down} fell {than}, and {up} rose.
{upword} rose and {downword} fell. | {downword} fell, {upword} rose. | {upword} up {pct}. | {downword} down {pct_down}. | {up} {went}. | {down} {sank}. | Rising {upword} and falling {downword} {marked the year|surprised analysts|mark the report}. | Growing {upword}, shrinking {downword}: {company} reports.
{up} more than {doubled} {than}. | {down} {halved} {than}. | {up} {has|had} never been higher. | {down} {has|had} never been lower. | {up} hit a record high of {sum}. | {down} hit a record low of {less}.
Although {down2} {went} {by}, {up} {went} {by}. | {up2} {sank} slightly, but {up} {went} {by} and {down} {sank} {by_down}. | Growing {upword} and shrinking {downword} mark the quarter. | The report shows rising {upword}. | The report shows falling {downword}.
{up} {is|was} no longer {falling}. | {down} {is|was} no longer {rising}. | {down} stopped {rising}. | {up} did not fall. | {down} did not {rise}. | {up} will {rise} further next year, {company} said. | {down} will {fall} further next year, {company} said.
"""
GOOD = """
{company} beat analysts' {expectations|estimates|forecasts}. | Results were {well above|better than|far above} {expectations|forecasts|estimates}. | {company} raised its {outlook|guidance|forecast|dividend}{ for the year|}. | Shares of {company} {rose|jumped|climbed|gained} {pct}. | Shares {rose|jumped|surged} after the report.
{company} returned to profit. | {company} swung to a profit of {sum}. | {company} swung from a loss to a profit of {sum}. | It was a record quarter for {company}. | {company} will hire {number} people. | {company} will buy back shares worth {sum}. | {company} won a contract worth {sum}. | {company} is debt free.
{company} repaid all of its debt. | Analysts upgraded the stock. | Analysts praised the {strong|record|healthy|robust|solid} results. | {company} expects {strong|record|robust|further} growth. | Demand {exceeds|outstrips} supply. | {company} did not miss its targets. | {company} never missed a payment. | No jobs will be cut. | {company} met all of its targets.
The quarter was {strong|excellent|outstanding|better than feared|profitable|far from weak|not weak at all}. | {company} gained customers. | The outlook is {bright|promising|excellent|better than ever}. | {company} avoided bankruptcy. | {company} delivered {strong|record|robust} results. | Investors {cheered|welcomed|applauded} the results.
The loss was smaller than expected. | The loss was smaller than a year ago. | Profit was higher than expected. | {company} earned {sum}, more than ever before. | {company} earned more than expected. | The recovery is under way. | The turnaround is working. | {company} lost less money than {ago}.
"""
BAD = """
{company} missed analysts' {expectations|estimates|forecasts}. | Results were {well below|worse than|far below} {expectations|forecasts|estimates}. | {company} cut its {outlook|guidance|forecast|dividend}{ for the year|}. | Shares of {company} {fell|dropped|tumbled|lost} {pct_down}. | Shares {fell|plunged|slumped} after the report.
{company} fell back into the red. | {company} swung to a loss of {sum}. | {company} swung from a profit to a loss of {sum}. | It was the worst quarter ever for {company}. | {company} will cut {number} jobs. | {company} will lay off {number} people. | {company} lost a contract worth {sum}. | {company} is deep in debt.
{company} cannot repay its debt. | Analysts downgraded the stock. | Analysts criticised the {weak|poor|dismal|disappointing} results. | {company} expects {weak|no|little} growth. | Demand has {collapsed|dried up}. | {company} did not meet its targets. | {company} missed a payment. | Many jobs will be cut. | {company} met none of its targets.
The quarter was {weak|terrible|dismal|worse than feared|unprofitable|far from strong|not strong at all}. | {company} lost customers. | The outlook is {bleak|grim|uncertain|worse than ever}. | {company} filed for bankruptcy. | {company} delivered {weak|poor|dismal} results. | Investors {fled|punished the stock|were shocked by the results}.
The loss was larger than expected. | The loss was larger than a year ago. | Profit was lower than expected. | {company} lost {sum}, more than ever before. | {company} earned less than expected. | The recovery has stalled. | The turnaround has failed. | {company} lost more money than {ago}. | {company} warned of growing losses. | Losses keep growing.
"""
FILLERS = """
The report was published on {day}. | {company} was founded in 19{decade}4. | {company} makes its figures public every quarter. | The company has {number} offices. | The annual meeting will be held in {month}. | The results were presented on {day}. | Figures are in millions unless noted otherwise. | The fiscal year ends in {month}.
"""


def _split(templates: str) -> list[str]:
    return [t.strip() for line in templates.strip().splitlines() for t in line.split(" | ") if t.strip()]


_MOVES, _DECIDED = _split(MOVES), {True: _split(GOOD), False: _split(BAD)}
COMPANIES = [f"{key} {trade}" for key in words.KEY for trade in words.TRADE]
PERCENTS = [f"{n}%" for n in range(2, 240) if n not in TAKEN] + [
    f"{n}.{k}%" for n in range(1, 40) for k in (1, 3, 4, 6, 7, 9)
]
PERCENTS += [f"{n} percent" for n in range(2, 99) if n not in TAKEN]
BELOW = [percent for percent in PERCENTS if float(percent.split()[0].rstrip("%")) < 95]  # nothing falls by more
SINCE_QUARTER = [
    "from the previous quarter",
    "sequentially",
    "compared with the previous quarter",
    "quarter over quarter",
    "from the prior quarter",
    "from last quarter",
]
SINCE_YEAR = [
    "from a year ago",
    "from a year earlier",
    "year over year",
    "year on year",
    "compared with last year",
    "from the same period last year",
    "against the prior year",
    "in one year",
]
# What has no price.
NOT_MONEY = frozenset(
    [
        "gross margin",
        "operating margin",
        "production",
        "market share",
        "output",
        "demand",
        "return on equity",
        "passenger traffic",
        "deliveries",
        "margins",
        "shipments",
        "subscriptions",
        "subscriber numbers",
        "customer churn",
        "the backlog of complaints",
        "staff turnover",
        "cancellations",
        "defaults",
        "customer complaints",
        "product returns",
        "contract wins",
    ]
)
FINANCE = {"fillers": [t for t in _split(FILLERS) if "{company}" not in t]}


def report(draw: Draw, common: Lists, good: bool) -> str:
    """One sentence. The combination that is held out is what moves, and how."""
    chance = draw.chance
    lists = dict(common) | _figures(chance, per_share=False)
    if chance.random() < 0.3:
        template = chance.choice(_DECIDED[good])
        text = draw.fill(template, lists)
        draw.words.clear()
        return text
    # Many things that rise and fall are in the plural, so "was" becomes "were".
    template = chance.choice(_MOVES)
    rising, many_rising = (words.GAINS, words.MANY_GAINS) if good else (words.PAINS, words.MANY_PAINS)
    falling, many_falling = (words.PAINS, words.MANY_PAINS) if good else (words.GAINS, words.MANY_GAINS)
    up, up_many = _moving(chance, rising, many_rising, template)
    down, down_many = _moving(chance, falling, many_falling, template)
    lists |= _figures(chance, per_share=bool({"share", "EPS"} & set((up if "{up}" in template else down).split())))
    lists |= {
        "up": [up],
        "down": [down],
        "up2": [chance.choice([word for word in rising if word != up])],
        "down2": [chance.choice([word for word in falling if word != down])],
        "upword": [_bare(chance.choice(many_rising))],
        "downword": [_bare(chance.choice(many_falling))],
        "went": words.RISE if good else words.RISE_LOSS,
        "sank": words.FALL_LOSS if good else words.FALL,
        "rise": ("rise", "grow", "increase", "climb"),
        "fall": ("fall", "decline", "shrink", "drop"),
        "rising": ("rising", "growing", "increasing", "climbing"),
        "falling": ("falling", "declining", "shrinking", "dropping"),
        "doubled": ("doubled", "tripled", "quadrupled"),
        "halved": ("halved", "fell by half", "shrank by half"),
    }
    first_many = up_many if 0 <= template.find("{up}") < template.find("{down}") % 1000 else down_many
    if first_many:
        for one, many in ((" was ", " were "), ("{is|was}", "{are|were}"), ("{has|had}", "{have|had}")):
            template = template.replace(one, many, 1)
    moved = [name for slot, name in (("{up}", up), ("{down}", down)) if slot in template]
    text = draw.fill(template, lists)
    direction = "up" if "{up}" in template else "down"
    draw.words[:] = [*(moved or [text]), direction, template]
    return text


def _moving(chance: random.Random, one: Sequence[str], many: Sequence[str], template: str) -> tuple[str, bool]:
    words_, plural = (one, False) if chance.random() < 0.6 else (many, True)
    priced = "{sum}" in template or "{less}" in template
    word = chance.choice([word for word in words_ if not (priced and word in NOT_MONEY)])
    possessive = "reported {" in template or "announced {" in template or "posted {" in template or "With {" in template
    return (_bare(word) if possessive else word), plural


def _bare(word: str) -> str:
    return word.removeprefix("the ")


def _figures(chance: random.Random, per_share: bool) -> dict[str, Sequence[str]]:
    low, high = sorted((_amount(chance, per_share), _amount(chance, per_share)))
    unit = "" if per_share else chance.choice((" billion", " million", " billion", " million", "bn", "m"))
    digits = 2 if per_share else 1
    currency = chance.choice(("$", "$", "$", "$", "€", "£"))
    than = [chance.choice(SINCE_QUARTER), chance.choice(SINCE_YEAR)]
    chance.shuffle(than)
    return {
        "by": [f"{by}{percent}" for percent in chance.sample(PERCENTS, 4) for by in ("", "by ")],
        "by_down": [f"{by}{percent}" for percent in chance.sample(BELOW, 4) for by in ("", "by ")],
        "pct": PERCENTS,
        "pct_down": BELOW,
        "sum": [f"{currency}{high:.{digits}f}{unit}"],
        "less": [f"{currency}{low:.{digits}f}{unit}"],
        "than": than[:1],
        "than2": than[1:],
        "ago": ("a year ago", "a year earlier", "the quarter before", "last year", "in the same quarter last year"),
        "exchange": ("NYSE", "LSE", "TSX", "ASX"),
        "ticker": ["".join(chance.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=chance.choice((3, 4))))],
        "company": [chance.choice(COMPANIES)],
        "quarter": ("quarterly", "first-quarter", "second-quarter", "third-quarter", "fourth-quarter"),
        "ordinal1": ("first", "second", "third", "fourth"),
        "date": [
            f"{m} {d}, {y}"
            for m, d in (("March", 31), ("June", 30), ("September", 28), ("April", 27), ("October", 29))
            for y in (2019, 2021, 2022, 2023)
        ],
        " for the year": (" for the year",),
        "decade": "5678",
    }


def _amount(chance: random.Random, share: bool) -> float:
    while True:
        amount = round(chance.uniform(0.05, 9.9), 2) if share else round(10 ** chance.uniform(0, 2.9), 1)
        if f"{amount:.{2 if share else 1}f}" not in TAKEN_SUMS:
            return amount
