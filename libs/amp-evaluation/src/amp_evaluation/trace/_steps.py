"""An agent's steps and figures, from the spans below it.

Histories repeat: each LLM call sends again what was said before. A message is a step once for each time it was said,
so a user who says "ok" twice has two steps. Messages of one trace that the parser made from equal bytes are the same
object, which makes "this input starts with the last one" a comparison of pointers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from amp_evaluation.trace._agents import (
    TRANSFER,
    AgentStep,
    AgentTrace,
    LLMReasoningStep,
    ToolCallInfo,
    ToolExecutionStep,
    UserInputStep,
    as_text,
)
from amp_evaluation.trace._lazy import lazily
from amp_evaluation.trace._said import Said
from amp_evaluation.trace._spans import (
    AgentMetrics,
    AgentSpan,
    AssistantMessage,
    LLMSpan,
    Message,
    RetrieverSpan,
    Span,
    ToolCall,
    ToolMessage,
    ToolSpan,
    TraceMetrics,
    UserMessage,
)
from amp_evaluation.trace._tree import Children, children_of, own_spans

MAX_NESTING = 20
"""Agents inside tools of agents …: deeper ones have no view of their own, so that no trace exhausts the stack."""


class TraceLike(Protocol):
    trace_id: str
    input: str
    output: str
    spans: list[Span]
    metrics: TraceMetrics


def reply_text(call: LLMSpan) -> str:
    """The reply's text as the next history will hold it: "" where `output` only spells the calls out."""
    calls = call._tool_calls
    said: str | None = call.__dict__.get("_said")
    if said is not None and "output" not in call.__dict__:
        return said
    text = call.output
    return "" if calls and text == spelled_calls(calls) else text


def spelled_calls(calls: Sequence[ToolCall]) -> str:
    """A line per call: what the output says when the model only calls tools."""
    return "\n".join(f"{call.name}({as_text(call.arguments)})" for call in calls)


def new_messages(calls: Iterable[LLMSpan]) -> list[list[Message]]:
    """For each call the messages of its input that no earlier call sent or got as its reply."""
    said = Said()
    found = []
    for call in calls:
        found.append([call.input[position] for position in said.fresh(call.input)])
        said.say(reply_text(call), call.tool_calls)
    return found


def build_agent_trace(trace: TraceLike, agent_id: str, depth: int = 0) -> AgentTrace:
    """The view of one agent span; with another id, the whole trace as one agent's run."""
    spans = trace.spans
    agent = next((span for span in spans if span.span_id == agent_id and isinstance(span, AgentSpan)), None)
    children = children_of(spans)
    own = own_spans(spans, agent.span_id if agent else None, children=children)
    steps = _Builder(trace, own, children, depth).steps()
    llm_calls = [span for span in own if isinstance(span, LLMSpan)]
    if agent is None:
        return _whole_trace(trace, agent_id, llm_calls, steps)
    # The model is part of every item's context: the rest need not be read for it.
    model = agent.model or next((call.model for call in llm_calls if call.model), "")
    return lazily(
        AgentTrace,
        lambda: _details(agent),
        agent_id=agent_id,
        steps=steps,
        agent_name=agent.name,
        model=model,
    )


def _details(agent: AgentSpan) -> dict[str, Any]:
    return {
        "input": agent.input,
        "output": agent.output,
        "framework": agent.framework,
        "system_prompt": agent.system_prompt,
        "available_tools": agent.available_tools,
        "metrics": agent.metrics,
    }


def _whole_trace(trace: TraceLike, agent_id: str, calls: list[LLMSpan], steps: list[AgentStep]) -> AgentTrace:
    figures = trace.metrics
    first = calls[0] if calls else None
    system = next((message.content for call in calls for message in call.get_system_messages()), "")
    metrics = AgentMetrics(
        figures.total_duration_ms,
        figures.has_errors,
        token_usage=figures.token_usage,
        usage_known=figures.usage_known,
        duration_known=figures.duration_known,
    )
    return AgentTrace(
        agent_id,
        trace.input,
        trace.output,
        steps,
        model=next((call.model for call in calls if call.model), ""),
        system_prompt=system,
        available_tools=first.available_tools if first else [],
        metrics=metrics,
    )


class _Builder:
    def __init__(self, trace: TraceLike, own: list[Span], children: Children, depth: int) -> None:
        self.trace = trace
        self.own = own
        self.depth = depth
        self.tools = [span for span in own if type(span) is ToolSpan]
        self.by_call = {span.tool_call_id: span for span in self.tools if span.tool_call_id}
        self._paused = _ran_after_a_pause(own)
        self.names: dict[str, str] = {}
        self.made: list[AgentStep] = []
        self._open: list[str] = []
        """Calls of the last reply that no tool message answered yet."""
        self._children = children

    def steps(self) -> list[AgentStep]:
        said = Said()
        spent: set[str] = set()
        for span in self.own:
            if isinstance(span, LLMSpan):
                self._take_input(span, said, spent)
                self._take_reply(span, said)
            elif isinstance(span, ToolSpan) and span.tool_call_id not in self._paused:
                self._place(span)
            elif isinstance(span, RetrieverSpan):
                self.made.append(_retrieval(span))
        return self.made

    def _take_input(self, span: LLMSpan, said: Said, spent: set[str]) -> None:
        fresh = said.fresh(span.input, self.by_call.keys() - self._paused if self._paused else self.by_call)
        if not fresh:
            return
        last_user = -2
        for position in fresh:
            message = span.input[position]
            if isinstance(message, UserMessage):
                if message.content:
                    self.made.append(UserInputStep(message.content))
            elif isinstance(message, AssistantMessage):
                self._reason(message.content, message.tool_calls, None)
            elif isinstance(message, ToolMessage):
                if last_user == -2:
                    last_user = max((n for n, m in enumerate(span.input) if isinstance(m, UserMessage)), default=-1)
                self._take_tool_message(message, position < last_user, spent)

    def _take_reply(self, span: LLMSpan, said: Said) -> None:
        text, calls = reply_text(span), span._tool_calls
        said.say(text, calls)
        self._reason(text, calls, span.span_id)

    def _reason(self, content: str, calls: list[ToolCall], span_id: str | None) -> None:
        for call in calls:
            if call.id:
                self.names[call.id] = call.name
        if calls:
            self._open = [call.id for call in calls if call.id]
        infos = [ToolCallInfo(call.id, call.name, call.arguments) for call in calls]
        self.made.append(LLMReasoningStep(content, infos, span_id))

    def _take_tool_message(self, message: ToolMessage, earlier_turn: bool, spent: set[str]) -> None:
        """A tool's answer as a later call sent it: it completes the step of its span, or is a step of its own."""
        call_id = message.tool_call_id
        if call_id and call_id not in self.names and self._open:  # an id that no call has: answers come in order
            call_id = self._open.pop(0)
        elif call_id in self._open:
            self._open.remove(call_id)
        if call_id in self._paused:
            self._paused.remove(call_id)
            self._place(self.by_call[call_id])
        if call_id and (call_id in self.by_call or call_id in spent):
            return
        name = self.names.get(call_id, "")
        match = (
            next((span for span in self.tools if span.name == name and not span.tool_call_id), None) if name else None
        )
        if match is not None or (not call_id and self.tools) or TRANSFER.match(name):
            return
        if earlier_turn and not self.names.get(call_id):
            return
        spent.add(call_id)
        if not earlier_turn:
            self.made.append(ToolExecutionStep(name, call_id or None, None, message.content, message.content))

    def _place(self, span: ToolSpan) -> None:
        metrics = span.metrics
        error = (metrics.error_message or metrics.error_type or "Error") if metrics.error else None
        self.made.append(
            ToolExecutionStep(
                span.name,
                span.tool_call_id or None,
                span.arguments,
                span.result,
                as_text(span.result),
                error,
                metrics.duration_ms,
                self._nested(span),
            )
        )

    def _nested(self, tool: ToolSpan) -> list[LLMSpan | AgentTrace]:
        """LLM calls and agents directly under the tool: what lies inside an agent is in that agent's own view."""
        if tool.span_id not in self._children or self.depth >= MAX_NESTING:
            return []
        found: list[LLMSpan | AgentTrace] = []
        stack = list(reversed(self._children.get(tool.span_id, ())))
        seen: set[int] = set()
        while stack:
            span = stack.pop()
            if id(span) in seen:
                continue
            seen.add(id(span))
            if isinstance(span, LLMSpan):
                found.append(span)
            elif isinstance(span, AgentSpan):
                found.append(build_agent_trace(self.trace, span.span_id, self.depth + 1))
            else:
                stack.extend(reversed(self._children.get(span.span_id, ())))
        return found


def _ran_after_a_pause(own: list[Span]) -> set[str]:
    """Call ids of tools that ran before the first model call, which shows their answers in its history.

    The run went on where an earlier one waited for a person: the tools' place is where the history has them.
    """
    early: list[str] = []
    for span in own:
        if isinstance(span, LLMSpan):
            shown = (
                {message.tool_call_id for message in span.input if isinstance(message, ToolMessage)} if early else ()
            )
            times = Counter(early)
            return {call_id for call_id in early if call_id in shown and times[call_id] == 1}
        if isinstance(span, ToolSpan) and span.tool_call_id:
            early.append(span.tool_call_id)
    return set()


def _retrieval(span: RetrieverSpan) -> ToolExecutionStep:
    metrics = span.metrics
    error = (metrics.error_message or metrics.error_type or "Error") if metrics.error else None
    text = "\n".join(document.content for document in span.documents)
    return ToolExecutionStep("retrieval", None, {"query": span.query}, span.documents, text, error, metrics.duration_ms)
