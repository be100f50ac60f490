"""From tensors to what the kernels read: flat arrays, and where each batch element begins in them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.backends.cpu import codes
from regard.backends.cpu.parts import tile_columns
from regard.backends.cpu.threads import borrow, give_back, share
from regard.backends.cpu.visible import Visible, visible
from regard.core import noise
from regard.core.mask import Mask
from regard.core.shapes import Extent, Tile


class Inputs(NamedTuple):
    """The tensors of one call, all in one precision."""

    query: Tensor
    key: Tensor
    value: Tensor
    units: Tensor | None = None  # v of vᵀ tanh(q + k)
    line: Tensor | None = None  # a bias for each distance
    table: Tensor | None = None  # a bias for each pair
    sink: Tensor | None = None


class Options(NamedTuple):
    """What is not a tensor to be differentiated."""

    content: int
    factor: float
    cap: float
    normalizer: int
    number: float
    mask: Mask | None
    dropout: float
    seed: Tensor | None


@lru_cache(maxsize=1024)
def _places(lead: tuple[int, ...], batch: tuple[int, ...]) -> np.ndarray:
    """Which row of a tensor with these leading axes each batch element reads."""
    lead = (*[1] * (len(batch) - len(lead)), *lead)
    return np.broadcast_to(np.arange(prod(lead)).reshape(lead), batch).reshape(-1)


class Plan:
    """One call, ready for the kernels; `chosen` are the rows that are wanted, if not all."""

    def __init__(self, inputs: Inputs, options: Options, batch: tuple[int, ...], chosen: Tensor | None = None) -> None:
        from regard.backends.cpu import kernels

        query, key, value = inputs.query, inputs.key, inputs.value
        self.kernels, self.options, self.batch, self.size, self.chosen = kernels, options, batch, prod(batch), chosen
        self.extent = Extent(batch, query.shape[-2], key.shape[-2], query.device)
        self.borrowed: list[np.ndarray] = []
        self.position = torch.arange(self.extent.n_q) if chosen is None else chosen
        self.n_r, self.n_k = len(self.position), key.shape[-2]
        self.dtype = np.dtype(np.float64 if query.dtype == torch.float64 else np.float32)
        self.lanes = kernels.BYTES // self.dtype.itemsize
        self.tile = tile_columns(options.content, self.dtype.itemsize, self.n_k, self.lanes)
        self.tiles = -(-self.n_k // self.tile)
        self.span = self.tiles * self.tile
        self.at = np.zeros((self.size, codes.ROLES), np.int64)
        query = query if chosen is None else query[..., chosen, :]
        gate_q = gate_k = None
        if options.content == codes.GATED:
            gate_q, gate_k = query[..., -1], torch.nn.functional.pad(key[..., -1], (0, self.span - self.n_k))
            query, key = query[..., :-1], key[..., :-1]
        self.query, self.key, self.value = query, key, value
        self.depth, self.d_v = query.shape[-1], value.shape[-1]
        self.width, self.wide = (-(-x // self.lanes) * self.lanes for x in (self.d_v, self.depth))
        keys, key_most = self.transposed(codes.KEY, key, options.content == codes.TANH)
        dropped, gumbel, columns = self._noise()
        sink = torch.tensor(float("-inf")) if inputs.sink is None else inputs.sink
        self.arrays = {
            "query": self.put(codes.QUERY, query, 2),
            "keys": keys,
            "key_most": key_most,
            "value": self.put(codes.VALUE, self.in_registers(value), 2),
            "gate_q": self.put(codes.GATE_Q, gate_q, 1),
            "gate_k": self.put(codes.GATE_K, gate_k, 1),
            "units": self.put(codes.UNITS, inputs.units, 1),
            "line": self.put(codes.LINE, inputs.line, 1),
            "table": self.put(codes.TABLE, inputs.table, 2),
            "sink": self.put(codes.SINK, sink, 0),
            "position": self.position.numpy(),
            "dropped": dropped,
            "gumbel": gumbel,
            "columns": columns,
        }
        self.numbers = {
            "n_q": self.extent.n_q,
            "table_row": 0 if inputs.table is None or inputs.table.shape[-2] == 1 else self.n_k,
            "n_r": self.n_r,
            "n_k": self.n_k,
            "depth": self.depth,
            "d_v": self.d_v,
            "width": self.width,
            "tile": self.tile,
            "content": options.content,
            "normalizer": options.normalizer,
            "factor": options.factor,
            "limit": options.cap,
            "number": options.number,
            "share": options.dropout,
        }

    def close(self) -> None:
        """The kernels are done."""
        give_back(*self.borrowed)
        self.borrowed = []

    def put(self, role: int, x: Tensor | None, trailing: int) -> np.ndarray:
        """The flat array, and where in it each batch element begins."""
        if x is None:
            return np.zeros(0, self.dtype)
        size = prod(x.shape[x.ndim - trailing :])
        self.at[:, role] = _places(tuple(x.shape[: x.ndim - trailing]), self.batch) * size
        return np.ascontiguousarray(x.detach().numpy(), self.dtype).reshape(-1)

    def in_registers(self, x: Tensor) -> Tensor:
        """Rows filled up with zeros to whole registers."""
        missing = -x.shape[-1] % self.lanes
        return torch.nn.functional.pad(x, (0, missing)) if missing else x

    def transposed(self, role: int, x: Tensor, exps: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Rows [.., n_k, depth] as [.., tiles, depth, tile], and the largest size of each tile."""
        depth, count = x.shape[-1], prod(x.shape[:-2])
        source = np.ascontiguousarray(x.detach().numpy()).reshape(-1)
        size = self.tiles * depth * self.tile * (2 if exps else 1)
        to, most = borrow(count * size, self.dtype), np.zeros(count * self.tiles, self.dtype)
        self.borrowed.append(to)

        def run(begin: int, end: int) -> None:
            self.kernels.pack(source, self.n_k, depth, depth, self.tile, self.tiles, exps, begin, end, to, most)

        share(run, count * self.tiles, source.size * 2.0)
        self.at[:, role] = _places(tuple(x.shape[:-2]), self.batch) * size
        return to, most

    def _noise(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Each row's share in the noise of dropout and of Gumbel's, and each key's."""
        dropped = gumbel = columns = np.zeros(1, np.int32)
        if self.options.seed is not None:
            tile = Tile(self.extent, self.position, torch.arange(self.span))
            columns = _words(noise.of_columns(tile))
            if self.options.dropout > 0:
                dropped = _words(noise.of_rows(self.options.seed, tile, noise.DROPOUT))
            if self.options.normalizer == codes.GUMBEL:
                gumbel = _words(noise.of_rows(self.options.seed, tile, noise.GUMBEL))
        return dropped, gumbel, columns

    def problems(self) -> Iterator[tuple[Visible, Any]]:
        """The problem, with who sees whom; in several pieces where a mask must be written out."""
        for seen in visible(self.options.mask, self.extent, self.chosen, self.tile, self.lanes):
            self.at[:, codes.RANGE] = self.at[:, codes.BITS] = _places(seen.lead, self.batch)
            self.at[:, codes.RANGE] *= self.n_r
            fields = {name: getattr(seen, name) for name in ("low", "high", "tiles", "tiles_at", "bits", "bits_at")}
            numbers = self.numbers | {"rows": seen.rows, "ld": seen.ld, "listed": seen.listed}
            yield seen, record(self.kernels.PROBLEM, self.arrays | fields | {"at": self.at}, numbers)

    def work(self, seen: Visible) -> float:
        """About how many nanoseconds one thread needs: a pair costs its depth."""
        each = 0.06 if self.options.content == codes.TANH else 0.02
        return self.size * (seen.last_group - seen.first_group) * seen.rows * seen.ld * (each * self.wide + 1.0)


def record(kind: np.dtype, arrays: dict[str, np.ndarray], numbers: dict[str, float]) -> Any:
    """A kernel's argument. An array of nothing has address 0; the caller keeps the arrays."""
    names = kind.names or ()
    filled = numbers | {name: x.__array_interface__["data"][0] if x.size else 0 for name, x in arrays.items()}
    return np.array([tuple(filled.get(name, 0) for name in names)], kind)[0]


def _words(x: Tensor) -> np.ndarray:
    """Numbers of 32 bits, held in 64, as words."""
    return x.reshape(-1).numpy().astype(np.uint32).view(np.int32)
