"""Figures of quality: BLEU and chrF (sacreBLEU's own), and the error rate of alignments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regard.core.shapes import InputError, MissingError
from regard.tasks.files import PathLike, read_lines, shown

LINK = re.compile(r"([1-9]\d{0,8})([-p])([1-9]\d{0,8})", re.ASCII)
Links = frozenset[tuple[int, int]]  # (source word, target word), from 0


def translation(outputs: Sequence[str], references: Sequence[str], lowercase: bool = False) -> dict[str, float | str]:
    """sacreBLEU's BLEU and chrF2, each with its signature."""
    try:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
    except ImportError:
        raise MissingError("BLEU and chrF need sacrebleu; pip install 'regard[tasks]'") from None
    # Chinese and Japanese have no spaces between words: each of their characters counts as one.
    chinese = sum("\u3040" <= c <= "\u9fff" for text in references for c in text)
    wide = chinese > sum(c.isspace() for text in references for c in text)
    bleu, chrf = BLEU(lowercase=lowercase, tokenize="zh" if wide else None), CHRF(lowercase=lowercase)
    found: dict[str, float | str] = {}
    for name, metric in (("bleu", bleu), ("chrf", chrf)):
        found[name] = metric.corpus_score(outputs, [references]).score
        found[f"{name} signature"] = str(metric.get_signature())
    return found


@dataclass(frozen=True)
class Gold:
    """Links that people drew: those they were sure of, and all that are possible."""

    sure: Links
    possible: Links


def alignment_error(found: Iterable[Links], gold: Iterable[Gold]) -> float:
    """1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|), over all sentences together.

    >>> alignment_error([frozenset({(0, 0), (1, 1)})], [Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)}))])
    0.0
    """
    right, size = 0, 0
    for links, truth in zip(found, gold, strict=True):
        right += len(links & truth.sure) + len(links & (truth.possible | truth.sure))
        size += len(links) + len(truth.sure)
    return 1.0 - right / size if size else 0.0


def read_gold(path: PathLike) -> list[Gold]:
    """One sentence a line: `1-1 2p3`, sure and possible links, words counted from 1, source first."""
    gold = []
    for line in read_lines(path):
        sure, every = set(), set()
        for link in line.text.split():
            found = LINK.fullmatch(link)
            if not found:
                raise line.error(f"{shown(link)} is no link; expected i-j (sure) or ipj (possible), counted from 1")
            pair = int(found[1]) - 1, int(found[3]) - 1
            every.add(pair)
            if found[2] == "-":
                sure.add(pair)
        gold.append(Gold(frozenset(sure), frozenset(every)))
    if not gold:
        raise InputError(f"{path}: the file holds no alignments")
    return gold
