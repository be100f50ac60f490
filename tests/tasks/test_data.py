"""Readers of files: what they give, and that every broken file is one clear error."""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.core.shapes import InputError
from regard.tasks import files
from regard.tasks.data import (
    Labelled,
    Pair,
    Plain,
    Tagged,
    read_labelled,
    read_labelled_table,
    read_pair_table,
    read_pairs,
    read_plain,
    read_table,
    read_tagged,
)

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes, name: str = "data.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def token(id: str, form: str, tag: str) -> str:
    return "\t".join([id, form, "_", tag, *"______"]) + "\n"


DOGS = token("1", "Dogs", "NOUN") + token("2", "bark", "VERB")

READERS: dict[str, Callable[[Path], Iterator]] = {
    "plain": read_plain,
    "labelled": read_labelled,
    "labelled table": read_labelled_table,
    "pairs": lambda path: read_pairs(path, path),
    "pair table": read_pair_table,
    "table": lambda path: read_table(path, [1]),
    "tagged": read_tagged,
}
every_reader = pytest.mark.parametrize("read", READERS.values(), ids=READERS)


# What the readers give


def test_plain_text_is_its_lines_without_the_blank_ones(write: Write) -> None:
    assert list(read_plain(write("one\n\n \t\ntwo"))) == [Plain("one"), Plain("two")]


def test_two_files_are_paired_row_by_row(write: Write) -> None:
    pairs = read_pairs(write("a cat\n\na dog\n", "en"), write("un chat\n\nun chien", "fr"))
    assert list(pairs) == [Pair("a cat", "un chat"), Pair("a dog", "un chien")]


def test_a_labelled_text_may_hold_tabs(write: Write) -> None:
    assert list(read_labelled(write("good\tyes\tindeed\n"))) == [Labelled("good", "yes\tindeed")]
    assert list(read_labelled(write("1 very good\n"), ["0", "1"], separator=" ")) == [Labelled("1", "very good")]


def test_columns_by_name_need_a_first_row_of_names(write: Write) -> None:
    path = write("text\tid\tlabel\nfine\t7\tpos\n")
    assert list(read_labelled_table(path)) == [Labelled("pos", "fine")]
    assert list(read_table(path, ["id", "text"])) == [("7", "fine")]


def test_columns_by_number_count_from_one(write: Write) -> None:
    path = write("hello\tbonjour\tCC-BY\nbye\tadieu\tCC-BY\n")
    assert list(read_pair_table(path)) == [Pair("hello", "bonjour"), Pair("bye", "adieu")]
    assert list(read_table(path, [3, 1], header=True)) == [("CC-BY", "bye")]


def test_a_quote_is_a_quote_in_tsv_and_quotes_in_csv(write: Write) -> None:
    assert list(read_table(write('"1" is a number\tx\n', "a.tsv"), [1])) == [('"1" is a number',)]
    path = write('a,b\n"one, ""two""","over\ntwo lines"\n', "a.csv")
    assert list(read_table(path, ["a", "b"])) == [('one, "two"', "over\ntwo lines")]


def test_the_delimiter_may_be_given(write: Write) -> None:
    assert list(read_table(write("a;b\n", "a.csv"), [2], delimiter=";")) == [("b",)]
    assert list(read_table(write("a ||| b\n"), [1, 2], delimiter=" ||| ")) == [("a", "b")]


def test_conllu_leaves_out_comments_ranges_and_empty_nodes(write: Write) -> None:
    french = token("1-2", "du", "_") + token("1", "de", "ADP") + token("2", "le", "DET") + token("2.1", "x", "_")
    path = write("# sent_id = 1\n" + DOGS + "\n# text = du\n" + french + "\n\n")
    assert list(read_tagged(path)) == [
        Tagged(("Dogs", "bark"), ("NOUN", "VERB")),
        Tagged(("de", "le"), ("ADP", "DET")),
    ]


def test_the_last_sentence_needs_no_blank_line(write: Write) -> None:
    assert list(read_tagged(write(DOGS.rstrip("\n")))) == [Tagged(("Dogs", "bark"), ("NOUN", "VERB"))]


@pytest.mark.parametrize("inside", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r", "\x00"])
def test_only_a_line_feed_ends_a_line(write: Write, inside: str) -> None:
    text = f"one{inside}two"
    assert list(read_plain(write(f"{text}\r\n{text}\n"))) == [Plain(text)] * 2
    assert list(read_pair_table(write(f"{text}\tx\n"))) == [Pair(text, "x")]
    assert list(read_tagged(write(token("1", text, "X")))) == [Tagged((text,), ("X",))]


@pytest.mark.parametrize("inside", ["\u2028", "\x85", "\x0b"])
def test_what_unicode_calls_white_is_not_a_blank_line(write: Write, inside: str) -> None:
    assert list(read_plain(write(f"{inside}\n"))) == [Plain(inside)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress], ids=["plain", "gz", "xz"])
@pytest.mark.parametrize("name", ["a.gz", "a.xz", "a.txt"])
def test_packed_files_are_told_by_their_content(write: Write, pack: Callable[[bytes], bytes], name: str) -> None:
    assert list(read_plain(write(pack("été\n".encode()), name))) == [Plain("été")]


def test_a_packed_csv_is_still_a_csv(write: Write) -> None:
    assert list(read_table(write(gzip.compress(b'"a,b",c\n'), "A.CSV.gz"), [1])) == [("a,b",)]


def test_a_byte_order_mark_is_no_text(write: Write) -> None:
    assert list(read_plain(write(b"\xef\xbb\xbfone\n\xef\xbb\xbftwo"))) == [Plain("one"), Plain("\ufefftwo")]
    assert list(read_table(write("\ufefflabel\ttext\na\tb\n"), ["label"])) == [("a",)]


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(st.lists(st.tuples(texts, texts), min_size=1), st.sampled_from(["\n", "\r\n"]))
def test_what_csv_writes_is_what_we_read(tmp_path: Path, rows: list[tuple[str, str]], end: str) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    (tmp_path / "data.csv").write_bytes(out.getvalue().encode())
    assert list(read_table(tmp_path / "data.csv", ["a", "b"])) == rows


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_memory_does_not_grow_with_the_file(write: Write, pack: Callable[[bytes], bytes]) -> None:
    path = write(pack(b"a line of some words\n" * 200_000))  # 4 MB
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_plain(path)) == 200_000
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()


# What is wrong with a file


@every_reader
def test_a_missing_file(tmp_path: Path, read: Callable) -> None:
    with pytest.raises(InputError, match=r"gone: No such file or directory; expected a text file"):
        list(read(tmp_path / "gone"))


@every_reader
def test_a_folder(tmp_path: Path, read: Callable) -> None:
    with pytest.raises(InputError, match="Is a directory"):
        list(read(tmp_path))


@every_reader
def test_an_empty_file(write: Write, read: Callable) -> None:
    for content in (b"", gzip.compress(b""), lzma.compress(b"")):
        with pytest.raises(InputError, match=r"data\.txt: the file is empty"):
            list(read(write(content)))


@every_reader
def test_a_file_of_blank_lines(write: Write, read: Callable) -> None:
    with pytest.raises(InputError, match=r"data\.txt: the file holds no "):
        list(read(write("\n\n  \n")))


@every_reader
def test_bytes_that_are_not_utf8(write: Write, read: Callable) -> None:
    message = r"row 2 \(byte 5\): not UTF-8: byte 0xe9 \(.*\); convert the file to UTF-8"
    with pytest.raises(InputError, match=message):
        list(read(write(b"\t \nab\xe9\n")))


def test_the_byte_counts_after_a_byte_order_mark(write: Write) -> None:
    with pytest.raises(InputError, match=r"row 1 \(byte 4\): not UTF-8: byte 0xff"):
        list(read_plain(write(b"\xef\xbb\xbfa\xff\n")))


def test_utf16_is_called_by_its_name(write: Write) -> None:
    with pytest.raises(InputError, match=r"row 1 \(byte 0\): not UTF-8: byte 0xff \(it looks like UTF-16\)"):
        list(read_plain(write("héllo\n".encode("utf-16"))))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gz", "xz"])
def test_a_packed_file_that_is_cut_off(write: Write, pack: Callable[[bytes], bytes]) -> None:
    whole = pack("".join(f"line {i} of many\n" for i in range(20_000)).encode())
    with pytest.raises(InputError, match=r"cannot be unpacked after row [0-9]+: .*; is the file complete\?"):
        list(read_plain(write(whole[: len(whole) * 3 // 4])))
    with pytest.raises(InputError, match=r"cannot be unpacked at its beginning: .*; is the file complete\?"):
        list(read_plain(write(whole[:20])))


def test_a_packed_file_with_a_changed_byte(write: Write) -> None:
    whole = bytearray(gzip.compress(b"one\ntwo\n"))
    whole[-8] ^= 1  # of the checksum
    with pytest.raises(InputError, match=r"cannot be unpacked .*CRC"):
        list(read_plain(write(bytes(whole))))


def test_a_line_without_end(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST", 10)
    assert list(read_plain(write(b"123456789\n"))) == [Plain("123456789")]
    with pytest.raises(InputError, match=r"row 2 \(byte 2\): longer than 10 bytes; is this a text file\?"):
        list(read_plain(write(b"1\n" + b"0" * 100)))


def test_a_line_without_end_does_not_fill_the_memory(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST", 10)
    path = write(gzip.compress(b"0" * 10_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="longer than 10 bytes"):
            list(read_plain(path))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("left", "right", "counts"), [(3, 5, "3 lines, .* has 5"), (4, 1, "4 lines, .* has 1")])
def test_sides_of_different_length_name_both_counts(write: Write, left: int, right: int, counts: str) -> None:
    source, target = write("a\n" * left, "en"), write("b\n" * right, "fr")
    with pytest.raises(InputError, match=f"en has {counts}"):
        list(read_pairs(source, target))


def test_a_line_that_is_empty_on_one_side(write: Write) -> None:
    source, target = write("a\nb\n", "en"), write("a\n\n", "fr")
    with pytest.raises(InputError, match=r"fr, row 2 \(byte 2\): the line is empty, but row 2 of .*en is not"):
        list(read_pairs(source, target))
    with pytest.raises(InputError, match=r"fr, row 2 \(byte 2\): the line is empty"):
        list(read_pairs(target, source))


def test_an_empty_side(write: Write) -> None:
    with pytest.raises(InputError, match="fr: the file is empty"):
        list(read_pairs(write("a\n", "en"), write("", "fr")))


def test_an_unknown_label(write: Write) -> None:
    message = r"row 2 \(byte 6\): unknown label 'meh'; expected one of pos, neg$"
    with pytest.raises(InputError, match=message):
        list(read_labelled(write("pos\ta\nmeh\tb\n"), ["pos", "neg"]))
    with pytest.raises(InputError, match="unknown label 'meh'"):
        list(read_labelled_table(write("pos\ta\nmeh\tb\n"), (1, 2), ["pos", "neg"]))


def test_of_many_labels_some_are_named(write: Write) -> None:
    with pytest.raises(InputError, match=r"expected one of 0, 1, .*, 19 and 80 more$"):
        list(read_labelled(write("x\ta\n"), [str(i) for i in range(100)]))


def test_an_invisible_character_in_a_label_is_seen(write: Write) -> None:
    with pytest.raises(InputError, match=r"unknown label 'pos\\u200b'"):
        list(read_labelled(write("pos\u200b\ta\n"), ["pos"]))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("alone", "'alone' is one field, expected label<TAB>text"),
        ("pos\t ", "the text is empty"),
        ("\ttext", "the label is empty"),
    ],
)
def test_a_broken_labelled_line(write: Write, line: str, problem: str) -> None:
    with pytest.raises(InputError, match=rf"row 2 \(byte 7\): {problem}"):
        list(read_labelled(write(f"pos\tab\n{line}\n")))


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (token("1", "Dogs", "NOUN") + "2 bark VERB\n", r"row 2 \(byte 26\): 1 column, expected the 10 of CoNLL-U"),
        (DOGS + token("1", "Cats", "NOUN"), r"row 3 \(byte 52\): the id is '1', expected 3; a blank line stands"),
        (token("one", "Dogs", "NOUN"), "the id is 'one', expected 1"),
        (token("1", "", "NOUN"), r"the word \(FORM, column 2\) is empty"),
        (token("1", "Dogs", ""), r"the tag \(UPOS, column 4\) is empty"),
        (token("1", "Dogs", "N"), "unknown tag 'N'; expected one of NOUN, VERB"),
    ],
)
def test_a_broken_conllu_line(write: Write, rows: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        list(read_tagged(write(rows), ["NOUN", "VERB"]))


@pytest.mark.parametrize(
    ("content", "columns", "problem"),
    [
        ("a\tb\nc\n", [1, 2], r"row 2 \(byte 4\): 1 field, expected 2 as in the first row"),
        ("a\tb\n", [3], r"row 1 \(byte 0\): no column 3; the row has 2 fields, counted from 1"),
        ("a\tb\n", [0], "no column 0"),
        ("a\tb\n", ["text"], "no column 'text'; the first row names 'a', 'b'"),
        ("a\ta\n", ["a"], "2 columns are called 'a'; give their numbers"),
        ("a\tb\n", ["a", 2], "columns 'a', 2 mix names and numbers"),
        ("a\tb\n", "a", "columns='a'; expected a list"),
        ("a\tb\n", [], r"columns=\[\]; expected a list"),
    ],
)
def test_a_broken_table(write: Write, content: str, columns: list, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        list(read_table(write(content), columns))


def test_names_without_a_row_of_names(write: Write) -> None:
    with pytest.raises(InputError, match="header=False, but columns 'a' are names"):
        list(read_table(write("a\n"), ["a"], header=False))


def test_a_pair_needs_both_of_its_columns(write: Write) -> None:
    with pytest.raises(InputError, match=r"row 2 \(byte 4\): the target is empty"):
        list(read_pair_table(write("a\tb\nc\t\n")))
    with pytest.raises(InputError, match=r"columns=\(1,\); expected two, the source's and the target's"):
        list(read_pair_table(write("a\tb\n"), (1,)))


def test_a_quote_that_stays_open_is_reported_where_its_row_begins(write: Write) -> None:
    path = write('a,b\n"c\nd",e\nf,"g\nh\n', "a.csv")
    with pytest.raises(InputError, match=r"row 4 \(byte 12\): .*is a quote open, or not doubled\?"):
        list(read_table(path, [1]))


def test_an_open_quote_does_not_read_the_file_into_memory(write: Write) -> None:
    path = write('a,"b\n' + "some text\n" * 100_000, "a.csv")
    with pytest.raises(InputError, match=r"row 1 \(byte 0\): field larger than field limit \(131072\)"):
        list(read_table(path, [1]))
