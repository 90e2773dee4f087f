"""What an agent did, as evaluators of the path read it: steps in order, and the agent's own figures."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from amp_evaluation.trace._lazy import Lazy
from amp_evaluation.trace._spans import AgentMetrics, LLMSpan, ToolDefinition, clip


@dataclass
class ToolCallInfo:
    """A tool call in a step of reasoning."""

    id: str = ""
    name: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass
class UserInputStep:
    """What a person, or whoever called the agent, said to it."""

    content: str = ""


@dataclass
class LLMReasoningStep:
    """A reply of the model. `is_response`: it calls no tool, so it answers."""

    content: str = ""
    tool_calls: list[ToolCallInfo] = field(default_factory=list)
    llm_span_id: str | None = None
    is_response: bool | None = None

    def __post_init__(self) -> None:
        if self.is_response is None:
            self.is_response = not self.tool_calls


@dataclass
class ToolExecutionStep:
    """One tool execution, or a retrieval under the name "retrieval".

    `error` is the message, else the type, else "Error"; None when it went well. `nested_traces` holds what ran inside
    the tool: its own LLM calls, and agents with their steps.
    """

    tool_name: str = ""
    tool_call_id: str | None = None
    tool_input: Any = None
    tool_output: Any = None
    content: str = ""
    error: str | None = None
    duration_ms: float | None = None
    nested_traces: list[LLMSpan | AgentTrace] = field(default_factory=list)


MAX_STEP_LINES = 500  # as many as of spans

AgentStep = UserInputStep | LLMReasoningStep | ToolExecutionStep


@dataclass
class AgentTrace(Lazy):
    """One agent's part of a trace: its goal, its answer, and its steps in order."""

    agent_id: str
    input: str = field(default_factory=str)
    output: str = field(default_factory=str)
    steps: list[AgentStep] = field(default_factory=list)
    agent_name: str = ""
    framework: str = field(default_factory=str)
    model: str = field(default_factory=str)
    system_prompt: str = field(default_factory=str)
    available_tools: list[ToolDefinition] = field(default_factory=list)
    metrics: AgentMetrics = field(default_factory=AgentMetrics)

    def tool_runs(self) -> list[tuple[str, bool]]:
        """(name, failed) of the tool executions, in order."""
        held = self.__dict__
        if "steps" not in held and "_tools" in held:
            return [(name, False) for name in held["_tools"]]
        return [(step.tool_name, bool(step.error)) for step in self.get_tool_steps()]

    def iterations(self) -> int:
        """How many replies the model gave in this run: those that only a history tells of were given in earlier ones,
        or twice, and count where there is no other."""
        held = self.__dict__
        if "steps" not in held and "_calls" in held:
            count: int = held["_calls"]
            return count
        steps = self.get_llm_steps()
        return sum(1 for step in steps if step.llm_span_id) or len(steps)

    def get_tool_steps(self) -> list[ToolExecutionStep]:
        """Tools that ran in this agent itself, retrievals included; what ran inside them is in `nested_traces`."""
        return [step for step in self.steps if isinstance(step, ToolExecutionStep)]

    def get_llm_steps(self) -> list[LLMReasoningStep]:
        """The model's replies, in order."""
        return [step for step in self.steps if isinstance(step, LLMReasoningStep)]

    def get_error_steps(self) -> list[ToolExecutionStep]:
        """Tools that failed; failures of the model are not among them."""
        return [step for step in self.steps if isinstance(step, ToolExecutionStep) and step.error]

    def get_sub_agents(self) -> list[AgentTrace]:
        """The agents that ran inside this agent's tools."""
        return [
            nested for step in self.get_tool_steps() for nested in step.nested_traces if isinstance(nested, AgentTrace)
        ]

    def format_steps(self) -> str:
        """One line a step, each part cut; "(no steps recorded)" when there are none."""
        lines = [f"{n}. {_line(step)}" for n, step in enumerate(self.steps[:MAX_STEP_LINES], 1)]
        if len(self.steps) > MAX_STEP_LINES:
            lines.append(f"… {len(self.steps) - MAX_STEP_LINES} more steps")
        return "\n".join(lines) or "(no steps recorded)"


def _line(step: AgentStep) -> str:
    if isinstance(step, UserInputStep):
        return f"[user] {clip(step.content, 500)}"
    if isinstance(step, LLMReasoningStep):
        calls = ", ".join(
            f"{clip(call.name, 100)}({clip(as_text(call.arguments), 200)})" for call in step.tool_calls[:20]
        )
        said = f"[llm] {clip(step.content, 500)}".rstrip()
        return f"{said} calls {calls}" if calls else said
    mark = f" ERROR: {clip(step.error, 200)}" if step.error else ""
    inside = f" (inside: {len(step.nested_traces)} nested)" if step.nested_traces else ""
    shown = clip(step.content or as_text(step.tool_output), 500)
    return f"[tool] {clip(step.tool_name, 100)}({clip(as_text(step.tool_input), 200)}) -> {shown}{mark}{inside}"


TRANSFER = re.compile(r"(?:transfer|hand_?off|delegate)_?(?:back_)?to_", re.IGNORECASE)
"""How the tools are called with which a model hands over to another agent."""


def as_text(value: Any) -> str:
    """Text as it is, nothing as "", anything else as JSON: never a Python repr of a dict or list."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError, TypeError):
        return str(value)
