"""Files of real text as training reads them: split so that nothing measured was trained on, shown nowhere.

What is left out of training: the English sides of every dev part, in every language; what comes near to the sentences
that the documentation shows; pairs that stand twice.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path

from regard.tasks.corpora.stories import apart
from regard.tasks.files import read_lines

Pair = tuple[str, str]

FILES = {"de": "deu", "it": "ita", "es": "spa", "mr": "mar", "zh": "zho", "hi": "hin"}
REPEATED = {"fr": 1, "de": 2, "it": 2, "es": 3, "mr": 1, "zh": 2, "hi": 5}  # so that none is drowned by another
BUILT_IN = {"gu": 14_000, "kn": 14_000, "ta": 14_000}  # sentences of the grammar; of the others, which have real ones:
BUILT_IN_BESIDE = 10_000
HELD_OUT = 40  # of the English sides one in so many is kept for dev, in every language
RARE = 4  # a Chinese pair with a character that stands in fewer is left out: each costs a row of the vocabulary
DEV = 500  # pairs of a language's dev part, French aside, which has one of its own

SPACES = re.compile(r"[\u00a0\u2000-\u200a\u202f\u3000]")
STRESS = re.compile(r"\d")


def tidy(text: str) -> str:
    """One kind of space and of apostrophe."""
    return " ".join(SPACES.sub(" ", text).replace("’", "'").split())


def key(text: str) -> str:
    """What is compared when two English sentences are called the same."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def held_out(text: str) -> bool:
    return int.from_bytes(sha256(key(text).encode()).digest()[:4], "big") % HELD_OUT == 0


def pairs(path: Path) -> list[Pair]:
    found = []
    for line in read_lines(path):
        source, _, target = line.text.partition("\t")
        if source.strip() and target.strip():
            found.append((source.strip(), target.strip()))
    return list(dict.fromkeys(found))


def curled(text: str, draw: random.Random) -> str:
    """Some people's apostrophes are curly: a twentieth of those that are read."""
    return text.replace("'", "’") if draw.random() < 0.05 else text


def without_rare(found: list[Pair], least: int) -> list[Pair]:
    """Without pairs whose target has a character that fewer than `least` targets have."""
    count = Counter(character for _, target in found for character in set(target))
    return [pair for pair in found if all(count[character] >= least for character in pair[1])]


def split(found: Iterable[Pair], kept: set[str]) -> tuple[list[Pair], list[Pair]]:
    """For training, and for dev, which stays as it is: English sides in `kept` are in neither."""
    train, dev = dict[Pair, None](), []
    for source, target in found:
        if key(source) in kept:
            continue
        if held_out(source):
            dev.append((source, target))
        elif apart(source):
            train[tidy(source), tidy(target)] = None
    return list(train), dev


def built_in(corpora: Path, code: str, split: str, count: int) -> list[Pair]:
    return list(islice(pairs(corpora / f"{code}.{split}.tsv"), count))


def translation(data: Path, corpora: Path, into: Path) -> None:
    """many.train.tsv, many.valid.tsv, XX.dev.tsv; fren.* the other way round; english.* for what reads one language."""
    draw = random.Random(0)
    dev = {"fr": pairs(data / "tatoeba_many" / "eng-fra.dev.tsv.xz")}
    kept = {key(source) for source, _ in dev["fr"]}
    train: dict[str, list[Pair]] = {}
    train["fr"], spare = split(pairs(data / "tatoeba_eng_fra" / "fra.txt.xz"), kept)
    for code, name in FILES.items():
        found = pairs(data / "tatoeba_many" / f"eng-{name}.tsv.xz")
        train[code], dev[code] = split(without_rare(found, RARE) if code == "zh" else found, kept)
        dev[code] = draw.sample(dev[code], min(DEV, len(dev[code])))
    mixed, valid = [], []
    for code, found in train.items():
        own = built_in(corpora, code, "train", BUILT_IN_BESIDE)
        mixed += [(f"<2{code}> {curled(source, draw)}", target) for source, target in found * REPEATED[code] + own]
        few = draw.sample(dev[code], min(400 if code == "fr" else 120, len(dev[code])))
        valid += [(f"<2{code}> {source}", target) for source, target in few + built_in(corpora, code, "valid", 30)]
    for code, count in BUILT_IN.items():
        mixed += [(f"<2{code}> {source}", target) for source, target in built_in(corpora, code, "train", count)]
        valid += [(f"<2{code}> {source}", target) for source, target in built_in(corpora, code, "valid", 30)]
    draw.shuffle(mixed)
    write_pairs(into / "many.train.tsv", mixed)
    write_pairs(into / "many.valid.tsv", valid)
    for code, found in dev.items():
        write_pairs(into / f"{code}.dev.tsv", found)
    back = train["fr"] + built_in(corpora, "fr", "train", BUILT_IN_BESIDE)
    few = draw.sample(dev["fr"], 600)
    for part, found in (("train", back), ("valid", few)):
        write_pairs(into / f"enfr.{part}.tsv", found)
        write_pairs(into / f"fren.{part}.tsv", [(target, source) for source, target in found])
    # What fills in and continues is shown with stories too.
    english = list(dict.fromkeys(source for found in train.values() for source, _ in found))
    stories = [line.text for line in read_lines(corpora / "stories.train.txt")]
    mixture = english + 2 * stories
    draw.shuffle(mixture)
    write_lines(into / "english.train.txt", mixture)
    sides = list(dict.fromkeys(source for source, _ in spare))
    write_lines(into / "english.dev.txt", draw.sample(sides, min(1500, len(sides))))


def multi30k(data: Path, into: Path) -> None:
    for part, name in (("train", "train"), ("val", "val"), ("test", "test_2016_flickr")):
        for code in ("en", "de", "fr"):
            lines = [line.text.strip() for line in read_lines(data / "multi30k" / f"{name}.{code}.gz")]
            write_lines(into / f"multi30k.{part}.{code}", lines)


def tagging(data: Path, into: Path) -> None:
    treebanks = {
        "ewt": "ud_english_ewt/en_ewt",
        "sequoia": "ud_french_sequoia/fr_sequoia",
        "ufal": "ud_marathi_ufal/mr_ufal",
    }
    for name, path in treebanks.items():
        for part in ("train", "dev"):
            lines = [line.text for line in read_lines(data / f"{path}-ud-{part}.conllu.xz")]
            write_lines(into / f"{name}.{part}.conllu", lines)


def sentiment(data: Path, into: Path) -> None:
    """Training sentences, which count four times, and phrases of them; what is a whole dev sentence is left out."""
    names = {"0": "negative", "1": "positive"}

    def sentences(part: str) -> Iterator[Pair]:
        for line in read_lines(data / "sst" / f"stsa.binary.{part}.xz"):
            label, _, text = line.text.partition(" ")
            yield names[label], text.strip()

    def phrases() -> Iterator[Pair]:
        for part in ("train", "dev"):
            for line in islice(read_lines(data / "sst" / f"glue_sst2.alps_{part}.tsv.xz"), 1, None):
                text, _, label = line.text.rpartition("\t")
                if text.strip():
                    yield names[label.strip()], text.strip()

    dev = list(sentences("dev"))
    kept = {key(text) for _, text in dev}
    whole = list(sentences("train"))
    train = [pair for pair in (*dict.fromkeys((*whole, *phrases())), *3 * whole) if key(pair[1]) not in kept]
    write_pairs(into / "sst.train.tsv", train)
    write_pairs(into / "sst.dev.tsv", dev)


def pronunciation(data: Path, into: Path) -> None:
    """Letters into sounds; 5% of the words, with all that is listed for them, are for dev."""
    listed: dict[str, list[str]] = defaultdict(list)
    for line in read_lines(data / "cmudict" / "cmudict.dict.xz"):
        word, *sounds = line.text.partition("#")[0].split()
        word = re.sub(r"\(\d+\)$", "", word)
        said = STRESS.sub("", " ".join(sounds))
        if said not in listed[word]:
            listed[word].append(said)
    train, dev = [], []
    for word, said in listed.items():
        kept = int.from_bytes(sha256(word.encode()).digest()[:4], "big") % 20 == 0
        (dev if kept else train).extend((" ".join(word), each) for each in said)
    write_pairs(into / "cmudict.train.tsv", train)
    write_pairs(into / "cmudict.dev.tsv", dev)
    write_lines(into / "cmudict.dev.words", dict.fromkeys(word for word, _ in dev))


def alignment(data: Path, into: Path) -> None:
    """The gold pairs as tables: words apart, as they were linked."""
    rows = [line.text.partition("|||") for line in read_lines(data / "word_alignment_enfr" / "enfr.src-tgt")]
    write_pairs(into / "hansards.tsv", [(" ".join(a.split()), " ".join(b.split())) for a, _, b in rows])
    write_lines(into / "hansards.gold", [line.text for line in read_lines(data / "word_alignment_enfr" / "enfr.gold")])


def write_pairs(path: Path, found: Iterable[Pair]) -> None:
    write_lines(path, (f"{left}\t{right}" for left, right in found))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def prepare(data: Path, corpora: Path, into: Path, report: Callable[[str], None] = print) -> None:
    into.mkdir(parents=True, exist_ok=True)
    translation(data, corpora, into)
    for part in (multi30k, tagging, sentiment, pronunciation, alignment):
        part(data, into)
    for path in sorted(into.iterdir()):
        report(f"{path.name:<28}{path.stat().st_size:>12,} bytes")
