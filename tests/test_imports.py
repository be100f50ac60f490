"""The folder is the layer, and imports point down only; importing the library stays cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "regard"

# A module may import from its own layer's row and from every row below it.
LAYERS = [
    {"__main__"},
    {"web", "cli"},
    {"see", "pretrained"},
    {"tasks"},
    {"recording"},
    {"integrations"},
    {"models"},
    {"nn"},
    {"", "database", "steps", "sampling", "inspection", "mechanisms"},
    {"dispatch"},
    {"resolve"},
    {"backends"},
    {"scores", "normalizers", "masks"},
    {"core"},
]
# Inside core the order is the formula's: what it is made of comes first.
CORE = [
    "statistics",
    "visibility",
    "formula",
    "scores",
    "biases",
    "normalizers",
    "masks",
    "listed",
    "rules",
    "mask",
    "noise",
    "parts",
    "products",
    "shapes",
    "memory",
]


def _imports(path: Path) -> set[str]:
    """The regard modules that a file imports at its top level, dotted, without the leading `regard.`"""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "regard":
            found |= {node.module.removeprefix("regard").lstrip(".")}
            if node.module in ("regard", "regard.core", "regard.backends"):
                found |= {f"{node.module}.{alias.name}".removeprefix("regard.") for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.removeprefix("regard").lstrip(".") for a in node.names if a.name.split(".")[0] == "regard"}
    return found


def _level(module: str) -> int:
    top = module.split(".")[0]
    return next(level for level, names in enumerate(LAYERS) if top in names)


FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(SOURCE)) for path in FILES])
def test_imports_point_down(path: Path) -> None:
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").rstrip(".")
    here = name.split(".")
    for other in _imports(path):
        there = other.split(".")
        known = (SOURCE / Path(*there)).is_dir() or (SOURCE / Path(*there)).with_suffix(".py").exists()
        if not known:  # a name, not a module
            continue
        if here[0] == there[0] == "core" and len(here) > 1 and len(there) > 1:
            assert CORE.index(here[1]) < CORE.index(there[1]), f"{name} imports {other}, which stands above it"
        elif here[0] == there[0] == "backends" and len(here) > 1 and len(there) > 1:
            assert here[1] == there[1], f"{name} imports {other}: backends never import each other"
        elif name != "":  # the public names may come from anywhere
            assert _level(name) <= _level(other), f"{name} imports {other}, which is a layer above it"


def _fresh(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_regard_brings_no_heavy_library() -> None:
    heavy = [
        "triton",
        "numba",
        "matplotlib",
        "lightning",
        "typer",
        "rich",
        "duckdb",
        "tokenizers",
        "fastapi",
        "transformers",
    ]
    code = f"import torch, sys; had = set(sys.modules); import regard; print([m for m in {heavy} if m in sys.modules and m not in had])"
    assert _fresh(code) == "[]"


def test_importing_regard_is_cheap() -> None:
    """At most 0.3 s on top of torch, in processor time, the best of three: machines are noisy."""
    code = "import torch, time; t = time.process_time(); import regard; print(time.process_time() - t)"
    assert min(float(_fresh(code)) for _ in range(3)) < 0.3


def test_the_library_never_prints() -> None:
    for path in FILES:
        if "cli" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            printing = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
            assert not printing, f"{path}:{getattr(node, 'lineno', 0)} prints; the library logs through logging"
