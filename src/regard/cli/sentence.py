"""A sentence made into numbers that can be checked by hand, and one attention over it: what walk and show share."""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard import masks
from regard.core.shapes import InputError
from regard.mechanisms import make_normalizer, make_score, nearest
from regard.normalizers import Normalizer
from regard.scores import Score
from regard.steps import Steps, step_by_step

MASKS: dict[str, tuple[Callable[..., masks.Mask], int]] = {  # and how many whole numbers follow the colon
    "causal": (masks.causal, 0),
    "window": (masks.window, 2),
    "dilated": (masks.dilated, 3),
    "strided": (masks.strided, 1),
    "blocks": (masks.blocks, 1),
}


@dataclass(frozen=True)
class Tour:
    """What was asked for, and all that came of it."""

    words: list[str]
    asked: dict[str, Any]  # score, normalizer, mask, form, layout, width, seed
    score: Score
    normalizer: Normalizer
    w: dict[str, Tensor]  # W_q, W_k, W_v
    steps: Steps


def take(
    text: str, score: str, normalizer: str, mask: str | None, form: str, layout: str, width: int, seed: int
) -> Tour:
    words = words_of(text)
    a = torch.stack([_random(f"{seed} {word}", width) for word in words])  # n d
    out = 1 if form == "scalar" else width
    w = {f"W_{x}": _random(f"{seed} W_{x}", width, out, spread=width**-0.5) for x in "qkv"}
    d_q = width if form == "matrices" else 1  # what one score sees of a word: a channel is a head of width 1
    score = f"additive:{width}" if score == "additive" else score
    score_, normalizer_ = rounded(make_score(score, d_q, d_q, seed)), rounded(make_normalizer(normalizer))
    with torch.no_grad():
        steps = step_by_step(
            a.mT if layout == "columns" else a,
            *w.values(),
            score=score_,
            normalizer=normalizer_,
            mask=mask_of(mask),
            seed=seed,
            channels=form == "channels",
            layout=layout,
        )
    asked = {"score": score, "normalizer": normalizer, "mask": mask, "form": form, "layout": layout}
    return Tour(words, {**asked, "width": width, "seed": seed}, score_, normalizer_, w, steps)


def words_of(text: str) -> list[str]:
    """Split at spaces, without the punctuation around a word."""
    words = [_bare(word) or word for word in text.split()]
    if not words:
        raise InputError('the text is empty; expected words, such as regard walk "This is a cat"')
    return words


def _bare(word: str) -> str:
    return word.strip("".join(c for c in word if unicodedata.category(c).startswith("P")))


def rounded(part: Any) -> Any:
    """The same mechanism, its parameters with one decimal."""
    for parameter in part.parameters():
        near = _one_decimal(parameter.data.double())
        # Rounded to nothing, a parameter would show nothing: 0.1 with its sign instead.
        parameter.data = near if near.any() else 0.1 * parameter.data.double().sign()
    return part


def _random(name: str, *shape: int, spread: float = 1.0) -> Tensor:
    """The same numbers for the same name."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode("utf-8", "surrogatepass")))
    return _one_decimal(spread * torch.randn(shape, generator=generator, dtype=torch.float64))


def _one_decimal(x: Tensor) -> Tensor:
    """So that what is printed is what is computed with. Dividing last gives the number nearest to 0.3."""
    return x.mul(10).round() / 10 + 0.0  # -0.0 + 0.0 is 0.0


def mask_of(text: str | None) -> masks.Mask | None:
    """window:1,2 -> masks.window(1, 2)"""
    if text is None:
        return None
    name, _, rest = text.partition(":")
    if name not in MASKS:
        raise InputError(f"no mask is called {name!r}; {nearest(name, MASKS)}")
    make, count = MASKS[name]
    numbers = rest.split(",") if rest else []
    if len(numbers) != count or not all(number.strip().isdecimal() for number in numbers):
        wants = f"{count} whole number{'s' * (count > 1)}" if count else "no number"
        raise InputError(f"mask {text!r}: {name} takes {wants}; write {name}{':' * (count > 0)}{','.join('1' * count)}")
    return make(*map(int, numbers))
