"""Watch every attention of a model while it runs: `with regard.record(model) as records: model(x)`.

Queries, keys and masks are kept as the model made them (views, not copies); weights and statistics are
computed from them when asked for, and never more than was asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from math import prod
from typing import Any, NamedTuple, TypeGuard, TypeVar, overload

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.formula import Call, weigh
from regard.core.masks import causal
from regard.core.normalizers import Normalizer, Softmax
from regard.core.scores import ScaledDot, Score, extent_of
from regard.core.shapes import InputError
from regard.core.statistics import Summary
from regard.dispatch import choose
from regard.integrations import huggingface
from regard.integrations.torch import MultiheadAttention, next_seed, project
from regard.nn.attention import Attention, MultiHeadAttention
from regard.resolve import AnyMask, precisely, resolve

__all__ = ["Record", "Records", "record"]

AT_ONCE = 2**22  # numbers held in one block of rows while weights are computed


class Seen(NamedTuple):
    """What one attention was given."""

    query: Float[Tensor, "*batch n_q d_q"]
    key: Float[Tensor, "*batch n_k d_k"]
    score: Score
    normalizer: Normalizer
    mask: AnyMask
    seed: Tensor | None = None  # only where noise makes the choice


@dataclass(frozen=True)
class Kept:
    """How to come by what was seen, and whether that is still what it was."""

    see: Callable[[], Seen]
    sources: tuple[tuple[Tensor, int], ...]  # tensors that belong to the model, each with its version then
    autocast: tuple[str, torch.dtype] | None

    @staticmethod
    def of(see: Callable[[], Seen], *sources: Tensor | None) -> Kept:
        device = next(x.device.type for x in sources if x is not None)
        autocast = (device, torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else None
        return Kept(
            see, tuple((x.detach(), x._version) for x in sources if x is not None and not x.is_inference()), autocast
        )

    @contextmanager
    def seen(self, name: str) -> Iterator[Seen]:
        if any(tensor._version != version for tensor, version in self.sources):
            raise InputError(
                f"{name}: the model has overwritten a tensor of this attention since (a training step, or a cache "
                f"of fixed size); read the record before that, or use record(model, copy=True)"
            )
        device, dtype = self.autocast or ("cpu", torch.bfloat16)
        with torch.no_grad(), torch.autocast(device, dtype, enabled=self.autocast is not None):
            yield self.see()

    def copied(self, name: str) -> Kept:
        with self.seen(name) as now:
            own = Seen._make(x.clone() if isinstance(x, Tensor) else deepcopy(x) for x in now)
        return replace(self, see=lambda: own, sources=())


@dataclass(frozen=True, eq=False)
class Record:
    """One call of one attention. Its weights are those before dropout."""

    name: str
    call: int  # 0 for the first call of this attention, 1 for the second, …
    parts: tuple[Kept, ...]  # one; or one for each head, where the heads have scores of their own

    @property
    def score(self) -> Score | tuple[Score, ...]:
        return self._one_or_all(lambda seen: seen.score)

    @property
    def normalizer(self) -> Normalizer:
        return self._read(lambda seen: seen.normalizer)[0]

    @property
    def mask(self) -> AnyMask | tuple[AnyMask, ...]:
        return self._one_or_all(lambda seen: seen.mask)

    @property
    def query(self) -> Float[Tensor, "*batch heads n_q d_q"]:
        return torch.cat(self._read(lambda seen: seen.query), dim=-3) if len(self.parts) > 1 else self._first.query

    @property
    def key(self) -> Float[Tensor, "*batch heads n_k d_k"]:
        return torch.cat(self._read(lambda seen: seen.key), dim=-3) if len(self.parts) > 1 else self._first.key

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all weights: *batch heads n_q n_k."""
        with self.parts[0].seen(self.name) as seen, resolved(seen) as (call, query, key):
            extent = extent_of(call.score, query, key)
        heads = extent.batch if len(self.parts) == 1 else (*extent.batch[:-1], len(self.parts))
        return (*heads, extent.n_q, extent.n_k)

    def weights(self, rows: Choice = None, heads: Choice = None) -> Float[Tensor, "*batch heads n_q n_k"]:
        """The weight of every key, for all queries (rows) and heads or for those chosen: a number, a list, a
        slice. All axes are kept. Memory is what is returned and one block of rows."""
        *lead, n_q, _ = self.shape
        if heads is not None and not lead:
            raise InputError(f"{self.name}: heads={heads}, but these weights have no axis of heads: {self.shape}")
        chosen, rows = None if heads is None else _indices("heads", heads, lead[-1]), _indices("rows", rows, n_q)
        if len(self.parts) == 1:
            return self._read(lambda seen: _weights(seen, rows, chosen))[0]
        parts = self.parts if chosen is None else tuple(self.parts[h] for h in chosen.tolist())
        return torch.cat(replace(self, parts=parts)._read(lambda seen: _weights(seen, rows, None)), dim=-3)

    def summary(self, top: int = 8, pool: int = 64) -> Summary:
        """What `regard.attention_summary` says of these weights, in memory O(n)."""
        each = self._read(lambda seen: _summary(seen, top, pool))
        if len(each) == 1:
            return each[0]
        joined: dict[str, Any] = {}
        for name, axis in HEADS_AXIS.items():
            tensors = [getattr(one, name) for one in each]
            joined[name] = None if tensors[0] is None else torch.cat(tensors, dim=axis)
        return Summary(**joined)

    @property
    def _first(self) -> Seen:
        return self._read(lambda seen: seen)[0]

    def _read(self, what: Callable[[Seen], Any]) -> list[Any]:
        found = []
        for part in self.parts:
            with part.seen(self.name) as seen:
                found.append(what(seen))
        return found

    def _one_or_all(self, what: Callable[[Seen], Any]) -> Any:
        found = self._read(what)
        return found[0] if len(found) == 1 else tuple(found)

    def __repr__(self) -> str:
        return f"Record({self.name!r}, call={self.call}, shape={self.shape})"


Choice = int | slice | Sequence[int] | Int[Tensor, " m"] | None
HEADS_AXIS = {"lse": -2, "entropy": -2, "top_weights": -3, "top_indices": -3, "mass": -2, "pooled": -3}


def _indices(name: str, chosen: Choice, n: int) -> Int[Tensor, " m"]:
    everything = torch.arange(n)
    if chosen is None or isinstance(chosen, slice):
        return everything[chosen if chosen is not None else slice(None)]
    index = torch.as_tensor(chosen).reshape(-1).cpu()
    if index.is_floating_point() or bool(((index < -n) | (index >= n)).any()):
        raise InputError(f"{name}={chosen}; expected whole numbers from 0 to {n - 1}")
    return everything[index.long()]


@contextmanager
def resolved(seen: Seen) -> Iterator[tuple[Call, Tensor, Tensor]]:
    query, key, score, normalizer, mask, seed = seen
    with precisely(score, query, key) as (query, key):
        # The keys stand in for the values: weights do not depend on them.
        call, query, key, _ = resolve(query, key, key, score, normalizer, mask, seed=seed)
        yield call, query, key


def _weights(seen: Seen, rows: Tensor, heads: Tensor | None) -> Tensor:
    with resolved(seen) as (call, query, key):
        extent = extent_of(call.score, query, key)
        query, key = call.score.project(query, key)
        numbers = prod(extent.batch) * extent.n_k * call.score.work(query.shape[-1])  # in one row
        blocks = []
        for block in rows.to(query.device).split(max(1, AT_ONCE // max(numbers, 1))):
            weights = weigh(query[..., block, :], key, extent.tile(block), call)
            weights = weights.expand(*extent.batch, -1, -1)
            blocks.append(weights if heads is None else weights[..., heads.to(weights.device), :, :])
        return torch.cat(blocks, dim=-2)


def _summary(seen: Seen, top: int, pool: int) -> Summary:
    with resolved(seen) as (call, query, key):
        return choose("auto", query, key, key, call)[1].summary(query, key, call, top, pool)


class Records(Sequence[Record]):
    """The records in the order of the calls; `records[name]` is the latest of that name, `calls(name)` all."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._counts: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(record.name for record in self._records))

    def calls(self, name: str) -> list[Record]:
        found = [record for record in self._records if record.name == name]
        if not found:
            known = ", ".join(self.names) or "none; was the model called inside `with record(model)`?"
            raise InputError(f"no record of {name!r}; there are: {known}")
        return found

    @overload
    def __getitem__(self, which: int | str) -> Record: ...

    @overload
    def __getitem__(self, which: slice) -> list[Record]: ...

    def __getitem__(self, which: int | str | slice) -> Record | list[Record]:
        return self.calls(which)[-1] if isinstance(which, str) else self._records[which]

    def __contains__(self, which: object) -> bool:
        return which in self.names if isinstance(which, str) else which in self._records

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"{len(self)} records: {', '.join(self.names)}"

    def _add(self, name: str, part: Kept, first: bool, keep: int | None) -> None:
        if not first:  # a further head of the latest call
            self._records[-1] = replace(self._records[-1], parts=(*self._records[-1].parts, part))
            return
        self._records.append(Record(name, self._count(name), (part,)))
        self._counts[name] = self._count(name) + 1
        if keep is not None and self._count(name) > keep:
            self._records.remove(next(record for record in self._records if record.name == name))

    def _count(self, name: str) -> int:
        return self._counts.get(name, 0)


@contextmanager
def record(
    model: nn.Module, *, only: str | Sequence[str] | None = None, keep: int | None = None, copy: bool = False
) -> Iterator[Records]:
    """Watch the attentions of a model: those of regard.nn, nn.MultiheadAttention, Hugging Face models. The
    output does not change by a bit.

    `only` names those to watch ("decoder*", or a list of such), `keep` how many of the latest calls of each to
    keep. What is kept are views of the model's own tensors: a record can be read until the model overwrites
    them, and says so if it has; `copy=True` keeps copies instead.

    >>> import torch, regard
    >>> from regard.nn.attention import MultiHeadAttention
    >>> model = torch.nn.ModuleDict({"attention": MultiHeadAttention(8, heads=2)})
    >>> with record(model) as records:
    ...     output = model["attention"](torch.randn(1, 5, 8), mask=regard.masks.causal())
    >>> records["attention"].weights(rows=0)  # the first word sees only itself
    tensor([[[[1., 0., 0., 0., 0.]],
             [[1., 0., 0., 0., 0.]]]])
    """
    watcher = _Watcher(model, [only] if isinstance(only, str) else only, keep, copy)
    with ExitStack() as undo:
        watcher.watch(undo)
        yield watcher.records


class _Watcher:
    """Puts itself beside every attention of one model, and fills the records."""

    def __init__(self, model: nn.Module, only: Sequence[str] | None, keep: int | None, copy: bool) -> None:
        if keep is not None and keep < 1:
            raise InputError(f"keep={keep}; expected 1 or more")
        self.records, self.only, self.keep, self.copy = Records(), only, keep, copy
        self.names = {module: name or type(module).__name__ for name, module in model.named_modules()}
        self.first: dict[nn.Module, bool] = {}  # False for the further heads of one attention
        self.widths: dict[nn.Module, int] = {}  # n, where nn.TransformerEncoder packs its batch as nested tensor
        for module, name in list(self.names.items()):
            # An attention goes by the name of the module that has it, alone or one for each head.
            heads = list(module.attentions) if isinstance(module, MultiHeadAttention) else []
            heads += [module.attention] if isinstance(module, MultiheadAttention) else []
            for head, one in enumerate(heads):
                self.names[one], self.first[one] = name, head == 0

    def watch(self, undo: ExitStack) -> None:
        anything = False
        for module, name in self.names.items():
            if type(module).__name__ == "OptimizedModule":
                raise InputError(
                    f"{name} is compiled, and compiled code cannot be watched; record it before torch.compile"
                )
            if isinstance(module, Attention):
                anything = True
                if self.wanted(name):
                    undo.callback(module.register_forward_pre_hook(self.before_attention, with_kwargs=True).remove)
            # A hook on any of these would make torch leave its fused evaluation path, which would change the
            # last bits of the output. So their `forward` is shadowed on the object instead, which torch does not look at.
            elif _keeps_forward(module, nn.MultiheadAttention):
                anything = True
                if self.wanted(name):
                    _shadow(module, partial(self.around_torch, module), undo)
            elif _keeps_forward(module, nn.TransformerEncoderLayer):
                if _keeps_forward(module.self_attn, nn.MultiheadAttention) and self.wanted(
                    self.names[module.self_attn]
                ):
                    _shadow(module, partial(self.around_torch_layer, module), undo)
            elif _keeps_forward(module, nn.TransformerEncoder):
                _shadow(module, partial(self.around_torch_encoder, module), undo)
        modeling = sys.modules.get("transformers.modeling_utils")
        if modeling is not None and self.has_transformers(modeling):
            anything = True
            undo.enter_context(_watching(modeling.AttentionInterface, self))
        if not anything:
            raise InputError(
                f"{next(iter(self.names.values()))} has no attention that can be watched: neither regard.nn.Attention, nor "
                f"nn.MultiheadAttention, nor a Hugging Face model that calls its attention through AttentionInterface"
            )

    def wanted(self, name: str) -> bool:
        return self.only is None or any(fnmatchcase(name, pattern) for pattern in self.only)

    def add(self, name: str, see: Callable[[], Seen], *sources: Tensor | None, first: bool = True) -> None:
        part = Kept.of(see, *sources)
        self.records._add(name, part.copied(name) if self.copy else part, first, self.keep)

    # regard.nn

    def before_attention(self, module: Attention, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = dict(zip(("query", "key", "value", "mask"), args, strict=False)) | kwargs
        query, key, mask = given["query"].detach(), given["key"].detach(), _detached(given.get("mask"))
        seed = next_seed(module.normalizer, query.device)
        seen = Seen(query, key, module.score, module.normalizer, mask, seed)
        sources = [query, key, *module.parameters(), *([mask] if isinstance(mask, Tensor) else [])]
        self.add(self.names[module], lambda: seen, *sources, first=self.first.get(module, True))

    # torch.nn

    def around_torch(
        self,
        module: nn.MultiheadAttention,
        forward: Callable[..., Any],
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        self.add_torch(module, query, key, key_padding_mask, attn_mask)
        return forward(query, key, value, key_padding_mask, need_weights, attn_mask, *args, **kwargs)

    def around_torch_layer(
        self,
        layer: nn.TransformerEncoderLayer,
        forward: Callable[..., Any],
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        name = self.names[layer.self_attn]
        before = self.records._count(name)
        output = forward(src, src_mask, src_key_padding_mask, *args, **kwargs)
        if self.records._count(name) == before:  # the fused path, which does not call its attention
            norm = layer.norm1 if layer.norm_first else None
            self.add_torch(layer.self_attn, src, src, src_key_padding_mask, src_mask, norm)
        return output

    def around_torch_encoder(
        self, encoder: nn.TransformerEncoder, forward: Callable[..., Any], src: Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        self.widths |= {layer.self_attn: src.shape[1] for layer in encoder.layers if src.ndim == 3}  # type: ignore[misc]
        try:
            return forward(src, *args, **kwargs)
        finally:
            self.widths.clear()

    def add_torch(
        self,
        module: nn.MultiheadAttention,
        query: Tensor,
        key: Tensor,
        key_padding_mask: Tensor | None,
        attn_mask: Tensor | None,
        norm: Any = None,
    ) -> None:
        same, width = query is key, self.widths.get(module)
        query, key = query.detach(), key.detach()
        key_padding_mask, attn_mask = _detached(key_padding_mask), _detached(attn_mask)

        def see() -> Seen:
            q, ignored = _padded(query, key_padding_mask, width)
            k = q if same else key
            q, k = (q, k) if norm is None else (norm(q), norm(k))
            q, k, _, mask = project(module, q, k, None, ignored, attn_mask)
            return Seen(q, k, ScaledDot(), Softmax(), mask)

        self.add(
            self.names[module], see, query, key, *module.parameters(), *([] if norm is None else norm.parameters())
        )

    # Hugging Face

    def has_transformers(self, modeling: Any) -> bool:
        models: list[Any] = [module for module in self.names if isinstance(module, modeling.PreTrainedModel)]
        if models:
            return any(model._can_set_attn_implementation() for model in models)
        return any(type(module).__module__.startswith("transformers.") for module in self.names)

    def before_transformers(self, implementation: str | None, *args: Any, **kwargs: Any) -> None:
        given = dict(zip(("module", "query", "key", "value", "attention_mask"), args, strict=False)) | kwargs
        module = given.pop("module")
        if module not in self.names or not self.wanted(self.names[module]):
            return
        name = self.names[module]
        replaced = huggingface.REGISTERED.get(implementation or "eager", huggingface.NOTHING)
        if implementation not in (None, "eager", "sdpa", *huggingface.REGISTERED):
            raise InputError(
                f"{name} runs {implementation}, whose masks cannot be read; call model.set_attn_implementation('sdpa')"
            )
        query, key, mask = (_detached(given.get(part)) for part in ("query", "key", "attention_mask"))
        meant = {part: _detached(given[part]) for part in huggingface.MEANT if part in given}
        if mask is None and implementation == "sdpa" and query.shape[-2] > 1:
            is_causal = given.get("is_causal")
            if getattr(module, "is_causal", True) if is_causal is None else is_causal:
                mask = causal(align="start")
        seed = None if replaced.normalizer is None else next_seed(replaced.normalizer, query.device)

        def see() -> Seen:
            return Seen(query, key, *huggingface.parts(module, mask, replaced=replaced, **meant), seed)

        tensors = [
            x for x in (mask, *meant.values()) if isinstance(x, Tensor) and not isinstance(x, huggingface.RuleMask)
        ]
        self.add(name, see, query, key, *tensors, *_parameters(replaced.score), *_parameters(replaced.normalizer))


def _parameters(part: nn.Module | None) -> list[nn.Parameter]:
    return [] if part is None else list(part.parameters())


def _detached(x: Any) -> Any:
    return x.detach() if isinstance(x, Tensor) and not isinstance(x, huggingface.RuleMask) else x


M = TypeVar("M", bound=nn.Module)


def _keeps_forward(module: object, kind: type[M]) -> TypeGuard[M]:
    return isinstance(module, kind) and type(module).forward is kind.forward


def _shadow(module: nn.Module, around: Callable[..., Any], undo: ExitStack) -> None:
    """Let `around(forward, *args)` stand for `module.forward(*args)` until undone."""
    before = vars(module).get("forward")

    def put_back() -> None:
        if before is None:
            del module.forward
        else:
            module.forward = before

    module.forward = partial(around, module.forward)
    undo.callback(put_back)


def _padded(x: Tensor, ignored: Tensor | None, width: int | None) -> tuple[Tensor, Tensor | None]:
    """A nested tensor, which holds no padding, as the padded batch and key_padding_mask that it was."""
    if not x.is_nested:
        return x, ignored
    lengths = torch.tensor([len(one) for one in x.unbind()], device=x.device)
    width = int(lengths.max()) if width is None else width
    padded = torch.nested.to_padded_tensor(x, 0.0, (len(lengths), width, x.size(-1)))
    return padded, torch.arange(width, device=x.device) >= lengths[:, None]


_watchers: list[_Watcher] = []  # of Hugging Face models, of all records that are open


_put_back: list[Callable[[], None]] = []


@contextmanager
def _watching(interface: Any, watcher: _Watcher) -> Iterator[None]:
    """Models ask `AttentionInterface.get_interface` for their attention function at each call: while anyone
    watches, what they get calls the watchers first, and then the same function with the same arguments."""
    if not _watchers:
        original = interface.get_interface
        _put_back.append(partial(setattr, interface, "get_interface", original))
        interface.get_interface = _watched(original)
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)
        if not _watchers:
            _put_back.pop()()


def _watched(original: Callable[..., Any]) -> Callable[..., Any]:
    def get_interface(self: Any, implementation: str | None, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        function = original(self, implementation, *args, **kwargs)

        def call(*args: Any, **kwargs: Any) -> Any:
            for watcher in list(_watchers):
                watcher.before_transformers(implementation, *args, **kwargs)
            return function(*args, **kwargs)

        return call

    return get_interface
