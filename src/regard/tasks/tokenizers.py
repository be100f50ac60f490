"""Text to numbers and back: words, BPE and byte-level BPE, through Hugging Face `tokenizers`.

    word   words and punctuation; a word that training did not see is <unk>
    bpe    parts of words that are frequent; a character that training did not see is <unk>
    bytes  parts of UTF-8; nothing is unknown, and decode(encode(text)) is the text, exactly

`word` and `bpe` compose characters first (NFC), so that é is one thing however it was typed; `bytes` takes the
text as it is. Lone surrogates, which are no text, are read as U+FFFD. A special token's name in a text is text.
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, get_args

from regard.core.shapes import InputError, MissingError
from regard.tasks.atomic import write_whole
from regard.tasks.files import read_small, shown
from regard.tasks.spelling import SURROGATES, Spans, original, spell

if TYPE_CHECKING:
    import tokenizers

__all__ = ["BOS", "EOS", "MASK", "PAD", "SPECIAL", "UNK", "Encoded", "Tokenizer", "load", "train"]

Kind = Literal["word", "bpe", "bytes"]

PAD, BOS, EOS, UNK, MASK = range(5)
SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>", "<mask>")
BYTES = 256
FILE = "tokenizer.json"
MOST = 1 << 28  # bytes of it


@dataclass(frozen=True)
class Encoded:
    """A text's pieces. `text[start:end]` at a piece's offsets is all that the piece came from.

    Of pre-split words, offsets are into the words joined by spaces, and `words[w]` are the pieces of word w.
    """

    ids: tuple[int, ...]
    offsets: Spans
    tokens: tuple[str, ...]
    words: tuple[range, ...] = ()


class Tokenizer:
    """Made by `train` or `load`.

    >>> tokenizer = train("word", ["the cat sat", "the dog sat"], size=8)
    >>> encoded = tokenizer.encode("the bird sat")
    >>> encoded.ids, encoded.offsets
    ((6, 3, 5), ((0, 3), (4, 8), (9, 12)))
    >>> tokenizer.decode(encoded.ids)
    'the <unk> sat'
    """

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        self._inner = inner
        self._inner.encode_special_tokens = True  # "<pad>" in a text is five characters; not saved in the file

    def __repr__(self) -> str:
        return f"Tokenizer: {self.kind}, {len(self)} pieces{', lower case' if self.lowercase else ''}"

    def __len__(self) -> int:
        return self._inner.get_vocab_size()

    @cached_property
    def _settings(self) -> dict[str, Any]:
        return json.loads(self._inner.to_str())

    @cached_property
    def kind(self) -> Kind:
        if self._settings["model"]["type"] == "WordLevel":
            return "word"
        return "bytes" if self._settings["decoder"]["type"] == "ByteLevel" else "bpe"

    @cached_property
    def lowercase(self) -> bool:
        return "Lowercase" in json.dumps(self._settings["normalizer"])

    def encode(self, text: str) -> Encoded:
        """The pieces of a text, without <bos> and <eos>."""
        spelled, origin = self._spelled(text)
        encoding = self._inner.encode(spelled, add_special_tokens=False)
        return Encoded(tuple(encoding.ids), original(encoding.offsets, origin), tuple(encoding.tokens))

    def encode_words(self, words: Sequence[str]) -> Encoded:
        """The pieces of words that stand by themselves already. Each has at least one piece, if need be <unk>."""
        if isinstance(words, str):
            raise InputError(f"encode_words: words is the text {words!r}; expected a list of words, or call encode")
        starts = list(accumulate((len(word) + 1 for word in words), initial=0))
        pieces = self._whole(words, starts) if self.kind == "word" else self._parts(words, starts)
        flat = [piece for of_word in pieces for piece in of_word]
        ends = list(accumulate((len(of_word) for of_word in pieces), initial=0))
        return Encoded(
            tuple(id for id, _, _ in flat),
            tuple(span for _, span, _ in flat),
            tuple(token for _, _, token in flat),
            tuple(range(a, b) for a, b in pairwise(ends)),
        )

    def decode(self, ids: Iterable[int]) -> str:
        """The text of pieces. <pad>, <bos> and <eos> are not text; <unk> and <mask> stay visible."""
        ids = [int(id) for id in ids]
        for id in ids:
            if not 0 <= id < len(self):
                raise InputError(f"decode: id {id} is not one of the {len(self)} pieces; expected 0 to {len(self) - 1}")
        return self._inner.decode([id for id in ids if id not in (PAD, BOS, EOS)], skip_special_tokens=False)

    def piece(self, id: int) -> str:
        """One piece as a person reads it: without the mark of a space before it."""
        if id < len(SPECIAL) or self.kind == "word":
            return self._token(id)
        text = self._inner.decode([id], skip_special_tokens=False)
        return text.strip(" ") or text

    def begins(self, id: int) -> bool:
        """Does a word, or a punctuation mark, begin with this piece?"""
        if self.kind == "word" or id < len(SPECIAL) or id >= len(self):
            return True
        token = self._token(id)
        return token[:1] in ("▁", "Ġ") or not any(c.isalnum() or unicodedata.category(c)[0] == "M" for c in token)

    def to_json(self) -> str:
        """What `save` writes."""
        return self._inner.to_str(pretty=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """As JSON that the `tokenizers` library reads too; into a folder as tokenizer.json."""
        write_whole(_file(path), self.to_json().encode("utf-8"))

    def _spelled(self, text: str) -> tuple[str, Spans | None]:
        """The text as the pieces spell it, and from which of its characters each of those came (None: the same)."""
        return spell(text, nfc=self.kind != "bytes", lowercase=self.lowercase)

    def _whole(self, words: Sequence[str], starts: list[int]) -> list[list[tuple[int, tuple[int, int], str]]]:
        found = []
        for word, start in zip(words, starts, strict=False):
            id = self._inner.token_to_id(self._spelled(word)[0])
            id = UNK if id is None or id < len(SPECIAL) else id
            found.append([(id, (start, start + len(word)), self._token(id))])
        return found

    def _parts(self, words: Sequence[str], starts: list[int]) -> list[list[tuple[int, tuple[int, int], str]]]:
        # In bytes the space before a word belongs to it, as in a running text.
        lead = [" " if self.kind == "bytes" and start else "" for start in starts[:-1]]
        spelled = [self._spelled(before + word) for before, word in zip(lead, words, strict=True)]
        encoding = self._inner.encode([text for text, _ in spelled], is_pretokenized=True, add_special_tokens=False)
        found: list[list[tuple[int, tuple[int, int], str]]] = [[] for _ in words]
        for id, w, span, token in zip(encoding.ids, encoding.word_ids, encoding.offsets, encoding.tokens, strict=True):
            assert w is not None
            shift = starts[w] - len(lead[w])
            ((a, b),) = original([span], spelled[w][1])
            found[w].append((id, (max(shift + a, starts[w]), shift + b), token))
        for w, of_word in enumerate(found):
            if not of_word:
                of_word.append((UNK, (starts[w], starts[w] + len(words[w])), SPECIAL[UNK]))
        return found

    def _token(self, id: int) -> str:
        return self._inner.id_to_token(id) or SPECIAL[UNK]


def train(kind: Kind, texts: Iterable[str | Sequence[str]], size: int, lowercase: bool = False) -> Tokenizer:
    """A tokenizer of at most `size` pieces, the special tokens among them. The same texts give the same one.

    A text may be a list of words that stand by themselves (as `encode_words` takes them). The texts are read
    once, one at a time; what is kept is their different words.
    """
    if kind not in get_args(Kind):
        raise InputError(f"train: kind={kind!r}; expected one of {', '.join(get_args(Kind))}")
    if isinstance(texts, str):
        raise InputError("train: texts is one text; expected several: a list, or a generator")
    least = len(SPECIAL) + (BYTES if kind == "bytes" else 1)
    if size < least:
        raise InputError(f"train: size={size}; expected at least {least} for {kind!r}, special tokens included")
    library = _library()
    inner = _untrained(library, kind, lowercase)
    if kind == "word":
        vocabulary = _vocabulary(inner, texts, size, lowercase)
        inner.model = library.models.WordLevel(vocabulary, unk_token=SPECIAL[UNK])
        inner.add_special_tokens(list(SPECIAL))
        return Tokenizer(inner)
    seen = Counter[bool]()
    trainer = library.trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        show_progress=False,
        initial_alphabet=library.pre_tokenizers.ByteLevel.alphabet() if kind == "bytes" else [],
    )
    inner.train_from_iterator(_joined(texts, seen), trainer)
    _check_seen(seen)
    if inner.get_vocab_size() > size:
        raise InputError(
            f"train: size={size}, but the texts have more different characters than that: 'bpe' needs "
            f"at least {inner.get_vocab_size()}; or take 'bytes', which needs {len(SPECIAL) + BYTES}"
        )
    return Tokenizer(inner)


def load(path: str | os.PathLike[str]) -> Tokenizer:
    """From the file that `save` wrote, or from the folder that holds it."""
    library, path = _library(), _file(path)
    expected = "expected a tokenizer.json that regard wrote"
    raw = read_small(path, MOST, expected)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}; {expected}") from None
    try:
        settings = json.loads(text)
        _check(settings)
        inner = library.Tokenizer.from_str(text)
    except Exception as error:  # the library has no class of its own for what it refuses
        said = str(error) if isinstance(error, _ForeignError) else f"not JSON, {shown(str(error), 200)}"
        raise InputError(f"{path}: {said}; {expected}") from None
    return Tokenizer(inner)


class _ForeignError(Exception):
    """What is wrong with a file; which one it is is known further out."""


def _check(settings: Any) -> None:
    """Before the library sees it: it can do much more than this one, such as padding every text to a length of the
    file's choice, and it ends the process where pieces and merges do not fit together."""
    model = settings.get("model") if isinstance(settings, dict) else None
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(model, dict) or not isinstance(vocabulary, dict):
        raise _ForeignError("holds no tokenizer")
    first = tuple(
        next((piece for piece, id in vocabulary.items() if id == place), None) for place in range(len(SPECIAL))
    )
    if first != SPECIAL:
        raise _ForeignError(
            f"its first pieces are ({', '.join(shown(str(each)) for each in first)}); expected {SPECIAL}"
        )
    frame = _frame(settings)
    if not any(_within(frame, known) for known in _frames()):
        raise _ForeignError("its settings are not those of a tokenizer that regard trains")
    ids = list(vocabulary.values())
    if any(type(id) is not int for id in ids) or sorted(ids) != list(range(len(ids))):
        raise _ForeignError("its pieces are not numbered from 0 without gaps")
    if not all(vocabulary):
        raise _ForeignError("one of its pieces is empty")
    merges = model.get("merges", [])
    for merge in merges if isinstance(merges, list) else [str(merges)]:
        pair = isinstance(merge, list) and len(merge) == 2 and all(isinstance(part, str) for part in merge)
        if not pair or any(part not in vocabulary for part in (*merge, "".join(merge))):
            raise _ForeignError(f"the merge {shown(str(merge))} is not of two of its pieces into a third")


def _frame(settings: dict[str, Any]) -> dict[str, Any]:
    """Everything but the pieces themselves."""
    model = {name: each for name, each in settings["model"].items() if name not in ("vocab", "merges")}
    return {**settings, "model": model}


def _within(part: Any, known: Any) -> bool:
    """The same, or with settings left out, as an earlier release of the library wrote it; but of the same type."""
    if isinstance(part, dict) and isinstance(known, dict):
        needed = {"type", "normalizer", "pre_tokenizer", "decoder"} & set(known)
        return needed <= set(part) and all(name in known and _within(each, known[name]) for name, each in part.items())
    return type(part) is type(known) and part == known


@cache
def _frames() -> list[dict[str, Any]]:
    """Of every tokenizer that there is, as the library writes them today."""
    found = []
    for kind in get_args(Kind):
        for lowercase in (False, True):
            inner = _untrained(_library(), kind, lowercase)
            inner.add_special_tokens(list(SPECIAL))
            found.append(_frame(json.loads(inner.to_str())))
    return found


def _library() -> ModuleType:
    try:
        import tokenizers
    except ImportError:
        raise MissingError("tokenizers is not installed; pip install 'regard[tasks]'") from None
    return tokenizers


def _untrained(library: ModuleType, kind: Kind, lowercase: bool) -> tokenizers.Tokenizer:
    """Everything but the pieces themselves."""
    before, after, normalizers = library.pre_tokenizers, library.decoders, library.normalizers
    steps = [normalizers.Lowercase()] if lowercase else []
    if kind == "word":
        inner = library.Tokenizer(library.models.WordLevel({}, unk_token=SPECIAL[UNK]))
        inner.pre_tokenizer = before.Whitespace()  # runs of letters and digits, runs of punctuation
    elif kind == "bpe":
        inner = library.Tokenizer(library.models.BPE(unk_token=SPECIAL[UNK]))
        inner.pre_tokenizer = before.Sequence([before.Metaspace(), before.Punctuation()])  # ▁ is a space
        inner.decoder = after.Metaspace()
    else:
        inner = library.Tokenizer(library.models.BPE())
        inner.pre_tokenizer = before.ByteLevel(add_prefix_space=False)
        inner.decoder = after.ByteLevel()
    if kind != "bytes":
        steps.append(normalizers.NFC())  # last: of a letter and its mark, only the lower case may have one character
    if steps:
        inner.normalizer = normalizers.Sequence(steps)
    return inner


def _vocabulary(
    inner: tokenizers.Tokenizer, texts: Iterable[str | Sequence[str]], size: int, lowercase: bool
) -> dict[str, int]:
    """The most frequent words, equally frequent ones by the alphabet."""
    counts, seen = Counter[str](), Counter[bool]()
    for text in _each(texts, seen):
        if isinstance(text, str):
            spelled, _ = spell(text, nfc=True, lowercase=lowercase)
            counts.update(word for word, _ in inner.pre_tokenizer.pre_tokenize_str(spelled))
        else:
            counts.update(spell(word, nfc=True, lowercase=lowercase)[0] for word in text)
    _check_seen(seen)
    ordered = sorted(counts.keys() - set(SPECIAL), key=lambda word: (-counts[word], word))
    return {word: id for id, word in enumerate([*SPECIAL, *ordered[: size - len(SPECIAL)]])}


def _joined(texts: Iterable[str | Sequence[str]], seen: Counter[bool]) -> Iterator[str]:
    for text in _each(texts, seen):
        yield SURROGATES.sub("\ufffd", text if isinstance(text, str) else " ".join(text))


def _each(texts: Iterable[str | Sequence[str]], seen: Counter[bool]) -> Iterator[str | Sequence[str]]:
    for text in texts:
        seen[bool(text)] += 1
        yield text


def _check_seen(seen: Counter[bool]) -> None:
    if not seen[True]:
        raise InputError(f"train: {seen.total()} texts, none of which holds a character; expected at least one")


def _file(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    return path / FILE if path.is_dir() else path
