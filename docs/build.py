"""The gallery as a static site: `python -m docs.build [FOLDER]`. A page for each mechanism and one of them all; it
needs no server and no network. Every picture is drawn from numbers that the page's own code has just computed."""

from __future__ import annotations

import contextlib
import html
import io
import keyword
import re
import sys
import textwrap
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

import regard
from docs import pictures
from docs.gallery import ENTRIES, KINDS, Entry
from docs.sentence import MEANINGS, TEXT, VECTORS, WORDS, vectors
from regard.cli import told
from regard.core.scores import as_score
from regard.core.shapes import Extent
from regard.dispatch import BACKENDS, resolve
from regard.masks import window
from regard.mechanisms import NORMALIZERS, SCORES, make_normalizer, make_score
from regard.see import Picture, save, save_page
from regard.see.figure import kind_of

HERE = Path(__file__).parent
SITE = HERE.parent / "build" / "docs"
STEPS = 150  # of the small models that are trained while the gallery is built


@dataclass(frozen=True)
class Made:
    """A page's code, what it printed, and what it left to be drawn."""

    entry: Entry
    code: str
    said: str
    picture: Picture | None
    costs: list[tuple[str, str]]


def code_of(entry: Entry, model: str = "MODEL") -> str:
    return "\n".join(part for part in textwrap.dedent(entry.code).strip().replace("MODEL", model).splitlines())


def model_of(entry: Entry) -> str | None:
    """The model that a task's page uses: the one that its verb takes, into one language."""
    from regard import pretrained

    found = pretrained.names().get("en-fr") if entry.slug == "translate" else pretrained.default(entry.slug)
    return None if found is None else found.name


def run(entry: Entry, steps: int = STEPS, model: str | None = None) -> Made:
    """Run the code as a reader would. A task without a model is told, not drawn."""
    if entry.kind == "task":
        model = model or model_of(entry)
        if model is None:
            told = f"regard train {entry.slug} --help   # no model for this comes with the installation yet"
            return Made(entry, code_of(entry, "runs/mine"), told, None, [])
    code = code_of(entry, model or "")
    left: dict[str, Any] = {"STEPS": steps}
    torch.manual_seed(0)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(code, f"<docs: {entry.slug}>", "exec"), left)
    shown = code.replace("STEPS", str(steps))
    return Made(entry, shown, said.getvalue().rstrip(), picture_of(entry, left), costs_of(entry, left))


def picture_of(entry: Entry, left: dict[str, Any]) -> Picture:
    if "answer" in left:
        return told.picture_of(left["answer"], left["attended"], entry.slug, left["model"].path.name)
    if "weights" in left and entry.kind not in ("score", "normalizer", "mask"):
        weights = left["weights"].detach()
        weights = weights[0] if weights.ndim == 4 else weights
        n_q, n_k = weights.shape[-2:]
        rows = left.get("rows") or [str(i + 1) for i in range(n_q)]
        columns = left.get("columns") or [str(j + 1) for j in range(n_k)]
        many = weights.ndim == 3 and len(weights) > 1
        maps = [f"head {h + 1}" for h in range(len(weights))] if many else ()
        points = left.get("points")
        view = "matrix" if points is None else "vectors"
        return Picture(weights, rows, columns, title=entry.title, maps=maps, note=entry.note, points=points, view=view)
    x = vectors()[None, None].expand(1, 2 if entry.slug == "per-head" else 1, -1, -1)  # batch, heads, n, d
    parts = {"score": left.get("score"), "normalizer": left.get("normalizer"), "mask": left.get("mask")}
    parts = {name: part for name, part in parts.items() if name == entry.kind}
    if entry.slug == "global-tokens":
        parts["mask"] = left["mask"] | window(1, 1)
    with torch.no_grad():
        weights = regard.attention_weights(x, x, **parts)[0]
    maps = [f"head {h + 1}" for h in range(len(weights))] if len(weights) > 1 else ()
    return Picture(weights, WORDS, WORDS, title=entry.title, maps=maps, note=entry.note)


def costs_of(entry: Entry, left: dict[str, Any]) -> list[tuple[str, str]]:
    """Which backends take it here, as they say themselves, and what a pair costs."""
    if entry.kind not in ("score", "normalizer", "mask"):
        return []
    n, heads = len(WORDS), 2 if entry.slug == "per-head" else 1
    x = vectors()[None, None].expand(1, heads, -1, -1)
    parts = {name: left.get(name) if name == entry.kind else None for name in ("score", "normalizer", "mask")}
    call, query, key, value = resolve(x, x, x, parts["score"], parts["normalizer"], parts["mask"])
    found = []
    for name, backend in BACKENDS.items():
        reason = backend.why_not(query, key, value, call)
        found.append((name, "yes" if reason is None else f"no: {reason}"))
    if entry.kind == "score":
        score = as_score(parts["score"])
        learned = sum(p.numel() for p in score.parameters())
        found.append(("numbers for each pair", str(score.work(score.project(x, x)[0].shape[-1]))))
        found.append(("parameters (d = 8)", str(learned)))
    if entry.kind == "mask" and call.mask is not None:
        allowed = call.mask.allowed(Extent((1, heads), n, n, x.device).tile()).expand(1, heads, n, n)
        found.append((f"of {n} · {n} pairs, on average", f"{allowed.sum().item() / heads:g}"))
    return found


def build(folder: Path = SITE, only: Iterable[str] | None = None, steps: int = STEPS) -> list[Path]:
    """Write the site; `only` these pages, for a look. Returns the pages."""
    chosen = [entry for entry in ENTRIES if only is None or entry.slug in set(only)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "site.css").write_text((HERE / "site.css").read_text(encoding="utf-8"), encoding="utf-8")
    made = [run(entry, steps) for entry in chosen]
    pages = [_write(folder, one, made) for one in made]
    shown = [one for one in pictures.all_shown() if only is None or one.name in set(only)]
    return [_index(folder, made, shown), _pictures(folder, shown), *pages]


# Pages


def _write(folder: Path, one: Made, made: Sequence[Made]) -> Path:
    entry, drawn = one.entry, ""
    if one.picture is not None:
        _draw(folder, entry.slug, one.picture)
        note = one.picture.note if entry.kind == "task" else f" {entry.note}" if entry.note else ""
        on = "On the sentence of the first page." if entry.kind in ("score", "normalizer", "mask") else ""
        drawn = (
            f"<figure>{_img(entry.slug, f'What each word attends to: {entry.title}')}<figcaption>{_text(on + note)} "
            f'<a href="{entry.slug}.view.html">Open it, to zoom, read and compare</a></figcaption></figure>'
        )
    when = "From the command line" if entry.kind == "task" else "When"
    said = f"<h3>It prints</h3>{_pre(html.escape(one.said))}" if one.said else ""
    rows = "".join(f'<tr><th scope="row">{_text(a)}</th><td>{_text(b)}</td></tr>' for a, b in one.costs)
    cost = f"<h3>Cost: who computes it</h3><table>{rows}</table>" if rows else ""
    at = [each.entry.slug for each in made].index(entry.slug)
    turns = [made[at - 1].entry if at else None, made[at + 1].entry if at + 1 < len(made) else None]
    turn = "".join(
        f'<a href="{e.slug}.html">{arrow.format(_text(e.title))}</a>' if e else "<span></span>"
        for e, arrow in zip(turns, ("← {}", "{} →"), strict=True)
    )
    body = (
        f'<p class="quiet">{_text(KINDS[entry.kind][0])}</p><h1>{_text(entry.title)}</h1>'
        f'<p class="formula">{_math(entry.formula)}</p>'
        f'<div class="page"><div><p>{_text(entry.what)}</p><h3>{when}</h3><p>{_text(entry.when)}</p>{cost}</div>'
        f"<div>{drawn}</div></div>{_pre(coloured(one.code))}{said}<div class=turn>{turn}</div>"
    )
    path = folder / f"{entry.slug}.html"
    path.write_text(_page(entry.title, body), encoding="utf-8")
    return path


def _draw(folder: Path, slug: str, picture: Picture) -> None:
    first = picture.only(0).at_first() if picture.whole else picture
    kind = kind_of(first)
    for theme in ("light", "dark"):
        bare = replace(first, title="", note="", maps=first.maps if len(first.maps) > 1 else ("",))
        save(bare, folder / f"{slug}.{theme}.svg", kind, theme=theme)
    save_page(picture, folder / f"{slug}.view.html")


def _pictures(folder: Path, shown: Sequence[pictures.Shown]) -> Path:
    """Each as PNG, SVG, page and in the terminal, with the commands that made them."""
    parts = []
    for one in shown:
        for ending in ("png", "svg", "html"):
            pictures.draw(one, folder / f"{one.name}.{ending}")
        commands = [[*one.command, *one.terminal], *(pictures.into(one, f"{one.name}.{x}") for x in ("png", "html"))]
        image = f'<img src="{one.name}.svg" alt="{html.escape(one.title, quote=True)}">'
        links = ", ".join(f'<a href="{one.name}.{x}">{x.upper()}</a>' for x in ("png", "svg", "html"))
        parts.append(
            f'<section id="{one.name}"><h2>{_text(one.title)}</h2><p>{_text(one.about)}</p>'
            f"<figure class=plate>{image}<figcaption>{links}</figcaption></figure>"
            f"{_pre(html.escape(chr(10).join(map(pictures.line, commands))))}"
            f"<details><summary>In the terminal</summary>{_pre(html.escape(pictures.printed(one)))}</details></section>"
        )
    lead = (
        "<h1>Pictures</h1><p>Each was made by the commands beside it, in this very build: in the terminal, as PNG, SVG and "
        "PDF, and as a page with everything in it. Weights show where a model looks, not why it decides.</p>"
    )
    path = folder / "pictures.html"
    path.write_text(_page("Pictures", lead + "".join(parts)), encoding="utf-8")
    return path


def _index(folder: Path, made: Sequence[Made], shown: Sequence[pictures.Shown]) -> Path:
    side = side_by_side()
    save_page(side, folder / "side-by-side.view.html")
    small = [i for i, weights in enumerate(side.weights) if weights.max() <= 1]  # the others need a scale of their own
    large = [i for i in range(len(side.maps)) if i not in small]
    figures = []
    for slug, which, alt in (("all", small, "weights of at most 1"), ("raw", large, "weights without a limit")):
        for theme in ("light", "dark"):
            drawn = replace(side.only(*which), title="", note="")
            save(drawn, folder / f"side-by-side-{slug}.{theme}.svg", "heads", theme=theme)
        figures.append(_img(f"side-by-side-{slug}", f"Scores and normalizers on one sentence: {alt}"))
    groups = []
    for kind, (title, about) in KINDS.items():
        cards = "".join(_card(one) for one in made if one.entry.kind == kind)
        if cards:
            groups.append(
                f'<h2 id="{kind}">{title}</h2><p class="quiet">{_text(about)}</p><div class="cards">{cards}</div>'
            )
    head = "".join(f"<th>{_text(name)}</th>" for name in MEANINGS)
    rows = "".join(
        f'<tr><th scope="row">{_text(w)}</th>{"".join(f"<td>{x:g}</td>" for x in VECTORS[w].tolist())}</tr>'
        for w in VECTORS.words
    )
    seen = "".join(
        f'<a href="pictures.html#{one.name}"><b>{_text(one.title)}</b>'
        f'<span class=plate><img src="{one.name}.svg" alt=""></span></a>'
        for one in shown
    )
    first = f'<h2 id="pictures">Pictures</h2><p class="quiet">with the commands that made them</p><div class="cards">{seen}</div>'
    body = (
        "<h1>Attention, one mechanism at a time</h1>"
        '<p class="formula">Attention(q, D) = Σᵢ weight(q, kᵢ) · vᵢ</p>'
        "<p>Three independent parts, freely combined: a <b>score</b> says how well a key fits a query, a <b>normalizer</b> "
        "turns one query’s scores into weights, a <b>mask</b> says which pairs exist. Every page has the formula, code that "
        "runs as it stands, and a picture of the numbers that it gave. Weights show where a model looks, not why it decides: "
        "attention is not explanation.</p>"
        f"{first if seen else ''}"
        f'<h2 id="all">All of them on one sentence</h2><p class="quiet">{_text(TEXT)}. Rows are queries, columns are keys; '
        "scores under softmax, then normalizers of the scaled dot product; q = k are the vectors of the table below.</p>"
        f"<figure>{''.join(figures)}<figcaption>{_text(side.note)} "
        '<a href="side-by-side.view.html">Open it, to zoom, read and compare</a></figcaption></figure>'
        f"{''.join(groups)}"
        "<details><summary>The vectors of the words</summary><p>Made by hand, so that anybody can see why two words are "
        f"alike: <code>examples/sentence.glove.txt</code>.</p><table><tr><td></td>{head}</tr>{rows}</table></details>"
    )
    path = folder / "index.html"
    path.write_text(_page("Gallery", body), encoding="utf-8")
    return path


def side_by_side() -> Picture:
    """Every score under softmax, every normalizer of the scaled dot product, by the names of the command line."""
    x = vectors()
    names, found = [], []
    with torch.no_grad():
        for name in SCORES:
            names.append(name)
            found.append(regard.attention_weights(x, x, score=make_score(name, 8, 8)))
        for name in NORMALIZERS:
            names.append(name)
            found.append(regard.attention_weights(x, x, normalizer=make_normalizer(name)))
    note = "Scores with parameters have random ones from seed 0, not trained."
    return Picture(torch.stack(found), WORDS, WORDS, title=TEXT, maps=names, note=note, view="overview")


def _card(one: Made) -> str:
    image = _img(one.entry.slug, "") if one.picture is not None else ""
    return f'<a href="{one.entry.slug}.html"><b>{_text(one.entry.title)}</b>{image}</a>'


def _img(slug: str, alt: str) -> str:
    dark = f'<source srcset="{slug}.dark.svg" media="(prefers-color-scheme: dark)">'
    return f'<picture>{dark}<img src="{slug}.light.svg" alt="{html.escape(alt, quote=True)}"></picture>'


def _page(title: str, body: str) -> str:
    kinds = "".join(f'<a href="index.html#{kind}">{name}</a>' for kind, (name, _) in KINDS.items())
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src 'self' file: data:; "
        "style-src 'self' file:\">\n"
        f'<title>{_text(title)} · regard</title>\n<link rel="icon" href="data:,">\n<link rel="stylesheet" href="site.css">\n'
        f'</head>\n<body>\n<header><a class="home" href="index.html">regard</a><nav aria-label="Kinds"><a href="pictures.html">Pictures</a>{kinds}</nav></header>\n'
        f"<main>{body}</main>\n</body>\n</html>\n"
    )


def _text(text: str) -> str:
    """Escaped; what stands between backticks is code, and W_q has its q below the line."""
    parts = re.split(r"`([^`]+)`", html.escape(text))
    lowered = [re.sub(r"\b([A-Z])_([a-z])\b", r"\1<sub>\2</sub>", part) for part in parts]
    return "".join(f"<code>{part}</code>" if n % 2 else lowered[n] for n, part in enumerate(parts))


def _math(text: str) -> str:
    """Escaped; what follows an underscore stands below the line."""
    return re.sub(r"_(\w|\([^)]*\))", lambda found: f"<sub>{found[1].strip('()')}</sub>", html.escape(text))


def _pre(inside: str) -> str:
    return f'<pre tabindex="0"><code>{inside}</code></pre>'


def coloured(code: str) -> str:
    """Python with its keywords, texts and comments marked."""
    found, at = [], (1, 0)
    lines = code.splitlines(keepends=True)

    def between(start: tuple[int, int], end: tuple[int, int]) -> str:
        if start[0] == end[0]:
            return lines[start[0] - 1][start[1] : end[1]] if start[0] <= len(lines) else ""
        return (
            lines[start[0] - 1][start[1] :]
            + "".join(lines[start[0] : end[0] - 1])
            + (lines[end[0] - 1][: end[1]] if end[0] <= len(lines) else "")
        )

    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        kind = (
            "c" if token.type == tokenize.COMMENT
            else "s" if token.type == tokenize.STRING
            else "k" if token.type == tokenize.NAME and keyword.iskeyword(token.string)
            else ""
        )  # fmt: skip
        if not kind:
            continue
        found.append(html.escape(between(at, token.start), quote=False))
        found.append(f'<span class="{kind}">{html.escape(token.string, quote=False)}</span>')
        at = token.end
    found.append(html.escape(between(at, (len(lines) + 1, 0)), quote=False))
    return "".join(found)


if __name__ == "__main__":
    pages = build(Path(sys.argv[1]) if len(sys.argv) > 1 else SITE)
    print(f"{len(pages)} pages: {pages[0]}")
