"""Each route answers what the function behind it answers, in Python and on the command line."""

from __future__ import annotations

import base64
import json
import struct

import pytest
import torch

import regard as library
from regard.cli import told
from regard.cli.walk import FORMS
from regard.mechanisms import NORMALIZERS, SCORES
from regard.see.payload import pack
from regard.steps import LAYOUTS
from regard.tasks.catalogue import TASKS
from regard.tasks.task import Options
from regard.web import operations
from regard.web.asked import Attend, Mechanism, Walk
from tests.cli.conftest import regard  # noqa: F401  the command line, run in this process

SENTENCE = "the black cat sees the dog"
ASKED = {task: {"text": SENTENCE} for task in TASKS} | {
    "fill": {"text": "the black ____ sees the dog"},
    "generate": {"text": "the black", "seed": 7},
}
MORE = {"fill": ["--n-best", 5], "generate": ["--seed", 7]}


OPTIONS = {"fill": Options(n_best=5), "generate": Options(temperature=0.8, top_p=0.95, seed=7)}


def post(client, path, body, **query):
    return client.post(f"/api/{path}", json=body, params=query)


@pytest.mark.parametrize("task", TASKS)
def test_a_task_answers_as_its_verb_does(client, models, task, regard):  # noqa: F811
    body = ASKED[task]
    answer = post(client, task, body).json()
    folder = models.entries[f"my {task}"].folder
    verb = regard(task, body["text"], "--model", folder, "--json", *MORE.get(task, []))
    assert verb.code == 0, verb.err
    expected = json.loads(verb.out)
    assert {key: answer[key] for key in expected} == expected
    assert answer["model"] == f"my {task}"
    assert answer["task"] == task


def test_what_the_small_models_learned(client):
    """So that the comparisons above are not between two empty answers."""
    tagged = post(client, "tag", ASKED["tag"]).json()["words"]
    assert [each["tag"] for each in tagged] == ["DET", "ADJ", "NOUN", "VERB", "DET", "NOUN"]
    assert post(client, "classify", {"text": SENTENCE}).json()["output"] == "good"
    assert post(client, "classify", {"text": "the black dog sees the mouse"}).json()["output"] == "bad"
    assert set(post(client, "translate", {"text": SENTENCE}).json()["output"].split()) & {"le", "chat", "voit"}


@pytest.mark.parametrize("task", ["translate", "tag", "classify", "fill", "generate"])
def test_the_attention_is_what_the_model_attended_to(client, models, task):
    body = {**ASKED[task], "show": True}
    found = post(client, task, body).json()["attention"]
    with models.use(models.entries[f"my {task}"]) as trained:
        answer = trained.answer([body["text"]], OPTIONS.get(task, Options()))[0]
        expected = told.picture_of(answer, trained.attended(answer)).weights[0]
    assert weights_of(found["maps"][0]) == pytest.approx(expected.flatten().tolist(), abs=1e-6)
    assert "attention" in post(client, task, {**body, "show": False}).json()
    assert post(client, task, {**body, "show": False}).json()["attention"] is None


def weights_of(packed) -> list[float]:
    data = base64.b64decode(packed["data"])
    assert packed["kind"] == "f32"
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def test_a_sentence_under_two_mechanisms(client):
    body = {
        "text": "This is a cat",
        "mechanisms": [{"score": "additive"}, {"score": "gaussian:0.5", "normalizer": "entmax:1.3"}],
        "mask": "causal",
        "seed": 3,
    }
    found = post(client, "attend", body).json()
    both = [Mechanism(), Mechanism(score="gaussian:0.5", normalizer="entmax:1.3")]
    both[0] = Mechanism(score="additive")
    picture = operations.attend(Attend(text="This is a cat", mechanisms=both, mask="causal", seed=3))
    assert found == json.loads(json.dumps(pack(picture)))
    assert found["view"] == "compare"
    assert picture.weights[0, 0].tolist() == [1, 0, 0, 0]  # the first word sees only itself
    assert post(client, "attend", body, **{"as": "weights"}).json()["maps"][1]["weights"] == picture.weights[1].tolist()


def test_the_weights_are_torchs(client):
    """q and k as the walk tells them; softmax(q kᵀ / √d) by torch alone."""
    steps = post(client, "walk", {"text": "This is a cat"}).json()["steps"]
    q, k = torch.tensor(steps["q"]), torch.tensor(steps["k"])
    expected = (q @ k.mT / 2).softmax(-1)
    found = post(client, "attend", {"text": "This is a cat"}, **{"as": "weights"}).json()["maps"][0]["weights"]
    torch.testing.assert_close(torch.tensor(found), expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_walk_is_what_the_verb_prints(client, form, layout, regard):  # noqa: F811
    body = {"text": "This is a cat", "score": "additive", "form": form, "layout": layout}
    verb = regard("walk", "This is a cat", "--score", "additive", "--form", form, "--layout", layout, "--json")
    assert post(client, "walk", body).text == verb.out.strip()


@pytest.mark.parametrize("form", ["html", "png", "svg", "pdf"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_file_is_what_the_verb_writes(client, form, theme, tmp_path, regard):  # noqa: F811
    found = post(client, "attend", {"text": "This is a cat"}, **{"as": form, "theme": theme})
    assert found.headers["content-disposition"] == f'attachment; filename="regard.{form}"'
    regard("show", "This is a cat", "--out", tmp_path / f"x.{form}", "--theme", theme)
    assert found.content == (tmp_path / f"x.{form}").read_bytes()


@pytest.mark.parametrize("task", ["translate", "tag", "generate"])
def test_a_model_can_be_drawn(client, task):
    for form, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("html", b"<!DOCTYPE")):
        assert post(client, task, ASKED[task], **{"as": form}).content.startswith(start)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_every_pair_of_mechanisms_is_drawn(client, score, normalizer):
    body = {"text": "a b c", "mechanisms": [{"score": score, "normalizer": normalizer}]}
    assert post(client, "attend", body).status_code == 200


def test_every_mask_that_is_listed_is_known(client):
    listed = client.get("/api/mechanisms").json()
    assert [part["name"] for part in listed["scores"]] == list(SCORES)
    assert [part["name"] for part in listed["normalizers"]] == list(NORMALIZERS)
    for mask in listed["masks"]:
        assert post(client, "attend", {"text": "a b c", "mask": mask}).status_code == 200


def test_the_models_are_listed_without_their_places(client, models):
    listed = client.get("/api/models").text
    assert [each["name"] for each in json.loads(listed)] == list(models.entries)
    assert str(models.entries["my tag"].folder.parent) not in listed


def test_health(client):
    assert client.get("/api/health").json() == {
        "status": "ok", "version": library.__version__, "models": 6, "inside": 0, "room": 34,
    }  # fmt: skip


def test_the_forms_and_layouts_are_those_of_the_verb():
    assert Walk.model_fields["form"].annotation.__args__ == FORMS
    assert Walk.model_fields["layout"].annotation.__args__ == tuple(LAYOUTS)


# What is refused, and how


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("attend", {"text": "a", "mechanisms": [{"score": "gausian"}]}, 422, "did you mean gaussian"),
        ("attend", {"text": "a", "mechanisms": [{"score": "gaussian:1e9"}]}, 422, "plain numbers"),
        ("attend", {"text": "a", "mechanisms": [{"score": "additive:1000000"}]}, 422, "plain numbers"),
        ("attend", {"text": "a", "mechanisms": [{"normalizer": "entmax:1"}]}, 422, "more than 1"),
        ("attend", {"text": "a", "mechanisms": []}, 422, "at least 1 item"),
        ("attend", {"text": "a", "mask": "window"}, 422, "window takes 2 whole numbers"),
        ("attend", {"text": " \t"}, 422, "text: holds no word"),
        ("attend", {"text": "a " * 501}, 422, r"text: 1,002 characters; expected at most 1,000"),
        ("attend", {"text": "a", "wdith": 3}, 422, "wdith: Extra"),
        ("attend", {"text": "a", "width": "4"}, 422, "width: Input should be a valid integer"),
        ("attend", {"text": "a", "width": True}, 422, "width"),
        ("attend", {"text": "a", "seed": 2**31}, 422, "seed: .*less than or equal to 2147483647"),
        ("translate", {"text": "a", "model": "../../etc"}, 404, r"no model for translate is called '../../etc'"),
        ("translate", {"text": "a", "model": "my tag"}, 404, "there is: my translate"),
        ("translate", {"text": "a", "to": "tlh"}, 404, "no model translates into 'tlh'"),
        ("translate", {"text": "a", "model": "my translate", "to": "tlh"}, 404, "one language only"),
        ("fill", {"text": "no blank"}, 422, "text: has no blank; write ____"),
        ("generate", {"text": "a" * 5001}, 422, "at most 5000"),
        ("generate", {"text": "a", "length": 10**9}, 422, "length"),
        ("generate", {"text": "a", "temperature": -1}, 422, "temperature"),
        ("nowhere", {}, 404, "there is no /api/nowhere"),
    ],
)
def test_what_is_wrong_is_one_clear_line(client, path, body, status, message):
    import re

    answer = post(client, path, body)
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]
    assert re.search(message, answer.json()["error"])
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b"[" * 60_000, 400),
        (b"9" * 10_000, 400),
        (b"\xff\xfe", 400),
        (b'{"text": "a", "width": NaN}', 422),
        (b'{"text": "a", "seed": 1e400}', 422),
        (b'{"text": "\\ud800"}', 422),
        (b'{"text": "a", "\\ud800": 1}', 422),
        (b'{"text": {"a": ["b"]}}', 422),
        (b'"text"', 422),
        (b'{"text": "a", "mask": "\\ud800"}', 422),
        (b'{"text": "a", "mechanisms": [{"score": "\\udfff"}]}', 422),
    ],
)
def test_hostile_bodies(client, content, status):
    answer = client.post("/api/attend", content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, list(answer.json())) == (status, ["error"])


@pytest.mark.parametrize("field", ["text", "model", "to"])
def test_half_a_surrogate_pair_is_named(client, field):
    content = json.dumps({"text": "a", field: "a\ud800"}).encode()
    answer = client.post("/api/translate", content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"].partition(":")[0]) == (422, field)


def test_a_form_of_another_site_is_no_json(client):
    """A page elsewhere may send text/plain without asking first; it is not read as JSON."""
    answer = client.post("/api/attend", content=b'{"text": "a"}', headers={"content-type": "text/plain"})
    assert answer.status_code == 422


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00",
        "   ",
        "א ב ג",
        "👩‍👩‍👧 e\u0301",
        "\u202etac",
        "<img src=x onerror=alert(1)>",
        "a" * 5000,
        "a " * 2500,
        "\U0010ffff",
    ],
    ids=repr,
)
@pytest.mark.parametrize("task", TASKS)
def test_any_text_is_answered(client, task, text):
    text = f"{text[:4990]} ____" if task == "fill" else text
    answer = post(client, task, {"text": text})
    assert answer.status_code == 200
    assert answer.json()["text"] == text


def test_nothing_to_draw_is_said(client):
    answer = post(client, "translate", {"text": ""}, **{"as": "png"})
    assert (answer.status_code, answer.json()["error"]) == (
        409, "this answer came without attention; there is nothing to draw",
    )  # fmt: skip
