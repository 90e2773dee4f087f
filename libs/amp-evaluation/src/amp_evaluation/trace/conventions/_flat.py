"""The usual message of flat keys, straight from its values: what the keys alone decide is worked out once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from amp_evaluation.trace._spans import AssistantMessage, Message, ToolCall, ToolMessage
from amp_evaluation.trace.conventions._messages import decode_plain
from amp_evaluation.trace.conventions._shapes import Row, Shape
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
    """A usual message: where its parts stand among the attributes' values, -1 for none; of each call id and name."""

    role: int
    content: int
    call_id: int
    calls: tuple[tuple[int, int], ...]


class TextRows(NamedTuple):
    """All rows of a family. `places` are those of all their values."""

    rows: tuple[TextRow, ...]
    places: tuple[int, ...]


def text_rows(shape: Shape, prefix: str) -> TextRows | None:
    """The rows of that family when the keys are those of usual messages, worked out once a shape; None else."""
    if prefix not in shape.plans:
        shape.plans[prefix] = _text_rows(shape.rows.get(prefix, {}).values())
    found: TextRows | None = shape.plans[prefix]
    return found


def _text_rows(rows: Iterable[Row]) -> TextRows | None:
    found: list[TextRow] = []
    for row in rows:
        plan = _plan(row.rests)
        if plan is None:
            return None
        at = (*row.places, -1)
        calls = tuple((at[call_id], at[name]) for call_id, name, _ in plan.calls)
        found.append(TextRow(at[plan.role], at[plan.content], at[plan.call_id], calls))
    return TextRows(tuple(found), tuple(place for row in rows for place in row.places))
