"""regard export: a model as one ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.core.shapes import InputError

CLOSE = 1e-3


def export(
    model: Annotated[str, typer.Argument(help="A model's folder, or the name of one that is shipped")],
    out: Annotated[Path, typer.Option(help="The file: x.onnx")],
) -> None:
    """Write a model as one ONNX file: from ids to logits, with its tokenizer and labels in the metadata.

    regard export tagger --out tagger.onnx
    """
    from regard import pretrained
    from regard.tasks.exporting import export as export_

    if out.suffix.lower() != ".onnx":
        raise InputError(f"{out}: expected a name that ends in .onnx")
    found = export_(pretrained.load(model), out)
    print(f"{out}: {', '.join(found.inputs)} -> logits, {out.stat().st_size / 1e6:.1f} MB")
    if found.difference is None:
        print("not checked: pip install onnxruntime")
    elif not found.difference < CLOSE:
        raise InputError(
            f"{out}: its logits differ from torch's by {found.difference:.2g}; do not use it, and report it"
        )
    else:
        print(f"checked in onnxruntime: logits differ from torch's by {found.difference:.1e} at most")
