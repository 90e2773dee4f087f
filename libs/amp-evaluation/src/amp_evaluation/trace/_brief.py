"""The facts that most rules ask for, from a usual trace, without building its spans.

Usual: one agent at the root (or a chain, which then stands for one) that was asked and answered, and below it, with
chains between at most, model calls and tool executions, none of which failed, with nothing to merge, leave out or
complete. For such a trace the general way (`parser`) finds exactly this, as a law in the tests says; whatever isn't
usual gives None here and goes the general way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

import msgspec

from amp_evaluation.trace._nodes import Node, agent_name, creates_agent
from amp_evaluation.trace._otel import OTELTrace, wire_trace
from amp_evaluation.trace._outcome import answered_by, asked_by
from amp_evaluation.trace._records import SMALL, WireSpan, WireTrace, moment, number
from amp_evaluation.trace._spans import TokenUsage, TraceMetrics
from amp_evaluation.trace.conventions import Attrs, Readers, kind_of, read, readers_for
from amp_evaluation.trace.conventions._brief import SPEAKERS, BriefAttrs, CallsSaid, plain_text
from amp_evaluation.trace.conventions._tool_values import result_call_id, tool_result

_WELL = frozenset({"", "OK", "Ok", "ok", "UNSET", "Unset", "unset", "STATUS_CODE_OK", "STATUS_CODE_UNSET", "0", "1"})
_NO_ERROR = {"error": False}
_WRAPPED = frozenset('{["s \t\r\n')
"""How a tool's result begins that may hold another one: JSON, or Agno's `status=…`."""


@dataclass(slots=True)
class Brief:
    """Of the one agent: its texts, figures, the names of its tool executions in order, and how many calls it made."""

    input: str
    output: str
    start: datetime
    metrics: TraceMetrics
    agent_id: str
    agent_name: str
    model: str
    tools: list[str]
    calls: int


@dataclass(slots=True)
class _Seen:
    """What is collected span by span."""

    calls: list[tuple[Readers, BriefAttrs]] = field(default_factory=list)
    usage: list[TokenUsage] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    tool_ids: list[str] = field(default_factory=list)


def brief_of(otel: OTELTrace) -> Brief | None:
    """None for a trace that isn't usual, and for one that somebody built, or looked into and may have changed."""
    if "_loader" not in vars(otel):
        return None
    trace = wire_trace(otel)
    spans = _in_order(trace.spans or ())
    nanos = number(trace.durationInNanos)
    if spans is None or nanos <= 0 or not _went_well(spans[0]) or spans[0].parentSpanId:
        return None
    root = _root(spans[0])
    seen = _read_below(spans, root.id) if root is not None else None
    if root is None or seen is None or not seen.calls:
        return None
    said = _said(seen.calls)
    if said is None or not _all_executed(said, seen):
        return None
    asked, answered = asked_by(root), answered_by(root)
    if not asked or not answered or _may_be_joined(answered, said.last_text):
        return None
    return Brief(
        asked,
        answered,
        moment(trace.startTime) or root.start,  # type: ignore[arg-type]
        _metrics(trace, nanos, seen.usage),
        root.id,
        agent_name(root) if root.kind == "agent" else "",
        (root.words("model") if root.kind == "agent" else "") or _model(seen.calls),
        seen.tools,
        len(seen.calls),
    )


def _in_order(spans: Sequence[WireSpan]) -> Sequence[WireSpan] | None:
    """The spans by start; None when there is none, or one has no plain start in UTC or no id of its own."""
    try:
        starts = [datetime.fromisoformat(span.startTime) for span in spans]
    except (TypeError, ValueError):
        return None
    ids = [span.spanId for span in spans]
    if {start.tzinfo for start in starts} != {UTC} or min(starts).year == 1:
        return None
    if set(map(type, ids)) != {str} or "" in ids or len(set(ids)) < len(ids):
        return None
    if starts == sorted(starts):
        return spans
    return [span for _, span in sorted(zip(starts, spans, strict=True), key=itemgetter(0))]


def _root(span: WireSpan) -> Node | None:
    node = Node(span, span.spanId)
    a = node.a = Attrs(span)
    readers = node.readers = readers_for(a, False)
    node.kind = kind_of(readers, a).name
    return node if node.kind in ("agent", "chain") and not creates_agent(a) else None


def _went_well(span: WireSpan) -> bool:
    """Nothing in it may stand for an error. Events may, and large attributes go the general way."""
    amp, status = span.ampAttributes, span.status
    if span.events or type(span.attributes) is not msgspec.Raw or len(span.attributes) > SMALL:
        return False
    if status is not None and not (type(status) is str and status in _WELL):
        return False
    return amp is None or (amp.error is None and (amp.status is None or amp.status == _NO_ERROR))


def _read_below(spans: Sequence[WireSpan], root_id: str) -> _Seen | None:
    seen = _Seen()
    around = {root_id}  # the root, and what frameworks put between it and its calls
    for span in spans[1:]:
        if span.parentSpanId not in around or not _went_well(span):
            return None
        a = BriefAttrs(span)
        readers = a.shape.readers or readers_for(a, False)
        kind = kind_of(readers, a).name
        if kind == "llm":
            usage = read(readers, "usage", a)
            if usage is None or "response_id" in readers:  # by these, calls that were recorded twice are known
                return None
            seen.usage.append(usage)
            seen.calls.append((readers, a))
        elif kind == "chain":
            around.add(span.spanId)
        elif kind != "tool" or not _take_tool(seen, readers, a):
            return None
    return seen


def _take_tool(seen: _Seen, readers: Readers, a: BriefAttrs) -> bool:
    """Whether it is an execution with a name and a result, and not marked as failed."""
    name, raw = plain_text(readers, "tool_name", a), plain_text(readers, "result", a)
    result: Any = raw
    if type(raw) is not str or raw[:1] in _WRAPPED:
        result, failed = tool_result(raw)
        if failed:
            return False
    if type(name) is not str or not name or result is None or result == "":
        return False
    if "handoff" in readers and read(readers, "handoff", a):
        return False
    if "tool_failed" in readers and read(readers, "tool_failed", a):
        return False
    call_id = read(readers, "tool_id", a) if "tool_id" in readers else ""
    seen.tools.append(name)
    seen.tool_ids.append(call_id or ("" if result is raw else result_call_id(raw)))
    return True


def _said(calls: Sequence[tuple[Readers, BriefAttrs]]) -> CallsSaid | None:
    first = calls[0][0]
    key = first["messages"], first["reply"]
    others = [readers for readers, _ in calls if readers is not first]  # mostly one table serves all calls
    if key not in SPEAKERS or any((readers["messages"], readers["reply"]) != key for readers in others):
        return None
    return SPEAKERS[key]([a for _, a in calls])


def _all_executed(said: CallsSaid, seen: _Seen) -> bool:
    """Each tool call that a reply asks for has its span, and the histories tell of no other.

    Spans with ids take the calls with these ids, spans without take the next call of their name.
    """
    asked_ids = {call_id for call_id, _ in said.asked}
    if not (said.answered <= {*asked_ids, ""} and said.repeated <= set(said.asked)):
        return False
    if said.answered and not seen.tools:
        return False
    if all(seen.tool_ids):
        return len(set(seen.tool_ids)) == len(seen.tool_ids) and asked_ids <= set(seen.tool_ids)
    if any(seen.tool_ids):
        return False
    names = [name for _, name in said.asked]
    return names == seen.tools or all(names.count(name) <= seen.tools.count(name) for name in set(names))


def _may_be_joined(text: str, last: str) -> bool:
    """The answer may be all replies strung together, of which only the last one counts."""
    return text != last and last != "" and text.rstrip().endswith(last.rstrip())


def _metrics(trace: WireTrace, nanos: float, usage: Sequence[TokenUsage]) -> TraceMetrics:
    status = trace.status
    counted = status.get("errorCount") if isinstance(status, dict) else None
    errors = int(number(counted)) if counted is not None else 0
    total = TokenUsage(
        sum([each.input_tokens for each in usage]),
        sum([each.output_tokens for each in usage]),
        sum([each.total_tokens for each in usage]),
        sum([each.cache_read_tokens for each in usage]),
    )
    return TraceMetrics(nanos / 1e6, total, errors, errors > 0)


def _model(calls: Sequence[tuple[Readers, BriefAttrs]]) -> str:
    return next((str(found) for readers, a in calls if (found := read(readers, "model", a))), "")
