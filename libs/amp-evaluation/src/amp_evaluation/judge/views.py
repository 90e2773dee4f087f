"""What a prompt builder sees of a trace: the same objects, whose texts fence themselves when a prompt takes them in.

An f-string, `format`, `+` and `%s` ask the text how it wants to be shown. `str.join`, `json.dumps` and template engines
don't: they take the bare characters. So what a builder has read is noted, and where it stands bare in the finished
prompt it is fenced there.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

from amp_evaluation.judge.fence import as_json, fence, insert, parts_of

__all__ = ["built", "noted", "sealed", "unfenced", "view"]

PLAIN_FIELDS = frozenset({"trace_id", "span_id", "parent_span_id", "agent_id", "llm_span_id"})
MIN_SEALED_CHARS = 12  # shorter texts are names and words, which the author's own sentences hold too

_PLAIN_ID = re.compile(r"[\w.:-]{0,64}", re.ASCII)
_MARK = re.compile(r"</?untrusted id=[0-9a-f]{12}>")
_CONVERTED = re.compile(r"%(?!s)")  # `%r` asks the text itself, `%.10s` would cut a fence

T = TypeVar("T")

_read: ContextVar[dict[str, None] | None] = ContextVar("read", default=None)


def built(builder: Callable[..., Any], target: object, *args: Any, **kwargs: Any) -> Any:
    """What a prompt builder gives for a view of the target; a text with everything that it read in fences."""
    with noted():
        prompt = builder(view(target), *args, **kwargs)
        return sealed(f"{prompt}") if isinstance(prompt, str) else prompt


@contextmanager
def noted() -> Iterator[None]:
    """Note the texts that views give away from now on, for `sealed`."""
    if _read.get() is not None:
        yield
        return
    token = _read.set({})
    try:
        yield
    finally:
        _read.reset(token)


def sealed(prompt: str) -> str:
    """The prompt with a fence around every noted text that stands bare in it: as it is, or escaped in JSON or repr."""
    bare = _outside(prompt)
    for text in sorted(_read.get() or (), key=len, reverse=True):
        if len(text) > len(bare):
            continue
        for form in _forms(text):
            if form in bare:
                parts = parts_of(prompt)
                parts[::2] = [part.replace(form, fence(form)) for part in parts[::2]]
                prompt = "".join(parts)
                bare = _outside(prompt)
    return prompt


def unfenced(value: T) -> T:
    """A result whose explanation took judged text over: people read it, without the marks."""
    said = getattr(value, "explanation", None)
    if isinstance(said, str):
        value.explanation = "".join(_MARK.split(said))  # type: ignore[attr-defined]  # a result can be changed
    return value


def _forms(text: str) -> Iterable[str]:
    """The text as it is, and as JSON and Python quote it."""
    return dict.fromkeys((text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1]))


def _outside(prompt: str) -> str:
    return "\0".join(parts_of(prompt)[::2])


def view(target: T) -> T:
    """The same object for a prompt builder: its texts, and those of all it leads to, fence themselves."""
    return _wrap(target)  # type: ignore[no-any-return]


class _Judged(str):
    """A text that fences itself when it is formatted; compared, searched and measured it is the text."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return insert(self, spec)

    def __str__(self) -> str:
        return self

    def __repr__(self) -> str:
        return fence(str.__repr__(self))

    def __add__(self, other: str) -> str:
        return f"{self}{other}"

    def __radd__(self, other: str) -> str:
        return f"{other}{self}"

    def __rmod__(self, other: str) -> str:
        shown = self if _CONVERTED.search(other.replace("%%", "")) else fence(self)
        return str.__mod__(other, (shown,))


def _keeping(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of texts whose result is judged text again."""
    return lambda *args, **kwargs: _wrap(method(*args, **kwargs))


_STILL_JUDGED = (
    *("strip", "lstrip", "rstrip", "removeprefix", "removesuffix", "replace", "translate", "expandtabs"),
    *("lower", "upper", "title", "capitalize", "casefold", "swapcase", "center", "ljust", "rjust", "zfill"),
    *("split", "rsplit", "splitlines", "partition", "rpartition", "join", "format", "format_map"),
    *("__getitem__", "__mul__", "__rmul__", "__mod__"),
)
for _name in _STILL_JUDGED:
    setattr(_Judged, _name, _keeping(getattr(str, _name)))


class _JudgedList(list[Any]):
    """A list whose items fence themselves; formatted it is JSON in a fence."""

    def __format__(self, spec: str) -> str:
        return fence(as_json(self))

    __str__ = __repr__ = lambda self: fence(as_json(self))


class _JudgedDict(dict[Any, Any]):
    """A dict whose keys and values fence themselves; formatted it is JSON in a fence."""

    def __format__(self, spec: str) -> str:
        return fence(as_json(self))

    __str__ = __repr__ = lambda self: fence(as_json(self))


def _judged(text: str) -> _Judged:
    read = _read.get()
    if read is not None and len(text) >= MIN_SEALED_CHARS:
        read[text] = None
    return _Judged(text)


def _wrap(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return _judged(value)
    if kind is list:
        return _JudgedList(map(_wrap, value))
    if kind in (tuple, set, frozenset):
        return kind(map(_wrap, value))
    if kind is dict:
        return _JudgedDict({_wrap(key): _wrap(item) for key, item in value.items()})
    if dataclasses.is_dataclass(kind) and not hasattr(kind, "_judged"):
        made: Any = object.__new__(_view_class(kind))
        object.__setattr__(made, "_judged", value)
        return made
    return value


def _attribute(self: Any, name: str) -> Any:
    if name.startswith("__") or name == "_judged":
        return object.__getattribute__(self, name)
    target = object.__getattribute__(self, "_judged")
    if target is None:  # made by its constructor, as dataclasses.replace does: no view of anything
        return object.__getattribute__(self, name)
    value = getattr(target, name)
    if name in PLAIN_FIELDS and _PLAIN_ID.fullmatch(str(value)):
        return value
    return _keeping(value) if callable(value) else _wrap(value)


@cache
def _view_class(kind: type) -> type:
    """A subclass that reads everything from the real object, so that isinstance and matching still hold."""
    body = {
        "_judged": None,
        "__getattribute__": _attribute,
        "__format__": lambda self, spec: fence(as_json(self)),
        "__str__": lambda self: fence(as_json(self)),
        "__repr__": lambda self: fence(as_json(self)),
        "__hash__": None,
    }
    return type(kind.__name__, (kind,), body)
