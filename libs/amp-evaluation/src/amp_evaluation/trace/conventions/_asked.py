"""What the user wrote, out of whatever a span was started with. What is in no envelope stays as it is."""

from __future__ import annotations

from typing import Any

from amp_evaluation.trace.conventions._envelopes import (
    MAX_DEPTH,
    MESSAGE_LISTS,
    are_parts,
    hands_on,
    holds_messages,
    inside,
    last_user_text,
    nested_messages,
    opened,
    same_leaf,
)
from amp_evaluation.trace.conventions._messages import messages_of
from amp_evaluation.trace.conventions._roles import is_message
from amp_evaluation.trace.conventions._values import content_text, json_text, shorten

_STATE_KEYS = frozenset({"init_state", "self", "ctx", "context_variables", "state", "memory_step"})


_TASK_RUN = frozenset({"agent", "context", "tools"})
"""What a crew's agent is run with: what the task is stands elsewhere."""


_CALL = frozenset({"args", "kwargs", "sanitize_inputs_outputs", "method"})
_COMMAND = frozenset({"graph", "update", "resume", "goto"})


_ASKED = (
    "user_msg",
    "user_message",
    "user_input",
    "user_prompt",
    "new_message",
    "input",
    "inputs",
    "task",
    "question",
    "query",
    "prompt",
    "message",
    "request",
    "text",
    "content",
    "input_value",
    "goal",
    "str_or_query_bundle",
    "query_bundle",
    "query_str",
)


_ALONE_ONLY = frozenset({"text", "content", "goal", "message", "request"})


def asked_text(value: Any, depth: int = 0) -> str:
    """What the user wrote, out of what a span was started with; "" when it holds none."""
    value = opened(value)
    if value is None or depth > MAX_DEPTH:
        return ""
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, list):
        return _asked_in_list(value, depth)
    return _asked_in_object(value, depth) if isinstance(value, dict) else json_text(value)


def _asked_in_list(value: list[Any], depth: int) -> str:
    if holds_messages(value):
        return last_user_text(messages_of(value))
    if are_parts(value):
        return content_text(value)
    if len(value) == 1:
        return asked_text(value[0], depth + 1)
    return json_text(value) if value else ""


def _asked_in_object(value: dict[str, Any], depth: int) -> str:
    if is_message(value):
        return last_user_text(messages_of(value))
    inner = inside(value, "inputs") or inside(value, "input")
    if inner is None and len(value) == 1 and isinstance(value.get("input_args"), dict):
        inner = (value["input_args"],)
    if inner is not None:
        return asked_text(inner[0], depth + 1)
    if value.keys() <= _CALL and ("kwargs" in value or isinstance(value.get("args"), list)):
        return _asked_in_call(value, depth)
    if value.keys() <= _COMMAND and "resume" in value:  # what a person said when a graph waited for it
        return asked_text(value["resume"], depth + 1) if isinstance(value["resume"], str) else ""
    for key in _ASKED:
        held = value.get(key)
        if held in (None, "", [], {}) or (key in _ALONE_ONLY and len(value) > 1):
            continue
        if isinstance(held, str) or _carries(held):
            return asked_text(held, depth + 1)
    if len(value) == 1 and next(iter(value)) in _ASKED and next(iter(value.values())) in (None, "", [], {}):
        return ""
    if len(value) == 1 and isinstance(value.get("messages"), str):
        return asked_text(value["messages"], depth + 1)
    for key in MESSAGE_LISTS:
        held = opened(value.get(key))
        if isinstance(held, list) and held and holds_messages(held):
            return last_user_text(messages_of(held))
    if value.keys() & _STATE_KEYS or value.keys() == _TASK_RUN or _is_event(value) or hands_on(value.get("messages")):
        return ""
    nested = list(nested_messages(value, depth))
    if set(value) == {"data"} and isinstance(value["data"], dict):  # a pipeline's inputs, by component
        return last_user_text(nested) or same_leaf(value, least=1) or json_text(value["data"])
    return last_user_text(nested) if nested else same_leaf(value) or (json_text(value) if value else "")


def _carries(value: Any) -> bool:
    """The value holds messages or parts, so that its member's name was right about it."""
    if isinstance(value, list):
        return holds_messages(value) or all(isinstance(part, dict) and "type" in part for part in value)
    return isinstance(value, dict) and (
        is_message(value) or any(key in value for key in ("messages", "parts", "content", "query_str"))
    )


def _is_event(value: dict[str, Any]) -> bool:
    return "ev" in value or ("event" in value and len(value) == 1)


def _asked_in_call(value: dict[str, Any], depth: int) -> str:
    """The arguments of a wrapped function: what it was called with, when that is one thing."""
    args = [item for item in value.get("args") or () if item not in (None, "", {}, [])]
    kwargs = value.get("kwargs") if isinstance(value.get("kwargs"), dict) else {}
    if kwargs:
        found = _asked_in_object(kwargs, depth + 1)
        if found:
            return found
    texts = [text for item in args if (text := asked_text(item, depth + 1))]
    return texts[0] if texts else ""
