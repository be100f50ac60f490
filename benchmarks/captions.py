"""How well does the captioner name what it has not seen, and does it look at the shape?

python -m benchmarks.captions [--steps 2000] [--seed 0]
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.models.captioner import BEGIN, COLOUR_AT, PAD, SHAPE_AT, Captioner, Scenes, cut, draw, text
from regard.recording import record

HIDDEN = 0.1  # share of the words that training hides


def train(steps: int, seed: int = 0, batch: int = 64, rate: float = 3e-3) -> Captioner:
    """Fresh scenes at every step, none of a held-out combination."""
    torch.manual_seed(seed)
    model = Captioner()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
    for step in range(steps):
        scenes = draw(batch, seed=seed * 1_000_000 + step, new=False)
        # Some words are hidden, so that each must be seen and not guessed from those before it.
        words = scenes.captions[:, :-1]
        words = words.masked_fill(torch.rand(words.shape) < HIDDEN, PAD)
        logits = model(scenes.images, words)
        loss = F.cross_entropy(logits.flatten(0, 1), scenes.captions[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 200 == 0:
            print(f"step {step:5}  loss {loss.item():.4f}", flush=True)
    return model.eval()


@torch.no_grad()
def write(model: Captioner, images: Tensor, n: int = 9) -> Tensor:
    """Captions word by word, the likeliest each time."""
    state = model.begin(images)
    tokens = [torch.full((len(images),), BEGIN)]
    for _ in range(n):
        logits, state = model.step(tokens[-1], state)
        tokens.append(logits.argmax(-1))
    return torch.stack(tokens[1:], dim=-1)


@torch.no_grad()
def share_on_shape(model: Captioner, scenes: Scenes) -> tuple[float, float]:
    """Of the cross-attention for the words of colour and shape: the share that falls on patches with a
    pixel of the shape, averaged over layers and heads; and the share of all patches that these are."""
    on_shape = cut(scenes.inside[:, None].float(), model.patch).amax(-1)  # B patches
    with record(model, only="*cross_attention") as records:
        model(scenes.images, scenes.captions[:, :-1])
    # The word at t is predicted in row t, from <begin> and the words before it.
    weights = torch.stack([one.weights(rows=[COLOUR_AT, SHAPE_AT]) for one in records])  # layers B heads 2 patches
    return (weights * on_shape[:, None, None, :]).sum(-1).mean().item(), on_shape.mean().item()


def accuracy(model: Captioner, scenes: Scenes) -> dict[str, float]:
    right = write(model, scenes.images) == scenes.captions[:, 1:]
    return {
        "colour": right[:, COLOUR_AT].float().mean().item(),
        "shape": right[:, SHAPE_AT].float().mean().item(),
        "whole caption": right.all(-1).float().mean().item(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    start = time.perf_counter()
    model = train(arguments.steps, arguments.seed)
    print(
        f"trained {arguments.steps} steps in {time.perf_counter() - start:.0f} s on {torch.get_num_threads()} threads"
    )
    for name, new in (("new images", False), ("new combinations", True)):
        scenes = draw(1000, seed=-1 - arguments.seed, new=new)
        parts = ", ".join(f"{what} {share:.1%}" for what, share in accuracy(model, scenes).items())
        on_shape, area = share_on_shape(model, scenes)
        print(f"{name}: {parts}; attention on the shape {on_shape:.1%}, which fills {area:.1%} of the patches")
    print(f"for example: {text(write(model, scenes.images[:1])[0])}")


if __name__ == "__main__":
    main()
