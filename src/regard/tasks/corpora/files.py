"""The corpora as the files that training reads.

    train.tsv                  <2fr> The cat sleeps.<TAB>Le chat dort.   all languages, each source with its tag
    fr.train.tsv               The cat sleeps.<TAB>Le chat dort.         one language, without tag
    fr.train.alignment.tsv     source, target, the words of both, their places in the text, gold links, the sure ones
    fr.train.gold              the links between what stands between spaces in fr.train.tsv: regard evaluate --gold
    en.train.conllu            words and their universal parts of speech
    sentiment.train.tsv        positive<TAB>A great film.                for regard train classify
    stories.train.txt          The dog was hungry, so he ate a bone.     for fill, denoise and generate

and the same of valid and test. Line i of `fr.train.tsv` and of `fr.train.alignment.tsv` belong together, and
the sources of all languages are the same. Words are separated by spaces; a place `4:9` is text[4:9]; a link
`1-2` is the second source word with the third target word, both counted from 0. In `.gold`, as is usual in such
files, words are counted from 1, and a link that is not sure is written `1p2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.core.shapes import InputError
from regard.tasks.atomic import cure, make_folder, write_folder
from regard.tasks.corpora import LANGUAGES, SOURCE, realiser
from regard.tasks.corpora.meaning import Realised, links, sure
from regard.tasks.corpora.sampling import SPLITS, sentences
from regard.tasks.corpora.sentiment import sentiment
from regard.tasks.corpora.stories import stories

COLUMNS = ("source", "target", "source_words", "target_words", "source_places", "target_places", "links", "sure")
SHARE = 20  # valid and test have one sentence for so many of train


def write(folder: Path, seed: int, count: int, languages: Sequence[str] = tuple(LANGUAGES)) -> dict[str, int]:
    """All files into a new folder; the same arguments give the same bytes. Lines of each file."""
    for code in languages:
        realiser(code)
    if count < 1 or len(set(languages)) < len(languages) or not languages:
        raise InputError(f"sentences={count}, languages={list(languages)}; expected 1 or more, and each language once")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: is there already; expected a new or an empty folder")
    files: dict[str, list[str]] = {}
    for split in SPLITS:
        files |= _split(split, seed, count if split == "train" else max(1, count // SHARE), languages)
    for split, labelled in sentiment(seed, count).items():
        files[f"sentiment.{split}.tsv"] = [f"{example.label}\t{example.text}" for example in labelled]
    for split, plain in stories(seed, count).items():
        files[f"stories.{split}.txt"] = [example.text for example in plain]
    make_folder(folder.parent)
    try:
        write_folder(folder, {name: ("\n".join(lines) + "\n").encode() for name, lines in files.items()})
    except OSError as error:
        raise InputError(f"{folder}: not written: {error.strerror or error}; {cure(error)}") from error
    return {name: len(lines) for name, lines in files.items()}


def _split(split: str, seed: int, count: int, languages: Sequence[str]) -> dict[str, list[str]]:
    meanings = list(sentences(split, seed, count))
    sources = [realiser(SOURCE)(meaning) for meaning in meanings]
    mixed: list[str] = []
    files = {f"{split}.tsv": mixed, f"en.{split}.conllu": [line for source in sources for line in conllu(source)]}
    for code in languages:
        pairs = [(source, realiser(code)(meaning)) for source, meaning in zip(sources, meanings, strict=True)]
        files[f"{code}.{split}.tsv"] = [f"{source.text}\t{target.text}" for source, target in pairs]
        files[f"{code}.{split}.alignment.tsv"] = ["\t".join(COLUMNS), *(aligned(*pair) for pair in pairs)]
        files[f"{code}.{split}.gold"] = [gold(*pair) for pair in pairs]
        mixed += [f"<2{code}> {line}" for line in files[f"{code}.{split}.tsv"]]
    return files


def aligned(source: Realised, target: Realised) -> str:
    """One row of COLUMNS."""
    return "\t".join(
        [
            source.text,
            target.text,
            " ".join(source.words),
            " ".join(target.words),
            " ".join(f"{a}:{b}" for a, b in source.spans),
            " ".join(f"{a}:{b}" for a, b in target.spans),
            " ".join(f"{i}-{j}" for i, j in links(source.tokens, target.tokens)),
            " ".join(f"{i}-{j}" for i, j in sure(source.tokens, target.tokens)),
        ]
    )


def gold(source: Realised, target: Realised) -> str:
    """One line of links between runs without spaces: sure where one between their words is."""
    left, right = _runs(source), _runs(target)
    every = {(left[i], right[j]) for i, j in links(source.tokens, target.tokens)}
    certain = {(left[i], right[j]) for i, j in sure(source.tokens, target.tokens)}
    return " ".join(f"{i + 1}{'-' if (i, j) in certain else 'p'}{j + 1}" for i, j in sorted(every))


def _runs(text: Realised) -> list[int]:
    """For each word, how many spaces stand before it."""
    return [text.text[:start].count(" ") for start, _ in text.spans]


def conllu(sentence: Realised) -> list[str]:
    """The lines of one sentence, the blank one behind it too."""
    glued = [*(token.glue for token in sentence.tokens[1:]), False]
    rows = [
        "\t".join([str(i), token.form, "_", token.tag, *"_____", "SpaceAfter=No" if close else "_"])
        for i, (token, close) in enumerate(zip(sentence.tokens, glued, strict=True), start=1)
    ]
    return [f"# text = {sentence.text}", *rows, ""]
