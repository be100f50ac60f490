"""Every figure that the README claims, one module each: `python -m benchmarks [name ...]`; all, if none is named."""

from __future__ import annotations

import runpy
import sys

FIGURES = {
    "memory": "memory of additive attention beyond its inputs (a minute)",
    "hard": "hard attention finds the one position that matters (two minutes)",
    "captions": "the captioner names what it has not seen and looks at it (four minutes)",
    "cpu": "attention on this processor beside plain torch and torch.compile (four minutes)",
    "training_loop": "what the training loop costs beside a plain one (two minutes)",
    "views": "pages beside bertviz and CircuitsVis: sizes and times (five minutes)",
    "reverse": "reversing a sequence with H1, H2 and H3, by length (fifteen minutes)",
    "story": "translation with and without attention, by sentence length (twelve minutes)",
}


def main() -> None:
    names = sys.argv[1:] or list(FIGURES)
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        known = "\n".join(f"  {name:<10}{what}" for name, what in FIGURES.items())
        sys.exit(f"benchmarks: no figure is called {unknown[0]!r}; there is:\n{known}")
    for name in names:
        print(f"== {name}: {FIGURES[name]}", flush=True)
        sys.argv = [f"benchmarks.{name}"]
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")


if __name__ == "__main__":
    main()
