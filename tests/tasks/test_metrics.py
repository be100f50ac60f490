"""sacreBLEU itself is the oracle of BLEU and chrF; alignments are counted by hand."""

from __future__ import annotations

import pytest
import sacrebleu

from regard import InputError
from regard.tasks.metrics import Gold, alignment_error, read_gold, translation

OUTPUTS = ["The cat is on the mat .", "A dog barks loudly at the old Moon .", ""]
REFERENCES = ["The cat sat on the mat .", "The dog barks loudly at the moon .", "Hello ."]


@pytest.mark.parametrize("lowercase", [False, True])
def test_bleu_and_chrf_are_those_of_sacrebleu(lowercase):
    found = translation(OUTPUTS, REFERENCES, lowercase)
    assert found["bleu"] == sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES], lowercase=lowercase).score
    assert found["chrf"] == sacrebleu.metrics.CHRF(lowercase=lowercase).corpus_score(OUTPUTS, [REFERENCES]).score
    assert 0 < found["bleu"] < 100


def test_the_signature_says_how_it_was_counted():
    found = translation(OUTPUTS, REFERENCES)
    assert str(found["bleu signature"]).startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert str(found["chrf signature"]).startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")
    assert "case:lc" in str(translation(OUTPUTS, REFERENCES, lowercase=True)["bleu signature"])


def test_what_is_right_is_100_and_what_shares_nothing_is_0():
    whole = translation(REFERENCES, REFERENCES)
    assert whole["bleu"] == pytest.approx(100)
    assert whole["chrf"] == pytest.approx(100)
    none = translation(["qqq"] * 3, REFERENCES)
    assert none["bleu"] == 0
    assert none["chrf"] == 0


def test_the_characters_of_a_language_without_spaces_count_as_words():
    outputs, references = ["猫在垫子上睡觉。"], ["猫在床垫上睡觉。"]
    found = translation(outputs, references)
    assert found["bleu"] == sacrebleu.corpus_bleu(outputs, [references], tokenize="zh").score > 0
    assert "tok:zh" in str(found["bleu signature"])


def links(*pairs: tuple[int, int]) -> frozenset[tuple[int, int]]:
    return frozenset(pairs)


@pytest.mark.parametrize(
    ("found", "sure", "possible", "error"),
    [
        ([(0, 0), (1, 1)], [(0, 0), (1, 1)], [], 0.0),
        ([], [(0, 0)], [], 1.0),
        ([(0, 1)], [(0, 0)], [], 1.0),
        ([(0, 0), (0, 1)], [(0, 0)], [(0, 1)], 0.0),  # what is possible is not wrong
        ([(0, 0)], [(0, 0)], [(0, 1)], 0.0),  # nor is it missed
        ([(0, 0), (2, 2)], [(0, 0), (1, 1)], [], 0.5),  # 1 − (1 + 1) / (2 + 2)
        ([(0, 0), (0, 1), (2, 2)], [(0, 0), (1, 1)], [(0, 1)], 1 - (1 + 2) / (3 + 2)),
    ],
)
def test_alignment_error_rate_by_hand(found, sure, possible, error):
    assert alignment_error([links(*found)], [Gold(links(*sure), links(*possible))]) == pytest.approx(error)


def test_all_sentences_are_counted_together():
    gold = [Gold(links((0, 0)), links()), Gold(links((0, 0), (1, 1), (2, 2)), links())]
    # 1 of 1 and 0 of 3 links are right: 1 − (1 + 1) / (2 + 4), not the mean of 0 and 1
    assert alignment_error([links((0, 0)), links((0, 1))], gold) == pytest.approx(2 / 3)


def test_another_number_of_sentences_is_an_error():
    with pytest.raises(ValueError, match="zip"):
        alignment_error([links()], [])


def test_the_gold_file(tmp_path):
    path = tmp_path / "gold"
    path.write_text("1-1 2p3 10-2\n\n3p1\n")
    assert read_gold(path) == [
        Gold(links((0, 0), (9, 1)), links((0, 0), (1, 2), (9, 1))),
        Gold(links(), links()),
        Gold(links(), links((2, 0))),
    ]


@pytest.mark.parametrize("link", ["0-1", "1-0", "1", "a-b", "1x2", "1--2", "-1", "1-", "²-1", "00-1"])
def test_a_link_that_is_none(tmp_path, link):
    path = tmp_path / "gold"
    path.write_text(f"1-1\n2-2 {link}\n")
    with pytest.raises(InputError, match=rf"gold, row 2 \(byte 4\): '{link}' is no link; expected i-j \(sure\)"):
        read_gold(path)
