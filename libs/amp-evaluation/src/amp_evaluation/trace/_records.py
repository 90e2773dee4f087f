"""Typed records of what the traces API sends, with large values left as undecoded bytes, and how to read them.

`Any` stands where a wrong type must not cost the whole trace; the functions at the end turn such values into what is
wanted, or into nothing.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import msgspec

from amp_evaluation._time import parse_rfc3339

NOTHING = msgspec.Raw(b"")


class WireAmp(msgspec.Struct, gc=False):
    """`ampAttributes`: what the service itself made of the span."""

    kind: Any = None
    input: msgspec.Raw = NOTHING
    output: msgspec.Raw = NOTHING
    data: Any = None
    status: Any = None
    error: Any = None


class WireSpan(msgspec.Struct, gc=False):
    """A span with its large values undecoded. From hand-built spans the same fields hold plain values."""

    spanId: Any = None
    parentSpanId: Any = None
    name: Any = None
    service: Any = None
    startTime: Any = None
    endTime: Any = None
    durationInNanos: Any = None
    kind: Any = None
    status: Any = None
    attributes: msgspec.Raw = NOTHING
    ampAttributes: WireAmp | None = None
    resource: msgspec.Raw = NOTHING
    events: msgspec.Raw = NOTHING
    links: msgspec.Raw = NOTHING
    traceId: Any = None


class WireTrace(msgspec.Struct, gc=False):
    traceId: Any = None
    rootSpanId: Any = None
    rootSpanName: Any = None
    rootSpanKind: Any = None
    startTime: Any = None
    endTime: Any = None
    durationInNanos: Any = None
    spanCount: Any = None
    tokenUsage: Any = None
    status: Any = None
    input: msgspec.Raw = NOTHING
    output: msgspec.Raw = NOTHING
    taskId: Any = None
    trialId: Any = None
    truncated: Any = None
    spans: list[WireSpan] | None = None


UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError, TypeError)
decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_any = msgspec.json.Decoder().decode
decode_map = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


SMALL = 32_768
"""Bytes of a span's attributes up to which all of them are decoded, named by a decoder or not."""


def plain(value: Any) -> Any:
    """The value behind undecoded bytes; None for none, and for what is no JSON."""
    if not isinstance(value, msgspec.Raw):
        return value
    data = bytes(value)
    if not data:
        return None
    try:
        return _decode_any(data)
    except UNREADABLE:
        return lenient(data)


def lenient(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def attribute_map(raw: Any) -> dict[str, Any]:
    """Attributes by key, large ones with values still undecoded; {} for what is no object.

    Small ones are decoded at once: that costs what leaving them as bytes costs, and saves the second step.
    """
    if isinstance(raw, msgspec.Raw):
        size = len(raw)
        if not size:
            return {}
        try:
            found = decode_map(raw) if size > SMALL else _decode_any(raw)
        except UNREADABLE:
            found = plain(raw)
        return found if isinstance(found, dict) else {}
    return raw if isinstance(raw, dict) else {}


def items_of(value: Any) -> list[bytes] | None:
    """The elements of a JSON array as bytes, for comparing without decoding; None for anything else."""
    try:
        return [bytes(item) for item in decode_list(value)]
    except UNREADABLE:
        return None


def moment(value: Any) -> datetime | None:
    """A time given as RFC 3339 text or as an aware datetime."""
    if isinstance(value, str):
        return parse_rfc3339(value)
    return value if isinstance(value, datetime) and value.tzinfo is not None else None


def first_start(spans: Any) -> datetime | None:
    return min((start for span in spans if (start := moment(span.startTime)) is not None), default=None)


def number(value: Any) -> float:
    """A finite number, given as one or as text; 0 for anything else."""
    if type(value) is int:
        return float(value) if -(2**63) <= value < 2**63 else 0.0
    if isinstance(value, bool):
        return 0.0
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return found if abs(found) < 2.0**63 else 0.0


def text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None or isinstance(value, dict | list) else str(value)


class Timed:
    """What spans and traces say of their time."""

    durationInNanos: int
    startTime: str | datetime | None
    endTime: str | datetime | None

    @property
    def duration_ms(self) -> float:
        """Milliseconds; from the times where the duration is missing, 0 where they are missing too."""
        known = number(self.durationInNanos) / 1e6
        start, end = moment(self.startTime), moment(self.endTime)
        return known if known or start is None or end is None else max(0.0, (end - start).total_seconds() * 1000)

    @property
    def timestamp(self) -> datetime | None:
        """Its own start, aware UTC; None when that can't be read."""
        return moment(self.startTime)
