"""A trace store that filters spans, as the real one does, at whatever resolution a test asks for.

A query keeps the spans with start >= startTime and end <= endTime and groups what is left: a moved
startTime brings earlier traces back as fragments, a root that ends too late is missing.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

NS = 1_000_000_000
Resolution = Literal["ns", "us", "ms", "s"]
UNIT_NS: dict[str, int] = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": NS}


def to_ns(text: str) -> int:
    """Nanoseconds since the epoch of an RFC 3339 time with up to nine digits."""
    head, _, rest = text.replace("Z", "+00:00").partition(".")
    if not rest:
        return int(datetime.fromisoformat(head).timestamp()) * NS
    digits = rest[: min(rest.find(sign) for sign in "+-" if sign in rest)]
    whole = int(datetime.fromisoformat(head + rest[len(digits) :]).timestamp())
    return whole * NS + int(digits.ljust(9, "0")[:9])


def from_ns(moment: int) -> str:
    whole, nanos = divmod(moment, NS)
    text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{nanos:09d}".rstrip("0").rstrip(".") + "Z"


@dataclass(slots=True)
class StoredSpan:
    start: int
    end: int
    wire: dict[str, Any]


@dataclass(slots=True)
class StoredTrace:
    """``whole`` is the reply's JSON of the trace when no span is filtered out: made once, sent as it is."""

    trace_id: str
    start: int
    last_start: int
    end: int
    whole: bytes | Callable[[], bytes]
    wire: dict[str, Any] | None = None
    spans: list[StoredSpan] = field(default_factory=list)
    broken: bool = False

    @classmethod
    def of(cls, wire: dict[str, Any], *, keep_spans: bool = True) -> StoredTrace:
        times = [(to_ns(span["startTime"]), to_ns(span.get("endTime") or span["startTime"])) for span in wire["spans"]]
        spans = [StoredSpan(*pair, span) for pair, span in zip(times, wire["spans"], strict=True)] if keep_spans else []
        return cls(
            trace_id=wire["traceId"],
            start=min(start for start, _ in times),
            last_start=max(start for start, _ in times),
            end=max(end for _, end in times),
            whole=json.dumps(wire, separators=(",", ":")).encode(),
            wire=wire if keep_spans else None,
            spans=spans,
        )


@dataclass(slots=True)
class Found:
    """One group of a query's result: a whole trace, or the fragment that is left of it."""

    trace: StoredTrace
    start: int
    spans: list[StoredSpan] | None = None

    @property
    def rootless(self) -> bool:
        wire = self.trace.wire
        return bool(self.spans and wire) and all(
            span.wire["spanId"] != (wire or {}).get("rootSpanId") for span in self.spans or []
        )

    def body(self) -> bytes:
        if self.spans is None:
            whole = self.trace.whole
            return whole() if callable(whole) else whole
        return json.dumps(fragment(self.trace.wire or {}, self.spans)).encode()


def fragment(wire: dict[str, Any], spans: list[StoredSpan]) -> dict[str, Any]:
    """What the service makes of the spans that are left: times and counts are theirs."""
    left = dict(wire)
    left["spans"] = [span.wire for span in spans]
    left["spanCount"] = len(spans)
    left["startTime"] = from_ns(min(span.start for span in spans))
    left["endTime"] = from_ns(max(span.end for span in spans))
    left["durationInNanos"] = to_ns(left["endTime"]) - to_ns(left["startTime"])
    if all(span.wire["spanId"] != wire.get("rootSpanId") for span in spans):
        for name in ("rootSpanId", "rootSpanName", "rootSpanKind", "input", "output"):
            left.pop(name, None)
    return left


@dataclass
class TraceStore:
    """``resolution`` and ``rounds``: what a time is cut to; ``both_sides``: stored times too, else the query's only.

    ``order_ms``: order is exact to the millisecond only, ties by id; the filter still compares nanoseconds.
    """

    resolution: Resolution = "ns"
    rounds: bool = False
    both_sides: bool = True
    order_ms: bool = True
    traces: list[StoredTrace] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _longest: int = 0
    _latest_end: int = 0

    def add(self, traces: Iterable[StoredTrace]) -> None:
        self.traces.extend(traces)
        self.traces.sort(key=self._order)
        self._starts = [trace.start for trace in self.traces]
        self._longest = max((trace.last_start - trace.start for trace in self.traces), default=0)
        self._latest_end = max((trace.end for trace in self.traces), default=0)

    def query(self, start: int, end: int, limit: int) -> tuple[list[Found], int]:
        """The first ``limit`` groups in ascending order, and how many there are in all."""
        start, end = self._cut(start), self._cut(end)
        slack = UNIT_NS[self.resolution] + UNIT_NS["ms"]
        low = bisect.bisect_left(self._starts, start - self._longest - slack)
        whole_from = bisect.bisect_left(self._starts, start + slack)
        if self._latest_end + slack <= end:  # nothing is cut at the end: whole from there, without a look
            near = [found for trace in self.traces[low:whole_from] if (found := self._pass(trace, start, end))]
            far = [Found(trace, trace.start) for trace in self.traces[whole_from : whole_from + limit]]
            total = len(near) + len(self.traces) - whole_from
        else:
            near = [found for trace in self.traces[low:] if (found := self._pass(trace, start, end))]
            far, total = [], len(near)
        page = sorted(near + far, key=lambda found: self._order_key(found.start, found.trace.trace_id))
        return page[:limit], total

    def _pass(self, trace: StoredTrace, start: int, end: int) -> Found | None:
        if self._stored(trace.start) >= start and self._stored(trace.end) <= end:
            return Found(trace, trace.start)
        left = [span for span in trace.spans if self._stored(span.start) >= start and self._stored(span.end) <= end]
        return Found(trace, min(span.start for span in left), left) if left else None

    def _stored(self, moment: int) -> int:
        return self._cut(moment) if self.both_sides else moment

    def _cut(self, moment: int) -> int:
        unit = UNIT_NS[self.resolution]
        return (moment + (unit // 2 if self.rounds else 0)) // unit * unit

    def _order(self, trace: StoredTrace) -> tuple[int, str]:
        return self._order_key(trace.start, trace.trace_id)

    def _order_key(self, start: int, trace_id: str) -> tuple[int, str]:
        return (start // UNIT_NS["ms"] if self.order_ms else start), trace_id
