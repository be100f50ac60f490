"""What may be asked, and what is answered: the types from which the API's documentation is made.

They are as narrow as what is accepted, so that a request which fits them is answered: names of mechanisms with
their numbers, sizes that bound the work.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
)
from pydantic_core import CoreSchema, core_schema

from regard.cli.sentence import MASKS, mask_of
from regard.core.shapes import InputError
from regard.mechanisms import NORMALIZERS, SCORES, Named, make_normalizer, make_score

SENTENCE, OPENED, TEXT = 1_000, 400, 5_000  # characters of a sentence, of one with every number, of a text
TASKS = ("translate", "tag", "classify", "fill", "denoise", "generate")

# The numbers that follow a name, as people write them: four digits before and behind the point.
COUNT = r"([1-9]|[1-3][0-9])"
POSITIVE = r"(0\.[0-9]{0,3}[1-9]|[1-9][0-9]{0,3}(\.[0-9]{1,4})?)"
SIGNED = r"-?[0-9]{1,4}(\.[0-9]{1,4})?"
ABOVE_ONE = r"(1\.[0-9]{0,3}[1-9]|([2-9]|[1-9][0-9])(\.[0-9]{1,4})?)"
DIGITS, STEP = r"[0-9]{1,4}", r"[1-9][0-9]{0,3}"
NUMBERS = {"hidden": COUNT, "sigma": POSITIVE, "cap": POSITIVE, "temperature": POSITIVE, "alpha": ABOVE_ONE}
WIDTHS = {
    "window": (DIGITS, DIGITS),
    "dilated": (DIGITS, DIGITS, STEP),
    "strided": (STEP,),
    "blocks": (STEP,),
}


def pattern_of(table: dict[str, Named]) -> str:
    """Every name of a table, with the number that may follow it."""
    names = []
    for name, named in table.items():
        number = "" if named.number is None else f"(:{NUMBERS.get(named.number, SIGNED)})?"
        names.append(re.escape(name).replace(r"\-", "-") + number)
    return f"^({'|'.join(names)})$"


def _masks() -> str:
    names = [name + (f":{','.join(WIDTHS[name])}" if count else "") for name, (_, count) in MASKS.items()]
    return f"^({'|'.join(names)})$"


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"half a surrogate pair at character {error.start}; expected Unicode text") from None
    return text


@dataclass(frozen=True)
class Checked:
    """A text that fits a pattern; `why` says of another one what is wrong with it."""

    pattern: str
    longest: int
    example: str
    why: Callable[[str], str]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        said = {"type": "string", "pattern": self.pattern, "minLength": 1, "maxLength": self.longest}
        return {**said, "examples": [self.example]}

    def check(self, text: str) -> str:
        if len(text) > self.longest:
            raise ValueError(f"{len(text):,} characters; expected at most {self.longest:,}")
        if not re.search(self.pattern, text) or (self.pattern.endswith("$") and text.endswith("\n")):
            raise ValueError(self.why(text))
        return _whole(text)


def _refused(make: Callable[[str], Any], example: str) -> Callable[[str], str]:
    """Why a name is refused, its own maker says best."""

    def why(text: str) -> str:
        try:
            make(text)
        except InputError as error:
            return str(error)
        return f"{text[:40]!r}: expected plain numbers of at most four digits, such as {example}"

    return why


_score = _refused(lambda text: make_score(text, 4, 4), "gaussian:0.5")
_word = "holds no word; expected words, such as 'This is a cat'"
_blank = "has no blank; write ____ where a word is missing"
ScoreName = Annotated[str, Checked(pattern_of(SCORES), 40, "gaussian:0.5", _score)]
NormalizerName = Annotated[
    str, Checked(pattern_of(NORMALIZERS), 40, "entmax:1.5", _refused(make_normalizer, "entmax:1.5"))
]
MaskName = Annotated[str, Checked(_masks(), 40, "window:1,1", _refused(mask_of, "window:1,1"))]
# What is no white space to str.split, said so that Python, JavaScript and whoever reads the schema understand the same.
LETTER = r"[^\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
Words = Annotated[str, Checked(LETTER, SENTENCE, "This is a cat", lambda _: _word)]
FewWords = Annotated[str, Checked(LETTER, OPENED, "This is a cat", lambda _: _word)]
Blanks = Annotated[str, Checked(r"_{2,}|<mask>|\[MASK\]", TEXT, "The cat ____ the mouse.", lambda _: _blank)]
# To JSON 2.0 is a whole number too.
ROUND = BeforeValidator(lambda x: int(x) if isinstance(x, float) and x.is_integer() else x)
Text = Annotated[str, AfterValidator(_whole), Field(max_length=TEXT, examples=["The black cat ate the mouse."])]
Name = Annotated[
    str,
    AfterValidator(_whole),
    Field(min_length=1, max_length=64, description="One of /api/models; else the first of its task."),
]
Form = Literal["json", "weights", "html", "png", "svg", "pdf"]
Theme = Literal["light", "dark"]


class Strict(BaseModel):
    """No field more than is known, no text where a number belongs."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Mechanism(Strict):
    score: ScoreName = "scaled-dot"
    normalizer: NormalizerName = "softmax"


class Attend(Strict):
    """A sentence of random vectors (the same for the same seed) under one mechanism, or several to compare."""

    text: Words
    mechanisms: Annotated[list[Mechanism], Field(min_length=1, max_length=4)] = [Mechanism()]
    mask: MaskName | None = None
    width: Annotated[int, Field(ge=1, le=16, description="Numbers per word."), ROUND] = 4
    seed: Annotated[int, Field(ge=0, le=2**31 - 1), ROUND] = 0


class Walk(Strict):
    """One attention, with every number on the way."""

    text: FewWords
    score: ScoreName = "scaled-dot"
    normalizer: NormalizerName = "softmax"
    mask: MaskName | None = None
    form: Literal["scalar", "channels", "matrices"] = "matrices"
    layout: Literal["rows", "columns"] = "rows"
    width: Annotated[int, Field(ge=1, le=8), ROUND] = 4
    seed: Annotated[int, Field(ge=0, le=2**31 - 1), ROUND] = 0


class Read(Strict):
    """A text for a model that gives labels."""

    text: Text
    model: Name | None = None
    show: Annotated[bool, Field(description="With the attention that led to the answer.")] = True


class Fill(Read):
    """A text with blanks, written ____."""

    text: Blanks
    n_best: Annotated[int, Field(ge=1, le=20, description="Words for each blank."), ROUND] = 5


class Write(Read):
    """A text for a model that writes another one."""

    beam: Annotated[int, Field(ge=1, le=8, description="Beginnings that are followed at a time; 1: greedy."), ROUND] = 4
    n_best: Annotated[int, Field(ge=1, le=8), ROUND] = 1


class Translate(Write):
    """A text to translate."""

    to: (
        Annotated[str, Field(min_length=1, max_length=32, description="One of the languages of /api/models.")] | None
    ) = None


class Generate(Read):
    """A text that goes on."""

    temperature: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False, description="0: nothing is drawn.")] = 0.8
    top_k: Annotated[int, Field(ge=1, le=1000), ROUND] | None = None
    top_p: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 0.95
    length: Annotated[int, Field(ge=1, le=256, description="Pieces at most."), ROUND] | None = None
    n_best: Annotated[int, Field(ge=1, le=8), ROUND] = 1
    seed: Annotated[int, Field(ge=0, le=2**31 - 1, description="The same text for the same seed."), ROUND] | None = None


# Answers


class Labelled(BaseModel):
    word: str
    tag: str
    confidence: float


class Candidate(BaseModel):
    word: str
    confidence: float


class Other(BaseModel):
    output: str
    confidence: float


class Answered(BaseModel):
    """What the verb's --json prints; `attention` is what the page draws."""

    model: str
    task: str
    text: str
    output: str
    confidence: float
    others: list[Other] | None = None
    words: list[Labelled] | None = None  # of tag
    blanks: list[list[Candidate]] | None = None  # of fill
    unknown: list[str]
    cut: bool
    attention: dict[str, Any] | None


class Map(BaseModel):
    name: str
    weights: list[list[float]]


class Weights(BaseModel):
    """`as=weights`: one row for each query, one number for each key."""

    title: str
    note: str
    rows: list[str]
    columns: list[str]
    maps: list[Map]


class Part(BaseModel):
    name: str
    number: str | None
    default: float | None
    formula: str


class Mechanisms(BaseModel):
    scores: list[Part]
    normalizers: list[Part]
    masks: list[str]


class Known(BaseModel):
    name: str
    task: str
    kind: str
    labels: list[str]
    languages: list[str]
    about: str
    shipped: bool


class Health(BaseModel):
    status: str
    version: str
    models: int
    inside: int
    room: int


class Refusal(BaseModel):
    error: str
