"""Messages in span events and log records: `gen_ai.user.message`, `gen_ai.choice`, `…operation.details`.

Sources: OpenTelemetry's GenAI events (older: an event a message; newer: one event with the messages as attributes),
strands' variants of both, and Semantic Kernel's `gen_ai.content.prompt` and `.completion`. A log record's body stands
among the event's attributes.
"""

from __future__ import annotations

from typing import Any

from amp_evaluation.trace._spans import AssistantMessage, Message, SystemMessage, ToolMessage
from amp_evaluation.trace.conventions._attrs import Attrs
from amp_evaluation.trace.conventions._facts import Convention
from amp_evaluation.trace.conventions._messages import decode_message, messages_of
from amp_evaluation.trace.conventions._values import content_text, structured

_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.tool.result": "tool",
    "gen_ai.choice": "assistant",
}
DETAILS = "gen_ai.client.inference.operation.details"


def messages(a: Attrs) -> list[Message]:
    found: list[Message] = []
    system = ""
    for event in a.events:
        held = event["attributes"]
        if event["name"] in _ROLES and event["name"] != "gen_ai.choice":
            found += _message(held, _ROLES[event["name"]])
        elif event["name"] == "gen_ai.content.prompt":
            found += messages_of(structured(held.get("gen_ai.prompt")))
        elif "gen_ai.input.messages" in held:
            found += messages_of(structured(held["gen_ai.input.messages"]))
        if "gen_ai.system_instructions" in held:
            system = content_text(structured(held["gen_ai.system_instructions"]))
    if system and not any(isinstance(message, SystemMessage) for message in found):
        found.insert(0, SystemMessage(system))
    return found


def reply(a: Attrs) -> list[Message]:
    found: list[Message] = []
    for event in a.events:
        held = event["attributes"]
        if event["name"] == "gen_ai.choice":
            found += _message(held, "assistant")
        elif event["name"] == "gen_ai.content.completion":
            value = structured(held.get("gen_ai.completion"))
            found += messages_of(value) if isinstance(value, dict | list) else [AssistantMessage(content_text(value))]
        elif "gen_ai.output.messages" in held:
            found += messages_of(structured(held["gen_ai.output.messages"]))
    return [message for message in found if isinstance(message, AssistantMessage)]


def _message(held: dict[str, Any], role: str) -> list[Message]:
    held = {
        key.removeprefix("gen_ai."): structured(value) if key != "content" else value for key, value in held.items()
    }
    for wrapper in ("event.content", "body"):
        if isinstance(held.get(wrapper), dict):
            held = {**held, **held[wrapper]}
    inner = held.pop("message", None)
    if isinstance(inner, dict):
        held = {**held, **inner}
    elif inner is not None:
        held = {**held, "content": inner}
    content = held.get("content")
    if content in (None, "") and not any(held.get(key) for key in ("tool_calls", "toolCalls", "function_call")):
        return []
    return decode_message({**held, "role": role}, role)


def arguments(a: Attrs) -> Any:
    """A tool span's own input: the event's content is what the tool was called with."""
    for event in a.events:
        held = event["attributes"]
        if event["name"] == "gen_ai.tool.message" and held.get("content"):
            return structured(held["content"])
    sent = messages(a)
    called = [call for message in sent if isinstance(message, AssistantMessage) for call in message.tool_calls]
    return called[-1].arguments if called else None


def result(a: Attrs) -> Any:
    for event in reversed(a.events):
        held = event["attributes"]
        if event["name"] == "gen_ai.choice" and held.get("message"):
            return structured(held["message"])
        if "gen_ai.output.messages" in held:
            got = messages_of(structured(held["gen_ai.output.messages"]))
            return next(
                (message.content for message in got if isinstance(message, ToolMessage) or message.content), None
            )
    return None


def tool_id(a: Attrs) -> str:
    for event in a.events:
        found = event["attributes"].get("id")
        if event["name"] in ("gen_ai.tool.message", "gen_ai.choice") and isinstance(found, str):
            return found
    return ""


def documents(a: Attrs) -> Any:
    """Vector stores' results: an event a document (`db.query.result` and the like)."""
    found = []
    for event in a.events:
        held = event["attributes"]
        if event["name"].endswith("query.result") or event["name"].endswith("search.result"):
            item = {key.rsplit(".", 1)[-1]: value for key, value in held.items()}
            found.append({**item, "content": item.get("document") or item.get("content") or item.get("payload")})
    return found


def _entry(a: Attrs) -> Any:
    return [_plain(message) for message in messages(a)]


def _exit(a: Attrs) -> Any:
    return [_plain(message) for message in reply(a) if message.content]


def _plain(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": message.content}


CONVENTION = Convention(
    "events",
    frozenset(),
    {
        "messages": messages,
        "reply": reply,
        "input": _entry,
        "output": _exit,
        "arguments": arguments,
        "result": result,
        "tool_id": tool_id,
        "documents": documents,
    },
)
