"""Type hints as written: resolved where that is possible, and values held against them."""

from __future__ import annotations

import collections.abc as abc
import contextlib
import types
import typing
from collections import ChainMap
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Annotated, Any, Literal, Union

__all__ = ["convert", "is_optional", "namespace_of", "resolve", "schema_type", "spell", "values_allowed"]

_ARRAYS: dict[Any, type] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Collection: list,
    abc.Iterable: list,
    abc.Set: set,
    abc.MutableSet: set,
}
_OBJECTS: tuple[Any, ...] = (dict, abc.Mapping, abc.MutableMapping)
_SCHEMA_TYPES: tuple[tuple[type, str], ...] = (  # bool first: it is an int to Python, but not to a schema
    (bool, "boolean"),
    (int, "integer"),
    (float, "float"),
    (str, "string"),
    (dict, "object"),
    (list, "array"),
    (tuple, "array"),
    (set, "array"),
    (frozenset, "array"),
)
_SPELLED: dict[Any, str] = {bool: "true or false", int: "an integer", float: "a number", str: "a text"}


def namespace_of(function: Any) -> Mapping[str, Any]:
    """The names that a function's annotations may use: its globals, and what it closes over."""
    while not hasattr(function, "__globals__"):
        inner = (
            getattr(function, "func", None)
            or getattr(function, "__func__", None)
            or getattr(function, "__wrapped__", None)
        )
        if inner is None:
            return {}
        function = inner
    closed: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        with contextlib.suppress(ValueError):  # a cell that isn't filled yet
            closed[name] = cell.cell_contents
    return ChainMap(closed, function.__globals__)  # not a copy: what is defined later counts


def resolve(hint: Any, names: Mapping[str, Any]) -> Any:
    """The hint itself; a text is evaluated as Python would, and stays a text where its names aren't there."""
    while isinstance(hint, str):
        try:
            # written by the author of the code around it, as `typing.get_type_hints` would evaluate it
            resolved = eval(hint, {**vars(typing), **names})
        except Exception:
            return hint
        if resolved == hint:
            return hint
        hint = resolved
    return hint


def _bare(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def _arms(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the hint alone."""
    return typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)


def is_optional(hint: Any) -> bool:
    return any(arm in (None, types.NoneType) for arm in _arms(_bare(hint)))


def convert(hint: Any, value: Any) -> Any:
    """The value as the hint wants it: int → float, list ↔ tuple ↔ set, text → Enum, and the same inside containers.

    A bool is not a number. TypeError for another type, ValueError for a value that a Literal or an Enum doesn't have;
    hints that say nothing checkable (Any, an unresolved text) let everything pass.
    """
    hint = _bare(hint)
    if hint is None or hint is types.NoneType:
        return _only_if(value is None, value, "null")
    arms = _arms(hint)
    if len(arms) > 1:
        return _convert_union(arms, value)
    origin = typing.get_origin(hint) or hint
    if origin is Literal:
        return _convert_literal(typing.get_args(hint), value)
    if origin in _ARRAYS:
        return _convert_array(_ARRAYS[origin], typing.get_args(hint), value)
    if origin in _OBJECTS:
        return _convert_object(typing.get_args(hint), value)
    if isinstance(origin, type):
        return _convert_scalar(origin, value)
    return value


def _only_if(fits: bool, value: Any, wanted: str) -> Any:
    if not fits:
        raise TypeError(wanted)
    return value


def _convert_scalar(kind: type, value: Any) -> Any:
    if issubclass(kind, Enum):
        return _convert_enum(kind, value)
    if kind is float:
        return float(_only_if(isinstance(value, int | float) and not isinstance(value, bool), value, "a number"))
    if kind is int:
        return _only_if(isinstance(value, int) and not isinstance(value, bool), value, "an integer")
    try:
        fits = isinstance(value, kind)
    except TypeError:  # a protocol that can't be checked at run time
        return value
    return _only_if(fits, value, _SPELLED.get(kind, f"a {kind.__name__}"))


def _convert_enum(kind: type[Enum], value: Any) -> Enum:
    if isinstance(value, kind):
        return value
    known = [member.value for member in kind]
    if not isinstance(value, bool):
        for member in kind:
            if member.value == value:
                return member
    if isinstance(value, str) and value in kind.__members__:
        return kind[value]
    _only_if(isinstance(value, str | int) and not isinstance(value, bool), value, f"one of {known}")
    raise ValueError(f"one of {known}")


def _convert_literal(known: tuple[Any, ...], value: Any) -> Any:
    for allowed in known:
        if value == allowed and type(value) is type(allowed):
            return value
    _only_if(any(isinstance(value, type(allowed)) for allowed in known), value, f"one of {list(known)}")
    raise ValueError(f"one of {list(known)}")


def _convert_union(arms: tuple[Any, ...], value: Any) -> Any:
    """The arm of the value's own type, else the first that takes it."""
    exact = [arm for arm in arms if arm is type(value)]
    fault: Exception | None = None
    for arm in (*exact, *arms):
        try:
            return convert(arm, value)
        except (TypeError, ValueError) as error:
            fault = error if not isinstance(fault, ValueError) else fault
    if isinstance(fault, ValueError):
        raise fault
    raise TypeError(spell(arms))


def _convert_array(kind: type, hints: tuple[Any, ...], value: Any) -> Any:
    _only_if(isinstance(value, list | tuple | set | frozenset), value, "a list")
    values = _in_order(value) if isinstance(value, set | frozenset) else value
    if kind is tuple and hints and hints[-1] is not Ellipsis:
        if len(hints) != len(values):
            raise ValueError(f"a list of {len(hints)} items")
        made: Iterable[Any] = [convert(hint, item) for hint, item in zip(hints, values, strict=True)]
    else:
        made = [convert(hints[0], item) for item in values] if hints else values
    return kind(made)


def _in_order(values: Iterable[Any]) -> list[Any]:
    """A set has no order of its own: the sorted one is the same on every run."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def _convert_object(hints: tuple[Any, ...], value: Any) -> Any:
    _only_if(isinstance(value, Mapping), value, "an object")
    if len(hints) != 2:
        return dict(value)
    return {convert(hints[0], key): convert(hints[1], item) for key, item in value.items()}


def spell(hint: Any) -> str:
    """The hint in words, for an error text."""
    arms = hint if isinstance(hint, tuple) else _arms(_bare(hint))
    words = []
    for arm in arms:
        origin: Any = typing.get_origin(arm) or arm
        if origin in _ARRAYS:
            words.append("a list")
        elif origin in _OBJECTS:
            words.append("an object")
        elif origin in (None, types.NoneType):
            words.append("null")
        else:
            words.append(_SPELLED.get(origin, getattr(origin, "__name__", str(origin))))
    return " or ".join(dict.fromkeys(words))


def values_allowed(hint: Any) -> list[Any] | None:
    """The closed set of values of a Literal or an Enum, else None."""
    arms = [arm for arm in _arms(_bare(hint)) if arm not in (None, types.NoneType)]
    if len(arms) != 1:
        return None
    if typing.get_origin(arms[0]) is Literal:
        return list(typing.get_args(arms[0]))
    if isinstance(arms[0], type) and issubclass(arms[0], Enum):
        return [member.value for member in arms[0]]
    return None


def schema_type(hint: Any, default: Any) -> str:
    """string, integer, float, boolean, array or object; from the default where the hint says nothing."""
    allowed = values_allowed(hint)
    if allowed:
        return _schema_type_of(type(allowed[0])) or "string"
    found = [_schema_type_of(typing.get_origin(arm) or arm) for arm in _arms(_bare(hint))]
    names = [name for name in found if name]
    if "float" in names and "integer" in names:
        return "float"
    return names[0] if names else _schema_type_of(type(default)) or "string"


def _schema_type_of(kind: Any) -> str | None:
    if kind in _ARRAYS:
        return "array"
    if kind in _OBJECTS:
        return "object"
    if isinstance(kind, type):
        return next((name for known, name in _SCHEMA_TYPES if issubclass(kind, known)), None)
    return None
