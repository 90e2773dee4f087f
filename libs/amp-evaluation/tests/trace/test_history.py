"""Long histories in flat keys are read once: the short way gives what the long way gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amp_evaluation.trace._records import SMALL
from amp_evaluation.trace._wire import OTELSpan, OTELTrace, decode_traces
from amp_evaluation.trace.conventions._shapes import MAX_KEYS, MAX_SHAPES, Shape, shape_of
from amp_evaluation.trace.models import Trace
from amp_evaluation.trace.parser import parse_trace_for_evaluation

LONG = "x" * SMALL


def attributes(history: list[tuple[str, str]], reply: str, first: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = {"openinference.span.kind": "LLM"} if first else {}
    for n, (role, content) in enumerate(history):
        found[f"llm.input_messages.{n}.message.role"] = role
        if role == "call":
            found[f"llm.input_messages.{n}.message.role"] = "assistant"
            found[f"llm.input_messages.{n}.message.tool_calls.0.tool_call.id"] = content
            found[f"llm.input_messages.{n}.message.tool_calls.0.tool_call.function.name"] = "f"
        else:
            found[f"llm.input_messages.{n}.message.content"] = content
    found["llm.model_name"] = "m"
    found["llm.output_messages.0.message.content"] = reply
    return {**found, "openinference.span.kind": "LLM"}


def both_ways(*each: dict[str, Any], space: str = "") -> tuple[Trace, Trace]:
    spans = [OTELSpan(spanId=f"s{n}", startTime=f"2026-01-01T00:00:{n:02}Z", attributes=a) for n, a in enumerate(each)]
    raw = {
        "traceId": "t",
        "spans": [{"spanId": s.spanId, "startTime": s.startTime, "attributes": s.attributes} for s in spans],
    }
    data = json.dumps(raw, separators=("," + space, ":" + space)).encode()
    (by_wire,) = decode_traces(data)
    by_hand = OTELTrace(traceId="t", spans=spans)
    return parse_trace_for_evaluation(by_wire), parse_trace_for_evaluation(by_hand)


SAID = st.tuples(
    st.sampled_from(["user", "assistant", "tool", "call"]), st.sampled_from(["a", "b", "", LONG, '","x', "[1]"])
)
HISTORIES = st.lists(st.lists(SAID, max_size=4), min_size=1, max_size=4)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(HISTORIES, st.booleans(), st.sampled_from(["", " "]))
def test_any_histories_read_the_same_both_ways(tails: list[list[tuple[str, str]]], grows: bool, space: str) -> None:
    history: list[tuple[str, str]] = [("user", LONG)]
    each = []
    for tail in tails:
        history = [*history, *tail] if grows else [("user", LONG), *tail]
        each.append(attributes(history, "A"))
    by_wire, by_hand = both_ways(*each, space=space)
    assert by_wire == by_hand


def test_a_growing_history_is_whole_in_each_call() -> None:
    histories = [[("user", LONG), *(("user", f"m{k}") for k in range(n))] for n in range(15)]
    by_wire, by_hand = both_ways(*(attributes(history, "A") for history in histories))
    assert [[m.content for m in call.input] for call in by_wire.get_llm_calls()] == [
        [content for _, content in history] for history in histories
    ]
    assert by_wire == by_hand
    assert {call.model for call in by_wire.get_llm_calls()} == {"m"}


@pytest.mark.parametrize(
    "second",
    [
        pytest.param({"llm.input_messages.0.message.name": "more"}, id="the last message has one key more"),
        pytest.param({"llm.input_messages.5.message.content": "far"}, id="a number is left out"),
        pytest.param({"llm.input_messages.1.message.content": 5}, id="a number for a text"),
        pytest.param({"llm.input_messages.1.message.content": {"a": [1]}}, id="an object for a text"),
    ],
)
def test_what_does_not_follow_on_is_read_from_the_start(second: dict[str, Any]) -> None:
    first = attributes([("user", LONG)], "A")
    base = {k: v for k, v in first.items() if "input_messages" in k or "kind" in k}
    by_wire, by_hand = both_ways(first, {**base, **second, "llm.output_messages.0.message.content": "B"})
    assert by_wire == by_hand


def test_keys_sorted_by_name_read_the_same() -> None:
    histories = [[("user", LONG), *(("user", f"m{k}") for k in range(n))] for n in (2, 11, 12)]
    each = [dict(sorted(attributes(history, "A").items())) for history in histories]
    by_wire, by_hand = both_ways(*each)
    assert by_wire == by_hand
    assert [len(call.input) for call in by_wire.get_llm_calls()] == [3, 12, 13]


def test_shapes_are_kept_up_to_a_limit() -> None:
    first = {"llm.tools.0.tool.name": "a"}
    assert shape_of(first) is shape_of(dict(first))
    many = {f"k{n}": n for n in range(MAX_KEYS + 1)}
    assert shape_of(many) is not shape_of(many), "shapes of very many keys are not kept"
    for n in range(MAX_SHAPES + 1):
        shape_of({f"other.{n}": 1})
    assert shape_of(first).rows["llm.tools."][0].rests == ("name",)
    apart = Shape(("llm.tools.0.tool.name", "x", "llm.tools.0.tool.description", "llm.tools.x.y", "llm." + "y" * 300))
    assert apart.rows["llm.tools."][0].values(["n", 0, "d", 0, 0]) == ("n", "d")
