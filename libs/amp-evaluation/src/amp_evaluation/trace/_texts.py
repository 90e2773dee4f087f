"""Bounded texts of a trace, for prompts: one line a span, parts cut, never more than a judge can read."""

from __future__ import annotations

from collections.abc import Sequence

from amp_evaluation.trace._agents import as_text
from amp_evaluation.trace._spans import AgentSpan, ChainSpan, LLMSpan, RetrieverSpan, Span, ToolSpan, clip
from amp_evaluation.trace._tree import children_of, walk

MAX_TOOLS, MAX_RETRIEVALS, MAX_DOCUMENTS = 10, 5, 3
MAX_SPAN_LINES = 500


def format_spans(spans: Sequence[Span]) -> str:
    lines = [f"{'  ' * min(depth, 40)}{_line(span)}" for depth, span in walk(children_of(spans), None)]
    if len(lines) > MAX_SPAN_LINES:
        lines[MAX_SPAN_LINES:] = [f"… {len(lines) - MAX_SPAN_LINES} more spans"]
    return "\n".join(lines) or "(no spans)"


def _line(span: Span) -> str:
    if isinstance(span, ChainSpan):
        return f"[chain] {clip(span.name, 100)}"
    metrics = span.metrics
    mark = ""
    if metrics.error:
        mark = f" ERROR: {clip(metrics.error_message or metrics.error_type or 'Error', 200)}"
    if isinstance(span, LLMSpan):
        return f"[llm] {clip(span.model, 100)}{mark} -> {clip(span.output, 300)}"
    if isinstance(span, ToolSpan):
        shown = clip(as_text(span.result), 300)
        return f"[tool] {clip(span.name, 100)}({clip(as_text(span.arguments), 200)}){mark} -> {shown}"
    if isinstance(span, AgentSpan):
        return f"[agent] {clip(span.name, 100)}{mark}: {clip(span.input, 200)} -> {clip(span.output, 300)}"
    return f"[retriever] {clip(span.query, 200)}{mark} -> {len(span.documents)} documents"


def format_evidence(tools: Sequence[ToolSpan], retrievals: Sequence[RetrieverSpan]) -> str:
    lines = []
    for tool in tools[:MAX_TOOLS]:
        error = tool.metrics.error_message or tool.metrics.error_type or "Error"
        shown = (
            f"ERROR: {clip(error, 500)}" if tool.metrics.error and not tool.result else clip(as_text(tool.result), 500)
        )
        lines.append(f"[tool] {clip(tool.name, 100)}({clip(as_text(tool.arguments), 200)}): {shown}")
    for retrieval in retrievals[:MAX_RETRIEVALS]:
        lines.append(f"[retrieval] {clip(retrieval.query, 200)}")
        lines += [f"  - {clip(document.content, 500)}" for document in retrieval.documents[:MAX_DOCUMENTS]]
    left = max(0, len(tools) - MAX_TOOLS) + max(0, len(retrievals) - MAX_RETRIEVALS)
    if left:
        lines.append(f"… {left} more")
    return "\n".join(lines) or "(no evidence available)"
