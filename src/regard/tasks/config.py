"""The configuration of a training run: one TOML file, read into frozen dataclasses.

Every key also goes on the command line, as `optim.lr=3e-4`. The types below are the only description there is:
what a key is called, what it may hold and what it is when nothing is said.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from regard.core.shapes import InputError
from regard.tasks.atomic import write_whole
from regard.tasks.files import shown

Config = TypeVar("Config")
MOST = 1 << 20  # bytes of a configuration; what is larger is another file by mistake


@dataclass(frozen=True)
class Range:
    """low ≤ value ≤ high, or < where an end is open."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    def __contains__(self, value: float) -> bool:
        above = value > self.low if self.open_low else value >= self.low
        return above and (value < self.high if self.open_high else value <= self.high)

    def __str__(self) -> str:
        low, high = (f"{end:,}" if isinstance(end, int) else f"{end:g}" for end in (self.low, self.high))
        low = "" if self.low == -math.inf and not self.open_low else f"{low} {'<' if self.open_low else '≤'} "
        high = "" if self.high == math.inf and not self.open_high else f" {'<' if self.open_high else '≤'} {high}"
        return f"{low}value{high}"


# Nothing is without end: a number that is too large is a mistake, and would fail far from where it was written.
Count = Annotated[int, Range(1, 2**31 - 1)]
Whole = Annotated[int, Range(0, 2**32 - 1)]
Size = Annotated[int, Range(1, 2**16)]
Width = Annotated[int, Range(0, 2**16)]
Layers = Annotated[int, Range(1, 1000)]
Length = Annotated[int, Range(1, 2**20)]
Share = Annotated[float, Range(0.0, 1.0, open_high=True)]
Positive = Annotated[float, Range(0.0, math.inf, open_low=True, open_high=True)]
NotNegative = Annotated[float, Range(0.0, math.inf, open_high=True)]


@dataclass(frozen=True)
class Model:
    """Sizes and parts. Which of them matter depends on the kind."""

    kind: Literal["transformer", "rnn", "attentive", "autoencoder"] | None = None  # left out: what suits the task
    d: Size = 256
    heads: Size = 4
    layers: Layers = 4
    hidden: Size | None = None  # of the feed-forward layer, or an RNN's state; left out: 4 d, or d
    position: Literal["sinusoidal", "learned", "rotary", "alibi"] = "sinusoidal"
    score: str = "auto"  # scaled dot, and additive where an RNN attends
    normalizer: str = "softmax"
    tied: bool = True  # the output layer is the embedding
    cell: Literal["rnn", "gru", "lstm"] = "gru"
    bidirectional: bool = True  # an RNN reads the source from both ends
    slots: Size = 8  # of an autoencoder's latent: so many vectors ...
    latent: Size = 64  # ... of so many numbers
    feeding: bool = False  # each step of an attentive RNN also reads what the step before it attended to
    letters: Width = 0  # of what an RNN that tags reads in each word's letters; 0: it knows words only


@dataclass(frozen=True)
class Data:
    train: tuple[str, ...]  # one file, or two that are aligned line by line
    valid: tuple[str, ...] = ()
    tokenizer: Literal["word", "bpe", "bytes"] | None = None  # left out: words to fill in, BPE for all else
    lowercase: bool = False
    vocabulary: Count = 8000
    tokens: Count = 4096  # in a batch, padding included
    longest: Length = 256  # a longer example is left out
    vectors: tuple[str, ...] = ()  # a file of pretrained word vectors to read by: GloVe or word2vec
    frozen: bool = True  # the vectors stay as they are, so that words which training never saw keep their meaning
    mask: Share = 0.15  # of the words: hidden (fill, and tag by letters), or dropped, hidden and swapped (denoise)


@dataclass(frozen=True)
class Optim:
    lr: Positive = 5e-4
    warmup: Whole | None = None  # steps; left out: 400, or a tenth of all steps where that is less
    decay: Literal["cosine", "linear", "root", "constant"] = "cosine"
    betas: tuple[Share, Share] = (0.9, 0.98)
    weight_decay: NotNegative = 0.01
    label_smoothing: Share = 0.1
    dropout: Share = 0.1
    rdrop: NotNegative = 0.0  # how much two readings of a batch, each with its own dropout, are made to agree
    clip: Positive | None = 1.0  # the gradient's norm; none: never
    accumulate: Count = 1  # batches before a step


@dataclass(frozen=True)
class Schedule:
    steps: Count | None = None  # left out: 40 passes over the data, but 300 at least and 20,000 at most
    minutes: Positive | None = None  # it stops after so many, at whatever step that is
    evaluate: Count = 500  # every so many steps
    patience: Count | None = None  # evaluations without improvement before it stops
    average: Whole = 0  # of how many of the last checkpoints the final weights are the mean; 0: the best as it is
    written: Whole = 200  # validation examples whose answers are written out and scored; the loss is of all


@dataclass(frozen=True)
class Checkpoints:
    every: Count = 500  # steps
    keep: Count = 3


@dataclass(frozen=True)
class Machine:
    """Where it runs. A run may be resumed on another one."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["float32", "bfloat16"] = "float32"
    parallel: Literal["ddp", "fsdp"] = "ddp"  # where torchrun starts several processes


@dataclass(frozen=True)
class Card:
    """What the model's README.md shall say that training cannot know."""

    title: str = ""
    data: str = ""  # where the data come from, with the attribution that they ask for
    licence: str = ""
    limits: str = ""


@dataclass(frozen=True)
class Run:
    task: Literal["tag", "classify", "translate", "fill", "denoise", "generate"]
    data: Data
    seed: Whole = 0
    model: Model = field(default_factory=Model)
    optim: Optim = field(default_factory=Optim)
    schedule: Schedule = field(default_factory=Schedule)
    checkpoint: Checkpoints = field(default_factory=Checkpoints)
    machine: Machine = field(default_factory=Machine)
    card: Card = field(default_factory=Card)


def read(path: Path | str, overrides: Sequence[str] = (), into: type[Config] = Run) -> Config:
    """The configuration in a file, with `section.key=value` from the command line put over it."""
    try:
        with open(path, "rb") as file:
            raw = file.read(MOST + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a configuration in TOML") from error
    if len(raw) > MOST:
        raise InputError(f"{path}: larger than 1 MiB; expected a configuration in TOML")
    try:
        table = tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}; TOML is always UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    return resolve(into, table, overrides, str(path))


def resolve(cls: type[Config], table: dict[str, Any], overrides: Sequence[str] = (), source: str = "table") -> Config:
    """The same from a table that was read already; `source` begins the messages about it."""
    given = _values(cls, table, source, ())
    for override in overrides:
        _override(cls, given, override)
    return _built(cls, given, source, ())


def to_toml(config: Any) -> str:
    """The configuration, written out; `read` gives it back. What is None has no line."""
    lines = _lines(config, ())
    return "\n".join(lines[1:] if lines[:1] == [""] else lines) + "\n"


def write(path: Path | str, config: Any) -> None:
    write_whole(Path(path), to_toml(config).encode("utf-8"))


def keys(cls: type = Run, section: tuple[str, ...] = ()) -> list[tuple[str, str, str | None]]:
    """Every key, what it may hold, and what it is where nothing is said (None: it must be given)."""
    found: list[tuple[str, str, str | None]] = []
    types = _types(cls)
    for each in fields(cls):
        hint, where = types[each.name], (*section, each.name)
        if is_dataclass(hint) and isinstance(hint, type):
            found += keys(hint, where)
        else:
            default = None if each.default is MISSING else "none" if each.default is None else _text(each.default)
            found.append((".".join(where), _said(hint), default))
    return found


# Names


def _types(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls, include_extras=True)
    return {each.name: hints[each.name] for each in fields(cls)}


def _type_of(cls: type, name: str, source: str, section: tuple[str, ...]) -> Any:
    types = _types(cls)
    if name in types:
        return types[name]
    near = get_close_matches(name[:100], types, n=1)
    # A key without its section, or in the wrong one, is the mistake that is made most.
    elsewhere = [] if near or section else [f"{s}.{name}" for s, t in types.items() if name in _keys(t)]
    meant = [".".join((*section, key)) for key in near] or elsewhere
    hint = f"did you mean {meant[0]}? " if meant else ""
    of = f"[{'.'.join(section)}]" if section else "the top level"
    said = name if name.isprintable() and len(name) <= 60 else shown(name)
    raise InputError(f"{source}: {'.'.join((*section, said))}: unknown key; {hint}{of} has: {', '.join(types)}")


def _keys(hint: Any) -> list[str]:
    return list(_types(hint)) if is_dataclass(hint) and isinstance(hint, type) else []


# From a table to dataclasses: nested dicts of checked values first, so that the command line can change them


def _values(cls: type, table: dict[str, Any], source: str, section: tuple[str, ...]) -> dict[str, Any]:
    found = {}
    for name, value in table.items():
        hint = _type_of(cls, name, source, section)
        where = ".".join((*section, name))
        if not is_dataclass(hint):
            found[name] = _checked(hint, value, f"{source}: {where}")
        elif isinstance(value, dict):
            found[name] = _values(hint, value, source, (*section, name))  # pyright: ignore[reportArgumentType]
        else:
            raise InputError(f"{source}: {where} is a section, not a value; its keys: {', '.join(_keys(hint))}")
    return found


def _override(cls: type, given: dict[str, Any], override: str) -> None:
    source = "command line"
    key, equals, text = override.partition("=")
    if not equals:
        raise InputError(f"{source}: {override}: expected section.key=value, such as optim.lr=3e-4")
    *sections, name = key.strip().split(".")
    for depth, section in enumerate(sections):
        hint = _type_of(cls, section, source, tuple(sections[:depth]))
        if not is_dataclass(hint):
            raise InputError(f"{source}: {key}: {'.'.join(sections[: depth + 1])} is a key, not a section")
        cls, given = hint, given.setdefault(section, {})  # pyright: ignore[reportAssignmentType]
    hint = _type_of(cls, name, source, tuple(sections))
    if is_dataclass(hint):
        raise InputError(f"{source}: {key} is a section, not a value; its keys: {', '.join(_keys(hint))}")
    given[name] = _parsed(hint, text, f"{source}: {key}")


def _built(cls: type[Config], given: dict[str, Any], source: str, section: tuple[str, ...]) -> Config:
    arguments = {}
    types = _types(cls)
    for each in fields(cls):  # pyright: ignore[reportArgumentType]
        hint, where = types[each.name], (*section, each.name)
        if is_dataclass(hint):
            arguments[each.name] = _built(hint, given.get(each.name, {}), source, where)  # pyright: ignore[reportArgumentType]
        elif each.name in given:
            arguments[each.name] = given[each.name]
        elif each.default is MISSING and each.default_factory is MISSING:
            key = ".".join(where)
            raise InputError(
                f"{source}: {key} is missing; expected {_said(hint)}, in the file or as {key}=… on the command line"
            )
    return cls(**arguments)


# Types


def _bare(hint: Any) -> tuple[Any, Range | None, bool]:
    """A type without its range and its None."""
    if get_origin(hint) in (Union, UnionType):
        (rest,) = (each for each in get_args(hint) if each is not NoneType)
        return *_bare(rest)[:2], True
    if get_origin(hint) is Annotated:
        kind, limits = get_args(hint)
        return kind, limits, False
    return hint, None, False


def _said(hint: Any) -> str:
    """A type in the words of a message."""
    kind, limits, optional = _bare(hint)
    if get_origin(kind) is Literal:
        words = f"one of {', '.join(map(repr, get_args(kind)))}"
    elif get_origin(kind) is tuple:
        items = get_args(kind)
        words = f"a list of {_said(items[0])}" if items[-1] is ... else f"a list of {len(items)}: {_said(items[0])}"
    else:
        words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}[kind]
    return words + (f" ({limits})" if limits else "") + (", or none" if optional else "")


def _checked(hint: Any, value: Any, where: str) -> Any:
    """A value of a TOML file, which has types already: 3 may stand for 3.0, and "none" for None."""
    kind, limits, optional = _bare(hint)
    if optional and value == "none":
        return None
    wrong = InputError(f"{where} = {_short(value)}: expected {_said(hint)}")
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            near = get_close_matches(str(value)[:100], [str(choice) for choice in get_args(kind)], n=1)
            raise InputError(f"{wrong}; did you mean {near[0]!r}?") if near else wrong
        return value
    if get_origin(kind) is tuple:
        items = get_args(kind)
        if not isinstance(value, list) or (items[-1] is not ... and len(value) != len(items)):
            raise wrong
        each = [items[0]] * len(value) if items[-1] is ... else items
        return tuple(_checked(h, v, f"{where}[{i}]") for i, (h, v) in enumerate(zip(each, value, strict=True)))
    if kind is float and type(value) is int:
        try:
            value = float(value)
        except OverflowError:
            raise wrong from None
    if type(value) is not kind or (limits is not None and value not in limits):
        raise wrong
    if kind is str:
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:  # a file name on the command line that is not UTF-8
            raise InputError(f"{where} = {value[:200]!a}: not Unicode; rename the file") from None
    return value


def _parsed(hint: Any, text: str, where: str) -> Any:
    """A value of the command line, which is a text: its type is the key's."""
    kind, _, optional = _bare(hint)
    if optional and text.strip().lower() == "none":
        return None
    return _checked(hint, _items(kind, text, where) if get_origin(kind) is tuple else _plain(kind, text), where)


def _plain(kind: Any, text: str) -> Any:
    """The text itself where it is not of this kind: the check that follows refuses it in its own words."""
    if kind is bool:
        return {"true": True, "false": False}.get(text.strip().lower(), text)
    if kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _items(kind: Any, text: str, where: str) -> list[Any]:
    """Items between commas, `0.9,0.98`; or as in TOML, `["a, b", "c"]`, where an item has a comma."""
    text = text.strip()
    if text.startswith("["):
        try:
            table = tomllib.loads(f"items = {text}")
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}={_short(text)}: not a list as in TOML: {error}") from None
        if set(table) == {"items"}:
            return table["items"]
    parts = [part.strip() for part in text.split(",")] if text else []
    items = get_args(kind)
    if items[-1] is not ... and len(parts) != len(items):
        return parts  # refused by the check that follows
    hints = [items[0]] * len(parts) if items[-1] is ... else items
    return [_plain(_bare(hint)[0], part) for hint, part in zip(hints, parts, strict=True)]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# To TOML


def _lines(config: Any, section: tuple[str, ...]) -> list[str]:
    plain, tables = [], []
    for each in fields(config):
        value = getattr(config, each.name)
        if is_dataclass(value):
            tables += _lines(value, (*section, each.name))
        elif value is not None:
            plain.append(f"{each.name} = {_text(value)}")
        elif each.default is not None:  # without a line it would come back as its default
            plain.append(f'{each.name} = "none"')
    return (["", f"[{'.'.join(section)}]"] if section else []) + plain + tables


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"[{', '.join(map(_text, value))}]"
