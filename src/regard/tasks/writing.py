"""What the tasks share that write a text after reading one: translation, denoising."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.shapes import InputError
from regard.models.decoding import Decoded, Hypothesis, beam, greedy, sample
from regard.recording import Record, record
from regard.tasks.examples import IGNORED, Batch, Item, counted, lengths_of, padded
from regard.tasks.task import Answer, Attended, Options, Task, ended, in_batches, lost, mean_heads
from regard.tasks.tokenizers import BOS, EOS


@dataclass(frozen=True)
class Aligner:
    """Which attention tells best where a word came from: the mean of these heads, each (layer, head) from 0, at the
    step that writes the word (late = 0) or at the one after it, which reads it (late = 1)."""

    heads: tuple[tuple[int, int], ...]
    late: int = 0


class Writing(Task):
    """One text in, another out."""

    aligner: Aligner | None = None  # where it is not known: the mean of the last layer but one

    def state(self) -> dict[str, Any]:
        return super().state() | ({} if self.aligner is None else {"aligner": asdict(self.aligner)})

    def collate(self, items: Sequence[Item], chance: int) -> Batch:
        source, target = [ended(item.source) for item in items], [ended(item.target) for item in items]
        asked = padded(target, IGNORED)
        given = padded([(BOS, *item.target) for item in items])
        return Batch(padded(source), lengths_of(source), asked, given, units=counted(asked))

    def logits(self, network: nn.Module, batch: Batch) -> tuple[Float[Tensor, "B m V"], Int[Tensor, "B m"]]:
        return network(batch.source, batch.given, batch.lengths), batch.target

    def loss(self, network: nn.Module, batch: Batch, smoothing: float = 0.0) -> Float[Tensor, ""]:
        return network(batch.source, batch.given, batch.lengths, read=lost(batch.target, smoothing))

    def source(self, text: str, options: Options) -> tuple[tuple[int, ...], tuple[str, ...], bool]:
        """What the network reads of a text, without its end; what is unknown of it; was it cut?"""
        encoded, cut = self.pieces(text, self.longest - 1)
        return encoded.ids, self.unknown(text, encoded), cut

    def answer(self, network: nn.Module, texts: Sequence[str], options: Options) -> list[Answer]:
        network.eval()
        device = next(network.parameters()).device
        # Of nothing there is nothing to say.
        answers: list[Any] = [None if text.strip() else Answer(text, "", 1.0) for text in texts]
        asked = [i for i, answer in enumerate(answers) if answer is None]
        sources = {i: self.source(texts[i], options) for i in asked}
        for chosen in in_batches(asked, lambda i: len(sources[i][0]) * max(options.beam, options.n_best)):
            places = [asked[place] for place in chosen]
            rows = [ended(sources[i][0]) for i in places]
            read = padded(rows).to(device), lengths_of(rows).to(device)
            most = options.longest or [min(2 * len(row) + 10, self.longest) for row in rows]  # not of the batch
            found = written(network, *read, BOS, options, most)
            for i, n_best in zip(places, found.n_best, strict=True):
                ids, unknown, cut = sources[i]
                answers[i] = self.told(texts[i], ids, n_best, unknown, cut, options)
        return answers

    def told(
        self,
        text: str,
        ids: tuple[int, ...],
        n_best: Sequence[Hypothesis],
        unknown: tuple[str, ...],
        cut: bool,
        options: Options,
    ) -> Answer:
        finite(n_best)
        told = [(self.text(each.tokens), confidence(each, options)) for each in n_best]
        (output, sure), *others = told
        return Answer(
            text, output, sure, tuple(others), unknown=unknown, cut=cut, source=ids, target=tuple(n_best[0].tokens)
        )

    def attended(self, network: nn.Module, answer: Answer) -> list[Attended]:
        """Which pieces of the source each written piece looked at."""
        if self.model.kind == "rnn" or not answer.target:
            return []
        rows, columns = self.named(answer.target), self.named(answer.source)
        words: tuple[int, ...] | None = self.grouped(answer.source)
        if self.model.kind == "autoencoder":  # which sees the source only through its latent
            columns, words = tuple(f"latent {slot + 1}" for slot in range(self.model.slots)), None
        own = self.grouped(answer.target)
        found = []
        for name, weights in self.looked(network, answer.source, answer.target):
            shown, ends = weights[: len(rows)].split([len(columns), weights.shape[1] - len(columns)], dim=1)
            found.append(Attended(name, rows, columns, shown, own, words, ends.sum(-1)))
        return found

    @torch.no_grad()
    def looked(
        self, network: nn.Module, source: Sequence[int], target: Sequence[int]
    ) -> list[tuple[str, Float[Tensor, "m n"]]]:
        """Cross-attention of every layer (mean over heads) while this target is written, with the ends of both
        sentences; the one where the alignment is clearest first."""
        device = next(network.parameters()).device
        network.eval()
        batch = Writing.collate(self, [Item(tuple(source), tuple(target))], 0).to(device)
        with record(network) as records:
            self.logits(network, batch)
        layers = [each for each in records if "cross_attention" in each.name or each.name == "attention"]
        found = [(each.name, mean_heads(each).cpu()) for each in layers]
        if self.aligner is None:
            return found[-2:-1] + found[-1:] + found[:-2]
        chosen = self.aligner.heads
        weights = torch.stack([by_head(layers[layer])[head] for layer, head in chosen]).mean(0)
        (layer, head), several = chosen[0], len(chosen) > 1
        name = f"{len(chosen)} heads that align best" if several else f"{layers[layer].name}, head {head + 1}"
        return [(name, weights[self.aligner.late :]), *found]

    def text(self, ids: Sequence[int]) -> str:
        """What was written; a language's tag, which comes after the tokenizer's pieces, is no text."""
        return self.tokenizer.decode([id for id in ids if id < len(self.tokenizer)])

    def named(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Pieces as a person reads them."""
        return tuple(self.tokenizer.piece(id) for id in ids)


def by_head(record: Record) -> Float[Tensor, "h m n"]:
    """The weights of a batch of one, a matrix for each head."""
    weights = record.weights().float().cpu()
    return weights.reshape(-1, *weights.shape[-2:])


def written(
    network: Any, source: Tensor, lengths: Tensor, bos: int | Tensor, options: Options, most: int | list[int]
) -> Decoded:
    if options.temperature > 0:
        return sample(
            network,
            source,
            lengths,
            bos=bos,
            eos=EOS,
            max_length=most,
            n=options.n_best,
            temperature=options.temperature,
            top_k=options.top_k,
            top_p=options.top_p,
            seed=options.seed,
        )
    if options.beam == 1 and options.n_best == 1:
        return greedy(network, source, lengths, bos=bos, eos=EOS, max_length=most)
    width = max(options.beam, options.n_best)
    return beam(
        network,
        source,
        lengths,
        bos=bos,
        eos=EOS,
        max_length=most,
        width=width,
        n_best=options.n_best,
        alpha=options.alpha,
    )


class NotFiniteError(InputError):
    """Which model it is is known further out."""


def finite(n_best: Sequence[Hypothesis]) -> None:
    """Where a network computes no numbers, nothing is the most probable."""
    if not n_best:
        raise NotFiniteError("the model gives numbers that are not finite; its weights are damaged, restore them")


def confidence(found: Hypothesis, options: Options) -> float:
    """The geometric mean of the words' probabilities, end of sentence included."""
    words = len(found.tokens) + 1
    searched = options.temperature == 0 and not (options.beam == 1 and options.n_best == 1)
    total = found.score * ((5 + words) / 6) ** options.alpha if searched else found.score
    return math.exp(min(total / words, 0.0))
