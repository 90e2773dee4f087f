"""The flat legacy convention of OpenLLMetry: `gen_ai.prompt.N.*`, `gen_ai.completion.N.*`, `llm.request.type`.

Source: opentelemetry-semantic-conventions-ai. `llm.prompts.N` and `llm.completions.N` are its older spelling.
"""

from __future__ import annotations

from typing import Any

from amp_evaluation.trace._spans import Message, TokenUsage, ToolCall, ToolDefinition
from amp_evaluation.trace.conventions._attrs import Attrs, rows_of
from amp_evaluation.trace.conventions._facts import Convention, Kind, first, usage_of
from amp_evaluation.trace.conventions._messages import decode_message
from amp_evaluation.trace.conventions._toolcalls import arguments_of
from amp_evaluation.trace.conventions._values import structured

REQUEST_TYPES = {
    "chat": "llm",
    "completion": "llm",
    "text_completion": "llm",
    "embedding": "embedding",
    "embeddings": "embedding",
    "rerank": "rerank",
}


def kind(a: Attrs) -> Kind | None:
    value = a.get("llm.request.type")
    named = REQUEST_TYPES.get(value.lower()) if isinstance(value, str) else None
    return Kind(named, True) if named else None


def messages(a: Attrs) -> list[Message]:
    return _messages(a, "gen_ai.prompt.", "user") or _messages(a, "llm.prompts.", "user")


def reply(a: Attrs) -> list[Message]:
    return _messages(a, "gen_ai.completion.", "assistant") or _messages(a, "llm.completions.", "assistant")


def _messages(a: Attrs, prefix: str, default: str) -> list[Message]:
    found: list[Message] = []
    for row in a.rows(prefix):
        calls = [_call(call) for call in rows_of(row, "tool_calls.").values()]
        if row.get("function_call.name"):
            calls.append(ToolCall("", str(row["function_call.name"]), arguments_of(row.get("function_call.arguments"))))
        item: dict[str, Any] = {
            "role": row.get("role") or default,
            "content": row.get("content"),
            "tool_call_id": row.get("tool_call_id"),
        }
        if calls:
            item["tool_calls"] = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]
        found += decode_message(item, default)
    return found


def _call(row: dict[str, Any]) -> ToolCall:
    given = row.get("arguments", row.get("function.arguments"))
    name = row.get("name") or row.get("function.name") or ""
    return ToolCall(str(row.get("id") or ""), str(name), arguments_of(given))


def usage(a: Attrs) -> TokenUsage | None:
    return usage_of(
        first(a, "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens", "gen_ai.usage.input_tokens"),
        first(a, "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens", "gen_ai.usage.output_tokens"),
        first(a, "gen_ai.usage.total_tokens", "llm.usage.total_tokens"),
        first(a, "gen_ai.usage.cache_read_input_tokens"),
    )


def tools(a: Attrs) -> list[ToolDefinition]:
    found = []
    for row in a.rows("llm.request.functions."):
        schema = structured(row.get("parameters"))
        if row.get("name"):
            parameters = schema if isinstance(schema, dict) else None
            found.append(ToolDefinition(str(row["name"]), str(row.get("description") or ""), parameters))
    return found


def finish(a: Attrs) -> Any:
    return first(a, "gen_ai.completion.0.finish_reason", "llm.response.finish_reason", "llm.response.stop_reason")


CONVENTION = Convention(
    "legacy",
    frozenset(
        {
            "llm.request.type",
            "gen_ai.prompt.0.role",
            "gen_ai.prompt.0.content",
            "gen_ai.completion.0.role",
            "gen_ai.completion.0.content",
            "gen_ai.completion.0.finish_reason",
            "llm.prompts.0.role",
            "llm.prompts.0.content",
            "llm.completions.0.content",
            "llm.completions.0.role",
            "gen_ai.usage.prompt_tokens",
            "gen_ai.usage.completion_tokens",
            "llm.request.functions.0.name",
        }
    ),
    {
        "kind": kind,
        "messages": messages,
        "reply": reply,
        "usage": usage,
        "tools": tools,
        "finish": finish,
        "tool_name": lambda a: a.text("tool.name", "function.name"),
        "model": lambda a: a.text(
            "gen_ai.response.model", "gen_ai.request.model", "llm.response.model", "llm.request.model"
        ),
    },
)
