"""The short way through usual traces gives what the general way gives, and is really taken."""

from __future__ import annotations

import json
import pickle
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loopback import benchmark

from amp_evaluation.evaluators.builtin import builtin
from amp_evaluation.trace._brief import Brief, brief_of
from amp_evaluation.trace._wire import OTELTrace, decode_traces
from amp_evaluation.trace.models import Trace
from amp_evaluation.trace.parser import parse_trace_for_evaluation

CONVENTIONS = ["gen_ai", "openinference"]
AGENT = "a"
RULES = ["latency_performance", "token_efficiency", "iteration_efficiency", "length_compliance", "step_success_rate"]
CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from(["c1", "c2", "c3", "c4", ""]),
            "name": st.sampled_from(["f", "g"]),
            "arguments": st.sampled_from(["{}", '{"a": 1}', "x"]),
        }
    ),
    max_size=2,
)
TEXT = st.sampled_from(["hello", "", "done", "hello done", '{"a": 1}', '[{"type": "text", "text": "x"}]', "''", '"q"'])
SAID = st.sampled_from(["hello", "done", "hellodone", "hello done", "hello", "done", "", "{}"])
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system"]), "content": TEXT},
    optional={"toolCalls": CALLS, "tool_call_id": st.sampled_from(["c1", "c2", "c9", ""])},
)


def flat(messages: list[dict[str, Any]], side: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for place, message in enumerate(messages):
        head = f"llm.{side}_messages.{place}.message"
        found |= {f"{head}.{key}": message[key] for key in ("role", "content", "tool_call_id") if key in message}
        for index, call in enumerate(message.get("toolCalls", ())):
            at = f"{head}.tool_calls.{index}.tool_call"
            found[f"{at}.id"] = call["id"]
            found |= {f"{at}.function.{key}": call[key] for key in ("name", "arguments")}
    return found


def wire_span(number: int, kind: str, flat_keys: bool, told: dict[str, Any]) -> dict[str, Any]:
    """`told`: input, output (messages for an llm), name, usage."""
    span: dict[str, Any] = {
        "spanId": f"s{number}",
        "parentSpanId": AGENT,
        "name": f"{kind} span",
        "startTime": f"2026-01-15T10:00:00.{number:03d}Z",
        "endTime": f"2026-01-15T10:00:01.{number:03d}Z",
        "durationInNanos": 1_000_000,
        "status": "OK",
    }
    if not flat_keys:
        data = {key: told[key] for key in ("name", "model", "tokenUsage") if key in told}
        amp = {"kind": kind, "input": told["input"], "output": told["output"], "data": data}
        return {**span, "ampAttributes": {**amp, "status": {"error": False}}}
    found: dict[str, Any] = {"openinference.span.kind": kind.upper()}
    if kind == "llm":
        found |= flat(told["input"], "input") | flat(told["output"], "output")
        found |= {"llm.model_name": told["model"], "llm.token_count.prompt": told["tokenUsage"]["inputTokens"]}
    else:
        found |= {f"{kind}.name": told["name"], "input.value": told["input"], "output.value": told["output"]}
    return {**span, "attributes": found, "ampAttributes": {"kind": "unknown"}}


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Model calls and the executions they ask for, in turn; each call sends what was said before, mostly."""
    flat_keys = draw(st.booleans())
    said: list[dict[str, Any]] = [{"role": "user", "content": draw(TEXT)}]
    spans: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 3))):
        reply: dict[str, Any] = {"role": "assistant", "content": draw(SAID), "toolCalls": draw(CALLS)}
        usage = {"inputTokens": draw(st.sampled_from([7] * 9 + [0])), "outputTokens": 0}
        told = {"input": list(said), "output": [reply], "model": draw(st.sampled_from(["m", ""])), "tokenUsage": usage}
        spans.append(wire_span(len(spans), "llm", flat_keys, told))
        said.append(reply)
        for call in reply["toolCalls"]:
            result = draw(st.sampled_from(["found"] * 9 + ["", '{"output": "x"}', '{"is_error": true}']))
            told = {"input": call["arguments"], "output": result, "name": call["name"]}
            if draw(st.integers(0, 9)):
                spans.append(wire_span(len(spans), "tool", flat_keys, told))
            said.append({"role": "tool", "content": result, "tool_call_id": call["id"]})
        if not draw(st.integers(0, 3)):
            spans.append(wire_span(len(spans), "chain", flat_keys, {"input": "x", "output": "y", "name": "step"}))
            above = draw(st.sampled_from([span["spanId"] for span in spans]))
            spans[-1 if draw(st.booleans()) else draw(st.integers(0, len(spans) - 1))]["parentSpanId"] = above
        if not draw(st.integers(0, 5)):
            said.insert(draw(st.integers(0, len(said))), draw(MESSAGE))
    texts = {"input": draw(SAID), "output": draw(SAID), "name": "shop"}
    kind = draw(st.sampled_from(["agent", "agent", "chain"]))
    root = {**wire_span(0, kind, flat_keys, texts), "spanId": AGENT, "parentSpanId": ""}
    return [root, *spans]


MANGLES: list[dict[str, Any]] = [
    *({"ampAttributes": {"kind": "chain"}}, {"attributes": {"openinference.span.kind": "CHAIN"}}),
    *({"status": "ERROR"}, {"status": None}, {"status": {"code": "error"}}, {"parentSpanId": "s0"}),
    *({"parentSpanId": "lost"}, {"startTime": "2026-01-15T09:00:00Z"}, {"startTime": None}, {"spanId": "s1"}),
    *({"attributes": {"gen_ai.operation.name": "chat"}}, {"attributes": {"gen_ai.tool.call.id": "c1"}}),
    *({"ampAttributes": None}, {"events": [{"name": "exception"}]}, {"name": "handoff to x"}, {"attributes": 5}),
    {"attributes": {"gen_ai.response.id": "r"}},
]


@st.composite
def traces(draw: st.DrawFn) -> bytes:
    spans = draw(histories())
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        place = draw(st.integers(0, len(spans) - 1))
        spans[place] = spans[place] | draw(st.sampled_from(MANGLES))
    return json.dumps({"traceId": "t", "durationInNanos": 5, "spans": spans}).encode()


def one(data: bytes) -> OTELTrace:
    return decode_traces(data)[0]


def generally(otel: OTELTrace) -> Trace:
    """The trace as the general way makes it, which is the way of all that was looked into."""
    assert otel.spans is not None
    return parse_trace_for_evaluation(otel)


def scores(trace: Trace) -> list[Any]:
    found = [score for name in RULES for score in builtin(name).run(trace)]
    found += builtin("tool_coverage", required_tools=["f", "search"]).run(trace)
    return found + builtin("content_safety", prohibited_strings=["done"]).run(trace)


def same(data: bytes) -> Brief | None:
    short, whole = parse_trace_for_evaluation(one(data)), generally(one(data))
    assert scores(short) == scores(whole)
    for field in fields(Trace):
        if field.init:
            assert getattr(short, field.name) == getattr(whole, field.name), field.name
    view = parse_trace_for_evaluation(one(data)).only_agent()
    if view is not None:
        known = view.tool_runs(), view.iterations(), view.agent_name, view.model
        built = whole.create_agent_trace(view.agent_id)
        assert known == (built.tool_runs(), built.iterations(), built.agent_name, built.model)
        assert view == built
    return brief_of(one(data))


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(traces())
def test_the_short_way_gives_what_the_general_way_gives(data: bytes) -> None:
    same(data)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_usual_traces_go_the_short_way(convention: str) -> None:
    for stored in benchmark(20, convention=convention):
        assert isinstance(stored.whole, bytes)
        assert same(stored.whole) is not None


def usual(convention: str = "gen_ai") -> bytes:
    whole = next(iter(benchmark(1, convention=convention))).whole
    assert isinstance(whole, bytes)
    return whole


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_spans_are_built_only_for_who_asks(convention: str) -> None:
    trace = parse_trace_for_evaluation(one(usual(convention)))
    assert len(scores(trace)) == 7
    assert "spans" not in vars(trace)
    assert len(trace.get_llm_calls()) == 6 and "spans" in vars(trace)
    assert trace.only_agent() is None


def test_a_deferred_trace_is_a_trace_like_any_other() -> None:
    whole = generally(one(usual()))
    assert pickle.loads(pickle.dumps(parse_trace_for_evaluation(one(usual())))) == whole
    assert replace(parse_trace_for_evaluation(one(usual())), cut=True) == replace(whole, cut=True)
    assert repr(parse_trace_for_evaluation(one(usual()))) == repr(whole)


def test_who_asks_twice_gets_the_same_spans_and_steps() -> None:
    trace = parse_trace_for_evaluation(one(usual()))
    view = trace.only_agent()
    assert view is not None
    steps = view.steps
    assert view.steps is steps and trace.spans is trace.spans
    assert view.get_tool_steps()[0].tool_input is trace.get_tool_calls()[0].arguments


CALL = {"id": "c1", "name": "f", "arguments": "{}"}
OTHER = {"id": "c2", "name": "f", "arguments": "{}"}
PARTS = json.dumps([{"type": "tool_call", "id": "c2", "name": "g", "arguments": "{}"}])


def small(flat_keys: bool, **told: Any) -> bytes:
    """An agent, a call that asks for `f`, its execution, and a last call."""
    usage = {"inputTokens": 7, "outputTokens": 0}
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "toolCalls": [CALL]}]
    said.append({"role": "tool", "content": "found", "tool_call_id": "c1"})
    last = told.get("history", lambda found: found)(said)
    spans = [
        wire_span(0, "agent", flat_keys, {"input": "hi", "output": "done", "name": "shop"}),
        wire_span(1, "llm", flat_keys, {"input": said[:1], "output": [said[1]], "model": "m", "tokenUsage": usage}),
        wire_span(
            2, "tool", flat_keys, {"input": "{}", "output": told.get("result", "found"), "name": told.get("tool", "f")}
        ),
        wire_span(
            3,
            "llm",
            flat_keys,
            {
                "input": last,
                "output": [{"role": "assistant", "content": "done"}],
                "model": "m",
                "tokenUsage": told.get("usage", usage),
            },
        ),
    ]
    spans[0] |= {"spanId": AGENT, "parentSpanId": ""}
    for place, more in told.get("spans", {}).items():
        spans[place] |= more
    return json.dumps({"traceId": "t", "durationInNanos": 5, "spans": spans}).encode()


def two_ids(found: list[Any]) -> list[Any]:
    return [*found, {"role": "assistant", "content": "", "toolCalls": [OTHER]}]


UNUSUAL: dict[str, dict[str, Any]] = {
    "a history tells of a call that no reply asked for": {"history": two_ids},
    "a history answers a call that no reply asked for": {
        "history": lambda found: [*found, {"role": "tool", "content": "x", "tool_call_id": "c2"}]
    },
    "a message may hold calls in the parts of its text": {
        "history": lambda found: [*found, {"role": "assistant", "content": PARTS}]
    },
    "another tool ran": {"tool": "g"},
    "the tool gave nothing": {"result": ""},
    "the tool gave an envelope around nothing": {"result": '{"output": ""}'},
    "the framework marks the result as an error": {"result": '{"status": "error", "error": "no"}'},
    "nobody counted the tokens": {"usage": {"inputTokens": 0, "outputTokens": 0}},
    "a span failed": {"spans": {2: {"status": "ERROR"}}},
    "a span is named twice": {"spans": {2: {"spanId": "s1"}}},
    "an event may tell an error": {"spans": {2: {"events": [{"name": "exception"}]}}},
    "a call runs in a tool": {"spans": {3: {"parentSpanId": "s2"}}},
}


@pytest.mark.parametrize("flat_keys", [False, True], ids=["amp", "flat keys"])
@pytest.mark.parametrize("told", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_what_is_not_usual_goes_the_general_way(told: dict[str, Any], flat_keys: bool) -> None:
    assert same(small(flat_keys, **told)) is None
    assert same(small(flat_keys)) is not None
