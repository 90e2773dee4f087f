"""Laws of parsing over random span trees and mangled values."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amp_evaluation.trace._wire import AmpAttributes, OTELSpan, OTELTrace, decode_page, decode_traces
from amp_evaluation.trace.models import AgentSpan, LLMSpan, ToolSpan, Trace
from amp_evaluation.trace.parser import filter_infrastructure_spans, parse_trace_for_evaluation

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

IDS = [f"s{n}" for n in range(8)]
KEYS = [
    "openinference.span.kind",
    "gen_ai.operation.name",
    "traceloop.span.kind",
    "llm.request.type",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gen_ai.prompt.0.content",
    "gen_ai.prompt.0.role",
    "gen_ai.completion.0.content",
    "gen_ai.completion.0.tool_calls.0.name",
    "gen_ai.completion.0.tool_calls.0.arguments",
    "llm.input_messages.0.message.role",
    "llm.input_messages.0.message.content",
    "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments",
    "llm.output_messages.0.message.content",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name",
    "llm.token_count.prompt",
    "llm.token_count.completion",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "input.value",
    "output.value",
    "tool.name",
    "tool.arguments",
    "traceloop.entity.name",
    "traceloop.entity.input",
    "traceloop.entity.output",
    "gen_ai.tool.name",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
    "gen_ai.agent.name",
    "retrieval.documents.0.document.content",
    "retrieval.documents.0.document.score",
    "pydantic_ai.all_messages",
    "final_result",
    "crewai.agent.role",
    "crewai.agent.tools",
    "mlflow.spanInputs",
    "ai.prompt.messages",
    "gcp.vertex.agent.llm_request",
    "haystack.component.type",
    "metadata",
]
WORDS = [
    *(
        "LLM",
        "TOOL",
        "AGENT",
        "CHAIN",
        "RETRIEVER",
        "EMBEDDING",
        "chat",
        "execute_tool",
        "invoke_agent",
        "create_agent",
    ),
    *(
        "task",
        "workflow",
        "tool",
        "llm",
        "handoff",
        "unknown",
        "",
        '""',
        "{",
        "[",
        '"',
        "[{",
        '{"a": ',
        "null",
        "12",
        "NaN",
    ),
    *("ok then", "Name(a=1, b=[2])", "Name(a=1, b=", "{'a': 1", "{'output': 'x'}", "data:image/png;base64," + "A" * 80),
]
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant", "system", "tool", "human", "odd", None, 3]),
        "content": st.sampled_from(
            ["hello", "", None, 5, ["a", {"type": "text", "text": "b"}], {"parts": [1]}, "[{}]"]
        ),
        "parts": st.sampled_from(
            [[{"type": "text", "content": "p"}], [], "x", [{"type": "tool_call", "name": "f"}], [None]]
        ),
        "tool_calls": st.sampled_from(
            [[], [{"id": "c1", "name": "f", "arguments": "{}"}], "x", [None], {"a": 1}, [[]]]
        ),
        "toolCalls": st.sampled_from([[{"id": "c2", "function": {"name": "g", "arguments": "[1"}}], 7]),
        "tool_call_id": st.sampled_from(["c1", "c2", 9, None]),
        "lc": st.just(1),
        "id": st.sampled_from([["langchain", "HumanMessage"], ["x"], [], "c1", None]),
        "kwargs": st.sampled_from([{"content": "lc"}, {}, "x"]),
    },
)
LEAF = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 10**20), st.floats(), st.sampled_from(WORDS), st.text(max_size=8)
)
VALUE = st.recursive(
    st.one_of(LEAF, MESSAGE),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["messages", "inputs", "outputs", "output", "kwargs", "args", "content", "data", "update", "a"]
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=6,
)


def mangled(value: Any) -> st.SearchStrategy[Any]:
    text = json.dumps(value, default=str)
    return st.sampled_from([value, text, json.dumps(text), text[: len(text) // 2]])


ANY = VALUE.flatmap(mangled)
AMP = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {},
        optional={
            "kind": st.sampled_from(
                ["llm", "tool", "agent", "retriever", "embedding", "rerank", "task", "chain", None, 4]
            ),
            "input": ANY,
            "output": ANY,
            "data": st.one_of(
                st.none(), st.dictionaries(st.sampled_from(["name", "model", "tools", "tokenUsage"]), ANY)
            ),
            "status": st.sampled_from([None, {"error": True}, {"error": "true", "errorType": 5}, "x", []]),
        },
    ),
)
TIME = st.sampled_from(
    [
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:01.5Z",
        "0001-01-01T00:00:00Z",
        "2026-01-01T00:00:02",
        "bad",
        "",
        None,
        5,
    ]
)
SPAN = st.fixed_dictionaries(
    {"spanId": st.sampled_from([*IDS, "", None]), "name": st.sampled_from(["chat m", "step", "", None, 4])},
    optional={
        "parentSpanId": st.sampled_from([*IDS, "", None, "gone", "0" * 16]),
        "startTime": TIME,
        "endTime": TIME,
        "durationInNanos": st.sampled_from([0, 5_000_000, "7000000", -3, None, "x", 1e300]),
        "status": st.sampled_from(["ok", "Error", "ERROR", "2", {"code": "ERROR", "message": "boom"}, None, 2, []]),
        "attributes": st.one_of(st.none(), st.just("x"), st.dictionaries(st.sampled_from(KEYS), ANY, max_size=8)),
        "ampAttributes": AMP,
        "events": st.one_of(
            st.none(), st.lists(st.dictionaries(st.sampled_from(["name", "attributes"]), ANY), max_size=2)
        ),
    },
)
TRACE = st.fixed_dictionaries(
    {"traceId": st.just("t"), "spans": st.lists(SPAN, max_size=8)},
    optional={
        "startTime": TIME,
        "input": ANY,
        "output": ANY,
        "status": st.sampled_from([None, {"errorCount": "2"}, "x"]),
    },
)


def touch(trace: Trace) -> None:
    """Read everything that is decoded late."""
    repr(trace)
    trace.format_spans()
    trace.format_evidence()
    trace.get_llm_calls(deduplicate_messages=True)
    for span in trace.spans:
        trace.create_agent_trace(span.span_id).format_steps()
        trace.get_tool_calls(include_nested=False, agent_span_id=span.span_id)


@QUICK
@given(TRACE)
def test_nothing_raises_whatever_the_wire_holds(raw: dict[str, Any]) -> None:
    body = json.dumps({"traces": [raw], "totalCount": 1}).encode()
    (otel,) = decode_page(body).traces
    touch(parse_trace_for_evaluation(otel))
    touch(parse_trace_for_evaluation(otel, filter_infrastructure=False))


@QUICK
@given(TRACE)
def test_every_span_appears_exactly_once_without_the_filter(raw: dict[str, Any]) -> None:
    (otel,) = decode_traces(json.dumps(raw).encode())
    trace = parse_trace_for_evaluation(otel, filter_infrastructure=False)
    wanted = {str(s["spanId"]) for s in raw["spans"] if s["spanId"]}
    seen = [span.span_id for span in trace.spans]
    assert {span_id: seen.count(span_id) for span_id in wanted} == dict.fromkeys(wanted, 1)


@QUICK
@given(TRACE)
def test_parsing_twice_gives_equal_traces_and_leaves_the_raw_one_as_it_was(raw: dict[str, Any]) -> None:
    (by_wire,) = decode_traces(json.dumps(raw).encode())
    first = parse_trace_for_evaluation(by_wire)
    assert repr(first) == repr(parse_trace_for_evaluation(by_wire))
    by_hand = OTELTrace(traceId="t", spans=by_wire.spans)
    before = copy.deepcopy(by_hand)
    parse_trace_for_evaluation(by_hand)
    assert repr(by_hand) == repr(before)


CALLS = st.lists(st.tuples(st.integers(-1, 7), st.integers(0, 50), st.booleans()), min_size=1, max_size=8)


@QUICK
@given(CALLS)
def test_tokens_are_never_more_than_the_sum_over_distinct_calls(shape: list[tuple[int, int, bool]]) -> None:
    spans = [
        OTELSpan(
            spanId=f"n{n}",
            parentSpanId=f"n{parent}" if 0 <= parent < len(shape) and parent != n else None,
            startTime=f"2026-01-01T00:00:{n:02}Z",
            attributes={
                "openinference.span.kind": "LLM" if is_call else "AGENT",
                "llm.token_count.prompt": tokens,
                "llm.token_count.completion": 1,
            },
        )
        for n, (parent, tokens, is_call) in enumerate(shape)
    ]
    trace = parse_trace_for_evaluation(OTELTrace(traceId="t", spans=spans))
    calls = {span.spanId: tokens + 1 for span, (_, tokens, is_call) in zip(spans, shape, strict=True) if is_call}
    counted = {span.span_id for span in trace.get_llm_calls()}
    assert counted <= set(calls)
    assert trace.metrics.token_usage.total_tokens == sum(calls[span_id] for span_id in counted)
    if all(parent == -1 for parent, _, _ in shape):
        assert counted == set(calls), "calls beside each other are never merged"


TREE = st.lists(
    st.tuples(st.integers(-1, 11), st.sampled_from(["llm", "tool", "agent", "chain", "unknown", "task"])), max_size=12
)


def tree(shape: list[tuple[int, str]]) -> list[OTELSpan]:
    return [
        OTELSpan(
            spanId=f"n{n}",
            parentSpanId=f"n{parent}" if 0 <= parent < len(shape) else None,
            name=f"{kind}-{n}",
            startTime=f"2026-01-01T00:00:{n:02}Z",
            ampAttributes=AmpAttributes(kind=kind),
        )
        for n, (parent, kind) in enumerate(shape)
    ]


@QUICK
@given(TREE)
def test_filtering_keeps_each_kept_spans_parent(shape: list[tuple[int, str]]) -> None:
    spans = tree(shape)
    kept = filter_infrastructure_spans(spans)
    ids = {span.spanId for span in kept}
    assert len(ids) == len(kept)
    assert all(span.parentSpanId is None or span.parentSpanId in ids for span in kept)
    semantic = {span.spanId for span in spans if span.name.startswith(("llm", "tool", "agent"))}
    assert semantic <= ids
    again = filter_infrastructure_spans(kept)
    assert [span.spanId for span in again] == [span.spanId for span in kept]


@QUICK
@given(TREE)
def test_filtering_agrees_with_parsing(shape: list[tuple[int, str]]) -> None:
    spans = tree(shape)
    trace = parse_trace_for_evaluation(OTELTrace(traceId="t", spans=spans))
    kinds = {span.span_id: type(span) for span in trace.spans}
    tools = {span.spanId for span in spans if span.name.startswith("tool")}
    assert all(kinds[span_id] is ToolSpan or span_id not in tools for span_id in kinds)
    assert all(isinstance(span, AgentSpan) for span in trace.get_agents())
    assert len(trace.get_llm_calls()) <= sum(1 for span in spans if span.name.startswith("llm"))
    assert all(isinstance(call, LLMSpan) for call in trace.get_llm_calls())
