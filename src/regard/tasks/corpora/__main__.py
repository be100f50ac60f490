"""python -m regard.tasks.corpora OUT --seed 0 --sentences 30000 --languages fr,it: writes what `files` describes."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from regard.core.shapes import InputError
from regard.tasks.corpora import LANGUAGES
from regard.tasks.corpora.files import write

logger = logging.getLogger("regard.corpora")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m regard.tasks.corpora", description="Write the project's corpora.")
    parser.add_argument("out", type=Path, help="a new or an empty folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sentences", type=int, default=30_000, help="for training, in each language")
    parser.add_argument("--languages", default=",".join(LANGUAGES), help="comma-separated; all, unless given")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        for name, lines in write(asked.out, asked.seed, asked.sentences, asked.languages.split(",")).items():
            logger.info("%s: %d lines", name, lines)
    except InputError as error:
        parser.error(str(error))
    except OSError as error:
        parser.error(f"{asked.out}: {error.strerror or error}; expected a folder that can be written")


if __name__ == "__main__":
    main()
