"""Bytes of the traces API become traces: strictly where they are clean, leniently a trace at a time where not."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest

from amp_evaluation.trace._wire import (
    LIGHT,
    AmpAttributes,
    AmpSpanData,
    AmpSpanStatus,
    OTELSpan,
    OTELTokenUsage,
    OTELTrace,
    OTELTraceStatus,
    decode_page,
    decode_traces,
)
from amp_evaluation.trace.parser import parse_trace_for_evaluation

GOOD = {
    "traceId": "t1",
    "rootSpanId": "a",
    "startTime": "2026-01-02T03:04:05.123456789Z",
    "durationInNanos": 1_500_000,
    "tokenUsage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3, "other": 4},
    "status": {"errorCount": 1},
    "input": {"q": "é"},
    "spans": [
        {
            "spanId": "a",
            "name": "root",
            "startTime": "2026-01-02T03:04:05Z",
            "durationInNanos": "2000000",
            "attributes": {"k": "v"},
            "events": [{"name": "e"}],
            "ampAttributes": {
                "kind": "llm",
                "input": [{"role": "user", "content": "hi"}],
                "data": {"model": "m", "vectorDB": "pg", "maxIter": 3},
                "status": {"error": True, "errorType": "E"},
                "error": {"message": "why"},
            },
        }
    ],
}


def page(*traces: Any, **more: Any) -> bytes:
    return json.dumps({"traces": list(traces), "totalCount": len(traces), **more}).encode()


def test_a_reply_is_read_with_its_counts() -> None:
    found = decode_page(page(GOOD, truncated=True))
    assert (len(found.traces), found.total_count, found.truncated) == (1, 1, True)


def test_a_trace_tells_what_it_holds() -> None:
    (trace,) = decode_page(page(GOOD)).traces
    assert trace.start == datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC) == trace.timestamp
    assert trace.duration_ms == 1.5
    assert trace.tokenUsage == OTELTokenUsage(1, 2, 3)
    assert trace.status == OTELTraceStatus(1)
    assert trace.input == {"q": "é"}
    assert trace.size == len(page(GOOD))  # alone on a light page
    (span,) = trace.spans
    assert (span.duration_ms, span.attributes, span.events) == (2.0, {"k": "v"}, [{"name": "e"}])
    assert span.timestamp == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    amp = span.ampAttributes
    assert amp is not None
    assert amp.input == [{"role": "user", "content": "hi"}]
    assert amp.data == AmpSpanData(model="m", vector_db="pg", max_iter=3)
    assert amp.status == AmpSpanStatus(True, "E", "why")


def test_a_trace_from_the_wire_equals_itself_and_can_be_pickled() -> None:
    (one,), (two,) = decode_page(page(GOOD)).traces, decode_page(page(GOOD)).traces
    assert one == two
    assert pickle.loads(pickle.dumps(one)) == two


def test_reading_the_fields_does_not_change_what_is_parsed() -> None:
    (fresh,), (touched,) = decode_page(page(GOOD)).traces, decode_page(page(GOOD)).traces
    assert touched.spans[0].ampAttributes is not None
    assert parse_trace_for_evaluation(touched) == parse_trace_for_evaluation(fresh)


def test_what_somebody_changes_by_hand_is_what_is_parsed() -> None:
    (trace,) = decode_page(page(GOOD)).traces
    trace.spans[0].ampAttributes = AmpAttributes("tool", '{"a": 1}', "r", AmpSpanData(name="f"), None)
    (tool,) = parse_trace_for_evaluation(trace).get_tool_calls()
    assert (tool.name, tool.arguments, tool.result) == ("f", {"a": 1}, "r")


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(b'"a\\ud800b"', id="a lone surrogate"),
        pytest.param(b"NaN", id="NaN"),
        pytest.param(b"-Infinity", id="an infinity"),
        pytest.param(b'"\xff\xfe"', id="bytes that are no UTF-8"),
    ],
)
def test_a_page_with_one_unclean_value_keeps_all_its_traces(broken: bytes) -> None:
    unclean = b'{"traceId": "t2", "spans": [{"spanId": "x", "name": ' + broken + b"}]}"
    body = b'{"traces": [' + json.dumps(GOOD).encode() + b", " + unclean + b'], "totalCount": 2}'
    found = decode_page(body)
    assert [trace.traceId for trace in found.traces] == ["t1", "t2"]
    assert [trace.defect for trace in found.traces] == [None, None]
    assert found.traces[1].spans[0].spanId == "x"
    parse_trace_for_evaluation(found.traces[1])


@pytest.mark.parametrize(
    ("trace", "why"),
    [
        pytest.param(5, "no object", id="a number for a trace"),
        pytest.param(None, "no object", id="null for a trace"),
        pytest.param("x", "no object", id="a text for a trace"),
    ],
)
def test_what_is_no_trace_is_one_with_a_defect(trace: Any, why: str) -> None:
    found = decode_page(page(GOOD, trace)).traces
    assert found[0].defect is None
    assert why in str(found[1].defect)


def test_a_trace_nested_too_deeply_keeps_its_id_and_time() -> None:
    deep = b'{"traceId": "t9", "startTime": "2026-01-01T00:00:00Z", "x": ' + b"[" * 99_999 + b"]" * 99_999 + b"}"
    found = decode_page(b'{"traces": [' + deep + b", " + json.dumps(GOOD).encode() + b"]}").traces
    assert (found[0].traceId, found[1].traceId) == ("t9", "t1")
    assert found[0].start == datetime(2026, 1, 1, tzinfo=UTC)
    assert "nested too deeply" in str(found[0].defect)


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param(None, id="null"),
        pytest.param("x", id="a text"),
        pytest.param([None, 3, {"spanId": "a"}], id="items that are no spans"),
        pytest.param([{"spanId": "a", "ampAttributes": "x", "attributes": []}], id="attributes of a wrong type"),
        pytest.param([{"spanId": 7, "name": None, "durationInNanos": []}], id="fields of wrong types"),
    ],
)
def test_spans_of_any_type_can_be_read(spans: Any) -> None:
    (trace,) = decode_page(page({"traceId": "t", "spans": spans})).traces
    assert trace.defect is None
    repr(trace.spans)
    parse_trace_for_evaluation(trace)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"<html>proxy</html>", id="HTML"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"null", id="null"),
        pytest.param(b'{"error": "x"}', id="another object"),
        pytest.param(b'{"traces": 5}', id="traces that are no list"),
        pytest.param(b'{"traces": [{"traceId": "t1"', id="a body that was cut"),
        pytest.param(b"{traces: []}", id="names without quotes"),
        pytest.param(b'{"traces" []}', id="a member without a value"),
    ],
)
def test_what_is_no_such_reply_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError):
        decode_page(body)


def test_a_reply_without_traces_is_an_empty_page() -> None:
    for body in (b'{"traces": null}', b'{"traces": [], "totalCount": "0"}', b'{"traces": null, "x": NaN}'):
        assert decode_page(body).traces == []
    assert decode_page(b'{"traces": null, "totalCount": 7, "x": NaN}').total_count == 7


@pytest.mark.parametrize(
    ("data", "count"),
    [
        pytest.param(page(GOOD, GOOD), 2, id="an export reply"),
        pytest.param(json.dumps([GOOD, GOOD]).encode(), 2, id="a list of traces"),
        pytest.param(b" \n" + json.dumps(GOOD).encode(), 1, id="one trace after white space"),
        pytest.param(b'[{"traceId": "a", "x": NaN}, {"traceId": "b"}]', 2, id="a list with NaN in it"),
        pytest.param(b'{"traceId": "a", "x": NaN}', 1, id="one trace with NaN in it"),
    ],
)
def test_traces_of_a_file(data: bytes, count: int) -> None:
    assert len(decode_traces(data)) == count


@pytest.mark.parametrize("data", [b"", b"5", b'{"a": 1}', b'{"a": NaN}', b"[1"])
def test_a_file_of_something_else_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_traces(data)


def test_a_trace_without_a_time_of_its_own_starts_with_its_first_span() -> None:
    spans = [
        OTELSpan(spanId="b", startTime="2026-01-01T00:00:05Z"),
        OTELSpan(spanId="a", startTime="2026-01-01T00:00:01Z"),
    ]
    assert OTELTrace(spans=spans).start == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert OTELTrace(startTime="0001-01-01T00:00:00Z", spans=[]).start is None
    assert OTELTrace(startTime=datetime(2026, 1, 1, tzinfo=UTC)).start == datetime(2026, 1, 1, tzinfo=UTC)
    assert OTELTrace(durationInNanos="x").duration_ms == 0.0  # type: ignore[arg-type]
    times = {"startTime": "2026-01-01T00:00:01Z", "endTime": "2026-01-01T00:00:03Z"}
    assert OTELTrace(**times).duration_ms == OTELSpan(**times).duration_ms == 2000.0
    assert OTELSpan(**times, durationInNanos=1_000_000).duration_ms == 1.0
    assert OTELSpan(startTime=times["endTime"], endTime=times["startTime"]).duration_ms == 0.0


@pytest.mark.parametrize(
    "traces",
    [
        [],
        [GOOD],
        [GOOD, GOOD | {"traceId": "u"}],
        [GOOD, {}],
        [GOOD, None],
        [GOOD | {"traceId": 5}],
        [GOOD, {"spans": 1}],
    ],
    ids=["none", "one", "two", "one without an id", "null among them", "an id that is a number", "spans that are none"],
)
def test_a_light_page_reads_as_a_heavy_one(traces: list[Any]) -> None:
    light, heavy = decode_page(page(*traces)), decode_page(page(*traces) + b" " * LIGHT)
    assert light == heavy
    assert [len(trace.spans) for trace in light.traces] == [len(trace.spans) for trace in heavy.traces]
