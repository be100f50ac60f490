"""The view as one file that needs nothing from anywhere, and as what a notebook shows."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from contextlib import suppress
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import Any

from regard.core.shapes import InputError, MissingError
from regard.see.payload import pack
from regard.see.picture import Picture
from regard.see.terminal import heatmap
from regard.tasks.atomic import write_whole
from regard.tasks.spelling import SURROGATES

THEMES = ("auto", "light", "dark")
START = """
const view = document.getElementById("view"), sheet = new CSSStyleSheet();
sheet.replaceSync("body { margin: 0 }");
document.adoptedStyleSheets = [sheet];
const payload = JSON.parse(document.getElementById("payload").textContent);
mount(view, payload, { whole: true }).then(() => { view.dataset.ready = "yes"; });
"""


def view_js() -> str:
    """The module `mount(element, payload)`, as it is served, written into files and framed in notebooks."""
    return (resources.files("regard.see") / "view.js").read_text(encoding="utf-8")


def page(picture: Picture, *, theme: str = "auto") -> str:
    """An HTML file with everything in it. Its policy lets nothing be loaded, and no script run but its own."""
    if theme not in THEMES:
        raise InputError(f"theme={theme!r}; expected {', '.join(THEMES)}")
    script = view_js() + START
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'none'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    title = html.escape(picture.title or "Attention")
    text = (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n</head>\n<body>\n'
        f'<main id="view"></main>\n<noscript><pre>{html.escape(_plain(picture))}</pre></noscript>\n'
        f'<script type="application/json" id="payload">{_json(pack(picture, theme))}</script>\n'
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )
    return SURROGATES.sub("\ufffd", text)  # half a character, as an argument that is not UTF-8 has it, is none


def save_page(picture: Picture, path: str | Path, *, theme: str = "auto") -> Path:
    """Write the page to a file, to be opened by any browser, offline."""
    path = Path(path)
    write_whole(path, page(picture, theme=theme).encode())
    return path


def bundle(picture: Picture) -> dict[str, str]:
    """For a notebook: the page in a sandboxed frame, an image and text where scripts are stripped."""
    height = min(900, max(420, 300 + 34 * len(picture.rows)))
    framed = html.escape(page(picture), quote=True)
    found = {
        "text/html": f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{framed}" title="{html.escape(picture.title or "Attention", quote=True)}" '
        f'style="width: 100%; height: {height}px; border: 0"></iframe>',
        "text/plain": _plain(picture) or repr(picture),
    }
    with suppress(InputError):  # no matplotlib, no font, nothing to draw: the other two say it all
        found["image/png"] = _png(picture)
    return found


def _png(picture: Picture) -> str:
    from regard.see.figure import figure, kind_of

    drawn = BytesIO()
    figure(picture, kind_of(picture)).savefig(drawn, format="png", dpi=110)
    return base64.b64encode(drawn.getvalue()).decode("ascii")


def _plain(picture: Picture) -> str:
    try:
        return heatmap(picture).text(100, "none")
    except MissingError:
        return repr(picture)


def _json(payload: dict[str, Any]) -> str:
    """No token can end the element that holds it: JSON may write < as an escape."""
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
