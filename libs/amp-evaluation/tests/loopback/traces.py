"""Small traces to serve, whose facts a test can state."""

from __future__ import annotations

import json
from typing import Any

from loopback._store import NS, from_ns, to_ns

Wire = dict[str, Any]
BEGIN = "2026-01-15T10:00:00Z"


def trace_id(number: int) -> str:
    return f"{number:032x}"


def span(
    number: int, index: int, start: int, end: int, *, kind: str = "chain", parent: int | None = None, **more: Any
) -> Wire:
    """One span; ``more`` goes into ampAttributes."""
    wire: Wire = {
        "traceId": trace_id(number),
        "spanId": span_id(number, index),
        "name": f"{kind}-{index}",
        "service": "shop-agent",
        "startTime": from_ns(start),
        "endTime": from_ns(end),
        "durationInNanos": end - start,
        "kind": "INTERNAL",
        "status": "OK",
        "attributes": {},
        "ampAttributes": {"kind": kind, **more},
    }
    if parent is not None:
        wire["parentSpanId"] = span_id(number, parent)
    return wire


def span_id(number: int, index: int) -> str:
    return f"{number * 1000 + index + 1:016x}"


def whole(number: int, spans: list[Wire], **more: Any) -> Wire:
    """A trace of these spans, the first of which is its root."""
    start = min(to_ns(item["startTime"]) for item in spans)
    end = max(to_ns(item["endTime"]) for item in spans)
    return {
        "traceId": trace_id(number),
        "rootSpanId": spans[0]["spanId"],
        "rootSpanName": spans[0]["name"],
        "rootSpanKind": spans[0]["ampAttributes"]["kind"],
        "startTime": from_ns(start),
        "endTime": from_ns(end),
        "durationInNanos": end - start,
        "spanCount": len(spans),
        "status": {"errorCount": 0},
        "spans": spans,
        **more,
    }


def simple(number: int, start: str | int = BEGIN, *, seconds: float = 1.0, **more: Any) -> Wire:
    """An agent that calls one tool and answers, in ``seconds``: four spans, 40 tokens."""
    begin = to_ns(start) if isinstance(start, str) else start
    length = int(seconds * NS)
    ask, answer = f"Where is order {number}?", f"Order {number} is on its way."
    call = {"id": "call-1", "name": "find_order", "arguments": json.dumps({"order": number})}
    usage = {"inputTokens": 15, "outputTokens": 5, "totalTokens": 20}
    data = {"model": "m-1", "vendor": "openai", "tokenUsage": usage}
    told = [{"role": "user", "content": ask}]
    asked = {"role": "assistant", "content": None, "toolCalls": [call]}
    found = {"role": "tool", "content": "on its way", "tool_call_id": "call-1"}
    status = {"error": False}
    at = [begin + length * tenth // 10 for tenth in range(11)]
    replied = [{"role": "assistant", "content": answer}]
    more_of: dict[str, Wire] = {
        "agent": {"input": ask, "output": answer, "data": {"name": "shop"}},
        "ask": {"input": told, "output": [asked], "data": data},
        "tool": {"input": call["arguments"], "output": "on its way", "data": {"name": "find_order"}},
        "answer": {"input": [*told, asked, found], "output": replied, "data": data},
    }
    spans = [
        span(number, 0, begin, begin + length, kind="agent", status=status, **more_of["agent"]),
        span(number, 1, at[1], at[3], kind="llm", parent=0, status=status, **more_of["ask"]),
        span(number, 2, at[4], at[5], kind="tool", parent=0, status=status, **more_of["tool"]),
        span(number, 3, at[6], at[9], kind="llm", parent=0, status=status, **more_of["answer"]),
    ]
    return whole(number, spans, **({"input": ask, "output": answer} | more))


def bare(number: int, start: int, *, end: int | None = None) -> Wire:
    """The least that is a trace: one chain span."""
    return whole(number, [span(number, 0, start, start if end is None else end)])


def series(count: int, *, start: str = BEGIN, step_ms: float = 1000.0, seconds: float = 0.5) -> list[Wire]:
    """``count`` simple traces, ``step_ms`` apart (0: all at one instant)."""
    begin = to_ns(start)
    return [simple(number, begin + int(number * step_ms * 1_000_000), seconds=seconds) for number in range(count)]
