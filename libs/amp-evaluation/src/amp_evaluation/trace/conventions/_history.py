"""Histories repeat, span for span: what the last span already held is recognised by its bytes and not read again."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from amp_evaluation.trace._records import SMALL, UNREADABLE, attribute_map

HISTORY = "llm.input_messages."
"""The family of flat keys that grows from span to span."""

_MARK = b',"llm.input_messages.'
_MEMBER = re.compile(rb',"[^"\\]*": ?"(?:[^"\\]|\\.)*"', re.DOTALL)
_HEAD = "head"
_decode = msgspec.json.Decoder().decode


class Shared(NamedTuple):
    """Attributes in three parts: what the last span had up to the end of its history, what is new there, the rest."""

    known: bytes
    fresh: dict[str, Any]
    rest: dict[str, Any]
    head: bytes


def shared_attributes(raw: msgspec.Raw, memo: dict[Any, Any]) -> tuple[dict[str, Any], Shared | None]:
    """All attributes, and how they share the last span's when they begin with the same bytes."""
    data = bytes(raw)
    cut = data.rfind(_MARK)
    member = _MEMBER.match(data, cut) if cut >= 0 and len(data) <= SMALL else None
    if member is None:
        return attribute_map(raw), None
    end = member.end()
    head = data[:end]
    known, found = memo.get(_HEAD, (b"", {}))
    size = len(known)
    try:
        if size and data.startswith(known) and (end == size or data[size] == 44):
            fresh = _decode(b"{" + data[size + 1 : end] + b"}") if end > size else {}
        else:
            known, found, fresh = b"", {}, _decode(head + b"}")
        rest = _decode(b"{" + data[end + 1 :]) if data[end] == 44 else {}
    except UNREADABLE:
        return attribute_map(raw), None
    found = {**found, **fresh}
    memo[_HEAD] = (head, found)
    return {**found, **rest}, Shared(known, fresh, rest, head)
