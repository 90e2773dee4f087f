"""The usual message of flat keys, straight from its values: what the keys alone decide is worked out once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from amp_evaluation.trace._spans import AssistantMessage, Message, ToolCall, ToolMessage
from amp_evaluation.trace.conventions._attrs import Attrs
from amp_evaluation.trace.conventions._messages import decode_plain
from amp_evaluation.trace.conventions._toolcalls import arguments_of


class _Plan(NamedTuple):
    """Where the usual message has its parts among the values; -1 for none."""

    role: int
    content: int
    call_id: int
    name: int
    calls: tuple[tuple[int, int, int], ...]


_CALL_KEYS = ("tool_call.id", "tool_call.function.name", "tool_call.function.arguments")


_TEXT = {str}


@lru_cache(maxsize=4096)
def _plan(rests: tuple[str, ...]) -> _Plan | None:
    """Worked out once for rows of the same keys; None for what the usual message doesn't have."""
    at = {rest: place for place, rest in enumerate(rests)}
    calls = []
    count = 0
    while any(f"tool_calls.{count}.{key}" in at for key in _CALL_KEYS):
        places = [at.pop(f"tool_calls.{count}.{key}", -1) for key in _CALL_KEYS]
        calls.append((places[0], places[1], places[2]))
        count += 1
    head = [at.pop(key, -1) for key in ("role", "content", "tool_call_id", "name")]
    return _Plan(head[0], head[1], head[2], head[3], tuple(calls)) if not at and head[0] >= 0 else None


def usual_message(rests: tuple[str, ...], values: tuple[Any, ...]) -> list[Message] | None:
    """A message of texts only, straight from the values; None when it needs a closer look."""
    plan = _plan(rests)
    if plan is None or set(map(type, values)) != _TEXT:
        return None
    role, content = values[plan.role], values[plan.content] if plan.content >= 0 else ""
    if not plan.calls and plan.call_id < 0:
        return decode_plain(role, content)
    plain = decode_plain("assistant", content)
    if plain is None:
        return None
    if role == "tool" and not plan.calls:
        name = values[plan.name] if plan.name >= 0 else ""
        return [ToolMessage(content, values[plan.call_id] if plan.call_id >= 0 else "", name)]
    if role != "assistant":
        return None
    return [AssistantMessage(content, [_usual_call(call, values) for call in plan.calls])]


def _usual_call(places: tuple[int, int, int], values: tuple[Any, ...]) -> ToolCall:
    found = [values[place] if place >= 0 else "" for place in places]
    return ToolCall(found[0], found[1], arguments_of(found[2]))


class TextRow(NamedTuple):
    """A usual message without its calls' arguments: (id, name) of each call."""

    role: str
    content: str
    call_id: str
    calls: list[tuple[str, str]]


_ROLES = frozenset({"user", "assistant", "system", "tool"})


def text_rows(a: Attrs, prefix: str) -> list[TextRow] | None:
    """The rows of that family as what they say; None unless all are usual messages."""
    found = []
    for rests, values in a.raw_rows(prefix):
        plan = _plan(rests)
        if plan is None or set(map(type, values)) != _TEXT or values[plan.role] not in _ROLES:
            return None
        content = values[plan.content] if plan.content >= 0 else ""
        call_id = values[plan.call_id] if plan.call_id >= 0 else ""
        calls = [(values[at] if at >= 0 else "", values[name] if name >= 0 else "") for at, name, _ in plan.calls]
        found.append(TextRow(values[plan.role], content, call_id, calls))
    return found
