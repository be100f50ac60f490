"""Files that somebody wrote to do harm: each is one clear line. `make torture ROW=files` has the other 100,000."""

from __future__ import annotations

import json
import os
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import regard
from regard import InputError
from regard.tasks import history, tokenizers
from tests.tasks.small import swaps, train


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    train(swaps(folder, data__tokenizer="bpe", data__vocabulary=20, schedule__steps=2), folder / "run")
    return folder / "run"


@pytest.fixture
def folder(tmp_path, whole):
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / "model").mkdir(exist_ok=True)
        shutil.copy(whole / name, tmp_path / "model" / name)
    return tmp_path / "model"


def change(path, **keys):
    """Keys are paths: `model__vocab`."""
    tree = json.loads(path.read_text())
    for key, value in keys.items():
        *above, name = key.split("__")
        place = tree
        for part in above:
            place = place[part]
        place[name] = value(place.get(name)) if callable(value) else value
    path.write_text(json.dumps(tree))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"padding": {"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_id": 0, "pad_type_id": 0, "pad_token": "x"}}, "settings are not those"),
        ({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}}, "settings are not those"),
        ({"model__dropout": 0.5}, "settings are not those"),
        ({"decoder": None}, "settings are not those"),
        ({"decoder": {}}, "settings are not those"),
        ({"model__vocab": lambda v: {**v, "zzz": 10**9}}, "not numbered from 0 without gaps"),
        ({"model__vocab": lambda v: {**v, "zzz": True}}, "not numbered from 0 without gaps"),
        ({"model__vocab": lambda v: {**v, "": len(v)}}, "one of its pieces is empty"),
        ({"model__merges": [["a", "nowhere"]]}, "is not of two of its pieces"),
        ({"model__merges": [["", ""]]}, "is not of two of its pieces"),
        ({"model__merges": "a b"}, "is not of two of its pieces"),
        ({"model": []}, "holds no tokenizer"),
        ({"model__vocab": {}}, "its first pieces are"),
    ],
)  # fmt: skip
def test_a_tokenizer_that_regard_did_not_write(folder, keys, message):
    change(folder / "tokenizer.json", **keys)
    with pytest.raises(InputError, match=message) as error:
        regard.load(folder)
    assert "\n" not in str(error.value)


def test_settings_that_an_earlier_release_did_not_write_may_be_missing(folder):
    tree = json.loads((folder / "tokenizer.json").read_text())
    del tree["model"]["ignore_merges"]
    (folder / "tokenizer.json").write_text(json.dumps(tree))
    assert tokenizers.load(folder).kind == "bpe"


@pytest.mark.parametrize(
    "keys",
    [
        {"vectors": [2**31 - 1, 2**16]},  # of a task that does not read by vectors
        {"vectors": "x"},
        {"labels": None},
        {"longest": 0},
        {"longest": True},
        {"noise": float("nan")},
    ],
)
def test_a_description_that_regard_did_not_write(folder, keys):
    change(folder / "config.json", **keys)
    with pytest.raises(InputError, match="labels, vectors, longest or noise is not as regard writes it"):
        regard.load(folder)


def test_more_layers_than_the_weights_have(folder):
    change(folder / "config.json", model__layers=1000)
    with pytest.raises(InputError, match=r"model\.layers=1000, but model\.safetensors has \d+ tensors"):
        regard.load(folder)


def test_a_key_that_is_missing(folder):
    tree = json.loads((folder / "config.json").read_text())
    del tree["vectors"]
    (folder / "config.json").write_text(json.dumps(tree))
    with pytest.raises(InputError, match="labels, vectors, longest or noise is not as regard writes it"):
        regard.load(folder)


def test_weights_that_are_no_numbers(folder):
    weights = load_file(folder / "model.safetensors")
    next(iter(weights.values())).view(-1)[0] = torch.nan
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(InputError, match="holds numbers that are not finite; the file is damaged"):
        regard.load(folder)


def test_weights_whose_sums_are_no_numbers(folder):
    weights = load_file(folder / "model.safetensors")
    save_file({name: tensor.fill_(3e38) for name, tensor in weights.items()}, folder / "model.safetensors")
    with pytest.raises(InputError, match=f"{folder}: the model gives numbers that are not finite"):
        regard.load(folder)("a b")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_pipe_is_not_waited_for(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(InputError, match=f"{name}: (is no file|there is no such file)"):
        regard.load(folder)


def test_figures_of_a_run_that_anybody_may_have_written(tmp_path):
    lines = [
        {"step": 1, "loss": [1]}, {"step": 10**400, "loss": 1.0}, {"step": 2, "loss": 1e300}, {"step": 3, "loss": float("nan")},
        {"step": True}, [], {"step": 4},
    ]  # fmt: skip
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    went = history.History(tmp_path, 100)
    went.close()
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")
