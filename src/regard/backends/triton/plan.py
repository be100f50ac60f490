"""From parts to what kernels take: flat tuples of whole numbers (constants of a compilation), and tuples of tensors
and numbers (which may change from call to call). Plain torch; the device is asked nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.backends.triton import codes
from regard.core.biases import Alibi, Bias, DenseBias, RelativeBias
from regard.core.listed import BlockLayout, Dense, Documents, GlobalTokens, Padding, Positions, _mark
from regard.core.mask import And, HeadsOf, LastRows, Mask, Not, Or, PerHead
from regard.core.normalizers import Entmax, Identity, Normalizer, ReLU, Sigmoid, Softmax, Sparsemax
from regard.core.rules import Band, BlockDiagonal, RandomBlocks, Stride
from regard.core.scores import (
    Additive,
    Biased,
    Bilinear,
    Dot,
    Exact,
    Gated,
    Gaussian,
    ScaledDot,
    Score,
    SoftCap,
    TanhSum,
)
from regard.core.shapes import Extent, Spans

CONTENTS: dict[type, int] = {
    Dot: codes.DOT,
    ScaledDot: codes.DOT,
    Bilinear: codes.DOT,
    Gated: codes.GATED,
    Gaussian: codes.GAUSSIAN,
    TanhSum: codes.TANH,
    Additive: codes.TANH,
    Exact: codes.EXACT,
}
NORMALIZERS: dict[type, int] = {
    Softmax: codes.SOFTMAX,
    Sigmoid: codes.SIGMOID,
    ReLU: codes.RELU,
    Identity: codes.IDENTITY,
    Sparsemax: codes.SPARSEMAX,
    Entmax: codes.ENTMAX,
}
BIASES: tuple[type, ...] = (Alibi, RelativeBias, DenseBias)


def content_of(score: Score) -> Score:
    """The score inside all biases and caps."""
    while isinstance(score, Biased | SoftCap):
        score = score.score
    return score


def biases_of(score: Score) -> list[Bias]:
    found = []
    while isinstance(score, Biased | SoftCap):
        if isinstance(score, Biased):
            found.append(score.bias)
        score = score.score
    return found


def normalizer_code(normalizer: Normalizer) -> int:
    if type(normalizer) is Entmax:
        return {2.0: codes.SPARSEMAX, 1.5: codes.ENTMAX15}.get(normalizer.alpha, codes.ENTMAX)
    return NORMALIZERS[type(normalizer)]


def two_axes(x: Tensor, extent: Extent, trailing: int) -> Tensor:
    """[outer, heads, ...]: the leading axes broadcast to the batch and cut into all but the last, and the last."""
    tail = x.shape[x.ndim - trailing :]
    x = x.expand(*extent.batch, *tail)
    heads = extent.batch[-1] if extent.batch else 1
    return x.reshape(math.prod(extent.batch[:-1]), heads, *tail)


@dataclass(frozen=True)
class Plan:
    """One call, but for its queries, keys and values."""

    score: int
    mods: tuple[int, ...]
    capped: bool
    normalizer: int
    tree: tuple[int, ...]  # (0,): every pair exists
    walk: int
    band: tuple[int, bool, bool]  # for codes.RANGE: where offset, left and right stand in `ints`; which of them exist
    tensors: tuple[Tensor, ...]
    ints: tuple[int, ...]
    floats: tuple[float, ...]
    relative: tuple[tuple[Tensor, int, int], ...] = ()  # relative biases: table, place in `mods`, offset


class Lowering:
    """Collects the numbers and tensors of the parts of one call."""

    def __init__(self, extent: Extent) -> None:
        self.extent = extent
        self.tensors: list[Tensor] = []
        self.ints: list[int] = []
        self.floats: list[float] = []
        self.tree: list[int] = []
        self.mods: list[int] = []
        self.relative: list[tuple[Tensor, int, int]] = []

    def plan(self, score: Score, normalizer: Normalizer, mask: Mask | None) -> Plan:
        self.floats.append(float(getattr(normalizer, "bias", getattr(normalizer, "alpha", 0.0))))
        self._score(score)
        self.mods.append(codes.END)
        walk, band = codes.ALL, (0, False, False)
        run = None if mask is None else as_band(mask, self.extent)
        if run is not None:
            walk, band = codes.RANGE, (len(self.ints), run.left is not None, run.right is not None)
            self._mask(run, self.extent)
        elif mask is not None:
            walk = codes.LISTED
            self._mask(mask, self.extent)
        # A tuple of tensors or numbers is never empty.
        return Plan(
            kernel_content(score, self.extent),
            tuple(self.mods),
            codes.CAP in self.mods[::3],
            normalizer_code(normalizer),
            tuple(self.tree) or (0,),
            walk,
            band,
            tuple(self.tensors) or (torch.empty(1, device=self.extent.device),),
            codes.varying(*self.ints) or (0,),
            tuple(self.floats),
            tuple(self.relative),
        )

    # Scores: from the inside out.

    def _score(self, score: Score) -> None:
        if isinstance(score, SoftCap):
            self._score(score.score)
            self.floats.append(float(score.cap))
            self.mods += [codes.CAP, 0, len(self.floats) - 1]
        elif isinstance(score, Biased):
            self._score(score.score)
            self._bias(score.bias)

    def _bias(self, bias: Bias) -> None:
        extent, n = self.extent, len(self.ints)
        if isinstance(bias, Alibi):
            slopes = two_axes(bias.slopes.float(), extent, 2)
            self._keep(slopes)
            self.ints.append(extent.offset(bias.align, "Alibi"))
            self.mods += [codes.ALIBI, len(self.tensors) - 1, n]
        elif isinstance(bias, RelativeBias):
            table = two_axes(bias.table.contiguous(), extent, 1)
            self._keep(table)
            self.ints += [extent.offset(bias.align, "RelativeBias"), bias.table.shape[-1] // 2]
            self.relative.append((bias.table, len(self.mods), self.ints[-2]))
            self.mods += [codes.RELATIVE, len(self.tensors) - 1, n]
        else:
            assert isinstance(bias, DenseBias)
            table = bias.table.expand(*bias.table.shape[:-2], extent.n_q, extent.n_k)
            table = two_axes(table, extent, 2)
            self._keep(table)
            self.ints += [table.stride(2), table.stride(3)]
            self.mods += [codes.DENSE, len(self.tensors) - 1, n]

    def _keep(self, tensor: Tensor) -> int:
        """Remember a tensor [outer, heads, ...]; its two strides become the next numbers. Where it stands."""
        self.ints += [tensor.stride(0), tensor.stride(1)]
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    # Masks: a tree in prefix order; a node names the places of its children.

    def _node(self, *numbers: int) -> int:
        self.tree += numbers
        return len(self.tree) - len(numbers)

    def _mask(self, mask: Mask, extent: Extent) -> int:
        n = len(self.ints)
        if isinstance(mask, And | Or):
            at = self._node(codes.AND if isinstance(mask, And) else codes.OR, 0, 0)
            self.tree[at + 1] = self._mask(mask.a, extent)
            self.tree[at + 2] = self._mask(mask.b, extent)
        elif isinstance(mask, Not):
            at = self._node(codes.NOT, 0)
            self.tree[at + 1] = self._mask(mask.a, extent)
        elif isinstance(mask, PerHead):
            at = self._node(codes.HEADS, len(mask.masks), *([0] * len(mask.masks)))
            for head, one in enumerate(mask.masks):
                self.tree[at + 2 + head] = self._mask(one, extent)
        elif isinstance(mask, HeadsOf):
            self.ints.append(mask.first)
            at = self._node(codes.FIRST_HEAD, n, 0)
            self.tree[at + 2] = self._mask(mask.mask, mask._all_heads(extent))
        elif isinstance(mask, LastRows):
            self.ints.append(extent.n_k - extent.n_q)
            at = self._node(codes.SHIFT, n, 0)
            self.tree[at + 2] = self._mask(mask.mask, mask._whole(extent))
        elif isinstance(mask, Band):
            self.ints += [extent.offset(mask.align, mask.who), mask.left or 0, mask.right or 0]
            at = self._node(codes.BAND, n, mask.left is not None, mask.right is not None)
        elif isinstance(mask, Stride):
            self.ints += [mask.stride, extent.offset(mask.align, "strided")]
            at = self._node(codes.STRIDE, n)
        elif isinstance(mask, BlockDiagonal):
            self.ints.append(mask.size)
            at = self._node(codes.DIAGONAL, n)
        elif isinstance(mask, RandomBlocks):
            seed = mask.seed * 0x9E3779B9 & 0xFFFFFFFF
            self.ints += [mask.size, mask.count, seed, -(-extent.n_k // mask.size)]
            at = self._node(codes.RANDOM, n)
        else:
            at = self._listed(mask, extent)
        return at

    def _listed(self, mask: Mask, extent: Extent) -> int:
        """Masks that carry tensors."""
        n = len(self.ints)
        if isinstance(mask, Padding):
            lengths = self._keep(two_axes(mask._aligned(mask.lengths, extent), extent, 2))
            self.ints.append(extent.n_k)
            rows = -1
            if mask.query_lengths is not None:
                rows = self._keep(two_axes(mask._aligned(mask.query_lengths, extent), extent, 2))
                self.ints.append(extent.n_q)
            return self._node(codes.PADDING, lengths, rows, n, mask.side == "left")
        if isinstance(mask, Documents):
            ids, key_ids = (two_axes(x, extent, 1).contiguous() for x in mask._ids(extent))
            return self._node(codes.DOCUMENTS, self._keep(ids), self._keep(key_ids), n)
        if isinstance(mask, BlockLayout):
            return self._table(mask.layout, mask.size, extent)
        if isinstance(mask, Dense):
            return self._table(mask._whole(extent), 1, extent)
        if isinstance(mask, GlobalTokens):
            return self._cross(*mask._marks(extent), extent)
        assert isinstance(mask, Positions)
        index = mask._index(extent)
        if index.shape[-2] == 1:
            return self._cross(None, _mark(index[..., 0, :], extent.n_k), extent)
        lists = two_axes(index.contiguous(), extent, 2)
        at = self._node(codes.LISTS, self._keep(lists), n)
        self.ints += [lists.stride(2), lists.shape[-1]]
        return at

    def _table(self, table: Tensor, size: int, extent: Extent) -> int:
        table = two_axes(table, extent, 2).view(torch.uint8)
        n = len(self.ints)
        at = self._node(codes.TABLE, self._keep(table), n)
        self.ints += [table.stride(2), table.stride(3), size]
        return at

    def _cross(self, rows: Tensor | None, cols: Tensor, extent: Extent) -> int:
        """A pair exists where its query or its key is marked."""
        if rows is None:
            rows = torch.zeros(1, dtype=torch.bool, device=cols.device).expand(extent.n_q).contiguous()
        rows, cols = (two_axes(x, extent, 1).contiguous().view(torch.uint8) for x in (rows, cols))
        n = len(self.ints)
        return self._node(codes.CROSS, self._keep(rows), self._keep(cols), n)


def kernel_content(score: Score, extent: Extent) -> int:
    return CONTENTS[type(content_of(score))]


def as_band(mask: Mask, extent: Extent) -> Band | None:
    """The mask as one band of keys around each query, with its offset written out; None if it is none."""
    if isinstance(mask, Band):
        return Band(mask.left, mask.right, extent.offset(mask.align, mask.who), mask.who)
    if isinstance(mask, LastRows):
        band = as_band(mask.mask, mask._whole(extent))
        if band is not None:
            assert isinstance(band.align, int)
            return Band(band.left, band.right, band.align + extent.n_k - extent.n_q, band.who)
    return None


def block_map(mask: Mask, extent: Extent, block_m: int, block_n: int, flip: bool) -> tuple[Any, ...]:
    """For each block of queries (flip: of keys) the blocks that it meets, those that need the mask first, and how
    many of each kind: (lists, counts, strides), as the kernels' MAP."""
    maybe, full = mask.classify(Spans.of_blocks(extent, block_m, block_n))
    shape = (*torch.broadcast_shapes(maybe.shape[:-2], full.shape[:-2]), *maybe.shape[-2:])
    maybe, full = maybe.expand(shape), full.expand(shape).clone()
    if extent.n_k % block_n:
        full[..., -1] = False
    if extent.n_q % block_m:
        full[..., -1, :] = False
    if flip:
        maybe, full = maybe.mT, full.mT
    kind = torch.where(maybe, full.to(torch.uint8), 2)
    lists = kind.contiguous().sort(stable=True, dim=-1).indices.to(torch.int32)  # blocks of a list lie side by side
    counts = torch.stack([(kind == 0).sum(-1), (kind == 1).sum(-1)], -1).to(torch.int32)
    lists, counts = two_axes(lists, extent, 2), two_axes(counts, extent, 2)
    return lists, counts, *codes.varying(*counts.stride()[:3], *lists.stride()[:3])
