"""Traces from the bytes that the traces API sends: the one place that reads raw JSON.

Strict first (fast), and lenient a trace at a time where that fails: lone surrogates, NaN, wrong types, bad UTF-8. A
trace that can't be read at all is still there, with `defect` saying why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from amp_evaluation.trace._otel import (
    AmpAttributes,
    AmpSpanData,
    AmpSpanStatus,
    OTELSpan,
    OTELTokenUsage,
    OTELTrace,
    OTELTraceStatus,
    from_wire,
)
from amp_evaluation.trace._records import (
    UNREADABLE,
    WireAmp,
    WireSpan,
    WireTrace,
    decode_list,
    decode_map,
    lenient,
    number,
    text_of,
)

__all__ = [
    "AmpAttributes",
    "AmpSpanData",
    "AmpSpanStatus",
    "OTELSpan",
    "OTELTokenUsage",
    "OTELTrace",
    "OTELTraceStatus",
    "Page",
    "decode_page",
    "decode_traces",
]


class _PageHead(msgspec.Struct, gc=False):
    traces: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET
    totalCount: Any = msgspec.UNSET
    truncated: Any = None


class _LightPage(msgspec.Struct, gc=False):
    traces: list[WireTrace]
    totalCount: Any = None
    truncated: Any = None


LIGHT = 1_000_000
"""Bytes of a page up to which all of it is decoded in one step; of a heavier one each trace's own weight counts."""

_decode_light = msgspec.json.Decoder(_LightPage).decode
_decode_trace = msgspec.json.Decoder(WireTrace).decode
_decode_head = msgspec.json.Decoder(_PageHead).decode


@dataclass
class Page:
    """One reply: its traces, how many the service says there are in all, and whether it shortened one of them."""

    traces: list[OTELTrace]
    total_count: int | None = None
    truncated: bool = False


def decode_page(body: bytes) -> Page:
    """One reply of the traces API. ValueError when it is no JSON, or no such reply."""
    page = _light_page(body) if len(body) < LIGHT else None
    if page is not None:
        return page
    try:
        head = _decode_head(body)
    except UNREADABLE:
        return _decode_page_leniently(body)
    if head.traces is msgspec.UNSET and head.totalCount is msgspec.UNSET:
        raise ValueError("not a reply of the traces API: no object with traces")
    return _page([_trace_of(raw) for raw in head.traces or ()], head.totalCount, head.truncated)


def _light_page(body: bytes) -> Page | None:
    """A page that the strict way reads whole, of traces with ids; each counts with its share of the page's bytes."""
    try:
        found = _decode_light(body)
    except UNREADABLE:
        return None
    traces = found.traces
    if not all(type(trace.traceId) is str and trace.traceId for trace in traces):
        return None
    share = len(body) // max(1, len(traces))
    return _page([from_wire(trace, share) for trace in traces], found.totalCount, found.truncated)


def _page(traces: list[OTELTrace], total: Any, truncated: Any) -> Page:
    count = int(number(total)) if isinstance(total, int | float | str) else None
    return Page(traces, count, truncated is True or truncated == "true")


def decode_traces(data: bytes) -> list[OTELTrace]:
    """The traces of an export reply, of a list of traces, or one trace. ValueError when it is none of them."""
    start = data.lstrip()[:1]
    if start == b"[":
        try:
            return [_trace_of(raw) for raw in decode_list(data)]
        except UNREADABLE:
            return [_trace_of(item) for item in _elements(data, data.index(b"["))]
    if start != b"{":
        raise ValueError("not JSON of traces: neither an object nor a list")
    if _has_key(data, "traces"):
        return decode_page(data).traces
    if _has_key(data, "spans") or _has_key(data, "traceId"):
        return [_trace_of(data)]
    raise ValueError("not JSON of traces: an object with neither traces nor spans")


def _has_key(data: bytes, key: str) -> bool:
    try:
        return key in decode_map(data)
    except UNREADABLE:
        return any(name == key for name, _ in _members(data))


def _decode_page_leniently(body: bytes) -> Page:
    members = dict(_members(body))
    if not members.keys() & {"traces", "totalCount"}:
        raise ValueError("not a reply of the traces API: no object with traces")
    traces = members.get("traces", b"null").strip()
    if not traces.startswith(b"["):
        if traces != b"null":
            raise ValueError("not a reply of the traces API: traces is no list")
        traces = b"[]"
    total = lenient(members.get("totalCount", b"null"))
    return Page(
        [_trace_of(item) for item in _elements(traces, 0)],
        int(number(total)) if isinstance(total, int | float | str) else None,
        lenient(members.get("truncated", b"null")) is True,
    )


_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},:]', re.DOTALL)


def _parts(data: bytes, opening: int) -> Iterator[tuple[int, int]]:
    """Bounds of the comma-separated parts of the array or object that opens there, without recursion.

    ValueError when it never closes: a body that was cut short.
    """
    depth, start = 0, opening + 1
    for token in _TOKEN.finditer(data, opening):
        mark = token.group()
        if mark in (b"[", b"{"):
            depth += 1
        elif mark in (b"]", b"}"):
            depth -= 1
            if depth == 0:
                if data[start : token.start()].strip():
                    yield start, token.start()
                return
        elif mark == b"," and depth == 1:
            yield start, token.start()
            start = token.end()
    raise ValueError("the JSON ends too early")


def _elements(data: bytes, opening: int) -> list[bytes]:
    return [data[start:end].strip() for start, end in _parts(data, opening)]


def _members(data: bytes) -> Iterator[tuple[str, bytes]]:
    opening = data.find(b"{")
    if opening < 0 or data[:opening].strip():
        raise ValueError("not JSON: no object")
    for start, end in _parts(data, opening):
        name = _TOKEN.match(data, start + len(data[start:end]) - len(data[start:end].lstrip()))
        if name is None or not name.group().startswith(b'"'):
            raise ValueError("not JSON: a member without a name")
        colon = data.find(b":", name.end(), end)
        if colon < 0:
            raise ValueError("not JSON: a member without a value")
        yield str(lenient(name.group())), data[colon + 1 : end]


def _trace_of(raw: Any) -> OTELTrace:
    """One trace from its bytes, whatever they hold."""
    try:
        return from_wire(_decode_trace(raw), len(raw))
    except UNREADABLE:
        pass
    data = bytes(raw)
    try:
        found = json.loads(data.decode("utf-8", "replace"))
    except RecursionError:
        return _defective(data, "the trace is nested too deeply")
    except ValueError:
        return _defective(data, "the trace is not valid JSON")
    if not isinstance(found, dict):
        return _defective(b"", f"the trace is no object but {type(found).__name__}")
    return from_wire(_wire_trace_from(found), len(data))


def _defective(data: bytes, why: str) -> OTELTrace:
    """A trace nobody can read, with its id and time where at least these are readable."""
    known: dict[str, Any] = {}
    try:
        for name, value in _members(data):
            if name in ("traceId", "startTime", "endTime"):
                known[name] = lenient(value)
    except ValueError:
        pass
    times = {name: known[name] for name in ("startTime", "endTime") if isinstance(known.get(name), str)}
    return OTELTrace(traceId=text_of(known.get("traceId")), size=len(data), defect=why, **times)


def _wire_trace_from(found: dict[str, Any]) -> WireTrace:
    spans = found.get("spans")
    known = {name: found[name] for name in _TRACE_FIELDS if name in found and name != "spans"}
    items = [_wire_span_from(item) for item in spans if isinstance(item, dict)] if isinstance(spans, list) else None
    return WireTrace(**known, spans=items)


def _wire_span_from(found: dict[str, Any]) -> WireSpan:
    known = {name: found[name] for name in _SPAN_FIELDS if name in found}
    amp = known.get("ampAttributes")
    known["ampAttributes"] = WireAmp(**{k: amp[k] for k in _AMP_FIELDS if k in amp}) if isinstance(amp, dict) else None
    return WireSpan(**known)


_TRACE_FIELDS = WireTrace.__struct_fields__
_SPAN_FIELDS = WireSpan.__struct_fields__
_AMP_FIELDS = WireAmp.__struct_fields__
