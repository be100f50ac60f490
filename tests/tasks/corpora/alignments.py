"""Gold links as pairs of words, to compare with what a person would draw."""

from __future__ import annotations

from regard.tasks.corpora import realiser
from regard.tasks.corpora.meaning import Sentence, links


def aligned(code: str, sentence: Sentence) -> set[tuple[str, str]]:
    source, target = realiser("en")(sentence), realiser(code)(sentence)
    return {(source.words[i], target.words[j]) for i, j in links(source.tokens, target.tokens)}
