"""OTLP JSON: an export request, or a list of them, as spans and log records whose attributes are still undecoded.

Source of the shapes: opentelemetry-proto 1.x, the "JSON Protobuf Encoding" of the OTLP specification, and what writers
really do beside it: ids in base64 or hex, enums as numbers or names, 64-bit numbers as strings or numbers, snake_case
keys (protobuf's own JSON printer).

Strict decoding first (typed, attributes left as bytes); what that refuses is read again by `json` and, span by span,
with every field forgiven that can be: NaN, lone surrogates, bad UTF-8 and wrong types are normal in the wild.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from amp_evaluation.trace.otlp_values import JsonValue, object_in, objects_in, plain_attributes, whole_number

_ABSENT = msgspec.Raw(b"")
_REQUEST_START = re.compile(rb"\s*(?:\[\s*)?\{\s*\"(resource_?(?:[sS]pans|[lL]ogs|[mM]etrics))\"\s*:")


class Status(msgspec.Struct):
    """How a span ended."""

    code: int | str | None = None
    message: str | None = None


class SpanRecord(msgspec.Struct):
    """A span on the wire; `attributes`, `events`, `links` are bytes, JSON lists, or (from protobuf) plain dicts."""

    traceId: str = ""
    spanId: str = ""
    parentSpanId: str | None = None
    name: str | None = None
    kind: int | str | None = None
    startTimeUnixNano: int | None = None
    endTimeUnixNano: int | None = None
    status: Status | None = None
    attributes: Any = _ABSENT
    events: Any = _ABSENT
    links: Any = _ABSENT


class LogRecord(msgspec.Struct):
    """A log record on the wire; GenAI instrumentations put messages in its body."""

    traceId: str = ""
    spanId: str = ""
    timeUnixNano: int | None = None
    observedTimeUnixNano: int | None = None
    eventName: str | None = None
    body: Any = _ABSENT
    attributes: Any = _ABSENT


class _WireSpan(SpanRecord):
    attributes: msgspec.Raw = _ABSENT
    events: msgspec.Raw = _ABSENT
    links: msgspec.Raw = _ABSENT


class _WireLog(LogRecord):
    body: msgspec.Raw = _ABSENT
    attributes: msgspec.Raw = _ABSENT


class _Attributed(msgspec.Struct):
    """A resource or a scope."""

    name: str | None = None
    attributes: msgspec.Raw = _ABSENT


class _Scope(msgspec.Struct):
    scope: _Attributed | None = None
    spans: list[_WireSpan] | None = None
    logRecords: list[_WireLog] | None = None


class _Resource(msgspec.Struct):
    resource: _Attributed | None = None
    scopeSpans: list[_Scope] | None = None
    scopeLogs: list[_Scope] | None = None


class _Request(msgspec.Struct):
    resourceSpans: list[_Resource] | None = None
    resourceLogs: list[_Resource] | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where spans come from: their resource's attributes and the name of the instrumentation scope. Shared."""

    resource: Mapping[str, JsonValue]
    scope: str = ""


@dataclass(slots=True)
class Batch:
    """What one request holds. `faults` names items that could not be read at all."""

    spans: list[tuple[SpanRecord, Origin]] = field(default_factory=list)
    logs: list[LogRecord] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def is_otlp(data: bytes) -> bool:
    """Whether this JSON text starts as an OTLP request (or a list of them) does."""
    return _REQUEST_START.match(data) is not None


def decode_request(data: bytes) -> Batch:
    """The spans and log records of a request. ValueError (json's, with a position) when the text is no JSON."""
    if b"_spans" not in data[:200] and b"_logs" not in data[:200]:
        try:
            return _from_structs(_DECODER.decode(data))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # read again below, forgivingly
    return _from_objects(json.loads(data.decode("utf-8", "replace")))


_DECODER = msgspec.json.Decoder(_Request | list[_Request], strict=False)


def _from_structs(document: _Request | list[_Request]) -> Batch:
    batch = Batch()
    for request in document if isinstance(document, list) else [document]:
        for holder in request.resourceSpans or ():
            resource = _resource(holder.resource)
            for scope in holder.scopeSpans or ():
                origin = Origin(resource, (scope.scope.name if scope.scope else None) or "")
                batch.spans += [(span, origin) for span in scope.spans or ()]
        for holder in request.resourceLogs or ():
            for scope in holder.scopeLogs or ():
                batch.logs += scope.logRecords or ()
    return batch


def _resource(resource: _Attributed | None) -> Mapping[str, JsonValue]:
    return plain_attributes(resource.attributes) if resource is not None else {}


# --- forgiving: Python objects, one span at a time -------------------------------------------------------------------


def _from_objects(document: JsonValue) -> Batch:
    batch = Batch()
    for request in objects_in(document if isinstance(document, list) else [document]):
        for holder in objects_in(_pick(request, "resourceSpans")):
            resource = plain_attributes(_pick(object_in(holder.get("resource")), "attributes"))
            for scope in objects_in(_pick(holder, "scopeSpans")):
                origin = Origin(resource, _text(object_in(scope.get("scope")).get("name")))
                _add_spans(batch, scope.get("spans"), origin)
        for holder in objects_in(_pick(request, "resourceLogs")):
            for scope in objects_in(_pick(holder, "scopeLogs")):
                batch.logs += [_log(record) for record in objects_in(_pick(scope, "logRecords"))]
    return batch


def _add_spans(batch: Batch, spans: JsonValue, origin: Origin) -> None:
    for place, item in enumerate(spans if isinstance(spans, list) else ()):
        if isinstance(item, dict):
            batch.spans.append((_span(item), origin))
        else:
            batch.faults.append(f"span {place} is no object")


def _span(item: dict[str, JsonValue]) -> SpanRecord:
    status = object_in(item.get("status"))
    code = status.get("code")
    return SpanRecord(
        traceId=_text(_pick(item, "traceId")),
        spanId=_text(_pick(item, "spanId")),
        parentSpanId=_text(_pick(item, "parentSpanId")),
        name=_text(item.get("name")),
        kind=_enum(item.get("kind")),
        startTimeUnixNano=whole_number(_pick(item, "startTimeUnixNano")),
        endTimeUnixNano=whole_number(_pick(item, "endTimeUnixNano")),
        status=Status(_enum(code), _text(status.get("message"))),
        attributes=item.get("attributes"),
        events=item.get("events"),
        links=item.get("links"),
    )


def _log(item: dict[str, JsonValue]) -> LogRecord:
    return LogRecord(
        traceId=_text(_pick(item, "traceId")),
        spanId=_text(_pick(item, "spanId")),
        timeUnixNano=whole_number(_pick(item, "timeUnixNano")),
        observedTimeUnixNano=whole_number(_pick(item, "observedTimeUnixNano")),
        eventName=_text(_pick(item, "eventName")),
        body=item.get("body"),
        attributes=item.get("attributes"),
    )


def _pick(item: Mapping[str, JsonValue], name: str) -> JsonValue:
    """The field by its JSON name, else by its protobuf name."""
    value = item.get(name)
    return value if value is not None else item.get(_SNAKE.sub(_lower, name))


_SNAKE = re.compile(r"[A-Z]")


def _lower(match: re.Match[str]) -> str:
    return "_" + match.group().lower()


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _enum(value: JsonValue) -> int | str | None:
    return value if isinstance(value, int | str) else None
