"""OpenInference: `openinference.span.kind`, flattened messages, `input.value` and `output.value`.

Source: openinference-semantic-conventions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from amp_evaluation.trace._spans import AssistantMessage, Message, RetrievedDoc, TokenUsage, ToolDefinition, UserMessage
from amp_evaluation.trace.conventions._attrs import Attrs, Memo, RawRow, plain_row, row_key, rows_in, rows_of
from amp_evaluation.trace.conventions._facts import (
    Convention,
    Kind,
    document_of,
    documents_of,
    first,
    tool_definitions,
    usage_of,
)
from amp_evaluation.trace.conventions._flat import usual_message
from amp_evaluation.trace.conventions._history import HISTORY
from amp_evaluation.trace.conventions._messages import decode_message, messages_of
from amp_evaluation.trace.conventions._values import content_text, is_cut_envelope, json_text, printed, structured
from amp_evaluation.trace.conventions.printed import replies_in

KINDS = {
    "LLM": Kind("llm", True),
    "TOOL": Kind("tool", True),
    "AGENT": Kind("agent", True),
    "RETRIEVER": Kind("retriever", True),
    "EMBEDDING": Kind("embedding", True),
    "RERANKER": Kind("rerank", True),
    "GUARDRAIL": Kind("chain", True),
    "EVALUATOR": Kind("chain", True),
    "PROMPT": Kind("chain", True),
    "CHAIN": Kind("chain", False),
}


def kind(a: Attrs) -> Kind | None:
    value = a.get("openinference.span.kind")
    return KINDS.get(value.upper()) if isinstance(value, str) else None


def messages(a: Attrs) -> list[Message]:
    return _history(a) or prompts(a) or messages_of(_messages_in(a.data("input.value")))


def said(a: Attrs) -> list[Message]:
    """The reply where only the span's output holds it: a provider's response, or a completion's text."""
    value = _value(a, "output")
    if isinstance(value, str):
        return [AssistantMessage(content_text(value))] if value and not is_cut_envelope(value) else []
    return replies_in(value)


def reply(a: Attrs) -> list[Message]:
    return _messages(a, "llm.output_messages.", "assistant") or _choices(a)


def _messages_in(value: Any) -> Any:
    return value.get("messages") if isinstance(value, dict) else None


def prompts(a: Attrs) -> list[Message]:
    """Completion models: `llm.prompts.N.prompt.text`."""
    listed = a.get("llm.prompts")
    if isinstance(listed, list):
        return [UserMessage(text) for text in listed if isinstance(text, str) and text]
    rows = a.rows("llm.prompts.")
    return [each for row in rows if (text := row.get("prompt.text")) for each in decode_message({"content": text})]


def _choices(a: Attrs) -> list[Message]:
    texts = [row.get("completion.text") for row in a.rows("llm.choices.")]
    return [each for text in texts if text for each in decode_message({"role": "assistant", "content": text})]


def _history(a: Attrs) -> list[Message]:
    """The messages sent. Where the attributes begin as the last span's did, only what is new is decoded."""
    shared = a.shared
    if shared is None:
        return _messages(a, HISTORY, "user")
    known, before, count = a.memo.get(HISTORY, (b"", [], 0))
    rows = rows_in(shared.fresh, HISTORY)
    if known == shared.known and list(rows) == list(range(count, count + len(rows))):
        found = [*before, *_of_rows(a.memo, rows.values(), "user")]
    else:
        rows = rows_in(a.raw, HISTORY)
        found, count = _of_rows(a.memo, rows.values(), "user"), 0
    a.memo[HISTORY] = (shared.head, found, count + len(rows))
    return found


def _messages(a: Attrs, prefix: str, default: str) -> list[Message]:
    return _of_rows(a.memo, a.raw_rows(prefix), default)


def _of_rows(memo: Memo, rows: Iterable[RawRow], default: str) -> list[Message]:
    found: list[Message] = []
    for row in rows:
        key = row_key(row)
        try:
            known = memo.get(key)
        except TypeError:  # a row that holds objects
            found += _message(plain_row(*row), default)
            continue
        if known is None:
            known = memo[key] = usual_message(*row) or _message(plain_row(*row), default)
        found += known
    return found


def _message(item: dict[str, Any], default: str) -> list[Message]:
    if not item.get("role"):
        item["role"] = default
    if item.keys() <= _PLAIN_ROW:
        return decode_message(item, default)
    made: dict[str, Any] = {key: item[key] for key in _PLAIN_ROW if item.get(key)}
    if "content" not in made and (parts := rows_of(item, "contents.")):
        made["content"] = [_part(part) for part in parts.values()]
    calls = [_call(call) for call in rows_of(item, "tool_calls.").values()]
    if item.get("function_call_name"):
        calls.append({"name": item["function_call_name"], "arguments": item.get("function_call_arguments_json")})
    if calls:
        made["tool_calls"] = calls
    return decode_message({"content": "", **made}, default)


_PLAIN_ROW = frozenset({"role", "content", "tool_call_id", "name"})


def _part(row: dict[str, Any]) -> dict[str, Any]:
    part = {key.removeprefix("message_content."): value for key, value in row.items()}
    return {**part, "type": part.get("type") or ("text" if "text" in part else "image")}


def _call(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row.get("tool_call.id") or row.get("id"),
        "name": row.get("tool_call.function.name") or row.get("tool_call.name") or row.get("name"),
        "arguments": row.get("tool_call.function.arguments", row.get("tool_call.arguments")),
    }


def usage(a: Attrs) -> TokenUsage | None:
    return usage_of(
        a.get("llm.token_count.prompt"),
        a.get("llm.token_count.completion"),
        a.get("llm.token_count.total"),
        first(a, "llm.token_count.prompt_details.cache_read", "llm.token_count.prompt_details.cache_input"),
    )


def _value(a: Attrs, key: str) -> Any:
    """The value of `input.value` or `output.value`: JSON opened unless the writer says that it is plain text."""
    value = a.get(f"{key}.value")
    mime = a.get(f"{key}.mime_type")
    if not isinstance(value, str) or mime == "text/plain":
        return value
    return a.data(f"{key}.value")


def arguments(a: Attrs) -> Any:
    value = _value(a, "input")
    if isinstance(value, str):
        opened = structured(value)
        value = opened if isinstance(opened, dict) else printed(value) if value.startswith("{") else None
        return value if isinstance(value, dict) else opened
    return value


def tool_name(a: Attrs) -> str:
    return a.text("tool.name", "tool_call.function.name")


def result(a: Attrs) -> Any:
    return _value(a, "output")


def model(a: Attrs) -> str:
    return a.text("llm.model_name", "embedding.model_name", "reranker.model_name")


def temperature(a: Attrs) -> Any:
    held = a.data("llm.invocation_parameters")
    return held.get("temperature") if isinstance(held, dict) else None


def tools(a: Attrs) -> list[ToolDefinition]:
    found: list[ToolDefinition] = []
    for row in a.rows("llm.tools."):
        schema = structured(row.get("json_schema"))
        held = tool_definitions([schema]) if isinstance(schema, dict) else []
        if not held and row.get("name"):
            held = tool_definitions([{**row, "parameters": schema}])
        found += held
    return found or tool_definitions(a.data("smolagents.tools_names"))


def documents(a: Attrs) -> list[RetrievedDoc]:
    found = []
    for row in a.rows("retrieval.documents."):
        made = document_of(row)
        if made is not None:
            found.append(made)
    return found or documents_of(a.data("output.value"))


def query(a: Attrs) -> str:
    value = _value(a, "input")
    if isinstance(value, dict):
        value = next((value[key] for key in ("query", "input", "question", "text") if value.get(key)), value)
    return json_text(value)


CONVENTION = Convention(
    "openinference",
    frozenset(
        {
            "openinference.span.kind",
            "input.value",
            "output.value",
            "llm.input_messages.0.message.role",
            "llm.output_messages.0.message.role",
            "llm.token_count.prompt",
            "llm.model_name",
        }
    ),
    {
        "kind": kind,
        "messages": messages,
        "reply": reply,
        "said": said,
        "input": lambda a: _value(a, "input"),
        "output": lambda a: _value(a, "output"),
        "tool_name": tool_name,
        "tool_id": lambda a: a.text("tool_call.id", "tool.id"),
        "arguments": arguments,
        "result": result,
        "usage": usage,
        "model": model,
        "vendor": lambda a: a.text("llm.provider", "llm.system"),
        "temperature": temperature,
        "finish": lambda a: a.get("llm.finish_reason"),
        "agent_name": lambda a: a.text("agent.name", "graph.node.id"),
        "tools": tools,
        "max_iterations": lambda a: a.get("smolagents.max_steps"),
        "query": query,
        "documents": documents,
    },
)
