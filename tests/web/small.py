"""A small model of every task, and a server on this machine that stops by itself."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.web.app import make_app
from regard.web.models import Models
from regard.web.server import listen, make_server
from regard.web.work import Work
from tests.tasks.small import run_of, train

ADJECTIVES = {"black": "noir", "white": "blanc", "small": "petit"}
NOUNS = {"cat": "chat", "dog": "chien", "mouse": "rat"}
VERBS = {"sees": "voit", "hears": "entend"}
PAIRS = [
    (f"the {a} {n} {v} the {m}", f"le {NOUNS[n]} {ADJECTIVES[a]} {VERBS[v]} le {NOUNS[m]}")
    for a, n, v, m in itertools.product(ADJECTIVES, NOUNS, VERBS, NOUNS)
]
TAGS = {
    "the": "DET",
    **dict.fromkeys(ADJECTIVES, "ADJ"),
    **dict.fromkeys(NOUNS, "NOUN"),
    **dict.fromkeys(VERBS, "VERB"),
}


def corpus(task: str, folder: Path) -> Path:
    sentences = [english for english, _ in PAIRS]
    if task == "translate":
        text = "".join(f"{english}\t{french}\n" for english, french in PAIRS)
    elif task == "tag":
        rows = (
            "".join(f"{i}\t{w}\t_\t{TAGS[w]}\t_\t_\t_\t_\t_\t_\n" for i, w in enumerate(s.split(), 1))
            for s in sentences
        )
        text = "\n".join(rows) + "\n"
    elif task == "classify":
        text = "".join(f"{'good' if 'cat' in s else 'bad'}\t{s}\n" for s in sentences)
    else:
        text = "".join(f"{s}\n" for s in sentences)
    path = folder / f"{task}.{'conllu' if task == 'tag' else 'tsv'}"
    path.write_text(text)
    return path


def make_models(folder: Path) -> Models:
    places = {}
    for task in ("translate", "tag", "classify", "fill", "denoise", "generate"):
        run = run_of(
            task,
            corpus(task, folder),
            data__tokens=128,
            data__longest=128,
            schedule__steps=30,
            optim__lr=5e-3,
            optim__warmup=5,
        )
        train(run, folder / task)
        places[f"my {task}"] = folder / task
    return Models(places)


@contextmanager
def served(models: Models, work: Work | None = None, **guard: object) -> Iterator[str]:
    """Its address. The server runs in a thread of this process, and ends with the block."""
    app = make_app(models, work=work)
    for name, value in guard.items():
        setattr(app, name, value)
    with listen("127.0.0.1", 0) as socket:
        server = make_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{socket.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            thread.join(10)
            assert not thread.is_alive()
