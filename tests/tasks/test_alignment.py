"""Alignments from attention: words have places, weights are set by hand, and the gold decides where to look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from regard.core.shapes import InputError
from regard.tasks import model as models
from regard.tasks.alignment import Linked, _largest, _member, between_spaces, choose, links
from regard.tasks.config import Model
from regard.tasks.data import Pair
from regard.tasks.metrics import Gold, alignment_error
from regard.tasks.model import Trained
from regard.tasks.tokenizers import train
from regard.tasks.translate import Translate
from regard.tasks.writing import Aligner

ENGLISH, FRENCH = "the black cat sleeps", "le chat noir dort"
PAIR = Pair(ENGLISH, FRENCH)


@pytest.fixture(scope="module")
def trained() -> Trained:
    torch.manual_seed(3)
    task = Translate(train("word", [ENGLISH, FRENCH], 50), Model(kind="transformer", d=16, heads=2, layers=2), 20)
    return Trained(task, task.network().eval(), Path("none"))


def translator(trained: Trained) -> Translate:
    assert isinstance(trained.task, Translate)
    return trained.task


def test_words_are_what_stands_between_spaces() -> None:
    assert between_spaces("l'arbre  est vert.") == ((0, 7), (9, 12), (13, 18))


def test_a_piece_belongs_to_the_word_it_has_most_of() -> None:
    assert _member(((0, 3), (3, 8)), ((0, 4), (5, 8))).tolist() == [[1, 0], [0, 1]]


def test_pieces_are_summed_over_the_source_and_averaged_over_the_target() -> None:
    weights = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]])  # two pieces of one word; words: pieces 0+1, and 2
    source = _member(((0, 2), (2, 4), (5, 7)), ((0, 4), (5, 7)))
    assert _largest(weights, _member(((0, 1), (1, 2)), ((0, 2),)), source) == {(0, 0)}  # 0.6 against 0.4
    assert _largest(weights[1:], _member(((0, 1),), ((0, 1),)), source) == {(1, 0)}  # 0.4 against 0.6


def test_what_is_chosen_aligns_as_well_as_was_said(trained: Trained) -> None:
    task, network = translator(trained), trained.network
    # The gold is what one head of one layer says: so there, and nowhere else but by chance, the error is 0.
    task.aligner = Aligner(((0, 1),), late=1)
    said = links(task, network, PAIR)
    task.aligner = None
    found, error = choose(task, network, [Linked(PAIR, Gold(said, said))])
    assert error == 0.0
    task.aligner = found
    assert alignment_error([links(task, network, PAIR)], [Gold(said, said)]) == 0.0
    task.aligner = None


def test_a_late_head_is_read_one_step_later(trained: Trained) -> None:
    task = translator(trained)
    source, target = (task.tokenizer.encode(text).ids for text in (ENGLISH, FRENCH))
    task.aligner = Aligner(((1, 0),), late=0)
    _, now = task.looked(trained.network, source, target)[0]
    task.aligner = Aligner(((1, 0),), late=1)
    name, later = task.looked(trained.network, source, target)[0]
    task.aligner = None
    assert name.endswith("head 1")
    torch.testing.assert_close(now[1:], later)


def test_several_heads_are_averaged(trained: Trained) -> None:
    task = translator(trained)
    source, target = (task.tokenizer.encode(text).ids for text in (ENGLISH, FRENCH))
    alone = []
    for head in ((0, 1), (1, 0)):
        task.aligner = Aligner((head,))
        alone.append(task.looked(trained.network, source, target)[0][1])
    task.aligner = Aligner(((0, 1), (1, 0)))
    name, weights = task.looked(trained.network, source, target)[0]
    task.aligner = None
    assert name == "2 heads that align best"
    torch.testing.assert_close(weights, (alone[0] + alone[1]) / 2)


def test_the_choice_is_saved_with_the_model(trained: Trained, tmp_path: Path) -> None:
    translator(trained).aligner = Aligner(((1, 0), (0, 1)), 1)
    models.save(tmp_path / "model", trained)
    translator(trained).aligner = None
    assert translator(models.load(tmp_path / "model")).aligner == Aligner(((1, 0), (0, 1)), 1)


@pytest.mark.parametrize(
    "wrong",
    [
        7,
        {},
        {"heads": [], "late": 0},
        {"heads": [[2, 0]], "late": 0},
        {"heads": [[0, True]], "late": 0},
        {"heads": [[0, 0]], "late": True},
        {"heads": ["00"], "late": 0},
    ],
)
def test_a_choice_that_the_model_does_not_have_is_refused(trained: Trained, tmp_path: Path, wrong: object) -> None:
    models.save(tmp_path / "model", trained)
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"aligner": wrong}))
    with pytest.raises(InputError, match=r"config.json: aligner is .* expected heads, as \[layer \(below 2\)"):
        models.load(tmp_path / "model")


def test_an_rnn_without_attention_has_nothing_to_align_by(trained: Trained) -> None:
    task = Translate(trained.task.tokenizer, Model(kind="rnn", d=8), 20)
    with pytest.raises(InputError, match="no attention"):
        choose(task, nn.Identity(), [])
