"""Scores and normalizers by name, as people type them: gaussian:0.1, entmax:1.5, sigmoid:-2."""

from __future__ import annotations

import difflib
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from regard import normalizers as N
from regard import scores as S
from regard.core import normalizers, scores
from regard.core.shapes import InputError
from regard.normalizers import Normalizer
from regard.scores import Score


@dataclass(frozen=True)
class Named:
    """How to make a mechanism; `number` is what may follow the colon, `default` what it is without one."""

    make: Callable[..., Any]
    number: str | None = None
    default: float | None = None  # None: the mechanism's own
    whole: bool = False


# What a constructor's parameters mean here. Whatever else a class takes is the number after the colon.
WIDTHS = {"d": 0, "d_q": 0, "d_k": 1}  # which of (d_q, d_k) it is given
LEFT_ALONE = ("heads", "sink")
DEFAULTS: dict[str, float] = {"hidden": 16, "sigma": 1.0, "cap": 50.0}  # where the class has none


def _named(cls: type) -> Named:
    """Read off the constructor, so that a new class needs no entry anywhere."""
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    }
    inside = {"score": S.ScaledDot()} if "score" in parameters else {}
    free = [name for name in parameters if name not in (*WIDTHS, *LEFT_ALONE, *inside)]
    number = free[0] if free else None
    default = None
    if number is not None:
        own = parameters[number].default
        default = DEFAULTS.get(number) if own is inspect.Parameter.empty else own

    def make(*widths_and_number: Any) -> Any:
        given = {name: widths_and_number[place] for name, place in WIDTHS.items() if name in parameters}
        if number is not None:
            given[number] = widths_and_number[-1]
        return cls(**inside, **given)

    return Named(make, number, default, whole=number == "hidden")


def _table(module: ModuleType, base: type) -> dict[str, Named]:
    """Every public class of a module by its name as people type it: ScaledDot is scaled-dot."""
    classes = (getattr(module, name) for name in module.__all__)
    return {
        re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "-", cls.__name__).lower(): _named(cls)
        for cls in classes
        if isinstance(cls, type) and issubclass(cls, base) and cls is not base
    }


SCORES = _table(scores, Score)
NORMALIZERS = _table(normalizers, Normalizer) | {"softmax-sink": Named(lambda: N.Softmax(sink=True))}


def make_score(text: str, d_q: int, d_k: int, seed: int = 0) -> Score:
    """The score that `text` names. One with parameters is untrained, but the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _make("score", SCORES, text, d_q, d_k)


def make_normalizer(text: str) -> Normalizer:
    """The normalizer that `text` names, as after training: gumbel-hard takes the largest score."""
    return _make("normalizer", NORMALIZERS, text).eval()


def nearest(name: str, known: Iterable[str]) -> str:
    """What a message says after a name that nobody knows: the nearest one, and all of them."""
    known = list(known)
    short = [k for k in known if len(k) <= 100]  # names may come from a file
    close = difflib.get_close_matches(name[:100].lower(), [k.lower() for k in short], n=1)
    hint = next(
        (f"did you mean {k if k.isprintable() else ascii(k)}? " for k in short if close and k.lower() == close[0]), ""
    )
    listed = [k if k.isprintable() else ascii(k) for k in known[:30]]
    listed = [k if len(k) <= 60 else f"{k[:60]}…" for k in listed]
    return f"{hint}there is: {', '.join(listed)}{f' and {len(known) - 30} more' if len(known) > 30 else ''}"


def formula(part: Score | Normalizer) -> str:
    """What a mechanism computes: the first clause of its documentation, where s is the score and w the weight."""
    return re.split(r"[:.]\s", " ".join((inspect.getdoc(part) or "").split()) + " ", maxsplit=1)[0].strip()


def usages(table: Mapping[str, Named]) -> str:
    """All names of a table with the numbers they take, for help texts."""
    return ", ".join(name if named.number is None else f"{name}[:{named.number}]" for name, named in table.items())


def _make(kind: str, table: Mapping[str, Named], text: str, *widths: int) -> Any:
    name, colon, number = text.strip().partition(":")
    name = name.strip().lower().replace("_", "-")
    if name not in table:
        raise InputError(f"no {kind} is called {name!r}; {nearest(name, table)}")
    named = table[name]
    if named.number is None:
        if colon:
            raise InputError(f"{kind} {text!r}: {name} takes no number; write {name}")
        return named.make(*widths)
    return named.make(*widths, _number(f"{kind} {text!r}", name, number, named) if colon else named.default)


def _number(what: str, name: str, text: str, named: Named) -> float:
    try:
        number = int(text) if named.whole else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (named.whole and number < 1):
        kind = "a whole number from 1" if named.whole else "a number"
        example = named.default if named.default is not None else 0.5
        raise InputError(f"{what}: {named.number} is {text!r}; expected {kind}, such as {name}:{example}")
    return number
