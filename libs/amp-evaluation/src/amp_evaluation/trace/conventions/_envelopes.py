"""What frameworks wrap around the things people wrote: how the wrapping is known, by its members and never by the
text inside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from amp_evaluation.trace._spans import Message, UserMessage
from amp_evaluation.trace.conventions._messages import messages_of
from amp_evaluation.trace.conventions._roles import is_message, is_pair
from amp_evaluation.trace.conventions._values import is_cut_envelope, looks_printed, printed, structured

MAX_DEPTH = 12


AROUND = frozenset({"tags", "metadata", "kwargs", "name", "color", "run_type", "config", "input_str", "callbacks"})
"""Members that LangChain's callbacks put beside "inputs", "outputs" and "output"."""


MESSAGE_LISTS = (
    "messages",
    "input_messages",
    "output_messages",
    "chat_history",
    "contents",
    "history",
    "new_messages",
    "replies",
)


_BRACKETS = frozenset("{[ \n")
_CUT_PRINTED = re.compile(r"\s*(?:[A-Z]\w*\(\w+=|\{\s*'\w+':|\[?<[\w.]+ object at)")


def opened(value: Any) -> Any:
    """JSON text and whole printed objects opened; None for a printed object or an envelope that was cut."""
    value = structured(value)
    if isinstance(value, str) and value[:1] in _BRACKETS and is_cut_envelope(value):
        return None
    if isinstance(value, str) and looks_printed(value):
        held = printed(value)
        if held is not None:
            return held
        if _CUT_PRINTED.match(value):
            return None
    return value


def are_parts(value: list[Any]) -> bool:
    """The list is one content in parts, such as a text and an image, and no list of contents."""
    return bool(value) and all(isinstance(part, dict) and ("type" in part or set(part) == {"text"}) for part in value)


def holds_messages(value: list[Any]) -> bool:
    if is_pair(value) or any(is_message(item) or is_pair(item) for item in value):
        return True
    if value and isinstance(value[0], list):
        return holds_messages(value[0])
    return any(isinstance(item, str) and _PRINTED_MESSAGE.match(item) is not None for item in value)


_PRINTED_MESSAGE = re.compile(r"(?s)\s*\w+\(.*role=|\w+=.*\bsource=.*\bcontent=")


def last_user_text(messages: list[Message]) -> str:
    return next((m.content for m in reversed(messages) if isinstance(m, UserMessage) and m.content), "")


def hands_on(held: Any) -> bool:
    """Messages that nobody can read are messages all the same: what was asked stands elsewhere."""
    return isinstance(held, list) and any(isinstance(item, dict | str) for item in held)


def nested_messages(value: Any, depth: int) -> Iterator[Message]:
    """Messages in a list further down, as pipelines hand them to a component: `{"data": {"agent": {"messages": …`."""
    for held in message_lists(value, depth):
        yield from messages_of(held)


def message_lists(value: Any, depth: int) -> Iterator[list[Any]]:
    if not isinstance(value, dict) or depth > MAX_DEPTH:
        return
    for key, inner in value.items():
        held = opened(inner) if key in MESSAGE_LISTS else None
        if isinstance(held, list) and held and holds_messages(held):
            yield held
        else:
            yield from message_lists(inner, depth + 1)


def conversation_in(value: Any) -> list[Any]:
    """The first list of messages that a value is or holds, each message opened where it was written as text."""
    value = opened(value)
    held = value if isinstance(value, list) and holds_messages(value) else next(message_lists(value, 0), [])
    return [opened(item) for item in held]


def user_text_in(value: Any) -> str:
    """The last user message of an object that hands messages on; "" for anything else."""
    value = opened(value)
    if not isinstance(value, dict):
        return ""
    for key in (*MESSAGE_LISTS, "input"):
        held = opened(value.get(key))
        if isinstance(held, list) and held and holds_messages(held):
            return last_user_text(messages_of(held))
    return ""


def inside(value: dict[str, Any], key: str) -> tuple[Any] | None:
    """The value of an envelope: `key` with nothing beside it but what callbacks add."""
    if key in value and len(value) > 1 and all(other == key or other in AROUND for other in value):
        return (value[key],)
    return None


def same_leaf(value: Any, least: int = 2) -> str:
    """The one text that all text leaves (`least` or more) of a larger object share; "" when they differ."""
    leaves = list(_leaves(value, 0))
    long = {leaf for leaf in leaves if len(leaf) > 1}
    return next(iter(long)) if len(leaves) >= least and len(long) == 1 else ""


def _leaves(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < MAX_DEPTH:
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for item in items:
            yield from _leaves(item, depth + 1)
