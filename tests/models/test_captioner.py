"""The captioner: its drawings are what their captions say; patches, captions step by step, learning."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

import regard
from regard.models.captioner import COLOURS, SHAPES, WORDS, Captioner, cut, draw, held_out, text

NAMES = list(COLOURS)


def words_of(scenes: object, place: int) -> list[str]:
    return [text(caption).split()[place] for caption in scenes.captions]


# The drawings


def test_drawings_are_a_function_of_the_seed():
    a, b, c = draw(20, seed=3), draw(20, seed=3), draw(20, seed=4)
    assert torch.equal(a.images, b.images)
    assert torch.equal(a.captions, b.captions)
    assert not torch.equal(a.images, c.images)
    assert a.images.shape == (20, 3, 32, 32)
    assert a.images.min() >= 0
    assert a.images.max() <= 1


def test_the_shape_has_the_colour_the_size_and_the_place_that_the_caption_says():
    scenes = draw(300, seed=0)
    table = torch.tensor(list(COLOURS.values()))
    grid = (torch.arange(32) + 0.5) / 32
    for image, inside, caption in zip(scenes.images, scenes.inside, scenes.captions, strict=True):
        _, size, colour, shape, *_, row, column = text(caption).split()
        mean = image[:, inside].mean(-1)
        assert NAMES[(table - mean).square().sum(-1).argmin()] == colour
        y, x = (grid[:, None] * inside).sum() / inside.sum(), (grid * inside).sum() / inside.sum()
        assert (row, column) == ("bottom" if y > 0.5 else "top", "right" if x > 0.5 else "left")
        width = inside.any(0).sum().item()
        assert (width > 11.5) == (size == "large"), (width, size, shape)


def test_shapes_are_what_they_are_called():
    """By how much of its square each fills: a circle π/4, a triangle half, a cross and a ring less."""
    scenes = draw(400, seed=1)
    filled: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    for inside, shape in zip(scenes.inside, words_of(scenes, 3), strict=True):
        rows, columns = inside.any(1).nonzero(), inside.any(0).nonzero()
        box = inside[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        filled[shape].append(box.float().mean().item())
        middle = box[box.shape[0] // 2, box.shape[1] // 2].item()
        assert middle == (shape != "ring")
    mean = {shape: sum(shares) / len(shares) for shape, shares in filled.items()}
    assert mean["square"] == 1
    assert mean["circle"] == pytest.approx(torch.pi / 4, abs=0.06)
    assert mean["triangle"] == pytest.approx(0.5, abs=0.1)
    assert mean["cross"] == pytest.approx(0.3 + 0.3 * 0.7, abs=0.1)


def test_what_is_held_out_is_never_shown():
    def shown(new: bool) -> set[str]:
        return {text(caption) for caption in draw(4000, seed=2, new=new).captions}

    assert len(shown(True)) == 48  # one in five of 6 colours, 5 shapes, 2 sizes, 4 places
    assert len(shown(False)) == 192
    assert not shown(True) & shown(False)
    assert "a small red circle in the top left" in shown(True)  # the first of each: 0 + 0 + 0 + 0
    pairs = {tuple(caption.split()[2:4]) for caption in shown(False)}
    assert len(pairs) == 30  # each colour with each shape
    assert held_out(*torch.tensor([[1, 0], [1, 2], [0, 0], [3, 0]])).tolist() == [True, False]


# The model


def test_patches_row_by_row():
    images = torch.arange(2 * 3 * 8 * 8).reshape(2, 3, 8, 8)
    patches = cut(images, 4)
    assert patches.shape == (2, 4, 48)
    for place, (rows, columns) in enumerate([(0, 0), (0, 4), (4, 0), (4, 4)]):
        corner = images[:, :, rows : rows + 4, columns : columns + 4]
        assert torch.equal(patches[:, place], corner.flatten(1))


def small() -> Captioner:
    return Captioner(d=32, heads=2, layers=1, side=16)


def test_captions_step_by_step():
    module, scenes = small().eval(), draw(3, seed=0, side=16)
    words = scenes.captions[:, :-1]
    state, steps = module.begin(scenes.images), []
    for token in words.unbind(-1):
        logits, state = module.step(token, state)
        steps.append(logits)
    torch.testing.assert_close(torch.stack(steps, 1), module(scenes.images, words), atol=1e-5, rtol=1e-5)


def test_images_of_another_size_are_refused():
    with pytest.raises(regard.ShapeError, match=r"images have shape \(2, 3, 32, 32\); expected .* 3, 16, 16\]"):
        small().look(torch.randn(2, 3, 32, 32))
    with pytest.raises(regard.ShapeError, match="side=30 does not divide into patches of patch=4"):
        Captioner(side=30)


def test_learns_to_name_the_colour():
    """The quick half of the benchmark: in 80 steps; without the image, one in six."""
    torch.manual_seed(0)
    module = small()
    optimizer = torch.optim.AdamW(module.parameters(), lr=4e-3)
    for step in range(80):
        scenes = draw(64, seed=step, side=16)
        logits = module(scenes.images, scenes.captions[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), scenes.captions[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scenes = draw(200, seed=1000, side=16)
    guessed = module(scenes.images, scenes.captions[:, :-1]).argmax(-1)
    assert (guessed == scenes.captions[:, 1:])[:, 2].float().mean() > 0.9
    blind = module(torch.full_like(scenes.images, 0.5), scenes.captions[:, :-1]).argmax(-1)
    assert (blind == scenes.captions[:, 1:])[:, 2].float().mean() < 0.4


@pytest.mark.slow
def test_names_what_it_has_not_seen_and_looks_at_it():
    from benchmarks.captions import accuracy, share_on_shape, train

    module = train(steps=2000)
    scenes = draw(500, seed=-1, new=False)
    right = accuracy(module, scenes)
    assert right["colour"] > 0.95
    assert right["shape"] > 0.95
    on_shape, area = share_on_shape(module, scenes)
    assert on_shape > 2 * area
    assert len(WORDS) == module.writer.words.embedding.weight.shape[0]
