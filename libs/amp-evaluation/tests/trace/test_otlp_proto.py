"""OTLP protobuf: the same spans, whatever frames them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToJson, ParseDict
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from amp_evaluation.trace._otel import OTELTrace
from amp_evaluation.trace.loader import TraceLoader
from amp_evaluation.trace.otlp import decode_request
from amp_evaluation.trace.otlp_group import TraceGrouper
from amp_evaluation.trace.otlp_proto import decode_messages

TRACE, ROOT = bytes.fromhex("5b8efff798038103d269b633813fc60c"), bytes.fromhex("eee19b7ec3c1b174")
START = 1_796_036_009_485_744_237


def spans_message(name: str = "serve") -> TracesData:
    message = TracesData()
    holder = message.resource_spans.add()
    ParseDict({"attributes": [{"key": "service.name", "value": {"stringValue": "ferries"}}]}, holder.resource)
    scope = holder.scope_spans.add()
    scope.scope.name = "acme"
    span = scope.spans.add(trace_id=TRACE, span_id=ROOT, name=name, kind=2)
    span.start_time_unix_nano, span.end_time_unix_nano = START, START + 5
    span.status.code, span.status.message = 2, "no"
    values = {
        "text": {"stringValue": "Bari"},
        "count": {"intValue": "3"},
        "share": {"doubleValue": 0.5},
        "flag": {"boolValue": True},
        "raw": {"bytesValue": "AAE="},
        "none": {},
        "list": {"arrayValue": {"values": [{"intValue": "1"}, {"kvlistValue": {"values": []}}]}},
    }
    for key, value in values.items():
        ParseDict({"key": key, "value": value}, span.attributes.add())
    span.events.add(time_unix_nano=START + 1, name="said")
    span.links.add(trace_id=TRACE, span_id=ROOT)
    return message


def logs_message(trace_id: bytes = TRACE) -> LogsData:
    message = LogsData()
    record = (
        message.resource_logs.add()
        .scope_logs.add()
        .log_records.add(
            trace_id=trace_id, span_id=ROOT, observed_time_unix_nano=START, event_name="gen_ai.user.message"
        )
    )
    ParseDict({"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "hi"}}]}}, record.body)
    return message


def fixed(*messages: bytes) -> bytes:
    return b"".join(len(m).to_bytes(4, "big") + m for m in messages)


def delimited(*messages: bytes) -> bytes:
    def varint(number: int) -> bytes:
        out = b""
        while number > 0x7F:
            out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
        return out + bytes([number])

    return b"".join(varint(len(m)) + m for m in messages)


def traces_of(data: bytes) -> list[OTELTrace]:
    grouper = TraceGrouper()
    for batch in decode_messages(data):
        grouper.add(batch)
    grouper.finish()
    return [grouper.build(trace_id) for _, trace_id in sorted(grouper.starts())]


def json_traces(message: TracesData) -> list[OTELTrace]:
    grouper = TraceGrouper()
    grouper.add(decode_request(MessageToJson(message).encode()))
    grouper.finish()
    return [grouper.build(trace_id) for _, trace_id in sorted(grouper.starts())]


def test_protobuf_and_json_of_one_message_are_the_same_trace() -> None:
    message = spans_message()
    assert traces_of(message.SerializeToString()) == json_traces(message)


SPANS, LOGS = spans_message().SerializeToString(), logs_message().SerializeToString()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(SPANS + spans_message("again").SerializeToString(), id="two messages joined are one"),
        pytest.param(fixed(SPANS, spans_message("again").SerializeToString()), id="lengths in four bytes"),
        pytest.param(fixed(SPANS, b"", spans_message("again").SerializeToString()), id="an empty message between"),
        pytest.param(delimited(SPANS, spans_message("again").SerializeToString()), id="lengths as varints"),
    ],
)
def test_framings(data: bytes) -> None:
    [trace] = traces_of(data)
    assert [span.name for span in trace.spans] == ["serve", "again"]


@pytest.mark.parametrize("frame", [fixed, delimited])
def test_log_requests_are_told_from_span_requests(frame: object) -> None:
    [trace] = traces_of(frame(LOGS, SPANS))  # type: ignore[operator]
    assert [event["name"] for event in trace.spans[0].events] == ["gen_ai.user.message", "said"]
    assert trace.spans[0].events[0]["attributes"] == {"content": "hi"}


def test_log_records_outside_of_spans_are_read() -> None:
    [batch] = decode_messages(logs_message(b"").SerializeToString())
    assert [record.traceId for record in batch.logs] == [""]


@pytest.mark.parametrize("name", ["spans.pb", "spans.binpb", "spans.PB", "spans.pb.gz"])
def test_protobuf_is_known_by_the_files_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(SPANS) if name.endswith(".gz") else SPANS)
    assert [trace.traceId for trace in TraceLoader(tmp_path / name).load_traces()] == [TRACE.hex()]


def test_nothing_is_no_message() -> None:
    assert list(decode_messages(b"")) == []


@pytest.mark.parametrize(
    ("data", "place"),
    [
        pytest.param(b"not protobuf at all", "offset 0", id="text"),
        pytest.param(SPANS[:-3], "offset 0", id="a message cut short"),
        pytest.param(fixed(SPANS, b"\x0a\x03\xff\xff\xff"), f"offset {len(SPANS) + 8}", id="a broken second message"),
        pytest.param(logs_message(b"abc").SerializeToString(), "offset 0", id="ids of no known length"),
        pytest.param(b"\x0a", "offset 0", id="a tag and nothing"),
        pytest.param(b"\x0a\x02", "offset 0", id="a length and nothing"),
    ],
)
def test_what_is_no_otlp_is_refused_with_its_place(data: bytes, place: str) -> None:
    with pytest.raises(ValueError, match=place):
        list(decode_messages(data))


def test_without_the_extra_the_error_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['opentelemetry.proto.trace.v1.trace_pb2'] = None\n"
        "from amp_evaluation.trace.loader import TraceLoader\n"
        "from amp_evaluation.errors import ConfigError\n"
        "try: TraceLoader(sys.argv[1]).load_traces()\n"
        "except ConfigError as error: print(error)\n"
    )
    path = tmp_path / "spans.pb"
    path.write_bytes(SPANS)
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert "amp-evaluation[otlp]" in done.stdout


def test_the_extra_is_imported_only_for_protobuf(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_text(MessageToJson(spans_message()))
    code = (
        "import sys, json\nfrom amp_evaluation.trace.loader import TraceLoader\n"
        "n = len(TraceLoader(sys.argv[1]).load_traces())\n"
        "print(json.dumps([n, [m for m in sys.modules if m.startswith(('google.protobuf', 'opentelemetry'))]]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [1, []]
