"""What evaluators see of a trace, as data and as text for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from amp_evaluation._time import format_rfc3339
from amp_evaluation._visible import visible
from amp_evaluation.trace._agents import as_text
from amp_evaluation.trace._spans import AgentSpan, ChainSpan, LLMSpan, RetrieverSpan, Span, ToolSpan
from amp_evaluation.trace._tree import children_of, walk
from amp_evaluation.trace.models import Trace

Json: TypeAlias = dict[str, Any]

MAX_SHOWN: Final = 2000
"""Characters of one text that people are shown; `--json` has it whole."""


def describe(trace: Trace) -> Json:
    """Input, output, state, tokens, agents, tools, retrievals, the tree of spans, and the parser's notes."""
    usage = trace.metrics.token_usage
    return {
        "trace_id": trace.trace_id,
        "start": format_rfc3339(trace.timestamp) if trace.timestamp else None,
        "duration_ms": trace.metrics.total_duration_ms if trace.metrics.duration_known else None,
        "input": trace.input,
        "output": trace.output,
        "failed": trace.failed,
        "failure_reason": trace.failure_reason,
        "initialization_only": trace.initialization_only,
        "content_captured": trace.content_captured,
        "root_missing": trace.root_missing,
        "cut": trace.cut,
        "error_count": trace.metrics.error_count,
        "tokens": {
            "known": trace.metrics.usage_known,
            "input": usage.input_tokens,
            "output": usage.output_tokens,
            "total": usage.total_tokens,
            "cache_read": usage.cache_read_tokens,
        },
        "llm_calls": len(trace.get_llm_calls()),
        "agents": [_agent(trace, span) for span in trace.get_agents()],
        "tools": [_tool(span) for span in trace.get_tool_calls()],
        "retrievals": [_retrieval(span) for span in trace.get_retrievals()],
        "tree": [_node(depth, span) for depth, span in walk(children_of(trace.spans), None)],
        "notes": list(trace.notes),
    }


def _agent(trace: Trace, span: AgentSpan) -> Json:
    view = trace.create_agent_trace(span.span_id)
    return {
        "span_id": span.span_id,
        "name": span.name,
        "framework": view.framework,
        "model": view.model,
        "input": view.input,
        "output": view.output,
        "tools": [tool.name for tool in view.available_tools],
        "steps": len(view.steps),
    }


def _tool(span: ToolSpan) -> Json:
    metrics = span.metrics
    return {
        "span_id": span.span_id,
        "name": span.name,
        "arguments": span.arguments,
        "result": span.result,
        "error": _error(span),
        "duration_ms": metrics.duration_ms if metrics.duration_known else None,
    }


def _retrieval(span: RetrieverSpan) -> Json:
    documents = [{"id": d.id, "content": d.content, "score": d.score, "metadata": d.metadata} for d in span.documents]
    return {"span_id": span.span_id, "query": span.query, "documents": documents, "error": _error(span)}


def _error(span: LLMSpan | ToolSpan | AgentSpan | RetrieverSpan) -> str | None:
    metrics = span.metrics
    return (metrics.error_message or metrics.error_type or "Error") if metrics.error else None


_KINDS: Final = {LLMSpan: "llm", ToolSpan: "tool", AgentSpan: "agent", RetrieverSpan: "retriever", ChainSpan: "chain"}


def _node(depth: int, span: Span) -> Json:
    node: Json = {"depth": depth, "kind": _KINDS[type(span)], "span_id": span.span_id, "name": _name(span)}
    if isinstance(span, LLMSpan):
        usage = span.metrics.token_usage
        known = span.metrics.usage_known
        node |= {"tokens": [usage.input_tokens, usage.output_tokens] if known else None, "output": span.output}
    error = None if isinstance(span, ChainSpan) else _error(span)
    return node | ({"error": error} if error else {})


def _name(span: Span) -> str:
    if isinstance(span, LLMSpan):
        return span.model
    return span.query if isinstance(span, RetrieverSpan) else span.name


# --- for people -------------------------------------------------------------------------------------------------------


def render(found: Json) -> str:
    """The description as text: safe to show, long texts cut."""
    return "\n".join(visible(line) for line in _lines(found)) + "\n"


def _lines(found: Json) -> Iterator[str]:
    yield f"trace {found['trace_id']}  {found['start'] or 'time unknown'}  {_milliseconds(found['duration_ms'])}"
    yield from (f"  ! {state}" for state in _states(found))
    yield from _text("input", found["input"])
    yield from _text("output", found["output"])
    yield f"  tokens  {_tokens(found['tokens'])}; {found['llm_calls']} LLM calls; {found['error_count']} errors"
    yield from _section("tree", [_tree_line(node) for node in found["tree"]])
    yield from _section("tools", [_tool_line(n, tool) for n, tool in enumerate(found["tools"], 1)])
    yield from _section("retrievals", [_retrieval_line(each) for each in found["retrievals"]])
    yield from _section("agents", [_agent_line(agent) for agent in found["agents"]])
    yield from _section("skipped or ambiguous", [f"- {_cut(note)}" for note in found["notes"]])


def _states(found: Json) -> Iterator[str]:
    if found["failed"]:
        yield f"failed: {_cut(found['failure_reason'])}"
    for key, text in _STATES.items():
        if found[key]:
            yield text
    if not found["content_captured"]:
        yield "content not captured: no text anywhere in this trace"


_STATES: Final = {
    "initialization_only": "initialisation only: an agent was created, none ran",
    "root_missing": "its root span was never exported",
    "cut": "cut by its source: spans are missing",
}


def _text(name: str, text: str) -> Iterator[str]:
    first, *rest = _cut(text).split("\n")
    yield f"  {name:7} {first}" if text else f"  {name:7} (none)"
    yield from (f"          {line}" for line in rest)


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"  {title}"
        yield from (f"    {line}" for line in lines)


def _tree_line(node: Json) -> str:
    tokens = node.get("tokens")
    parts = [f"[{node['kind']}]", _one_line(node["name"], 100)]
    if tokens:
        parts.append(f"({tokens[0]} in, {tokens[1]} out)")
    if node.get("output"):
        parts.append(f"-> {_one_line(node['output'], 100)}")
    if node.get("error"):
        parts.append(f"ERROR: {_one_line(node['error'], 200)}")
    indent: int = min(node["depth"], 40)
    return "  " * indent + " ".join(part for part in parts if part)


def _tool_line(number: int, tool: Json) -> str:
    shown = f"{number}. {tool['name']}({_one_line(as_text(tool['arguments']), 500)})"
    result = f" -> {_one_line(as_text(tool['result']), 500)}"
    error = f"  ERROR: {_one_line(tool['error'], 500)}" if tool["error"] else ""
    return f"{shown}{result}{error}  {_milliseconds(tool['duration_ms'])}"


def _retrieval_line(retrieval: Json) -> str:
    documents = "".join(f"\n      - {_one_line(d['content'], 200)}" for d in retrieval["documents"])
    return f"{_one_line(retrieval['query'], 200)} -> {len(retrieval['documents'])} documents{documents}"


def _agent_line(agent: Json) -> str:
    about = ", ".join(part for part in (agent["framework"], agent["model"]) if part)
    return f"{agent['name'] or '(no name)'}{f' ({about})' if about else ''}: {agent['steps']} steps"


def _tokens(tokens: Json) -> str:
    if not tokens["known"]:
        return "unknown"
    return f"{tokens['input']} in, {tokens['output']} out, {tokens['total']} together"


def _milliseconds(duration: float | None) -> str:
    return "duration unknown" if duration is None else f"{duration:.0f} ms"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(text)} characters)"


def _one_line(text: str, limit: int) -> str:
    text = " ".join(text[: limit * 4].split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
