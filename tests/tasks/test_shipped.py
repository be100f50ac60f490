"""Models that come with the library: looked up by name, and where one is damaged, the cure is said."""

from __future__ import annotations

import json

import pytest

from regard import InputError, pretrained
from tests.tasks.small import swaps, train


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A folder of shipped models with one in it."""
    train(swaps(tmp_path / "data"), tmp_path / "models" / "swap")
    listed = {"swaps": {"folder": "swap", "task": "translate"}, "gone": {"folder": "not there", "task": "tag"}}
    (tmp_path / "models" / "index.json").write_text(json.dumps(listed))
    monkeypatch.setattr(pretrained, "HERE", tmp_path / "models")
    pretrained.names.cache_clear()
    yield tmp_path / "models"
    pretrained.names.cache_clear()


def test_a_name_is_looked_up(shipped):
    assert list(pretrained.names()) == ["swaps"]
    assert pretrained.load("swaps")("a b").text == "a b"


@pytest.mark.parametrize("name", ["swap", "../models/swap", "gone", "swaps/", "", "swaps\0"])
def test_a_name_never_becomes_a_part_of_a_path(shipped, name):
    with pytest.raises(InputError):
        pretrained.load(name)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_half_a_file_is_told_with_its_cure(shipped, file):
    path = shipped / "swap" / file
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match=f"{file}: .*; the installation is damaged: pip install --force-reinstall"):
        pretrained.load("swaps")


def test_half_an_index_too(shipped):
    (shipped / "index.json").write_text('{"swaps": {')
    with pytest.raises(InputError, match=r"index\.json: .*; the installation is damaged"):
        pretrained.load("swaps")
