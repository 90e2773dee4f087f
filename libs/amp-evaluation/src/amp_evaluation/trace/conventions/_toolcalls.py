"""Tool calls and their results inside messages, in every spelling."""

from __future__ import annotations

from typing import Any

from msgspec.json import Decoder

from amp_evaluation.trace._records import UNREADABLE
from amp_evaluation.trace._spans import ToolCall, ToolMessage
from amp_evaluation.trace.conventions._values import content_text, json_text, printed, structured

_decode_object = Decoder(dict[str, Any]).decode


def calls_of(item: dict[str, Any]) -> list[ToolCall]:
    for key in ("tool_calls", "toolCalls", "_tool_calls"):
        calls = item.get(key)
        if calls is None:
            continue
        calls = structured(calls)
        if isinstance(calls, dict):
            calls = list(calls.values())
        if isinstance(calls, list) and calls:
            return [call_of(call) for call in calls if isinstance(call, dict)]
    single = item.get("function_call")
    return [call_of(single)] if isinstance(single, dict) and single.get("name") else []


_CALL_TYPES = ("tool_call", "tool_use", "function_call", "tool-call", "toolCall")


_RESULT_TYPES = (
    "tool_call_response",
    "tool_result",
    "function_call_output",
    "tool-return",
    "tool-result",
    "tool_response",
)


def _kind(part: dict[str, Any]) -> Any:
    return part.get("type") or part.get("part_kind") or part.get("block_type")


def is_call(part: Any) -> bool:
    if not isinstance(part, dict):
        return False
    if isinstance(part.get("tool_name"), str) and "arguments" in part:
        return True  # Haystack's, printed: the class that says what it is was lost
    return _kind(part) in _CALL_TYPES or any(
        isinstance(part.get(key), dict) for key in ("toolUse", "function_call", "functionCall", "tool_call")
    )


def is_result(part: Any) -> bool:
    if not isinstance(part, dict):
        return False
    if "result" in part and isinstance(part.get("origin"), dict):
        return True
    return _kind(part) in _RESULT_TYPES or any(
        isinstance(part.get(key), dict)
        for key in ("toolResult", "function_response", "functionResponse", "tool_call_result")
    )


def call_of(call: dict[str, Any]) -> ToolCall:
    """A tool call in any of its spellings."""
    name, given = call.get("name"), call.get("arguments")
    if type(name) is str and type(given) is str and type(call.get("id")) is str and len(call) == 3:
        return ToolCall(call["id"], name, arguments_of(given))
    for key in ("toolUse", "function_call", "functionCall", "tool_call"):
        if isinstance(call.get(key), dict):
            return call_of(call[key])
    inner = call.get("function")
    inner = inner if isinstance(inner, dict) else {}
    name = next((_text(source.get(key)) for source in (inner, call) for key in _NAME_KEYS if source.get(key)), "")
    given = next(
        (source[key] for source in (inner, call) for key in _ARGUMENT_KEYS if source.get(key) is not None), None
    )
    return ToolCall(call_id(call), name, arguments_of(given))


_NAME_KEYS = ("name", "tool_name", "toolName")


_ARGUMENT_KEYS = ("arguments", "args", "input", "tool_kwargs", "parameters", "kwargs", "tool_input", "tool_arguments")


_ID_KEYS = ("call_id", "tool_call_id", "toolCallId", "toolUseId", "tool_use_id", "tool_id", "id")


def call_id(item: dict[str, Any]) -> str:
    return next((_text(item[key]) for key in _ID_KEYS if item.get(key)), "")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def arguments_of(given: Any) -> dict[str, Any]:
    """Arguments as an object: JSON text opened; what is none stays under "input"; nothing given is {}."""
    if type(given) is str and given[:1] == "{":
        try:
            return _decode_object(given)
        except UNREADABLE:
            pass
    value = structured(given)
    if isinstance(value, dict):
        return value
    if isinstance(value, str):
        literal = printed(value)
        if isinstance(literal, dict) and value.lstrip().startswith("{"):
            return literal
    return {} if value is None or value == "" or value == [] else {"input": value}


def tool_message(item: dict[str, Any], content: Any) -> ToolMessage:
    status = item.get("status")
    return ToolMessage(
        content_text(content),
        next((_text(item[key]) for key in ("tool_call_id", "toolCallId", "call_id", "id") if item.get(key)), ""),
        _text(item.get("name")),
        status == "error" or item.get("is_error") is True,
    )


def tool_result_message(part: dict[str, Any]) -> ToolMessage:
    for key in ("toolResult", "tool_call_result"):
        if isinstance(part.get(key), dict):
            return tool_result_message(part[key])
    for key in ("function_response", "functionResponse"):
        held = part.get(key)
        if isinstance(held, dict):
            return tool_result_message({**held, "response": bare_response(held.get("response"))})
    given = next((part[key] for key in _RESULT_KEYS if part.get(key) is not None), None)
    failed = any(part.get(key) is True for key in ("is_error", "isError", "error")) or part.get("status") == "error"
    origin = part["origin"] if isinstance(part.get("origin"), dict) else {}
    name = _text(part.get("name") or part.get("tool_name") or origin.get("tool_name"))
    return ToolMessage(result_text(given), call_id(part) or call_id(origin), name, failed)


_RESULT_KEYS = ("result", "response", "content", "output", "tool_output")


def bare_response(value: Any) -> Any:
    """What a function returned: Gemini wants an object, so anything else stands alone in one, under "result"."""
    return value["result"] if isinstance(value, dict) and set(value) == {"result"} else value


def result_text(value: Any) -> str:
    """A tool's result as text; a lone text part is its text."""
    if isinstance(value, list) and value and all(isinstance(part, dict | str) for part in value):
        texts = content_text(value)
        if texts:
            return texts
    if isinstance(value, dict) and isinstance(value.get("content"), list | str):
        return content_text(value["content"])
    if isinstance(value, dict) and set(value) == {"type", "value"}:  # Vercel's: {"type": "text", "value": "…"}
        value = value["value"]
    return value if isinstance(value, str) else json_text(value)
