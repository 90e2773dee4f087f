"""`ampAttributes`: what the platform made of a span. Read where the span's own attributes have nothing.

Its kinds are guesses by name, trace inputs may be something else than what was asked, tool inputs are often "".
"""

from __future__ import annotations

from typing import Any

from amp_evaluation.trace._records import items_of
from amp_evaluation.trace._spans import AssistantMessage, Message, TokenUsage, ToolMessage
from amp_evaluation.trace.conventions._attrs import Attrs
from amp_evaluation.trace.conventions._facts import Convention, Kind, tool_definitions, usage_of
from amp_evaluation.trace.conventions._messages import messages_in, messages_of, usual_messages
from amp_evaluation.trace.conventions._values import content_text, is_cut_envelope, json_text, structured

KINDS = {
    "llm": Kind("llm", False),
    "tool": Kind("tool", False),
    "agent": Kind("agent", False),
    "retriever": Kind("retriever", False),
    "embedding": Kind("embedding", False),
    "rerank": Kind("rerank", False),
    "reranker": Kind("rerank", False),
}


def kind(a: Attrs) -> Kind | None:
    amp = a.amp
    value = amp.kind if amp is not None else None
    return KINDS.get(value.lower()) if isinstance(value, str) else None


def data(a: Attrs, key: str) -> Any:
    amp = a.amp
    held = amp.data if amp is not None else None
    return held.get(key) if isinstance(held, dict) else None


def text(a: Attrs, key: str) -> str:
    value = data(a, key)
    return value if isinstance(value, str) else json_text(value)


def messages(a: Attrs) -> list[Message]:
    found = _history(a)
    if found is not None:
        return found
    held = structured(a.amp_value("input"))
    if isinstance(held, str):
        return messages_of([{"role": "user", "content": held}]) if held else []
    return messages_of(held)


def _history(a: Attrs) -> list[Message] | None:
    """An undecoded list of messages. Where it begins with all that the last call sent, only the rest is looked at."""
    data = a.amp_bytes("input")
    if data[:1] != b"[":
        return None
    body, known = a.memo.get(_LAST, (b"", []))
    rest = data[len(body) :].lstrip() if body and data.startswith(body) else b""
    if rest[:1] == b",":
        data_left = b"[" + rest[1:]
    elif rest == b"]":
        data_left = b"[]"
    else:
        known, data_left = [], data
    found = usual_messages(data_left)
    if found is None:
        items = items_of(data_left)
        found = messages_in(items, a.memo) if items is not None else None
    if found is None:
        return None
    found = [*known, *found]
    a.memo[_LAST] = (data.rstrip()[:-1].rstrip() if found else b"", found)
    return found


_LAST = "last input"


def reply(a: Attrs) -> list[Message]:
    data = a.amp_bytes("output")
    if data[:1] == b"[":
        found = usual_messages(data)
        if found and set(map(type, found)) == {AssistantMessage}:
            return found
    held = structured(a.amp_value("output"))
    if isinstance(held, str):
        return [AssistantMessage(content_text(held))] if held and not is_cut_envelope(held) else []
    parts = held if isinstance(held, list) else [held] if isinstance(held, dict) else []
    if parts and not all(isinstance(item, dict) for item in parts):
        return [AssistantMessage(content_text(parts))]
    wanted = [{"role": "assistant", **item} for item in parts]
    found = [message for message in messages_of(wanted) if not isinstance(message, ToolMessage)]
    said = [m if isinstance(m, AssistantMessage) else AssistantMessage(m.content) for m in found]
    if not any(m.content or m.tool_calls for m in said) and len(parts) == 1 and "role" not in parts[0]:
        return [AssistantMessage(json_text(parts[0]))] if parts[0] else []
    return list(said)


def usage(a: Attrs) -> TokenUsage | None:
    held = data(a, "tokenUsage")
    if type(held) is not dict:
        held = getattr(held, "__dict__", held)
    if not isinstance(held, dict):
        return None
    return usage_of(
        held.get("inputTokens", held.get("input_tokens")),
        held.get("outputTokens", held.get("output_tokens")),
        held.get("totalTokens", held.get("total_tokens")),
        held.get("cacheReadInputTokens", held.get("cache_read_tokens")),
    )


CONVENTION = Convention(
    "amp",
    frozenset(),
    {
        "kind": kind,
        "messages": messages,
        "reply": reply,
        "input": lambda a: a.amp_value("input"),
        "output": lambda a: a.amp_value("output"),
        "tool_name": lambda a: text(a, "name"),
        "arguments": lambda a: a.amp_value("input"),
        "result": lambda a: a.amp_value("output"),
        "usage": usage,
        "model": lambda a: text(a, "model"),
        "vendor": lambda a: text(a, "vendor"),
        "temperature": lambda a: data(a, "temperature"),
        "agent_name": lambda a: text(a, "name"),
        "framework": lambda a: text(a, "framework"),
        "system_prompt": lambda a: text(a, "systemPrompt"),
        "tools": lambda a: tool_definitions(data(a, "tools")),
        "max_iterations": lambda a: data(a, "maxIter"),
        "query": lambda a: json_text(a.amp_value("input")),
        "documents": lambda a: a.amp_value("output"),
        "vector_db": lambda a: text(a, "vectorDB") or text(a, "collection"),
        "top_k": lambda a: data(a, "topK"),
    },
)
