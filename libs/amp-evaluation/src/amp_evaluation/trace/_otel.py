"""The wire model as people see it: traces and spans in the service's own field names.

Built by hand (tests, files), or from the wire, and then decoded on first use. `wire_trace` gives the parser the
undecoded record behind a trace, or one made from its fields when somebody built or touched them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from amp_evaluation.trace._lazy import Lazy
from amp_evaluation.trace._records import (
    Timed,
    WireAmp,
    WireSpan,
    WireTrace,
    first_start,
    moment,
    number,
    plain,
    text_of,
)


@dataclass
class OTELTokenUsage:
    inputTokens: int = 0
    outputTokens: int = 0
    totalTokens: int = 0
    cacheReadInputTokens: int = 0
    partial: bool = False


@dataclass
class OTELTraceStatus:
    """How many spans of a trace failed, as the service counts them."""

    errorCount: int = 0


@dataclass
class AmpSpanStatus:
    """Whether a span failed, as the service sees it, with the error's class and text where it has them."""

    error: bool = False
    error_type: str | None = None
    error_message: str | None = None


@dataclass
class AmpSpanData:
    """The facts of a span by kind (model and tokens of an llm, the name of a tool, …)."""

    name: str | None = None
    model: str | None = None
    vendor: str | None = None
    temperature: float | None = None
    tools: list[Any] | None = None
    token_usage: Any = None
    framework: str | None = None
    system_prompt: str | None = None
    max_iter: int | None = None
    conversation_id: str | None = None
    vector_db: str | None = None
    collection: str | None = None
    top_k: int | None = None
    description: str | None = None


@dataclass
class AmpAttributes:
    """`data` may be an AmpSpanData, or an object as the service sends it (camelCase)."""

    kind: str | None = None
    input: Any = None
    output: Any = None
    data: AmpSpanData | dict[str, Any] | None = None
    status: AmpSpanStatus | None = None


@dataclass
class OTELSpan(Timed, Lazy):
    """A span of the traces API. Times are RFC 3339 text (a datetime is fine too), `events` are objects with name,
    time and attributes."""

    traceId: str = ""
    spanId: str = ""
    parentSpanId: str | None = None
    name: str = ""
    service: str = ""
    startTime: str | datetime | None = None
    endTime: str | datetime | None = None
    durationInNanos: int = 0
    kind: str | None = None
    status: Any = field(default_factory=lambda: None)
    attributes: dict[str, Any] = field(default_factory=dict)
    resource: dict[str, Any] = field(default_factory=dict)
    ampAttributes: AmpAttributes | None = field(default_factory=lambda: None)
    events: list[Any] = field(default_factory=list)
    links: list[Any] = field(default_factory=list)


@dataclass
class OTELTrace(Timed, Lazy):
    """A trace of the traces API.

    `size` is its length on the wire in bytes, in a light page its share (0 when built by hand). `defect` says why the
    trace can't be read, when it can't; `cut` that its source shortened it.
    """

    traceId: str = ""
    rootSpanId: str = ""
    rootSpanName: str = ""
    rootSpanKind: str | None = None
    startTime: str | datetime | None = None
    endTime: str | datetime | None = None
    durationInNanos: int = 0
    spanCount: int = 0
    tokenUsage: OTELTokenUsage | None = field(default_factory=lambda: None)
    status: OTELTraceStatus | None = field(default_factory=lambda: None)
    input: Any = field(default_factory=lambda: None)
    output: Any = field(default_factory=lambda: None)
    taskId: str | None = None
    trialId: str | None = None
    spans: list[OTELSpan] = field(default_factory=list)
    size: int = field(default=0, compare=False)
    defect: str | None = None
    cut: bool = False

    @property
    def start(self) -> datetime | None:
        """When the trace starts: its own time, else its first span's; None when no time is readable."""
        return moment(self.startTime) or first_start(wire_trace(self).spans or ())


def from_wire(wire: WireTrace, size: int) -> OTELTrace:
    trace = OTELTrace.__new__(OTELTrace)
    trace.__dict__.update(
        traceId=text_of(wire.traceId),
        rootSpanId=text_of(wire.rootSpanId),
        rootSpanName=text_of(wire.rootSpanName),
        rootSpanKind=wire.rootSpanKind,
        startTime=wire.startTime,
        endTime=wire.endTime,
        durationInNanos=wire.durationInNanos or 0,
        spanCount=wire.spanCount or 0,
        taskId=wire.taskId,
        trialId=wire.trialId,
        size=size,
        defect=None,
        cut=wire.truncated is True,
        _wire=wire,
        _loader=lambda: _load_trace(wire),
    )
    return trace


def _load_trace(wire: WireTrace) -> dict[str, Any]:
    usage, status = wire.tokenUsage, wire.status
    return {
        "tokenUsage": OTELTokenUsage(**{k: v for k, v in usage.items() if k in _USAGE_FIELDS})
        if isinstance(usage, dict)
        else None,
        "status": OTELTraceStatus(int(number(status.get("errorCount")))) if isinstance(status, dict) else None,
        "input": plain(wire.input),
        "output": plain(wire.output),
        "spans": [_otel_span(span) for span in wire.spans or ()],
    }


_USAGE_FIELDS = {each.name for each in fields(OTELTokenUsage)}


def _otel_span(wire: WireSpan) -> OTELSpan:
    span = OTELSpan.__new__(OTELSpan)
    span.__dict__.update(
        traceId=text_of(wire.traceId),
        spanId=text_of(wire.spanId),
        parentSpanId=text_of(wire.parentSpanId) or None,
        name=text_of(wire.name),
        service=text_of(wire.service),
        startTime=wire.startTime,
        endTime=wire.endTime,
        durationInNanos=wire.durationInNanos or 0,
        kind=wire.kind,
        _loader=lambda: _load_span(wire),
    )
    return span


def _load_span(wire: WireSpan) -> dict[str, Any]:
    events, links = plain(wire.events), plain(wire.links)
    attributes, resource = plain(wire.attributes), plain(wire.resource)
    return {
        "status": wire.status,
        "attributes": attributes if isinstance(attributes, dict) else {},
        "resource": resource if isinstance(resource, dict) else {},
        "ampAttributes": _amp_attributes(wire.ampAttributes),
        "events": events if isinstance(events, list) else [],
        "links": links if isinstance(links, list) else [],
    }


def _amp_attributes(amp: WireAmp | None) -> AmpAttributes | None:
    if amp is None:
        return None
    data, failure = amp.data, error_of(amp)
    return AmpAttributes(
        text_of(amp.kind) or None,
        plain(amp.input),
        plain(amp.output),
        AmpSpanData(**{name: data[key] for name, key in DATA_KEYS.items() if key in data})
        if isinstance(data, dict)
        else None,
        AmpSpanStatus(*failure) if amp.status is not None or failure[0] else None,
    )


DATA_KEYS = {
    each.name: {"vector_db": "vectorDB"}.get(each.name)
    or re.sub(r"_(\w)", lambda match: match.group(1).upper(), each.name)
    for each in fields(AmpSpanData)
}
"""The service's name of each field of AmpSpanData."""


def error_of(amp: WireAmp | None) -> tuple[bool, str | None, str | None]:
    """(failed, type, message) as `ampAttributes` tells it."""
    if amp is None:
        return False, None, None
    status, error = amp.status, amp.error
    if type(status) is dict and status.get("error") is False and len(status) == 1 and error is None:
        return False, None, None
    failed, kind, message = False, None, None
    if isinstance(status, dict):
        flag = status.get("error")
        failed = flag is True or flag == "true"
        kind, message = status.get("errorType"), status.get("errorMessage") or status.get("message")
    elif isinstance(status, AmpSpanStatus):
        failed, kind, message = bool(status.error), status.error_type, status.error_message
    if isinstance(error, dict) and error.get("message"):
        message = error["message"]
    return failed, text_of(kind) or None, text_of(message) or None


def wire_trace(trace: OTELTrace) -> WireTrace:
    """What the parser reads: the undecoded record, or one made from the fields when somebody built or touched them."""
    held = trace.__dict__
    if "_loader" in held:
        wire: WireTrace = held["_wire"]
        return wire
    usage, status = trace.tokenUsage, trace.status
    spans = trace.spans if isinstance(trace.spans, list | tuple) else ()
    return WireTrace(
        traceId=trace.traceId,
        rootSpanId=trace.rootSpanId,
        rootSpanName=trace.rootSpanName,
        rootSpanKind=trace.rootSpanKind,
        startTime=trace.startTime,
        endTime=trace.endTime,
        durationInNanos=trace.durationInNanos,
        tokenUsage=usage.__dict__ if isinstance(usage, OTELTokenUsage) else usage,
        status=status.__dict__ if isinstance(status, OTELTraceStatus) else status,
        input=trace.input,
        output=trace.output,
        spans=[_wire_span(span) for span in spans if isinstance(span, OTELSpan)],
    )


def _wire_span(span: OTELSpan) -> WireSpan:
    amp = span.ampAttributes
    record = None
    if isinstance(amp, AmpAttributes):
        data: Any = amp.data
        if isinstance(data, AmpSpanData):
            data = {key: value for name, key in DATA_KEYS.items() if (value := getattr(data, name)) is not None}
        record = WireAmp(amp.kind, amp.input, amp.output, data, amp.status)
    return WireSpan(
        spanId=span.spanId,
        parentSpanId=span.parentSpanId,
        name=span.name,
        service=span.service,
        startTime=span.startTime,
        endTime=span.endTime,
        durationInNanos=span.durationInNanos,
        kind=span.kind,
        status=span.status,
        attributes=span.attributes,  # type: ignore[arg-type]
        ampAttributes=record,
        resource=span.resource,  # type: ignore[arg-type]
        events=span.events,  # type: ignore[arg-type]
        links=span.links,  # type: ignore[arg-type]
    )
