"""How many sentences a second `regard translate` answers on two cores, beside the Marian code of Hugging Face's
transformers: a Transformer of the same sizes with random weights, the same sentences in the same batches, the same
beam, every answer of the same length. Both take turns in one run; the ratio is that of the median turn.

    python -m benchmarks.throughput                 1,000 sentences, greedy and beam 5
    python -m benchmarks.throughput --sentences 200 --turns 1
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard import pretrained
from regard.tasks import model as models
from regard.tasks.corpora import realiser
from regard.tasks.corpora.sampling import sentences
from regard.tasks.examples import lengths_of, padded
from regard.tasks.task import Options, ended, in_batches
from regard.tasks.tokenizers import BOS, EOS
from regard.tasks.writing import Writing

D, HEADS, LAYERS, HIDDEN = 256, 8, 3, 512
WRITTEN = 16  # pieces of each answer
NEVER = -1e4  # the logit of an end of sentence: random weights would end some answers sooner than others


def texts(count: int) -> list[str]:
    """One to three sentences of the built-in grammar, of 3 to some 40 words."""
    draw, say = random.Random(0), realiser("en")
    meanings = sentences("test", 0, 3 * count)
    found = (" ".join(say(each).text for each in islice(meanings, draw.choice((1, 1, 2, 3)))) for _ in range(count))
    return [text for text in found if text]


def ours() -> tuple[Writing, nn.Module]:
    """The shipped translator's tokenizer, and a network of these sizes that never ends a sentence."""
    from regard.models.transformer import Transformer

    task: Any = models.read_task(pretrained.names()["translate"].folder)
    words = len(task.tokenizer) + len(task.labels)
    torch.manual_seed(0)
    network = Transformer(words, words, D, HEADS, LAYERS, HIDDEN, shared=True, tied=False).eval()
    bias = network.writer.out.linear.bias  # pyright: ignore
    with torch.no_grad():
        bias[EOS] = NEVER  # pyright: ignore
    return task, network


def marian(words: int) -> Any:
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(0)
    sizes = {"encoder_layers": LAYERS, "decoder_layers": LAYERS, "encoder_attention_heads": HEADS}
    sizes |= {"decoder_attention_heads": HEADS, "encoder_ffn_dim": HIDDEN, "decoder_ffn_dim": HIDDEN, "d_model": D}
    ends = {"pad_token_id": 0, "bos_token_id": BOS, "eos_token_id": EOS, "decoder_start_token_id": BOS}
    config = MarianConfig(vocab_size=words, max_position_embeddings=512, forced_eos_token_id=None, **sizes, **ends)
    network = MarianMTModel(config).eval()
    network.final_logits_bias[0, EOS] = NEVER
    return network


def batches(task: Any, asked: list[str], beam: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Those that `regard translate` makes."""
    rows = [ended(task.source(text, Options(beam=beam))[0]) for text in asked]
    for places in in_batches(rows, lambda row: (len(row) - 1) * beam):
        chosen = [rows[place] for place in places]
        yield padded(chosen), lengths_of(chosen)


def contestants(asked: list[str], beam: int) -> dict[str, Callable[[], int]]:
    """Who answers: from texts to texts, counted in pieces that were written."""
    task, network = ours()
    task.to = task.labels[0]
    other = marian(len(task.tokenizer) + len(task.labels))

    def regard() -> int:
        return sum(len(each.target) for each in task.answer(network, asked, Options(beam=beam, longest=WRITTEN)))

    @torch.no_grad()
    def transformers() -> int:
        written = 0
        for source, lengths in batches(task, asked, beam):
            real = (torch.arange(source.shape[1]) < lengths[:, None]).long()
            answers = other.generate(
                input_ids=source, attention_mask=real, num_beams=beam, max_new_tokens=WRITTEN, do_sample=False
            )
            for row in answers[:, 1:].tolist():  # without the token it begins with
                task.text(row)
                written += len(row)
        return written

    return {"regard": regard, "Marian (transformers)": transformers}


def turns(asked: list[str], beam: int, count: int) -> dict[str, Any]:
    who = contestants(asked, beam)
    seconds: dict[str, list[float]] = {name: [] for name in who}
    for name, answer in who.items():  # what is done once is not counted
        assert answer() == len(asked) * WRITTEN, name
    for _ in range(count):
        for name, answer in who.items():
            began = time.perf_counter()
            answer()
            seconds[name].append(time.perf_counter() - began)
    first, second = seconds.values()
    return {
        "beam": beam,
        "sentences per second": {name: len(asked) / statistics.median(each) for name, each in seconds.items()},
        "ratio": statistics.median(b / a for a, b in zip(first, second, strict=True)),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sentences", type=int, default=1000)
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument(
        "--json", type=Path, help="a file for the figures; docs/results.md takes scratch/real/throughput.json"
    )
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    asked = texts(args.sentences)
    print(
        f"{len(asked)} sentences, {WRITTEN} pieces written of each, {args.threads} threads, torch {torch.__version__}"
    )
    found = []
    for beam in (1, 5):
        found.append(turns(asked, beam, args.turns))
        speeds = ", ".join(f"{name} {each:.1f}" for name, each in found[-1]["sentences per second"].items())
        print(f"beam {beam}: sentences/s {speeds}; ratio {found[-1]['ratio']:.2f}", flush=True)
    if args.json:
        rows = [{"threads": args.threads, **row} for row in found]
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
