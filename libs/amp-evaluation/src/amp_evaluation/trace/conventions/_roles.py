"""Which objects are messages, and whose."""

from __future__ import annotations

from typing import Any

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
    if kind in _ITEM_TYPES or source_role(value):
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
REQUESTED, EXECUTED = "ToolCallRequestEvent", "ToolCallExecutionEvent"


def source_role(value: dict[str, Any]) -> str | None:
    """The role of an AutoGen message, which says who sent it instead: the user, or an agent by name."""
    kind = value.get("type")
    if not isinstance(value.get("source"), str) or not isinstance(kind, str) or "content" not in value:
        return None
    if kind in _CHAT_TYPES:
        return "user" if value["source"] == "user" else "assistant"
    return {REQUESTED: "assistant", EXECUTED: "tool"}.get(kind)


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
