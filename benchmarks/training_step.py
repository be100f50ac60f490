"""One training step of a Transformer (6 + 6 layers, 512 wide), ours beside torch's own modules in the same run.

    python -m benchmarks.training_step            on a GPU: 256 x 64 tokens, bfloat16, compiled
    python -m benchmarks.training_step --small    on a CPU: a small model, float32, not compiled

A step is forward, cross-entropy, backward and AdamW. Both models have the same sizes, the same embeddings and
output layer (not tied), pre-norm layers, and causal self-attention in the decoder. Dropout is on what flows along
the layers, in neither model on the attention's weights. `--modes reduce-overhead` replays CUDA graphs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.models.transformer import Transformer
from regard.nn import Embedding, Sinusoidal


class Torch(nn.Module):
    """The same model out of torch's own modules."""

    def __init__(self, vocabulary: int, d: int, heads: int, layers: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.source, self.target = Embedding(vocabulary, d, scaled=True), Embedding(vocabulary, d, scaled=True)
        self.position, self.dropout = Sinusoidal(d), nn.Dropout(dropout)
        self.layers = nn.Transformer(d, heads, layers, layers, hidden, dropout, batch_first=True, norm_first=True)
        self.out = nn.Linear(d, vocabulary)
        for module in self.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        n = target.shape[-1]
        mask = nn.Transformer.generate_square_subsequent_mask(n, device=target.device)
        x, y = (
            self.dropout(self.position(words(tokens)))
            for words, tokens in ((self.source, source), (self.target, target))
        )
        return self.out(self.layers(x, y, tgt_mask=mask, tgt_is_causal=True))


def ours(vocabulary: int, d: int, heads: int, layers: int, hidden: int, dropout: float) -> nn.Module:
    return Transformer(vocabulary, vocabulary, d, heads, layers, hidden, dropout=dropout, tied=False)


def stepper(model: nn.Module, batch: int, n: int, vocabulary: int, device: str, mode: str | None) -> Callable[[], None]:
    """One step on fresh random tokens."""
    fused = device == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused)
    cast = torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda")

    def loss_of(source: Tensor, target: Tensor) -> Tensor:
        with cast:
            logits = model(source, target[:, :-1])
            return F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())

    loss_of = torch.compile(loss_of, fullgraph=not isinstance(model, Torch), mode=mode) if mode else loss_of

    def step() -> None:
        source = torch.randint(3, vocabulary, (batch, n), device=device)
        target = torch.randint(3, vocabulary, (batch, n + 1), device=device)
        torch.compiler.cudagraph_mark_step_begin()
        loss_of(source, target).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def seconds(step: Callable[[], None], device: str, steps: int) -> float:
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    wait()
    return (time.perf_counter() - start) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a small model on the CPU")
    parser.add_argument("--dropout", type=float, nargs="+", default=[0.0, 0.1])
    parser.add_argument("--modes", nargs="+", default=["default", "reduce-overhead"], help="of torch.compile")
    parser.add_argument("--rounds", type=int, default=7, help="the models take turns; the median round counts")
    parser.add_argument("--profile", action="store_true", help="print where our step's time goes")
    options = parser.parse_args()
    device = "cpu" if options.small else "cuda"
    vocabulary, d, heads, layers, hidden = (1000, 128, 4, 2, 512) if options.small else (8000, 512, 8, 6, 2048)
    batch, n, steps = (32, 16, 10) if options.small else (256, 64, 20)
    torch.set_float32_matmul_precision("high")
    print(
        f"torch {torch.__version__}, {torch.cuda.get_device_name() if device == 'cuda' else 'CPU'}, batch {batch} x {n}"
    )
    print(f"{'dropout':>8}  {'compiled':<16}{'model':<16}{'ms a step':>10}{'tokens/s':>12}{'ratio':>7}")
    for dropout, mode in product(options.dropout, [None] if options.small else options.modes):
        sizes = (vocabulary, d, heads, layers, hidden, dropout)
        torch.manual_seed(0)
        steppers = {
            name: stepper(make(*sizes).to(device), batch, n, vocabulary, device, mode)
            for name, make in (("nn.Transformer", Torch), ("regard", ours))
        }
        for step in steppers.values():
            seconds(step, device, 5)  # compiles
        times: dict[str, list[float]] = {name: [] for name in steppers}
        for _ in range(options.rounds):
            for name, step in steppers.items():
                times[name].append(seconds(step, device, steps))
        median = {name: statistics.median(each) for name, each in times.items()}
        for name, each in median.items():
            ratio = median["nn.Transformer"] / each
            print(
                f"{dropout:>8}  {mode or 'no':<16}{name:<16}{each * 1e3:>10.2f}{batch * n / each:>12,.0f}{ratio:>7.2f}",
                flush=True,
            )
        if options.profile:
            with torch.profiler.profile() as profile:
                seconds(steppers["regard"], device, 3)
            print(profile.key_averages().table(sort_by="self_cuda_time_total", row_limit=25, max_name_column_width=60))


if __name__ == "__main__":
    main()
