"""strands-agents: spans of the event loop, messages in span events, and in older releases under keys of its own."""

from __future__ import annotations

from amp_evaluation.trace.conventions._facts import Convention, first

CONVENTION = Convention(
    "strands",
    frozenset({"event_loop.cycle_id", "tool.result", "tool.parameters", "tool.status"}),
    {
        "tool_id": lambda a: a.text("tool.id", "toolUseId"),
        "result": lambda a: first(a, "tool.result"),
        "tool_failed": lambda a: a.get("tool.status") == "error",
    },
)
