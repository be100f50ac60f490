"""What the page needs to walk through one attention itself: the inputs, every mechanism's parameters, and
torch's numbers to compare with."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from regard.core.normalizers import Entmax, GumbelHard, Hard, Identity, Normalizer, ReLU, Sigmoid, Softmax, Sparsemax
from regard.core.scores import (
    Additive,
    Biased,
    Bilinear,
    Dot,
    Exact,
    Gated,
    Gaussian,
    ScaledDot,
    Score,
    SoftCap,
    TanhSum,
    extent_of,
)
from regard.core.shapes import InputError
from regard.mechanisms import formula
from regard.see.labels import visible
from regard.steps import Steps


def walk_of(
    words: Sequence[str],
    steps: Steps,
    w: Mapping[str, Tensor] | None,
    scores: Mapping[str, Score],
    normalizers: Mapping[str, Normalizer],
    *,
    score: str,
    normalizer: str,
    checks: Mapping[tuple[str, str], Steps] | None = None,
) -> dict[str, Any]:
    """One attention of one sentence, opened. `w` are W_q, W_k, W_v by their letters, None where q, k and v are
    the words' vectors themselves; `scores` and `normalizers` are those a reader may choose from, among them the
    ones that made the steps. `checks` are the steps under others of these, by their names: what the page computes
    itself is compared with them."""
    if steps.a is None or steps.a.ndim != 2 or steps.scores.ndim != 2:
        raise InputError("a walk-through needs one sentence and one head: steps of a [n d], without channels")
    q, k = steps.q, steps.k
    return {
        "words": [visible(word) for word in words],
        "a": steps.a.tolist(),
        "identity": w is None,
        "W": None if w is None else {x: w[x].tolist() for x in "qkv"},
        "allowed": None if steps.allowed is None else steps.allowed.tolist(),
        "scores": {name: {**score_of(part, q, k), "formula": formula(part)} for name, part in scores.items()},
        "normalizers": {name: {**normalizer_of(part), "formula": formula(part)} for name, part in normalizers.items()},
        "score": score,
        "normalizer": normalizer,
        "torch": {"scores": steps.scores.tolist(), "weights": steps.weights.tolist(), "b": steps.b.tolist()},
        "checks": _checks(checks or {}),
    }


def _checks(checks: Mapping[tuple[str, str], Steps]) -> dict[str, Any]:
    """Scores by their mechanism, and outputs by score and normalizer: an output is wrong where weights are."""
    found: dict[str, Any] = {"scores": {}, "b": {}}
    for (score, normalizer), steps in checks.items():
        found["scores"].setdefault(score, doubles(steps.scores))
        found["b"].setdefault(score, {})[normalizer] = doubles(steps.b)
    return found


def doubles(x: Tensor) -> str:
    return base64.b64encode(x.contiguous().double().numpy().astype(np.dtype("<f8")).tobytes()).decode("ascii")


def score_of(score: Score, q: Tensor, k: Tensor) -> dict[str, Any]:
    """Its kind and its parameters; of a score that the page does not know, its numbers."""
    kind = type(score)
    if kind in (Dot, Exact):
        return {"kind": kind.__name__}
    if isinstance(score, ScaledDot) and kind is ScaledDot:
        return {"kind": "ScaledDot", "scale": score.scale}
    if isinstance(score, Bilinear) and kind is Bilinear and score.heads is None:
        return {"kind": "Bilinear", "weight": score.weight.tolist()}
    if isinstance(score, Additive) and kind is Additive and score.heads is None:
        return {
            "kind": "Additive",
            "w_q": score.w_q.tolist(),
            "w_k": score.w_k.tolist(),
            "b": score.b.tolist(),
            "v": [score.v.tolist()],
        }
    if isinstance(score, TanhSum) and kind is TanhSum and score.heads is None:
        return {"kind": "TanhSum", "v": [score.v.tolist()]}
    if isinstance(score, Gated) and kind is Gated and score.heads is None:
        return {"kind": "Gated", "gate": score.gate.tolist()}
    if isinstance(score, Gaussian) and kind is Gaussian:
        return {"kind": "Gaussian", "sigma": score.sigma}
    if isinstance(score, SoftCap) and kind is SoftCap:
        return {"kind": "SoftCap", "cap": score.cap, "score": score_of(score.score, q, k)}
    bias = score.bias(extent_of(score, q, k).tile()) if isinstance(score, Biased) else None
    if isinstance(score, Biased) and bias is not None and (bias.ndim == 2 or bias.shape[0] == 1):
        return {"kind": "Biased", "score": score_of(score.score, q, k), "bias": bias.reshape(bias.shape[-2:]).tolist()}
    return {"kind": "Given", "given": score(q, k).reshape(q.shape[-2], k.shape[-2]).tolist()}


def normalizer_of(normalizer: Normalizer) -> dict[str, Any]:
    """Its kind and its parameters, as in evaluation."""
    if isinstance(normalizer, Softmax) and normalizer.heads is None:
        return {"kind": "Softmax", "sink": None if normalizer.sink is None else normalizer.sink.item()}
    if isinstance(normalizer, Sigmoid):
        return {"kind": "Sigmoid", "bias": normalizer.bias}
    if isinstance(normalizer, Entmax):
        return {"kind": "Entmax", "alpha": normalizer.alpha}
    if isinstance(normalizer, Sparsemax):
        return {"kind": "Entmax", "alpha": 2.0}
    if isinstance(normalizer, Hard | GumbelHard):
        return {"kind": "Hard"}
    if isinstance(normalizer, Identity | ReLU):
        return {"kind": type(normalizer).__name__}
    raise InputError(f"the page has no walk-through for the normalizer {type(normalizer).__name__}")
