"""An agent's steps: each message said once, executions enriched, nothing lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from loopback.otel import genai, parsed, parts, said, span

from amp_evaluation.trace._wire import decode_traces
from amp_evaluation.trace.models import (
    AgentSpan,
    AssistantMessage,
    LLMReasoningStep,
    LLMSpan,
    RetrievedDoc,
    RetrieverSpan,
    SystemMessage,
    ToolCall,
    ToolCallInfo,
    ToolExecutionStep,
    ToolMessage,
    ToolMetrics,
    ToolSpan,
    Trace,
    UserInputStep,
    UserMessage,
)
from amp_evaluation.trace.parser import parse_trace_for_evaluation


def shown(trace: Trace, agent: str = "a") -> list[tuple[str, str]]:
    found = []
    for step in trace.create_agent_trace(agent).steps:
        if isinstance(step, UserInputStep):
            found.append(("user", step.content))
        elif isinstance(step, LLMReasoningStep):
            found.append(("llm", step.content or ",".join(call.name for call in step.tool_calls)))
        else:
            found.append(("tool", f"{step.tool_name}={step.content}"))
    return found


U, A = UserMessage, AssistantMessage
OK = U("ok")
SEARCH = ToolCall("c1", "search", {"q": 1})

SPANS: dict[str, tuple[list[Any], list[tuple[str, str]]]] = {
    "a history that repeats is said once": (
        [LLMSpan("1", "a", None, [U("q")], "one"), LLMSpan("2", "a", None, [U("q"), A("one"), U("and?")], "two")],
        [("user", "q"), ("llm", "one"), ("user", "and?"), ("llm", "two")],
    ),
    "a user who says ok twice said it twice": (
        [LLMSpan("1", "a", None, [OK], "one"), LLMSpan("2", "a", None, [OK, A("one"), OK], "two")],
        [("user", "ok"), ("llm", "one"), ("user", "ok"), ("llm", "two")],
    ),
    "a history that is cut at its start is still said once": (
        [
            LLMSpan("1", "a", None, [U("q"), A("x"), U("r")], "one"),
            LLMSpan("2", "a", None, [U("r"), A("one"), U("s")], "two"),
        ],
        [("user", "q"), ("llm", "x"), ("user", "r"), ("llm", "one"), ("user", "s"), ("llm", "two")],
    ),
    "a reply given twice is two steps": (
        [LLMSpan("1", "a", None, [U("q")], "same"), LLMSpan("2", "a", None, [U("q")], "same")],
        [("user", "q"), ("llm", "same"), ("llm", "same")],
    ),
    "system messages are no steps": (
        [LLMSpan("1", "a", None, [SystemMessage("be kind"), U("q")], "one")],
        [("user", "q"), ("llm", "one")],
    ),
    "a tool message is its tool span's step": (
        [
            LLMSpan("1", "a", None, [U("q")], "", [], [SEARCH]),
            ToolSpan("t", "a", None, "search", {"q": 1}, "full", tool_call_id="c1"),
            LLMSpan("2", "a", None, [U("q"), A("", [SEARCH]), ToolMessage("full", "c1")], "done"),
        ],
        [("user", "q"), ("llm", "search"), ("tool", "search=full"), ("llm", "done")],
    ),
    "a tool message without a call id is the span's of the same name": (
        [
            LLMSpan("1", "a", None, [U("q")], "", [], [SEARCH]),
            ToolSpan("t", "a", None, "search", {"q": 1}, "full"),
            LLMSpan("2", "a", None, [U("q"), A("", [SEARCH]), ToolMessage("full", "c1")], "done"),
        ],
        [("user", "q"), ("llm", "search"), ("tool", "search=full"), ("llm", "done")],
    ),
    "a tool message that no span recorded is a step of its own": (
        [
            LLMSpan("1", "a", None, [U("q")], "", [], [SEARCH]),
            LLMSpan("2", "a", None, [U("q"), A("", [SEARCH]), ToolMessage("full", "c1")], "done"),
        ],
        [("user", "q"), ("llm", "search"), ("tool", "search=full"), ("llm", "done")],
    ),
    "a tool of an earlier turn is no step of this run": (
        [LLMSpan("1", "a", None, [U("q"), A("", [SEARCH]), ToolMessage("full", "c1"), A("x"), U("r")], "done")],
        [("user", "q"), ("llm", "search"), ("llm", "x"), ("user", "r"), ("llm", "done")],
    ),
    "a tool span that no message mentions appears in time order": (
        [ToolSpan("t", "a", None, "setup", {}, "ok"), LLMSpan("1", "a", None, [U("q")], "one")],
        [("tool", "setup=ok"), ("user", "q"), ("llm", "one")],
    ),
}


@pytest.mark.parametrize("case", SPANS)
def test_steps(case: str) -> None:
    spans, right = SPANS[case]
    assert shown(Trace("t", spans=[AgentSpan("a"), *spans])) == right


def test_a_step_of_a_call_names_its_span_and_one_of_a_history_names_none() -> None:
    trace = Trace("t", spans=[AgentSpan("a"), LLMSpan("1", "a", None, [U("q"), A("old"), U("r")], "new")])
    steps = trace.create_agent_trace("a").get_llm_steps()
    assert [(step.content, step.llm_span_id) for step in steps] == [("old", None), ("new", "1")]


def test_a_tool_step_has_everything_the_span_knows() -> None:
    metrics = ToolMetrics(12.5, True, "Timeout", "took too long")
    tool = ToolSpan("t", "a", None, "search", {"q": 1}, {"hits": 2}, metrics, "c1")
    (step,) = Trace("t", spans=[AgentSpan("a"), tool]).create_agent_trace("a").get_tool_steps()
    assert step == ToolExecutionStep("search", "c1", {"q": 1}, {"hits": 2}, '{"hits": 2}', "took too long", 12.5)


@pytest.mark.parametrize(
    ("metrics", "right"),
    [
        (ToolMetrics(error=True, error_type="T", error_message="M"), "M"),
        (ToolMetrics(error=True, error_type="T"), "T"),
        (ToolMetrics(error=True), "Error"),
        (ToolMetrics(), None),
    ],
)
def test_an_error_is_the_message_else_the_type_else_the_word(metrics: ToolMetrics, right: str | None) -> None:
    trace = Trace("t", spans=[ToolSpan("t", name="f", metrics=metrics)])
    assert trace.create_agent_trace("r").get_tool_steps()[0].error == right


def test_a_retrieval_is_a_step_with_the_query_and_the_documents() -> None:
    found = [RetrievedDoc("1", "text")]
    (step,) = Trace("t", spans=[RetrieverSpan("r", None, None, "q", found)]).create_agent_trace("x").get_tool_steps()
    assert (step.tool_name, step.tool_input, step.tool_output, step.content) == (
        "retrieval",
        {"query": "q"},
        found,
        "text",
    )


def test_llm_calls_inside_a_tool_are_nested_in_its_step() -> None:
    inner = LLMSpan("l", "t", None, [], "x")
    spans = [AgentSpan("a"), ToolSpan("t", "a", None, "f"), inner]
    trace = Trace("t", spans=spans)
    assert trace.create_agent_trace("a").get_tool_steps()[0].nested_traces == [inner]


def test_agents_inside_tools_inside_agents_end_at_some_depth() -> None:
    spans: list[Any] = []
    for n in range(60):
        spans += [AgentSpan(f"a{n}", f"t{n - 1}" if n else None), ToolSpan(f"t{n}", f"a{n}", None, f"f{n}")]
    view, depth = Trace("t", spans=spans).create_agent_trace("a0"), 0
    while view.get_sub_agents():
        (view,) = view.get_sub_agents()
        depth += 1
    assert 10 <= depth <= 30


def test_a_spelled_out_reply_is_known_again_in_the_next_history() -> None:
    first = LLMSpan("1", "a", None, [U("q")], 'search({"q": 1})', [], [SEARCH])
    second = LLMSpan("2", "a", None, [U("q"), A("", [SEARCH]), ToolMessage("r", "c1")], "done")
    trace = Trace("t", spans=[AgentSpan("a"), first, second])
    steps = trace.create_agent_trace("a").get_llm_steps()
    assert steps[0].tool_calls == [ToolCallInfo("c1", "search", {"q": 1})]
    assert [step.content for step in steps] == ["", "done"]


CALLS = [{"id": "c1", "name": "search", "arguments": '{"q": 1}'}]


@pytest.mark.parametrize("space", ["", " ", "\n  "], ids=["no space", "a space", "a line break"])
def test_histories_of_the_wire_are_said_once_whatever_space_stands_after_commas(space: str) -> None:
    messages = [said("user", "q"), said("assistant", "", toolCalls=CALLS), said("tool", "r", tool_call_id="c1")]
    compact = [json.dumps(message, separators=("," + space, ":" + space)) for message in messages]
    histories = ["[" + ("," + space).join(compact[:count]) + "]" for count in (1, 3)]
    trace = parsed(
        span("a", kind="agent", data={"name": "bot"}),
        span("1", "a", at=1, kind="llm", input=histories[0], output=[messages[1]]),
        span("2", "a", at=3, kind="llm", input=histories[1], output=[said("assistant", "done")]),
    )
    assert shown(trace) == [("user", "q"), ("llm", "search"), ("tool", "search=r"), ("llm", "done")]


def test_histories_in_flat_keys_are_said_once() -> None:
    def flat(side: str, *told: tuple[str, str]) -> dict[str, str]:
        return {
            f"llm.{side}_messages.{n}.message.{key}": value
            for n, (role, content) in enumerate(told)
            for key, value in (("role", role), ("content", content))
        }

    base = {"openinference.span.kind": "LLM"}
    long = "x" * 200
    one, two = [("user", f"q {long}")], [("user", f"q {long}"), ("assistant", "one"), ("user", "r")]
    spans = [span("a", attributes={"openinference.span.kind": "AGENT"})]
    for n, (sent, got) in enumerate(
        [(one, "one"), (two, "two"), ([*two, ("assistant", "two"), ("user", "s")], "three")]
    ):
        more = {**base, **flat("input", *sent), **flat("output", ("assistant", got)), "llm.model_name": "m"}
        spans.append(span(f"l{n}", "a", more, at=n + 1))
    trace = parsed(*spans)
    right = [("user", f"q {long}"), ("llm", "one"), ("user", "r"), ("llm", "two"), ("user", "s"), ("llm", "three")]
    assert shown(trace) == right
    raw = {"traceId": "t", "spans": [as_wire(one) for one in spans]}
    (otel,) = decode_traces(json.dumps(raw).encode())
    assert shown(parse_trace_for_evaluation(otel)) == right


def as_wire(one: Any) -> dict[str, Any]:
    return {
        "spanId": one.spanId,
        "parentSpanId": one.parentSpanId,
        "name": one.name,
        "startTime": one.startTime,
        "attributes": one.attributes,
    }


def test_two_agents_have_views_of_their_own() -> None:
    trace = parsed(
        span("r", kind="chain"),
        span("x", "r", at=1, kind="agent", data={"name": "first"}),
        span("l1", "x", genai([parts("user", "q")], [parts("assistant", "one")]), at=1.1),
        span("y", "r", at=3, kind="agent", data={"name": "second"}),
        span("l2", "y", genai([parts("user", "q2")], [parts("assistant", "two")]), at=3.1),
    )
    assert shown(trace, "x") == [("user", "q"), ("llm", "one")]
    assert shown(trace, "y") == [("user", "q2"), ("llm", "two")]
    assert trace.create_agent_trace("y").agent_name == "second"
    assert trace.create_agent_trace("y").model == "m-1"
