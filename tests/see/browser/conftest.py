"""Pages of pictures, opened as readers open them: as a file, in a notebook, from a server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from regard.see import Picture, save_page
from regard.see.page import view_js
from regard.see.payload import pack
from tests.chromium import Visit

# What a careful server sends: nothing inline, nothing from elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'none'; img-src data: blob:; base-uri 'none'"
)
SERVED = '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>served</title><main id="view"></main><script type="module" src="start.js"></script></html>'
START = """
import { mount } from "./view.js";
const element = document.getElementById("view");
await mount(element, await (await fetch("payload.json")).json());
element.dataset.ready = "yes";
"""


class _Handler(SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address under which the files of tmp_path are served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=tmp_path)) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/"
        running.shutdown()


@pytest.fixture
def as_file(visit: Callable[..., Visit], tmp_path: Path) -> Callable[..., Visit]:
    """as_file(picture, "row=2&column=3"): its page, saved and opened."""

    def go(picture: Picture, state: str = "", **options: object) -> Visit:
        path = save_page(picture, tmp_path / "picture.html")
        visited = visit(f"{path.as_uri()}#{state}", **options)
        visited.page.wait_for_selector("#view[data-ready]")
        return visited

    return go


@pytest.fixture
def as_notebook(visit: Callable[..., Visit], tmp_path: Path) -> Callable[..., Visit]:
    """What a notebook would put into its page, in a page."""

    def go(picture: Picture) -> Visit:
        shown = picture._repr_mimebundle_()["text/html"]
        path = tmp_path / "notebook.html"
        path.write_text(f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>a</title><main>{shown}</main></html>")
        visited = visit(path.as_uri())
        visited.page.frame_locator("iframe").locator("#view[data-ready]").wait_for(state="attached")
        return visited

    return go


@pytest.fixture
def as_served(visit: Callable[..., Visit], server: str, tmp_path: Path) -> Callable[..., Visit]:
    def go(picture: Picture) -> Visit:
        (tmp_path / "index.html").write_text(SERVED)
        (tmp_path / "start.js").write_text(START)
        (tmp_path / "view.js").write_text(view_js(), encoding="utf-8")
        (tmp_path / "payload.json").write_text(json.dumps(pack(picture)), encoding="utf-8")
        visited = visit(server, under=server)
        visited.page.wait_for_selector("#view[data-ready]")
        return visited

    return go
