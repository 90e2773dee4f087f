"""Traceloop's entities: `traceloop.span.kind`, `traceloop.entity.name/input/output` (and their `gen_ai.task.*` twins).

Source: opentelemetry-semantic-conventions-ai. Inputs are JSON with inputs, tags, metadata, kwargs; LangChain's objects
inside are serialised with their class path.
"""

from __future__ import annotations

from typing import Any

from amp_evaluation.trace.conventions._attrs import Attrs
from amp_evaluation.trace.conventions._facts import Convention, Kind
from amp_evaluation.trace.conventions._values import json_text, structured

KINDS = {
    "llm": Kind("llm", True),
    "tool": Kind("tool", True),
    "agent": Kind("agent", True),
    "retriever": Kind("retriever", True),
    "embedding": Kind("embedding", True),
    "task": Kind("chain", False),
    "workflow": Kind("chain", False),
}


def kind(a: Attrs) -> Kind | None:
    value = a.get("traceloop.span.kind")
    return KINDS.get(value.lower()) if isinstance(value, str) else None


def query(a: Attrs) -> str:
    held = a.data("traceloop.entity.input")
    if isinstance(held, dict):
        inner = next((held[key] for key in ("query", "inputs", "input", "question") if held.get(key)), None)
        if isinstance(inner, dict):
            inner = next((inner[key] for key in ("query", "query_str", "input", "question") if inner.get(key)), inner)
        held = inner if inner is not None else held
    return json_text(structured(held))


CONVENTION = Convention(
    "traceloop",
    frozenset({"traceloop.span.kind", "traceloop.entity.name", "traceloop.entity.input", "traceloop.entity.output"}),
    {
        "kind": kind,
        "input": lambda a: a.data("traceloop.entity.input"),
        "output": lambda a: a.data("traceloop.entity.output"),
        "tool_name": lambda a: a.text("traceloop.entity.name"),
        "arguments": lambda a: a.data("traceloop.entity.input"),
        "result": lambda a: a.get("traceloop.entity.output"),
        "agent_name": lambda a: a.text("traceloop.entity.name"),
        "query": query,
        "documents": lambda a: a.data("traceloop.entity.output"),
    },
)


def entity(a: Attrs, key: str) -> Any:
    """An entity's input or output, for the frameworks that put shapes of their own there."""
    return a.data(f"traceloop.entity.{key}")
