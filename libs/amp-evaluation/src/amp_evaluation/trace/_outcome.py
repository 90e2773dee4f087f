"""What was asked, what was answered, and whether the run failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from amp_evaluation.trace._calls import received
from amp_evaluation.trace._nodes import Node
from amp_evaluation.trace._tools import last_user
from amp_evaluation.trace.conventions._answered import answer_text
from amp_evaluation.trace.conventions._asked import asked_text
from amp_evaluation.trace.conventions._envelopes import user_text_in

MAX_REASON = 500
"""Characters of an error's message in a reason: a person reads it."""


def asked_by(node: Node) -> str:
    """What the span was started with, as people wrote it."""
    if node.asked is None:
        node.asked = next((text for value in _values(node, "input") if (text := asked_text(value))), "")
    return node.asked


def answered_by(node: Node) -> str:
    """What the span ended with, as people read it; one whose output is only an error's text has none."""
    if node.answered is None:
        text = next((text for value in _values(node, "output") if (text := answer_text(value))), "")
        node.answered = "" if text and _is_error_text(node, text) else text
    return node.answered


def _is_error_text(node: Node, text: str) -> bool:
    """The span failed and says why; or all its model calls failed and it says that instead of an answer."""
    if node.failed and _repeats_error(node, text):
        return True
    calls = node.inside if node.kind == "agent" else [inner for inner in node.below() if inner.kind == "llm"]
    if not calls or any(call.text or not call.failed for call in calls):
        return False
    told = [call.error_message for call in calls if call.error_message]
    return any(text.strip() in message for message in told) or (node.failed and not told)


def _repeats_error(node: Node, text: str) -> bool:
    """The text is an error's message, of the span or of one below, or that error printed: `SomeError(…): message …`.

    Where the message was lost, as in the platform's exports, the error's type before the text says it.
    """
    said = text.strip()
    return any(
        said in (inner.error_message.strip(), _message_alone(inner))
        or (_is_printed_error(said, inner.error_type or "") and inner.error_message in said)
        if inner.error_message
        else _is_printed_error(said, inner.error_type or "")
        for inner in (node, *node.below())
        if inner.failed
    )


def _is_printed_error(said: str, error_type: str) -> bool:
    name = error_type.rsplit(".", 1)[-1]
    return bool(name) and said.startswith(name) and said[len(name) : len(name) + 1] in ("(", ":")


def _message_alone(node: Node) -> str:
    """The error's message without the error's type before it."""
    message = node.error_message or ""
    kind, colon, rest = message.partition(": ")
    return rest.strip() if colon and kind.isidentifier() else message


def _values(node: Node, fact: str) -> Iterator[Any]:
    """What each convention says, in order: one that holds no text leaves it to the next."""
    for reader in node.readers.get(fact, ()):
        value = reader(node.a)
        if value is not None and value != "":
            yield value


def trace_input(roots: list[Node], calls: list[Node], given: Any) -> str:
    """Root, then the agents and chains below it from the top, then the first call's last user message."""
    nodes = []
    for node in _levels(roots, backwards=False):
        if node.kind in _CARRIERS and not node.dropped:
            if text := asked_by(node):
                return text
            nodes.append(node)
    for node in calls:
        if text := last_user(node.messages):
            return text
    return asked_text(given) or next((text for node in nodes if (text := _asked_in_output(node))), "")


def _asked_in_output(node: Node) -> str:
    """A step that only prepares hands the messages on: what was asked stands in what it ended with."""
    return next((text for value in _values(node, "output") if (text := user_text_in(value))), "")


_CARRIERS = frozenset({"agent", "chain", "retriever"})


def trace_output(roots: list[Node], calls: list[Node], given: Any) -> str:
    """The same for the answer; nothing is taken from below a failed root."""
    good = [root for root in roots if not root.failed or answered_by(root)]
    for node in reversed(good):
        if node.kind in _CARRIERS and not node.dropped and (text := answered_by(node)):
            return last_of_joined(text, calls)
    leading = _leading_to(calls)
    for node in _levels(good, backwards=True):
        if node.kind not in _CARRIERS or node.dropped or node.failed or (calls and node not in leading):
            continue
        if text := answered_by(node):
            return last_of_joined(text, calls)
    failed = {root for root in roots if root not in good}
    for node in reversed(calls):
        if node.text and not _came_to_nothing(node, failed):
            return node.text
    return "" if failed or any(node.text for node in calls) else answer_text(given)


def _came_to_nothing(call: Node, failed: set[Node]) -> bool:
    """A reply below a failed root; or below an agent that failed afterwards, as when a guardrail refuses the answer.

    An agent marked by an error of before the call went on.
    """
    for above in (call, *call.ancestors()):
        if above in failed:
            return True
        if above.kind == "agent" and above.failed and not answered_by(above):
            return not any(inner.failed and _ended_before(inner, call) for inner in above.below())
    return False


def _ended_before(node: Node, call: Node) -> bool:
    return node.end is not None and call.start is not None and node.end <= call.start


def _leading_to(calls: list[Node]) -> set[Node]:
    """The calls and everything above them."""
    found: set[Node] = set()
    for call in calls:
        step: Node | None = call
        while step is not None and step not in found:
            found.add(step)
            step = step.parent
    return found


def last_of_joined(text: str, calls: list[Node]) -> str:
    """The last reply where a framework gives all replies of a run strung together: what came before led to tools."""
    last = next((node.text for node in reversed(calls) if node.text), "")
    if not last or len(text) <= len(last) or not text.rstrip().endswith(last.rstrip()):
        return text
    joined = "".join("".join(node.text for node in calls).split()) == "".join(text.split())
    return last if joined else text


def _levels(roots: Iterable[Node], *, backwards: bool) -> Iterator[Node]:
    """Spans level by level from the top, in time order or against it; what runs inside tools isn't theirs to say."""
    level = list(roots)
    while level:
        yield from reversed(level) if backwards else level
        level = [child for node in level if node.kind not in ("tool", "llm") for child in node.children]
        level.sort(key=lambda node: (node.start is not None, node.start))


def failure(nodes: list[Node], roots: list[Node], output: str, captured: bool) -> str | None:
    """Why the run failed; None when it didn't, or when nobody can tell.

    No answer means nothing where texts aren't recorded: something worked, and left no text.
    """
    for root in roots:
        if root.failed and root.is_root and _matters(root, roots) and not answered_by(root):
            return _reason(_cause(root))
    if output or (not captured and _worked_silently(nodes)):
        return None
    errors = [node for node in nodes if node.failed]
    working = [node for node in nodes if node.kind in ("llm", "agent") and not node.failed]
    return next((_reason(_cause(node)) for node in errors if not _went_on_after(node, working)), None)


def _went_on_after(error: Node, working: list[Node]) -> bool:
    """Something that works starts when the error has ended, in the same tick of a coarse clock at the earliest."""
    end = error.end or error.start
    if end is None:
        return False
    later = [node for node in working if node.start is not None and node.start >= end]
    if any(node.start > end for node in later):  # type: ignore[operator]
        return True
    return bool(later) and not set(later) <= {error, *error.ancestors()}


def _worked_silently(nodes: list[Node]) -> bool:
    """Something went well and left no text: a tool, a model call with a reply, an agent in which only tools fail."""
    return any(not node.failed and _did_its_work(node) for node in nodes)


def _did_its_work(node: Node) -> bool:
    if node.kind == "agent":
        return all(inner.kind == "tool" for inner in node.below() if inner.failed) and not any(
            inner.kind == "llm" for inner in node.below()
        )
    return node.kind == "tool" or (node.kind == "llm" and received(node))


def _matters(root: Node, roots: list[Node]) -> bool:
    """A root of the run: the only one, or one that holds any of its work."""
    return (
        len(roots) == 1 or root.kind != "chain" or any(node.kind in ("llm", "agent", "tool") for node in root.below())
    )


def _cause(node: Node) -> Node:
    """The span itself, or the failed one below it that has the words for it."""
    if node.error_message:
        return node
    below = [inner for inner in node.below() if inner.failed]
    told = next((inner for inner in reversed(below) if inner.error_message), None)
    return told or (node if node.error_type else next((inner for inner in reversed(below) if inner.error_type), node))


def _reason(node: Node) -> str:
    """The error's type and message, which may name the type itself, without the traceback that some write behind it."""
    kind, message = node.error_type or "", (node.error_message or "").partition("Traceback (most recent call last)")[0]
    message = message.strip()
    if len(message) > MAX_REASON:
        message = f"{message[:MAX_REASON]}…"
    named = bool(kind) and message.startswith(kind.rsplit(".", 1)[-1])
    said = message if named else ": ".join(part for part in (kind, message) if part)
    return f"{said or 'an error without a message'} (at {node.name!r})"
