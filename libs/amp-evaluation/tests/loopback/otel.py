"""Spans and traces for tests of parsing, in as few words as possible."""

from __future__ import annotations

import json
from typing import Any

from amp_evaluation.trace._wire import AmpAttributes, AmpSpanStatus, OTELSpan, OTELTrace
from amp_evaluation.trace.models import Trace
from amp_evaluation.trace.parser import parse_trace_for_evaluation


def span(
    span_id: str,
    parent: str | None = None,
    attributes: dict[str, Any] | None = None,
    *,
    at: float = 0.0,
    lasts: float = 1.0,
    name: str = "",
    status: Any = None,
    events: list[Any] | None = None,
    **amp: Any,
) -> OTELSpan:
    """A span that starts `at` seconds into the minute; kind, input, output, data and the like fill ampAttributes."""
    error = amp.pop("error", None)
    if error is not None:
        amp["status"] = AmpSpanStatus(True, error)
    return OTELSpan(
        traceId="t",
        spanId=span_id,
        parentSpanId=parent,
        name=name or span_id,
        startTime=f"2026-03-01T10:00:{at:09.6f}Z",
        endTime=f"2026-03-01T10:00:{at + lasts:09.6f}Z",
        durationInNanos=int(lasts * 1e9),
        status=status,
        attributes=attributes or {},
        ampAttributes=AmpAttributes(**amp) if amp else None,
        events=events or [],
    )


def parsed(*spans: OTELSpan, **fields: Any) -> Trace:
    return parse_trace_for_evaluation(OTELTrace(traceId="t", spans=list(spans), **fields))


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def parts(role: str, *items: Any) -> dict[str, Any]:
    """A message of the GenAI conventions: texts, or whole parts."""
    made = [{"type": "text", "content": item} if isinstance(item, str) else item for item in items]
    return {"role": role, "parts": made}


def genai(sent: list[Any] | None = None, got: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    """Attributes of a call by the GenAI conventions."""
    found: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", **more}
    if sent is not None:
        found["gen_ai.input.messages"] = json.dumps(sent)
    if got is not None:
        found["gen_ai.output.messages"] = json.dumps(got)
    return found
