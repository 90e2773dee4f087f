"""OTLP JSON: an export request, or a list of them, as spans and log records whose attributes are still undecoded.

Source of the shapes: opentelemetry-proto 1.x, the "JSON Protobuf Encoding" of the OTLP specification, and what writers
really do beside it: ids in base64 or hex, enums as numbers or names, 64-bit numbers as strings or numbers, snake_case
keys (protobuf's own JSON printer).

Strict decoding first (typed, attributes left as bytes); what that refuses is read again by `json` and, span by span,
with every field forgiven that can be: NaN, lone surrogates, bad UTF-8 and wrong types are normal in the wild.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

JsonValue: TypeAlias = Any
"""Any JSON value as Python's `json` gives it."""

_ABSENT = msgspec.Raw(b"")
_HEX = re.compile(r"(?:[0-9a-fA-F]{16}|[0-9a-fA-F]{32})\Z")
_ID_BYTES_OF_BASE64 = {24: 16, 12: 8}
"""Length of the base64 text of an id → bytes of the id."""

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
    for request in _dicts(document if isinstance(document, list) else [document]):
        for holder in _dicts(_pick(request, "resourceSpans")):
            resource = plain_attributes(_pick(_dict(holder.get("resource")), "attributes"))
            for scope in _dicts(_pick(holder, "scopeSpans")):
                origin = Origin(resource, _text(_dict(scope.get("scope")).get("name")))
                _add_spans(batch, scope.get("spans"), origin)
        for holder in _dicts(_pick(request, "resourceLogs")):
            for scope in _dicts(_pick(holder, "scopeLogs")):
                batch.logs += [_log(record) for record in _dicts(_pick(scope, "logRecords"))]
    return batch


def _add_spans(batch: Batch, spans: JsonValue, origin: Origin) -> None:
    for place, item in enumerate(spans if isinstance(spans, list) else ()):
        if isinstance(item, dict):
            batch.spans.append((_span(item), origin))
        else:
            batch.faults.append(f"span {place} is no object")


def _span(item: dict[str, JsonValue]) -> SpanRecord:
    status = _dict(item.get("status"))
    code = status.get("code")
    return SpanRecord(
        traceId=_text(_pick(item, "traceId")),
        spanId=_text(_pick(item, "spanId")),
        parentSpanId=_text(_pick(item, "parentSpanId")),
        name=_text(item.get("name")),
        kind=_enum(item.get("kind")),
        startTimeUnixNano=_int(_pick(item, "startTimeUnixNano")),
        endTimeUnixNano=_int(_pick(item, "endTimeUnixNano")),
        status=Status(_enum(code), _text(status.get("message"))),
        attributes=item.get("attributes"),
        events=item.get("events"),
        links=item.get("links"),
    )


def _log(item: dict[str, JsonValue]) -> LogRecord:
    return LogRecord(
        traceId=_text(_pick(item, "traceId")),
        spanId=_text(_pick(item, "spanId")),
        timeUnixNano=_int(_pick(item, "timeUnixNano")),
        observedTimeUnixNano=_int(_pick(item, "observedTimeUnixNano")),
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


def _dict(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _dicts(value: JsonValue) -> Iterator[dict[str, JsonValue]]:
    return (item for item in (value if isinstance(value, list) else ()) if isinstance(item, dict))


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _enum(value: JsonValue) -> int | str | None:
    return value if isinstance(value, int | str) else None


def _int(value: JsonValue) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


# --- values -----------------------------------------------------------------------------------------------------------


def plain_attributes(raw: JsonValue) -> dict[str, JsonValue]:
    """A list of keys with typed values (as bytes or decoded; a dict is taken as it is) as a plain dict."""
    if isinstance(raw, dict):
        return raw
    return {
        key: plain_value(item.get("value"))
        for item in _dicts(plain_json(raw))
        if isinstance(key := item.get("key"), str)
    }


def plain_json(raw: JsonValue) -> JsonValue:
    """The JSON value of these bytes, None for none; a value that is decoded already passes through."""
    if not isinstance(raw, msgspec.Raw):
        return raw
    data = bytes(raw)
    if not data:
        return None
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return json.loads(data.decode("utf-8", "replace"))  # lone surrogates


def opened(value: JsonValue) -> JsonValue:
    """The object in a text that is JSON of one; anything else as it is."""
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def plain_value(value: JsonValue) -> JsonValue:
    """OTLP's AnyValue as a plain Python value; one that is none of its kinds passes through."""
    if not isinstance(value, dict):
        return value
    for kind, inner in value.items():
        convert = _KINDS.get(kind)
        if convert is not None:
            return convert(inner)
    return value or None


def _same(value: JsonValue) -> JsonValue:
    return value


def _integer(value: JsonValue) -> JsonValue:
    number = _int(value)
    return value if number is None else number


def _double(value: JsonValue) -> JsonValue:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def _array(value: JsonValue) -> list[JsonValue]:
    return [plain_value(item) for item in _dict(value).get("values") or ()]


def _key_list(value: JsonValue) -> dict[str, JsonValue]:
    return plain_attributes(_dict(value).get("values") or [])


_KINDS: dict[str, Callable[[JsonValue], JsonValue]] = {
    "stringValue": _same,
    "intValue": _integer,
    "doubleValue": _double,
    "boolValue": _same,
    "arrayValue": _array,
    "kvlistValue": _key_list,
    "bytesValue": _same,
    "string_value": _same,
    "int_value": _integer,
    "double_value": _double,
    "bool_value": _same,
    "array_value": _array,
    "kvlist_value": _key_list,
    "bytes_value": _same,
}


def hex_id(text: str | None) -> str:
    """A trace or span id as lower-case hex, whether it came as hex or as base64; "" for none or all zeros."""
    if not text:
        return ""
    if not _HEX.match(text):
        text = _from_base64(text)
    return text.lower() if text.strip("0") else ""


def _from_base64(text: str) -> str:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text
    return data.hex() if len(data) == _ID_BYTES_OF_BASE64.get(len(text)) else text
