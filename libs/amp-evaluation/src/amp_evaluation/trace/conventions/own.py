"""A mapping of one's own (`mapping.json`): what it finds wins over every convention."""

from __future__ import annotations

from typing import Any

from amp_evaluation.trace._spans import AssistantMessage, Message, TokenUsage
from amp_evaluation.trace.conventions._attrs import Attrs
from amp_evaluation.trace.conventions._facts import Convention, Kind, usage_of
from amp_evaluation.trace.conventions._messages import messages_of
from amp_evaluation.trace.conventions._values import content_text, structured

_NAMES = {
    "input": "input",
    "output": "output",
    "tool_name": "tool_name",
    "arguments": "tool_arguments",
    "result": "tool_result",
    "tool_id": "tool_call_id",
    "agent_name": "agent_name",
    "model": "model",
    "vendor": "vendor",
    "system_prompt": "system_prompt",
    "query": "input",
    "documents": "output",
}
"""The mapping's name of each fact."""


def kind(a: Attrs) -> Kind | None:
    value = a.own.get("kind")
    return Kind(value, value != "chain") if isinstance(value, str) else None


def messages(a: Attrs) -> list[Message]:
    value = structured(a.own.get("input"))
    return messages_of([{"role": "user", "content": value}] if isinstance(value, str) and value else value)


def reply(a: Attrs) -> list[Message]:
    value = structured(a.own.get("output"))
    if isinstance(value, str) and value:
        return [AssistantMessage(content_text(value))]
    return [message for message in messages_of(value) if isinstance(message, AssistantMessage)]


def usage(a: Attrs) -> TokenUsage | None:
    return usage_of(a.own.get("input_tokens"), a.own.get("output_tokens"), None, a.own.get("cache_read_tokens"))


def _reader(name: str) -> Any:
    return lambda a: a.own.get(name)


CONVENTION = Convention(
    "own",
    frozenset(),
    {
        "kind": kind,
        "messages": messages,
        "reply": reply,
        "usage": usage,
        **{fact: _reader(name) for fact, name in _NAMES.items()},
    },
)
