"""A trace as a trajectory in the Agent Trajectory Interchange Format (ATIF-v1.8, as the package harbor has it).

The run is the root trajectory, with the steps of all agents that took turns in it (`extra.agent` names them where there
are several); what agents and models did inside a tool is a trajectory of its own that the tool's observation refers to.
What a trace doesn't tell is left out: costs, reasoning; the agent's version is "unknown", as the format insists on one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, TypeAlias

from amp_evaluation._time import format_rfc3339
from amp_evaluation.trace._agents import (
    AgentStep,
    AgentTrace,
    LLMReasoningStep,
    ToolCallInfo,
    ToolExecutionStep,
    UserInputStep,
    as_text,
)
from amp_evaluation.trace._spans import AgentSpan, LLMSpan, Span, TokenUsage, ToolDefinition, ToolSpan, TraceMetrics
from amp_evaluation.trace._steps import build_agent_trace
from amp_evaluation.trace._tree import own_spans

SCHEMA_VERSION: Final = "ATIF-v1.8"
UNKNOWN: Final = "unknown"

Json: TypeAlias = dict[str, Any]


class TraceLike(Protocol):
    """What of a trace is read here."""

    trace_id: str
    input: str
    output: str
    spans: list[Span]
    metrics: TraceMetrics
    timestamp: datetime | None
    failed: bool
    failure_reason: str
    notes: list[str]

    def create_agent_trace(self, agent_span_id: str) -> AgentTrace:
        """The view of one agent, or of the whole trace as one agent's run."""


def trace_to_atif(trace: TraceLike) -> Json:
    """The trajectory as JSON-ready dicts: valid for `harbor.models.trajectories.Trajectory`."""
    return _Writer(trace).root()


@dataclass
class _Part:
    """Some spans of a trace, to be seen as one agent's run."""

    trace_id: str
    spans: list[Span]
    metrics: TraceMetrics
    input: str = ""
    output: str = ""


class _Writer:
    def __init__(self, trace: TraceLike) -> None:
        self.trace = trace
        self.calls = {span.span_id: span for span in trace.spans if isinstance(span, LLMSpan)}
        self.starts = {span.span_id: span.start_time for span in trace.spans if isinstance(span, AgentSpan)}
        self.speakers = _speakers(trace.spans)
        self.names: set[str] = set()

    def root(self) -> Json:
        trace = self.trace
        found = self.trajectory(trace.create_agent_trace(_main_agent(trace.spans)), trace.trace_id, trace.timestamp)
        found["session_id"] = trace.trace_id
        found["final_metrics"] = _totals(trace.metrics.token_usage, trace.metrics.usage_known, found["steps"])
        notes = [f"The run failed: {trace.failure_reason}"] if trace.failed else []
        if notes or trace.notes:
            found["notes"] = "\n".join([*notes, *trace.notes])
        return found

    def trajectory(self, view: AgentTrace, name: str, start: datetime | None) -> Json:
        """One agent's run."""
        steps = _Steps(self)
        if view.system_prompt:
            steps.add("system", view.system_prompt, start)
        for step in _with_ends(view):
            steps.take(step, start)
            start = None  # only the first has the time of the whole
        found: Json = {
            "schema_version": SCHEMA_VERSION,
            "trajectory_id": self.unique(name),
            "agent": _agent(view),
            "steps": steps.numbered(view.input),
            "final_metrics": _totals(view.metrics.token_usage, view.metrics.usage_known, steps.made),
        }
        if steps.below:
            found["subagent_trajectories"] = steps.below
        return found

    def calls_in_tool(self, step: ToolExecutionStep, calls: list[LLMSpan]) -> Json:
        """What ran inside a tool without an agent around it: model calls, and the tools that they called."""
        tool = _owner(calls[0], {span.span_id: span for span in self.trace.spans}, ToolSpan)
        inside: list[Span] = [*calls]
        if tool is not None:
            inside = own_spans(self.trace.spans, tool.span_id, stop=(ToolSpan, AgentSpan))
        usage = sum((call.metrics.token_usage for call in calls), TokenUsage())
        known = any(call.metrics.usage_known for call in calls)
        part = _Part(self.trace.trace_id, inside, TraceMetrics(token_usage=usage, usage_known=known))
        view = build_agent_trace(part, "")
        view.agent_name = step.tool_name
        return self.trajectory(view, calls[0].span_id, calls[0].start_time)

    def unique(self, name: str) -> str:
        """A trajectory's id; span ids may repeat in a broken trace."""
        wanted, number = name or UNKNOWN, 1
        while wanted in self.names:
            number += 1
            wanted = f"{name or UNKNOWN}-{number}"
        self.names.add(wanted)
        return wanted


class _Steps:
    """The steps of one trajectory."""

    def __init__(self, writer: _Writer) -> None:
        self.writer = writer
        self.made: list[Json] = []
        self.below: list[Json] = []
        self.open: list[tuple[Json, Json]] = []
        """(step, tool call) of calls whose result hasn't come yet."""

    def add(self, source: str, message: str, time: datetime | None, **fields: Any) -> Json:
        step: Json = {"source": source, "message": message, **{k: v for k, v in fields.items() if v is not None}}
        if time is not None:
            step["timestamp"] = format_rfc3339(time)
        self.made.append(step)
        return step

    def take(self, step: AgentStep, time: datetime | None) -> None:
        if isinstance(step, UserInputStep):
            self.add("user", step.content, time)
        elif isinstance(step, LLMReasoningStep):
            self._reply(step)
        else:
            self._result(step)

    def _reply(self, step: LLMReasoningStep) -> None:
        call = self.writer.calls.get(step.llm_span_id or "")
        made = self.add("agent", step.content, call.start_time if call else None)
        if call is not None:
            made["llm_call_count"] = 1
            made |= {"model_name": call.model} if call.model else {}
            made |= {"metrics": _usage(call.metrics.token_usage)} if call.metrics.usage_known else {}
            speaker = self.writer.speakers.get(call.span_id)
            made |= {"extra": {"agent": speaker}} if speaker else {}
        if step.tool_calls:
            made["tool_calls"] = _tool_calls(step.tool_calls, len(self.made))
            self.open += [(made, tool_call) for tool_call in made["tool_calls"]]

    def _result(self, step: ToolExecutionStep) -> None:
        made, call = self._asked(step)
        result: Json = {"source_call_id": call["tool_call_id"], "content": step.content}
        if step.error:
            result["extra"] = {"error": step.error}
        inside = list(self._inside(step))
        if inside:
            result["subagent_trajectory_ref"] = [self._reference(each) for each in inside]
        made.setdefault("observation", {"results": []})["results"].append(result)

    def _asked(self, step: ToolExecutionStep) -> tuple[Json, Json]:
        """The call that this execution answers: by id, else by name, else one in a step of its own: no model asked."""
        found = next((pair for pair in self.open if step.tool_call_id == pair[1]["tool_call_id"]), None)
        if found is None:
            found = next((pair for pair in self.open if step.tool_name == pair[1]["function_name"]), None)
        if found is not None:
            self.open.remove(found)
            return found
        made = self.add("agent", "", None, llm_call_count=0)
        info = ToolCallInfo(step.tool_call_id or "", step.tool_name, _object(step.tool_input))
        made["tool_calls"] = _tool_calls([info], len(self.made))
        return made, made["tool_calls"][0]

    def _inside(self, step: ToolExecutionStep) -> Iterator[Json]:
        for nested in step.nested_traces:
            if isinstance(nested, AgentTrace) and (nested.steps or nested.input or nested.output):
                yield self.writer.trajectory(nested, nested.agent_id, self.writer.starts.get(nested.agent_id))
        calls = [nested for nested in step.nested_traces if isinstance(nested, LLMSpan)]
        if calls:
            yield self.writer.calls_in_tool(step, calls)

    def _reference(self, trajectory: Json) -> Json:
        self.below.append(trajectory)
        return {"trajectory_id": trajectory["trajectory_id"]}

    def numbered(self, request: str) -> list[Json]:
        """The steps with their numbers; there is at least one, as the format wants."""
        if not self.made:
            self.add("user", request, None)
        for number, step in enumerate(self.made, 1):
            step["step_id"] = number
        return self.made


def _with_ends(view: AgentTrace) -> Iterable[AgentStep]:
    """The view's steps, with the request before and the answer behind them where no step says them."""
    steps = list(view.steps)
    if view.input and not any(isinstance(step, UserInputStep) for step in steps):
        steps.insert(0, UserInputStep(view.input))
    if view.output and not any(isinstance(step, LLMReasoningStep) for step in steps):
        steps.append(LLMReasoningStep(view.output, []))
    return steps


def _main_agent(spans: list[Span]) -> str:
    """The agent whose run the trace is: the only outermost one; "" (the whole trace) for several or none."""
    by_id = {span.span_id: span for span in spans}
    tops = [span for span in spans if isinstance(span, AgentSpan) and _owner(span, by_id, AgentSpan, ToolSpan) is None]
    return tops[0].span_id if len(tops) == 1 else ""


def _speakers(spans: list[Span]) -> dict[str, str]:
    """LLM call → name of the agent it belongs to, in a trace with several agents."""
    if sum(isinstance(span, AgentSpan) for span in spans) < 2:
        return {}
    by_id = {span.span_id: span for span in spans}
    owners = {span.span_id: _owner(span, by_id, AgentSpan, ToolSpan) for span in spans if isinstance(span, LLMSpan)}
    return {call: owner.name for call, owner in owners.items() if isinstance(owner, AgentSpan)}


def _owner(span: Span, by_id: dict[str, Span], *kinds: type[Span]) -> Span | None:
    """The nearest span around one that is of these kinds."""
    seen: set[str] = set()
    while span.parent_span_id in by_id and span.parent_span_id not in seen:
        seen.add(span.parent_span_id)
        span = by_id[span.parent_span_id]
        if isinstance(span, kinds):
            return span
    return None


def _agent(view: AgentTrace) -> Json:
    agent: Json = {"name": view.agent_name or "agent", "version": UNKNOWN}
    if view.model:
        agent["model_name"] = view.model
    if view.available_tools:
        agent["tool_definitions"] = [_definition(tool) for tool in view.available_tools]
    if view.framework:
        agent["extra"] = {"framework": view.framework}
    return agent


def _definition(tool: ToolDefinition) -> Json:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": {key: value for key, value in function.items() if value}}


def _tool_calls(calls: list[ToolCallInfo], step: int) -> list[Json]:
    """Calls with ids that are theirs alone within the step."""
    found: dict[str, Json] = {}
    for number, call in enumerate(calls, 1):
        name = call.id if call.id and call.id not in found else f"{call.id or 'call'}_{step}_{number}"
        found[name] = {"tool_call_id": name, "function_name": call.name, "arguments": _object(call.arguments)}
    return list(found.values())


def _object(value: Any) -> Json:
    if isinstance(value, dict):
        return value
    return {} if value is None else {"input": as_text(value)}


def _usage(usage: TokenUsage) -> Json:
    found = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
    return found | ({"cached_tokens": usage.cache_read_tokens} if usage.cache_read_tokens else {})


def _totals(usage: TokenUsage, known: bool, steps: list[Json]) -> Json:
    found: Json = {"total_steps": len(steps)}
    if known:
        found |= {f"total_{key}": value for key, value in _usage(usage).items()}
    return found
