"""The public classes: built positionally, compared, replaced, pickled; bounded texts."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields, replace
from typing import Any

import pytest

from amp_evaluation.trace import models
from amp_evaluation.trace._lazy import lazily
from amp_evaluation.trace._spans import clip
from amp_evaluation.trace.models import (
    AgentMetrics,
    AgentSpan,
    AgentTrace,
    AssistantMessage,
    ChainSpan,
    LLMMetrics,
    LLMReasoningStep,
    LLMSpan,
    RetrievedDoc,
    RetrieverMetrics,
    RetrieverSpan,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolCallInfo,
    ToolDefinition,
    ToolExecutionStep,
    ToolMessage,
    ToolMetrics,
    ToolSpan,
    Trace,
    TraceMetrics,
    UserInputStep,
    UserMessage,
)

ORDER = {
    "TokenUsage": ["input_tokens", "output_tokens", "total_tokens", "cache_read_tokens"],
    "LLMSpan": [
        *("span_id", "parent_span_id", "start_time", "input", "output", "available_tools", "_tool_calls"),
        *("model", "vendor", "temperature", "metrics"),
    ],
    "ToolSpan": ["span_id", "parent_span_id", "start_time", "name", "arguments", "result", "metrics"],
    "RetrieverSpan": [
        *("span_id", "parent_span_id", "start_time", "query", "documents", "vector_db", "top_k", "metrics"),
    ],
    "AgentSpan": [
        *("span_id", "parent_span_id", "start_time", "name", "framework", "model", "system_prompt"),
        *("available_tools", "max_iterations", "input", "output", "metrics"),
    ],
    "ChainSpan": ["span_id", "parent_span_id", "start_time", "name"],
    "AgentTrace": [
        *("agent_id", "input", "output", "steps", "agent_name", "framework", "model", "system_prompt"),
        *("available_tools", "metrics"),
    ],
    "Trace": ["trace_id", "input", "output", "spans", "metrics", "timestamp"],
    "ToolCall": ["id", "name", "arguments"],
    "ToolDefinition": ["name", "description", "parameters"],
    "RetrievedDoc": ["id", "content", "score", "metadata"],
    "ToolExecutionStep": [
        *("tool_name", "tool_call_id", "tool_input", "tool_output", "content", "error", "duration_ms", "nested_traces"),
    ],
    "LLMReasoningStep": ["content", "tool_calls", "llm_span_id", "is_response"],
    "SpanMetrics": ["duration_ms", "error", "error_type", "error_message"],
    "TraceMetrics": ["total_duration_ms", "token_usage", "error_count", "has_errors", "usage_known", "duration_known"],
}


@pytest.mark.parametrize("name", ORDER)
def test_positional_order(name: str) -> None:
    kind = getattr(models, name)
    values = [f"v{n}" for n in range(len(ORDER[name]))]
    made = kind(*values)
    assert [getattr(made, key) for key in ORDER[name]] == values
    assert made == kind(*values)


@pytest.mark.parametrize(
    ("kind", "extra"),
    [(LLMMetrics, "token_usage"), (AgentMetrics, "token_usage"), (RetrieverMetrics, "documents_retrieved")],
)
def test_metrics_add_their_own_field_after_the_common_ones(kind: Any, extra: str) -> None:
    made = kind(5.0, True, "T", "M", "X")
    assert (made.duration_ms, made.error, made.error_type, made.error_message, getattr(made, extra)) == (
        5.0,
        True,
        "T",
        "M",
        "X",
    )
    assert made.duration_known


SAMPLES = [
    LLMSpan(
        "l", "a", None, [UserMessage("hi"), AssistantMessage("yo", [ToolCall("c", "f", {"a": 1})])], "out", model="m"
    ),
    ToolSpan("t", "a", None, "f", {"a": 1}, {"r": 2}, ToolMetrics(3.0, True, "E")),
    RetrieverSpan("r", None, None, "q", [RetrievedDoc("1", "text", 0.5)]),
    AgentSpan("a", None, None, "bot", available_tools=[ToolDefinition("f")]),
    ChainSpan("c", None, None, "step"),
    AgentTrace("a", "q", "a", [UserInputStep("q"), LLMReasoningStep("x"), ToolExecutionStep("f")], "bot"),
    Trace("t", "q", "a", [ChainSpan("c")], TraceMetrics(1.0)),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_compared_copied_pickled_and_replaced(sample: Any) -> None:
    assert pickle.loads(pickle.dumps(sample)) == sample
    assert copy.deepcopy(sample) == sample
    name = fields(sample)[0].name
    changed = replace(sample, **{name: "other"})
    assert changed != sample and getattr(changed, name) == "other"
    setattr(sample, name, getattr(sample, name))


def test_usage_adds_up() -> None:
    assert TokenUsage(1, 2, 3, 4) + TokenUsage(10, 20, 30, 40) == TokenUsage(11, 22, 33, 44)
    with pytest.raises(TypeError):
        TokenUsage() + 1  # type: ignore[operator]


def test_mutable_defaults_are_never_shared() -> None:
    one, two = LLMSpan("a"), LLMSpan("b")
    one.input.append(UserMessage("x"))
    assert two.input == []


def test_aliases() -> None:
    assert AgentSpan("a", name="bot").agent_name == "bot"
    trace = Trace("t", spans=[ToolSpan("x", name="f")])
    assert trace.get_tool_steps() == trace.get_tool_calls()
    assert trace._create_agent_trace("r") is trace.create_agent_trace("r")


def test_a_reasoning_step_without_tool_calls_is_a_response() -> None:
    assert LLMReasoningStep("x").is_response
    assert not LLMReasoningStep("x", [ToolCallInfo("c", "f")]).is_response


def test_fields_that_come_late_come_once_and_only_when_asked() -> None:
    asked = []

    def load() -> dict[str, Any]:
        asked.append(1)
        return {"output": "late", "model": "m"}

    span = lazily(LLMSpan, load, span_id="a", model="kept")
    assert asked == []
    assert (span.output, span.model) == ("late", "kept")
    assert span.output == "late" and asked == [1]
    with pytest.raises(AttributeError, match="nothing_such"):
        span.nothing_such  # noqa: B018
    with pytest.raises(AttributeError):
        span.__wrapped__  # noqa: B018


def test_messages_by_role() -> None:
    messages = [SystemMessage("s"), UserMessage("u"), AssistantMessage("a"), ToolMessage("t", "c")]
    span = LLMSpan("l", input=list(messages), _tool_calls=[ToolCall("c")])
    assert span.get_system_messages() == messages[:1]
    assert span.get_user_messages() == messages[1:2]
    assert span.get_assistant_messages() == messages[2:3]
    assert span.get_tool_messages() == messages[3:]
    assert span.tool_calls == span.get_tool_calls() == [ToolCall("c")]
    assert span.format_messages() == "[system] s\n[user] u\n[assistant] a\n[tool] t"


LONG = "word " * 1000


def test_texts_are_bounded() -> None:
    calls = [ToolSpan(f"t{n}", None, None, "f", {"a": LONG}, LONG) for n in range(15)]
    docs = [RetrievedDoc(str(n), LONG) for n in range(9)]
    looked = [RetrieverSpan(f"r{n}", None, None, LONG, docs) for n in range(8)]
    llm = LLMSpan("l", None, None, [UserMessage(LONG), AssistantMessage("", [ToolCall("c", "f")])], LONG)
    agent = AgentSpan(
        "a", None, None, LONG, input=LONG, output=LONG, metrics=AgentMetrics(error=True, error_message=LONG)
    )
    trace = Trace("t", spans=[agent, llm, ChainSpan("c", None, None, LONG), *calls, *looked])
    evidence = trace.format_evidence().splitlines()
    assert sum(line.startswith("[tool]") for line in evidence) == 10
    assert sum(line.startswith("[retrieval]") for line in evidence) == 5
    assert sum(line.startswith("  - ") for line in evidence) == 15
    assert evidence[-1] == "… 8 more"
    everything = [*evidence, *trace.format_spans().splitlines(), *llm.format_messages().splitlines()]
    assert max(map(len, everything)) < 1000
    assert llm.format_messages().endswith("[assistant] calls f")


def test_a_failed_tool_without_a_result_shows_its_error() -> None:
    failed = ToolSpan("t", name="f", metrics=ToolMetrics(error=True, error_type="Timeout"))
    assert "ERROR: Timeout" in Trace("t", spans=[failed]).format_evidence()
    assert "ERROR: Timeout" in Trace("t", spans=[failed]).format_spans()


def test_steps_as_text() -> None:
    inner = AgentTrace("i", agent_name="inner")
    steps: list[Any] = [
        UserInputStep("hello"),
        LLMReasoningStep("", [ToolCallInfo("c", "f", {"a": 1})]),
        ToolExecutionStep("f", "c", {"a": 1}, {"r": 1}, "", "boom", 1.0, [inner]),
        LLMReasoningStep("bye"),
    ]
    view = AgentTrace("a", steps=steps)
    assert view.format_steps().splitlines() == [
        "1. [user] hello",
        '2. [llm] calls f({"a": 1})',
        '3. [tool] f({"a": 1}) -> {"r": 1} ERROR: boom (inside: 1 nested)',
        "4. [llm] bye",
    ]
    assert view.get_error_steps() == [steps[2]] == view.get_tool_steps()
    assert view.get_llm_steps() == [steps[1], steps[3]]
    assert view.get_sub_agents() == [inner]


def test_long_names_and_many_steps_are_cut() -> None:
    called = AgentTrace(
        "a", steps=[LLMReasoningStep("", [ToolCallInfo("c", "f" * 5000)]), ToolExecutionStep("f" * 5000)]
    )
    assert max(map(len, called.format_steps().splitlines())) < 150
    many = AgentTrace("a", steps=[UserInputStep("hello")] * 501).format_steps().splitlines()
    assert (len(many), many[-1]) == (501, "… 1 more steps")


def test_empty_texts() -> None:
    trace = Trace("t")
    assert trace.format_spans() == "(no spans)"
    assert trace.format_evidence() == "(no evidence available)"
    assert LLMSpan("l").format_messages() == "(no messages)"
    assert AgentTrace("a").format_steps() == "(no steps recorded)"
    assert clip("a\n b", 10) == "a b" and clip("abcdef", 4) == "abc…"


def test_many_spans_are_cut() -> None:
    shown = Trace("t", spans=[ChainSpan(str(n)) for n in range(700)]).format_spans().splitlines()
    assert len(shown) == 501 and shown[-1] == "… 200 more spans"


SCOPED = Trace(
    "t",
    spans=[
        AgentSpan("a"),
        LLMSpan("l1", "a", None, [UserMessage("q")], "x"),
        ToolSpan("t1", "a", None, "f"),
        LLMSpan("l2", "t1", None, [], "y"),
        AgentSpan("b", "a"),
        LLMSpan("l3", "b", None, [UserMessage("q"), AssistantMessage("x")], "z"),
        RetrieverSpan("r", "b"),
        LLMSpan("l4", None, None, [], "w"),
    ],
)


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        pytest.param({}, ["l1", "l2", "l3", "l4"], id="all"),
        pytest.param({"include_nested": False}, ["l1", "l3", "l4"], id="not inside tools"),
        pytest.param({"agent_span_id": "a"}, ["l1", "l2", "l3"], id="one agent's"),
        pytest.param({"agent_span_id": "a", "include_nested": False}, ["l1"], id="one agent's own"),
        pytest.param({"agent_span_id": "b"}, ["l3"], id="the inner agent's"),
        pytest.param({"agent_span_id": "nobody"}, [], id="an unknown agent's"),
    ],
)
def test_calls_by_scope(arguments: dict[str, Any], right: list[str]) -> None:
    assert [call.span_id for call in SCOPED.get_llm_calls(**arguments)] == right


def test_calls_with_each_message_of_a_history_once() -> None:
    fresh = SCOPED.get_llm_calls(deduplicate_messages=True)
    assert [len(call.input) for call in fresh] == [1, 0, 0, 0]
    assert len(SCOPED.get_llm_calls()[2].input) == 2, "the spans themselves stay as they are"


def test_tools_retrievals_and_agents() -> None:
    assert [tool.span_id for tool in SCOPED.get_tool_calls()] == ["t1"]
    assert [found.span_id for found in SCOPED.get_retrievals()] == ["r"]
    assert SCOPED.get_retrievals("a") and not SCOPED.get_retrievals("t1")
    assert [agent.span_id for agent in SCOPED.get_agents()] == ["a", "b"]


def test_a_view_is_built_again_when_the_spans_change() -> None:
    trace = Trace("t", spans=[AgentSpan("a")])
    view = trace.create_agent_trace("a")
    assert trace.create_agent_trace("a") is view
    trace.spans.append(ToolSpan("t", "a", None, "f"))
    assert [step.tool_name for step in trace.create_agent_trace("a").get_tool_steps()] == ["f"]
