"""A score, normalizer or mask as one flat text and a list of tensors, and back.

torch.compile and torch.export accept a custom operator whose arguments are tensors, texts and numbers,
not our objects. So a part names, in `fields`, what its per-pair work needs; `flatten` writes the
structure as JSON with numbered holes for the tensors, `rebuild` reads it inside the operator.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, ClassVar

from torch import Tensor, nn

_BUILT_IN: dict[str, type] = {}


class Part:
    """Something that can be flattened. Only classes of regard.core register: an operator that runs in
    another process must find the class by its name."""

    fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("regard.core."):
            _BUILT_IN[cls.__name__] = cls


def described(part: Any) -> str:
    """The plain values that a module was made with, for its repr: d_q=64, heads=8."""
    values = {name: value for name, value in vars(part).items() if not name.startswith("_") and name != "training"}
    return ", ".join(f"{name}={value!r}" for name, value in values.items() if isinstance(value, int | float | str))


def built_in(part: Any) -> bool:
    """True when the part and everything inside it can be flattened."""
    if part is None:
        return True
    if type(part).__name__ not in _BUILT_IN or _BUILT_IN[type(part).__name__] is not type(part):
        return False
    values = [getattr(part, name) for name in part.fields]
    nested = [v for value in values for v in (value if isinstance(value, tuple) else (value,))]
    return all(built_in(v) for v in nested if isinstance(v, Part | nn.Module)) and not any(
        callable(v) and not isinstance(v, Part | nn.Module) for v in nested
    )


def flatten(part: Any, tensors: list[Tensor]) -> str:
    """The part as JSON; its tensors are appended to `tensors` and written as their place there."""
    if part is None:
        return "null"
    if isinstance(part, bool):
        return "true" if part else "false"
    if isinstance(part, int):
        return f"{int(part)}"
    if isinstance(part, float):
        # float() pins the value: torch.compile may have made it symbolic, and a text needs a constant.
        return f'{{"float": "{float(part)!r}"}}'
    if isinstance(part, str):
        return f'"{part}"'
    if isinstance(part, Tensor):
        tensors.append(part)
        return f'{{"tensor": {len(tensors) - 1}}}'
    if isinstance(part, tuple):
        return "[" + ", ".join([flatten(value, tensors) for value in part]) + "]"
    inside = "".join([f', "{name}": {flatten(getattr(part, name), tensors)}' for name in part.fields])
    return f'{{"part": "{type(part).__name__}"{inside}}}'


@lru_cache(maxsize=1024)
def _parse(spec: str) -> Any:
    return json.loads(spec)


def rebuild(spec: str, tensors: list[Tensor]) -> Any:
    """The inverse of `flatten`: parts whose `fields` are set and nothing else is."""
    return _build(_parse(spec), tensors)


def _build(node: Any, tensors: list[Tensor]) -> Any:
    if isinstance(node, list):
        return tuple(_build(value, tensors) for value in node)
    if not isinstance(node, dict):
        return node
    if "tensor" in node:
        return tensors[node["tensor"]]
    if "float" in node:
        return float(node["float"])
    cls: Any = _BUILT_IN[node["part"]]
    part = cls.__new__(cls)
    if isinstance(part, nn.Module):
        nn.Module.__init__(part)
    for name in cls.fields:
        # Frozen dataclasses refuse plain assignment; modules need theirs to register submodules.
        setter = setattr if isinstance(part, nn.Module) else object.__setattr__
        setter(part, name, _build(node[name], tensors))
    return part
