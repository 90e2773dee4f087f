"""Input and output as people wrote them, calls and executions once, handoffs apart, failed or not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from loopback.otel import genai, parsed, parts, said, span

from amp_evaluation.trace._wire import OTELSpan
from amp_evaluation.trace.conventions._answered import answer_text
from amp_evaluation.trace.conventions._asked import asked_text
from amp_evaluation.trace.conventions._tool_values import tool_arguments, tool_result
from amp_evaluation.trace.models import Trace


def lc(kind: str, **kwargs: Any) -> dict[str, Any]:
    """A LangChain object as its callbacks serialise it."""
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": kwargs}


ASKED = [
    pytest.param("Q", "Q", id="plain text"),
    pytest.param('"Q"', "Q", id="a quoted JSON string"),
    pytest.param({"inputs": {"messages": [["user", "Q"]]}, "tags": [], "metadata": {}}, "Q", id="Traceloop's envelope"),
    pytest.param({"inputs": {"messages": ["user", "Q"]}, "tags": [], "kwargs": {"name": "x"}}, "Q", id="one pair"),
    pytest.param({"inputs": "Q", "tags": [], "metadata": {}, "kwargs": {}}, "Q", id="an envelope around a text"),
    pytest.param({"messages": [said("system", "S"), said("user", "Q")]}, "Q", id="a list of messages"),
    pytest.param(
        {"messages": [said("user", "P"), said("assistant", "A"), said("user", "Q")]},
        "Q",
        id="the last in a conversation",
    ),
    pytest.param(
        {"messages": [lc("SystemMessage", content="S"), lc("HumanMessage", content="Q")]}, "Q", id="LangChain's"
    ),
    pytest.param({"messages": [{"type": "human", "data": {"content": "Q"}}]}, "Q", id="LangChain's other dump"),
    pytest.param({"messages": [[lc("HumanMessage", content="Q")]]}, "Q", id="a batch of one"),
    pytest.param(lc("HumanMessage", content="Q"), "Q", id="one message"),
    pytest.param({"args": ["Q"], "kwargs": {}}, "Q", id="the arguments of a wrapped function"),
    pytest.param({"args": [], "kwargs": {"user_msg": "Q", "memory": None}}, "Q", id="named arguments"),
    pytest.param({"kwargs": {"question": "Q"}}, "Q", id="one named argument"),
    pytest.param({"task": "Q", "stream": False, "reset": True, "images": None}, "Q", id="a task with settings"),
    pytest.param([{"type": "text", "text": "Q"}, {"type": "image", "data": "x"}], "Q\n[image]", id="parts"),
    pytest.param([{"text": "Q"}], "Q", id="a lone text part"),
    pytest.param(["Q"], "Q", id="a list of one text"),
    pytest.param({"ticker": "ACME"}, '{"ticker": "ACME"}', id="an object without a message"),
    pytest.param(["a", "b"], '["a", "b"]', id="several texts"),
    pytest.param({"init_state": {"a": 1}}, "", id="a framework's state"),
    pytest.param({"ctx": "<object>", "ev": "StartEvent()"}, "", id="a workflow's event"),
    pytest.param("AgentInput(input=[ChatMessage(role=<MessageRole.US", "", id="a printed object that was cut"),
    pytest.param(
        [said("user", [{"type": "tool_result", "tool_use_id": "c", "content": "R"}])], "", id="a tool's result"
    ),
    pytest.param(said("assistant", "A"), "", id="an assistant's message"),
    pytest.param({}, "", id="an empty object"),
    pytest.param([], "", id="an empty list"),
    pytest.param(None, "", id="nothing"),
    pytest.param(4, "4", id="a number"),
]


@pytest.mark.parametrize(("value", "right"), ASKED)
def test_what_was_asked(value: Any, right: str) -> None:
    assert asked_text(value) == right
    if isinstance(value, dict | list):
        assert asked_text(json.dumps(value)) == right


ANSWERED = [
    pytest.param("A", "A", id="plain text"),
    pytest.param({"outputs": "A", "kwargs": {"tags": []}}, "A", id="Traceloop's envelope"),
    pytest.param(
        {"outputs": {"messages": [lc("AIMessage", content="A")]}, "kwargs": {}}, "A", id="with messages inside"
    ),
    pytest.param({"messages": [said("user", "Q"), said("assistant", "A")]}, "A", id="a conversation"),
    pytest.param({"messages": [said("user", "Q")]}, "", id="a conversation without an answer"),
    pytest.param({"generations": [[{"text": "A", "message": lc("AIMessage", content="A")}]]}, "A", id="generations"),
    pytest.param({"choices": [{"message": said("assistant", "A"), "index": 0}]}, "A", id="a chat completion"),
    pytest.param({"role": "assistant", "content": [{"type": "text", "text": "A"}]}, "A", id="one message"),
    pytest.param({"blocks": [{"text": "A"}], "raw_output": "A"}, "A", id="blocks"),
    pytest.param({"raw": "A", "tasks_output": [], "pydantic": None}, "A", id="a crew's result"),
    pytest.param({"answer": "A", "context": ["doc"], "input": "Q"}, "A", id="an answer beside its context"),
    pytest.param({"output": "A", "intermediate_steps": []}, "A", id="an executor's result"),
    pytest.param({"result": {"response": {"role": "assistant", "blocks": [{"text": "A"}]}}}, "A", id="a stop event"),
    pytest.param(
        "StopEvent(result=AgentOutput(response=ChatMessage(role=<MessageRole.ASSISTANT: 'assistant'>, "
        "blocks=[TextBlock(block_type='text', text='A')]), tool_calls=[]))",
        "A",
        id="a printed stop event",
    ),
    pytest.param("StopEvent(result=AgentOutput(response=ChatMes", "", id="a cut one"),
    pytest.param({"city": "Oslo", "population": 7}, '{"city": "Oslo", "population": 7}', id="a structured answer"),
    pytest.param({"update": {"messages": [said("assistant", "A")]}, "goto": "x", "graph": None}, "A", id="a command"),
    pytest.param([{"update": {"messages": [said("assistant", "A")]}, "goto": [], "graph": None}], "A", id="commands"),
    pytest.param([{"text": "A"}], "A", id="a lone text part"),
    pytest.param({"text": "A"}, "A", id="a lone text"),
    pytest.param({"content": {"parts": [{"text": "A"}], "role": "model"}}, "A", id="Gemini's"),
    pytest.param({"a": {"x": "same text"}, "b": "same text"}, "same text", id="leaves that all say the same"),
    pytest.param(said("user", "Q"), "", id="a user's message"),
    pytest.param('""', "", id="two quote characters"),
    pytest.param(None, "", id="nothing"),
    pytest.param({}, "", id="an empty object"),
]


@pytest.mark.parametrize(("value", "right"), ANSWERED)
def test_what_was_answered(value: Any, right: str) -> None:
    assert answer_text(value) == right


@pytest.mark.parametrize(
    ("value", "right"),
    [
        pytest.param({"a": 1}, {"a": 1}, id="an object"),
        pytest.param('{"a": 1}', {"a": 1}, id="JSON text"),
        pytest.param("{'a': 1}", {"a": 1}, id="a printed dict"),
        pytest.param({"input_str": "{'a': 1}", "tags": []}, {"a": 1}, id="LangChain's text"),
        pytest.param({"input_str": "x", "inputs": {"a": 1}, "tags": []}, {"a": 1}, id="LangChain's inputs"),
        pytest.param({"args": [], "kwargs": {"a": 1}, "sanitize_inputs_outputs": True}, {"a": 1}, id="a call"),
        pytest.param({"args": ["x"], "kwargs": {}}, "x", id="a call with one bare value"),
        pytest.param({"args": [1, 2]}, [1, 2], id="a call with two bare values"),
        pytest.param({"tool_kwargs": {"a": 1}, "tool_id": "c"}, {"a": 1}, id="LlamaIndex's"),
        pytest.param("A-999", "A-999", id="a bare text"),
    ],
)
def test_arguments_of_a_tool(value: Any, right: Any) -> None:
    assert tool_arguments(value) == right


@pytest.mark.parametrize(
    ("value", "right", "failed"),
    [
        pytest.param("R", "R", False, id="a text"),
        pytest.param({"a": 1}, {"a": 1}, False, id="an object"),
        pytest.param({"output": lc("ToolMessage", content="R", type="tool")}, "R", False, id="LangChain's message"),
        pytest.param({"output": {"lc": 1, "kwargs": {"content": "R"}}}, "R", False, id="LangChain's, class unnamed"),
        pytest.param(
            {"output": {"lc": 1, "kwargs": {"content": [{"type": "text", "text": "R"}], "status": "error"}}},
            "R",
            True,
            id="LangChain's in parts, marked as an error",
        ),
        pytest.param({"type": "tool", "data": {"content": "R", "status": "error"}}, "R", True, id="marked as an error"),
        pytest.param(
            {"graph": "p", "update": {"messages": [lc("ToolMessage", content="R")]}}, "R", False, id="a command"
        ),
        pytest.param({"blocks": [{"text": "R"}], "raw_output": "R", "is_error": True}, "R", True, id="LlamaIndex's"),
        pytest.param({"blocks": [{"text": "R"}], "raw_output": None}, "R", False, id="blocks alone"),
        pytest.param({"content": [{"type": "text", "text": "R"}], "isError": True}, "R", True, id="MCP's"),
        pytest.param([{"text": "R"}], "R", False, id="a lone text part"),
        pytest.param([{"toolResult": {"content": [{"text": "R"}], "status": "error"}}], "R", True, id="Bedrock's"),
        pytest.param([1, 2], [1, 2], False, id="a list of its own"),
        pytest.param(None, None, False, id="nothing"),
    ],
)
def test_results_of_a_tool(value: Any, right: Any, failed: bool) -> None:
    assert tool_result(value) == (right, failed)


def llm(span_id: str, parent: str | None, got: str | None, tokens: int | None = None, **more: Any) -> OTELSpan:
    attributes: dict[str, Any] = {"openinference.span.kind": "LLM"}
    if got is not None:
        attributes["llm.output_messages.0.message.content"] = got
    if tokens is not None:
        attributes |= {"llm.token_count.prompt": tokens, "llm.token_count.completion": 1}
    return span(span_id, parent, {**attributes, **more.pop("attributes", {})}, **more)


def calls(*spans: OTELSpan) -> list[str]:
    return [call.span_id for call in parsed(*spans).get_llm_calls()]


SENT = {"llm.input_messages.0.message.content": "Q"}
ONCE: dict[str, tuple[list[OTELSpan], list[str]]] = {
    "the same reply inside is the same call, and the fuller one stays": (
        [llm("o", None, "A"), llm("i", "o", "A", attributes=SENT)],
        ["i"],
    ),
    "the outer one stays when it has more": ([llm("o", None, "A", 5, attributes=SENT), llm("i", "o", None, 5)], ["o"]),
    "the same usage inside is the same call": ([llm("o", None, None, 5), llm("i", "o", "A", 5)], ["i"]),
    "an outer one with neither around one is the same call": ([llm("o", None, None), llm("i", "o", "A", 5)], ["i"]),
    "an outer one around two is their sum": (
        [llm("o", None, "A", 9), llm("i", "o", "x", 4, at=1), llm("j", "o", "A", 5, at=3)],
        ["i", "j"],
    ),
    "different replies and usage are two calls": ([llm("o", None, "A", 5), llm("i", "o", "B", 7)], ["o", "i"]),
    "a call inside a tool inside is another call": (
        [llm("o", None, "A", 5), span("t", "o", kind="tool", data={"name": "f"}), llm("i", "t", "A", 5)],
        ["o", "i"],
    ),
    "siblings with equal replies are never merged": (
        [llm("a", None, "A", 5), llm("b", None, "A", 5, at=2)],
        ["a", "b"],
    ),
    "one that got nothing before a sibling only prepared": (
        [llm("a", None, None), llm("b", None, "A", 5, at=2)],
        ["b"],
    ),
    "one that failed before a sibling is a call": (
        [llm("a", None, None, status="error"), llm("b", None, "A", 5, at=2)],
        ["a", "b"],
    ),
    "one with a finish reason is a call": (
        [llm("a", None, None, attributes={"llm.finish_reason": "stop"}), llm("b", None, "A", at=2)],
        ["a", "b"],
    ),
    "the last one that got nothing is a call": ([llm("a", None, "A", 5), llm("b", None, None, at=2)], ["a", "b"]),
    "three around each other are one": (
        [llm("o", None, None), llm("m", "o", "A"), llm("i", "m", "A", 5, attributes=SENT)],
        ["i"],
    ),
}


@pytest.mark.parametrize("case", ONCE)
def test_one_call_once(case: str) -> None:
    spans, right = ONCE[case]
    assert calls(*spans) == right


def test_the_one_that_stays_takes_what_it_lacks() -> None:
    trace = parsed(llm("o", None, "A", 7), llm("i", "o", "A", attributes=SENT))
    (call,) = trace.get_llm_calls()
    assert call.metrics.token_usage.total_tokens == 8
    assert any("same LLM call" in note for note in trace.notes)


def tool_call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}


def answer(call_id: str, text: str) -> dict[str, Any]:
    return parts("tool", {"type": "tool_call_response", "id": call_id, "response": text})


ASK = parts("user", "Q")
CALLED = parts("assistant", tool_call("c1", "find", order="A-9"))


def tools(trace: Trace) -> list[tuple[str, Any, Any]]:
    return [(tool.name, tool.arguments, tool.result) for tool in trace.get_tool_calls()]


def test_executions_without_a_span_come_from_the_request_and_its_answer() -> None:
    trace = parsed(
        span("r", kind="chain"),
        span("l1", "r", genai([ASK], [CALLED]), at=1),
        span("l2", "r", genai([ASK, CALLED, answer("c1", "R")], [parts("assistant", "A")]), at=3),
    )
    assert tools(trace) == [("find", {"order": "A-9"}, "R")]
    assert [type(one).__name__ for one in trace.spans] == ["ChainSpan", "LLMSpan", "ToolSpan", "LLMSpan"]
    assert any("taken from the model's request" in note for note in trace.notes)


def test_calls_of_earlier_turns_are_not_repeated() -> None:
    earlier = [ASK, CALLED, answer("c1", "R"), parts("assistant", "A"), parts("user", "Q2")]
    assert tools(parsed(span("l", None, genai(earlier, [parts("assistant", "B")])))) == []


def test_requests_in_a_history_of_this_turn_count() -> None:
    history = [ASK, CALLED, answer("c1", "R")]
    assert tools(parsed(span("l", None, genai(history, [parts("assistant", "B")])))) == [
        ("find", {"order": "A-9"}, "R")
    ]


def test_a_bare_argument_takes_its_name_from_the_request_and_a_missing_result_from_the_answer() -> None:
    trace = parsed(
        span("l1", None, genai([ASK], [CALLED])),
        span("t", None, {"openinference.span.kind": "TOOL", "tool.name": "find", "input.value": "A-9"}, at=2),
        span("l2", None, genai([ASK, CALLED, answer("c1", "R")], [parts("assistant", "A")]), at=4),
    )
    assert tools(trace) == [("find", {"order": "A-9"}, "R")]
    assert trace.get_tool_calls()[0].tool_call_id == "c1"


def test_parallel_calls_of_one_tool_pair_by_their_arguments() -> None:
    asked = parts("assistant", *(tool_call(f"c{n}", "find", order=n) for n in range(3)))
    spans = [span("l1", None, genai([ASK], [asked]))]
    for n in (2, 0, 1):
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find"}
        spans.append(
            span(f"t{n}", None, {**attributes, "gen_ai.tool.call.arguments": json.dumps({"order": n})}, at=2 + n)
        )
    spans.append(span("l2", None, genai([ASK, asked, *(answer(f"c{n}", f"R{n}") for n in range(3))], []), at=9))
    assert [(tool.arguments, tool.result) for tool in parsed(*spans).get_tool_calls()] == [
        ({"order": n}, f"R{n}") for n in range(3)
    ]


def test_a_tool_span_right_inside_one_of_its_name_is_the_same_execution() -> None:
    one = {"tool.name": "find", "tool.arguments": '{"order": 1}'}
    trace = parsed(span("o", None, one), span("i", "o", {"openinference.span.kind": "TOOL", "tool.name": "find"}))
    assert tools(trace) == [("find", {"order": 1}, None)]


def test_tools_inside_another_tool_are_executions_of_their_own() -> None:
    outer = span("o", kind="tool", data={"name": "plan"}, input="{}")
    inner = [span(f"i{n}", "o", at=n + 1, kind="tool", data={"name": "plan"}, input=f'{{"n": {n}}}') for n in range(2)]
    assert len(tools(parsed(outer, *inner))) == 3


def test_a_handoff_is_no_execution() -> None:
    kind = {"openinference.span.kind": "TOOL"}
    passed_on = span("h", None, {**kind, "input.value": "Triage", "output.value": "Billing"}, name="handoff to Billing")
    marked = span("m", None, {"gen_ai.operation.name": "execute_tool", "gen_ai.handoff.to_agent": "Billing"}, at=1)
    trace = parsed(passed_on, marked)
    assert tools(trace) == [] and trace.input == ""
    assert any("handoff" in note for note in trace.notes)


@pytest.mark.parametrize(("agent", "count"), [("Billing Agent", 0), ("Savings", 1)])
def test_a_transfer_without_a_span_is_a_handoff_only_to_an_agent_of_the_trace(agent: str, count: int) -> None:
    asked = parts("assistant", tool_call("c1", "transfer_to_billing_agent"))
    trace = parsed(
        span("l", None, genai([ASK], [asked])),
        span("a", None, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}, at=2),
        span("l2", "a", genai([ASK, asked, answer("c1", "ok")], [parts("assistant", "A")]), at=3),
    )
    assert len(tools(trace)) == count


def test_a_transfer_with_a_span_arguments_and_result_is_a_tool_like_any_other() -> None:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "transfer_to_savings",
        "gen_ai.tool.call.arguments": '{"amount": 5}',
        "gen_ai.tool.call.result": "done",
    }
    assert tools(parsed(span("t", None, attributes))) == [("transfer_to_savings", {"amount": 5}, "done")]


ERRORS = [
    pytest.param({"status": "error"}, id="an error status"),
    pytest.param({"attributes": {"gen_ai.tool.status": "error"}}, id="the framework's status"),
    pytest.param(
        {"attributes": {"gen_ai.tool.call.result": '{"type": "tool", "data": {"content": "x", "status": "error"}}'}},
        id="a result marked as an error",
    ),
    pytest.param(
        {"events": [{"name": "exception", "attributes": {"exception.type": "E", "exception.message": "x"}}]},
        id="an exception event",
    ),
]


@pytest.mark.parametrize("given", ERRORS)
def test_tool_errors(given: dict[str, Any]) -> None:
    base = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f"}
    trace = parsed(span("t", None, {**base, **given.pop("attributes", {})}, **given))
    assert trace.get_tool_calls()[0].metrics.error


def test_the_exceptions_words_are_the_errors() -> None:
    event = {"name": "exception", "attributes": {"exception.type": "ValueError", "exception.message": "no such order"}}
    trace = parsed(span("t", kind="tool", data={"name": "f"}, status="error", events=[event]))
    metrics = trace.get_tool_calls()[0].metrics
    assert (metrics.error_type, metrics.error_message) == ("ValueError", "no such order")


def test_an_answer_marked_as_an_error_is_the_tools_error() -> None:
    history = [said("user", "Q"), said("assistant", "", toolCalls=[{"id": "c1", "name": "f", "arguments": "{}"}])]
    failed = said("tool", "no such order", tool_call_id="c1", status="error")
    trace = parsed(
        span("t", kind="tool", data={"name": "f"}),
        span("l", at=2, kind="llm", input=[*history, failed], output="sorry"),
    )
    metrics = trace.get_tool_calls()[0].metrics
    assert metrics.error and metrics.error_message == "no such order"


def test_input_and_output_come_from_the_top_first() -> None:
    trace = parsed(
        span("r", kind="chain"),
        span("first", "r", at=1, kind="agent", input="Q", output="half"),
        span("l1", "first", at=1.1, kind="llm", input=[said("user", "inner Q")], output="half"),
        span("last", "r", at=3, kind="agent", input="Q2", output="A"),
        span("l2", "last", at=3.1, kind="llm", input=[said("user", "inner Q2")], output="inner A"),
    )
    assert (trace.input, trace.output) == ("Q", "A")


def test_a_step_without_a_call_below_it_gives_no_answer() -> None:
    trace = parsed(
        span("r", kind="chain", input="Q"),
        span("l", "r", at=1, kind="llm", input=[said("user", "Q")], output="A"),
        span("route", "r", at=3, kind="chain", output="__end__"),
    )
    assert trace.output == "A"


def test_what_runs_inside_a_tool_is_not_asked_for_the_answer() -> None:
    trace = parsed(
        span("r", kind="chain"),
        span("t", "r", at=1, kind="tool", data={"name": "f"}, input="{}", output="x"),
        span("sub", "t", at=1.1, kind="agent", input="sub Q", output="sub A"),
        span("l", "r", at=3, kind="llm", input=[said("user", "Q")], output="A"),
    )
    assert (trace.input, trace.output) == ("Q", "A")


def test_the_outputs_of_a_crews_tasks_are_not_its_input() -> None:
    attributes = {"crewai.crew.id": "1", "crewai.crew.result": "A", "crewai.crew.tasks_output": "[TaskOutput(raw='A')]"}
    trace = parsed(
        span("r", None, attributes, kind="agent", input="[TaskOutput(raw='A')]", output="A"),
        span("k", "r", {"crewai.task.description": "Write a note", "crewai.task.id": "2"}, at=1),
    )
    assert (trace.input, trace.output) == ("Write a note", "A")
