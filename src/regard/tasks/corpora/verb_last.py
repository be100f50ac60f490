"""The order that the Indian languages share: who, when, where, what, and the verb at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from regard.tasks.corpora.meaning import Clause, Realised, Sentence, Token, phrase, spell


def arranged(
    clause: Clause,
    c: str,
    subject: list[Token],
    place: list[Token],
    what: list[Token],
    verb: list[Token],
    times: Mapping[str, str],
) -> list[Token]:
    """A clause's words; the time before all others, or behind the subject."""
    time = phrase(times[clause.time], f"{c}.time") if clause.time else []
    if clause.time_first:
        return [*time, *subject, *place, *what, *verb]
    return [*subject, *time, *place, *what, *verb]


def realised(
    sentence: Sentence,
    clause: Callable[[Clause, str], list[Token]],
    links: Mapping[str, str],
    marks: Mapping[str, Sequence[Token]] | None = None,
) -> Realised:
    """Both clauses and what joins them, `links`: the comma that stands before a link is written there too."""
    tokens: list[Token] = []
    for number, each in enumerate(sentence.clauses):
        if number and sentence.link:
            link = links[sentence.link]
            if link.startswith(","):
                tokens.append(Token(",", ("comma",), glue=True))
            tokens += phrase(link.lstrip(","), "link")
        tokens += clause(each, str(number))
    return spell(tokens, sentence, marks)
