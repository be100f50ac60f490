"""A small vision-language model: it looks at an image in patches and writes what it sees, word by word.

Its images are drawn here: one coloured shape on a noisy background, with the caption that says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.core.shapes import ShapeError
from regard.models.transformer import State, Writer
from regard.nn.layers import EncoderStack
from regard.nn.positions import Learned

COLOURS = {
    "red": (0.9, 0.1, 0.1),
    "green": (0.1, 0.7, 0.2),
    "blue": (0.1, 0.2, 0.9),
    "yellow": (0.9, 0.9, 0.1),
    "purple": (0.6, 0.1, 0.7),
    "orange": (1.0, 0.5, 0.0),
}
SHAPES = ("circle", "square", "triangle", "cross", "ring")
SIZES = ("small", "large")
PLACES = ("top left", "top right", "bottom left", "bottom right")
PAD, BEGIN, END = 0, 1, 2
WORDS = ("<pad>", "<begin>", "<end>", "a", "in", "the", *SIZES, *COLOURS, *SHAPES, "top", "bottom", "left", "right")
SIZE_AT, COLOUR_AT, SHAPE_AT = 1, 2, 3  # words of "a large red circle in the top left", counted from 0


def held_out(colour: Tensor, shape: Tensor, size: Tensor, place: Tensor) -> Bool[Tensor, "*n"]:
    """One in five combinations, which training never shows, though it shows each pair of their parts."""
    return (colour + shape + size + place) % 5 == 0


@dataclass(frozen=True)
class Scenes:
    """Images and what is in them."""

    images: Float[Tensor, "B 3 side side"]
    captions: Int[Tensor, "B n"]  # <begin> a large red circle in the top left <end>
    inside: Bool[Tensor, "B side side"]  # the pixels of the shape


def draw(count: int, seed: int, *, side: int = 32, new: bool | None = None) -> Scenes:
    """`count` scenes, a function of the seed. `new=True`: only combinations that are held out; `False`:
    none of them; `None`: any.

    >>> print(text(draw(1, seed=1).captions[0]))
    a large blue circle in the top right
    """
    generator = torch.Generator().manual_seed(seed)

    def whole(high: int) -> Int[Tensor, " B"]:
        return torch.randint(high, (count,), generator=generator)

    def uniform(low: float, high: float, *shape: int) -> Float[Tensor, "B ..."]:
        return low + (high - low) * torch.rand(count, *shape, generator=generator)

    combinations = torch.cartesian_prod(*[torch.arange(len(part)) for part in (COLOURS, SHAPES, SIZES, PLACES)])
    if new is not None:
        combinations = combinations[held_out(*combinations.unbind(-1)) == new]
    colour, shape, size, place = combinations[whole(len(combinations))].unbind(-1)
    radius = torch.where(size == 1, uniform(0.21, 0.25), uniform(0.14, 0.17))
    down, right = place // 2, place % 2
    x, y = 0.27 + 0.46 * right + uniform(-0.03, 0.03), 0.27 + 0.46 * down + uniform(-0.03, 0.03)
    inside = _inside(shape, radius, x, y, side)
    table = torch.tensor(list(COLOURS.values()))
    paint = table[colour] + uniform(-0.07, 0.07, 3)
    ground = uniform(0.2, 0.8, 1, 1, 1) + uniform(-0.1, 0.1, 3, side, side)
    images = torch.where(inside[:, None], paint[:, :, None, None] + 0.3 * (ground - 0.5), ground)
    return Scenes(images.clamp(0, 1), _captions(size, colour, shape, down, right), inside)


def _inside(shape: Tensor, radius: Tensor, x: Tensor, y: Tensor, side: int) -> Bool[Tensor, "B side side"]:
    """Each pixel in units of the radius around the centre, then each shape by its inequality."""
    grid = (torch.arange(side) + 0.5) / side
    u = (grid[None, None, :] - x[:, None, None]) / radius[:, None, None]
    v = (grid[None, :, None] - y[:, None, None]) / radius[:, None, None]
    across, along = u.abs().expand(-1, side, -1), v.abs().expand(-1, -1, side)
    far = (u.square() + v.square()).sqrt()
    shapes = {
        "circle": far < 1,
        "square": torch.maximum(across, along) < 0.92,
        "triangle": (along < 0.9) & (across < (v + 0.9) / 1.8),
        "cross": (torch.minimum(across, along) < 0.3) & (torch.maximum(across, along) < 1),
        "ring": (far < 1) & (far > 0.6),
    }
    every = torch.stack([shapes[name] for name in SHAPES])  # shapes B side side
    return every[shape, torch.arange(len(shape))]


def _captions(size: Tensor, colour: Tensor, shape: Tensor, down: Tensor, right: Tensor) -> Int[Tensor, "B 10"]:
    def same(word: str) -> Tensor:
        return torch.full_like(size, WORDS.index(word))

    columns = [
        *(same("<begin>"), same("a")),
        *(WORDS.index(SIZES[0]) + size, WORDS.index(next(iter(COLOURS))) + colour, WORDS.index(SHAPES[0]) + shape),
        *(same("in"), same("the"), WORDS.index("top") + down, WORDS.index("left") + right, same("<end>")),
    ]
    return torch.stack(columns, dim=-1)


def text(caption: Int[Tensor, " n"]) -> str:
    """The words of a caption, up to its end."""
    words = [WORDS[i] for i in caption.tolist()]
    words = words[: words.index("<end>")] if "<end>" in words else words
    return " ".join(word for word in words if word not in ("<pad>", "<begin>"))


class Captioner(nn.Module):
    """Patches, projected and given positions, pass an encoder; a decoder that attends to them writes."""

    def __init__(
        self,
        vocabulary: int = len(WORDS),
        d: int = 64,
        heads: int = 4,
        layers: int = 2,
        hidden: int | None = None,
        *,
        side: int = 32,
        patch: int = 4,
        channels: int = 3,
        dropout: float = 0.0,
        **parts: Any,
    ) -> None:
        super().__init__()
        if side % patch:
            raise ShapeError(f"side={side} does not divide into patches of patch={patch}")
        self.side, self.patch, self.channels = side, patch, channels
        self.patches = nn.Linear(channels * patch * patch, d)
        self.positions = Learned((side // patch) ** 2, d)
        self.encoder = EncoderStack(layers, d, heads, hidden or 4 * d, dropout=dropout, **parts)
        self.writer = Writer(
            vocabulary, d, heads, layers, hidden, position="learned", n_max=32, dropout=dropout, **parts
        )

    def look(self, images: Float[Tensor, "*batch channels side side"]) -> Float[Tensor, "*batch patches d"]:
        expected = (self.channels, self.side, self.side)
        if tuple(images.shape[-3:]) != expected:
            raise ShapeError(
                f"images have shape {tuple(images.shape)}; expected [*batch, {', '.join(map(str, expected))}]"
            )
        # Dark or light, each image is seen with mean 0 and spread 1: what differs from the ground stands out.
        spread, mean = torch.std_mean(images, dim=(-3, -2, -1), keepdim=True)
        patches = cut((images - mean) / spread.clamp(min=1e-6), self.patch)
        return self.encoder(self.positions(self.patches(patches)))

    def forward(
        self, source: Float[Tensor, "*batch channels side side"], target: Int[Tensor, "*batch n"], lengths: None = None
    ) -> Float[Tensor, "*batch n V"]:
        """Images have one size: there is nothing that `lengths` could say."""
        return self.writer(target, self.look(source))

    def begin(self, source: Float[Tensor, "B channels side side"], lengths: None = None) -> State:
        return self.writer.begin(self.look(source))

    def step(self, token: Int[Tensor, " B"], state: State) -> tuple[Float[Tensor, "B V"], State]:
        return self.writer.step(token, state)


def cut(images: Float[Tensor, "*batch c side side"], patch: int) -> Float[Tensor, "*batch patches cpp"]:
    """Square patches, row by row, each as one vector."""
    images = images.unflatten(-1, (-1, patch)).unflatten(-3, (-1, patch))  # *batch c rows p columns p
    return images.movedim((-5, -4, -2), (-3, -5, -4)).flatten(-5, -4).flatten(-3)
