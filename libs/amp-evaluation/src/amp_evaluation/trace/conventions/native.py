"""Frameworks with spans of their own: Google ADK, Vercel's AI SDK, MLflow, Langfuse, AutoGen.

One table row a framework: which key says the kind, and where content stands. Only keys that the framework itself
documents are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from amp_evaluation.trace._spans import AssistantMessage, Message, SystemMessage, TokenUsage
from amp_evaluation.trace.conventions._attrs import Attrs
from amp_evaluation.trace.conventions._facts import Convention, Kind, first, tool_definitions, usage_of
from amp_evaluation.trace.conventions._messages import messages_of
from amp_evaluation.trace.conventions._values import content_text, is_cut_envelope, json_text


@dataclass(frozen=True)
class Native:
    """Keys of one framework, first to last choice; `kinds` maps the values of `kind_keys`."""

    name: str
    kind_keys: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_USUAL_KINDS = {
    "llm": "llm",
    "chat_model": "llm",
    "generation": "llm",
    "tool": "tool",
    "agent": "agent",
    "retriever": "retriever",
    "embedding": "embedding",
    "reranker": "rerank",
    "chain": "chain",
    "span": "chain",
    "parser": "chain",
    "unknown": "chain",
}

NATIVES = (
    Native(
        "adk",
        keys={
            "messages": ("gcp.vertex.agent.llm_request",),
            "reply": ("gcp.vertex.agent.llm_response",),
            "arguments": ("gcp.vertex.agent.tool_call_args",),
            "result": ("gcp.vertex.agent.tool_response",),
        },
    ),
    Native(
        "vercel",
        ("ai.operationId", "operation.name"),
        {
            "ai.generateText.doGenerate": "llm",
            "ai.streamText.doStream": "llm",
            "ai.generateObject.doGenerate": "llm",
            "ai.streamObject.doStream": "llm",
            "ai.generateText": "agent",
            "ai.streamText": "agent",
            "ai.generateObject": "agent",
            "ai.streamObject": "agent",
            "ai.toolCall": "tool",
            "ai.embed.doEmbed": "embedding",
            "ai.embedMany.doEmbed": "embedding",
        },
        {
            "messages": ("ai.prompt.messages", "ai.prompt"),
            "reply": ("ai.response.text", "ai.response.object"),
            "input": ("ai.prompt",),
            "output": ("ai.response.text", "ai.response.object"),
            "tool_name": ("ai.toolCall.name",),
            "tool_id": ("ai.toolCall.id",),
            "arguments": ("ai.toolCall.args", "ai.toolCall.input"),
            "result": ("ai.toolCall.result", "ai.toolCall.output"),
            "model": ("ai.response.model", "ai.model.id"),
            "vendor": ("ai.model.provider",),
            "finish": ("ai.response.finishReason",),
            "response_id": ("ai.response.id",),
            "prompt_tokens": ("ai.usage.promptTokens", "ai.usage.inputTokens", "ai.usage.tokens"),
            "completion_tokens": ("ai.usage.completionTokens", "ai.usage.outputTokens"),
        },
    ),
    Native(
        "mlflow",
        ("mlflow.spanType",),
        _USUAL_KINDS,
        {
            "messages": ("mlflow.spanInputs",),
            "reply": ("mlflow.spanOutputs",),
            "input": ("mlflow.spanInputs",),
            "output": ("mlflow.spanOutputs",),
            "arguments": ("mlflow.spanInputs",),
            "result": ("mlflow.spanOutputs",),
            "documents": ("mlflow.spanOutputs",),
            "query": ("mlflow.spanInputs",),
            "tool_name": ("mlflow.spanFunctionName",),
        },
    ),
    Native(
        "langfuse",
        ("langfuse.observation.type",),
        _USUAL_KINDS,
        {
            "messages": ("langfuse.observation.input",),
            "reply": ("langfuse.observation.output",),
            "input": ("langfuse.observation.input", "langfuse.trace.input"),
            "output": ("langfuse.observation.output", "langfuse.trace.output"),
            "arguments": ("langfuse.observation.input",),
            "result": ("langfuse.observation.output",),
            "documents": ("langfuse.observation.output",),
            "query": ("langfuse.observation.input",),
            "model": ("langfuse.observation.model.name",),
        },
    ),
    Native(
        "autogen",
        keys={"input": ("message", "autogen.message"), "agent_name": ("recipient", "autogen.agent.name")},
    ),
    Native("plain", keys={"input": ("input",), "output": ("output",)}),
)


def _reader(native: Native, fact: str) -> Any:
    keys = native.keys[fact]
    if fact == "messages":
        return lambda a: _messages(first_data(a, keys))
    if fact == "reply":
        return lambda a: _reply(a, first_data(a, keys))
    if fact in ("tool_name", "tool_id", "model", "vendor", "response_id", "agent_name"):
        return lambda a: a.text(*keys)
    if fact == "result":
        return lambda a: first(a, *keys)
    if fact == "query":
        return lambda a: _query(first_data(a, keys))
    return lambda a: first_data(a, keys)


def first_data(a: Attrs, keys: tuple[str, ...]) -> Any:
    return next((value for key in keys if key in a.raw and (value := a.data(key)) not in (None, "", {}, [])), None)


def _kind_reader(native: Native) -> Any:
    def kind(a: Attrs) -> Kind | None:
        for key in native.kind_keys:
            value = a.get(key)
            if isinstance(value, str):
                word = value.split(" ", 1)[0]
                named = native.kinds.get(word) or native.kinds.get(word.lower())
                if named:
                    return Kind(named, named != "chain")
        return None

    return kind


def _messages(value: Any) -> list[Message]:
    if isinstance(value, str):
        return messages_of([{"role": "user", "content": value}]) if value else []
    if not isinstance(value, dict):
        return messages_of(value)
    held = next((value[key] for key in ("messages", "contents", "input", "prompt") if value.get(key)), None)
    found = _messages(held) if isinstance(held, str | list) else messages_of(value)
    config = value.get("config")
    said = content_text(value.get("system") or (config.get("system_instruction") if isinstance(config, dict) else None))
    if said and found:
        found.insert(0, SystemMessage(said))
    return found


def _reply(a: Attrs, value: Any) -> list[Message]:
    calls = a.data("ai.response.toolCalls") if a.has("ai.response.toolCalls") else None
    if isinstance(calls, list) and calls:
        return messages_of([{"role": "assistant", "content": content_text(value), "tool_calls": calls}])
    if isinstance(value, str):
        return [AssistantMessage(content_text(value))] if value and not is_cut_envelope(value) else []
    if isinstance(value, dict):
        inner = value.get("content")
        if isinstance(inner, dict) and "parts" in inner:
            value = inner
        elif isinstance(value.get("choices"), list):
            value = [choice.get("message") for choice in value["choices"] if isinstance(choice, dict)]
        elif "role" not in value and "content" not in value and "parts" not in value:
            return [AssistantMessage(json_text(value))]
    items = value if isinstance(value, list) else [value]
    return messages_of([{"role": "assistant", **item} for item in items if isinstance(item, dict)])


def _query(value: Any) -> str:
    if isinstance(value, dict):
        value = next((value[key] for key in ("query", "input", "question", "text") if value.get(key)), value)
    return json_text(value)


def _usage_reader(native: Native) -> Any:
    def usage(a: Attrs) -> TokenUsage | None:
        return usage_of(first(a, *native.keys["prompt_tokens"]), first(a, *native.keys["completion_tokens"]))

    return usage


def _langfuse_usage(a: Attrs) -> TokenUsage | None:
    """Counts as the client gave them: Langfuse's own names, or the provider's."""
    held = a.data("langfuse.observation.usage_details")
    if not isinstance(held, dict):
        return None
    sent = next((held[key] for key in ("input", "prompt_tokens", "input_tokens") if key in held), None)
    got = next((held[key] for key in ("output", "completion_tokens", "output_tokens") if key in held), None)
    return usage_of(sent, got, held.get("total", held.get("total_tokens")), held.get("input_cached_tokens"))


def _adk_kind(a: Attrs) -> Kind | None:
    """Model calls are the spans with a request that are no tool's (older ones have an empty one there)."""
    if a.has("gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"):
        return Kind("tool", True)
    return Kind("llm", True) if a.data("gcp.vertex.agent.llm_request") else None


def _adk_merged(a: Attrs) -> Kind | None:
    """After parallel calls a span records the event that their results were merged into: no execution."""
    return Kind("chain", True) if a.get("gen_ai.tool.name") == "(merged tools)" else None


def _adk_result(a: Attrs) -> Any:
    """What isn't an object stands alone under "result": the model API wants an object."""
    held = first_data(a, ("gcp.vertex.agent.tool_response", "gen_ai.tool.call.result"))
    return held["result"] if isinstance(held, dict) and set(held) == {"result"} else held


def _adk_usage(a: Attrs) -> TokenUsage | None:
    held = a.data("gcp.vertex.agent.llm_response")
    counts = held.get("usage_metadata") if isinstance(held, dict) else None
    if not isinstance(counts, dict):
        return None
    return usage_of(
        counts.get("prompt_token_count"),
        counts.get("candidates_token_count"),
        counts.get("total_token_count"),
        counts.get("cached_content_token_count"),
    )


def _adk_tools(a: Attrs) -> list[Any]:
    held = a.data("gcp.vertex.agent.llm_request")
    config = held.get("config") if isinstance(held, dict) else None
    return tool_definitions(config.get("tools")) if isinstance(config, dict) else []


def _convention(native: Native) -> Convention:
    readers = {fact: _reader(native, fact) for fact in native.keys if not fact.endswith("_tokens")}
    if native.kind_keys:
        readers["kind"] = _kind_reader(native)
    if "prompt_tokens" in native.keys:
        readers["usage"] = _usage_reader(native)
    if native.name == "langfuse":
        readers["usage"] = _langfuse_usage
    if native.name == "adk":
        readers.update(kind=_adk_kind, usage=_adk_usage, tools=_adk_tools, result=_adk_result)
    marks = {key for keys in native.keys.values() for key in keys} | set(native.kind_keys)
    return Convention(native.name, frozenset(marks), readers)


CONVENTIONS = tuple(map(_convention, NATIVES))
ADK_TOOLS = Convention(
    "adk tools", frozenset({"gcp.vertex.agent.event_id"}), {"kind": _adk_merged, "result": _adk_result}
)
"""ADK's newer tool spans have GenAI's names, with the result wrapped all the same: to be asked before them."""
