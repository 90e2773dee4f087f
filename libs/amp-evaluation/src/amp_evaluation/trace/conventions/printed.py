"""Replies that an instrumentation wrote as a printed Python object (`repr`) instead of a message.

Whole ones are read without being evaluated; what was cut says nothing, so it is no answer text.
"""

from __future__ import annotations

import re
from typing import Any

from amp_evaluation.trace._spans import AssistantMessage, Message, ToolCall
from amp_evaluation.trace.conventions._messages import decode_message
from amp_evaluation.trace.conventions._roles import is_message
from amp_evaluation.trace.conventions._toolcalls import arguments_of, call_id, call_of
from amp_evaluation.trace.conventions._values import printed

_CLASS = re.compile(r"\s*[A-Z]\w*\(\w+=")
_DICT = re.compile(r"\s*\{\s*'\w+':")


def reply_of_printed(text: str) -> list[Message]:
    """The messages behind a printed reply; the text itself where it only looks like one."""
    value = printed(text)
    if value is None:
        cut = (_CLASS.match(text) or _DICT.match(text)) and _is_cut(text)
        several = [line for line in text.split("\n") if line.strip()] if cut else []
        found = [message for line in several for message in replies_in(printed(line))]
        return found if found else [] if cut else [AssistantMessage(text)]
    return replies_in(value) or [AssistantMessage(text)]


_PIECE = re.compile(r"([(\[{])|([)\]}])|(['\"])(?:\\.|(?!\3).)*(?:\3|\Z)", re.DOTALL)


def _is_cut(text: str) -> bool:
    """The text ends inside what it prints, or prints an object a line; prose that begins with code does neither."""
    depth = 0
    for piece in _PIECE.finditer(text):
        depth += (piece[1] is not None) - (piece[2] is not None)
        if depth == 0 and piece[2]:
            rest = text[piece.end() :].strip()
            return not rest or _CLASS.match(rest) is not None or _DICT.match(rest) is not None
    return True


def replies_in(value: Any, depth: int = 0) -> list[Message]:
    """The replies that a provider's response holds; [] for anything else."""
    if isinstance(value, list):
        return [message for item in value for message in replies_in(item, depth + 1)] if depth < 8 else []
    if not isinstance(value, dict):
        return []
    if "call_id" in value and "arguments" in value and isinstance(value.get("name"), str):
        return [AssistantMessage("", [ToolCall(call_id(value), value["name"], arguments_of(value["arguments"]))])]
    for key in ("output", "choices"):
        if isinstance(value.get(key), list):
            return _joined(replies_in(value[key], depth + 1))
    if isinstance(value.get("message"), dict):
        return replies_in(value["message"], depth + 1)
    if value.get("role") == "assistant" or is_message(value):
        return [message for message in decode_message(value, "assistant") if isinstance(message, AssistantMessage)]
    if isinstance(value.get("tool_calls"), list):
        return [AssistantMessage("", [call_of(call) for call in value["tool_calls"] if isinstance(call, dict)])]
    return []


def _joined(messages: list[Message]) -> list[Message]:
    said = [message for message in messages if isinstance(message, AssistantMessage)]
    if len(said) < 2:
        return list(said)
    text = "\n".join(message.content for message in said if message.content)
    return [AssistantMessage(text, [call for message in said for call in message.tool_calls])]
