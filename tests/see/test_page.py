"""One file with everything in it: nothing is loaded, nothing but its own script may run, no token is markup."""

import base64
import gzip
import hashlib
import html
import json
import re

import pytest
import torch

from regard import InputError
from regard.see import Picture, page, save_page
from regard.see.page import bundle, view_js
from regard.see.payload import pack

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>"


@pytest.fixture
def picture() -> Picture:
    return Picture(torch.tensor([[1.0, 0.0], [0.25, 0.75]]), ["The", "cat"], ["Le", "chat"], title="Le chat")


def scripts(text: str) -> list[tuple[str, str]]:
    return re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)


def test_the_page_holds_the_payload_and_its_own_script(picture):
    (data, payload), (kind, script) = scripts(page(picture))
    assert 'type="application/json"' in data
    assert json.loads(payload) == pack(picture)
    assert kind == ' type="module"'
    assert script.startswith(view_js())


def test_the_policy_lets_nothing_in_but_that_script(picture):
    text = page(picture)
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1])
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    digest = base64.b64encode(hashlib.sha256(scripts(text)[1][1].encode()).digest()).decode()
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert rules["style-src"] == "'none'"
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)


def test_no_text_ends_the_element_that_holds_it():
    picture = Picture(torch.eye(2), [HOSTILE, "a"], [HOSTILE, "b"], title=HOSTILE, maps=[HOSTILE], note=HOSTILE)
    text = page(picture)
    assert len(scripts(text)) == 2
    assert json.loads(scripts(text)[0][1])["rows"][0] == HOSTILE
    assert "<img" not in text.replace(view_js(), "")
    framed = bundle(picture)["text/html"]
    assert framed.count("<") == 2  # the frame, and its end
    assert "<img" not in framed


def test_without_scripts_there_is_the_text(picture):
    plain = html.unescape(re.search(r"<noscript><pre>(.*?)</pre>", page(picture), re.DOTALL)[1])
    assert re.search(r"cat +0\.25 . +0\.75", plain)


def test_a_notebook_gets_a_frame_an_image_and_text(picture):
    shown = picture._repr_mimebundle_()
    assert set(shown) == {"text/html", "text/plain", "image/png"}
    assert base64.b64decode(shown["image/png"]).startswith(b"\x89PNG")
    assert "cat" in shown["text/plain"]
    frame = re.fullmatch(
        r'<iframe sandbox="([^"]*)" srcdoc="([^"]*)" title="Le chat" style="[^"]*"></iframe>', shown["text/html"]
    )
    assert frame[1] == "allow-scripts allow-downloads"  # not the notebook's own rights
    assert html.unescape(frame[2]) == page(picture)


def test_a_notebook_without_fonts_or_with_nothing_to_draw_still_gets_the_rest(monkeypatch, picture):
    from regard.see import fonts

    monkeypatch.setattr(fonts, "_letters", lambda family: frozenset())
    assert set(bundle(picture)) == {"text/html", "text/plain"}
    assert set(bundle(Picture(torch.zeros(0, 2), [], ["a", "b"]))) == {"text/html", "text/plain"}


def test_saving(tmp_path, picture):
    path = save_page(picture, tmp_path / "a.html", theme="dark")
    assert path.read_text(encoding="utf-8") == page(picture, theme="dark")
    assert '"theme":"dark"' in path.read_text(encoding="utf-8")
    with pytest.raises(InputError, match="theme='blue'; expected auto, light, dark"):
        save_page(picture, tmp_path / "b.html", theme="blue")
    assert not (tmp_path / "b.html").exists()


def test_the_module_is_small_and_needs_nothing():
    text = view_js()
    assert len(gzip.compress(text.encode(), 9)) <= 40_000
    assert not re.search(
        r"^\s*import\b|\bimport\(|\brequire\(|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon", text, re.MULTILINE
    )
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
    assert max(map(len, text.splitlines())) <= 120
