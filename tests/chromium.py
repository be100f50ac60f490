"""A real browser for tests: Debian's chromium, driven by playwright. tests/conftest.py makes these fixtures known.

Nothing outside is ever reached: requests to other places are aborted and written down in `Visit.outside`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.installing import debian, npm, skip_aloud

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

NAMES = ("chromium", "chromium-browser", "google-chrome")
AXE = (
    "axe-core@4.14.0",
    "sha512-9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ==",
)


def chromium() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


@dataclass
class Visit:
    """A page that may load what lies under one address, and nothing else."""

    page: Page
    outside: list[str] = field(default_factory=list)  # what it asked of other places; refused
    errors: list[str] = field(default_factory=list)  # of scripts, and refusals by the page's own policy


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        skip_aloud("no test in a browser: pip install playwright")
    why_not = debian("chromium", lambda: chromium() is not None)
    if why_not:
        skip_aloud(f"no test in a browser: {why_not}")
    with sync_playwright() as playwright:
        # Chromium's own sandbox cannot be had by root.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium(), args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """visit(address, under=…): open it in a fresh profile. Whatever it throws fails the test."""
    opened: list[tuple[Any, Visit]] = []

    def go(address: str, under: str | None = None, **options: Any) -> Visit:
        options = {"viewport": {"width": 1100, "height": 800}, **options}
        context = browser.new_context(**options)
        context.set_default_timeout(60_000)  # a busy machine is slow, not wrong
        visited = Visit(context.new_page())
        inside = under or address.split("#")[0]

        def judge(route: Route) -> None:
            if route.request.url.startswith(inside):
                route.continue_()
            else:
                visited.outside.append(route.request.url)
                route.abort()

        context.route("**/*", judge)
        visited.page.on("pageerror", lambda error: visited.errors.append(str(error)))
        visited.page.on("console", lambda said: visited.errors.append(said.text) if said.type == "error" else None)
        opened.append((context, visited))
        visited.page.goto(address)
        return visited

    yield go
    for context, visited in opened:
        context.close()
        assert visited.errors == [], visited.errors


@pytest.fixture(scope="session")
def axe(request: pytest.FixtureRequest) -> Path:
    """axe-core, which finds faults of accessibility."""
    path, why_not = npm(*AXE, "axe.min.js", Path(request.config.cache.mkdir("axe")))
    if path is None:
        skip_aloud(f"accessibility was not tested: {why_not}")
    return path


def faults(page: Page, axe: Path) -> list[str]:
    """Serious and critical faults that axe-core finds in the page as it stands, one line each."""
    if not page.evaluate("typeof axe !== 'undefined'"):
        page.evaluate(axe.read_text(encoding="utf-8"))  # by the debugger: no policy of the page is loosened
    found = page.evaluate("async () => (await axe.run({ preload: false })).violations")
    return [
        f"{fault['id']} ({fault['impact']}): {node['target']} {node.get('failureSummary', '')}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]
