"""Rules that the recordings of frameworks taught, each on the smallest trace that needs it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from amp_evaluation.trace import Trace, parse_trace_for_evaluation
from amp_evaluation.trace._otel import OTELSpan, OTELTrace
from amp_evaluation.trace.conventions._values import printed_members

OI = "openinference.span.kind"


def span(name: str, parent: str | None, start: float, attributes: dict[str, Any], **over: Any) -> OTELSpan:
    times = {"startTime": f"2026-01-15T10:00:{start:04.1f}Z", "endTime": f"2026-01-15T10:00:{start + 0.5:04.1f}Z"}
    return OTELSpan("t", name, parent, name, attributes=attributes, **(times | over))


def parse(*spans: OTELSpan) -> Trace:
    return parse_trace_for_evaluation(OTELTrace("t", spans[0].spanId, startTime=spans[0].startTime, spans=list(spans)))


def call(reply: str = "", *tools: tuple[str, dict[str, Any]], sent: Any = None, **more: Any) -> dict[str, Any]:
    parts = [{"type": "text", "content": reply}] if reply else []
    parts += [{"type": "tool_call", "id": f"c-{n}", "name": n, "arguments": a} for n, a in tools]
    found = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
    }
    sent = sent or [{"role": "user", "content": "Next ferry?"}]
    return found | {"gen_ai.input.messages": json.dumps(sent)} | {k.replace("__", "."): v for k, v in more.items()}


def failed(message: str, kind: str = "ValueError") -> dict[str, Any]:
    event = {"name": "exception", "attributes": {"exception.type": kind, "exception.message": message}}
    return {"status": {"code": "ERROR", "message": message}, "events": [event]}


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        pytest.param("I look.At 22:30.", "At 22:30.", id="all replies strung together"),
        pytest.param("I look.\n\nAt 22:30.", "At 22:30.", id="with space between"),
        pytest.param("At 22:30.", "At 22:30.", id="the last one alone"),
        pytest.param("So: At 22:30.", "So: At 22:30.", id="a text of its own"),
    ],
)
def test_replies_strung_together_answer_with_the_last_one(output: str, answer: str) -> None:
    root = span("a", None, 0, {OI: "AGENT", "input.value": "Next ferry?", "output.value": output})
    trace = parse(root, span("l1", "a", 1, call("I look.")), span("l2", "a", 2, call("At 22:30.")))
    assert trace.output == answer
    assert trace.get_agents()[0].output == answer


@pytest.mark.parametrize(
    "output",
    [
        pytest.param("no seat left", id="the message"),
        pytest.param("ValueError(acme.errors): no seat left\nContext: {}", id="the error printed"),
    ],
)
def test_a_failed_root_that_only_repeats_its_error_has_no_answer(output: str) -> None:
    root = {OI: "AGENT", "input.value": "Next ferry?", "output.value": output}
    trace = parse(span("a", None, 0, root, **failed("no seat left", "acme.errors.ValueError")))
    assert (trace.output, trace.failed) == ("", True)
    assert "no seat left" in trace.failure_reason


def test_a_failed_root_after_an_answer_of_its_own_is_scored() -> None:
    root = {OI: "AGENT", "input.value": "Next ferry?", "output.value": "At 22:30."}
    trace = parse(span("a", None, 0, root, **failed("tracing broke")))
    assert (trace.output, trace.failed) == ("At 22:30.", False)


def test_a_run_that_caught_its_only_calls_error_and_says_it_failed() -> None:
    root = {OI: "AGENT", "input.value": "Next ferry?", "output.value": "The server had an error"}
    model = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    trace = parse(
        span("a", None, 0, root, status="OK"),
        span("l", "a", 1, model, **failed("Error code: 500 - The server had an error")),
    )
    assert (trace.output, trace.failed) == ("", True)


def test_without_content_an_agent_in_which_only_a_tool_failed_went_well() -> None:
    tool = span("t", "a", 1, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "fare"}, **failed("no"))
    trace = parse(span("a", None, 0, {"gen_ai.operation.name": "invoke_agent"}), tool)
    assert (trace.content_captured, trace.failed) == (False, False)


# --- calls and tools --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("second", "calls"),
    [
        pytest.param({"gen_ai__response__id": "r1"}, 1, id="one response id at one time"),
        pytest.param({"gen_ai__response__id": "r2"}, 2, id="two response ids"),
        pytest.param({}, 2, id="no response id"),
    ],
)
def test_spans_beside_each_other_with_one_response_id_are_one_call(second: dict[str, Any], calls: int) -> None:
    usage = {"gen_ai__usage__input_tokens": 5, "gen_ai__usage__output_tokens": 2}
    first = span("l1", "h", 1, call("At 22:30.", gen_ai__response__id="r1", **usage))
    bare = {"gen_ai.operation.name": "chat"} | {k.replace("__", "."): v for k, v in (second | usage).items()}
    trace = parse(span("h", None, 0, {}), first, span("l2", "h", 1.2, bare))
    assert len(trace.get_llm_calls()) == calls
    assert trace.metrics.token_usage.input_tokens == 5 * calls


def test_a_model_call_around_an_agents_run_is_no_sum_of_its_calls() -> None:
    trace = parse(
        span("l0", None, 0, call("", ("go", {}))),
        span("a", "l0", 1, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "billing"}),
        span("l1", "a", 2, call("I look.")),
        span("l2", "a", 3, call("Paid.")),
    )
    assert [c.output for c in trace.get_llm_calls()] == ["go({})", "I look.", "Paid."]


def test_answers_without_id_or_name_belong_to_the_calls_in_order() -> None:
    tools = [
        {"id": f"c{n}", "function": {"name": "fare", "arguments": json.dumps({"to": n})}} for n in ("Bari", "Split")
    ]
    sent = [
        {"role": "user", "content": "Fares?"},
        {"role": "assistant", "tool_calls": tools},
        {"role": "tool", "content": "59"},
        {"role": "tool", "content": "61"},
    ]
    trace = parse(span("h", None, 0, {}), span("l", "h", 1, call("59 and 61.", sent=sent)))
    assert [(t.arguments, t.result) for t in trace.get_tool_calls()] == [
        ({"to": "Bari"}, "59"),
        ({"to": "Split"}, "61"),
    ]


def test_an_execution_failed_when_the_record_inside_says_so() -> None:
    outer = {OI: "TOOL", "tool.name": "fare", "input.value": '{"to": "Bari"}', "output.value": "no such port"}
    inner = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "fare"}
    trace = parse(
        span("a", None, 0, {OI: "AGENT", "output.value": "Sorry."}),
        span("t1", "a", 1, outer, status="OK"),
        span("t2", "t1", 1.1, inner, **failed("no such port")),
    )
    [tool] = trace.get_tool_calls()
    assert (tool.result, tool.metrics.error, tool.metrics.error_message) == ("no such port", True, "no such port")


def test_a_call_id_that_no_model_gave_links_nothing() -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "fare", "gen_ai.tool.call.id": "<none>"}
    tool["gen_ai.tool.call.arguments"] = '{"to": "Bari"}'
    trace = parse(
        span("h", None, 0, {}), span("l", "h", 1, call("", ("fare", {"to": "Bari"}))), span("t", "h", 2, tool)
    )
    assert [t.span_id for t in trace.get_tool_calls()] == ["t"]


def printed(role: str, content: str, meta: str = "{}") -> str:
    """A message as Haystack prints it."""
    return f"ChatMessage(_role=<ChatRole.{role.upper()}: '{role}'>, _content=[{content}], _meta={meta})"


def test_where_no_call_was_recorded_the_conversation_tells_tools_and_usage() -> None:
    asked = "ToolCall(tool_name='fare', arguments={'to': 'Bari'}, id='c1')"
    messages = [
        printed("user", "TextContent(text='Fare?')"),
        printed("assistant", asked, "{'usage': {'prompt_tokens': 10, 'completion_tokens': 4}}"),
        printed("tool", f"ToolCallResult(result='59', origin={asked}, error=True)"),
        printed("assistant", "TextContent(text='59 EUR.')", "{'usage': {'prompt_tokens': 20, 'completion_tokens': 3}}"),
    ]
    root = {OI: "CHAIN", "input.value": json.dumps({"data": {"agent": {"messages": messages[:1]}}})}
    root["output.value"] = json.dumps({"agent": {"messages": messages}})
    trace = parse(span("p", None, 0, root))
    assert (trace.input, trace.output) == ("Fare?", "59 EUR.")
    [tool] = trace.get_tool_calls()
    assert (tool.name, tool.arguments, tool.result, tool.metrics.error) == ("fare", {"to": "Bari"}, "59", True)
    assert (trace.metrics.token_usage.input_tokens, trace.metrics.token_usage.output_tokens) == (30, 7)


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "members"),
    [
        pytest.param(
            "id='1' source='user' content='a=b c=d'", {"id": "1", "source": "user", "content": "a=b c=d"}, id="text"
        ),
        pytest.param(
            "n=1 at=d.t(2026, tz=d.utc) x={'k': [1]}", {"n": 1, "x": {"k": [1]}}, id="calls and brackets inside"
        ),
        pytest.param("it's \\'quoted\\'", None, id="no members"),
        pytest.param("a='cut", None, id="cut"),
    ],
)
def test_members_printed_without_a_name_around_them(text: str, members: dict[str, Any] | None) -> None:
    found = printed_members(text)
    assert found is None if members is None else members.items() <= found.items()
