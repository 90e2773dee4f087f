"""What was answered, out of whatever a span ended with. What is in no envelope stays as it is."""

from __future__ import annotations

from typing import Any

from amp_evaluation.trace._spans import AssistantMessage, Message
from amp_evaluation.trace.conventions._envelopes import (
    AROUND,
    MAX_DEPTH,
    MESSAGE_LISTS,
    are_parts,
    holds_messages,
    nested_messages,
    opened,
    same_leaf,
)
from amp_evaluation.trace.conventions._messages import messages_of
from amp_evaluation.trace.conventions._roles import is_message, role_of
from amp_evaluation.trace.conventions._values import content_text, json_text, looks_printed, shorten
from amp_evaluation.trace.conventions.printed import reply_of_printed

_ANSWERED = (
    "outputs",
    "output",
    "final_output",
    "response",
    "result",
    "answer",
    "output_text",
    "final_answer",
    "return_value",
    "return_values",
    "replies",
    "data",
    "value",
)


_WITH_ANSWER = frozenset(
    {"input", "inputs", "question", "query", "context", "source_documents", "intermediate_steps", "chat_history"}
    | {"kwargs", "tags", "metadata", "messages", "is_done", "error", "steps", "state", "token_usage", "timing"}
    | {"tool_calls", "current_agent_name", "raw", "structured_response", "sources", "source_nodes", "usage"}
    | {"trajectory", "reasoning", "rationale", "meta"}
    | {"retry_messages", "name", "id", "role", "stop_reason", "finish_reason", "event", "raw_response", "thinking"}
)


_WITH_TEXT = frozenset({"generation_info", "type", "additional_kwargs", "logprobs"})
"""What stands beside the text of a completion."""


_BESIDE = _WITH_ANSWER | AROUND


def _says_nothing(held: Any) -> bool:
    return held is None or isinstance(held, bool) or held in ("", [], {})


def answer_text(value: Any, depth: int = 0) -> str:
    """What was answered, out of what a span ended with; "" when it holds no answer."""
    value = opened(value)
    if value is None or depth > MAX_DEPTH:
        return ""
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, list):
        return _answer_in_list(value, depth)
    return _answer_in_object(value, depth) if isinstance(value, dict) else json_text(value)


def _answer_in_list(value: list[Any], depth: int) -> str:
    if holds_messages(value):
        return last_reply_text(messages_of(value))
    if are_parts(value):
        return content_text(value)
    if value and all(isinstance(part, dict | list) for part in value):
        texts = [text for part in value if (text := _answer_only(part, depth + 1))]
        if texts:
            return texts[-1]
        return "" if any(_hands_messages_on(part) for part in value) else json_text(value)
    if len(value) == 1:
        return answer_text(value[0], depth + 1)
    return json_text(value) if value else ""


def last_reply_text(messages: list[Message]) -> str:
    """The last thing the assistant said; the model's calls of tools are no answer."""
    for message in reversed(messages):
        if isinstance(message, AssistantMessage) and message.content and (text := _as_said(message.content)):
            return text
    return ""


def _as_said(text: str) -> str:
    """The text of a reply, also where it was printed as a Python object; "" for a printed call of a tool."""
    if not looks_printed(text):
        return text
    return "\n".join(message.content for message in reply_of_printed(text) if message.content)


def _answer_only(part: Any, depth: int) -> str:
    """An answer out of a part of a list: objects without one say nothing here."""
    if isinstance(part, list):
        texts = [text for item in part if (text := _answer_only(item, depth + 1))] if depth < MAX_DEPTH else []
        return texts[-1] if texts else ""
    if not isinstance(part, dict):
        return ""
    return _answer_in_object(part, depth) if _names_answer(part) else ""


def _hands_messages_on(part: Any) -> bool:
    """A step of a graph that says where to go on, with messages that hold no answer."""
    return isinstance(part, dict) and "goto" in part and "update" in part


def _names_answer(value: dict[str, Any]) -> bool:
    keys = (
        *_ANSWERED,
        *MESSAGE_LISTS,
        "message",
        "text",
        "content",
        "blocks",
        "raw",
        "update",
        "parts",
        "choices",
        "generations",
    )
    return is_message(value) or any(key in value for key in keys)


def _answer_in_object(value: dict[str, Any], depth: int) -> str:
    if is_message(value):
        role = role_of(value.get("role")) or role_of(value.get("type"))
        return "" if role in ("user", "system") else last_reply_text(messages_of(value))
    if "error_message" in value and "error_code" in value and not value.get("content"):
        return ""  # an event that only tells an error
    if "blocks" in value:
        return content_text(value["blocks"])
    if isinstance(value.get("raw"), str) and ("tasks_output" in value or "expected_output" in value):
        return shorten(str(value["raw"]))
    for key in ("generations", "choices", "candidates"):
        if isinstance(value.get(key), list):
            return _answer_in_list(value[key], depth + 1)
    for key in (*MESSAGE_LISTS, "input"):
        held = opened(value.get(key))
        if isinstance(held, list) and held and holds_messages(held) and "output" not in value:
            return last_reply_text(messages_of(held))
    found = _named_answer(value, depth)
    if found is not None:
        return found
    nested = list(nested_messages(value, depth))
    if nested:
        return last_reply_text(nested)
    if value and all(isinstance(held, dict) for held in value.values()):  # a pipeline's outputs, by component
        texts = [text for held in value.values() if (text := _answer_only(held, depth + 1))]
        if texts:
            return texts[-1]
    return same_leaf(value) or (json_text(value) if value else "")


def _named_answer(value: dict[str, Any], depth: int) -> str | None:
    for key in _ANSWERED:
        if key in value and (
            len(value) == 1
            or all(other == key or other in _BESIDE or _says_nothing(held) for other, held in value.items())
        ):
            return answer_text(value[key], depth + 1)
    if isinstance(value.get("update"), dict | list) and ("goto" in value or "graph" in value):
        return _answer_only(value["update"], depth + 1)
    message = value.get("message")
    if isinstance(message, dict):
        return answer_text(message, depth + 1)
    if isinstance(value.get("text"), str) and (len(value) == 1 or value.keys() & _WITH_TEXT):
        return shorten(str(value["text"]))
    if isinstance(value.get("content"), str | list) and (len(value) == 1 or "role" in value or "usage" in value):
        return content_text(value["content"])
    if isinstance(value.get("content"), dict) and "parts" in value["content"]:
        return content_text(value["content"]["parts"])
    if isinstance(value.get("parts"), list) and value.keys() <= {"parts", "role", "finish_reason"}:
        return content_text(value["parts"])
    return None
