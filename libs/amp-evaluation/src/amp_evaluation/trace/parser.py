"""From the wire to the trace that evaluators read.

`parse_trace_for_evaluation` in short: spans become a tree with each span once (`_nodes`), the conventions say what
each is and holds (`conventions`), LLM calls and tool executions are counted once (`_calls`, `_tools`), input, output
and failure are found (`_outcome`), and what frameworks put around it all goes out of sight (`_filter`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from amp_evaluation.errors import TraceParseError
from amp_evaluation.trace._brief import brief_of
from amp_evaluation.trace._calls import build_llm_span, read_calls, system_text
from amp_evaluation.trace._deferred import deferred_trace
from amp_evaluation.trace._filter import (
    INFRASTRUCTURE_KINDS,
    SEMANTIC_KINDS,
    filter_infrastructure_spans,
    kept_nodes,
)
from amp_evaluation.trace._lazy import lazily
from amp_evaluation.trace._nodes import Mapping, Node, agent_name, build_nodes
from amp_evaluation.trace._otel import OTELTrace, wire_trace
from amp_evaluation.trace._outcome import answered_by, asked_by, failure, last_of_joined, trace_input, trace_output
from amp_evaluation.trace._records import WireTrace, moment, number, plain
from amp_evaluation.trace._spans import (
    AgentMetrics,
    AgentSpan,
    ChainSpan,
    RetrieverMetrics,
    RetrieverSpan,
    Span,
    TokenUsage,
    ToolSpan,
    TraceMetrics,
)
from amp_evaluation.trace._told import Told, told_by
from amp_evaluation.trace._tools import build_tools, last_user
from amp_evaluation.trace.conventions._facts import documents_of
from amp_evaluation.trace.models import Trace

__all__ = [
    "INFRASTRUCTURE_KINDS",
    "SEMANTIC_KINDS",
    "filter_infrastructure_spans",
    "parse_trace_for_evaluation",
    "parse_traces_for_evaluation",
]


def parse_traces_for_evaluation(
    traces: Iterable[OTELTrace], filter_infrastructure: bool = True, mapping: Mapping | None = None
) -> list[Trace]:
    """The same for several traces, in their order."""
    return [parse_trace_for_evaluation(trace, filter_infrastructure, mapping) for trace in traces]


def parse_trace_for_evaluation(
    otel: OTELTrace, filter_infrastructure: bool = True, mapping: Mapping | None = None
) -> Trace:
    """One trace as evaluators read it; the given one stays as it is.

    `filter_infrastructure=False` keeps each of the framework's own spans as a ChainSpan. `mapping` says where
    attributes of one's own stand. TraceParseError when the trace could not be decoded.
    """
    if otel.defect:
        raise TraceParseError(f"trace can't be parsed: {otel.defect}")
    wire = wire_trace(otel)
    trace_id, cut = otel.traceId, otel.cut
    brief = brief_of(otel) if mapping is None and filter_infrastructure else None
    if brief is not None:
        return deferred_trace(brief, trace_id, cut, lambda: _whole_trace(trace_id, cut, wire))
    return _whole_trace(trace_id, cut, wire, filter_infrastructure, mapping)


def _whole_trace(
    trace_id: str, cut: bool, wire: WireTrace, filter_infrastructure: bool = True, mapping: Mapping | None = None
) -> Trace:
    """The general way: all spans, for any trace."""
    nodes, orphans = build_nodes(wire.spans or (), mapping)
    calls = read_calls(nodes)
    if any(node.kind == "agent" for node in nodes):
        _give_to_agents(calls)
    told = told_by(nodes) if not calls else None
    extra = build_tools(nodes, [told.node] if told is not None else calls)
    roots = [node for node in nodes if node.parent is None]
    trace = Trace(trace_id, root_missing=orphans > 0 and not any(node.is_root for node in nodes), cut=cut)
    trace.timestamp = moment(wire.startTime) or next((node.start for node in nodes if node.start is not None), None)
    trace.input = trace_input(roots, calls, plain(wire.input))
    trace.output = trace_output(roots, calls, plain(wire.output))
    trace.spans = _build_spans(nodes, extra, calls, filter_infrastructure)
    trace.metrics = _metrics(wire, nodes, calls, told)
    trace.content_captured = bool(trace.input or trace.output) or _any_text(trace.spans) or _embedded_text(nodes)
    trace.initialization_only = _only_creates(nodes)
    reason = failure(nodes, roots, trace.output, trace.content_captured)
    trace.failed, trace.failure_reason = reason is not None, reason or ""
    trace.notes = _notes(trace, nodes, orphans, extra)
    _untie(nodes)
    return trace


def _untie(nodes: list[Node]) -> None:
    """Leave no reference cycle: what spans still read lazily, and with it their whole page, goes with the trace."""
    for node in nodes:
        node.parent = node.span = None


def _only_creates(nodes: list[Node]) -> bool:
    return any(node.creates_agent for node in nodes) and not any(node.kind in SEMANTIC_KINDS for node in nodes)


def _build_spans(nodes: list[Node], extra: list[ToolSpan], calls: list[Node], filtered: bool) -> list[Span]:
    kept = kept_nodes(nodes) if filtered else {node: node.parent for node in nodes}
    ids = {node.id: parent for node, parent in kept.items()}
    spans: list[Span] = []
    for node, parent in kept.items():
        span = _build(node, parent.id if parent is not None else None)
        spans.append(span)
    node_of = {node.id: node for node in nodes} if extra else {}
    for span in extra:
        spans.append(span)
        above = span.parent_span_id
        while above is not None and above not in ids:
            step = node_of[above].parent
            above = step.id if step is not None else None
        span.parent_span_id = above
    if extra:
        spans.sort(key=_start_key)
    return spans


def _start_key(span: Span) -> tuple[bool, datetime | None]:
    return span.start_time is None, span.start_time


def _build(node: Node, parent_id: str | None) -> Span:
    if node.kind == "llm":
        node.span = build_llm_span(node, parent_id)
    elif node.kind == "tool" and node.span is not None:
        node.span.parent_span_id = parent_id
    elif node.kind == "agent":
        node.span = _agent_span(node, parent_id)
    elif node.kind == "retriever":
        node.span = _retriever_span(node, parent_id)
    else:
        node.span = ChainSpan(node.id, parent_id, node.start, node.name)
    return node.span


def _agent_span(node: Node, parent_id: str | None) -> AgentSpan:
    model = node.words("model") or next((found for call in node.inside if (found := call.words("model"))), "")
    return lazily(
        AgentSpan,
        lambda: _agent_details(node),
        span_id=node.id,
        parent_span_id=parent_id,
        start_time=node.start,
        name=agent_name(node),
        model=model,
    )


def _agent_details(node: Node) -> dict[str, Any]:
    inside = node.inside
    limit = node.read("max_iterations")
    usage = sum_usage(inside)
    return {
        "framework": node.words("framework"),
        "system_prompt": node.words("system_prompt")
        or next((found for call in inside if (found := system_text(call.messages))), ""),
        "available_tools": node.read("tools") or next((found for call in inside if (found := call.read("tools"))), []),
        "max_iterations": int(number(limit)) if limit is not None else None,
        "input": asked_by(node) or next((found for call in inside if (found := last_user(call.messages))), ""),
        "output": last_of_joined(answered_by(node), inside)
        or ("" if node.failed else next((c.text for c in reversed(inside) if c.text), "")),
        "metrics": AgentMetrics(
            node.duration_ms,
            node.failed,
            node.error_type,
            node.error_message,
            usage or TokenUsage(),
            duration_known=node.duration_known,
            usage_known=usage is not None,
        ),
    }


def _give_to_agents(calls: list[Node]) -> None:
    for call in calls:
        for above in call.ancestors():
            if above.kind == "tool":
                break
            if above.kind == "agent":
                if above.inside:
                    above.inside.append(call)
                else:
                    above.inside = [call]


def _retriever_span(node: Node, parent_id: str | None) -> RetrieverSpan:
    documents = documents_of(node.read("documents"))
    top_k = node.read("top_k")
    metrics = RetrieverMetrics(
        node.duration_ms,
        node.failed,
        node.error_type,
        node.error_message,
        len(documents),
        duration_known=node.duration_known,
    )
    return RetrieverSpan(
        node.id,
        parent_id,
        node.start,
        node.words("query"),
        documents,
        node.words("vector_db"),
        int(number(top_k)) if top_k is not None else 0,
        metrics,
    )


def sum_usage(nodes: Iterable[Node]) -> TokenUsage | None:
    known = [usage for node in nodes if (usage := node.usage) is not None]
    if not known:
        return None
    return TokenUsage(
        sum([usage.input_tokens for usage in known]),
        sum([usage.output_tokens for usage in known]),
        sum([usage.total_tokens for usage in known]),
        sum([usage.cache_read_tokens for usage in known]),
    )


def _metrics(wire: WireTrace, nodes: list[Node], calls: list[Node], told: Told | None) -> TraceMetrics:
    embeddings = [node for node in nodes if node.kind == "embedding"]
    for node in embeddings:
        node.usage = node.read("usage")
    usage = sum_usage((*calls, *embeddings)) or (told.usage if told is not None else None)
    duration, known = _duration(wire, nodes)
    status = wire.status
    counted = status.get("errorCount") if isinstance(status, dict) else None
    errors = int(number(counted)) if counted is not None else sum(1 for node in nodes if node.failed)
    return TraceMetrics(duration, usage or TokenUsage(), errors, errors > 0, usage is not None, known)


def _duration(wire: WireTrace, nodes: list[Node]) -> tuple[float, bool]:
    nanos = number(wire.durationInNanos)
    if nanos > 0:
        return nanos / 1e6, True
    start, end = moment(wire.startTime), moment(wire.endTime)
    if start is None or end is None:
        start = min((node.start for node in nodes if node.start is not None), default=None)
        end = max((node.end for node in nodes if node.end is not None), default=None)
    if start is not None and end is not None:
        return max(0.0, (end - start).total_seconds() * 1000), True
    longest = max((node.duration_ms for node in nodes), default=0.0)
    return longest, longest > 0


def _any_text(spans: list[Span]) -> bool:
    for span in spans:
        if isinstance(span, ToolSpan) and (span.arguments or span.result not in (None, "", {}, [])):
            return True
        if not isinstance(span, ToolSpan | ChainSpan | RetrieverSpan | AgentSpan) and (
            span.output or any(message.content for message in span.input)
        ):
            return True
        if isinstance(span, AgentSpan) and (span.input or span.output):
            return True
        if isinstance(span, RetrieverSpan) and (span.query or span.documents):
            return True
    return False


def _embedded_text(nodes: list[Node]) -> bool:
    return any(message.content for node in nodes if node.kind == "embedding" for message in node.read("messages") or ())


def _notes(trace: Trace, nodes: list[Node], orphans: int, extra: list[ToolSpan]) -> list[str]:
    notes = [node.dropped for node in nodes if node.dropped]
    if orphans:
        notes.append(f"{orphans} spans have a parent that is not in the trace; they stand as roots")
    if trace.root_missing:
        notes.append("the root span is missing; the earliest spans are taken as roots")
    notes += [f"no span recorded tool {span.name!r}; it is taken from the model's request" for span in extra]
    if trace.initialization_only:
        notes.append("the trace only creates an agent; none ran")
    if not trace.content_captured:
        notes.append("no text was recorded anywhere: content capture is off")
    return notes
