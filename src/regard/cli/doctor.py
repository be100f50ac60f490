"""regard doctor: what is installed, what this machine has, and what to do about what is missing."""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

EXTRAS = {
    "fast": (("numba",), "attention at fused speed on a CPU"),
    "cli": (("typer", "rich", "duckdb"), "this command line, tables"),
    "tasks": (("lightning", "tokenizers", "safetensors", "sacrebleu"), "training, and models on your own texts"),
    "see": (("matplotlib", "rich"), "pictures"),
    "web": (("fastapi", "uvicorn"), "regard serve"),
    "huggingface": (("transformers",), "attn_implementation='regard'"),
}
EXPORT = ("onnx", "onnxscript", "onnxruntime")
SCRIPTS = {
    "Latin": "é",
    "Greek": "ω",
    "Cyrillic": "я",
    "Devanagari": "न",
    "Gujarati": "ગ",
    "Arabic": "ع",
    "Chinese": "中",
}
MARKS = {"good": ("✓", "green"), "missing": ("–", "yellow"), "wrong": ("✗", "bold red")}


@dataclass(frozen=True)
class Finding:
    """`missing` is what nobody may need; `wrong` is what something will fail by."""

    about: str
    what: str
    mark: str = "good"
    cure: str = ""


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print a list of findings")] = False) -> None:
    """Look at versions, devices, extras, fonts and caches, and say how to cure what is missing.

    Exit status 1 if something is wrong; what is only missing is an extra that you may not need.
    """
    findings = [*_versions(), *_devices(), *_extras(), *_models(), *_fonts(), *_caches()]
    if as_json:
        print(json.dumps([asdict(each) for each in findings], ensure_ascii=False, indent=1))
    else:
        _print(findings)
    if any(each.mark == "wrong" for each in findings):
        raise typer.Exit(1)


def _print(findings: list[Finding]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    wide = max(len(each.about) for each in findings)
    before = ""
    for each in findings:
        mark, style = MARKS[each.mark]
        about = each.about if each.about != before else ""
        line = Text.assemble((mark, style), f" {about:<{wide}}  {each.what}")
        if each.cure:
            line.append(f": {each.cure}")
        console.print(line)
        before = each.about


def _versions() -> Iterator[Finding]:
    import torch

    import regard

    yield Finding("regard", f"{regard.__version__}, in {Path(regard.__file__).parent}")
    old = sys.version_info < (3, 11)
    cure = "needs 3.11 or later" if old else ""
    yield Finding("Python", f"{platform.python_version()}, {platform.platform()}", "wrong" if old else "good", cure)
    release = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    old = release < (2, 11)
    yield Finding("torch", torch.__version__, "wrong" if old else "good", "pip install 'torch>=2.11'" if old else "")


def _devices() -> Iterator[Finding]:
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("CPU", f"{cores} cores, torch uses {torch.get_num_threads()} threads")
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            it = torch.cuda.get_device_properties(i)
            yield Finding("GPU", f"cuda:{i}: {it.name}, {it.total_memory / 2**30:.0f} GiB")
        triton = importlib.util.find_spec("triton") is not None
        yield Finding(
            "GPU", "Triton for its kernels" if triton else "no Triton", "good" if triton else "wrong",
            "" if triton else "pip install triton",
        )  # fmt: skip
    elif shutil.which("nvidia-smi"):
        cure = "install a CUDA build of torch, and see whether nvidia-smi itself works"
        yield Finding("GPU", "there may be one, but torch does not see it", "wrong", cure)
    else:
        yield Finding("GPU", "none; everything runs on the CPU", "missing")


def _extras() -> Iterator[Finding]:
    for extra, (libraries, use) in EXTRAS.items():
        found = [(library, _version(library)) for library in libraries]
        missing = [library for library, version in found if version is None]
        broken = [library for library, version in found if version is not None and not _imports(library)]
        told = ", ".join(f"{library} {version}" for library, version in found if version)
        about = f"regard[{extra}]"
        if broken:
            yield Finding(
                about,
                f"{', '.join(broken)} cannot be imported",
                "wrong",
                f"pip install --force-reinstall {' '.join(broken)}",
            )
        elif missing:
            yield Finding(about, f"no {', '.join(missing)} ({use})", "missing", f"pip install 'regard[{extra}]'")
        else:
            yield Finding(about, told)
    missing = [library for library in EXPORT if _version(library) is None]
    if missing:
        yield Finding("regard export", f"no {', '.join(missing)}", "missing", f"pip install {' '.join(EXPORT)}")
    else:
        yield Finding("regard export", ", ".join(f"{library} {_version(library)}" for library in EXPORT))


def _models() -> Iterator[Finding]:
    from regard import pretrained

    for one in pretrained.names().values():
        yield Finding("models", f"{one.name}: {one.about or one.task}")
    if not pretrained.names():
        yield Finding("models", "none is shipped", "missing", "regard train makes one from your own files")


def _fonts() -> Iterator[Finding]:
    """For pictures as PNG, SVG and PDF; a page is drawn with its reader's fonts."""
    if _version("matplotlib") is None:
        return
    from regard.core.shapes import MissingError
    from regard.see.fonts import families

    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    good = []
    for script, letter in SCRIPTS.items():
        try:
            families([letter])
            good.append(script)
        except MissingError as error:
            cure = str(error).partition("; ")[2].partition(",")[0]
            yield Finding("fonts", f"none for {script} in pictures", "missing", cure)
    yield Finding("fonts", f"for {', '.join(good)}")


def _caches() -> Iterator[Finding]:
    places = [("compiled code of torch", "TORCHINDUCTOR_CACHE_DIR", Path(tempfile.gettempdir()))]
    if _version("triton"):
        places.append(("GPU kernels", "TRITON_CACHE_DIR", Path.home() / ".triton" / "cache"))
    for what, variable, usual in places:
        path = Path(os.environ.get(variable) or usual)
        there = next((each for each in (path, *path.parents) if each.exists()), path)
        if not os.access(there, os.W_OK | os.X_OK):
            yield Finding(
                "caches",
                f"{what}: {path} cannot be written",
                "wrong",
                f"make it writable, or set another place: {variable}",
            )
            continue
        free = shutil.disk_usage(there).free
        full = free < 2**28
        yield Finding(
            "caches",
            f"{what}: {path}, {free / 2**30:.1f} GiB free",
            "wrong" if full else "good",
            "free some space" if full else "",
        )


def _version(library: str) -> str | None:
    if importlib.util.find_spec(library) is None:
        return None
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "of unknown version"


def _imports(library: str) -> bool:
    try:
        importlib.import_module(library)
    except Exception:  # whatever a broken installation raises
        return False
    return True
