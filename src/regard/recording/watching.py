"""How a model is watched: beside each of its attentions, whoever wrote them, without changing a bit of the output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TypeGuard, TypeVar

import torch
from torch import Tensor, nn

from regard.core.masks import causal
from regard.core.normalizers import Softmax
from regard.core.scores import ScaledDot
from regard.core.shapes import InputError
from regard.integrations import huggingface
from regard.integrations.torch import MultiheadAttention, next_seed, project
from regard.nn.attention import Attention, MultiHeadAttention
from regard.recording.records import Kept, Records, Seen

__all__ = ["Watcher"]


class Watcher:
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
        self.records.add(name, part.copied(name) if self.copy else part, first, self.keep)

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
        before = self.records.so_far(name)
        output = forward(src, src_mask, src_key_padding_mask, *args, **kwargs)
        if self.records.so_far(name) == before:  # the fused path, which does not call its attention
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


_watchers: list[Watcher] = []  # of Hugging Face models, of all records that are open


_put_back: list[Callable[[], None]] = []


@contextmanager
def _watching(interface: Any, watcher: Watcher) -> Iterator[None]:
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
