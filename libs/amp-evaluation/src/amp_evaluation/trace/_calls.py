"""LLM calls: what each sent and got, and each one once, however many instrumentations recorded it."""

from __future__ import annotations

from typing import Any

from amp_evaluation.trace._lazy import lazily
from amp_evaluation.trace._nodes import Node
from amp_evaluation.trace._records import number
from amp_evaluation.trace._spans import (
    AssistantMessage,
    LLMMetrics,
    LLMSpan,
    Message,
    SystemMessage,
    TokenUsage,
)
from amp_evaluation.trace._steps import spelled_calls


def read_calls(nodes: list[Node]) -> list[Node]:
    """The LLM spans that are calls, with their messages, reply and usage read. The others become chains, with why."""
    llms = [node for node in nodes if node.kind == "llm"]
    for node in llms:
        _read(node)
    if len(llms) > 1:
        _leave_out_doubles(llms)
        _leave_out_twins(llms)
        _leave_out_preparations(llms)
    for node in llms:
        if node.dropped:
            node.kind = "chain"
    return [node for node in llms if not node.dropped]


def _read(node: Node) -> None:
    node.messages = node.read("messages") or []
    node.reply = node.read("reply") or ([] if node.failed else node.read("said") or [])
    node.usage = node.read("usage")
    _digest(node)


def _digest(node: Node) -> None:
    reply = node.reply
    if len(reply) == 1 and type(reply[0]) is AssistantMessage:
        node.text, node.calls = reply[0].content, reply[0].tool_calls
        return
    said = [message for message in reply if isinstance(message, AssistantMessage)]
    node.text = "\n".join(message.content for message in said if message.content)
    node.calls = [call for message in said for call in message.tool_calls]


def _says(node: Node) -> bool:
    return bool(node.text or node.calls)


def _leave_out_doubles(llms: list[Node]) -> None:
    """An LLM span inside another one with the same reply or the same usage is the same call.

    So is an outer one with neither around exactly one; an outer one around two or more is their aggregate.
    """
    inner: dict[Node, list[Node]] = {}
    for node in llms:
        outer = next((above for above in node.ancestors() if above.kind in ("llm", "tool", "agent")), None)
        if outer is not None and outer.kind == "llm" and not outer.dropped:
            inner.setdefault(outer, []).append(node)
    left: dict[Node, list[Node]] = {}
    for outer in sorted(inner, key=_depths(list(inner)).__getitem__, reverse=True):
        # what an inner span that is no call itself stood for counts in its place
        within = [call for node in inner[outer] for call in left.get(node, [node])]
        if len(within) > 1:
            outer.dropped = f"{outer.name!r} sums up the {len(within)} LLM calls inside it"
            left[outer] = within
        elif within and _same_call(outer, within[0]):
            left[outer] = [_merge(outer, within[0])]


def _leave_out_twins(llms: list[Node]) -> None:
    """Two spans beside each other with one response id at one time are one call, seen by the client and around it."""
    known: dict[str, Node] = {}
    for node in llms:
        response = node.words("response_id") if not node.dropped and "response_id" in node.readers else ""
        twin = known.setdefault(response, node) if response else node
        if twin is not node and not twin.dropped and _overlap(twin, node):
            _merge(twin, node)
            known[response] = node if twin.dropped else twin


def _overlap(first: Node, second: Node) -> bool:
    return first.end is not None and second.start is not None and second.start <= first.end


def _depths(nodes: list[Node]) -> dict[Node, int]:
    known: dict[Node, int] = {}
    for node in nodes:
        path = []
        step: Node | None = node
        while step is not None and step not in known:
            path.append(step)
            step = step.parent
        depth = known[step] if step is not None else 0
        for below in reversed(path):
            depth += 1
            known[below] = depth
    return known


def _same_call(outer: Node, inner: Node) -> bool:
    if not _says(outer) and outer.usage is None:
        return True
    if _says(outer) and _says(inner) and _same_reply(outer, inner):
        return True
    if outer.usage is not None and inner.usage is not None:
        return _same_usage(outer.usage, inner.usage)
    return not (_says(outer) and _says(inner))


def _same_reply(a: Node, b: Node) -> bool:
    if a.text != b.text and "".join(a.text.split()) != "".join(b.text.split()):
        return False
    names = [call.name for call in a.calls], [call.name for call in b.calls]
    return names[0] == names[1] or not (a.calls and b.calls)


def _same_usage(a: TokenUsage, b: TokenUsage) -> bool:
    return a.input_tokens == b.input_tokens and a.output_tokens == b.output_tokens


def _merge(outer: Node, inner: Node) -> Node:
    """The one with more content stays, and takes from the other what it lacks."""
    stays, goes = (outer, inner) if _weight(outer) > _weight(inner) else (inner, outer)
    goes.dropped = f"{goes.name!r} is the same LLM call as {stays.name!r}"
    stays.usage = stays.usage or goes.usage
    stays.messages = stays.messages or goes.messages
    if not _says(stays):
        stays.reply = goes.reply
        _digest(stays)
    if goes.failed and not stays.failed and not _says(stays):
        stays.failed, stays.error_type, stays.error_message = True, goes.error_type, goes.error_message
    return stays


def _weight(node: Node) -> tuple[bool, int, int, int, bool]:
    return (
        _says(node),
        sum(1 for message in node.messages if message.content or getattr(message, "tool_calls", None)),
        sum(1 for call in node.calls if call.id),
        len(node.text) + sum(len(call.arguments) for call in node.calls),
        bool(node.usage),
    )


def _leave_out_preparations(llms: list[Node]) -> None:
    """An LLM span that got nothing, followed by an LLM sibling, only prepared the request.

    Unless that one goes on from a reply to it: then the reply just wasn't recorded where it was given.
    """
    later: dict[int, Node] = {}
    for node in reversed(llms):
        after = later.get(id(node.parent))
        if not node.dropped and after is not None and not received(node):
            reply = _reply_shown_by(after, node)
            if reply is None:
                node.dropped = f"{node.name!r} only prepared a request: it has no reply, usage, error or response id"
            else:
                node.reply = [reply]
                _digest(node)
        later[id(node.parent)] = node


def _reply_shown_by(after: Node, node: Node) -> AssistantMessage | None:
    """What the next call sends behind all that this one sent."""
    sent, count = after.messages, len(node.messages)
    if not count or len(sent) <= count or sent[:count] != node.messages:
        return None
    reply = sent[count]
    return reply if isinstance(reply, AssistantMessage) else None


def received(node: Node) -> bool:
    return bool(
        _says(node)
        or node.usage is not None
        or node.failed
        or node.read("response_id")
        or node.read("finish") is not None
    )


def build_llm_span(node: Node, parent_id: str | None) -> LLMSpan:
    calls = node.calls
    return lazily(
        LLMSpan,
        lambda: _details(node),
        span_id=node.id,
        parent_span_id=parent_id,
        start_time=node.start,
        input=node.messages,
        _tool_calls=calls,
        _said=node.text,
    )


def _details(node: Node) -> dict[str, Any]:
    temperature = node.read("temperature")
    return {
        "output": node.text or (spelled_calls(node.calls) if node.calls else ""),
        "available_tools": node.read("tools") or [],
        "model": node.words("model"),
        "vendor": node.words("vendor"),
        "temperature": number(temperature) if temperature is not None else None,
        "metrics": LLMMetrics(
            node.duration_ms,
            node.failed,
            node.error_type,
            node.error_message,
            node.usage or TokenUsage(),
            _first_token(node),
            duration_known=node.duration_known,
            usage_known=node.usage is not None,
        ),
    }


def _first_token(node: Node) -> float | None:
    value: Any = node.read("first_token_ms")
    return number(value) or None if value is not None else None


def system_text(messages: list[Message]) -> str:
    return next((message.content for message in messages if isinstance(message, SystemMessage)), "")
