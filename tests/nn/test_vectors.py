"""G: files of word vectors, whole and broken; similarity, neighbours and the map."""

import gzip
import logging
import lzma
import math
import struct
import tracemalloc
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from regard.nn.vectors import Vectors, read_vectors, similarity

THREE = {"the": [0.5, -1.25, 3.0], "dog": [1.0, 2.0, -0.125], "cat": [1e-05, 0.0, 7.0]}


def glove(rows) -> bytes:
    return "".join(f"{word} {' '.join(map(repr, v))}\n" for word, v in rows.items()).encode()


def header(rows) -> bytes:
    return f"{len(rows)} {len(next(iter(rows.values())))}\n".encode()


def word2vec_text(rows) -> bytes:
    return header(rows) + glove(rows).replace(b"\n", b" \n")  # as word2vec writes it: a space after each number


def word2vec_binary(rows, end: bytes = b"\n") -> bytes:
    return header(rows) + b"".join(w.encode() + b" " + struct.pack(f"<{len(v)}f", *v) + end for w, v in rows.items())


def word2vec_binary_without_newlines(rows) -> bytes:
    return word2vec_binary(rows, end=b"")


FORMATS = [glove, word2vec_text, word2vec_binary, word2vec_binary_without_newlines]
PACKINGS = [bytes, gzip.compress, lzma.compress]


def written(folder: Path, content: bytes) -> Path:
    path = folder / "vectors"  # no ending: the content says what it is
    path.write_bytes(content)
    return path


def as_dict(vectors: Vectors) -> dict:
    return {word: vectors[word].tolist() for word in vectors.words}


def same(vectors: Vectors, rows: dict) -> bool:
    """The same words in the same order, and the float32 that is nearest to each number."""
    expected = torch.tensor(list(rows.values()), dtype=torch.float64).float()
    return list(vectors.words) == list(rows) and torch.equal(vectors.tensor, expected)


# Whole files


@pytest.mark.parametrize("pack", PACKINGS, ids=["plain", "gz", "xz"])
@pytest.mark.parametrize("write", FORMATS)
def test_every_format(tmp_path, write, pack):
    path = written(tmp_path, pack(write(THREE)))
    assert same(read_vectors(path), THREE)
    some = read_vectors(path, ["cat", "zebra", "the", "cat"])
    assert same(some, {"the": THREE["the"], "cat": THREE["cat"]})  # in the file's order
    assert some.missing == ["zebra"]
    assert read_vectors(path, []).tensor.shape == (0, 3)


words = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=6)
numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def files(draw: st.DrawFn) -> dict:
    d = draw(st.integers(3, 6))
    rows = st.lists(numbers, min_size=d, max_size=d)
    return draw(st.dictionaries(words, rows, min_size=1, max_size=5))


@pytest.mark.fuzz
@pytest.mark.parametrize("write", FORMATS)
@given(rows=files())
def test_round_trip(tmp_path_factory, write, rows):
    path = written(tmp_path_factory.getbasetemp(), write(rows))
    assert same(read_vectors(path), rows)


def test_words_with_spaces_and_words_that_are_numbers(tmp_path):
    rows = {
        ". . .": [1.0, 2.0],
        "at name@domain.com": [3.0, 4.0],
        "1984": [5.0, 6.0],
        "nan": [7.0, 8.0],
        "...": [9.0, 0.0],
    }
    for first in rows:  # the first line alone must not decide the width
        turned = {first: rows[first], **rows}
        assert as_dict(read_vectors(written(tmp_path, glove(turned)))) == rows
        assert as_dict(read_vectors(written(tmp_path, word2vec_text(turned)))) == rows


def test_a_word_with_a_space_that_is_not_ascii(tmp_path):
    assert read_vectors(written(tmp_path, "a\u00a0b 1 2\n\x85 3 4\n".encode())).words == ["a\u00a0b", "\x85"]


def test_line_ends_tabs_empty_lines_and_a_byte_order_mark(tmp_path):
    content = b"\xef\xbb\xbfdog 1 2\r\n\r\ncat\t3\t4\nrun  5  6"
    assert as_dict(read_vectors(written(tmp_path, content))) == {"dog": [1, 2], "cat": [3, 4], "run": [5, 6]}
    content = b"\xef\xbb\xbf2 2\r\ndog 1 2\r\ncat 3 4\r\n"
    assert as_dict(read_vectors(written(tmp_path, content))) == {"dog": [1, 2], "cat": [3, 4]}


def test_binary_numbers_may_hold_any_byte(tmp_path):
    """Spaces, newlines and digits among the bytes of the numbers end nothing."""
    v = list(struct.unpack("<3f", b"    \n\n\n\n1 \n2"))
    rows = {"a": v, "b": v, "c": [0.0, 1.0, 2.0]}
    assert same(
        read_vectors(written(tmp_path, word2vec_binary({"z": [1.0, 1.5, 2.5], **rows}))), {"z": [1.0, 1.5, 2.5], **rows}
    )


def test_a_binary_longer_than_one_read(tmp_path):
    rows = {f"w{i}": [float(i), 0.5, -float(i)] for i in range(70_000)}  # 1.2 MB
    assert same(read_vectors(written(tmp_path, word2vec_binary_without_newlines(rows))), rows)


def test_of_equal_words_the_first_is_kept_and_it_is_said(tmp_path, caplog):
    path = written(tmp_path, b"dog 1 2\ncat 3 4\ndog 5 6\ndog 7 8\n")
    assert as_dict(read_vectors(path)) == {"dog": [1, 2], "cat": [3, 4]}
    assert "stand more than once, the first is kept: dog" in caplog.text
    caplog.clear()
    read_vectors(path, ["cat"])
    assert not caplog.text  # dog is not asked for


def test_unknown_words_are_said(tmp_path, caplog):
    path = written(tmp_path, glove(THREE))
    vectors = read_vectors(path, ["dog", *"uvwxyz", "Dog"])
    assert vectors.missing == [*"uvwxyz", "Dog"]
    assert "has no vector for 7 of 8 words: u, v, w, x, y and 2 more" in caplog.text


def test_memory_is_that_of_the_vocabulary(tmp_path):
    row = b" ".join([b"0.25"] * 100)
    path = written(tmp_path, b"".join(b"word%d %s\n" % (i, row) for i in range(20_000)))  # 10 MB
    read_vectors(path, ["word7"])
    tracemalloc.start()
    vectors = read_vectors(path, ["word7"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert vectors.words == ["word7"]
    assert peak < 1_000_000


# Broken files

GOOD = b"the 1 2 3\n"
BROKEN_TEXT = [
    (b"dog 1 2\n", r"'dog' has 2 numbers, expected 3"),
    (b"dog 1 2 3 4\n", r"'dog' has 4 numbers, expected 3"),
    (b"dog  1 2\n", r"'dog' has 2 numbers, expected 3"),  # as many spaces as a whole line has
    (b"dog\n", r"'dog' has 0 numbers, expected 3"),
    (b"dog 1 2x 3\n", r"'2x', number 2 of 'dog', is not a number"),
    (b"dog 1 nan 3\n", r"number 2 of 'dog' is nan, expected 3 finite numbers"),
    (b"dog 1 2 -inf\n", r"number 3 of 'dog' is -inf, expected 3 finite numbers"),
    (b"dog 1e39 2 3\n", r"number 1 of 'dog' is inf"),  # finite, but not in float32
    (b"d\xe9j\xe0 1 2 3\n", r"the word 'd\\\\xe9j\\\\xe0' is not UTF-8 at its byte 1"),
]


@pytest.mark.parametrize(("line", "message"), BROKEN_TEXT)
@pytest.mark.parametrize("pack", PACKINGS, ids=["plain", "gz", "xz"])
def test_a_broken_line_is_named(tmp_path, line, message, pack):
    path = written(tmp_path, pack(GOOD + b"of 4 5 6\n" + line + b"cat 7 8 9\n"))
    with pytest.raises(regard.InputError, match=rf"vectors, line 3 \(byte 19\): {message}.*broken='skip'"):
        read_vectors(path)


@pytest.mark.parametrize(("line", "message"), BROKEN_TEXT)
def test_a_broken_line_is_skipped_and_counted(tmp_path, caplog, line, message):
    path = written(tmp_path, b"4 3\n" + GOOD + line + line.replace(b"d", b"b", 1) + b"cat 7 8 9\n")
    assert as_dict(read_vectors(path, broken="skip")) == {"the": [1, 2, 3], "cat": [7, 8, 9]}
    assert "2 broken rows are left out; the first, line 3 (byte 14): " in caplog.text


def test_a_broken_first_line_is_the_one_to_blame(tmp_path):
    path = written(tmp_path, b"dog 1 2\n" + GOOD + b"of 4 5 6\n")
    with pytest.raises(regard.InputError, match=r"line 1 \(byte 0\): 'dog' has 2 numbers, expected 3"):
        read_vectors(path)
    path = written(tmp_path, b"1 3\nthe 0.1 abc 0.3\n")  # no whole row, and still not taken for a binary
    with pytest.raises(regard.InputError, match=r"line 2 \(byte 4\): 'abc', number 2 of 'the', is not a number"):
        read_vectors(path)


def test_numbers_of_other_words_are_not_read_but_their_count_is(tmp_path):
    assert read_vectors(written(tmp_path, GOOD + b"dog 1 x 3\n"), ["the"]).words == ["the"]
    with pytest.raises(regard.InputError, match="'dog' has 2 numbers"):
        read_vectors(written(tmp_path, GOOD + b"of 4 5 6\ndog 1 2\n"), ["the"])


@pytest.mark.parametrize("write", FORMATS[1:])
def test_fewer_and_more_vectors_than_announced(tmp_path, caplog, write):
    whole = write(THREE)
    for announced in (b"2", b"4"):
        path = written(tmp_path, whole.replace(b"3", announced, 1))
        with pytest.raises(regard.InputError, match=rf"first line announces {announced.decode()} vectors, it has 3"):
            read_vectors(path)
        assert same(read_vectors(path, broken="skip"), THREE)
        assert f"announces {announced.decode()} vectors, it has 3" in caplog.text


@pytest.mark.parametrize("write", FORMATS[2:])
def test_a_truncated_binary(tmp_path, caplog, write):
    whole = write(THREE)
    step = (len(whole) - 4) // 3
    path = written(tmp_path, whole[: 4 + 2 * step + 9])  # "cat " and 5 of its 12 bytes
    message = rf"row 3 \(byte {4 + 2 * step}\): truncated: 'cat' has 5 bytes of numbers, expected .* 4·3 = 12"
    with pytest.raises(regard.InputError, match=message):
        read_vectors(path)
    assert list(read_vectors(path, broken="skip").words) == ["the", "dog"]
    assert "1 broken rows are left out; the first, row 3" in caplog.text
    with pytest.raises(regard.InputError, match=r"truncated: 2 bytes of a word, expected"):
        read_vectors(written(tmp_path, whole[: 4 + 2 * step + 2]))


def test_broken_rows_of_a_binary(tmp_path):
    path = written(tmp_path, word2vec_binary({**THREE, "sun": [1.0, math.nan, 2.0]}))
    with pytest.raises(regard.InputError, match=r"row 4 \(byte 55\): number 2 of 'sun' is nan"):  # 4 + 3·17
        read_vectors(path)
    assert same(read_vectors(path, broken="skip"), THREE)
    path = written(tmp_path, word2vec_binary(THREE).replace(b"dog", b"d\xf6g"))
    with pytest.raises(regard.InputError, match=r"row 2 \(byte 21\): the word 'd\\\\xf6g' is not UTF-8 at its byte 1"):
        read_vectors(path)


@pytest.mark.parametrize("pack", PACKINGS[1:], ids=["gz", "xz"])
def test_a_truncated_package(tmp_path, pack):
    many = pack(glove({f"w{i}": [math.sin(i), math.cos(i)] for i in range(5000)}))
    with pytest.raises(regard.InputError, match=r"vectors: cannot be unpacked after line \d+: .*is the file complete"):
        read_vectors(written(tmp_path, many[: len(many) // 2]))
    with pytest.raises(regard.InputError, match=r"vectors: cannot be unpacked: .*is the file complete"):
        read_vectors(written(tmp_path, many[:8]))


def test_a_damaged_package(tmp_path):
    packed = bytearray(gzip.compress(glove(THREE)))
    packed[-6] ^= 1  # the checksum
    with pytest.raises(regard.InputError, match=r"vectors: cannot be unpacked.*CRC"):
        read_vectors(written(tmp_path, bytes(packed)))


def test_files_that_are_none(tmp_path):
    with pytest.raises(
        regard.InputError, match=r"nowhere.txt: No such file or directory; expected GloVe text, or word2vec"
    ):
        read_vectors(tmp_path / "nowhere.txt")
    with pytest.raises(regard.InputError, match="Is a directory; expected GloVe text"):
        read_vectors(tmp_path)
    for empty in (b"", b"\n \n", gzip.compress(b"")):
        with pytest.raises(regard.InputError, match="vectors: the file is empty; expected GloVe text"):
            read_vectors(written(tmp_path, empty))
    with pytest.raises(regard.InputError, match="no line is a word and its numbers; expected GloVe text"):
        read_vectors(written(tmp_path, b"Once upon a time\nthere was a dog.\n"))
    with pytest.raises(regard.InputError, match="announces 0 vectors of d=5"):
        read_vectors(written(tmp_path, b"0 5\n"))
    with pytest.raises(regard.InputError, match="announces 3 vectors, it has 0"):
        read_vectors(written(tmp_path, b"3 5\n"))


def test_arguments_that_cannot_be(tmp_path):
    path = written(tmp_path, glove(THREE))
    with pytest.raises(regard.InputError, match="vocabulary is the text 'dog'; expected a list of words"):
        read_vectors(path, "dog")
    with pytest.raises(regard.InputError, match="broken='ignore'; expected 'raise' or 'skip'"):
        read_vectors(path, broken="ignore")


def test_the_log_is_quiet_about_a_good_file(tmp_path, caplog):
    with caplog.at_level(logging.DEBUG):
        read_vectors(written(tmp_path, glove(THREE)), ["dog"])
    assert not caplog.records


# Similarity, neighbours, the map

DOG, CAT = torch.tensor([0.3645, 0.9507, 0.7320, 0.5987]), torch.tensor([0.2949, 0.7559, 0.6172, 0.4943])


def test_dog_and_cat():
    assert similarity(DOG, CAT).item() == pytest.approx(0.9968, abs=5e-5)
    assert similarity(DOG, DOG).item() == pytest.approx(1)
    assert similarity(DOG, -CAT).item() == pytest.approx(-0.9968, abs=5e-5)
    assert similarity(DOG, 3 * DOG + 5).item() == pytest.approx(1)  # scale and mean do not count


@pytest.mark.parametrize("v", [2, 5, 1000])
def test_any_two_one_hot_words_are_equally_similar(v):
    rows = torch.nn.functional.one_hot(torch.tensor([0, 1, v - 1]), v)  # whole numbers are taken too
    assert similarity(rows[0], rows[1:]).tolist() == pytest.approx([-1 / (v - 1)] * 2, abs=1e-14)


def test_similarity_of_many_at_once():
    a, b = torch.randn(4, 1, 6, dtype=torch.float64), torch.randn(3, 6, dtype=torch.float64)
    expected = torch.corrcoef(torch.cat([a[:, 0], b]))[:4, 4:]
    torch.testing.assert_close(similarity(a, b), expected)


def test_what_has_no_similarity():
    assert similarity(DOG, torch.full((4,), 0.1)).isnan()
    with pytest.raises(regard.ShapeError, match=r"shapes \(4,\) and \(3,\); expected equal d"):
        similarity(DOG, CAT[:3])


def test_nearest():
    table = torch.tensor([[1.0, 0, 0], [2.0, 0, 1], [0.0, 1, 0], [0.0, 0, 0]])
    vectors = Vectors(["east", "mostly east", "north", "nowhere"], table)
    # Pearson with [1 0 0]: [2 0 1] -> (1·2 - 1) / √(2/3 · 2) = 3/√12; [0 1 0] -> -1/2; constant: none
    near = vectors.nearest("east", 10)
    assert [word for word, _ in near] == ["mostly east", "north"]
    assert [r for _, r in near] == pytest.approx([3 / math.sqrt(12), -0.5])
    assert vectors.nearest("east", 1) == near[:1]
    with pytest.raises(regard.InputError, match=r"no vector for 'East' among 4 words; .*case included"):
        vectors.nearest("East")


def test_the_map_keeps_what_lies_in_a_plane():
    """Points of a rectangle somewhere in space: its longer side becomes x, its shorter y."""
    u, v = torch.tensor([0.6, 0.8, 0, 0]), torch.tensor([0, 0, 1.0, 0])
    corners = {"a": (3, 1), "b": (3, -1), "c": (-3, 1), "d": (-3, -1)}
    vectors = Vectors(list(corners), torch.stack([7 + x * u + y * v for x, y in corners.values()]))
    torch.testing.assert_close(vectors.plane(), torch.tensor(list(corners.values())).float())
    torch.testing.assert_close(vectors.plane(["d", "a", "b", "c"])[0], torch.tensor([-3.0, -1.0]))


def test_the_map_is_the_same_whatever_the_order():
    vectors = Vectors([f"w{i}" for i in range(9)], torch.randn(9, 5, dtype=torch.float64))
    for _ in range(20):  # the decomposition alone gives either sign
        order = torch.randperm(9).tolist()
        torch.testing.assert_close(vectors.plane([vectors.words[i] for i in order]), vectors.plane()[order])


def test_words_of_a_kind_fall_together():
    kinds = {"animal": [4.0, 0, 0, 0, 1], "plant": [0, 4.0, 0, 0, 2], "verb": [0, 0, 4.0, 0, 3]}
    rows = {f"{kind} {i}": torch.tensor(v) + 0.3 * torch.randn(5) for kind, v in kinds.items() for i in range(4)}
    places = Vectors(list(rows), torch.stack(list(rows.values()))).plane().reshape(3, 4, 2)
    within = (places - places.mean(1, keepdim=True)).norm(dim=-1).max()
    between = torch.pdist(places.mean(1)).min()
    assert between > 3 * within


def test_maps_of_hardly_anything():
    vectors = Vectors(["a", "b"], torch.tensor([[1.0], [4.0]]))
    assert vectors.plane().tolist() == [[-1.5, 0], [1.5, 0]]  # one direction only
    assert vectors.plane(["a"]).tolist() == [[0, 0]]
    assert Vectors([], torch.empty(0, 3)).plane().shape == (0, 2)
    with pytest.raises(regard.InputError, match="no vector for 'c' among 2 words"):
        vectors.plane(["a", "c"])


def test_vectors_of_ones_own():
    vectors = Vectors(["dog", "cat", "dog"], torch.stack([DOG, CAT, CAT]))
    assert len(vectors) == 3
    assert "dog" in vectors
    assert "cow" not in vectors
    assert torch.equal(vectors["dog"], DOG)  # of equal words the first
    with pytest.raises(regard.ShapeError, match=r"1 words, the tensor has shape \(2, 4\); expected \[1, d\]"):
        Vectors(["dog"], torch.stack([DOG, CAT]))
