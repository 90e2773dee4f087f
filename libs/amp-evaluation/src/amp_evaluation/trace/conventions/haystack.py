"""Haystack's own spans: pipelines, their components by class, agents. What went in and came out are JSON objects.

Source: `haystack.tracing` with content tracing on. A component's class says its kind; chat generators hold messages,
older generators a prompt and texts.
"""

from __future__ import annotations

from typing import Any

from amp_evaluation.trace._spans import AssistantMessage, Message, TokenUsage, ToolDefinition, UserMessage
from amp_evaluation.trace.conventions._attrs import Attrs
from amp_evaluation.trace.conventions._facts import Convention, Kind, first, tool_definitions, usage_of
from amp_evaluation.trace.conventions._messages import messages_of

_ENDINGS = {
    "Generator": "llm",
    "Retriever": "retriever",
    "Embedder": "embedding",
    "Ranker": "rerank",
    "Agent": "agent",
}
_INPUT, _OUTPUT = "haystack.component.input", "haystack.component.output"


def kind(a: Attrs) -> Kind | None:
    """A component's type is its class: generators, retrievers and embedders end in these words."""
    if a.has("haystack.tool.name"):
        return Kind("tool", True)
    value = a.get("haystack.component.type")
    if not isinstance(value, str):
        return None
    return next((Kind(kind, True) for ending, kind in _ENDINGS.items() if value.endswith(ending)), Kind("chain", False))


def _object(a: Attrs, key: str) -> dict[str, Any]:
    value = a.data(key)
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def messages(a: Attrs) -> list[Message]:
    held = _object(a, _INPUT)
    prompt = held.get("prompt")
    return messages_of(held.get("messages")) or ([UserMessage(prompt)] if isinstance(prompt, str) and prompt else [])


def reply(a: Attrs) -> list[Message]:
    replies = _list(_object(a, _OUTPUT).get("replies"))
    if replies and all(isinstance(text, str) for text in replies):
        return [AssistantMessage(text) for text in replies]
    return messages_of(replies)


def _meta(a: Attrs) -> dict[str, Any]:
    """What the model said about its reply: it stands with the reply, or in a list beside the replies."""
    held = _object(a, _OUTPUT)
    for item in (*_list(held.get("replies")), *_list(held.get("meta"))):
        found = item.get("meta", item) if isinstance(item, dict) else None
        if isinstance(found, dict) and found:
            return found
    return {}


def usage(a: Attrs) -> TokenUsage | None:
    held = _meta(a).get("usage")
    if not isinstance(held, dict):
        return None
    sent = held.get("prompt_tokens", held.get("input_tokens"))
    return usage_of(sent, held.get("completion_tokens", held.get("output_tokens")), held.get("total_tokens"))


def tools(a: Attrs) -> list[ToolDefinition]:
    given = _list(a.data("haystack.agent.tools")) or _list(_object(a, _INPUT).get("tools"))
    return tool_definitions([tool.get("data", tool) for tool in given if isinstance(tool, dict)])


def asked(a: Attrs) -> Any:
    data = a.data("haystack.pipeline.input_data")
    return {"data": data} if data else first(a, _INPUT, "haystack.agent.input")


def query(a: Attrs) -> str:
    value = _object(a, _INPUT).get("query")
    return value if isinstance(value, str) else ""


CONVENTION = Convention(
    "haystack",
    frozenset(
        {
            "haystack.component.type",
            "haystack.component.name",
            "haystack.tool.name",
            "haystack.pipeline.input_data",
            "haystack.agent.input",
            "haystack.agent.output",
        }
    ),
    {
        "kind": kind,
        "messages": messages,
        "reply": reply,
        "usage": usage,
        "model": lambda a: str(_meta(a).get("model") or ""),
        "finish": lambda a: _meta(a).get("finish_reason"),
        "tools": tools,
        "input": asked,
        "output": lambda a: first(a, _OUTPUT, "haystack.pipeline.output_data", "haystack.agent.output"),
        "arguments": lambda a: first(a, "haystack.tool.input", _INPUT),
        "result": lambda a: first(a, "haystack.tool.output", _OUTPUT),
        "tool_name": lambda a: a.text("haystack.tool.name"),
        "agent_name": lambda a: a.text("haystack.component.name"),
        "query": query,
        "documents": lambda a: a.data(_OUTPUT),
    },
)
