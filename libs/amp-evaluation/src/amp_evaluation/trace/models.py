"""The trace as evaluators see it.

Everything public about traces is importable from here; spans, messages and steps are written in the private files next
to this one. A `Trace` can be built by hand (tests, experiments) or comes from `parse_trace_for_evaluation`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from amp_evaluation.trace._agents import (
    AgentStep,
    AgentTrace,
    LLMReasoningStep,
    ToolCallInfo,
    ToolExecutionStep,
    UserInputStep,
)
from amp_evaluation.trace._lazy import Lazy
from amp_evaluation.trace._spans import (
    AgentMetrics,
    AgentSpan,
    AssistantMessage,
    ChainSpan,
    LLMMetrics,
    LLMSpan,
    Message,
    RetrievedDoc,
    RetrieverMetrics,
    RetrieverSpan,
    Span,
    SpanMetrics,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolDefinition,
    ToolMessage,
    ToolMetrics,
    ToolSpan,
    TraceMetrics,
    UserMessage,
)
from amp_evaluation.trace._steps import build_agent_trace, new_messages
from amp_evaluation.trace._texts import format_evidence, format_spans
from amp_evaluation.trace._tree import own_spans, subtree
from amp_evaluation.trace.atif import trace_to_atif

__all__ = [
    "AgentMetrics",
    "AgentSpan",
    "AgentStep",
    "AgentTrace",
    "AssistantMessage",
    "ChainSpan",
    "LLMMetrics",
    "LLMReasoningStep",
    "LLMSpan",
    "Message",
    "RetrievedDoc",
    "RetrieverMetrics",
    "RetrieverSpan",
    "Span",
    "SpanMetrics",
    "SystemMessage",
    "TokenUsage",
    "ToolCall",
    "ToolCallInfo",
    "ToolDefinition",
    "ToolExecutionStep",
    "ToolMessage",
    "ToolMetrics",
    "ToolSpan",
    "Trace",
    "TraceMetrics",
    "UserInputStep",
    "UserMessage",
]


@dataclass
class Trace(Lazy):
    """One run of an agent: what was asked, what was answered, and the spans between, ordered by start time.

    Fields after `timestamp` say what the parser found: `failed` with its reason, `initialization_only` (an agent was
    created, none ran), `content_captured` (False: no text anywhere in the trace), `root_missing` (the root span was
    never exported), `cut` (the source shortened the trace), and `notes` on what was ambiguous or left out, and why.
    """

    trace_id: str
    input: str = ""
    output: str = ""
    spans: list[Span] = field(default_factory=list)
    metrics: TraceMetrics = field(default_factory=TraceMetrics)
    timestamp: datetime | None = None
    failed: bool = False
    failure_reason: str = ""
    initialization_only: bool = False
    content_captured: bool = True
    root_missing: bool = False
    notes: list[str] = field(default_factory=list)
    cut: bool = False
    _views: dict[str, AgentTrace] = field(default_factory=dict, init=False, repr=False, compare=False)
    _views_of: tuple[int, int] = field(default=(0, 0), init=False, repr=False, compare=False)

    def get_llm_calls(
        self, include_nested: bool = True, agent_span_id: str | None = None, deduplicate_messages: bool = False
    ) -> list[LLMSpan]:
        """The LLM calls in time order.

        `agent_span_id` keeps to that agent's subtree. `include_nested=False` leaves out what runs inside tools and,
        when an agent is named, inside the agents below it. `deduplicate_messages` gives copies whose input holds
        each message of a history once.
        """
        calls = [span for span in self._scope(include_nested, agent_span_id) if isinstance(span, LLMSpan)]
        if not deduplicate_messages:
            return calls
        return [replace(call, input=fresh) for call, fresh in zip(calls, new_messages(calls), strict=True)]

    def get_tool_calls(self, include_nested: bool = True, agent_span_id: str | None = None) -> list[ToolSpan]:
        """The tool executions in time order; the arguments mean the same as for `get_llm_calls`."""
        return [span for span in self._scope(include_nested, agent_span_id) if isinstance(span, ToolSpan)]

    def get_tool_steps(self, include_nested: bool = True, agent_span_id: str | None = None) -> list[ToolSpan]:
        """Another name of `get_tool_calls`."""
        return self.get_tool_calls(include_nested, agent_span_id)

    def get_retrievals(self, agent_span_id: str | None = None) -> list[RetrieverSpan]:
        return [span for span in self._scope(True, agent_span_id) if isinstance(span, RetrieverSpan)]

    def get_agents(self) -> list[AgentSpan]:
        return [span for span in self.spans if isinstance(span, AgentSpan)]

    def create_agent_trace(self, agent_span_id: str) -> AgentTrace:
        """The run of one agent; any other id gives the whole trace as one agent's run.

        Built once a span and shared by all who ask.
        """
        now = (id(self.spans), len(self.spans))
        if self._views_of != now:
            self._views, self._views_of = {}, now
        view = self._views.get(agent_span_id)
        if view is None:
            view = self._views[agent_span_id] = build_agent_trace(self, agent_span_id)
        return view

    def only_agent(self) -> AgentTrace | None:
        """The view of the one agent, where the parser knew it before any span was built and none was asked for."""
        held = self.__dict__
        return held.get("_agent") if "spans" not in held else None

    def _create_agent_trace(self, agent_span_id: str) -> AgentTrace:
        return self.create_agent_trace(agent_span_id)

    def to_atif(self) -> dict[str, Any]:
        """The run as an ATIF trajectory (Agent Trajectory Interchange Format 1.8), ready for `json.dumps`."""
        return trace_to_atif(self)

    def format_spans(self) -> str:
        """The tree of spans, one line each, parts cut at 100 to 500 characters; "(no spans)" without any."""
        return format_spans(self.spans)

    def format_evidence(self) -> str:
        """What tools and retrievals brought: ten tools, five retrievals of three documents at most."""
        return format_evidence(self.get_tool_calls(), self.get_retrievals())

    def _scope(self, include_nested: bool, agent_span_id: str | None) -> Iterable[Span]:
        if include_nested:
            return self.spans if agent_span_id is None else subtree(self.spans, agent_span_id)
        if agent_span_id is None:
            return own_spans(self.spans, None)
        return own_spans(self.spans, agent_span_id, stop=(ToolSpan, AgentSpan))
