"""Tool executions: from tool spans, and from the model's requests where no span recorded the execution; handoffs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from amp_evaluation.trace._agents import as_text
from amp_evaluation.trace._nodes import Node
from amp_evaluation.trace._spans import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    ToolMetrics,
    ToolSpan,
    UserMessage,
)
from amp_evaluation.trace.conventions._tool_values import result_call_id, tool_arguments, tool_result

_TRANSFER = re.compile(r"(?:transfer|hand_?off|delegate)_?(?:back_)?to_", re.IGNORECASE)


class Requests:
    """What the models of this trace asked for, and the tool messages that answered."""

    def __init__(self, calls: list[Node]) -> None:
        self.asked: list[tuple[ToolCall, Node]] = []
        self.answers: dict[str, ToolMessage] = {}
        self._unnamed: dict[str, list[ToolMessage]] = {}
        self._free: list[tuple[ToolCall, Node]] = []
        self._last: list[Message] = []
        self._open: list[ToolCall] = []
        seen: set[tuple[str, ...]] = set()
        for node in calls:
            for call in node.calls:
                self._ask(call, node, seen)
            self._take_history(node, seen)
        self._free = list(self.asked)
        self.ids = {call.id for call, _ in self.asked}

    def _ask(self, call: ToolCall, node: Node, seen: set[tuple[str, ...]]) -> None:
        key = (call.id,) if call.id else (node.id, call.name, as_text(call.arguments))
        if key not in seen:
            seen.add(key)
            self.asked.append((call, node))

    def _take_history(self, node: Node, seen: set[tuple[str, ...]]) -> None:
        """Answers anywhere; requests only after the last user message, for earlier turns are not this run's."""
        messages, last = node.messages, self._last
        self._last = messages
        known = len(last) if last and messages[: len(last)] == last else 0
        fresh = messages[known:]
        for message in fresh:
            if isinstance(message, ToolMessage):
                self._answer(message)
            elif isinstance(message, AssistantMessage):
                self._open = list(message.tool_calls)
        for message in _after_last_user(fresh):
            if isinstance(message, AssistantMessage):
                for call in message.tool_calls:
                    if call.id and (call.id,) not in seen:
                        self._ask(call, node, seen)

    def _answer(self, message: ToolMessage) -> None:
        """An answer with neither id nor name is the next call's: they come in the order of the calls."""
        call_id = message.tool_call_id
        if not call_id and not message.name and self._open:
            call_id = self._open.pop(0).id
        if call_id:
            self.answers.setdefault(call_id, message)
        elif message.name:
            held = self._unnamed.setdefault(message.name, [])
            if message not in held:
                held.append(message)

    def take(self, call_id: str, name: str, arguments: Any, tool: Node) -> ToolCall | None:
        """The request behind a tool span: by id, else by name and arguments, else the next one of that name."""
        best: tuple[int, int] | None = None
        for position, (call, _) in enumerate(self._free):
            if call_id and call.id == call_id:
                best = (0, position)
                break
            if call.name != name:
                continue
            rank = 1 if _equal(call.arguments, arguments) else 2
            if call_id and call.id and (call_id in self.ids or (rank == 2 and arguments)):
                continue  # another call; an id that no model gave (a placeholder, a span's own) says nothing
            if best is None or rank < best[0]:
                best = (rank, position)
        if best is None:
            return None
        return self._free.pop(best[1])[0]

    def left(self) -> Iterator[tuple[ToolCall, Node]]:
        yield from self._free

    def answer(self, call_id: str, name: str = "") -> ToolMessage | None:
        found = self.answers.get(call_id) if call_id else None
        if found is None and not call_id and self._unnamed.get(name):
            found = self._unnamed[name].pop(0)
        return found


def _after_last_user(messages: list[Message]) -> list[Message]:
    for position in range(len(messages) - 1, -1, -1):
        if isinstance(messages[position], UserMessage):
            return messages[position + 1 :]
    return messages


def _equal(asked: dict[str, Any], given: Any) -> bool:
    return asked == given or (len(asked) == 1 and not isinstance(given, dict) and next(iter(asked.values())) == given)


def build_tools(nodes: list[Node], calls: list[Node]) -> list[ToolSpan]:
    """Tool spans get their span, handoffs become chains; what only requests tell comes back as extra executions."""
    tools, doubles = _executions(nodes)
    if (
        not tools
        and not any(node.calls for node in calls)
        and not any(isinstance(message, ToolMessage) for node in calls for message in node.messages)
    ):
        return []
    requests = Requests(calls)
    waiting = []
    for node in tools:
        span, complete = _read_tool(node, requests)
        if not complete:
            waiting.append((node, span))
    for _, span in waiting:
        _complete(span, requests)
    _share_errors(doubles)
    left = list(requests.left())
    return _extra(requests, left, _agent_names(nodes)) if left else []


def _executions(nodes: list[Node]) -> tuple[list[Node], list[tuple[Node, Node]]]:
    """Tool spans that are executions; a tool span right inside one of the same name is the same execution.

    The second list has these doubles: (the one around, the one inside).
    """
    found = []
    for node in nodes:
        if node.kind != "tool":
            continue
        node.tool_name = node.words("tool_name")
        if _is_handoff(node):
            node.kind, node.dropped = "chain", f"{node.name!r} is a handoff to another agent"
        else:
            node.tool_name = node.tool_name or _name_of_span(node)
            found.append(node)
    doubles: list[tuple[Node, Node]] = []
    for node in found:
        above = node.parent
        while above is not None and above.kind == "chain":
            above = above.parent
        if above is not None and above.kind == "tool" and _same_execution(above, node):
            node.dropped = f"{node.name!r} is the same tool execution as {above.name!r}"
            doubles.append((above, node))
    for node in found:
        if node.dropped:
            node.kind = "chain"
    return [node for node in found if not node.dropped], doubles


def _share_errors(doubles: list[tuple[Node, Node]]) -> None:
    """An execution that failed by one of its records failed: the outer one often ends well around a caught error."""
    for outer, inner in reversed(doubles):
        span = outer.span
        if inner.failed and isinstance(span, ToolSpan) and not span.metrics.error:
            span.metrics = replace(
                span.metrics, error=True, error_type=inner.error_type, error_message=inner.error_message
            )


def _is_handoff(node: Node) -> bool:
    """A tool span that names no tool and has no arguments object only passes control on."""
    if "handoff" in node.readers and node.read("handoff"):
        return True
    if node.tool_name:
        return False
    given = tool_arguments(node.read("arguments"))
    return not isinstance(given, dict) and re.search(r"hand-?_?off|transfer", node.name, re.IGNORECASE) is not None


def _same_execution(outer: Node, inner: Node) -> bool:
    if outer.tool_name != inner.tool_name or any(node.kind == "tool" and node is not inner for node in outer.below()):
        return False
    given = tool_arguments(outer.read("arguments")), tool_arguments(inner.read("arguments"))
    return given[0] == given[1] or not given[0] or not given[1]


def _name_of_span(node: Node) -> str:
    word, _, rest = node.name.partition(" ")
    if word in ("execute_tool", "running") and rest:
        return rest.removeprefix("tool: ").removeprefix("tool ")
    return node.name.removesuffix(".tool").removesuffix(".__call__")


def _read_tool(node: Node, requests: Requests) -> tuple[ToolSpan, bool]:
    name = node.tool_name
    given = tool_arguments(node.read("arguments"))
    raw_result = node.read("result")
    result, marked = tool_result(raw_result)
    call_id = node.words("tool_id") if "tool_id" in node.readers else ""
    if not call_id and raw_result is not result:
        call_id = result_call_id(raw_result)
    call = requests.take(call_id, name, given, node)
    if call is not None:
        call_id = call.id or call_id
    failed = node.failed or marked or ("tool_failed" in node.readers and node.read("tool_failed") is True)
    metrics = ToolMetrics(
        node.duration_ms, failed, node.error_type, node.error_message, duration_known=node.duration_known
    )
    span = ToolSpan(node.id, None, node.start, name, _named(given, call, node), result, metrics, call_id)
    node.span = span
    return span, raw_result not in (None, "") and result not in (None, "")


def _named(given: Any, call: ToolCall | None, node: Node) -> dict[str, Any]:
    """Arguments as an object: a bare value takes its name from the model's request, else from the tool's schema."""
    asked = call.arguments if call is not None else {}
    if isinstance(given, dict):
        return given if given or not asked else asked
    if given is None or given == "" or given == []:
        return asked
    if len(asked) == 1 or (asked and not isinstance(given, str)):
        return asked
    return {"input": given}


def _complete(span: ToolSpan, requests: Requests) -> None:
    """What the tool's own span doesn't hold stands in the message that brought it back to the model."""
    message = requests.answer(span.tool_call_id, span.name)
    if message is None:
        return
    if span.result in (None, ""):
        span.result = message.content
    if message.is_error:
        span.metrics.error = True
        span.metrics.error_message = span.metrics.error_message or message.content or None


def _extra(requests: Requests, left: list[tuple[ToolCall, Node]], agents: set[str]) -> list[ToolSpan]:
    """Executions that no span recorded: requested in this run, and answered, or never answered at all."""
    found = []
    for call, node in left:
        answer = requests.answer(call.id, call.name)
        if _to_agent(call.name, agents):
            continue
        failed = answer is not None and answer.is_error
        metrics = ToolMetrics(0.0, failed, None, answer.content if answer and failed else None, duration_known=False)
        span = ToolSpan(
            f"{node.id}:{call.id or call.name}",
            node.parent.id if node.parent is not None else None,
            node.end or node.start,
            call.name,
            call.arguments,
            answer.content if answer is not None else None,
            metrics,
            call.id,
        )
        found.append((span, answer is not None))
    answered = any(done for _, done in found)
    return [span for span, done in found if done or not answered]


def _to_agent(name: str, agents: set[str]) -> bool:
    """`transfer_to_billing` with no span of its own, where billing is an agent of the trace."""
    match = _TRANSFER.match(name)
    return match is not None and _plain(name[match.end() :]) in agents


def _plain(name: str) -> str:
    return re.sub(r"\W|_", "", name).lower()


def _agent_names(nodes: list[Node]) -> set[str]:
    return {plain for node in nodes if node.kind == "agent" and (plain := _plain(node.words("agent_name")))}


def last_user(messages: list[Message]) -> str:
    return next((m.content for m in reversed(messages) if isinstance(m, UserMessage) and m.content), "")
