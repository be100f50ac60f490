"""A model's folder comes back as it was, and whatever else lies in it is one clear error; nothing is ever run."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import struct
from contextlib import suppress

import pytest
import torch

import regard
from regard import InputError
from regard.tasks import model
from tests.tasks.small import run_of, same, swaps, train, weights

FILES = ("config.json", "model.safetensors", "tokenizer.json")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a model that was trained for two steps."""
    folder = tmp_path_factory.mktemp("model")
    train(swaps(folder, schedule__steps=2, schedule__evaluate=2), folder / "swap")
    return folder / "swap"


@pytest.fixture
def copied(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "swap", ignore=shutil.ignore_patterns("checkpoints"))


def test_it_comes_back_bit_for_bit(finished, tmp_path):
    read = regard.load(finished)
    assert repr(read).startswith("translate model swap: transformer, ")
    model.save(tmp_path / "copy", read)
    assert same(weights(finished), weights(tmp_path / "copy"))
    for name in ("config.json", "tokenizer.json"):
        assert (finished / name).read_bytes() == (tmp_path / "copy" / name).read_bytes()
    assert regard.load(tmp_path / "copy")("a b") == read("a b")


def test_half_the_size_and_nearly_the_same(finished, tmp_path):
    read = regard.load(finished)
    model.save(tmp_path / "half", read, half=True)
    ratio = (tmp_path / "half" / "model.safetensors").stat().st_size / (finished / "model.safetensors").stat().st_size
    assert 0.4 < ratio < 0.7
    half = regard.load(tmp_path / "half")
    assert {p.dtype for p in half.network.parameters()} == {torch.float32}
    assert half("a b").confidence == pytest.approx(read("a b").confidence, abs=0.01)


def test_a_folder_needs_no_other_file(copied):
    for name in os.listdir(copied):
        if name not in FILES:
            (copied / name).unlink()
    assert regard.load(copied)("a b").output == regard.load(copied)("a b").output


def test_what_is_no_folder(tmp_path):
    with pytest.raises(InputError, match="nowhere: no such folder; expected a model that `regard train` made"):
        regard.load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="file: no such folder"):
        regard.load(tmp_path / "file")


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_missing_or_a_folder(copied, name):
    (copied / name).unlink()
    with pytest.raises(InputError, match=f"{name}: (No such file|there is no such file)"):
        regard.load(copied)
    (copied / name).mkdir()
    with pytest.raises(InputError, match=name):
        regard.load(copied)


def test_a_model_that_was_never_finished_says_what_to_do(copied):
    (copied / "model.safetensors").unlink()
    with pytest.raises(InputError, match="its training has not finished: resume it with `regard train`"):
        regard.load(copied)


def change(folder, **entries) -> None:
    path = folder / "config.json"
    state = json.loads(path.read_text())
    for key, value in entries.items():
        of, _, name = key.rpartition("__")
        (state[of] if of else state)[name] = value
    path.write_text(json.dumps(state))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"format": "regard model 2"}, "format is 'regard model 2'; expected 'regard model 1'"),
        ({"format": ["x"] * 1000}, "format is "),
        ({"task": "hack"}, "task is 'hack'; expected one of tag, classify"),
        ({"task": {}}, "task is '{}'; expected one of tag"),
        ({"task": ["tag"]}, "task is .* expected one of tag"),
        ({"model": 3}, "model is no table; expected the sizes"),
        ({"model__d": 17}, r"model\.d=17 does not divide into model\.heads=2"),
        ({"model__d": 32}, r"model\.safetensors: .* is 11 x 16, config\.json says 11 x 32; the two files"),
        ({"model__d": -1}, "model: d = -1: expected a whole number"),
        ({"model__d": "16"}, "model: d = '16': expected a whole number"),
        ({"model__layers": 10**9}, r"model: layers = 1000000000: expected a whole number"),
        ({"model__d": 10**15}, r"model: d = 1000000000000000: expected a whole number"),
        ({"model__d": 2**16, "model__hidden": 2**16}, r"model\.safetensors: .*config\.json says 11 x 65536"),
        ({"model__score": "additive:" + "9" * 30}, r"config\.json: no network has these sizes"),
        ({"model__kind": "rnn"}, r"model\.safetensors: .*; the two files are not of one model"),
        ({"model__heads": 4}, None),  # the same shapes: another model, but a whole one
        ({"model__score": "exec"}, "no score is called 'exec'"),
        ({"model__wide": 1}, "wide: unknown key"),
        ({"labels": "ab"}, "labels, vectors, longest or noise is not as regard writes it"),
        ({"labels": [1]}, "labels, vectors, longest or noise"),
        ({"labels": ["fr"]}, r"is 11 x 16, config\.json says 12 x 16"),
        ({"longest": 0}, "labels, vectors, longest or noise"),
        ({"longest": 2**40}, "labels, vectors, longest or noise"),
        ({"longest": True}, "labels, vectors, longest or noise"),
        ({"noise": 2}, "labels, vectors, longest or noise"),
        ({"noise": float("nan")}, "labels, vectors, longest or noise"),
        ({"vectors": [10**12, 10**12]}, "vectors"),
        ({"vectors": [3]}, "labels, vectors, longest or noise"),
    ],
    ids=str,
)
def test_a_description_that_is_not_true(copied, entries, message):
    change(copied, **entries)
    if message is None:
        assert regard.load(copied)("a b").text == "a b"
        return
    with pytest.raises(InputError, match=message) as raised:
        regard.load(copied)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "[" * 100_000, '{"a":' * 5000, "\x00", "x" * 2**21, "1e999", "9" * 5000, "NaN"]
)
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_json_that_is_none(copied, name, text):
    (copied / name).write_text(text)
    with pytest.raises(InputError, match=name) as raised:
        regard.load(copied)
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_not_utf_8(copied, name):
    (copied / name).write_bytes(b'{"format": "\xff\xfe"}')
    with pytest.raises(InputError, match=name):
        regard.load(copied)


def test_weights_that_are_too_many_too_few_or_of_another_type(copied):
    from safetensors.torch import save_file

    right = weights(copied)
    first = next(iter(right))
    for wrong in (
        {**right, "extra": torch.zeros(3)},
        {name: tensor for name, tensor in right.items() if name != first},
        {**right, first: right[first][:-1].clone()},
        {},
    ):
        save_file(wrong, copied / "model.safetensors")
        with pytest.raises(InputError, match="the two files are not of one model"):
            regard.load(copied)
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        save_file({name: tensor.to(dtype) for name, tensor in right.items()}, copied / "model.safetensors")
        assert {p.dtype for p in regard.load(copied).network.parameters()} == {torch.float32}


def refusal(folder) -> str:
    """The message of the error, or nothing where the model answers."""
    try:
        regard.load(folder)("a b")
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_are_refused_in_one_line_or_are_whole_after_all(copied, name, seed):
    whole = (copied / name).read_bytes()
    chance = random.Random(seed)
    refused = 0
    for _ in range(15):
        data = bytearray(whole)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        else:
            for _ in range(chance.randint(1, 4)):
                data[chance.randrange(min(len(data), 2000))] = chance.randrange(256)
        (copied / name).write_bytes(data)
        if line := refusal(copied):
            refused += 1
            assert "\n" not in line
            assert str(copied) in line
    assert refused > 3


class Hostile:
    def __init__(self, marker) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("name", FILES)
def test_a_pickle_under_our_names_is_never_unpickled(copied, tmp_path, name):
    marker = tmp_path / "executed"
    hostile = pickle.dumps(Hostile(marker))
    torch.save({"model": Hostile(marker)}, tmp_path / "torch.pt")
    inside = struct.pack("<Q", len(hostile)) + hostile  # where safetensors expects its header
    for data in (hostile, (tmp_path / "torch.pt").read_bytes(), inside):
        (copied / name).write_bytes(data)
        with pytest.raises(InputError, match=name) as raised:
            regard.load(copied)
        assert "\n" not in str(raised.value)
    assert not marker.exists()
    with suppress(FileExistsError):
        pickle.loads(hostile)
    assert marker.exists()  # it would have


def test_a_header_that_promises_more_than_the_file_holds(copied):
    for length in (2**63, 2**40, 2**20):
        header = json.dumps({"w": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
        (copied / "model.safetensors").write_bytes(struct.pack("<Q", length) + header)
        with pytest.raises(InputError, match=r"model\.safetensors: not a whole safetensors file"):
            regard.load(copied)


def test_every_task_from_its_folder(tmp_path):
    texts = {"tag": "1\ta\t_\tX" + "\t_" * 6 + "\n2\tb\t_\tY" + "\t_" * 6 + "\n", "classify": "x\ta\ny\tb\n"}
    asked = {"fill": "a ____"}
    for task in ("tag", "classify", "fill", "denoise", "generate"):
        (tmp_path / task).write_text(texts.get(task, "a b\nb a\n"))
        run = run_of(task, tmp_path / task, schedule__steps=1)
        made = train(run, tmp_path / f"{task}-run")
        read = regard.load(tmp_path / f"{task}-run")
        text = asked.get(task, "a b")
        assert read(text) == made(text)
        assert read.task.state() == made.task.state()
