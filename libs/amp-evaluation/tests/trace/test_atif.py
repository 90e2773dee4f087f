"""ATIF: the shape that the format demands (atif_check.py asks harbor itself), and what stands where."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation.trace.models import (
    AgentSpan,
    AssistantMessage,
    LLMMetrics,
    LLMSpan,
    Message,
    RetrievedDoc,
    RetrieverSpan,
    Span,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolDefinition,
    ToolMessage,
    ToolMetrics,
    ToolSpan,
    Trace,
    TraceMetrics,
    UserMessage,
)

START = datetime(2026, 1, 15, 10, tzinfo=UTC)


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def llm(
    name: str, parent: str | None, second: float, said: list[Message], output: str = "", *calls: ToolCall
) -> LLMSpan:
    metrics = LLMMetrics(10.0, token_usage=TokenUsage(100, 10, 110, 40))
    return LLMSpan(name, parent, at(second), said, output, [], list(calls), "gpt-4o-mini", "openai", None, metrics)


ASKED: list[Message] = [SystemMessage("You sell ferries."), UserMessage("Next ferry?")]
CALL = ToolCall("call_1", "next_ferry", {"port": "Bari"})


def tool_loop() -> Trace:
    """One agent, a model that calls a tool, the tool, the answer."""
    answered = [*ASKED, AssistantMessage("", [CALL]), ToolMessage("22:30", "call_1")]
    spans: list[Span] = [
        AgentSpan(
            "a", None, at(0), "clerk", "acme", available_tools=[ToolDefinition("next_ferry", "", {"type": "object"})]
        ),
        llm("l1", "a", 1, ASKED, 'next_ferry({"port": "Bari"})', CALL),
        ToolSpan("t", "a", at(2), "next_ferry", {"port": "Bari"}, "22:30", tool_call_id="call_1"),
        llm("l2", "a", 3, answered, "At 22:30."),
    ]
    spans[0] = AgentSpan(
        "a",
        None,
        at(0),
        "clerk",
        "acme",
        "gpt-4o-mini",
        "You sell ferries.",
        spans[0].available_tools,
        None,
        "Next ferry?",
    )
    metrics = TraceMetrics(4000, TokenUsage(200, 20, 220, 80))
    return Trace("run-1", "Next ferry?", "At 22:30.", spans, metrics, at(0))


def trajectories(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield found
    for inner in found.get("subagent_trajectories", ()):
        yield from trajectories(inner)


ALLOWED_STEP = {
    "step_id", "timestamp", "source", "model_name", "message", "tool_calls", "observation", "metrics", "llm_call_count",
    "extra",
}  # fmt: skip
AGENT_ONLY = {"model_name", "tool_calls", "metrics", "llm_call_count"}


def check(found: dict[str, Any]) -> None:
    """The format's rules, as far as this package can break them."""
    json.dumps(found, allow_nan=False)
    for trajectory in trajectories(found):
        assert trajectory["schema_version"] == "ATIF-v1.8"
        assert {"name", "version"} <= trajectory["agent"].keys()
        assert [step["step_id"] for step in trajectory["steps"]] == list(range(1, len(trajectory["steps"]) + 1))
        assert trajectory["steps"], "at least one step"
        inside = [inner["trajectory_id"] for inner in trajectory.get("subagent_trajectories", ())]
        assert len(set(inside)) == len(inside)
        for step in trajectory["steps"]:
            check_step(step, set(inside))


def check_step(step: dict[str, Any], inside: set[str]) -> None:
    assert step.keys() <= ALLOWED_STEP
    assert step["source"] in ("system", "user", "agent")
    assert isinstance(step["message"], str)
    assert step["source"] == "agent" or not AGENT_ONLY & step.keys()
    assert step.get("llm_call_count") != 0 or "metrics" not in step
    ids = [call["tool_call_id"] for call in step.get("tool_calls", ())]
    assert len(set(ids)) == len(ids)
    assert all(isinstance(call["arguments"], dict) for call in step.get("tool_calls", ()))
    for result in step.get("observation", {"results": []})["results"]:
        assert result["source_call_id"] in ids
        assert all(ref["trajectory_id"] in inside for ref in result.get("subagent_trajectory_ref", ()))


def test_a_tool_loop() -> None:
    found = tool_loop().to_atif()
    check(found)
    assert (found["session_id"], found["trajectory_id"]) == ("run-1", "run-1")
    assert found["agent"] == {
        "name": "clerk",
        "version": "unknown",
        "model_name": "gpt-4o-mini",
        "tool_definitions": [
            {"type": "function", "function": {"name": "next_ferry", "parameters": {"type": "object"}}}
        ],
        "extra": {"framework": "acme"},
    }
    assert found["steps"] == [
        {"step_id": 1, "source": "system", "message": "You sell ferries.", "timestamp": "2026-01-15T10:00:00Z"},
        {"step_id": 2, "source": "user", "message": "Next ferry?", "timestamp": "2026-01-15T10:00:00Z"},
        {
            "step_id": 3,
            "source": "agent",
            "message": "",
            "timestamp": "2026-01-15T10:00:01Z",
            "llm_call_count": 1,
            "model_name": "gpt-4o-mini",
            "metrics": {"prompt_tokens": 100, "completion_tokens": 10, "cached_tokens": 40},
            "tool_calls": [
                {"tool_call_id": "call_1", "function_name": "next_ferry", "arguments": {"port": "Bari"}},
            ],
            "observation": {"results": [{"source_call_id": "call_1", "content": "22:30"}]},
        },
        {
            "step_id": 4,
            "source": "agent",
            "message": "At 22:30.",
            "timestamp": "2026-01-15T10:00:03Z",
            "llm_call_count": 1,
            "model_name": "gpt-4o-mini",
            "metrics": {"prompt_tokens": 100, "completion_tokens": 10, "cached_tokens": 40},
        },
    ]
    assert found["final_metrics"] == {
        "total_steps": 4,
        "total_prompt_tokens": 200,
        "total_completion_tokens": 20,
        "total_cached_tokens": 80,
    }
    assert "subagent_trajectories" not in found and "notes" not in found


def test_an_agent_in_a_tool_is_a_trajectory_that_the_observation_refers_to() -> None:
    trace = tool_loop()
    trace.spans += [
        AgentSpan("inner", "t", at(2.1), "timetable", input="Bari?", output="22:30"),
        llm("l3", "inner", 2.2, [UserMessage("Bari?")], "22:30"),
    ]
    found = trace.to_atif()
    check(found)
    [inner] = found["subagent_trajectories"]
    [result] = found["steps"][2]["observation"]["results"]
    assert (
        result["subagent_trajectory_ref"] == [{"trajectory_id": inner["trajectory_id"]}] == [{"trajectory_id": "inner"}]
    )
    assert inner["agent"]["name"] == "timetable"
    assert [(step["source"], step["message"]) for step in inner["steps"]] == [("user", "Bari?"), ("agent", "22:30")]
    assert found["steps"][2]["extra"] == {"agent": "clerk"}
    assert inner["steps"][1]["extra"] == {"agent": "timetable"}
    assert "session_id" not in inner


def test_model_calls_in_a_tool_without_an_agent_are_a_trajectory_with_their_own_tools() -> None:
    trace = tool_loop()
    look = ToolCall("call_2", "look_up", {"day": "today"})
    trace.spans += [
        AgentSpan("silent", "t", at(2.05), "a shell without content"),
        llm("l3", "t", 2.1, [UserMessage("Bari?")], "look_up(…)", look),
        ToolSpan("t2", "t", at(2.2), "look_up", {"day": "today"}, "22:30", tool_call_id="call_2"),
    ]
    found = trace.to_atif()
    check(found)
    [inner] = found["subagent_trajectories"]
    assert (inner["agent"]["name"], inner["trajectory_id"]) == ("next_ferry", "l3")
    assert inner["steps"][-1]["observation"]["results"][0]["content"] == "22:30"
    assert inner["final_metrics"] == {
        "total_steps": 2,
        "total_prompt_tokens": 100,
        "total_completion_tokens": 10,
        "total_cached_tokens": 40,
    }


def test_a_tool_that_no_model_asked_for_is_a_step_without_a_model_call() -> None:
    failed = ToolMetrics(5.0, True, "ValueError", "no such port")
    found = Trace("r", spans=[ToolSpan("t", None, at(0), "next_ferry", {"port": "Bari"}, None, failed)]).to_atif()
    check(found)
    [step] = found["steps"]
    assert (step["source"], step["llm_call_count"]) == ("agent", 0)
    assert step["observation"]["results"][0]["extra"] == {"error": "no such port"}


def test_a_retrieval_is_a_call_with_its_documents() -> None:
    found = Trace(
        "r", spans=[RetrieverSpan("q", None, at(0), "ports", [RetrievedDoc("1", "Bari is a port.")])]
    ).to_atif()
    check(found)
    [step] = found["steps"]
    assert step["tool_calls"][0]["function_name"] == "retrieval"
    assert step["tool_calls"][0]["arguments"] == {"query": "ports"}
    assert step["observation"]["results"][0]["content"] == "Bari is a port."


def test_an_answer_without_a_recorded_model_call_is_still_said() -> None:
    found = Trace("r", "Next ferry?", "At 22:30.").to_atif()
    check(found)
    assert [(s["source"], s["message"]) for s in found["steps"]] == [("user", "Next ferry?"), ("agent", "At 22:30.")]
    assert "llm_call_count" not in found["steps"][1]


def test_an_empty_trace_has_the_one_step_that_the_format_wants() -> None:
    found = Trace("r", metrics=TraceMetrics(usage_known=False)).to_atif()
    check(found)
    assert found["final_metrics"] == {"total_steps": 1}


def test_a_failed_run_says_so_in_its_notes() -> None:
    trace = Trace("r", "Hi", failed=True, failure_reason="HTTP 500", notes=["a root is missing"])
    assert trace.to_atif()["notes"] == "The run failed: HTTP 500\na root is missing"


def test_two_outermost_agents_are_one_run_in_which_each_step_names_its_agent() -> None:
    spans: list[Span] = [
        AgentSpan("a", None, at(0), "front"),
        llm("l1", "a", 1, ASKED, "I ask billing."),
        AgentSpan("b", None, at(2), "billing"),
        llm("l2", "b", 3, [*ASKED, AssistantMessage("I ask billing.")], "Paid."),
    ]
    found = Trace("r", "Next ferry?", "Paid.", spans, TraceMetrics(), at(0)).to_atif()
    check(found)
    assert [step.get("extra", {}).get("agent") for step in found["steps"] if step["source"] == "agent"] == [
        "front",
        "billing",
    ]


@pytest.mark.parametrize(
    ("calls", "ids"),
    [
        pytest.param([ToolCall("", "f", {}), ToolCall("", "g", {})], ["call_2_1", "call_2_2"], id="calls without ids"),
        pytest.param([ToolCall("x", "f", {}), ToolCall("x", "g", {})], ["x", "x_2_2"], id="one id twice"),
    ],
)
def test_calls_get_ids_of_their_own(calls: list[ToolCall], ids: list[str]) -> None:
    found = Trace("r", "Hi", spans=[llm("l", None, 0, [UserMessage("Hi")], "", *calls)]).to_atif()
    check(found)
    assert [call["tool_call_id"] for call in found["steps"][1]["tool_calls"]] == ids


def test_arguments_that_are_no_object_stand_under_input() -> None:
    found = Trace("r", spans=[ToolSpan("t", None, at(0), "f", "text", "ok")]).to_atif()  # type: ignore[arg-type]
    check(found)
    assert found["steps"][0]["tool_calls"][0]["arguments"] == {"input": "text"}


ids = st.sampled_from(["a", "b", "c", "d", "e"])
messages = st.lists(
    st.builds(UserMessage, st.text(max_size=5))
    | st.builds(ToolMessage, st.text(max_size=5), ids)
    | st.builds(AssistantMessage, st.text(max_size=5), st.lists(st.builds(ToolCall, ids, ids), max_size=2)),
    max_size=4,
)
times = st.integers(0, 9).map(at) | st.none()
span = (
    st.builds(AgentSpan, ids, ids | st.none(), times, st.text(max_size=3))
    | st.builds(ToolSpan, ids, ids | st.none(), times, ids, tool_call_id=ids)
    | st.builds(
        LLMSpan, ids, ids | st.none(), times, messages, st.text(max_size=5),
        _tool_calls=st.lists(st.builds(ToolCall, ids | st.just(""), ids), max_size=3),
    )
)  # fmt: skip


@given(st.lists(span, max_size=6, unique_by=lambda s: s.span_id))
def test_whatever_the_tree_the_trajectory_keeps_to_the_format(spans: list[Span]) -> None:
    check(Trace("r", "Hi", "Ho", spans).to_atif())
