"""`regard walk`: what it prints is what the library computes, for every mechanism, and it fits the terminal."""

import itertools
import json

import pytest
import torch
from rich.cells import cell_len

from regard import attention, masks
from regard.cli import main
from regard.cli.walk import FORMS
from regard.mechanisms import NORMALIZERS, SCORES, make_score
from regard.nn import parameter_counts

CAT = "This is a cat"
OWNER = "When he saw his owner, the dog was happy, so he wagged his tail"


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as stop:
            main(["walk", *arguments])
        captured = capsys.readouterr()
        assert (stop.value.code or 0) == code, captured.err
        return captured.out if code == 0 else captured.err

    return run


def told(run, *arguments: str) -> dict:
    return json.loads(run(*arguments, "--json"))


def tensor(numbers) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def test_the_steps_follow_from_one_another(run):
    said = told(run, CAT, "--score", "dot")
    s = {name: tensor(x) for name, x in said["steps"].items() if x is not None}
    for x in "qkv":
        torch.testing.assert_close(s["a"] @ tensor(said[f"W_{x}"]), s[x])
    torch.testing.assert_close(s["q"] @ s["k"].mT, s["scores"])
    torch.testing.assert_close(s["scores"].softmax(-1), s["weights"])
    torch.testing.assert_close(s["weights"] @ s["v"], s["b"])
    assert said["words"] == CAT.split()
    assert said["trained"] is False


def test_additive_can_be_followed_from_what_is_printed(run):
    said = told(run, CAT, "--score", "additive", "--mask", "causal")
    s, p = said["steps"], {name: tensor(x) for name, x in said["parameters"]["score"].items()}
    score = make_score("additive:4", 4, 4).double()
    score.load_state_dict(p)
    q, k, v = (tensor(s[x]) for x in "qkv")
    torch.testing.assert_close(tensor(s["b"]), attention(q, k, v, score=score, mask=masks.causal()))
    hidden = tensor(s["q_projected"])[:, None] + tensor(s["k_projected"])
    torch.testing.assert_close(hidden.tanh() @ p["v"], tensor(s["scores"]))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("score", SCORES)
def test_every_score_fits_80_columns(run, score, form):
    for layout in ("rows", "columns"):
        out = run(CAT, "--score", score, "--form", form, "--layout", layout)
        assert max(map(cell_len, out.splitlines())) <= 80
        assert f"{score}" in out
        assert "…\n" not in out.replace("at most …\n", "")  # nothing was cut off


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_every_normalizer(run, normalizer):
    assert f"α′ = {normalizer}(α)" in run(CAT, "--normalizer", normalizer, "--mask", "window:1,1")


def test_tables_of_the_four_words(run):
    out = run(CAT, "--form", "scalar", "--mask", "causal")
    weights = out.split("α′ = softmax(α)")[1].split("b = α′ v")[0].splitlines()
    rows = {cells[0]: cells[1:] for line in weights if (cells := line.split()) and cells[0] in CAT.split()}
    assert rows["This"] == ["1.000", "0.000", "0.000", "0.000", "1.000"]  # the first word sees itself; then Σ
    assert [row[-1] for row in rows.values()] == ["1.000"] * 4
    scores = out.split("α = score(q, k)")[1].split("α′ =")[0]
    assert [line.count("–") for line in scores.splitlines() if line.startswith(tuple(CAT.split()))] == [3, 2, 1, 0]
    assert "not trained" in out


def test_columns_sum_to_one_with_the_same_b(run):
    rows, columns = told(run, CAT), told(run, CAT, "--layout", "columns")
    torch.testing.assert_close(tensor(columns["steps"]["weights"]).sum(0), torch.ones(4, dtype=torch.float64))
    torch.testing.assert_close(tensor(columns["steps"]["b"]).mT, tensor(rows["steps"]["b"]))


def test_printed_inputs_are_the_inputs(run):
    """One decimal is all there is, so a reader can check the products by hand."""
    said = told(run, CAT, "--score", "additive")
    inputs = [said["steps"]["a"], said["W_q"], said["W_k"], said["W_v"], said["parameters"]["score"]["w_q"]]
    assert all(x == round(x, 1) for x in itertools.chain(*itertools.chain(*inputs)))


def test_equal_words_are_equal_and_seeds_repeat(run):
    a = told(run, "the cat saw the dog.")["steps"]["a"]
    assert a[0] == a[3] != a[1]
    assert told(run, "dog")["steps"]["a"] == [a[4]]  # without the full stop; and wherever it stands
    assert told(run, "dog", "--seed", "1")["steps"]["a"] != [a[4]]
    assert run(CAT) == run(CAT)


def test_many_words_wrap_then_say_what_is_left_out(run):
    out = run(OWNER, "--width", "6")
    assert max(map(cell_len, out.splitlines())) <= 80
    assert "left out" not in out
    assert "tail" in out.split("α = score")[1]
    long = run(" ".join(f"w{i}" for i in range(50)))
    assert "first 20 words; 30 more are left out" in long
    assert "w19" in long
    assert "w20" not in long


def test_words_of_any_script(run):
    out = run("काली बिल्ली ने चूहे को खा लिया।", "--score", "gaussian")
    assert "लिया" in out
    assert "लिया।" not in out  # its punctuation is no part of a word
    assert "黑猫" in run("黑猫 吃了 老鼠。")
    assert "\x1b" not in run("\x1b[31mred [bold]markup[/bold]", "--form", "scalar")


def test_what_it_replaces(run):
    out = run(CAT)
    assert f"{parameter_counts(4, 4, n_max=512, left=0, right=0)['sequence']:,}" in out
    assert "self-attention: W_q, W_k, W_v        48        48" in out  # 3 · 4 · 4
    assert "adds 40 of its own" in run(CAT, "--score", "additive")  # 2 · 4 · 4 + 4 + 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([""], "the text is empty"),
        (["  "], "the text is empty"),
        ([CAT, "--score", "addtive"], "no score is called 'addtive'; did you mean additive?"),
        ([CAT, "--normalizer", "sofmax"], "did you mean softmax?"),
        ([CAT, "--form", "scaler"], "no form is called 'scaler'; did you mean scalar?"),
        ([CAT, "--layout", "row"], "no layout is called 'row'; did you mean rows?"),
        ([CAT, "--mask", "casual"], "no mask is called 'casual'; did you mean causal?"),
        ([CAT, "--mask", "window:1"], "window takes 2 whole numbers; write window:1,1"),
        ([CAT, "--mask", "causal:3"], "causal takes no number; write causal"),
        ([CAT, "--mask", "strided:0"], "stride=0; expected a whole number, 1 or more"),
    ],
)
def test_bad_input_is_one_clear_line(run, arguments, message):
    said = run(*arguments, code=2)
    assert message in said
    assert said.count("\n") == 1


def test_the_scalar_form_has_weights_to_look_at(run):
    """w · tanh(q + k) with a w that rounds to 0.0 would give every word the same weight."""
    steps = told(run, CAT, "--score", "tanh-sum", "--form", "scalar")["steps"]
    assert len({round(weight, 6) for row in steps["weights"] for weight in row}) > 4
