"""pydantic-ai's native spans: `pydantic_ai.all_messages` (older: `all_messages_events`), `final_result`,
`tool_arguments` and `tool_response`, `model_name` and `agent_name`. Its sums (`gen_ai.aggregated_usage.*`) are no call.
"""

from __future__ import annotations

from typing import Any

from amp_evaluation.trace.conventions._attrs import Attrs
from amp_evaluation.trace.conventions._facts import Convention, Kind, first, tool_definitions
from amp_evaluation.trace.conventions._messages import messages_of

_ALL = ("pydantic_ai.all_messages", "all_messages", "all_messages_events")


def kind(a: Attrs) -> Kind | None:
    if a.has("tool_arguments") or a.has("tool_response"):
        return Kind("tool", True)
    return Kind("agent", True) if a.has(*_ALL) or (a.has("final_result") and a.has("agent_name")) else None


def history(a: Attrs) -> Any:
    """All messages of the run: the list behind the first of the versioned keys that is there."""
    for key in _ALL:
        held = a.data(key)
        if isinstance(held, list) and held:
            return held
    return None


def fresh(a: Attrs) -> Any:
    """The messages of this run: what came before it is the history that it was given."""
    held = history(a)
    start = a.get("pydantic_ai.new_message_index")
    return held[start:] if isinstance(held, list) and isinstance(start, int) and 0 < start < len(held) else held


def tools(a: Attrs) -> list[Any]:
    held = a.data("model_request_parameters")
    if not isinstance(held, dict):
        return []
    return [made for key in ("function_tools", "output_tools") for made in tool_definitions(held.get(key))]


def messages(a: Attrs) -> list[Any]:
    """Older releases write the messages of a call as `events`: the reply is the choice at the end."""
    return [message for item in _events(a) if not _is_choice(item) for message in messages_of([item])]


def reply(a: Attrs) -> list[Any]:
    return [message for item in _events(a) if _is_choice(item) for message in messages_of([item.get("message")])]


def _events(a: Attrs) -> list[dict[str, Any]]:
    held = a.data("events")
    return [item for item in held if isinstance(item, dict)] if isinstance(held, list) else []


def _is_choice(item: dict[str, Any]) -> bool:
    return item.get("event.name") == "gen_ai.choice" and isinstance(item.get("message"), dict)


CONVENTION = Convention(
    "pydantic_ai",
    frozenset({*_ALL, "final_result", "tool_arguments", "tool_response", "model_request_parameters", "events"}),
    {
        "kind": kind,
        "messages": messages,
        "reply": reply,
        "input": fresh,
        "output": lambda a: first(a, "final_result"),
        "arguments": lambda a: a.data("tool_arguments"),
        "result": lambda a: a.get("tool_response"),
        "agent_name": lambda a: a.text("agent_name"),
        "framework": lambda a: "pydantic-ai" if a.has(*_ALL, "final_result") else "",
        "model": lambda a: a.text("model_name"),
        "tools": tools,
    },
)
