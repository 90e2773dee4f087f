"""What a tool was called with and what it gave, out of what frameworks put around both."""

from __future__ import annotations

import json
from typing import Any

from amp_evaluation.trace.conventions._envelopes import (
    MAX_DEPTH,
    inside,
)
from amp_evaluation.trace.conventions._messages import messages_of
from amp_evaluation.trace.conventions._roles import is_message
from amp_evaluation.trace.conventions._toolcalls import bare_response
from amp_evaluation.trace.conventions._values import content_text, printed, printed_members, structured


def tool_arguments(value: Any) -> Any:
    """What a tool was called with: an object, or the bare value where it was called with one."""
    value = opened_arguments(value)
    if not isinstance(value, dict):
        return value
    inner = inside(value, "inputs")
    if inner is not None and isinstance(inner[0], dict):
        return inner[0]
    if "input_str" in value:
        return opened_arguments(value["input_str"])
    if ("kwargs" in value or "args" in value) and set(value) <= {"args", "kwargs", "sanitize_inputs_outputs", "method"}:
        return _call_arguments(value)
    if isinstance(value.get("tool_kwargs"), dict):
        return value["tool_kwargs"]
    return value


def opened_arguments(value: Any) -> Any:
    opened_value = structured(value)
    if isinstance(opened_value, str) and opened_value.lstrip().startswith("{"):
        held = printed(opened_value)
        return held if isinstance(held, dict) else opened_value
    return opened_value


def _call_arguments(value: dict[str, Any]) -> Any:
    kwargs = value.get("kwargs") if isinstance(value.get("kwargs"), dict) else {}
    args = value.get("args") or []
    if kwargs or not args:
        return kwargs
    return args[0] if isinstance(args, list) and len(args) == 1 else args


def tool_result(value: Any, depth: int = 0) -> tuple[Any, bool]:
    """(result, marked as an error): messages, commands and blocks around it taken off."""
    if isinstance(value, str) and value[:1] == '"':  # a text that was encoded once more
        value = _as_written(value)
    held = structured(value)
    if depth > MAX_DEPTH:
        return value, False
    if isinstance(held, list):
        return _result_in_list(held, value, depth)
    if isinstance(held, str) and held.startswith("status="):
        held = printed_members(held)  # Agno's, as Traceloop prints it
    if not isinstance(held, dict):
        return value, False
    if held.keys() >= _EXECUTION:
        failed = held["status"] in _FAILURES or held["error"] not in (None, "")
        return held["error"] if failed and held["result"] is None else held["result"], failed
    failed = held.get("is_error") is True or held.get("isError") is True
    inner = inside(held, "output") or inside(held, "outputs")
    if inner is None and len(held) == 1:
        only = next(iter(held))
        inner = (held[only],) if only in ("output", "outputs", "toolResult") else None
    if inner is not None:
        return tool_result(inner[0], depth + 1)
    if is_message(held):
        return _result_in_message(held)
    if held.get("lc") is not None and "content" in (kwargs := _dict(held.get("kwargs"))):  # it doesn't name its class
        return content_text(kwargs["content"]), failed or kwargs.get("status") == "error"
    if isinstance(held.get("response"), dict) and held.keys() <= _FUNCTION_RESPONSE:
        return bare_response(held["response"]), failed
    if "tool_output" in held and ("tool_kwargs" in held or "tool_name" in held):
        return tool_result(held["tool_output"], depth + 1)
    if "raw_output" in held and "blocks" in held:
        raw = held["raw_output"]
        return (raw if raw is not None else content_text(held["blocks"])), failed
    if isinstance(held.get("update"), dict) and ("goto" in held or "graph" in held):
        return tool_result(held["update"].get("messages"), depth + 1)
    if isinstance(held.get("content"), list) and held.keys() <= _RESULT_MEMBERS:
        return content_text(held["content"]), failed or held.get("status") == "error"
    return value, failed or (held.get("status") == "error" and "error" in held)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


_FUNCTION_RESPONSE = frozenset({"id", "name", "response", "will_continue", "scheduling", "parts"})
"""Gemini's record of what a function returned."""

_EXECUTION = frozenset({"status", "result", "error"})
"""What a record of an execution has, which is more than its result."""


_FAILURES = frozenset({"failure", "failed", "error"})


_RESULT_MEMBERS = frozenset(
    {"content", "isError", "is_error", "status", "toolUseId", "structuredContent", "meta", "_meta"}
)


def _as_written(text: str) -> str:
    """The text behind a quoted JSON string; the text itself when it is none."""
    try:
        held = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
    return held if isinstance(held, str) else text


def _result_in_list(held: list[Any], value: Any, depth: int) -> tuple[Any, bool]:
    if held and all(isinstance(part, dict) and (set(part) == {"text"} or part.get("type") == "text") for part in held):
        return content_text(held), False
    if held and all(is_message(item) for item in held):
        return _result_in_message(held[-1])
    if len(held) == 1 and isinstance(held[0], dict) and "toolResult" in held[0]:
        return tool_result(held[0], depth + 1)
    return value, False


def _result_in_message(held: dict[str, Any]) -> tuple[Any, bool]:
    found = messages_of(held)
    text = found[-1].content if found else ""
    return text, any(getattr(message, "is_error", False) for message in found)


def result_call_id(value: Any) -> str:
    """The call id that a wrapped result carries: LangChain's tool message, LlamaIndex's tool result."""
    held = structured(value)
    for _ in range(4):
        if isinstance(held, list):
            held = held[-1] if held else None
        if not isinstance(held, dict):
            return ""
        for key in ("tool_call_id", "tool_id", "toolUseId", "call_id"):
            if isinstance(held.get(key), str) and held[key]:
                return str(held[key])
        held = next((held[key] for key in _ID_PATH if isinstance(held.get(key), dict | list)), None)
    return ""


_ID_PATH = ("output", "outputs", "data", "update", "messages", "toolResult", "kwargs")
