"""The spans of one trace as a tree to work on: each once, ordered by start, no cycles, its decoders at hand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Protocol

from amp_evaluation._time import parse_rfc3339
from amp_evaluation.trace._otel import error_of
from amp_evaluation.trace._records import WireSpan, moment, number, text_of
from amp_evaluation.trace._spans import Message, Span, TokenUsage, ToolCall
from amp_evaluation.trace.conventions import Attrs, Memo, Readers, kind_of, read, readers_for


class Mapping(Protocol):
    """A mapping of one's own: which attributes it reads, and what it makes of them."""

    @property
    def keys(self) -> frozenset[str]: ...

    def facts(self, attributes: dict[str, Any]) -> dict[str, Any]: ...


class Node:
    """One span while the trace is put together.

    What most spans don't have stands on the class, and the lists there are never added to: a node costs little.
    """

    a: Attrs
    readers: Readers
    parent: Node | None = None
    children: Sequence[Node] = ()
    is_root = False
    kind = "chain"
    creates_agent = False
    dropped = ""
    failed = False
    paused = False
    """It handed control on, or waits for a person: a tool that did so was not executed."""
    error_type: str | None = None
    error_message: str | None = None
    duration_ms = 0.0
    duration_known = True
    messages: list[Message] = []  # noqa: RUF012 - never added to
    reply: list[Message] = []  # noqa: RUF012
    calls: list[ToolCall] = []  # noqa: RUF012
    inside: list[Node] = []  # noqa: RUF012
    """Of an agent: the LLM calls below it that don't run inside its tools, in time order."""
    text = ""
    tool_name = ""
    usage: TokenUsage | None = None
    asked: str | None = None
    answered: str | None = None
    span: Span | None = None
    _end: datetime | None = None

    def __init__(self, wire: WireSpan, span_id: str) -> None:
        self.wire = wire
        self.id = span_id
        name = wire.name
        self.name = name if type(name) is str else text_of(name)
        start = wire.startTime
        self.start = parse_rfc3339(start) if type(start) is str else moment(start)

    @property
    def end(self) -> datetime | None:
        if self._end is None and self.wire.endTime:
            self._end = moment(self.wire.endTime)
        return self._end

    def read(self, fact: str) -> Any:
        """The fact from the first convention that has it; None when none has."""
        return read(self.readers, fact, self.a)

    def words(self, fact: str) -> str:
        value = read(self.readers, fact, self.a)
        return value if isinstance(value, str) else "" if value is None else str(value)

    def ancestors(self) -> Iterator[Node]:
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def below(self) -> Iterator[Node]:
        """Everything below, parents first, in time order among siblings."""
        stack = list(self.children[::-1])
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


_AGENT_NAME = re.compile(r"\A(?:invoke_agent (.+)|agent_run \[(.+)\])\Z")
"""How the spans of agents are named that don't say the name elsewhere."""


def agent_name(node: Node) -> str:
    return node.words("agent_name") or _AGENT_NAME.sub(r"\1\2", node.name)


_NO_PARENT = frozenset({"", "0" * 16})


def build_nodes(spans: Sequence[WireSpan], mapping: Mapping | None) -> tuple[list[Node], int]:
    """(nodes in start order, spans whose parent isn't in the trace)."""
    by_id: dict[str, Node] = {}
    for position, wire in enumerate(spans):
        span_id = wire.spanId if type(wire.spanId) is str else text_of(wire.spanId)
        node = Node(wire, span_id or f"span-{position}")
        known = by_id.setdefault(node.id, node)
        if known is not node and _newer(node, known):
            by_id[node.id] = node
    nodes = list(by_id.values())
    orphans = _link(nodes, by_id)
    nodes = _in_order(nodes)
    memo: Memo = {}
    for node in nodes:
        _finish(node, mapping, memo)
    return nodes, orphans


def _newer(node: Node, known: Node) -> bool:
    """Of two copies of a span the finished one wins, then the one that ended last, then the later one."""
    if (node.end is None) != (known.end is None):
        return node.end is not None
    return node.end is None or known.end is None or node.end >= known.end


def _link(nodes: list[Node], by_id: dict[str, Node]) -> int:
    orphans = 0
    for node in nodes:
        parent_id = node.wire.parentSpanId
        parent_id = parent_id if isinstance(parent_id, str) else text_of(parent_id)
        if parent_id in _NO_PARENT:
            node.is_root = True
            continue
        parent = by_id.get(parent_id)
        if parent is None:
            orphans += 1
        elif parent is not node:
            node.parent = parent
    _cut_cycles(nodes)
    return orphans


def _cut_cycles(nodes: list[Node]) -> None:
    """A span that is its own ancestor loses its parent."""
    safe: set[int] = set()
    for node in nodes:
        if node.parent is None or id(node.parent) in safe:
            safe.add(id(node))
            continue
        here: set[int] = set()
        step: Node | None = node
        while step is not None and id(step) not in safe:
            if id(step) in here:
                step.parent = None
                break
            here.add(id(step))
            step = step.parent
        safe |= here


def _in_order(nodes: list[Node]) -> list[Node]:
    """By start time; a span without one comes right after its parent's start. Children lists follow the same order."""
    if any(node.start is None for node in nodes):
        starts = {id(node): _start_or_inherited(node) for node in nodes}
        last = max((start for start in starts.values() if start is not None), default=None)
        nodes = sorted(nodes, key=lambda node: _Key(starts[id(node)] or last))
    else:
        nodes = sorted(nodes, key=lambda node: node.start)  # type: ignore[arg-type,return-value]
    for node in nodes:
        parent = node.parent
        if parent is not None:
            if parent.children:
                parent.children.append(node)  # type: ignore[attr-defined]
            else:
                parent.children = [node]
    return nodes


def _start_or_inherited(node: Node) -> datetime | None:
    return node.start or next((above.start for above in node.ancestors() if above.start is not None), None)


class _Key:
    """Orders times, all equal when there are none."""

    __slots__ = ("time",)

    def __init__(self, time: datetime | None) -> None:
        self.time = time

    def __lt__(self, other: _Key) -> bool:
        return self.time is not None and other.time is not None and self.time < other.time


def _finish(node: Node, mapping: Mapping | None, memo: Memo) -> None:
    wire = node.wire
    nanos = wire.durationInNanos
    duration = nanos if type(nanos) is int else number(nanos)
    if 0 < duration < 2**63:
        node.duration_ms = duration / 1e6
    elif node.start is not None and node.end is not None:
        node.duration_ms = max(0.0, (node.end - node.start).total_seconds() * 1000)
    else:
        node.duration_known = nanos is not None and nanos == 0 and node.end is not None
    a = node.a = Attrs(wire, memo)
    if mapping is not None:
        a.own = mapping.facts({key: a.get(key) for key in mapping.keys if key in a.raw})
    readers = node.readers = readers_for(a, bool(wire.events))
    kind = node.kind = kind_of(readers, a).name
    if kind == "agent" and creates_agent(a):
        node.kind, node.creates_agent = "chain", True
    _read_error(node)


def creates_agent(a: Attrs) -> bool:
    """The agent is only made here, and doesn't run."""
    operation = a.get("gen_ai.operation.name") if "gen_ai.operation.name" in a.raw else a.name
    return isinstance(operation, str) and operation.split(" ", 1)[0] == "create_agent"


_FAILED = frozenset({"error", "2", "failed", "status_code_error"})


def _read_error(node: Node) -> None:
    wire = node.wire
    amp, status = wire.ampAttributes, wire.status
    failed, kind, message = error_of(amp) if amp is not None else (False, None, None)
    if isinstance(status, dict):
        said = status.get("message") or status.get("description")
        message = message or (said if isinstance(said, str) else None)
        status = status.get("code")
    if status is not None:
        word = status if type(status) is str else text_of(status)
        failed = failed or word.lower() in _FAILED
    if node.kind == "tool" and not failed and wire.events:
        failed = any(event["name"] == "exception" for event in node.a.events)
    if failed:
        node.failed, node.error_type, node.error_message = True, kind, message
        _read_exception(node)
        if node.error_type and _CONTROL_FLOW.search(node.error_type):
            node.failed, node.error_type, node.error_message, node.paused = False, None, None, True


_CONTROL_FLOW = re.compile(
    r"(?:\A|\.)(?!KeyboardInterrupt)\w*(?:Interrupt(?:Exception)?|ParentCommand|BubbleUp|ApprovalRequired|CallDeferred)\Z"
)
"""What frameworks raise to hand control on, or to wait for a person: no error."""


def _read_exception(node: Node) -> None:
    for event in node.a.events:
        if event["name"] == "exception":
            held = event["attributes"]
            node.error_type = node.error_type or text_of(held.get("exception.type")) or None
            node.error_message = node.error_message or text_of(held.get("exception.message")) or None
    a = node.a
    node.error_type = node.error_type or a.text("error.type", "exception.type") or None
    node.error_message = node.error_message or a.text("error.message", "exception.message") or None
