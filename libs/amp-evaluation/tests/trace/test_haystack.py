"""Haystack's component spans: what each convention fact comes from."""

from __future__ import annotations

import json
from typing import Any

import pytest

from amp_evaluation.trace import Trace, parse_trace_for_evaluation
from amp_evaluation.trace._otel import OTELSpan, OTELTrace
from amp_evaluation.trace.models import LLMSpan, RetrieverSpan, TokenUsage, ToolSpan

ASK, ANSWER = "Next ferry?", "At 22:30."
USAGE = {"completion_tokens": 3, "prompt_tokens": 12, "total_tokens": 15}


def component(kind: str, given: Any = None, gave: Any = None, **attributes: Any) -> dict[str, Any]:
    found = {"haystack.component.type": kind, "haystack.component.name": "one", **attributes}
    if given is not None:
        found["haystack.component.input"] = json.dumps(given)
    return found | ({"haystack.component.output": json.dumps(gave)} if gave is not None else {})


def parse(*spans: dict[str, Any]) -> Trace:
    made = [
        OTELSpan(
            "t",
            f"s{n}",
            "s0" if n else None,
            "haystack.component.run",
            startTime=f"2026-01-15T10:00:0{n}Z",
            attributes=a,
        )
        for n, a in enumerate(spans)
    ]
    return parse_trace_for_evaluation(OTELTrace("t", "s0", startTime="2026-01-15T10:00:00Z", spans=made))


def only(trace: Trace, kind: type) -> Any:
    [span] = [span for span in trace.spans if isinstance(span, kind)]
    return span


def message(role: str, *content: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return {"role": role, "meta": meta, "name": None, "content": list(content)}


def test_a_chat_generator_is_a_model_call() -> None:
    call = {"tool_call": {"tool_name": "next_ferry", "arguments": {"port": "Bari"}, "id": "c1"}}
    tool = {"type": "haystack.tools.tool.Tool", "data": {"name": "next_ferry", "description": "when", "parameters": {}}}
    given = {"messages": [message("user", {"text": ASK})], "tools": [tool]}
    gave = {"replies": [message("assistant", call, model="gpt-4o-mini", finish_reason="tool_calls", usage=USAGE)]}
    span: LLMSpan = only(parse({}, component("OpenAIChatGenerator", given, gave)), LLMSpan)
    assert [m.content for m in span.input] == [ASK]
    assert [(c.id, c.name, c.arguments) for c in span.tool_calls] == [("c1", "next_ferry", {"port": "Bari"})]
    assert (span.model, span.metrics.token_usage) == ("gpt-4o-mini", TokenUsage(12, 3, 15))
    assert [tool.name for tool in span.available_tools] == ["next_ferry"]


def test_a_text_generator_is_a_model_call_with_its_facts_beside_the_replies() -> None:
    gave = {"replies": [ANSWER], "meta": [{"model": "gpt-4o-mini", "usage": USAGE}]}
    trace = parse({}, component("OpenAIGenerator", {"prompt": ASK}, gave))
    span: LLMSpan = only(trace, LLMSpan)
    assert ([m.content for m in span.input], span.output, span.model) == ([ASK], ANSWER, "gpt-4o-mini")
    assert trace.metrics.token_usage == TokenUsage(12, 3, 15)


@pytest.mark.parametrize(
    ("gave", "known"),
    [
        pytest.param({"replies": [message("assistant", {"text": ANSWER})]}, False, id="no usage"),
        pytest.param({"replies": [message("assistant", {"text": ANSWER}, usage={"prompt_tokens": 0})]}, False, id="0"),
        pytest.param({"replies": "none"}, False, id="no list"),
        pytest.param("broken", False, id="no object"),
    ],
)
def test_usage_that_is_not_told_is_unknown(gave: Any, known: bool) -> None:
    trace = parse({}, component("OpenAIChatGenerator", {"messages": [message("user", {"text": ASK})]}, gave))
    assert trace.metrics.usage_known is known


def test_a_retriever_has_its_query_and_documents() -> None:
    gave = {"documents": [{"id": "1", "content": "Bari is a port.", "meta": {"page": 3}, "score": 0.5}]}
    span: RetrieverSpan = only(parse({}, component("InMemoryBM25Retriever", {"query": "ports"}, gave)), RetrieverSpan)
    assert span.query == "ports"
    assert [(d.id, d.content, d.score, d.metadata) for d in span.documents] == [
        ("1", "Bari is a port.", 0.5, {"page": 3})
    ]


def test_a_tool_span_is_an_execution() -> None:
    attributes = {
        "haystack.tool.name": "fare",
        "haystack.tool.input": '{"to": "Bari"}',
        "haystack.tool.output": "59 EUR",
    }
    span: ToolSpan = only(parse({}, attributes), ToolSpan)
    assert (span.name, span.arguments, span.result) == ("fare", {"to": "Bari"}, "59 EUR")


@pytest.mark.parametrize(
    ("data", "asked"),
    [
        pytest.param({"prompt": {"q": ASK}}, ASK, id="one text"),
        pytest.param({"retriever": {"query": ASK}, "prompt": {"q": ASK}}, ASK, id="the same text for two components"),
        pytest.param({"agent": {"messages": [message("user", {"text": ASK})]}}, ASK, id="messages"),
        pytest.param(
            {"a": {"x": "one"}, "b": {"y": "two"}}, '{"a": {"x": "one"}, "b": {"y": "two"}}', id="several texts"
        ),
    ],
)
def test_a_pipelines_input_is_what_was_asked(data: Any, asked: str) -> None:
    assert parse({"haystack.pipeline.input_data": json.dumps(data)}).input == asked


def test_a_pipelines_output_is_the_reply_of_its_component() -> None:
    gave = {"llm": {"replies": [message("assistant", {"text": ANSWER})]}}
    assert (
        parse({"haystack.pipeline.output_data": json.dumps(gave), "haystack.pipeline.input_data": "{}"}).output
        == ANSWER
    )
