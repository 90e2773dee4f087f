"""The benchmark's traces: generated, always the same, and as heavy as real ones."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from loopback._store import StoredTrace, from_ns, to_ns
from loopback.traces import BEGIN, Wire, span, trace_id, whole

WORDS = (
    *("refund", "order", "parcel", "invoice", "customer", "delivery", "address", "status", "courier", "policy"),
    *("return", "exchange", "discount", "account", "balance", "payment", "receipt", "supplier", "schedule", "label"),
)


def benchmark(
    count: int, *, convention: str = "gen_ai", start: str = BEGIN, step_ms: float = 100.0, turns: int = 6
) -> Iterator[StoredTrace]:
    """The benchmark's traces: about 13 kB each of one agent span, llm and tool spans in turn.

    Each llm span repeats the history before it, as real ones do; texts have 80 to 200 characters.
    ``convention``: "gen_ai" fills ampAttributes, "openinference" the raw attributes instead.
    """
    begin = to_ns(start)
    for number in range(count):
        source = random.Random(number)
        wire = _conversation(number, begin + int(number * step_ms * 1_000_000), turns, source, convention)
        yield StoredTrace.of(wire, keep_spans=False)


def heavy(
    count: int, *, start: str = BEGIN, step_ms: float = 1000.0, turns: int = 162, text: int = 625
) -> Iterator[StoredTrace]:
    """Traces of 324 spans and about 20 MB: a long conversation, all of it repeated in every llm span.

    One is built; the others are it under another id, made when they are asked for.
    """
    source = random.Random(7)
    wire = _conversation(0, to_ns(start), turns, source, "gen_ai", text=text)
    model = StoredTrace.of(wire, keep_spans=False)
    template = model.whole
    assert isinstance(template, bytes)
    shift = int(step_ms * 1_000_000)
    for number in range(count):
        begin = model.start + number * shift
        yield StoredTrace(
            trace_id=trace_id(number),
            start=begin,
            last_start=begin + (model.last_start - model.start),
            end=begin + (model.end - model.start),
            whole=_Renamed(template, number, from_ns(model.start), from_ns(begin)),
        )


class _Renamed:
    """The model trace under another id and start; the times of its inner spans stay where they are in it."""

    def __init__(self, template: bytes, number: int, old_start: str, new_start: str) -> None:
        self._template = template
        self._pairs = [
            (trace_id(0).encode(), trace_id(number).encode()),
            (f'"{old_start}"'.encode(), f'"{new_start}"'.encode()),
        ]

    def __call__(self) -> bytes:
        body = self._template
        for old, new in self._pairs:
            body = body.replace(old, new)
        return body


def _text(source: random.Random, low: int = 80, high: int = 200) -> str:
    length = min(source.randint(low, high) for _ in range(3))  # short texts are the more frequent ones
    words = source.choices(WORDS, k=length // 5)
    return " ".join(words)[:length].ljust(low, "x")


def _conversation(
    number: int, begin: int, turns: int, source: random.Random, convention: str, text: int | None = None
) -> Wire:
    """``turns`` rounds of an llm span and, but for the last round, a tool span, under one agent span."""
    brief = text is None  # a reply that calls a tool has no text beside the call
    low, high = (80, 200) if text is None else (text, text + 40)
    ask = _text(source, low, high)
    history: list[Wire] = [{"role": "user", "content": ask}]
    step = 20_000_000
    spans: list[Wire] = [{}]
    answer = ""
    for turn in range(turns):
        at = begin + (2 * turn + 1) * step
        last = turn == turns - 1
        call = {"id": f"call_{turn}", "name": ("search", "lookup", "status")[turn % 3], "arguments": ""}
        call["arguments"] = json.dumps({"query": _text(source, 15, 25), "page": turn})
        reply: Wire = {"role": "assistant", "content": "" if brief and not last else _text(source, low, high)}
        if not last:
            reply["toolCalls"] = [call]
        spans.append(_llm(number, len(spans), at, at + step - 1000, list(history), reply, convention))
        history.append(reply)
        answer = reply["content"]
        if not last:
            result = _text(source, low, high)
            spans.append(_tool(number, len(spans), at + step, at + 2 * step - 1000, call, result, convention))
            history.append({"role": "tool", "content": result, "tool_call_id": call["id"]})
    spans[0] = _agent(number, begin, begin + 2 * turns * step, ask, answer, convention)
    return whole(number, spans, input=ask, output=answer, tokenUsage=_usage(turns * 300, turns * 40))


SMALL_ATTRIBUTES = {"deployment.region": "eu-1", "service.tier": "gold"}


def _usage(read: int, written: int) -> Wire:
    return {"inputTokens": read, "outputTokens": written, "totalTokens": read + written}


def _llm(number: int, index: int, start: int, end: int, told: list[Wire], reply: Wire, convention: str) -> Wire:
    if convention == "openinference":
        wire = span(number, index, start, end, kind="unknown", parent=0)
        wire["attributes"] = {
            "openinference.span.kind": "LLM",
            **_messages(told, "input"),
            **_messages([reply], "output"),
        }
        wire["attributes"] |= {"llm.model_name": "m-1", "llm.token_count.prompt": 300, "llm.token_count.completion": 40}
        return wire
    data = {"model": "m-1", "vendor": "openai", "temperature": 0.2, "tokenUsage": _usage(300, 40)}
    more = {"input": told, "output": [reply], "status": {"error": False}, "data": data}
    return _attributed(span(number, index, start, end, kind="llm", parent=0, **more))


def _tool(number: int, index: int, start: int, end: int, call: Wire, result: str, convention: str) -> Wire:
    if convention == "openinference":
        wire = span(number, index, start, end, kind="unknown", parent=0)
        wire["attributes"] = {
            "openinference.span.kind": "TOOL",
            "tool.name": call["name"],
            "input.value": call["arguments"],
            "output.value": result,
        }
        return wire
    more = {"input": call["arguments"], "output": result, "status": {"error": False}, "data": {"name": call["name"]}}
    return _attributed(span(number, index, start, end, kind="tool", parent=0, **more))


def _agent(number: int, start: int, end: int, ask: str, answer: str, convention: str) -> Wire:
    if convention == "openinference":
        wire = span(number, 0, start, end, kind="unknown")
        wire["attributes"] = {
            "openinference.span.kind": "AGENT",
            "agent.name": "shop",
            "input.value": ask,
            "output.value": answer,
        }
        return wire
    data = {"name": "shop", "framework": "bench", "model": "m-1"}
    status = {"error": False}
    return _attributed(span(number, 0, start, end, kind="agent", input=ask, output=answer, status=status, data=data))


def _attributed(wire: Wire) -> Wire:
    wire["attributes"] = dict(SMALL_ATTRIBUTES)
    return wire


def _messages(messages: list[Wire], side: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for place, message in enumerate(messages):
        head = f"llm.{side}_messages.{place}.message"
        flat[f"{head}.role"] = message["role"]
        flat[f"{head}.content"] = message["content"]
        if "tool_call_id" in message:
            flat[f"{head}.tool_call_id"] = message["tool_call_id"]
        for index, call in enumerate(message.get("toolCalls", ())):
            flat[f"{head}.tool_calls.{index}.tool_call.id"] = call["id"]
            flat[f"{head}.tool_calls.{index}.tool_call.function.name"] = call["name"]
            flat[f"{head}.tool_calls.{index}.tool_call.function.arguments"] = call["arguments"]
    return flat
