"""LlamaIndex through Traceloop: tools are spans of kind task with `tool.name` and `tool.arguments`; the tool's result
and call id stand in the entity's output (`tool_output`, `tool_id`)."""

from __future__ import annotations

from typing import Any

from amp_evaluation.trace.conventions._attrs import Attrs
from amp_evaluation.trace.conventions._facts import Convention, Kind
from amp_evaluation.trace.conventions.traceloop import entity


def kind(a: Attrs) -> Kind | None:
    return Kind("tool", True) if a.has("tool.name") and a.has("tool.arguments") else None


def result(a: Attrs) -> Any:
    held = entity(a, "output")
    return held if isinstance(held, dict) and "tool_output" in held else None


def tool_id(a: Attrs) -> str:
    held = entity(a, "output")
    found = held.get("tool_id") if isinstance(held, dict) else None
    return found if isinstance(found, str) else ""


CONVENTION = Convention(
    "llamaindex",
    frozenset({"tool.arguments"}),
    {
        "kind": kind,
        "tool_name": lambda a: a.text("tool.name"),
        "arguments": lambda a: a.data("tool.arguments"),
        "result": result,
        "tool_id": tool_id,
    },
)
