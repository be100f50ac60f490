"""What benchmarks.gpu measured, as a page: every row beside its goal.

python -m benchmarks.gpu_table build/gpu/gpu.json > benchmarks/results/gpu_h200.md
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

# Our own goals on one H200: milliseconds where a row has no rate, else TFLOP/s; forward, backward.
GOALS: dict[str, tuple[float, float]] = {
    "additive softmax none bf16 (1, 8, 4096, 64)": (2.2, 12.0),
    "gated softmax none bf16 (2, 8, 4096, 64)": (300, 200),
    "dot sigmoid none bf16 (1, 8, 16384, 64)": (430, 300),
    "dot sigmoid none bf16 (1, 8, 16384, 128)": (500, 350),
    "dot relu none bf16 (1, 8, 16384, 64)": (650, 400),
    "dot relu none bf16 (1, 8, 16384, 128)": (700, 450),
    "dot sparsemax none bf16 (2, 8, 4096, 64)": (1.0, 1.0),
    "dot entmax1.5 none bf16 (2, 8, 4096, 64)": (1.0, 1.0),
}
WINDOW = "dot softmax window bf16 (1, 16, 32768, 64)"  # its goal is FlexAttention, of the same run
ABOUT = """\
`python -m benchmarks.gpu`, ours and the peers in the same run: medians of replayed CUDA graphs on random bfloat16 inputs.
"ms" is one forward or one backward pass, MiB the peak of both together beyond the inputs (for 65,536 tokens: beyond the
outputs too), error is |found - exact| / |exact| of the output's first 256 rows against float64. TFLOP/s counts 4 n² d
forward and 10 n² d backward for each head. The goals are this library's own: TFLOP/s where the row has a rate, else ms."""


def page(results: dict[str, Any]) -> str:
    lines = ["# Attention kernels on one GPU", "", results["machine"] + ".", "", ABOUT, "", *_table(results["table"])]
    lines += ["", "## Agreement with float64", ""]
    lines += ["Relative errors of the output and of every gradient; twice, equal to the bit.", ""]
    lines += ["| case | output, gradients |", "|---|---|"]
    for row in results["correctness"]:
        lines.append(f"| {row['case']} | {row['errors'].strip()}{'' if row['ok'] else ' **WRONG**'} |")
    lines += [
        "",
        "## Tiles",
        "",
        "Milliseconds of one kernel by (BLOCK_M, BLOCK_N, warps, stages, most registers).",
        "",
    ]
    lines += ["| work | kernel | ms |", "|---|---|---|"]
    for row in results["variants"]:
        times = sorted(row["ms"].items(), key=lambda each: each[1])
        said = [f"**{tiles} {ms:.3g}**" if at == 0 else f"{tiles} {ms:.3g}" for at, (tiles, ms) in enumerate(times)]
        lines.append(f"| {row['work']} | {row['kernel']} | {', '.join(said)} |")
    if results["failures"]:
        lines += ["", "## Failures", "", *(f"- {text}" for text in results["failures"])]
    return "\n".join(lines) + "\n"


def _table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| work (batch, heads, n, d) | who | forward ms | TFLOP/s | goal | backward ms | TFLOP/s | goal | MiB | error |"
    ]
    lines.append("|" + "---|" * 10)
    flex = next((row for row in rows if row["work"] == WINDOW and row["who"] == "FlexAttention"), None)
    for row in rows:
        goals: tuple[str, ...] = ("", "")
        if row["who"] == "regard":
            goals = tuple(_goal(row, kind, at, flex) for at, kind in enumerate(("forward", "backward")))
        cells = (
            row["work"], row["who"], _figure(row.get("forward")), row.get("forward_rate", ""), goals[0],
            _figure(row.get("backward")), row.get("backward_rate", ""), goals[1], row.get("memory", ""), row.get("error", ""),
        )  # fmt: skip
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return lines


def _goal(row: dict[str, Any], kind: str, at: int, flex: dict[str, Any] | None) -> str:
    if row["work"] == WINDOW and flex is not None:
        return f"{flex[kind]:.3g} ms: {'**met**' if row[kind] <= flex[kind] else 'missed'}"
    if row["work"] not in GOALS or kind not in row:
        return ""
    goal = GOALS[row["work"]][at]
    rate = row.get(f"{kind}_rate")
    met = float(rate) >= goal if rate else row[kind] <= goal
    return f"{goal:g}{'' if rate else ' ms'}: {'**met**' if met else 'missed'}"


def _figure(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(each) for each in value)
    return "" if value is None else f"{value:.4g}"


if __name__ == "__main__":
    print(page(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), end="")
