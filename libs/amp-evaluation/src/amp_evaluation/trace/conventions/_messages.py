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
from amp_evaluation.trace.conventions._roles import (
    EXECUTED,
    REQUESTED,
    is_message,
    is_pair,
    lc_role,
    role_of,
    source_role,
)
from amp_evaluation.trace.conventions._toolcalls import (
    arguments_of,
    call_of,
    calls_of,
    is_call,
    is_result,
    tool_message,
    tool_result_message,
)
from amp_evaluation.trace.conventions._values import (
    content_text,
    from_json,
    looks_printed,
    printed,
    printed_members,
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


class UsualMessage(Struct, forbid_unknown_fields=True, gc=False):
    """The usual message: anything else goes the general way."""

    role: Literal["user", "assistant", "system", "tool"]
    content: str | None = None
    toolCalls: list[_Call] = []
    tool_calls: list[_Call] = []
    tool_call_id: str = ""
    name: str | None = None


_decode_plain = Decoder(UsualMessage).decode
_decode_plains = Decoder(list[UsualMessage]).decode


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


def usual_messages(data: bytes) -> list[Message] | None:
    """All messages of a JSON list in one step; None unless all of them are the usual ones."""
    try:
        held = _decode_plains(data)
    except UNREADABLE:
        return None
    found = [_made(item) for item in held]
    return None if None in found else found  # type: ignore[return-value]


def _decode_item(item: bytes) -> tuple[Message, ...] | None:
    try:
        plain_one = _decode_plain(item)
    except UNREADABLE:
        plain_one = None
    if plain_one is not None and (made := _made(plain_one)) is not None:
        return (made,)
    value = plain(Raw(item))
    return tuple(decode_message(value)) if isinstance(value, dict) else None


def _made(said: UsualMessage) -> Message | None:
    content = said.content or ""
    if content[:1] in NOT_PLAIN or ";base64," in content or content == "''":
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


NOT_PLAIN = frozenset('[{"')


def decode_plain(role: Any, content: Any) -> list[Message] | None:
    """A message that is a role and a text and nothing else; None when it needs a closer look."""
    if type(content) is not str or content[:1] in NOT_PLAIN or ";base64," in content or content == "''":
        return None
    if role == "user":
        return [UserMessage(content)]
    if role == "assistant":
        return [AssistantMessage(content)]
    return [SystemMessage(content)] if role == "system" else None


def decode_message(item: dict[str, Any], default: str = "user") -> list[Message]:
    """One message object as messages: results of tools inside it come first, then its own text and calls."""
    content = item.get("content")
    if type(content) is str and content[:1] not in NOT_PLAIN and item.keys() <= _PLAIN_KEYS:
        role = item.get("role")
        if ";base64," in content or content == "''":
            content = content_text(content)
        if role == "user":
            return [UserMessage(content)]
        if role == "assistant":
            return [AssistantMessage(content, calls_of(item))]
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
        return [tool_result_message(item)]
    content = next((item[key] for key in _TEXT_KEYS if item.get(key) not in (None, "")), None)
    if isinstance(content, str) and content[:2] in ("[{", '{"'):
        content = _parts_in(content)
    if isinstance(content, dict) and ("parts" in content or "content" in content):
        content = content.get("parts") or content.get("content")
    parts = content if isinstance(content, list) else []
    results = [tool_result_message(part) for part in parts if is_result(part)]
    calls = calls_of(item) or [call_of(part) for part in parts if is_call(part)]
    if role == "tool" and not results:
        return [tool_message(item, content)]
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
    telling = any(is_call(part) or is_result(part) for part in held) or all(set(part) == {"text"} for part in held)
    return held if telling else text


def _unfold(item: dict[str, Any]) -> dict[str, Any]:
    """LangChain's and others' envelopes around a message: the message itself, with its role."""
    if isinstance(item.get("kwargs"), dict) and isinstance(item.get("id"), list):
        return {**item["kwargs"], "role": lc_role(item) or "user"}
    if isinstance(item.get("data"), dict) and role_of(item.get("type")):
        return {**item["data"], "role": item["type"]}
    sent_as = source_role(item) if "source" in item else None
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
    if item["type"] == REQUESTED:
        return {"role": role, "tool_calls": content}
    if item["type"] == EXECUTED and isinstance(content, list):
        content = [{**part, "type": "tool_result"} for part in content if isinstance(part, dict)]
    return {"role": role, "content": content}


def _make(role: str | None, text: str, calls: list[ToolCall] | None = None) -> Message:
    if role == "assistant" or calls:
        return AssistantMessage(text, calls or [])
    if role == "system":
        return SystemMessage(text)
    return ToolMessage(text) if role == "tool" else UserMessage(text)
