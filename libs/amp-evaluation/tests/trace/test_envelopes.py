"""What was asked and answered, out of the envelopes that frameworks put around it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from amp_evaluation.trace import parse_trace_for_evaluation
from amp_evaluation.trace._otel import OTELSpan, OTELTrace
from amp_evaluation.trace.conventions._answered import answer_text
from amp_evaluation.trace.conventions._asked import asked_text
from amp_evaluation.trace.conventions._values import content_text

CALL = "ResponseFunctionToolCall(arguments='{\"to\": 1}', call_id='c1', name='fare', type='function_call')"
PRINTED_CALL = "{'content': None, 'tool_calls': [{'id': 'c1', 'function': {'arguments': '{}', 'name': 'fare'}}]}"
STEP = {"graph": None, "update": {"messages": [{"type": "ai", "data": {"content": "", "tool_calls": []}}]}, "goto": []}


def replied(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param([STEP], "", id="a graph's step whose messages hold no answer"),
        pytest.param({"parts": ["north", "south"], "answer": "Both."}, None, id="a state with a member named parts"),
        pytest.param({"role": "model", "parts": [{"text": "Both."}]}, "Both.", id="a message's parts"),
        pytest.param({"response": "Both.", "is_stream": False, "metadata": None}, "Both.", id="nothing said beside it"),
        pytest.param({"response": "Both.", "score": 3}, None, id="something said beside it"),
        pytest.param(
            {"text": "Both.", "additional_kwargs": {}, "raw": {"a": 1}, "logprobs": None}, "Both.", id="a completion"
        ),
        pytest.param(replied(CALL), "", id="a printed call of a tool"),
        pytest.param(replied(PRINTED_CALL), "", id="a printed reply that calls a tool"),
        pytest.param(replied("Fare(to=1) costs 59 EUR."), "Fare(to=1) costs 59 EUR.", id="prose that begins with code"),
        pytest.param(replied(CALL[:50]), "", id="a printed call that was cut"),
    ],
)
def test_answers(value: Any, text: str | None) -> None:
    assert answer_text(value) == (json.dumps(value) if text is None else text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param({"args": ["Next ferry?"]}, "Next ferry?", id="arguments alone"),
        pytest.param({"args": "Next ferry?"}, None, id="an object's own member"),
        pytest.param({"str_or_query_bundle": "Next ferry?"}, "Next ferry?", id="a query"),
        pytest.param({"query_bundle": {"query_str": "Next ferry?", "embedding": None}}, "Next ferry?", id="a bundle"),
        pytest.param({"messages": "Next ferry?"}, "Next ferry?", id="a text where messages stand"),
        pytest.param({"graph": None, "update": None, "resume": "Yes.", "goto": []}, "Yes.", id="an answer to a graph"),
        pytest.param({"graph": None, "resume": {"decisions": [{"type": "approve"}]}}, "", id="a decision is no text"),
        pytest.param({"agent": {"role": "clerk"}, "context": "", "tools": []}, "", id="what a crew's agent runs with"),
    ],
)
def test_questions(value: Any, text: str | None) -> None:
    assert asked_text(value) == (json.dumps(value) if text is None else text)


@pytest.mark.parametrize(
    ("attributes", "asked", "answered"),
    [
        pytest.param(
            {"crew_inputs": "", "crew_tasks": json.dumps([{"description": "Find a ferry."}])},
            "Find a ferry.",
            "",
            id="a crew without inputs does its first task",
        ),
        pytest.param(
            {"crew_inputs": '{"port": "Bari"}', "crew_tasks": json.dumps([{"description": "Find a ferry."}])},
            '{"port": "Bari"}',
            "",
            id="inputs come first",
        ),
        pytest.param(
            {
                "crewai.crew.result": "port='Bari' minutes=45",
                "crewai.crew.tasks_output": "[TaskOutput(raw='{\"port\":\"Bari\"}', agent='clerk')]",
            },
            "",
            '{"port": "Bari"}',
            id="a printed result is the text it was made from",
        ),
        pytest.param(
            {"crewai.crew.result": "port='Bari' minutes=45", "crewai.crew.tasks_output": "[TaskOutput(raw='{"},
            "",
            "port='Bari' minutes=45",
            id="or itself where that was cut",
        ),
    ],
)
def test_crews(attributes: dict[str, str], asked: str, answered: str) -> None:
    crew = {"openinference.span.kind": "CHAIN", "crewai.crew.id": "1", **attributes}
    trace = parse_trace_for_evaluation(OTELTrace("t", "c", spans=[OTELSpan("t", "c", None, "crew", attributes=crew)]))
    assert (trace.input, trace.output) == (asked, answered)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param("{'type': 'input_text', 'text': 'Which ferry?'}", "Which ferry?", id="a printed part"),
        pytest.param("{'type': 'input_image', 'image_url': 'data:…'}", "[image]", id="a printed image"),
        pytest.param(
            "[{'type': 'text', 'text': 'Which'}, {'type': 'text', 'text': 'ferry?'}]", "Which\nferry?", id="a list"
        ),
        pytest.param([{"type": "text", "content": "{'type': 'text', 'text': 'So.'}"}], "So.", id="inside a part"),
        pytest.param("{'type': 'ferry'}", "{'type': 'ferry'}", id="what is no part"),
        pytest.param("{'type': 'text', 'te", "{'type': 'text', 'te", id="cut"),
    ],
)
def test_contents_that_hold_printed_parts(content: Any, text: str) -> None:
    assert content_text(content) == text


def test_an_event_whose_message_only_calls_tools() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "fare", "arguments": '{"to": "Bari"}'}}
    event = {"name": "gen_ai.choice", "attributes": {"message": {"role": "assistant", "tool_calls": [call]}}}
    span = OTELSpan("t", "l", None, "chat", attributes={"gen_ai.operation.name": "chat"}, events=[event])
    [found] = parse_trace_for_evaluation(OTELTrace("t", "l", spans=[span])).get_llm_calls()
    assert found.output == 'fare({"to": "Bari"})'


def test_an_agent_has_the_tools_that_its_calls_offered() -> None:
    offered = json.dumps([{"type": "function", "function": {"name": "fare", "description": "Fares."}}])
    agent = {"gen_ai.operation.name": "invoke_agent"}
    call = {"gen_ai.operation.name": "chat", "gen_ai.tool.definitions": offered}
    spans = [OTELSpan("t", "a", None, "a", attributes=agent), OTELSpan("t", "l", "a", "l", attributes=call)]
    [found] = parse_trace_for_evaluation(OTELTrace("t", "a", spans=spans)).get_agents()
    assert [tool.name for tool in found.available_tools] == ["fare"]
