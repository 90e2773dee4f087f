"""Where runs end: refused answers, lost error messages, waiting for people, and what only the next call shows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from amp_evaluation.trace import Trace, parse_trace_for_evaluation
from amp_evaluation.trace._otel import OTELSpan, OTELTrace

OI = "openinference.span.kind"
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
AGENT = {OI: "AGENT", "input.value": "Next ferry?"}
USER = {"role": "user", "content": "Next ferry?"}


def span(name: str, parent: str | None, start: float, attributes: dict[str, Any], **over: Any) -> OTELSpan:
    times = {"startTime": f"2026-01-15T10:00:{start:04.1f}Z", "endTime": f"2026-01-15T10:00:{start + 0.5:04.1f}Z"}
    return OTELSpan("t", name, parent, name, attributes=attributes, **(times | over))


def parse(*spans: OTELSpan) -> Trace:
    return parse_trace_for_evaluation(OTELTrace("t", spans[0].spanId, startTime=spans[0].startTime, spans=list(spans)))


def asks(call_id: str, name: str = "fare", to: str = "Bari") -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps({"to": to})}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": call_id, "function": function}]}


def chat(reply: Any, *sent: dict[str, Any]) -> dict[str, Any]:
    said = {"role": "assistant", "content": reply} if isinstance(reply, str) else reply
    found = {"gen_ai.input.messages": json.dumps(sent or [USER])}
    return CHAT | found | ({"gen_ai.output.messages": json.dumps([said])} if said else {})


# --- failed runs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "output",
    [
        pytest.param("The server had an error", id="a text that no model wrote"),
        pytest.param("ServerError(acme.errors): no seat left", id="the error printed"),
    ],
)
def test_without_error_messages_a_failed_run_whose_calls_all_failed_has_no_answer(output: str) -> None:
    event = {"name": "exception", "attributes": {"exception.type": "acme.errors.ServerError"}}
    trace = parse(
        span("a", None, 0, AGENT | {"output.value": output}, status="error", events=[event]),
        span("l", "a", 1, CHAT, status="error"),
    )
    assert (trace.output, trace.failed) == ("", True)


def test_an_answer_after_calls_that_failed_stays_where_the_run_ended_well() -> None:
    trace = parse(
        span("a", None, 0, AGENT | {"output.value": "Try tomorrow."}), span("l", "a", 1, CHAT, status="error")
    )
    assert (trace.output, trace.failed) == ("Try tomorrow.", False)


def test_an_agent_that_failed_after_the_reply_gave_no_answer() -> None:
    trace = parse(
        span("r", None, 0, {OI: "CHAIN"}),
        span("a", "r", 1, {OI: "AGENT"}, endTime="2026-01-15T10:00:04Z", status="error"),
        span("l", "a", 2, chat("At 22:30.")),
    )
    assert (trace.output, trace.failed) == ("", True)


def test_an_agent_that_an_earlier_error_marks_as_failed_answered_all_the_same() -> None:
    trace = parse(
        span("r", None, 0, {OI: "CHAIN"}),
        span("a", "r", 1, {OI: "AGENT"}, endTime="2026-01-15T10:00:09Z", status="error"),
        span("l1", "a", 2, CHAT, status="error"),
        span("l2", "a", 3, chat("At 22:30.")),
    )
    assert (trace.output, trace.failed) == ("At 22:30.", False)


# --- requests without an execution ------------------------------------------------------------------------------------


def test_a_run_that_ends_at_a_request_executed_nothing() -> None:
    trace = parse(span("a", None, 0, AGENT), span("l", "a", 1, chat(asks("c1"))))
    assert trace.get_tool_calls() == []
    assert [call.output for call in trace.get_llm_calls()] == ['fare({"to": "Bari"})']


def test_a_request_after_which_the_run_went_on_was_executed_though_no_answer_shows() -> None:
    trace = parse(
        span("a", None, 0, AGENT),
        span("l1", "a", 1, chat(asks("c1"))),
        span("l2", "a", 2, chat("59 EUR.")),
    )
    assert [(tool.name, tool.arguments) for tool in trace.get_tool_calls()] == [("fare", {"to": "Bari"})]


@pytest.mark.parametrize(
    ("history", "results"),
    [
        pytest.param([asks("f9")], ["f9 EUR"], id="once under another id"),
        pytest.param([asks("c1")], ["c1 EUR"], id="once under its own"),
        pytest.param([asks("c1"), asks("f9")], ["c1 EUR", "f9 EUR"], id="twice, of which the reply told one"),
        pytest.param([asks("c1"), asks("f9", to="Split")], ["c1 EUR", "f9 EUR"], id="and another one"),
    ],
)
def test_a_history_that_shows_a_request_again_tells_of_no_other(
    history: list[dict[str, Any]], results: list[str]
) -> None:
    sent: list[dict[str, Any]] = [USER]
    for said in history:
        call_id = said["tool_calls"][0]["id"]
        sent += [said, {"role": "tool", "tool_call_id": call_id, "content": f"{call_id} EUR"}]
    trace = parse(
        span("a", None, 0, AGENT), span("l1", "a", 1, chat(asks("c1"))), span("l2", "a", 2, chat("Done.", *sent))
    )
    assert [tool.result for tool in trace.get_tool_calls()] == results


@pytest.mark.parametrize("name", ["front_desk", "front_desk.task", "execute_task front_desk"])
def test_a_transfer_to_a_graphs_node_is_a_handoff(name: str) -> None:
    back = asks("c1", "transfer_back_to_front_desk")
    sent = [USER, back, {"role": "tool", "tool_call_id": "c1", "content": "Transferred."}]
    trace = parse(
        span("root", None, 0, {OI: "CHAIN"}),
        span(name, "root", 1, {OI: "CHAIN"}),
        span("l", name, 2, chat("Done.", *sent)),
    )
    assert trace.get_tool_calls() == []


def test_a_tool_that_waits_for_a_person_was_not_executed() -> None:
    event = {"name": "exception", "attributes": {"exception.type": "langgraph.errors.GraphInterrupt"}}
    tool = {OI: "TOOL", "tool.name": "fare", "input.value": '{"to": "Bari"}'}
    trace = parse(
        span("a", None, 0, AGENT),
        span("l", "a", 1, chat(asks("c1"))),
        span("t", "a", 2, tool, status="error", events=[event]),
    )
    assert (trace.get_tool_calls(), trace.failed) == ([], False)
    assert "'t' handed control on, or waits for a person" in trace.notes


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        pytest.param({"to": "Bari", "state": {"messages": []}, "tool_call_id": "c1"}, {"to": "Bari"}, id="added ones"),
        pytest.param({"to": "Bari", "seats": 2}, {"to": "Bari", "seats": 2}, id="a tool's own"),
    ],
)
def test_arguments_that_a_framework_adds_are_not_the_tools(given: dict[str, Any], arguments: dict[str, Any]) -> None:
    tool = {OI: "TOOL", "tool.name": "fare", "input.value": json.dumps(given), "output.value": "59"}
    trace = parse(span("a", None, 0, AGENT), span("l", "a", 1, chat(asks("c1"))), span("t", "a", 2, tool))
    assert [found.arguments for found in trace.get_tool_calls()] == [arguments]


# --- replies that stand elsewhere -------------------------------------------------------------------------------------


def test_a_reply_that_only_the_next_call_shows_is_the_calls() -> None:
    sent = [USER, asks("c1"), {"role": "tool", "tool_call_id": "c1", "content": "59 EUR"}]
    trace = parse(span("a", None, 0, AGENT), span("l1", "a", 1, chat(None)), span("l2", "a", 2, chat("59 EUR.", *sent)))
    assert [call.output for call in trace.get_llm_calls()] == ['fare({"to": "Bari"})', "59 EUR."]
    assert [tool.result for tool in trace.get_tool_calls()] == ["59 EUR"]


def test_a_span_before_one_that_sends_the_same_only_prepared_it() -> None:
    trace = parse(span("a", None, 0, AGENT), span("l1", "a", 1, chat(None)), span("l2", "a", 2, chat("At 22:30.")))
    assert [call.output for call in trace.get_llm_calls()] == ["At 22:30."]


@pytest.mark.parametrize(
    ("attributes", "reply"),
    [
        pytest.param({"output.value": "At 22:30."}, "At 22:30.", id="a completion's text"),
        pytest.param(
            {
                "output.mime_type": "application/json",
                "output.value": json.dumps(
                    [{"output": [{"role": "assistant", "content": [{"type": "output_text", "text": "At 22:30."}]}]}]
                ),
            },
            "At 22:30.",
            id="a provider's response",
        ),
        pytest.param(
            {
                "output.mime_type": "application/json",
                "output.value": json.dumps(
                    {"output": [{"type": "function_call", "call_id": "c1", "name": "fare", "arguments": "{}"}]}
                ),
            },
            "fare({})",
            id="a response that calls a tool",
        ),
        pytest.param(
            {"output.mime_type": "application/json", "output.value": '{"messages": [], "model": "m"}'},
            "",
            id="a request is no reply",
        ),
    ],
)
def test_an_openinference_call_whose_reply_stands_only_in_its_output(attributes: dict[str, Any], reply: str) -> None:
    attributes = {OI: "LLM", "llm.prompts": ["Next ferry?"], **attributes}
    trace = parse(span("l", None, 0, attributes))
    [call] = trace.get_llm_calls()
    assert (call.output, trace.input) == (reply, "Next ferry?")


def test_the_output_of_a_failed_call_is_no_reply() -> None:
    trace = parse(span("l", None, 0, {OI: "LLM", "output.value": "ServerError(…)"}, status="error"))
    assert [call.output for call in trace.get_llm_calls()] == [""]


def test_a_reply_of_an_unknown_role_is_the_assistants() -> None:
    said = {"role": "unknown", "parts": [{"type": "text", "content": "At 22:30."}]}
    assert parse(span("l", None, 0, chat(said))).output == "At 22:30."


def test_two_records_of_one_reply_may_differ_in_white_space() -> None:
    outer = {OI: "LLM", "llm.output_messages.0.message.content": '{"port":"Bari"}'}
    inner = {OI: "LLM", "llm.output_messages.0.message.content": '{"port": "Bari"}'}
    assert len(parse(span("l1", None, 0, outer), span("l2", "l1", 0.1, inner)).get_llm_calls()) == 1


def test_answers_with_ids_that_no_request_has_come_in_order() -> None:
    answers = [{"role": "tool", "tool_call_id": f"x{n}", "content": f"{n} EUR"} for n in (1, 2)]
    trace = parse(
        span("a", None, 0, AGENT),
        span("l1", "a", 1, chat("Done.", USER, asks("c1"), asks("c2", to="Split"), *answers)),
    )
    assert [(tool.arguments["to"], tool.result) for tool in trace.get_tool_calls()] == [
        ("Bari", "1 EUR"),
        ("Split", "2 EUR"),
    ]


@pytest.mark.parametrize(
    ("kind", "failed"),
    [
        pytest.param("langgraph.errors.GraphInterrupt", False, id="a graph that waits for a person"),
        pytest.param("ParentCommand", False, id="control handed to the graph above"),
        pytest.param("pydantic_ai.exceptions.ApprovalRequired", False, id="a tool that needs an approval"),
        pytest.param("KeyboardInterrupt", True, id="a person who ended the run"),
        pytest.param("acme.InterruptedStream", True, id="an error of another name"),
    ],
)
def test_what_frameworks_raise_to_hand_control_on_is_no_error(kind: str, failed: bool) -> None:
    event = {"name": "exception", "attributes": {"exception.type": kind, "exception.message": "approve?"}}
    trace = parse(
        span("a", None, 0, AGENT, status="error", events=[event]),
        span("l", "a", 1, chat(asks("c1"))),
    )
    assert trace.failed is failed


@pytest.mark.parametrize(
    ("kind", "message", "reason"),
    [
        pytest.param("a.b.NoSeat", "no seat left", "a.b.NoSeat: no seat left (at 'a')", id="type and message"),
        pytest.param("a.b.NoSeat", "NoSeat: none", "NoSeat: none (at 'a')", id="a message that names the type"),
        pytest.param(
            "NoSeat", "NoSeat('x')Traceback (most recent call last):\n  File", "NoSeat('x') (at 'a')", id="a traceback"
        ),
        pytest.param("", "x" * 600, f"{'x' * 500}… (at 'a')", id="a long one"),
        pytest.param("", "", "an error without a message (at 'a')", id="none"),
    ],
)
def test_reasons_of_failed_runs(kind: str, message: str, reason: str) -> None:
    event = {"name": "exception", "attributes": {"exception.type": kind, "exception.message": message}}
    assert parse(span("a", None, 0, AGENT, status="error", events=[event])).failure_reason == reason


@pytest.mark.parametrize(
    ("last", "failed"),
    [
        pytest.param(chat(asks("c2")), False, id="a model call in the same tick"),
        pytest.param({OI: "CHAIN"}, True, id="only the agent around it"),
    ],
)
def test_a_clock_so_coarse_that_all_happens_at_once(last: dict[str, Any], failed: bool) -> None:
    at = {"startTime": "2026-01-15T10:00:00Z", "endTime": "2026-01-15T10:00:00Z"}
    tool = {OI: "TOOL", "tool.name": "fare", "input.value": '{"to": "Bari"}'}
    trace = parse(
        span("a", None, 0, AGENT, **at),
        span("t", "a", 0, tool, status="error", **at),
        span("l", "a", 0, last, **at),
    )
    assert trace.failed is failed
