"""What frameworks wrap around the things people wrote: the text, the arguments and the result are taken out again.

Each function knows the envelopes by their members, never by the text inside; what is in no envelope stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from amp_evaluation.trace._spans import AssistantMessage, Message, UserMessage
from amp_evaluation.trace.conventions._messages import is_message, is_pair, messages_of, role_of
from amp_evaluation.trace.conventions._values import (
    content_text,
    json_text,
    looks_printed,
    printed,
    printed_members,
    shorten,
    structured,
)

MAX_DEPTH = 12

_AROUND = frozenset({"tags", "metadata", "kwargs", "name", "color", "run_type", "config", "input_str", "callbacks"})
"""Members that LangChain's callbacks put beside "inputs", "outputs" and "output"."""
_MESSAGE_LISTS = (
    "messages",
    "input_messages",
    "output_messages",
    "chat_history",
    "contents",
    "history",
    "new_messages",
    "replies",
)
_STATE_KEYS = frozenset({"init_state", "self", "ctx", "context_variables", "state"})
_ASKED = (
    "user_msg",
    "user_message",
    "user_input",
    "user_prompt",
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
    "topic_input",
)
_ALONE_ONLY = frozenset({"text", "content", "topic_input", "goal", "message", "request"})
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
_CUT_PRINTED = re.compile(r"\s*(?:[A-Z]\w*\(\w+=|\{\s*'\w+':|\[?<[\w.]+ object at)")


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


def opened(value: Any) -> Any:
    """JSON text and whole printed objects opened; None for a printed object that was cut."""
    value = structured(value)
    if isinstance(value, str) and looks_printed(value):
        held = printed(value)
        if held is not None:
            return held
        if _CUT_PRINTED.match(value):
            return None
    return value


def _asked_in_list(value: list[Any], depth: int) -> str:
    if _holds_messages(value):
        return last_user_text(messages_of(value))
    if value and all(isinstance(part, dict) and ("type" in part or set(part) == {"text"}) for part in value):
        return content_text(value)
    if len(value) == 1:
        return asked_text(value[0], depth + 1)
    return json_text(value) if value else ""


def _holds_messages(value: list[Any]) -> bool:
    if is_pair(value) or any(is_message(item) or is_pair(item) for item in value):
        return True
    if value and isinstance(value[0], list):
        return _holds_messages(value[0])
    return any(isinstance(item, str) and _PRINTED_MESSAGE.match(item) is not None for item in value)


_PRINTED_MESSAGE = re.compile(r"(?s)\s*\w+\(.*role=|\w+=.*\bsource=.*\bcontent=")


def last_user_text(messages: list[Message]) -> str:
    return next((m.content for m in reversed(messages) if isinstance(m, UserMessage) and m.content), "")


def _asked_in_object(value: dict[str, Any], depth: int) -> str:
    if is_message(value):
        return last_user_text(messages_of(value))
    inner = _inside(value, "inputs") or _inside(value, "input")
    if inner is None and len(value) == 1 and isinstance(value.get("input_args"), dict):
        inner = (value["input_args"],)
    if inner is not None:
        return asked_text(inner[0], depth + 1)
    if "kwargs" in value and set(value) <= {"args", "kwargs", "sanitize_inputs_outputs", "method"}:
        return _asked_in_call(value, depth)
    for key in _ASKED:
        held = value.get(key)
        if held in (None, "", [], {}) or (key in _ALONE_ONLY and len(value) > 1):
            continue
        if isinstance(held, str) or _carries(held):
            return asked_text(held, depth + 1)
    for key in _MESSAGE_LISTS:
        held = opened(value.get(key))
        if isinstance(held, list) and held and _holds_messages(held):
            return last_user_text(messages_of(held))
    if value.keys() & _STATE_KEYS or _is_event(value) or _hands_on(value.get("messages")):
        return ""
    nested = list(_nested_messages(value, depth))
    if set(value) == {"data"} and isinstance(value["data"], dict):  # a pipeline's inputs, by component
        return last_user_text(nested) or _same_leaf(value, least=1) or json_text(value["data"])
    return last_user_text(nested) if nested else _same_leaf(value) or (json_text(value) if value else "")


def _hands_on(held: Any) -> bool:
    """Messages that nobody can read are messages all the same: what was asked stands elsewhere."""
    return isinstance(held, list) and any(isinstance(item, dict | str) for item in held)


def _nested_messages(value: Any, depth: int) -> Iterator[Message]:
    """Messages in a list further down, as pipelines hand them to a component: `{"data": {"agent": {"messages": …`."""
    for held in _message_lists(value, depth):
        yield from messages_of(held)


def _message_lists(value: Any, depth: int) -> Iterator[list[Any]]:
    if not isinstance(value, dict) or depth > MAX_DEPTH:
        return
    for key, inner in value.items():
        held = opened(inner) if key in _MESSAGE_LISTS else None
        if isinstance(held, list) and held and _holds_messages(held):
            yield held
        else:
            yield from _message_lists(inner, depth + 1)


def conversation_in(value: Any) -> list[Any]:
    """The first list of messages that a value is or holds, each message opened where it was written as text."""
    value = opened(value)
    held = value if isinstance(value, list) and _holds_messages(value) else next(_message_lists(value, 0), [])
    return [opened(item) for item in held]


def user_text_in(value: Any) -> str:
    """The last user message of an object that hands messages on; "" for anything else."""
    value = opened(value)
    if not isinstance(value, dict):
        return ""
    for key in (*_MESSAGE_LISTS, "input"):
        held = opened(value.get(key))
        if isinstance(held, list) and held and _holds_messages(held):
            return last_user_text(messages_of(held))
    return ""


def _carries(value: Any) -> bool:
    """The value holds messages or parts, so that its member's name was right about it."""
    if isinstance(value, list):
        return _holds_messages(value) or all(isinstance(part, dict) and "type" in part for part in value)
    return isinstance(value, dict) and (
        is_message(value) or any(key in value for key in ("messages", "parts", "content"))
    )


def _is_event(value: dict[str, Any]) -> bool:
    return "ev" in value or ("event" in value and len(value) == 1)


def _inside(value: dict[str, Any], key: str) -> tuple[Any] | None:
    """The value of an envelope: `key` with nothing beside it but what callbacks add."""
    if key in value and len(value) > 1 and all(other == key or other in _AROUND for other in value):
        return (value[key],)
    return None


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


def _same_leaf(value: Any, least: int = 2) -> str:
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
    if _holds_messages(value):
        return last_reply_text(messages_of(value))
    if value and all(isinstance(part, dict) and ("type" in part or set(part) == {"text"}) for part in value):
        return content_text(value)
    if value and all(isinstance(part, dict | list) for part in value):
        texts = [text for part in value if (text := _answer_only(part, depth + 1))]
        return texts[-1] if texts else json_text(value)
    if len(value) == 1:
        return answer_text(value[0], depth + 1)
    return json_text(value) if value else ""


def last_reply_text(messages: list[Message]) -> str:
    """The last thing the assistant said; the model's calls of tools are no answer."""
    return next((m.content for m in reversed(messages) if isinstance(m, AssistantMessage) and m.content), "")


def _answer_only(part: Any, depth: int) -> str:
    """An answer out of a part of a list: objects without one say nothing here."""
    if isinstance(part, list):
        texts = [text for item in part if (text := _answer_only(item, depth + 1))] if depth < MAX_DEPTH else []
        return texts[-1] if texts else ""
    if not isinstance(part, dict):
        return ""
    return _answer_in_object(part, depth) if _names_answer(part) else ""


def _names_answer(value: dict[str, Any]) -> bool:
    keys = (
        *_ANSWERED,
        *_MESSAGE_LISTS,
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
    if "blocks" in value:
        return content_text(value["blocks"])
    if isinstance(value.get("raw"), str) and ("tasks_output" in value or "expected_output" in value):
        return shorten(str(value["raw"]))
    for key in ("generations", "choices", "candidates"):
        if isinstance(value.get(key), list):
            return _answer_in_list(value[key], depth + 1)
    for key in (*_MESSAGE_LISTS, "input"):
        held = opened(value.get(key))
        if isinstance(held, list) and held and _holds_messages(held) and "output" not in value:
            return last_reply_text(messages_of(held))
    found = _named_answer(value, depth)
    if found is not None:
        return found
    nested = list(_nested_messages(value, depth))
    if nested:
        return last_reply_text(nested)
    if value and all(isinstance(held, dict) for held in value.values()):  # a pipeline's outputs, by component
        texts = [text for held in value.values() if (text := _answer_only(held, depth + 1))]
        if texts:
            return texts[-1]
    return _same_leaf(value) or (json_text(value) if value else "")


def _named_answer(value: dict[str, Any], depth: int) -> str | None:
    for key in _ANSWERED:
        if key in value and (len(value) == 1 or value.keys() - {key} <= _WITH_ANSWER | _AROUND):
            return answer_text(value[key], depth + 1)
    if isinstance(value.get("update"), dict | list) and ("goto" in value or "graph" in value):
        return _answer_only(value["update"], depth + 1)
    message = value.get("message")
    if isinstance(message, dict):
        return answer_text(message, depth + 1)
    if isinstance(value.get("text"), str) and (len(value) == 1 or "generation_info" in value or "type" in value):
        return shorten(str(value["text"]))
    if isinstance(value.get("content"), str | list) and (len(value) == 1 or "role" in value or "usage" in value):
        return content_text(value["content"])
    if isinstance(value.get("content"), dict) and "parts" in value["content"]:
        return content_text(value["content"]["parts"])
    if isinstance(value.get("parts"), list):
        return content_text(value["parts"])
    return None


def tool_arguments(value: Any) -> Any:
    """What a tool was called with: an object, or the bare value where it was called with one."""
    value = opened_arguments(value)
    if not isinstance(value, dict):
        return value
    inner = _inside(value, "inputs")
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
    inner = _inside(held, "output") or _inside(held, "outputs")
    if inner is None and len(held) == 1:
        only = next(iter(held))
        inner = (held[only],) if only in ("output", "outputs", "toolResult") else None
    if inner is not None:
        return tool_result(inner[0], depth + 1)
    if is_message(held):
        return _result_in_message(held)
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


_EXECUTION = frozenset({"status", "result", "error"})
"""What a record of an execution has, which is more than its result."""

_FAILURES = frozenset({"failure", "failed", "error"})
_RESULT_MEMBERS = frozenset(
    {"content", "isError", "is_error", "status", "toolUseId", "structuredContent", "meta", "_meta"}
)


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
