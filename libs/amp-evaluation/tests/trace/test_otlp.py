"""OTLP JSON: every spelling that writers use gives the same spans."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation.trace._otel import OTELTrace
from amp_evaluation.trace.otlp import decode_request, is_otlp
from amp_evaluation.trace.otlp_group import TraceGrouper
from amp_evaluation.trace.otlp_values import hex_id, plain_attributes, plain_value

TRACE = "5b8efff798038103d269b633813fc60c"
ROOT = "eee19b7ec3c1b174"
CHILD = "eee19b7ec3c1b175"
START = 1_796_036_009_485_744_237


def span(**over: Any) -> dict[str, Any]:
    return {
        "traceId": TRACE,
        "spanId": ROOT,
        "name": "serve",
        "kind": 2,
        "startTimeUnixNano": str(START),
        "endTimeUnixNano": str(START + 2_000_000),
        "attributes": [{"key": "acme.city", "value": {"stringValue": "Bari"}}],
        "status": {},
        **over,
    }


def request(*spans: dict[str, Any], **resource: str) -> dict[str, Any]:
    attributes = [{"key": key.replace("_", "."), "value": {"stringValue": value}} for key, value in resource.items()]
    scope = {"scope": {"name": "acme.instrumentation"}, "spans": list(spans)}
    return {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [scope]}]}


def log_request(*records: dict[str, Any]) -> dict[str, Any]:
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {}, "logRecords": list(records)}]}]}


def traces_of(*documents: Any, encode: Any = json.dumps) -> list[OTELTrace]:
    grouper = TraceGrouper()
    for document in documents:
        data = document if isinstance(document, bytes) else encode(document).encode("utf-8", "surrogatepass")
        grouper.add(decode_request(data))
    grouper.finish()
    return [grouper.build(trace_id) for _, trace_id in sorted(grouper.starts())]


def test_a_span_comes_out_with_everything_it_had() -> None:
    [trace] = traces_of(
        request(
            span(),
            span(
                spanId=CHILD,
                parentSpanId=ROOT,
                kind=3,
                status={"code": 2, "message": "blocked by policy"},
                events=[
                    {
                        "name": "exception",
                        "timeUnixNano": str(START + 5),
                        "attributes": [{"key": "exception.message", "value": {"stringValue": "no"}}],
                    }
                ],
                links=[{"traceId": TRACE, "spanId": ROOT}],
            ),
            service_name="ferries",
        )
    )
    root, child = trace.spans
    assert (trace.traceId, trace.rootSpanId, trace.rootSpanName, trace.spanCount) == (TRACE, ROOT, "serve", 2)
    assert (trace.startTime, trace.durationInNanos) == ("2026-11-30T10:53:29.485744237Z", 2_000_000)
    assert (root.kind, root.parentSpanId, root.service, root.durationInNanos) == ("Server", None, "ferries", 2_000_000)
    assert root.attributes == {"acme.city": "Bari", "otel.scope.name": "acme.instrumentation"}
    assert root.resource == {"service.name": "ferries"}
    assert root.status == {"code": "UNSET"}
    assert (child.parentSpanId, child.kind) == (ROOT, "Client")
    assert child.status == {"code": "ERROR", "message": "blocked by policy"}
    assert child.events == [
        {"name": "exception", "time": "2026-11-30T10:53:29.485744242Z", "attributes": {"exception.message": "no"}}
    ]
    assert child.links == [{"traceId": TRACE, "spanId": ROOT, "attributes": {}}]


def _base64(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text)).decode()


@pytest.mark.parametrize(
    "over",
    [
        pytest.param({"traceId": TRACE.upper(), "spanId": ROOT.upper()}, id="ids in upper case"),
        pytest.param({"traceId": _base64(TRACE), "spanId": _base64(ROOT)}, id="ids in base64"),
        pytest.param({"startTimeUnixNano": START}, id="times as numbers"),
        pytest.param({"kind": "SPAN_KIND_SERVER"}, id="the kind by its protobuf name"),
        pytest.param({"kind": "2"}, id="the kind as a number in a string"),
        pytest.param({"status": {"code": "STATUS_CODE_UNSET"}}, id="the status by its protobuf name"),
        pytest.param({"status": None}, id="no status"),
        pytest.param({"parentSpanId": "0000000000000000"}, id="a parent of zeros"),
        pytest.param({"parentSpanId": None, "events": None, "links": None}, id="nulls where nothing is"),
        pytest.param({"flags": 256, "droppedAttributesCount": 3, "later": {"x": [1]}}, id="fields nobody knows"),
    ],
)
def test_other_spellings_give_the_same_trace(over: dict[str, Any]) -> None:
    assert traces_of(request(span(**over))) == traces_of(request(span()))


def test_snake_case_gives_the_same_trace() -> None:
    snake = {
        "resource_spans": [
            {
                "resource": {"attributes": []},
                "scope_spans": [
                    {
                        "scope": {"name": "acme.instrumentation"},
                        "spans": [
                            {
                                "trace_id": _base64(TRACE),
                                "span_id": _base64(ROOT),
                                "name": "serve",
                                "kind": "SPAN_KIND_SERVER",
                                "start_time_unix_nano": str(START),
                                "end_time_unix_nano": str(START + 2_000_000),
                                "attributes": [{"key": "acme.city", "value": {"string_value": "Bari"}}],
                                "events": [{"name": "said", "time_unix_nano": str(START)}],
                            }
                        ],
                    }
                ],
            }
        ]
    }
    camel = request(span(events=[{"name": "said", "timeUnixNano": START}]))
    assert traces_of(snake) == traces_of(camel)


def test_a_list_of_requests_is_all_of_them() -> None:
    [trace] = traces_of([request(span()), request(span(spanId=CHILD, parentSpanId=ROOT))])
    assert [s.spanId for s in trace.spans] == [ROOT, CHILD]


@pytest.mark.parametrize(
    ("broken", "seen"),
    [
        pytest.param(span(name=None), {"name": ""}, id="a name that is null"),
        pytest.param(span(startTimeUnixNano="soon"), {"startTime": "", "durationInNanos": 0}, id="a time in words"),
        pytest.param(span(endTimeUnixNano=START - 5), {"durationInNanos": 0}, id="an end before the start"),
        pytest.param(span(endTimeUnixNano=10**25), {"endTime": None}, id="an end after the year 9999"),
        pytest.param(span(attributes="none"), {"attributes": {"otel.scope.name": "acme.instrumentation"}}, id="text"),
        pytest.param(span(status="bad"), {"status": {"code": "UNSET"}}, id="a status that is a word"),
        pytest.param(span(kind=[1]), {"kind": "Unspecified"}, id="a kind that is a list"),
        pytest.param(span(kind=99), {"kind": "Unspecified"}, id="a kind nobody knows"),
        pytest.param(span(events=["x", 5]), {"events": []}, id="events that are no objects"),
    ],
)
def test_a_wrong_field_costs_itself_alone(broken: dict[str, Any], seen: dict[str, Any]) -> None:
    [trace] = traces_of(request(broken, span(spanId=CHILD)))
    assert {name: getattr(trace.spans[0], name) for name in seen} == seen
    assert trace.spans[1].name == "serve"


def test_an_item_that_is_no_span_is_reported_and_the_others_stay() -> None:
    batch = decode_request(json.dumps(request(span(), 17)).encode())  # type: ignore[arg-type]
    assert [record.spanId for record, _ in batch.spans] == [ROOT]
    assert batch.faults == ["span 1 is no object"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('"\\ud800 half a pair"', id="a lone surrogate"),
        pytest.param('"caf\xe9"'.encode("latin-1"), id="bytes that are no UTF-8"),
    ],
)
def test_text_that_strict_readers_refuse_is_still_read(text: str | bytes) -> None:
    raw = json.dumps(request(span())).encode().replace(b'"Bari"', text if isinstance(text, bytes) else text.encode())
    [trace] = traces_of(raw)
    assert trace.spans[0].attributes["acme.city"]


def test_nan_in_an_attribute_is_read() -> None:
    raw = json.dumps(request(span())).encode().replace(b'{"stringValue": "Bari"}', b'{"doubleValue": NaN}')
    [trace] = traces_of(raw)
    assert trace.spans[0].attributes["acme.city"] != trace.spans[0].attributes["acme.city"]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        pytest.param({"stringValue": "a"}, "a", id="text"),
        pytest.param({"intValue": "18080"}, 18080, id="an integer as a string"),
        pytest.param({"intValue": 7}, 7, id="an integer as a number"),
        pytest.param({"intValue": "seven"}, "seven", id="an integer that is none"),
        pytest.param({"doubleValue": 0.5}, 0.5, id="a number"),
        pytest.param({"doubleValue": "0.25"}, 0.25, id="a number as a string"),
        pytest.param({"doubleValue": "half"}, "half", id="a number that is none"),
        pytest.param({"boolValue": True}, True, id="a flag"),
        pytest.param({"bytesValue": "AAE="}, "AAE=", id="bytes stay base64"),
        pytest.param({"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "b"}]}}, [1, "b"], id="a list"),
        pytest.param({"arrayValue": {}}, [], id="an empty list"),
        pytest.param(
            {"kvlistValue": {"values": [{"key": "k", "value": {"arrayValue": {"values": [{"boolValue": False}]}}}]}},
            {"k": [False]},
            id="an object with a list",
        ),
        pytest.param({"kvlistValue": {}}, {}, id="an empty object"),
        pytest.param({"array_value": {"values": [{"int_value": 3}]}}, [3], id="snake case"),
        pytest.param({}, None, id="an empty value"),
        pytest.param("already plain", "already plain", id="a plain value"),
    ],
)
def test_values(value: Any, plain: Any) -> None:
    assert plain_value(value) == plain


plain_values = st.recursive(
    st.text() | st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def typed(value: Any) -> dict[str, Any]:
    """The other way round: how a writer spells a plain value."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [typed(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": k, "value": typed(v)} for k, v in value.items()]}}
    return {"stringValue": value}


@given(st.dictionaries(st.text(), plain_values, max_size=5))
def test_what_a_writer_typed_comes_back(attributes: dict[str, Any]) -> None:
    wire = [{"key": key, "value": typed(value)} for key, value in attributes.items()]
    assert plain_attributes(wire) == attributes


@given(st.binary(min_size=8, max_size=8) | st.binary(min_size=16, max_size=16))
def test_an_id_is_the_same_in_hex_and_base64(raw: bytes) -> None:
    expected = raw.hex() if any(raw) else ""
    assert hex_id(base64.b64encode(raw).decode()) == hex_id(raw.hex()) == expected


def test_an_id_that_is_neither_stays_as_it_is() -> None:
    assert (hex_id("run-7"), hex_id("!!!"), hex_id(None), hex_id("")) == ("run-7", "!!!", "", "")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param('{"resourceSpans": []}', True, id="a span request"),
        pytest.param(' [ {"resourceLogs":[]}]', True, id="a list of log requests"),
        pytest.param('{"resource_spans": []}', True, id="snake case"),
        pytest.param('{"traces": [{"resourceSpans": 1}]}', False, id="an export"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_what_is_a_request(text: str, answer: bool) -> None:
    assert is_otlp(text.encode()) is answer


# --- putting traces together ------------------------------------------------------------------------------------------


def record(**over: Any) -> dict[str, Any]:
    return {
        "traceId": TRACE,
        "spanId": ROOT,
        "observedTimeUnixNano": str(START),
        "eventName": "gen_ai.user.message",
        "body": typed({"content": "When is the next ferry?"}),
        "attributes": [{"key": "gen_ai.system", "value": {"stringValue": "openai"}}],
        **over,
    }


def test_log_records_become_events_of_their_span_in_time_order() -> None:
    later = record(timeUnixNano=str(START + 9), eventName="gen_ai.choice", body=typed({"index": 0}))
    [trace] = traces_of(log_request(later), request(span()), log_request(record()))
    assert trace.spans[0].events == [
        {
            "name": "gen_ai.user.message",
            "time": "2026-11-30T10:53:29.485744237Z",
            "attributes": {"gen_ai.system": "openai", "content": "When is the next ferry?"},
        },
        {
            "name": "gen_ai.choice",
            "time": "2026-11-30T10:53:29.485744246Z",
            "attributes": {"gen_ai.system": "openai", "index": 0},
        },
    ]


def test_a_log_record_sent_twice_is_one_event_and_two_that_say_the_same_are_two() -> None:
    again = record(observedTimeUnixNano=str(START + 1))
    [trace] = traces_of(request(span()), log_request(record(), again), log_request(record()))
    assert len(trace.spans[0].events) == 2


def test_a_log_record_with_a_text_body_and_the_older_event_name() -> None:
    attributes = [{"key": "event.name", "value": {"stringValue": "gen_ai.note"}}]
    [trace] = traces_of(
        request(span()), log_request(record(eventName=None, body={"stringValue": "hello"}, attributes=attributes))
    )
    [event] = trace.spans[0].events
    assert (event["name"], event["attributes"]["body"]) == ("gen_ai.note", "hello")


def test_log_records_of_no_span_are_counted() -> None:
    grouper = TraceGrouper()
    grouper.add(decode_request(json.dumps(request(span())).encode()))
    stray = [record(spanId=CHILD), record(traceId="ab" * 16), record(traceId="", spanId="")]
    grouper.add(decode_request(json.dumps(log_request(*stray)).encode()))
    grouper.finish()
    assert [t for _, t in grouper.starts()] == [TRACE]
    assert grouper.build(TRACE).spans[0].events == []
    assert grouper.lost_logs == 3


def test_a_body_with_wrong_types_is_read_leniently() -> None:
    [trace] = traces_of(request(span()), log_request(record(spanId=ROOT, timeUnixNano="?", eventName=5)))
    assert trace.spans[0].events[0]["attributes"]["content"] == "When is the next ferry?"


def test_spans_without_a_trace_id_are_counted_not_made_a_trace() -> None:
    grouper = TraceGrouper()
    grouper.add(decode_request(json.dumps(request(span(traceId=""), span())).encode()))
    grouper.finish()
    assert grouper.nameless_spans == 1
    assert [t for _, t in grouper.starts()] == [TRACE]


def test_the_root_is_the_span_without_a_parent_else_the_one_whose_parent_is_missing() -> None:
    child, orphan = span(spanId=CHILD, parentSpanId=ROOT), span(parentSpanId="ff" * 8)
    assert traces_of(request(child, span()))[0].rootSpanId == ROOT
    assert traces_of(request(child, orphan))[0].rootSpanId == ROOT


def test_an_experiments_baggage_names_the_task_and_the_trial() -> None:
    attributes = [{"key": "task.id", "value": {"stringValue": "t1"}}, {"key": "trial.id", "value": {"intValue": "2"}}]
    [trace] = traces_of(request(span(), span(spanId=CHILD, parentSpanId=ROOT, attributes=attributes)))
    assert (trace.taskId, trace.trialId) == ("t1", "2")


def test_traces_are_told_apart_and_start_with_their_first_span() -> None:
    other = span(traceId="cd" * 16, startTimeUnixNano=str(START - 1000))
    grouper = TraceGrouper()
    grouper.add(decode_request(json.dumps(request(span(startTimeUnixNano=None), span(), other)).encode()))
    grouper.finish()
    assert sorted(grouper.starts()) == [(START - 1000, "cd" * 16), (START, TRACE)]
