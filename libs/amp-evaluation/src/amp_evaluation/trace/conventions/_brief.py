"""What a trace's usual model calls said, as far as tool executions depend on it, without making their messages.

Each function answers for all calls of a trace at once, and only where every message is the usual one (`_messages`,
`_flat`): texts beside a role, calls with id, name and arguments. None for anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from amp_evaluation.trace._records import UNREADABLE, WireSpan
from amp_evaluation.trace.conventions import Readers, amp, openinference, read
from amp_evaluation.trace.conventions._attrs import Attrs
from amp_evaluation.trace.conventions._facts import Reader
from amp_evaluation.trace.conventions._flat import TextRow, text_rows
from amp_evaluation.trace.conventions._history import HISTORY, alone, cut_out_history
from amp_evaluation.trace.conventions._messages import NOT_PLAIN, UsualMessage
from amp_evaluation.trace.conventions._shapes import Shape, shape_of

REPLIES = "llm.output_messages."
LEAST_CUT = 400
"""Bytes of attributes from which looking for a history costs less than decoding it."""


class BriefAttrs(Attrs):
    """A span's attributes. A history in flat keys is left out of them, and stands apart undecoded."""

    history = b""

    def __init__(self, wire: WireSpan) -> None:
        raw = wire.attributes
        parts = cut_out_history(bytes(raw)) if len(raw) > LEAST_CUT else None
        try:
            found = _decode_object(parts[0] if parts is not None else raw) if len(raw) else {}
        except UNREADABLE:
            super().__init__(wire)
            return
        self._wire, self.memo, self._opened = wire, {}, {}
        self.raw = self._shaped = found
        self.shape = shape_of(found)
        if parts is not None:
            self.history = parts[1]


class CallsSaid(NamedTuple):
    """Of all calls together. A tool call is (id, name); the histories repeat some, and hold answers to some."""

    asked: list[tuple[str, str]]
    last_text: str
    repeated: set[tuple[str, str]]
    answered: set[str]


Speaker = Callable[[Sequence[BriefAttrs]], CallsSaid | None]

_decode_object = msgspec.json.Decoder(dict[str, Any]).decode
_decode_lists = msgspec.json.Decoder(list[list[UsualMessage]]).decode


def _said_to_amp(calls: Sequence[BriefAttrs]) -> CallsSaid | None:
    replies = [a.amp_bytes("output") for a in calls]
    sent = [a.amp_bytes("input") for a in calls]
    if not all(data[-1:] == b"]" for data in sent):
        return None
    try:
        lists = _decode_lists(
            b"[" + b",".join(replies + [data + b"]" for data in alone([d[:-1] for d in sent])]) + b"]"
        )
    except UNREADABLE:
        return None
    asked: list[tuple[str, str]] = []
    text = ""
    for reply in lists[: len(replies)]:
        if len(reply) != 1:
            return None
        (said,) = reply
        if said.role != "assistant" or (said.content and not _is_plain(said.content)):
            return None
        text = said.content or text
        if said.toolCalls or said.tool_calls:
            asked += [(call.id, call.name) for call in said.toolCalls or said.tool_calls]
    repeated: set[tuple[str, str]] = set()
    answered: set[str] = set()
    for messages in lists[len(replies) :]:
        for message in messages:
            if (message.content or "")[:1] == "[":  # perhaps parts, with calls and results among them
                return None
            if message.role == "tool":
                answered.add(message.tool_call_id)
            elif message.toolCalls or message.tool_calls:
                repeated.update([(call.id, call.name) for call in (*message.toolCalls, *message.tool_calls)])
    return CallsSaid(asked, text, repeated, answered)


def _is_plain(content: str) -> bool:
    return content[:1] not in NOT_PLAIN and ";base64," not in content and content != "''"


def _said_in_flat_keys(calls: Sequence[BriefAttrs]) -> CallsSaid | None:
    said = CallsSaid([], "", set(), set())
    text = ""
    for a in calls:
        reply = _reply_in(a, said.asked)
        if reply is None or not (a.history or _take_history(a.raw, said)):
            return None
        text = reply or text
    for history in alone([a.history for a in calls if a.history]):
        try:
            found = _decode_object(b"{" + history + b"}")
        except UNREADABLE:
            return None
        plan = text_rows(shape_of(found), HISTORY)
        if plan is None or len(plan.places) < len(found) or not _take_history(found, said):
            return None  # among the messages stands something else
    return said._replace(last_text=text)


def _reply_in(a: BriefAttrs, asked: list[tuple[str, str]]) -> str | None:
    """The reply's text; its calls go to `asked`."""
    values = list(a.raw.values())
    rows = _usual_rows(a.shape, REPLIES, values)
    if rows is None or len(rows) != 1:
        return None
    role, content, call_id, calls = rows[0]
    text: str = values[content] if content >= 0 else ""
    if values[role] != "assistant" or call_id >= 0 or not _is_plain(text):
        return None
    asked += [(values[at] if at >= 0 else "", values[name] if name >= 0 else "") for at, name in calls]
    return text


def _take_history(found: dict[str, Any], said: CallsSaid) -> bool:
    """What the messages tell of tools; False when they aren't the usual ones, or there are none."""
    values = list(found.values())
    rows = _usual_rows(shape_of(found), HISTORY, values)
    if not rows:
        return False
    for role, content, call_id, calls in rows:
        if values[role] not in _ROLES or (content >= 0 and values[content][:1] == "["):
            return False
        if values[role] == "tool":
            said.answered.add(values[call_id] if call_id >= 0 else "")
        for at, name in calls:
            said.repeated.add((values[at] if at >= 0 else "", values[name] if name >= 0 else ""))
    return True


def _usual_rows(shape: Shape, prefix: str, values: list[Any]) -> tuple[TextRow, ...] | None:
    plan = text_rows(shape, prefix)
    if plan is None:
        return None
    told = values if len(plan.places) == len(values) else [values[place] for place in plan.places]
    return plan.rows if set(map(type, told)) <= _TEXT else None


_ROLES = frozenset({"user", "assistant", "system", "tool"})
_TEXT = {str}


PLAIN_KEYS: dict[Reader, str] = {openinference.tool_name: "tool.name", openinference.result: "output.value"}
"""Where a reader finds a plain text at once: it begins with a letter or a digit, so it is no JSON to be opened."""


def plain_text(readers: Readers, fact: str, a: BriefAttrs) -> Any:
    """What `read` gives, sooner where the first reader finds a plain text."""
    asked = readers.get(fact)
    value = a.raw.get(PLAIN_KEYS.get(asked[0], "")) if asked else None
    return value if type(value) is str and value[:1].isalnum() else read(readers, fact, a)


SPEAKERS: dict[tuple[tuple[Reader, ...], ...], Speaker] = {
    ((amp.messages,), (amp.reply,)): _said_to_amp,
    ((openinference.messages, amp.messages), (openinference.reply, amp.reply)): _said_in_flat_keys,
}
"""By the readers of messages and of the reply."""
