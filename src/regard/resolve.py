"""What people pass, turned into what backends expect: defaults filled in once, or a clear error."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.core.biases import DenseBias
from regard.core.formula import Call, autocast_off, knows_autocast
from regard.core.mask import Mask
from regard.core.masks import dense
from regard.core.noise import new_seed
from regard.core.normalizers import Normalizer, Softmax
from regard.core.parts import built_in
from regard.core.scores import Biased, Pairwise, ScaledDot, Score, as_score, extent_of
from regard.core.shapes import DeviceError, DTypeError, InputError, ShapeError, common_batch, repeat_heads
from regard.core.visibility import blank_unseen

SCALED_DOT, SOFTMAX = ScaledDot(), Softmax()  # what None stands for; they hold nothing, so one of each serves all
AnyScore = Score | Pairwise | None
AnyMask = Mask | Bool[Tensor, "*batch n_q n_k"] | Float[Tensor, "*batch n_q n_k"] | None
Seed = int | Int[Tensor, ""] | None


def resolve(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: AnyScore,
    normalizer: Normalizer | None,
    mask: AnyMask,
    dropout: float = 0.0,
    seed: Seed = None,
) -> tuple[Call, Tensor, Tensor, Tensor]:
    """The call with nothing left to default, and tensors that every backend can take as they are."""
    score_, normalizer_ = as_score(SCALED_DOT if score is None else score), _normalizer(normalizer)
    if not isinstance(dropout, int | float):
        raise DTypeError(f"dropout is {type(dropout).__name__}; expected a number, at least 0 and less than 1")
    if not 0 <= dropout < 1:
        raise InputError(f"dropout={dropout}; expected at least 0 and less than 1")
    _check_kinds(query, key, value)
    score_.check(query, key)
    _check_heads(query, score_, normalizer_)
    key, value = _grouped(query, key, value)
    if key.shape[-2] != value.shape[-2]:
        raise ShapeError(
            f"key has n_k={key.shape[-2]}, value has n_k={value.shape[-2]}: each key needs one value; "
            f"cut or pad one of them"
        )
    batch = common_batch(query=query, key=key, value=value)
    heads = [h for h in (score_.heads, normalizer_.heads) if h is not None]
    if heads:
        batch = tuple(torch.broadcast_shapes(batch, *[(h,) for h in heads]))
    if common_batch(query=query, key=key) != batch:
        query = query.expand(*batch, *query.shape[-2:])  # a view; so every backend knows all leading axes
    score_, mask_ = _mask_or_bias(score_, mask)
    mask_ = None if mask_ is None else mask_.on(query.device)
    extent = extent_of(score_, query, key)
    _check_devices(query, key=key, value=value, score=score_, normalizer=normalizer_, mask=mask_)
    score_.check_extent(extent)
    if mask_ is not None:
        mask_.check(extent)
    query, key, value = blank_unseen(query, key, value, mask_, extent)
    noisy = dropout > 0 or (normalizer_.noisy and normalizer_.training)
    call = Call(score_, normalizer_, mask_, dropout, seed_tensor(seed, query.device) if noisy else None)
    return call, query, key, value


@contextlib.contextmanager
def precisely(score: AnyScore, *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Follow autocast in the inputs, hence in the output, but not inside: sums stay in float32. A score
    of your own keeps autocast, which its layers may count on."""
    _check_tensors(*tensors)
    device = tensors[0].device.type
    if not (knows_autocast(device) and torch.is_autocast_enabled(device)):
        yield tensors
        return
    dtype = torch.get_autocast_dtype(device)
    cast = tuple(x.to(dtype) if x.dtype in (torch.float32, torch.float16, torch.bfloat16) else x for x in tensors)
    own = score is not None and not (isinstance(score, Score) and built_in(score))
    with contextlib.nullcontext() if own else autocast_off(device):
        yield cast


def _check_tensors(*tensors: Any) -> None:
    for x, name, axes in zip(tensors, ("query", "key", "value"), ("n_q d_q", "n_k d_k", "n_k d_v"), strict=False):
        if not isinstance(x, Tensor):
            raise DTypeError(
                f"{name} is {type(x).__name__}; expected a tensor [*batch {axes}]; try torch.as_tensor({name})"
            )
        if x.ndim < 2:
            raise ShapeError(
                f"{name} has shape {tuple(x.shape)}; expected [*batch {axes}], at least two axes; "
                f"try {name}[:, None] or {name}[None, :]"
            )


def _check_kinds(query: Tensor, key: Tensor, value: Tensor) -> None:
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dtype not in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            raise DTypeError(f"{name} is {x.dtype}; expected a floating type such as float32; try {name}.float()")
        if x.dtype != query.dtype:
            raise DTypeError(
                f"{name} is {x.dtype}, query is {query.dtype}; expected one type for all; try {name}.to(query.dtype)"
            )
        if x.device != query.device:
            raise DeviceError(f"{name} is on {x.device}, query is on {query.device}; try {name}.to(query.device)")


def _check_devices(query: Tensor, **others: Any) -> None:
    if torch.compiler.is_compiling():
        return  # parts made inside a compiled function do not list their tensors; torch checks them itself
    for name, part in others.items():
        for tensor in _tensors_of(part):
            if tensor.device != query.device:
                what = f"{name} {type(part).__name__}" if not isinstance(part, Tensor) else name
                raise DeviceError(
                    f"{what} has a tensor on {tensor.device}, query is on {query.device}; move it to query.device"
                )


def _tensors_of(part: Any) -> list[Tensor]:
    if isinstance(part, Tensor):
        return [part]
    if isinstance(part, torch.nn.Module):
        if not (part._parameters or part._buffers or part._modules):  # asking torch for all of none takes long
            return []
        return [*part.parameters(), *part.buffers()]
    if isinstance(part, Mask):
        values = [getattr(part, name) for name in part.fields]
        return [t for v in values for x in (v if isinstance(v, tuple) else (v,)) for t in _tensors_of(x)]
    return []


def _check_heads(query: Tensor, score: Score, normalizer: Normalizer) -> None:
    here = query.shape[-3] if query.ndim > 2 else 1
    for what, heads in (("score", score.heads), ("normalizer", normalizer.heads)):
        if heads is not None and here not in (1, heads):
            raise ShapeError(
                f"query has {here} heads (axis -3), the {what} was made for heads={heads}; "
                f"expected [*batch {heads} n_q d_q]; use heads={here}, or heads=None to share one set"
            )


def _grouped(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Key heads may divide query heads."""
    heads = query.shape[-3] if query.ndim > 2 else 1
    for name, x in (("key", key), ("value", value)):
        here = x.shape[-3] if x.ndim > 2 else 1
        if here not in (1, heads) and heads != 1 and (here == 0 or heads % here):
            raise ShapeError(
                f"{name} has {here} heads (axis -3), query has {heads}: key heads must divide query heads; "
                f"repeat or project {name} to a divisor of {heads}"
            )
    if heads == 1:
        return key, value
    return repeat_heads(key, heads), repeat_heads(value, heads)


def _mask_or_bias(score: Score, mask: AnyMask) -> tuple[Score, Mask | None]:
    """A bool tensor is a mask; a float tensor is a bias, whose -inf (or least finite number, which some
    libraries write for it) means that the pair does not exist."""
    if mask is None or isinstance(mask, Mask):
        return score, mask
    if not isinstance(mask, Tensor):
        raise DTypeError(
            f"mask is {type(mask).__name__}; expected a mask such as causal(), a bool tensor (True = may attend), or a float tensor (a bias)"
        )
    if mask.ndim < 2:
        raise ShapeError(
            f"mask has shape {tuple(mask.shape)}; expected [..., n_q, n_k]; for lengths use padding(lengths)"
        )
    if mask.dtype == torch.bool:
        return score, dense(mask)
    if not mask.dtype.is_floating_point:
        raise DTypeError(f"mask is {mask.dtype}; expected bool (True = may attend) or a float bias; try mask.bool()")
    exists = ~(mask <= torch.finfo(mask.dtype).min)  # so that a NaN is not taken for a mask, and shows
    return Biased(score, DenseBias(torch.where(exists, mask, 0.0))), dense(exists)


def _normalizer(normalizer: Any) -> Normalizer:
    if normalizer is None:
        return SOFTMAX
    if isinstance(normalizer, Normalizer):
        return normalizer
    if isinstance(normalizer, type) and issubclass(normalizer, Normalizer):
        raise DTypeError(f"normalizer={normalizer.__name__} is a class; expected an object: {normalizer.__name__}()")
    raise DTypeError(
        f"normalizer is {type(normalizer).__name__}; expected one of regard.normalizers, such as Softmax()"
    )


def seed_tensor(seed: Seed, device: torch.device) -> Int[Tensor, ""]:
    if seed is None:
        return new_seed(device)
    if isinstance(seed, Tensor):
        if seed.numel() != 1 or seed.is_floating_point():
            raise DTypeError(f"seed is a tensor {tuple(seed.shape)} of {seed.dtype}; expected one whole number")
        return seed.reshape(()).to(device=device, dtype=torch.int64)
    if isinstance(seed, float) or not -(2**63) <= seed < 2**63:
        raise DTypeError(f"seed={seed!r}; expected a whole number of 64 bits")
    return torch.full((), seed, dtype=torch.int64, device=device)
