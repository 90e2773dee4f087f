"""What a trace is made of: the shapes that real ones have, and the right reading of each."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from loopback.otel import genai, parsed, parts, said, span

from amp_evaluation.errors import TraceParseError
from amp_evaluation.trace._wire import OTELTokenUsage, OTELTrace, OTELTraceStatus, decode_traces
from amp_evaluation.trace.models import (
    AgentSpan,
    AssistantMessage,
    ChainSpan,
    LLMSpan,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from amp_evaluation.trace.parser import parse_trace_for_evaluation, parse_traces_for_evaluation

PIXEL = "data:image/png;base64," + "iVBORw0KGgo" * 200_000


def test_an_image_reaches_nobody_but_as_a_short_placeholder() -> None:
    sent = [
        said("user", [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": PIXEL}}])
    ]
    trace = parsed(span("a", kind="llm", input=sent, output="a dot"))
    assert trace.input == "What is this?\n[image]"
    assert trace.get_llm_calls()[0].get_user_messages() == [UserMessage("What is this?\n[image]")]


def test_a_data_url_inside_a_text_is_shortened_too() -> None:
    trace = parsed(span("a", kind="llm", input=[said("user", f"see {PIXEL} there")], output="ok"))
    assert trace.input == "see [image/png] there"


def test_a_turn_with_null_content_and_a_tool_call_shows_the_call_and_no_text() -> None:
    call = {"id": "c1", "name": "search", "arguments": '{"q": 1}'}
    sent = [said("user", "hi"), said("assistant", None, toolCalls=[call]), said("tool", "found", tool_call_id="c1")]
    trace = parsed(span("a", kind="llm", input=sent, output="done"))
    turn = trace.get_llm_calls()[0].input[1]
    assert turn == AssistantMessage("", [ToolCall("c1", "search", {"q": 1})])
    assert "search" in trace.create_agent_trace("a").format_steps()


@pytest.mark.parametrize(
    ("given", "right"),
    [
        pytest.param({"city": "Paris"}, {"city": "Paris"}, id="an object stays"),
        pytest.param('{"city": "Paris"}', {"city": "Paris"}, id="JSON text is opened"),
        pytest.param(json.dumps('{"city": "Paris"}'), {"city": "Paris"}, id="JSON text encoded twice is opened"),
        pytest.param("{'city': 'Paris'}", {"city": "Paris"}, id="a printed dict is read"),
        pytest.param('{"city": "Par', {"input": '{"city": "Par'}, id="cut JSON is kept as it is"),
        pytest.param("Paris", {"input": "Paris"}, id="a bare text is kept"),
        pytest.param([1, 2], {"input": [1, 2]}, id="a list is kept"),
        pytest.param("", {}, id="nothing is no argument"),
        pytest.param(None, {}, id="null is no argument"),
    ],
)
def test_arguments_of_a_call_are_an_object(given: Any, right: dict[str, Any]) -> None:
    reply = [said("assistant", "", toolCalls=[{"id": "c1", "name": "f", "arguments": given}])]
    trace = parsed(span("a", kind="llm", input=[said("user", "hi")], output=reply))
    assert trace.get_llm_calls()[0].tool_calls == [ToolCall("c1", "f", right)]


@pytest.mark.parametrize("key", ["toolCalls", "tool_calls"])
def test_a_reply_made_of_tool_calls_has_an_output_that_names_the_tool(key: str) -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}}]
    trace = parsed(span("a", kind="llm", input=[said("user", "hi")], output=said("assistant", None, **{key: calls})))
    assert trace.get_llm_calls()[0].output == 'search({"q": "x"})'


def test_a_root_without_output_takes_its_only_childs() -> None:
    trace = parsed(span("r", kind="unknown"), span("c", "r", kind="chain", input="Q", output="A"))
    assert (trace.input, trace.output) == ("Q", "A")


def test_input_is_the_users_and_output_the_assistants() -> None:
    history = [said("system", "be kind"), said("user", "Q"), said("assistant", "A"), said("tool", "T")]
    trace = parsed(span("r", kind="chain", input={"messages": history[:2]}, output={"messages": history}))
    assert (trace.input, trace.output) == ("Q", "A")


def test_a_wrapper_agent_without_input_and_output_takes_goal_and_reply_from_below() -> None:
    trace = parsed(
        span("w", kind="agent", data={"name": "wrapper"}),
        span("l1", "w", at=1, kind="llm", input=[said("system", "rules"), said("user", "goal")], output="thinking"),
        span("l2", "w", at=2, kind="llm", input=[said("user", "goal"), said("assistant", "thinking")], output="answer"),
    )
    (agent,) = trace.get_agents()
    assert (agent.input, agent.output, agent.system_prompt) == ("goal", "answer", "rules")
    assert (trace.input, trace.output) == ("goal", "answer")


def test_what_runs_inside_a_tool_is_that_steps_and_not_the_outer_agents() -> None:
    trace = parsed(
        span("outer", kind="agent", data={"name": "outer"}, input="goal", output="done"),
        span("l1", "outer", at=1, kind="llm", output="call it", data=usage(10, 1)),
        span("t", "outer", at=2, kind="tool", data={"name": "ask"}, input='{"q": 1}', output="r"),
        span("inner", "t", at=2.1, kind="agent", data={"name": "inner"}),
        span("l2", "inner", at=2.2, kind="llm", input=[said("user", "sub")], output="sub answer", data=usage(100, 2)),
    )
    view = trace.create_agent_trace("outer")
    (step,) = view.get_tool_steps()
    (nested,) = step.nested_traces
    assert [type(step).__name__ for step in view.steps] == ["LLMReasoningStep", "ToolExecutionStep"]
    assert view.metrics.token_usage.total_tokens == 11
    assert nested.agent_name == "inner" and nested.output == "sub answer"
    assert view.get_sub_agents() == [nested]
    assert trace.metrics.token_usage.total_tokens == 113


def usage(sent: int, got: int) -> dict[str, Any]:
    return {"tokenUsage": {"inputTokens": sent, "outputTokens": got, "totalTokens": sent + got}}


def test_without_an_agent_span_the_whole_trace_is_one_agents_run() -> None:
    trace = parsed(
        span("r1", kind="chain", input="Q", output="A"),
        span(
            "l", "r1", at=1, kind="llm", input=[said("system", "S"), said("user", "Q")], output="A", data={"model": "m"}
        ),
    )
    view = trace.create_agent_trace("r1")
    assert (view.agent_id, view.input, view.output, view.model, view.system_prompt) == ("r1", "Q", "A", "m", "S")
    assert trace.create_agent_trace("r1") is view


@pytest.mark.parametrize(
    "parents",
    [
        pytest.param({"a": "b", "b": "a"}, id="two spans that are each other's parent"),
        pytest.param({"a": "a"}, id="a span that is its own parent"),
        pytest.param({"a": "c", "b": "a", "c": "b", "d": "a"}, id="a ring of three with a tail"),
    ],
)
def test_cycles_end_and_every_span_appears_once(parents: dict[str, str]) -> None:
    trace = parsed(*(span(one, parent, kind="tool", data={"name": one}) for one, parent in parents.items()))
    assert sorted(one.span_id for one in trace.spans) == sorted(parents)
    assert trace.format_spans().count("[tool]") == len(parents)


def test_five_thousand_nested_spans_end() -> None:
    kinds = ["agent", "tool"]
    spans = [span(str(n), str(n - 1) if n else None, kind=kinds[n % 2], data={"name": f"n{n}"}) for n in range(5000)]
    trace = parsed(*spans)
    assert len(trace.spans) == 5000
    assert trace.create_agent_trace("0").get_tool_steps()[0].tool_name == "n1"
    assert len(trace.format_spans().splitlines()) <= 501


def test_the_same_span_id_twice_is_the_finished_latest_one() -> None:
    started = span("a", kind="tool", data={"name": "first"})
    started.endTime = None
    trace = parsed(
        started, span("a", kind="tool", data={"name": "done"}, lasts=2), span("a", kind="tool", data={"name": "early"})
    )
    assert [tool.name for tool in trace.get_tool_calls()] == ["done"]


def test_parsing_twice_is_equal_and_leaves_the_raw_trace_as_it_is() -> None:
    raw = OTELTrace(traceId="t", spans=[span("a", attributes=genai([parts("user", "Q")], [parts("assistant", "A")]))])
    before = copy.deepcopy(raw)
    assert parse_trace_for_evaluation(raw) == parse_trace_for_evaluation(raw)
    assert raw == before
    assert len(parse_traces_for_evaluation([raw, raw])) == 2


@pytest.mark.parametrize(
    "status", ["Error", "ERROR", "error", "failed", "2", 2, {"code": "ERROR"}, "STATUS_CODE_ERROR"]
)
def test_every_spelling_of_an_error_status_is_one(status: Any) -> None:
    trace = parsed(span("a", kind="tool", data={"name": "f"}, status=status))
    assert trace.get_tool_calls()[0].metrics.error


def test_spans_without_any_known_attribute_parse_with_unknown_usage() -> None:
    trace = parsed(span("a", attributes={"x": 1}), durationInNanos=5_000_000)
    assert trace.metrics.total_duration_ms == 5.0
    assert not trace.metrics.usage_known and trace.metrics.token_usage.total_tokens == 0
    assert isinstance(trace.spans[0], ChainSpan)


def test_a_trace_that_only_creates_an_agent_is_initialisation() -> None:
    made = span("c", attributes={"gen_ai.operation.name": "create_agent", "gen_ai.agent.name": "x"})
    assert parsed(made).initialization_only
    run = span("i", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "x"}, at=1)
    both = parsed(made, run)
    assert not both.initialization_only
    assert [agent.span_id for agent in both.get_agents()] == ["i"]


def test_a_root_that_failed_without_an_answer_is_a_failed_run_with_the_message() -> None:
    trace = parsed(
        span("r", kind="agent", status={"code": "ERROR", "message": "blocked by policy"}),
        span("l", "r", kind="llm", input=[said("user", "Q")], output="half an answer"),
    )
    assert trace.failed and "blocked by policy" in trace.failure_reason
    assert not trace.failure_reason.startswith("run failed")  # a skip says "the run failed: " before it
    assert trace.output == "", "nothing is taken from below a failed root"


def test_a_root_error_after_a_full_answer_stays_scored() -> None:
    trace = parsed(span("r", kind="agent", input="Q", output="A", status="error"))
    assert not trace.failed and trace.output == "A"


def test_an_error_that_something_recovers_from_is_no_failed_run() -> None:
    trace = parsed(
        span("r", kind="chain", lasts=9),
        span("l1", "r", at=1, kind="llm", input=[said("user", "Q")], error="TimeoutError"),
        span("l2", "r", at=3, kind="llm", input=[said("user", "Q")], output="A"),
    )
    assert not trace.failed and trace.output == "A"


def test_no_answer_after_the_last_error_is_a_failed_run() -> None:
    trace = parsed(
        span("r", kind="chain", lasts=9),
        span("l1", "r", at=1, kind="llm", input=[said("user", "Q")], output=said("assistant", None, toolCalls=[CALL])),
        span("l2", "r", at=3, kind="llm", input=[said("user", "Q")], error="InternalServerError"),
    )
    assert trace.failed and "InternalServerError" in trace.failure_reason


CALL = {"id": "c1", "name": "search", "arguments": "{}"}


def test_with_content_capture_off_no_answer_says_nothing() -> None:
    trace = parsed(
        span("r", attributes={"gen_ai.operation.name": "invoke_agent"}, lasts=9),
        span("l", "r", genai(**{"gen_ai.usage.input_tokens": 7, "gen_ai.response.id": "x"}), at=1),
        span("t", "r", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f"}, at=3, status="error"),
    )
    assert not trace.content_captured
    assert not trace.failed
    assert (trace.input, trace.output) == ("", "")
    assert any("content capture" in note for note in trace.notes)


def test_with_content_capture_off_a_failed_root_is_still_a_failed_run() -> None:
    call = span("l", "r", genai(**{"gen_ai.usage.input_tokens": 7}), at=1)
    trace = parsed(span("r", attributes={"gen_ai.operation.name": "invoke_agent"}, status="error"), call)
    assert trace.failed


def test_an_embeddings_only_trace_counts_tokens_and_has_no_llm_call() -> None:
    attributes = {
        "llm.request.type": "embedding",
        "gen_ai.prompt.0.content": "some text",
        "gen_ai.usage.prompt_tokens": "12",
    }
    trace = parsed(span("e", attributes=attributes, kind="llm", input=[]))
    assert trace.get_llm_calls() == []
    assert trace.metrics.token_usage.input_tokens == 12
    assert trace.content_captured


def test_a_missing_root_makes_the_earliest_spans_roots_and_says_so() -> None:
    trace = parsed(span("a", "gone", kind="tool", data={"name": "f"}), span("b", "a", at=1, kind="llm", output="x"))
    assert trace.root_missing
    assert trace.spans[0].parent_span_id is None
    assert any("root span is missing" in note for note in trace.notes)


def test_input_and_output_from_the_wire_are_json_text_and_never_a_python_repr() -> None:
    trace = parsed(input={"ticker": "ACME", "ok": True}, output=["a", None])
    assert trace.input == '{"ticker": "ACME", "ok": true}'
    assert trace.output == '["a", null]'


def test_a_quoted_json_string_is_decoded_once() -> None:
    trace = parsed(input='"What is this?"', output='"That."')
    assert (trace.input, trace.output) == ("What is this?", "That.")


def test_branching_infrastructure_stays_and_passing_infrastructure_goes() -> None:
    trace = parsed(
        span("r", kind="chain"),
        span("pass", "r", at=1, kind="task"),
        span("fork", "pass", at=2, kind="chain"),
        span("l1", "fork", at=3, kind="llm", output="a"),
        span("l2", "fork", at=4, kind="llm", output="b"),
        span("leaf", "fork", at=5, kind="task"),
    )
    assert [(s.span_id, s.parent_span_id) for s in trace.spans] == [
        ("r", None),
        ("fork", "r"),
        ("l1", "fork"),
        ("l2", "fork"),
    ]
    everything = parse_trace_for_evaluation(
        OTELTrace(spans=[span("r", kind="chain"), span("x", "r", kind="task")]), False
    )
    assert [s.span_id for s in everything.spans] == ["r", "x"]


@pytest.mark.parametrize(
    ("fields", "right", "known"),
    [
        pytest.param({"durationInNanos": 2_000_000}, 2.0, True, id="the trace's own duration"),
        pytest.param({"durationInNanos": "2000000"}, 2.0, True, id="a number written as text"),
        pytest.param(
            {"startTime": "2026-03-01T10:00:00Z", "endTime": "2026-03-01T10:00:03Z"}, 3000.0, True, id="its times"
        ),
        pytest.param(
            {"startTime": "2026-03-01T10:00:03Z", "endTime": "2026-03-01T10:00:00Z"},
            0.0,
            True,
            id="an end before the start",
        ),
        pytest.param({}, 1000.0, True, id="else its spans' times"),
    ],
)
def test_duration(fields: dict[str, Any], right: float, known: bool) -> None:
    trace = parsed(span("a", kind="tool", data={"name": "f"}), **fields)
    assert (trace.metrics.total_duration_ms, trace.metrics.duration_known) == (right, known)


def test_nothing_known_of_times_is_an_unknown_duration() -> None:
    trace = parse_trace_for_evaluation(decode_traces(b'{"traceId": "t", "spans": [{"spanId": "a"}]}')[0])
    assert not trace.metrics.duration_known
    assert trace.timestamp is None


def test_errors_are_counted_from_the_traces_status_else_from_its_spans() -> None:
    failed = span("a", kind="tool", data={"name": "f"}, error="E")
    assert parsed(failed, status=OTELTraceStatus(5)).metrics.error_count == 5
    assert parsed(failed).metrics.error_count == 1


def test_the_traces_own_token_sum_is_not_taken_for_calls_that_recorded_none() -> None:
    trace = parsed(span("a", kind="llm", output="x"), tokenUsage=OTELTokenUsage(10, 5, 15))
    assert not trace.metrics.usage_known


def test_sums_on_agents_are_never_added() -> None:
    trace = parsed(
        span("r", attributes={"openinference.span.kind": "AGENT", "llm.token_count.prompt": 99}, input="Q"),
        span(
            "l", "r", {"openinference.span.kind": "LLM", "llm.token_count.prompt": 9, "llm.token_count.completion": 1}
        ),
    )
    assert trace.metrics.token_usage.total_tokens == 10


def test_a_trace_that_could_not_be_decoded_is_a_parse_error_with_its_reason() -> None:
    (otel,) = decode_traces(b'[{"traceId": "t", "spans": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]")
    with pytest.raises(TraceParseError, match="nested too deeply"):
        parse_trace_for_evaluation(otel)


def test_unknown_roles_are_the_users() -> None:
    trace = parsed(span("a", kind="llm", input=[said("moderator", "hm"), said("developer", "rules")], output="x"))
    assert trace.get_llm_calls()[0].input == [UserMessage("hm"), SystemMessage("rules")]


def test_tool_results_sent_with_role_user_are_the_tools() -> None:
    results = [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "21 C"}]}]
    sent = [said("user", "weather?"), said("assistant", [{"type": "tool_use", "id": "c1", "name": "w", "input": {}}])]
    trace = parsed(span("a", kind="llm", input=[*sent, said("user", results)], output="21 degrees"))
    assert trace.get_llm_calls()[0].get_tool_messages() == [ToolMessage("21 C", "c1")]
    assert trace.input == "weather?"


def test_details_are_read_late_and_survive_pickling() -> None:
    trace = parsed(span("g", kind="agent", data={"name": "bot"}), span("a", "g", genai([parts("user", "Q")], [])))
    copied = pickle.loads(pickle.dumps(trace))
    assert copied == trace
    assert isinstance(copied.spans[0], AgentSpan) and isinstance(copied.spans[1], LLMSpan)
    assert copied.spans[1].model == "m-1"
