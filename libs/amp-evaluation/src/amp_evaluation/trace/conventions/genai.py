"""OpenTelemetry's GenAI conventions: `gen_ai.operation.name`, messages with parts, tool and agent attributes.

Source: the semantic conventions for generative AI (opentelemetry-semantic-conventions), and the variants that
Traceloop's newer releases (`gen_ai.task.*`), Logfire and agent SDKs write with the same names.
"""

from __future__ import annotations

from typing import Any

from amp_evaluation.trace._spans import AssistantMessage, Message, SystemMessage, TokenUsage
from amp_evaluation.trace.conventions._attrs import Attrs
from amp_evaluation.trace.conventions._facts import Convention, Kind, first, tool_definitions, usage_of
from amp_evaluation.trace.conventions._messages import messages_in, messages_of
from amp_evaluation.trace.conventions._roles import role_of
from amp_evaluation.trace.conventions._values import content_text, is_cut_envelope, looks_printed, printed
from amp_evaluation.trace.conventions.printed import reply_of_printed

OPERATIONS = {
    "chat": "llm",
    "text_completion": "llm",
    "completion": "llm",
    "generate_content": "llm",
    "generate": "llm",
    "responses": "llm",
    "embeddings": "embedding",
    "embedding": "embedding",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "create_agent": "agent",
    "retrieval": "retriever",
    "retrieve": "retriever",
    "vector_db_retrieve": "retriever",
    "rerank": "rerank",
}


def kind(a: Attrs) -> Kind | None:
    operation = a.get("gen_ai.operation.name")
    if not isinstance(operation, str) or not operation:
        return Kind("tool", True) if a.has("gen_ai.tool.call.arguments", "gen_ai.tool.call.result") else None
    named = OPERATIONS.get(operation.lower())
    return Kind(named, True) if named else Kind("chain", False)


def messages(a: Attrs) -> list[Message]:
    items = a.items("gen_ai.input.messages")
    found = messages_in(items, a.memo) if items is not None else None
    if found is None:
        found = messages_of(a.data("gen_ai.input.messages"))
    if not found:
        return []
    said = instructions(a)
    if said and not any(isinstance(message, SystemMessage) for message in found):
        found.insert(0, SystemMessage(said))
    return found


def instructions(a: Attrs) -> str:
    return content_text(a.data("gen_ai.system_instructions"))


def reply(a: Attrs) -> list[Message]:
    found: list[Message] = []
    for message in messages_of(_as_assistant(a.data("gen_ai.output.messages"))):
        if isinstance(message, AssistantMessage) and not message.tool_calls and looks_printed(message.content):
            found += reply_of_printed(message.content)
        else:
            found.append(message)
    return found


def _as_assistant(value: Any) -> Any:
    if isinstance(value, dict):
        value = [value]
    if isinstance(value, str):
        return [{"role": "assistant", "content": value}] if value and not is_cut_envelope(value) else None
    if isinstance(value, list):  # streams may not know their role
        return [
            {**item, "role": "assistant"} if isinstance(item, dict) and role_of(item.get("role")) is None else item
            for item in value
        ]
    return value


def usage(a: Attrs) -> TokenUsage | None:
    return usage_of(
        first(a, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        first(a, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        first(a, "gen_ai.usage.total_tokens", "llm.usage.total_tokens"),
        first(
            a,
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "gen_ai.usage.details.cache_read_tokens",
        ),
    )


def tools(a: Attrs) -> list[Any]:
    return tool_definitions(a.data("gen_ai.tool.definitions")) or tool_definitions(a.data("gen_ai.agent.tools"))


def finish(a: Attrs) -> Any:
    return first(a, "gen_ai.response.finish_reasons", "gen_ai.response.finish_reason")


def first_token_ms(a: Attrs) -> Any:
    return first(a, "gen_ai.server.time_to_first_token", "gen_ai.response.time_to_first_chunk")


def tool_failed(a: Attrs) -> Any:
    return a.get("gen_ai.tool.status") in ("error", "failure", "failed")


def handoff(a: Attrs) -> bool:
    return a.has("gen_ai.handoff.to_agent")


def task_input(a: Attrs) -> Any:
    return a.data("gen_ai.input.messages") or a.data("gen_ai.task.input")


def task_output(a: Attrs) -> Any:
    held = a.data("gen_ai.output.messages")
    if held:
        replies = [message for message in reply(a) if isinstance(message, AssistantMessage)]
        return [{"role": "assistant", "content": message.content} for message in replies if message.content]
    return a.data("gen_ai.task.output")


def printed_arguments(a: Attrs) -> Any:
    value = a.data("gen_ai.tool.call.arguments")
    if isinstance(value, str) and value.startswith("{"):
        return printed(value) or value
    return value


CONVENTION = Convention(
    "genai",
    frozenset(
        {
            "gen_ai.operation.name",
            "gen_ai.system",
            "gen_ai.provider.name",
            "gen_ai.request.model",
            "gen_ai.response.model",
            "gen_ai.input.messages",
            "gen_ai.output.messages",
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.output_tokens",
            "gen_ai.tool.name",
            "gen_ai.tool.call.id",
            "gen_ai.tool.call.arguments",
            "gen_ai.agent.name",
            "gen_ai.task.input",
        }
    ),
    {
        "kind": kind,
        "messages": messages,
        "reply": reply,
        "input": task_input,
        "output": task_output,
        "tool_name": lambda a: a.text("gen_ai.tool.name"),
        "tool_id": lambda a: a.text("gen_ai.tool.call.id"),
        "arguments": printed_arguments,
        "result": lambda a: a.get("gen_ai.tool.call.result"),
        "tool_failed": tool_failed,
        "usage": usage,
        "model": lambda a: a.text("gen_ai.response.model", "gen_ai.request.model"),
        "vendor": lambda a: a.text("gen_ai.provider.name", "gen_ai.system"),
        "temperature": lambda a: a.get("gen_ai.request.temperature"),
        "finish": finish,
        "response_id": lambda a: a.text("gen_ai.response.id"),
        "first_token_ms": first_token_ms,
        "agent_name": lambda a: a.text("gen_ai.agent.name"),
        "framework": lambda a: a.text("gen_ai.agent.framework"),
        "system_prompt": instructions,
        "tools": tools,
        "query": lambda a: a.text("gen_ai.retrieval.query.text", "gen_ai.retrieval.query"),
        "documents": lambda a: a.data("gen_ai.retrieval.documents"),
        "handoff": handoff,
    },
)
