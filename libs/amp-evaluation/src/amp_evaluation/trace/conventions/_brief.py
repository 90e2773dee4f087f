"""What a trace's usual model calls said, as far as tool executions depend on it, without making their messages.

Each function answers for all calls of a trace at once, and only where every message is the usual one (`_messages`,
`_flat`): texts beside a role, calls with id, name and arguments. None for anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from amp_evaluation.trace._records import UNREADABLE
from amp_evaluation.trace.conventions import amp, openinference
from amp_evaluation.trace.conventions._attrs import Attrs
from amp_evaluation.trace.conventions._facts import Reader
from amp_evaluation.trace.conventions._flat import text_rows
from amp_evaluation.trace.conventions._history import HISTORY
from amp_evaluation.trace.conventions._messages import NOT_PLAIN, UsualMessage

REPLIES = "llm.output_messages."


class CallsSaid(NamedTuple):
    """Of all calls together. A tool call is (id, name); the histories repeat some, and hold answers to some."""

    asked: list[tuple[str, str]]
    last_text: str
    repeated: set[tuple[str, str]]
    answered: set[str]


Speaker = Callable[[Sequence[Attrs]], CallsSaid | None]

_decode_lists = msgspec.json.Decoder(list[list[UsualMessage]]).decode


def _said_to_amp(calls: Sequence[Attrs]) -> CallsSaid | None:
    replies = [a.amp_bytes("output") for a in calls]
    sent = [a.amp_bytes("input") for a in calls]
    whole = _not_begun_again(sent)
    try:
        lists = _decode_lists(b"[" + b",".join(replies + whole) + b"]")
    except UNREADABLE:
        return None
    asked: list[tuple[str, str]] = []
    text = ""
    for reply in lists[: len(replies)]:
        if len(reply) != 1 or not _is_plain_reply(reply[0]):
            return None
        said = reply[0]
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


def _is_plain_reply(message: UsualMessage) -> bool:
    return message.role == "assistant" and _is_plain(message.content or "")


def _is_plain(content: str) -> bool:
    return content[:1] not in NOT_PLAIN and ";base64," not in content and content != "''"


def _not_begun_again(sent: list[bytes]) -> list[bytes]:
    """The histories without those that the next one begins with."""
    found = []
    for position, data in enumerate(sent):
        following = sent[position + 1] if position + 1 < len(sent) else b""
        if data[-1:] != b"]" or not following.startswith(data[:-1]) or following[len(data) - 1 : len(data)] != b",":
            found.append(data)
    return found


def _said_in_flat_keys(calls: Sequence[Attrs]) -> CallsSaid | None:
    asked: list[tuple[str, str]] = []
    text = ""
    for a in calls:
        rows = text_rows(a, REPLIES)
        if not rows:
            return None
        for row in rows:
            if row.role != "assistant" or row.call_id or not _is_plain(row.content):
                return None
        text = "\n".join([row.content for row in rows if row.content]) or text
        asked += [call for row in rows for call in row.calls]
    repeated: set[tuple[str, str]] = set()
    answered: set[str] = set()
    for a in calls:
        rows = text_rows(a, HISTORY)
        if not rows:
            return None
        for row in rows:
            if row.content[:1] == "[":
                return None
            if row.role == "tool":
                answered.add(row.call_id)
            repeated.update(row.calls)
    return CallsSaid(asked, text, repeated, answered)


SPEAKERS: dict[tuple[tuple[Reader, ...], ...], Speaker] = {
    ((amp.messages,), (amp.reply,)): _said_to_amp,
    ((openinference.messages, amp.messages), (openinference.reply, amp.reply)): _said_in_flat_keys,
}
"""By the readers of messages and of the reply."""
