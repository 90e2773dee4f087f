"""Long histories repeat, span for span: what the last span already held is recognised by its bytes, not read again."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from amp_evaluation.trace._records import UNREADABLE, attribute_map

HISTORY = "llm.input_messages."
"""The family of flat keys that grows from span to span."""

_MARK = b',"llm.input_messages.'
_MEMBER = re.compile(rb',"[^"\\]*": ?"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_decode = msgspec.json.Decoder().decode


class Shared(NamedTuple):
    """How attributes share the last span's: the bytes both begin with, what is new of the history, all but history.

    `head` is what the next span may begin with.
    """

    known: bytes
    fresh: dict[str, Any]
    others: dict[str, Any]
    head: bytes


class _Last(NamedTuple):
    head: bytes
    found: dict[str, Any]
    others: dict[str, Any]


_NOTHING = _Last(b"", {}, {})


def shared_attributes(raw: msgspec.Raw, memo: dict[Any, Any]) -> tuple[dict[str, Any], Shared | None]:
    """All attributes, and what they share; None where they hold no history in one piece."""
    data = bytes(raw)
    cut = data.rfind(_MARK)
    member = _MEMBER.match(data, cut) if cut >= 0 else None
    if member is None:
        return attribute_map(raw), None
    end = member.end()
    last: _Last = memo.get(_Last, _NOTHING)
    size = len(last.head)
    if not size or not data.startswith(last.head) or (end > size and data[size : size + 1] != b","):
        last, size = _NOTHING, 0
    try:
        fresh = _decode((b"{" + data[size + 1 : end] if size else data[:end]) + b"}") if end > size else {}
        rest = _decode(b"{" + data[end + 1 :]) if data[end : end + 1] == b"," else {}
    except UNREADABLE:
        return attribute_map(raw), None
    before = {**last.others, **{key: value for key, value in fresh.items() if not key.startswith(HISTORY)}}
    found = {**last.found, **fresh}
    memo[_Last] = _Last(data[:end], found, before)
    return {**found, **rest}, Shared(last.head, fresh, {**before, **rest}, data[:end])


def cut_out_history(data: bytes) -> tuple[bytes, bytes] | None:
    """(attributes without the history, its members) as JSON; None where there is none in one piece between others."""
    first, cut = data.find(_MARK), data.rfind(_MARK)
    if first < 0 or data.find(b"{", 1, first) >= 0:  # it may stand inside a value
        return None
    member = _MEMBER.match(data, cut)
    if member is None:
        return None
    end = member.end()
    return data[:first] + data[end:], data[first + 1 : end]


def alone(histories: list[bytes]) -> list[bytes]:
    """Those that the next one doesn't begin with. All are members, or elements, without what closes them."""
    found = []
    for position, data in enumerate(histories):
        following = histories[position + 1] if position + 1 < len(histories) else b""
        if not following.startswith(data) or following[len(data) : len(data) + 1] != b",":
            found.append(data)
    return found
