"""python -m recipes.real"""

from __future__ import annotations

import argparse
from pathlib import Path

from recipes.real import prepare, train
from recipes.real.runs import DATA, RUNS

ABOUT = """Models of real text, from the files of a folder to the figures of docs/results.md.

    python -m recipes.real prepare --data FOLDER    the text as training reads it, into scratch/real/data
    python -m recipes.real begin [NAME ...]         the folder of each run, with its tokenizer
    python -m recipes.real train A,B C ...          train what was begun: A, then B, and at the same time C
    python -m recipes.real measure [NAME ...]       every figure, into scratch/real/results.json and docs/results.md
    python -m recipes.real ship                     what was measured of `many`, into the library, as `everyday`

What was begun here may be trained elsewhere: `train --pack OUT` writes what comes back in parts, `unpack OUT` reads it.
"""


def main() -> None:
    options = argparse.ArgumentParser(
        prog="python -m recipes.real", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("what", choices=("prepare", "begin", "train", "answer", "unpack", "measure", "ship"))
    options.add_argument("names", nargs="*", help=f"of {', '.join(RUNS)}; all, unless given")
    options.add_argument("--data", type=Path, default=Path("../shared/data"), help="prepare, measure: the files")
    options.add_argument("--corpora", type=Path, default=Path("scratch/corpora"), help="the built-in ones")
    options.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options.add_argument("--seconds", type=float, default=600.0, help="train: when all runs have ended")
    options.add_argument("--pack", type=Path, help="train: a folder for what they made")
    options.add_argument("--most", type=int, default=60 * 2**20, help="train: bytes of it")
    asked = options.parse_args()
    if asked.what == "unpack":
        for folder in asked.names:
            train.unpack(Path(folder))
        return
    names = asked.names or list(RUNS)
    for name in ",".join(names).split(","):
        if name not in RUNS:
            options.error(f"{name}: no such run; expected some of {', '.join(RUNS)}")
    if asked.what == "prepare":
        prepare.prepare(asked.data, asked.corpora, DATA)
    elif asked.what == "begin":
        train.begin(names)
    elif asked.what == "train":
        train.side_by_side([name.split(",") for name in names], asked.seconds, asked.device)
        if asked.pack:
            left_out = train.pack(",".join(names).split(","), asked.pack, asked.most)
            print("weights that did not fit:", ", ".join(left_out) or "none", flush=True)
    elif asked.what == "answer":
        for name in names:
            train.answer(name, asked.device)
    elif asked.what == "ship":
        from recipes.real.ship import ship

        ship()
    else:
        from recipes.real import measure

        measure.measure(names, asked.device)


if __name__ == "__main__":
    main()
