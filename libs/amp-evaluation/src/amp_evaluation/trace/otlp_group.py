"""Spans and log records of any number of OTLP requests, put together as traces.

A trace may lie in several requests and files, in any order; it can be built only when all are read. Until then spans
keep their attributes as the bytes they came in; `build` decodes one trace and lets go of its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from amp_evaluation._time import format_unix_nanos
from amp_evaluation.trace._wire import OTELSpan, OTELTrace
from amp_evaluation.trace.otlp import Batch, LogRecord, Origin, SpanRecord
from amp_evaluation.trace.otlp_values import JsonValue, hex_id, opened, plain_attributes, plain_json, plain_value

_SPAN_KINDS: Final = ("Unspecified", "Internal", "Server", "Client", "Producer", "Consumer")
_STATUS_CODES: Final = ("UNSET", "OK", "ERROR")
_TASK_KEY, _TRIAL_KEY = "task.id", "trial.id"
"""OpenTelemetry baggage that an experiment sends with its tasks, copied onto spans by a baggage span processor."""

_SCOPE_KEY = "otel.scope.name"
"""OpenTelemetry's name for the instrumentation scope in formats that have no place for it."""


@dataclass(slots=True)
class _Group:
    spans: list[tuple[SpanRecord, Origin]] = field(default_factory=list)
    logs: list[LogRecord] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def start_nanos(self) -> int:
        return min((s.startTimeUnixNano for s, _ in self.spans if s.startTimeUnixNano), default=0)


class TraceGrouper:
    """Collects batches; then gives the traces one at a time."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self.lost_logs = 0
        """Log records that name no span of any file; known once all traces are built."""
        self.nameless_spans = 0
        """Spans without a trace id."""

    def add(self, batch: Batch) -> None:
        """Sorts a request's spans and log records to their traces."""
        for span, origin in batch.spans:
            self._group(span.traceId).spans.append((span, origin))
        for record in batch.logs:
            self._group(record.traceId).logs.append(record)

    def _group(self, raw_id: str) -> _Group:
        trace_id = hex_id(raw_id)
        group = self._groups.get(trace_id)
        if group is None:
            group = self._groups[trace_id] = _Group()
        return group

    def finish(self) -> None:
        """To be called when all is read: sets aside what belongs to no trace."""
        nameless = self._groups.pop("", None)
        if nameless is not None:
            self.nameless_spans = len(nameless.spans)
            self.lost_logs += len(nameless.logs)
        for trace_id in [t for t, group in self._groups.items() if not group.spans]:
            self.lost_logs += len(self._groups.pop(trace_id).logs)

    def starts(self) -> Iterator[tuple[int, str]]:
        """Start (nanoseconds since 1970, 0 when no span has one) and id of each trace."""
        return ((group.start_nanos, trace_id) for trace_id, group in self._groups.items())

    def build(self, trace_id: str) -> OTELTrace:
        """The trace, decoded; it is held no longer."""
        group = self._groups.pop(trace_id)
        spans = [_span(trace_id, record, origin) for record, origin in group.spans]
        self.lost_logs += _attach(spans, group.logs)
        return _trace(trace_id, spans, group)


def _span(trace_id: str, record: SpanRecord, origin: Origin) -> OTELSpan:
    start, end = record.startTimeUnixNano or 0, record.endTimeUnixNano or 0
    attributes = plain_attributes(record.attributes)
    if origin.scope:
        attributes.setdefault(_SCOPE_KEY, origin.scope)
    return OTELSpan(
        traceId=trace_id,
        spanId=hex_id(record.spanId),
        parentSpanId=hex_id(record.parentSpanId) or None,
        name=record.name or "",
        service=str(origin.resource.get("service.name") or ""),
        startTime=format_unix_nanos(start),
        endTime=format_unix_nanos(end) or None,
        durationInNanos=max(0, end - start) if start and end else 0,
        kind=_named(record.kind, _SPAN_KINDS, "SPAN_KIND_"),
        status=_status(record),
        attributes=attributes,
        resource=dict(origin.resource),
        events=list(_events(record.events)),
        links=list(_links(record.links)),
    )


def _named(code: int | str | None, names: tuple[str, ...], prefix: str) -> str:
    """An enum, given as number, as number in a string or by its protobuf name, by its plain name."""
    if isinstance(code, str) and not code.isdigit():
        wanted = code.upper().removeprefix(prefix)
        return next((name for name in names if name.upper() == wanted), code)
    number = int(code or 0)
    return names[number] if 0 <= number < len(names) else names[0]


def _status(record: SpanRecord) -> dict[str, str]:
    status = record.status
    code = _named(status.code if status else None, _STATUS_CODES, "STATUS_CODE_")
    return {"code": code, "message": status.message} if status and status.message else {"code": code}


def _events(raw: JsonValue) -> Iterator[dict[str, JsonValue]]:
    for item in _objects(raw):
        time = _nanos(item, "timeUnixNano", "time_unix_nano")
        attributes = plain_attributes(item.get("attributes"))
        yield {"name": str(item.get("name") or ""), "time": format_unix_nanos(time), "attributes": attributes}


def _links(raw: JsonValue) -> Iterator[dict[str, JsonValue]]:
    for item in _objects(raw):
        yield {
            "traceId": hex_id(str(item.get("traceId") or item.get("trace_id") or "")),
            "spanId": hex_id(str(item.get("spanId") or item.get("span_id") or "")),
            "attributes": plain_attributes(item.get("attributes")),
        }


def _objects(raw: JsonValue) -> Iterator[dict[str, JsonValue]]:
    items = plain_json(raw)
    return (item for item in (items if isinstance(items, list) else ()) if isinstance(item, dict))


def _nanos(item: dict[str, JsonValue], *names: str) -> int:
    for name in names:
        try:
            return int(item[name])
        except (KeyError, TypeError, ValueError):
            continue
    return 0


# --- log records ------------------------------------------------------------------------------------------------------


def _attach(spans: Iterable[OTELSpan], logs: Iterable[LogRecord]) -> int:
    """Log records become events of the span they name, in time order. How many name no span of the trace."""
    by_id: dict[str, list[OTELSpan]] = {}
    for span in spans:
        by_id.setdefault(span.spanId, []).append(span)
    lost = 0
    touched: dict[str, list[OTELSpan]] = {}
    for record in logs:
        span_id = hex_id(record.spanId)
        owners = by_id.get(span_id, [])
        lost += not owners
        event = _log_event(record) if owners else {}
        for owner in owners:
            if event not in owner.events:  # exporters repeat a request whose reply was lost
                owner.events.append(event)
                touched[span_id] = owners
    for owner in (span for owners in touched.values() for span in owners):
        owner.events.sort(key=lambda event: str(event["time"]))
    return lost


def _log_event(record: LogRecord) -> dict[str, JsonValue]:
    """The fields of an object body (or of JSON text of one) stand beside the record's attributes.

    So they do in a span event of that name.
    """
    attributes = dict(plain_attributes(record.attributes))
    body = opened(plain_value(plain_json(record.body)))
    if isinstance(body, dict):
        attributes.update(body)
    elif body not in (None, ""):
        attributes["body"] = body
    name = record.eventName or attributes.get("event.name") or ""
    time = record.timeUnixNano or record.observedTimeUnixNano or 0
    return {"name": str(name), "time": format_unix_nanos(time), "attributes": attributes}


# --- the trace --------------------------------------------------------------------------------------------------------


def _trace(trace_id: str, spans: list[OTELSpan], group: _Group) -> OTELTrace:
    start = group.start_nanos
    end = max((s.endTimeUnixNano for s, _ in group.spans if s.endTimeUnixNano), default=0)
    root = _root(spans)
    return OTELTrace(
        traceId=trace_id,
        rootSpanId=root.spanId,
        rootSpanName=root.name,
        startTime=format_unix_nanos(start),
        endTime=format_unix_nanos(end) or None,
        durationInNanos=max(0, end - start) if start and end else 0,
        spanCount=len(spans),
        taskId=_baggage(spans, _TASK_KEY),
        trialId=_baggage(spans, _TRIAL_KEY),
        spans=spans,
    )


def _root(spans: list[OTELSpan]) -> OTELSpan:
    """The earliest span without a parent, else the earliest whose parent is not here, else the earliest."""
    ids = {span.spanId for span in spans}
    return min(spans, key=lambda s: (bool(s.parentSpanId) + (s.parentSpanId in ids), s.startTime or "~"))


def _baggage(spans: list[OTELSpan], key: str) -> str | None:
    for span in spans:
        value = (span.attributes or {}).get(key)
        if value:
            return str(value)
    return None
