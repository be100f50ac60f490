"""Tokenizers: what comes back from a text, where its pieces came from, and every kind of text that is not ASCII."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.core.shapes import InputError, MissingError
from regard.tasks.spelling import may_join, original, spell
from regard.tasks.tokenizers import BOS, EOS, MASK, PAD, SPECIAL, UNK, Kind, Tokenizer, load, train

COMPOSED, TYPED = "caf\u00e9", "cafe\u0301"  # the same word; its last letter is one character, or a letter and a mark
FAMILY = "👨\u200d👩\u200d👧"
TEXTS = ["the cat sat on the mat", "the dog sat", f"{COMPOSED}, naïve!", f"{FAMILY} שלום עולם", "नमस्ते दुनिया 한국어"] * 3
KINDS: list[Kind] = ["word", "bpe", "bytes"]
every_kind = pytest.mark.parametrize("kind", KINDS)

TRAINED = {(kind, lower): train(kind, TEXTS, 400, lowercase=lower) for kind in KINDS for lower in (False, True)}
tokenizers = st.sampled_from(sorted(TRAINED)).map(TRAINED.__getitem__)
composing = st.sampled_from(["e", "E", "\u0301", "\u0323", "\u0307", "İ", "Σ", "H\u0331", "ᄒ", "ᅡ", "ᆫ", "क", "\u093c"])
texts = st.text(st.characters(exclude_categories=["Cs"])) | st.lists(composing | st.just(" ")).map("".join)


def slices(tokenizer: Tokenizer, text: str) -> list[str]:
    return [text[start:end] for start, end in tokenizer.encode(text).offsets]


# What comes back


def test_special_tokens_come_first() -> None:
    assert (PAD, BOS, EOS, UNK, MASK) == (0, 1, 2, 3, 4)
    for tokenizer in TRAINED.values():
        for id, name in enumerate(SPECIAL):
            assert tokenizer.decode([id]) == ("" if id in (PAD, BOS, EOS) else name)


def test_words_are_numbered_by_frequency_then_by_the_alphabet() -> None:
    tokenizer = train("word", ["b a", "c b"], 8)
    assert tokenizer.encode("a b c").ids == (6, 5, 7)
    assert train("word", ["b a", "c b"], 6).encode("a b c").ids == (UNK, 5, UNK)


def test_words_and_punctuation_are_apart() -> None:
    encoded = TRAINED["word", False].encode("the  cat, dogs!")
    assert encoded.tokens == ("the", "cat", ",", "<unk>", "!")
    assert encoded.offsets == ((0, 3), (5, 8), (8, 9), (10, 14), (14, 15))


def test_bpe_joins_the_most_frequent_pair_first() -> None:
    # Five special tokens, the characters ▁ a b, and one pair more: "ab" stands four times, "▁a" three.
    tokenizer = train("bpe", ["abab", "ab", "ab"], 9)
    assert tokenizer.encode("abba").tokens == ("▁", "ab", "b", "a")


@every_kind
def test_a_text_of_the_training_comes_back(kind: Kind) -> None:
    assert TRAINED[kind, False].decode(TRAINED[kind, False].encode("the cat sat").ids) == "the cat sat"


@given(texts)
def test_bytes_lose_nothing(text: str) -> None:
    tokenizer = TRAINED["bytes", False]
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


@pytest.mark.parametrize(
    "text", [FAMILY, "🏳\ufe0f\u200d🌈", "שלום", "مرحبا", "a\0b", "\0", "\u200f", "\ufeff", "e\u0301"]
)
def test_bytes_take_every_text(text: str) -> None:
    tokenizer = train("bytes", ["a"], 261)  # no merges: one piece a byte
    encoded = tokenizer.encode(text)
    assert len(encoded.ids) == len(text.encode())
    assert tokenizer.decode(encoded.ids) == text


def test_spaces_of_bpe_come_back() -> None:
    tokenizer = TRAINED["bpe", False]
    assert tokenizer.decode(tokenizer.encode("sat  on the mat").ids) == "sat  on the mat"


@every_kind
def test_the_empty_text(kind: Kind) -> None:
    for tokenizer in (TRAINED[kind, False], TRAINED[kind, True]):
        encoded = tokenizer.encode("")
        assert (encoded.ids, encoded.offsets, encoded.tokens) == ((), (), ())
        assert tokenizer.encode_words([]).words == ()
        assert tokenizer.decode([]) == ""


def test_the_beginning_and_the_end_are_not_text() -> None:
    tokenizer = TRAINED["word", False]
    the, cat = tokenizer.encode("the cat").ids
    assert tokenizer.decode([BOS, the, MASK, cat, UNK, EOS, PAD, PAD]) == "the <mask> cat <unk>"


@every_kind
def test_the_name_of_a_special_token_is_text(kind: Kind, tmp_path: Path) -> None:
    TRAINED[kind, False].save(tmp_path)
    for tokenizer in (TRAINED[kind, False], load(tmp_path)):
        for encoded in (tokenizer.encode("a <pad><mask> b"), tokenizer.encode_words(["<pad>", "<mask>"])):
            assert not {PAD, BOS, EOS, MASK} & set(encoded.ids)


def test_lowercase() -> None:
    for kind in KINDS:
        lower, exact = TRAINED[kind, True], TRAINED[kind, False]
        assert lower.encode("THE Cat").ids == lower.encode("the cat").ids
        assert exact.encode("THE Cat").ids != exact.encode("the cat").ids
        assert lower.decode(lower.encode("THE Cat").ids) == "the cat"
        assert (lower.lowercase, exact.lowercase, lower.kind) == (True, False, kind)


# Characters that are spelled in two ways


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_however_it_was_typed_it_is_one_word(kind: Kind) -> None:
    tokenizer = TRAINED[kind, False]
    assert tokenizer.encode(TYPED).ids == tokenizer.encode(COMPOSED).ids
    assert UNK not in tokenizer.encode(TYPED).ids
    assert train(kind, [TYPED], 50).encode(COMPOSED).ids == train(kind, [COMPOSED], 50).encode(COMPOSED).ids


def test_offsets_hold_the_letter_and_its_mark() -> None:
    tokenizer = train("bpe", ["é a"], 50)
    assert slices(tokenizer, "e\u0301 a") == ["e\u0301", " a"]
    assert slices(TRAINED["word", False], f"the {TYPED}, the") == ["the", TYPED, ",", "the"]
    # Three characters that compose to one syllable; two marks that change places when composed.
    assert slices(train("word", ["a"], 50), "\u1112\u1161\u11ab e\u0301\u0323") == [
        "\u1112\u1161\u11ab",
        "e\u0301\u0323",
    ]


def test_offsets_of_a_letter_that_grows_when_lowered() -> None:
    assert slices(TRAINED["word", True], "THE İİ sat") == ["THE", "İİ", "sat"]
    assert slices(TRAINED["bytes", True], "İa")[-1] == "a"


def test_only_marks_and_korean_vowels_and_finals_compose() -> None:
    """What offsets rest on, for every character of Python's Unicode."""
    for code in range(sys.maxunicode + 1):
        parts = unicodedata.decomposition(chr(code)).split()
        if parts and not parts[0].startswith("<"):
            assert all(may_join(chr(int(part, 16))) for part in parts[1:]), hex(code)
    for syllable in "한국어":
        assert all(may_join(part) for part in unicodedata.normalize("NFD", syllable)[1:])


def test_an_empty_span_stays_where_it_is() -> None:
    spelled, origin = spell("e\u0301a", nfc=True, lowercase=False)
    assert (spelled, origin) == ("éa", ((0, 2), (2, 3)))
    assert original([(0, 0), (1, 1), (2, 2), (0, 2)], origin) == ((0, 0), (2, 2), (3, 3), (0, 3))


@given(tokenizers, texts)
def test_pieces_stand_in_order_and_inside_the_text(tokenizer: Tokenizer, text: str) -> None:
    encoded = tokenizer.encode(text)
    assert len(encoded.ids) == len(encoded.offsets) == len(encoded.tokens)
    assert all(0 <= start <= end <= len(text) for start, end in encoded.offsets)
    assert list(encoded.offsets) == sorted(encoded.offsets)


@given(texts, st.booleans())
def test_bytes_leave_no_character_out(text: str, lowercase: bool) -> None:
    covered = {i for start, end in TRAINED["bytes", lowercase].encode(text).offsets for i in range(start, end)}
    assert covered == set(range(len(text)))


@given(texts)
def test_a_words_offsets_are_the_word(text: str) -> None:
    tokenizer = train("word", [text, "a"], 1000)
    encoded = tokenizer.encode(text)
    for piece, token in zip(slices(tokenizer, text), encoded.tokens, strict=True):
        assert token in unicodedata.normalize("NFC", piece)  # more only if punctuation and its marks are two tokens
        assert piece == token or not unicodedata.is_normalized("NFC", text)


@given(tokenizers, st.text(st.characters(categories=["Cs"]) | st.characters(codec="ascii")))
def test_a_lone_surrogate_is_one_character(tokenizer: Tokenizer, text: str) -> None:
    repaired = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    assert tokenizer.encode(text) == tokenizer.encode(repaired)
    assert tokenizer.encode_words([text, text]) == tokenizer.encode_words([repaired, repaired])


@every_kind
def test_a_lone_surrogate_in_training(kind: Kind) -> None:
    assert (
        train(kind, ["a\udc80", ["b\ud800"]], 300).encode("\ud800").tokens
        == train(kind, ["a\ufffd", ["b\ufffd"]], 300).encode("\ufffd").tokens
    )


# Words that stand by themselves already


def test_each_word_has_its_pieces() -> None:
    tokenizer = train("bytes", ["a"], 261)
    encoded = tokenizer.encode_words(["ab", "é"])
    assert encoded.tokens == ("a", "b", "Ġ", "Ã", "©")  # Ġ is a space, é two bytes
    assert encoded.words == (range(0, 2), range(2, 5))
    assert encoded.offsets == ((0, 1), (1, 2), (3, 3), (3, 4), (3, 4))  # into "ab é"; no word has the space


def test_a_word_of_the_word_level_stays_whole() -> None:
    tokenizer = train("word", [["do", "n't", "30 000"]], 50)
    encoded = tokenizer.encode_words(["n't", "30 000", "don't"])
    assert encoded.tokens == ("n't", "30 000", "<unk>")
    assert encoded.offsets == ((0, 3), (4, 10), (11, 16))


words = st.lists(texts, max_size=5)


@given(tokenizers, words)
def test_every_word_has_at_least_one_piece_and_it_lies_within(tokenizer: Tokenizer, words: list[str]) -> None:
    encoded = tokenizer.encode_words(words)
    text, start = " ".join(words), 0
    assert [i for pieces in encoded.words for i in pieces] == list(range(len(encoded.ids)))
    for word, pieces in zip(words, encoded.words, strict=True):
        assert len(pieces) > 0
        assert all(start <= a <= b <= start + len(word) for a, b in (encoded.offsets[i] for i in pieces))
        start += len(word) + 1
    assert start == len(text) + 1 or not words


@given(words)
def test_words_of_bytes_come_back_joined_by_spaces(words: list[str]) -> None:
    tokenizer = TRAINED["bytes", False]
    encoded = tokenizer.encode_words(words)
    if UNK not in encoded.ids:  # an empty word at the beginning has no bytes
        assert tokenizer.decode(encoded.ids) == " ".join(words)


@pytest.mark.parametrize("kind", ["bpe", "bytes"])
def test_words_have_the_pieces_that_they_have_in_a_text(kind: Kind) -> None:
    assert (
        TRAINED[kind, False].encode_words(["the", "cat", "sat"]).ids == TRAINED[kind, False].encode("the cat sat").ids
    )


# Training, saving, and what cannot be done


def test_training_twice_gives_the_same_in_any_process(tmp_path: Path) -> None:
    """Hash seeds differ from process to process, and many words here are equally frequent."""
    code = (
        "import sys; from regard.tasks.tokenizers import train;"
        "texts = [f'{i * 7919 % 1000} word{i} {chr(0x4e00 + i)}' for i in range(300)];"
        f"[train(kind, texts, 700).save(sys.argv[1] + kind) for kind in {KINDS}]"
    )
    for name in ("a-", "b-"):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], check=True)
    for kind in KINDS:
        assert (tmp_path / f"a-{kind}").read_bytes() == (tmp_path / f"b-{kind}").read_bytes()


@every_kind
@pytest.mark.parametrize("lowercase", [False, True])
def test_saved_and_loaded_it_is_the_same(kind: Kind, lowercase: bool, tmp_path: Path) -> None:
    tokenizer = TRAINED[kind, lowercase]
    tokenizer.save(tmp_path)
    loaded = load(tmp_path / "tokenizer.json")
    assert (loaded.kind, loaded.lowercase, len(loaded)) == (kind, lowercase, len(tokenizer))
    for text in [*TEXTS, TYPED, "İ Unseen 한 \ud800"]:
        assert loaded.encode(text) == tokenizer.encode(text)
        assert loaded.encode_words(text.split()) == tokenizer.encode_words(text.split())


@every_kind
def test_it_has_the_size_that_was_asked_for(kind: Kind) -> None:
    assert len(train(kind, ["the cat sat on the mat"] * 2, 270)) <= 270
    assert len(TRAINED[kind, False]) <= 400


@every_kind
def test_the_texts_may_be_a_generator_and_its_errors_are_its_own(kind: Kind) -> None:
    def broken():
        yield "a"
        raise InputError("data.txt, row 2: broken")

    assert train(kind, (text for text in ["a b"]), 300).encode("a b").ids == train(kind, ["a b"], 300).encode("a b").ids
    with pytest.raises(InputError, match=r"data\.txt, row 2: broken"):
        train(kind, broken(), 300)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: train("char", ["a"], 10), "kind='char'; expected one of word, bpe, bytes"),  # type: ignore[arg-type]
        (lambda: train("bytes", ["a"], 260), "size=260; expected at least 261 for 'bytes'"),
        (lambda: train("word", ["a"], 5), "size=5; expected at least 6 for 'word'"),
        (lambda: train("word", "a text", 10), "texts is one text; expected several"),
        (lambda: train("bpe", [], 10), "0 texts, none of which holds a character"),
        (lambda: train("word", ["", ""], 10), "2 texts, none of which holds a character"),
        (lambda: train("bpe", ["abcdef"], 10), "'bpe' needs at least 12; or take 'bytes', which needs 261"),
        (lambda: TRAINED["word", False].decode([9999]), "id 9999 is not one of the .* pieces"),
        (lambda: TRAINED["word", False].decode([-1]), "id -1 is not one of"),
        (lambda: TRAINED["word", False].encode_words("a b"), "words is the text 'a b'; expected a list of words"),
    ],
)
def test_what_cannot_be_done(call: Callable, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_files_that_are_no_tokenizer(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(InputError, match=r"tokenizer\.json: No such file or directory; expected a tokenizer\.json"):
        load(tmp_path)
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="not UTF-8 at byte 0"):
        load(path)
    path.write_text("{}")
    with pytest.raises(InputError, match=r"tokenizer\.json: .*; expected a tokenizer\.json that regard wrote"):
        load(path)


def test_a_tokenizer_of_another_hand(tmp_path: Path) -> None:
    TRAINED["word", False].save(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(path.read_text().replace("<pad>", "[PAD]"))
    with pytest.raises(InputError, match=r"its first pieces are \('\[PAD\]', .*; expected \('<pad>'"):
        load(path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not written: No such file or directory; make the folder first"):
        TRAINED["word", False].save(tmp_path / "none" / "tokenizer.json")


def test_the_file_is_what_the_library_reads(tmp_path: Path) -> None:
    import tokenizers as library

    TRAINED["bpe", True].save(tmp_path)
    path = tmp_path / "tokenizer.json"
    assert library.Tokenizer.from_file(str(path)).encode("The CAT").ids == list(
        TRAINED["bpe", True].encode("The CAT").ids
    )
    assert [token["content"] for token in json.loads(path.read_text())["added_tokens"]] == list(SPECIAL)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingError, match=r"pip install 'regard\[tasks\]'"):
        train("word", ["a"], 10)


def test_importing_does_not_bring_the_library() -> None:
    code = "import sys, regard.tasks.tokenizers, regard.tasks.data; print('tokenizers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
