"""The items of a trace at each level, built once a trace and shared by all evaluators."""

from __future__ import annotations

from typing import NamedTuple

from amp_evaluation.models import EvaluationLevel, SpanContext
from amp_evaluation.trace.models import AgentSpan, AgentTrace, LLMSpan, Span, Trace

__all__ = ["EvaluationItem", "Target", "items_of"]

Target = Trace | AgentTrace | LLMSpan


class EvaluationItem(NamedTuple):
    """One thing that an evaluator scores, and which span it is; None for a whole trace."""

    target: Target
    span_context: SpanContext | None


_TRACE, _AGENT = EvaluationLevel.TRACE, EvaluationLevel.AGENT  # an enum's attribute costs as much as a call
_new_item = tuple.__new__

# the list of spans that the items were made of, its length then, and the items by level
_Kept = tuple[list[Span] | None, int, dict[EvaluationLevel, list[EvaluationItem]]]


def items_of(trace: Trace, level: EvaluationLevel) -> list[EvaluationItem]:
    """The trace itself, each of its agents, or each of its LLM calls; the list is shared, not to be changed."""
    if level is EvaluationLevel.TRACE:
        return [
            EvaluationItem(trace, None)
        ]  # not kept: a trace that refers to itself would have to wait for the collector
    spans: list[Span] | None = trace.__dict__.get("spans")  # None while nobody has asked for them
    count = len(spans) if spans is not None else 0
    kept: _Kept | None = trace.__dict__.get("_items")
    if kept is None or kept[0] is not spans or kept[1] != count:
        kept = trace.__dict__["_items"] = (spans, count, {})
    items = kept[2].get(level)
    if items is None:
        items = kept[2][level] = _agents(trace) if level is _AGENT else _llm_calls(trace)
    return items


def _agents(trace: Trace) -> list[EvaluationItem]:
    """One item an agent; without any, the whole trace as one agent whose id is the root span's."""
    only = trace.only_agent()
    if only is not None:
        return [EvaluationItem(only, SpanContext(only.agent_id, only.agent_name or None, only.model or None, None))]
    agents = trace.get_agents()
    if not agents:
        return [_agent_item(trace, _root_id(trace), None)]
    return [_agent_item(trace, agent.span_id, agent) for agent in agents]


def _agent_item(trace: Trace, span_id: str, agent: AgentSpan | None) -> EvaluationItem:
    view = trace._create_agent_trace(span_id)
    name = agent.name if agent is not None else view.agent_name
    return EvaluationItem(view, SpanContext(span_id, name or None, view.model or None, None))


def _root_id(trace: Trace) -> str:
    """The first span whose parent isn't in the trace; the trace's own id when it has no span."""
    known = {span.span_id for span in trace.spans}
    for span in trace.spans:
        if span.parent_span_id not in known or span.parent_span_id == span.span_id:
            return span.span_id
    return trace.spans[0].span_id if trace.spans else trace.trace_id


def _llm_calls(trace: Trace) -> list[EvaluationItem]:
    return [
        EvaluationItem(span, SpanContext(span.span_id, None, span.model or None, span.vendor or None))
        for span in trace.get_llm_calls()
    ]
