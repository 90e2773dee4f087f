"""Tool executions: from tool spans, and from the model's requests where no span recorded the execution; handoffs."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from amp_evaluation.trace._agents import TRANSFER
from amp_evaluation.trace._nodes import Node
from amp_evaluation.trace._requests import Requests
from amp_evaluation.trace._spans import (
    Message,
    ToolCall,
    ToolMessage,
    ToolMetrics,
    ToolSpan,
    UserMessage,
)
from amp_evaluation.trace.conventions._tool_values import result_call_id, tool_arguments, tool_result


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
        elif node.paused:
            node.kind, node.dropped = "chain", f"{node.name!r} handed control on, or waits for a person"
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


_INJECTED = frozenset({"state", "runtime", "store", "config", "tool_call_id"})
"""Arguments that a framework adds to what the model asked for."""


def _named(given: Any, call: ToolCall | None, node: Node) -> dict[str, Any]:
    """Arguments as an object: a bare value takes its name from the model's request, else from the tool's schema."""
    asked = call.arguments if call is not None else {}
    if isinstance(given, dict):
        if call is not None and given.keys() & _INJECTED:
            given = {key: value for key, value in given.items() if key in asked or key not in _INJECTED}
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
    """Executions that no span recorded: requested in this run, and answered.

    Where no answer shows anywhere, all but the last call's: a run may end, or wait for a person, at its last request.
    """
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
        found.append((span, answer is not None, requests.went_on(node)))
    answered = any(done for _, done, _ in found)
    return [span for span, done, later in found if done or (later and not answered)]


def _to_agent(name: str, agents: set[str]) -> bool:
    """`transfer_to_billing` with no span of its own, where billing is an agent of the trace."""
    match = TRANSFER.match(name)
    return match is not None and _plain(name[match.end() :]) in agents


def _plain(name: str) -> str:
    return re.sub(r"\W|_", "", name).lower()


def _agent_names(nodes: list[Node]) -> set[str]:
    """Agents by name; a graph's node is one too, whatever its span's kind."""
    named = {_plain(node.words("agent_name")) for node in nodes if node.kind == "agent"}
    steps = {_plain(_AROUND_NAME.sub("", node.name)) for node in nodes if node.kind in ("agent", "chain")}
    return (named | steps) - {""}


_AROUND_NAME = re.compile(r"\A(?:execute_task|invoke_agent) |\.(?:task|workflow|agent)\Z")


def last_user(messages: list[Message]) -> str:
    return next((m.content for m in reversed(messages) if isinstance(m, UserMessage) and m.content), "")
