"""The error rate of attention on running text: as `alignment.links` counts it, where spaces separate the words."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.core.shapes import InputError
from regard.tasks import alignment, metrics
from regard.tasks.corpora.aligned import attended, error, read_aligned
from regard.tasks.corpora.files import write
from regard.tasks.data import Pair
from regard.tasks.model import Trained
from tests.tasks.small import run_of, train

HEADER = "source\ttarget\tsource_places\ttarget_places\tlinks\tsure\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("aligned") / "out"
    write(out, 0, 60, ["fr", "zh"])
    return out


@pytest.fixture(scope="module")
def model(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """It has learned nothing to speak of, so its attention says something else for each word."""
    run = run_of("translate", folder / "train.tsv", data__tokens=256, data__longest=64, data__tokenizer="bpe")
    return train(run, tmp_path_factory.mktemp("model") / "model")


def test_the_same_links_as_between_spaces(model: Trained, tmp_path: Path) -> None:
    path = tmp_path / "rows.tsv"
    path.write_text(
        HEADER + "the old cat slept\tle vieux chat dormit\t0:3 4:7 8:11 12:17\t0:2 3:8 9:13 14:20\t0-0\t0-0\n"
    )
    (row,) = read_aligned(path)
    expected = alignment.links(model.task, model.network, Pair("<2fr> the old cat slept", "le vieux chat dormit"))
    assert len(expected) == 4
    assert attended(model, row, "fr") == expected


def test_words_that_no_space_separates_have_their_own_links(model: Trained, folder: Path) -> None:
    for row in read_aligned(folder / "zh.test.alignment.tsv"):
        assert " " not in row.target
        found = attended(model, row, "zh")
        assert sorted(j for _, j in found) == list(range(len(row.target_spans)))
        assert all(0 <= i < len(row.source_spans) for i, _ in found)


def test_the_error_is_that_of_all_rows_together(model: Trained, folder: Path) -> None:
    path = folder / "fr.test.alignment.tsv"
    rows = list(read_aligned(path))
    assert error(model, read_aligned(path), "fr") == metrics.alignment_error(
        [attended(model, r, "fr") for r in rows], [r.gold for r in rows]
    )
    assert 0.3 < error(model, read_aligned(path), "fr") <= 1
    assert metrics.alignment_error([row.gold.possible for row in rows], [row.gold for row in rows]) == 0


def test_a_broken_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.tsv"
    path.write_text(HEADER + "a\tb\t0:1\t0\t0-0\t0-0\n")
    with pytest.raises(InputError, match=r"rows\.tsv: 'a': expected places as 0:3 4:9 and links as 0-0 1-2"):
        list(read_aligned(path))
