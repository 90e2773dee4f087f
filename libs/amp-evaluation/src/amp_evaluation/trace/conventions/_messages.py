"""Messages in every shape that frameworks write them, as the trace model's messages.

OpenAI (chat and responses items), GenAI parts, Anthropic blocks, Bedrock, Gemini, LangChain (serialised and dumped),
LlamaIndex blocks, pydantic-ai parts, Haystack, `["user", "…"]` pairs. One object may hold several messages: tool
results that a provider sends with role user are messages of the tool.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Raw, Struct
from msgspec.json import Decoder

from amp_evaluation.trace._records import UNREADABLE, plain
from amp_evaluation.trace._spans import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from amp_evaluation.trace.conventions._attrs import Memo
from amp_evaluation.trace.conventions._values import (
    content_text,
    from_json,
    json_text,
    looks_printed,
    printed,
    printed_members,
    structured,
)

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "tool-call": "assistant",
    "tool_call": "assistant",
    "tool": "tool",
    "function": "tool",
    "tool-response": "tool",
    "tool_response": "tool",
    "toolresult": "tool",
    "ipython": "tool",
}
_CLASS_ROLES = {
    "SystemMessage": "system",
    "HumanMessage": "user",
    "AIMessage": "assistant",
    "ToolMessage": "tool",
    "FunctionMessage": "tool",
    "SystemPromptPart": "system",
    "UserPromptPart": "user",
    "UserMessage": "user",
    "AssistantMessage": "assistant",
    "FunctionExecutionResultMessage": "tool",
}
_PART_ROLES = {"system-prompt": "system", "user-prompt": "user", "tool-return": "tool", "retry-prompt": "tool"}


def role_of(value: Any) -> str | None:
    """The role behind a name of one: `human`, `MessageRole.USER`, `HumanMessageChunk`, …; None for no role."""
    if not isinstance(value, str):
        return None
    plain = value.rsplit(".", 1)[-1]
    return ROLES.get(plain.lower()) or _CLASS_ROLES.get(plain.removesuffix("Chunk"))


def is_message(value: Any) -> bool:
    """An object that some framework uses as a message."""
    if not isinstance(value, dict):
        return False
    if role_of(value.get("role")) or role_of(value.get("_role")):
        return any(key in value for key in _CONTENT_KEYS)
    if (value.get("lc") is not None and isinstance(value.get("kwargs"), dict)) or isinstance(value.get("id"), list):
        return lc_role(value) is not None
    kind = value.get("type")
    if isinstance(value.get("data"), dict) and role_of(kind):
        return "content" in value["data"]
    if kind in _ITEM_TYPES or _source_role(value):
        return True
    return role_of(kind) is not None and "content" in value


_CONTENT_KEYS = (
    "content",
    "_content",
    "parts",
    "blocks",
    "tool_calls",
    "toolCalls",
    "text",
    "message",
    "function_call",
)
_ITEM_TYPES = ("function_call", "function_call_output", "reasoning", "message")


_CHAT_TYPES = frozenset({"TextMessage", "MultiModalMessage", "StopMessage", "ToolCallSummaryMessage", "HandoffMessage"})
_REQUESTED, _EXECUTED = "ToolCallRequestEvent", "ToolCallExecutionEvent"


def _source_role(value: dict[str, Any]) -> str | None:
    """The role of an AutoGen message, which says who sent it instead: the user, or an agent by name."""
    kind = value.get("type")
    if not isinstance(value.get("source"), str) or not isinstance(kind, str) or "content" not in value:
        return None
    if kind in _CHAT_TYPES:
        return "user" if value["source"] == "user" else "assistant"
    return {_REQUESTED: "assistant", _EXECUTED: "tool"}.get(kind)


def lc_role(value: dict[str, Any]) -> str | None:
    """The role of a LangChain object serialised with its class path."""
    path = value.get("id")
    if isinstance(path, list) and path and isinstance(path[-1], str) and isinstance(value.get("kwargs"), dict):
        return role_of(path[-1]) or role_of(value["kwargs"].get("type"))
    return None


def is_pair(value: Any) -> bool:
    """`["user", "hello"]`: a role and a text."""
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and isinstance(value[1], str)
        and role_of(value[0]) is not None
    )


def messages_of(value: Any) -> list[Message]:
    """All messages of a list (or of one message, a pair, a batch of one list); [] for anything else."""
    if is_pair(value):
        return [_make(role_of(value[0]), content_text(value[1]))]
    if isinstance(value, dict):
        return decode_message(value) if is_message(value) else []
    if not isinstance(value, list):
        return []
    if value and isinstance(value[0], list) and not is_pair(value[0]):
        return messages_of(value[0])
    found: list[Message] = []
    for item in value:
        if isinstance(item, dict):
            found += decode_message(item)
        elif is_pair(item):
            found.append(_make(role_of(item[0]), content_text(item[1])))
        elif isinstance(item, str) and item:
            found += _message_text(item)
    return found


class _Call(Struct, forbid_unknown_fields=True, gc=False):
    id: str
    name: str
    arguments: str


class _Plain(Struct, forbid_unknown_fields=True, gc=False):
    """The usual message: anything else goes the general way."""

    role: Literal["user", "assistant", "system", "tool"]
    content: str | None = None
    toolCalls: list[_Call] = []
    tool_calls: list[_Call] = []
    tool_call_id: str = ""
    name: str | None = None


_decode_object = Decoder(dict[str, Any]).decode
_decode_plain = Decoder(_Plain).decode


def messages_in(items: list[bytes], memo: Memo) -> list[Message] | None:
    """The same for undecoded elements, each decoded once a trace; None when they aren't all objects."""
    found: list[Message] = []
    for item in items:
        known = memo.get(item)
        if known is None:
            known = _decode_item(item)
            if known is None:
                return None
            memo[item] = known
        found += known
    return found


def _decode_item(item: bytes) -> tuple[Message, ...] | None:
    try:
        plain_one = _decode_plain(item)
    except UNREADABLE:
        plain_one = None
    if plain_one is not None and (made := _made(plain_one)) is not None:
        return (made,)
    value = plain(Raw(item))
    return tuple(decode_message(value)) if isinstance(value, dict) else None


def _made(said: _Plain) -> Message | None:
    content = said.content or ""
    if content[:1] in _NOT_PLAIN or ";base64," in content or content == "''":
        return None
    role = said.role
    if role == "user":
        return UserMessage(content)
    if role == "assistant":
        calls = said.toolCalls or said.tool_calls
        return AssistantMessage(content, [ToolCall(call.id, call.name, arguments_of(call.arguments)) for call in calls])
    if role == "tool":
        return ToolMessage(content, said.tool_call_id, said.name or "")
    return SystemMessage(content)


def _message_text(text: str) -> list[Message]:
    """A message that was written as text: JSON, or a printed object; any other text is the user's."""
    held = from_json(text) if text[:1] in "{[" else printed(text) if looks_printed(text) else printed_members(text)
    return decode_message(held) if isinstance(held, dict) else [UserMessage(content_text(text))]


_PLAIN_KEYS = frozenset({"role", "content", "tool_calls", "toolCalls", "tool_call_id", "name", "finish_reason"})
_NOT_PLAIN = frozenset('[{"')


def decode_message(item: dict[str, Any], default: str = "user") -> list[Message]:
    """One message object as messages: results of tools inside it come first, then its own text and calls."""
    content = item.get("content")
    if type(content) is str and content[:1] not in _NOT_PLAIN and item.keys() <= _PLAIN_KEYS:
        role = item.get("role")
        if ";base64," in content or content == "''":
            content = content_text(content)
        if role == "user":
            return [UserMessage(content)]
        if role == "assistant":
            return [AssistantMessage(content, _calls_of(item))]
        if role == "tool":
            return [ToolMessage(content, item.get("tool_call_id") or "", item.get("name") or "")]
        if role == "system":
            return [SystemMessage(content)]
    return _decode_any(_unfold(item), default)


def _decode_any(item: dict[str, Any], default: str) -> list[Message]:
    role = role_of(item.get("role")) or role_of(item.get("_role")) or role_of(item.get("type"))
    kind = item.get("type")
    if kind == "reasoning" and role is None:
        return []
    if kind in ("function_call", "tool_use") and role is None:
        return [AssistantMessage("", [call_of(item)])]
    if kind in ("function_call_output", "tool_result") and role is None:
        return [_tool_result(item)]
    content = next((item[key] for key in _TEXT_KEYS if item.get(key) not in (None, "")), None)
    if isinstance(content, str) and content[:2] in ("[{", '{"'):
        content = _parts_in(content)
    if isinstance(content, dict) and ("parts" in content or "content" in content):
        content = content.get("parts") or content.get("content")
    parts = content if isinstance(content, list) else []
    results = [_tool_result(part) for part in parts if _is_result(part)]
    calls = _calls_of(item) or [call_of(part) for part in parts if _is_call(part)]
    if role == "tool" and not results:
        return [_tool_message(item, content)]
    text = content_text(content)
    messages: list[Message] = list(results)
    if text or calls or not results:
        messages.append(_make(role or default, text, calls))
    return messages


_TEXT_KEYS = ("content", "_content", "parts", "blocks", "text", "message", "body")


def _parts_in(text: str) -> Any:
    """Content written as JSON text of parts that hold calls or results; any other text stays."""
    held = from_json(text)
    if not isinstance(held, list) or not held or not all(isinstance(part, dict) for part in held):
        return text
    telling = any(_is_call(part) or _is_result(part) for part in held) or all(set(part) == {"text"} for part in held)
    return held if telling else text


def _unfold(item: dict[str, Any]) -> dict[str, Any]:
    """LangChain's and others' envelopes around a message: the message itself, with its role."""
    if isinstance(item.get("kwargs"), dict) and isinstance(item.get("id"), list):
        return {**item["kwargs"], "role": lc_role(item) or "user"}
    if isinstance(item.get("data"), dict) and role_of(item.get("type")):
        return {**item["data"], "role": item["type"]}
    sent_as = _source_role(item) if "source" in item else None
    if sent_as is not None:
        return _unfold_sent(item, sent_as)
    inner = item.get("message")
    if isinstance(inner, dict) and "role" not in item and "content" not in item:
        return _unfold(inner)
    extra = item.get("additional_kwargs")
    if isinstance(extra, dict) and extra.get("tool_calls") and not item.get("tool_calls"):
        return {**item, "tool_calls": extra["tool_calls"]}
    return item


def _unfold_sent(item: dict[str, Any], role: str) -> dict[str, Any]:
    content = item["content"]
    if item["type"] == _REQUESTED:
        return {"role": role, "tool_calls": content}
    if item["type"] == _EXECUTED and isinstance(content, list):
        content = [{**part, "type": "tool_result"} for part in content if isinstance(part, dict)]
    return {"role": role, "content": content}


def _make(role: str | None, text: str, calls: list[ToolCall] | None = None) -> Message:
    if role == "assistant" or calls:
        return AssistantMessage(text, calls or [])
    if role == "system":
        return SystemMessage(text)
    return ToolMessage(text) if role == "tool" else UserMessage(text)


def _calls_of(item: dict[str, Any]) -> list[ToolCall]:
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


def _is_call(part: Any) -> bool:
    if not isinstance(part, dict):
        return False
    if isinstance(part.get("tool_name"), str) and "arguments" in part:
        return True  # Haystack's, printed: the class that says what it is was lost
    return _kind(part) in _CALL_TYPES or any(
        isinstance(part.get(key), dict) for key in ("toolUse", "function_call", "functionCall", "tool_call")
    )


def _is_result(part: Any) -> bool:
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


def _tool_message(item: dict[str, Any], content: Any) -> ToolMessage:
    status = item.get("status")
    return ToolMessage(
        content_text(content),
        next((_text(item[key]) for key in ("tool_call_id", "toolCallId", "call_id", "id") if item.get(key)), ""),
        _text(item.get("name")),
        status == "error" or item.get("is_error") is True,
    )


def _tool_result(part: dict[str, Any]) -> ToolMessage:
    for key in ("toolResult", "function_response", "functionResponse", "tool_call_result"):
        if isinstance(part.get(key), dict):
            return _tool_result(part[key])
    given = next((part[key] for key in _RESULT_KEYS if part.get(key) is not None), None)
    failed = any(part.get(key) is True for key in ("is_error", "isError", "error")) or part.get("status") == "error"
    origin = part["origin"] if isinstance(part.get("origin"), dict) else {}
    name = _text(part.get("name") or part.get("tool_name") or origin.get("tool_name"))
    return ToolMessage(result_text(given), call_id(part) or call_id(origin), name, failed)


_RESULT_KEYS = ("result", "response", "content", "output", "tool_output")


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
