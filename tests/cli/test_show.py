"""`regard show`: the same numbers as `regard walk`, in the terminal, as figures and as a page."""

import json
import re

import pytest
import torch

from regard.steps import steps

CAT = "This is a cat"


def payload(path) -> dict:
    return json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', path.read_text("utf-8"))[1])


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("this 1 0 0\nis 0 1 0\na 0 0 1\ncat 1 1 0\n")
    return path


def test_the_terminal_shows_what_walk_computes(regard):
    shown = regard("show", CAT, "--score", "additive")
    assert shown.code == 0
    walked = json.loads(regard("walk", CAT, "--score", "additive", "--json").out)
    numbers = re.findall(r"\d\.\d\d", shown.out)
    expected = [f"{w:.2f}" for row in walked["steps"]["weights"] for w in row]
    assert numbers == expected
    assert "Random numbers from seed 0, not trained." in shown.out


def test_several_mechanisms_stand_below_one_another(regard):
    out = regard("show", CAT, "--compare", "additive", "--compare", "dot/sparsemax", "--mask", "causal").out
    assert [line for line in out.splitlines() if "·" in line] == [
        "This is a cat · scaled-dot, softmax",
        "This is a cat · additive, softmax",
        "This is a cat · dot, sparsemax",
    ]
    assert out.count("This  1.00") == 3  # the first word sees only itself
    assert "mask causal" in out


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_figures(regard, tmp_path, ending):
    out = tmp_path / f"cat.{ending}"
    assert regard("show", CAT, "--out", out).code == 0
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert out.read_bytes().startswith(starts[ending])
    once = out.read_bytes()
    regard("show", CAT, "--out", out, "--compare", "dot", "--theme", "dark")
    assert out.read_bytes() != once


def test_the_page_has_the_maps_the_walk_and_the_vectors(regard, tmp_path):
    out = tmp_path / "cat.html"
    assert regard("show", CAT, "--score", "dot", "--compare", "additive", "--out", out, "--theme", "dark").code == 0
    held = payload(out)
    assert [m["name"] for m in held["maps"]] == ["dot, softmax", "additive, softmax"]
    assert (held["view"], held["theme"]) == ("compare", "dark")
    assert held["walk"]["words"] == CAT.split()
    assert {"dot", "additive", "gated"} <= set(held["walk"]["scores"])
    assert len(held["points"]) == 4
    walked = json.loads(regard("walk", CAT, "--score", "dot", "--json").out)
    assert held["walk"]["torch"]["b"] == walked["steps"]["b"]


@pytest.mark.parametrize("view", ["walk", "vectors", "lines", "matrix"])
def test_a_page_begins_with_the_view_that_was_asked_for(regard, tmp_path, view):
    out = tmp_path / "cat.html"
    assert regard("show", CAT, "--compare", "dot", "--view", view, "--out", out).code == 0
    assert payload(out)["view"] == view


def test_words_fall_together_on_their_map(regard, tmp_path):
    """Animals, plants and verbs of real vectors: every word's nearest neighbour is one of its kind."""
    kinds = ["dog cat horse cow mouse sheep", "tree flower grass oak leaf shrub", "run walk eat sleep jump swim"]
    words, out = " ".join(kinds), tmp_path / "map.html"
    ran = regard("show", words, "--vectors", "examples/words.glove.txt", "--view", "vectors", "--out", out)
    assert ran.code == 0
    points = torch.tensor(payload(out)["points"])
    kind = [k for k, its in enumerate(kinds) for _ in its.split()]
    apart = torch.cdist(points, points).fill_diagonal_(torch.inf)
    assert [kind[j] for j in apart.argmin(1).tolist()] == kind
    assert regard("show", words, "--vectors", "examples/words.glove.txt", "--view", "vectors", "--out", tmp_path / "map.svg").code == 0  # fmt: skip


def test_a_long_text_has_no_walk(regard, tmp_path):
    out = tmp_path / "long.html"
    assert regard("show", " ".join(f"w{i}" for i in range(65)), "--out", out).code == 0
    assert payload(out)["walk"] is None


def test_vectors_of_words_are_looked_up(regard, vectors, tmp_path):
    shown = regard("show", CAT, "--score", "dot", "--vectors", vectors)
    x = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]], dtype=torch.float64)  # This as this
    from regard.scores import Dot

    expected = steps(x, x, x, score=Dot()).weights
    assert re.findall(r"\d\.\d\d", shown.out) == [f"{w:.2f}" for w in expected.flatten().tolist()]
    assert "Word vectors from glove.txt, q = k = v" in shown.out
    regard("show", CAT, "--vectors", vectors, "--out", tmp_path / "v.html")
    assert payload(tmp_path / "v.html")["walk"]["identity"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["  "], "the text is empty; expected words"),
        ([CAT, "--score", "dott"], "no score is called 'dott'; did you mean dot?"),
        ([CAT, "--normalizer", "soft"], "no normalizer is called 'soft'"),
        ([CAT, "--compare", "softmx"], "no score or normalizer is called 'softmx'; did you mean softmax?"),
        ([CAT, "--compare", "dot/x"], "no normalizer is called 'x'"),
        ([CAT, "--mask", "window"], "mask 'window': window takes 2 whole numbers; write window:1,1"),
        ([CAT, "--view", "wlk", "--out", "x.html"], "no view is called 'wlk'; did you mean walk?"),
        ([CAT, "--view", "walk", "--out", "x.png"], "--view walk: only a page has it; write --out x.html"),
        ([CAT, "--view", "walk"], "--view walk: the terminal shows matrices; --out x.html or x.png shows it"),
        (["a b", "--view", "vectors", "--out", "x.png"], "--view vectors: three different words make a map"),
        ([CAT, "--view", "compare", "--out", "x.png"], "--view compare: one mechanism cannot be compared"),
        ([CAT, "--theme", "drak"], "no theme is called 'drak'; did you mean dark?"),
        ([CAT, "--out", "x.gif"], "x.gif: expected a name that ends in .html, .png, .svg, .pdf"),
        (
            [CAT, "--out", "nowhere/x.html"],
            "nowhere/x.html: not written: No such file or directory; make the folder first",
        ),
        (
            [CAT, "--out", "nowhere/x.png"],
            "nowhere/x.png: not written: No such file or directory; make the folder first",
        ),
        ([CAT, "--vectors", "gone.txt"], "gone.txt: No such file or directory"),
    ],
)
def test_errors_are_one_line(regard, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    ran = regard("show", *options)
    assert ran.code == 2
    assert ran.err.startswith("regard: ")
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_words_without_a_vector_are_named(regard, vectors):
    ran = regard("show", "This is a zebra", "--vectors", vectors)
    assert ran.code == 2
    assert "glove.txt: has no vector for zebra; leave these words out, or --vectors" in ran.err
