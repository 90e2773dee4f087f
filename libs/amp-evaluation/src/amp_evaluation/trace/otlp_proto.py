"""OTLP protobuf files: single messages, and the concatenations that exporters write.

Three framings are known: one message a file; each message behind its length in four bytes, big endian (the Collector's
file exporter with `format: proto`); each behind its length as a varint (protobuf's own "delimited" streams).
Span and log requests have the same outer shape, so a message is read as spans where its spans have real ids.

opentelemetry-proto (the extra `otlp`) is imported when the first such file is read, never before.
"""

from __future__ import annotations

import base64
import importlib
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from amp_evaluation.errors import ConfigError
from amp_evaluation.trace.otlp import Batch, LogRecord, Origin, SpanRecord, Status
from amp_evaluation.trace.otlp_values import JsonValue

Message: TypeAlias = Any
"""A protobuf message: generated classes have no types of their own here."""

_RESOURCE_TAG = 0x0A
"""Field 1, length-delimited: the first byte of every non-empty request."""

_FIELD_TAG_BITS = 7
_TRACE_ID_BYTES, _SPAN_ID_BYTES = 16, 8


def decode_messages(data: bytes) -> Iterator[Batch]:
    """One batch a message. ValueError with the offset when the bytes are no OTLP; ConfigError without the extra."""
    spans_type, logs_type = _message_types()
    for start, end in _frames(data):
        chunk = data[start:end]
        try:
            yield _decode(chunk, spans_type, logs_type)
        except ValueError as error:
            raise ValueError(f"offset {start}: {error}") from error


def _message_types() -> tuple[Message, Message]:
    try:
        traces = importlib.import_module("opentelemetry.proto.trace.v1.trace_pb2")
        logs = importlib.import_module("opentelemetry.proto.logs.v1.logs_pb2")
    except ImportError as error:
        raise ConfigError(
            "OTLP protobuf files need the package opentelemetry-proto: pip install 'amp-evaluation[otlp]'"
        ) from error
    return traces.TracesData, logs.LogsData


# --- framing ----------------------------------------------------------------------------------------------------------


def _frames(data: bytes) -> list[tuple[int, int]]:
    """Start and end of each message: the first framing that covers the file to its last byte."""
    if not data or _tiles(data, _next_field):
        return [(0, len(data))] if data else []
    for step in (_next_fixed, _next_varint):
        frames = _tiles(data, step)
        if frames:
            return frames
    raise ValueError("offset 0: no OTLP message, nor messages behind their lengths")


def _tiles(data: bytes, step: Callable[[bytes, int], tuple[int, int]]) -> list[tuple[int, int]]:
    """The frames that `step` finds when they end exactly where the data ends, else none."""
    frames = []
    position = 0
    while position < len(data):
        try:
            start, end = step(data, position)
        except IndexError:
            return []
        if end > len(data) or end < start:
            return []
        if end > start:
            frames.append((start, end))
        position = end
    return frames


def _next_field(data: bytes, position: int) -> tuple[int, int]:
    if data[position] != _RESOURCE_TAG:
        raise IndexError
    length, start = _varint(data, position + 1)
    return start, start + length


def _next_fixed(data: bytes, position: int) -> tuple[int, int]:
    start = position + 4
    return _message_at(data, start, int.from_bytes(data[position:start], "big"))


def _next_varint(data: bytes, position: int) -> tuple[int, int]:
    length, start = _varint(data, position)
    return _message_at(data, start, length)


def _message_at(data: bytes, start: int, length: int) -> tuple[int, int]:
    if length and data[start] != _RESOURCE_TAG:
        raise IndexError
    return start, start + length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += _FIELD_TAG_BITS


# --- messages ---------------------------------------------------------------------------------------------------------


def _decode(chunk: bytes, spans_type: Message, logs_type: Message) -> Batch:
    for message_type, read in ((spans_type, _read_spans), (logs_type, _read_logs)):
        batch = read(_parse(message_type, chunk))
        if batch is not None:
            return batch
    raise ValueError("the message holds neither spans nor log records with ids")


def _parse(message_type: Message, chunk: bytes) -> Message | None:
    message = message_type()
    try:
        message.ParseFromString(chunk)
    except Exception:  # protobuf's DecodeError is no public base class of anything; the caller says what failed
        return None
    return message


def _read_spans(message: Message | None) -> Batch | None:
    """None when these are not spans: a log request read as one has spans without ids."""
    batch = Batch()
    for holder in message.resource_spans if message is not None else ():
        resource = _attributes(holder.resource.attributes)
        for scope in holder.scope_spans:
            origin = Origin(resource, scope.scope.name)
            batch.spans += [(_span(span), origin) for span in scope.spans]
            if any(len(s.trace_id) != _TRACE_ID_BYTES or len(s.span_id) != _SPAN_ID_BYTES for s in scope.spans):
                return None
    return batch if batch.spans else None


def _read_logs(message: Message | None) -> Batch | None:
    if message is None:
        return None
    records = [r for holder in message.resource_logs for scope in holder.scope_logs for r in scope.log_records]
    # Log records outside of any span have no ids; span requests read as logs have ids of other lengths.
    if any(len(r.trace_id) not in (0, _TRACE_ID_BYTES) for r in records):
        return None
    return Batch(logs=[_log(record) for record in records])


def _span(span: Message) -> SpanRecord:
    return SpanRecord(
        traceId=span.trace_id.hex(),
        spanId=span.span_id.hex(),
        parentSpanId=span.parent_span_id.hex(),
        name=span.name,
        kind=span.kind,
        startTimeUnixNano=span.start_time_unix_nano,
        endTimeUnixNano=span.end_time_unix_nano,
        status=Status(span.status.code, span.status.message),
        attributes=_attributes(span.attributes),
        events=[
            {"timeUnixNano": e.time_unix_nano, "name": e.name, "attributes": _attributes(e.attributes)}
            for e in span.events
        ],
        links=[
            {"traceId": k.trace_id.hex(), "spanId": k.span_id.hex(), "attributes": _attributes(k.attributes)}
            for k in span.links
        ],
    )


def _log(record: Message) -> LogRecord:
    return LogRecord(
        traceId=record.trace_id.hex(),
        spanId=record.span_id.hex(),
        timeUnixNano=record.time_unix_nano,
        observedTimeUnixNano=record.observed_time_unix_nano,
        eventName=getattr(record, "event_name", ""),  # since opentelemetry-proto 1.6
        body=_value(record.body),
        attributes=_attributes(record.attributes),
    )


def _attributes(items: Message) -> dict[str, JsonValue]:
    return {item.key: _value(item.value) for item in items}


def _value(value: Message) -> JsonValue:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    inner = getattr(value, kind)
    if kind == "array_value":
        return [_value(item) for item in inner.values]
    if kind == "kvlist_value":
        return _attributes(inner.values)
    return base64.b64encode(inner).decode() if kind == "bytes_value" else inner
