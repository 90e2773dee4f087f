"""What an agent said so far: histories repeat it, at times split, or with other ids for the calls.

Some APIs keep a reply's text and each of its calls as items of their own; some instrumentations name a call in the
history by another id than in the reply. It is one and the same reply all the same.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from amp_evaluation.trace._agents import as_text
from amp_evaluation.trace._spans import AssistantMessage, Message, ToolCall, ToolMessage

MAX_SPLIT = 50
"""Messages that one reply may be split into: a text and its calls."""

Key = tuple[Any, ...]


def message_key(message: Message) -> Key:
    """Equal for messages that say the same. An assistant's calls count by id, or by name and arguments without one."""
    if isinstance(message, AssistantMessage):
        return reply_key(message.content, message.tool_calls)
    if isinstance(message, ToolMessage):
        return ("tool", message.tool_call_id, message.content)
    return (message.role, message.content)


def reply_key(text: str, calls: Sequence[ToolCall]) -> Key:
    if calls:
        return ("assistant", text.strip(), *map(call_key, calls))
    return ("assistant", text.strip())


def call_key(call: ToolCall) -> Key:
    return (call.id,) if call.id else (call.name, as_text(call.arguments))


def _content_key(text: str, calls: Sequence[ToolCall]) -> Key:
    """The same without ids."""
    return (text.strip(), *[(call.name, as_text(call.arguments)) for call in calls])


class Said:
    """What was said so far, by occurrences."""

    def __init__(self) -> None:
        self._counts: dict[Key, int] = {}
        self._here: dict[Key, int] = {}
        self._last: list[Message] = []
        self._replies: list[tuple[str, Sequence[ToolCall]]] = []
        self._by_content: dict[Key, list[Key]] = {}

    def fresh(self, messages: list[Message], placed: Container[str] = ()) -> list[int]:
        """Positions of the messages that this input says for the first time, but for answers to `placed` calls."""
        last, counts = self._last, self._counts
        position = len(last)
        if position > len(messages) or messages[:position] != last:
            position, self._here = 0, {}
        here = self._here
        self._last = messages
        found = []
        while position < len(messages):
            message = messages[position]
            known = 0
            if type(message) is ToolMessage and message.tool_call_id in placed:
                known = 1
            elif type(message) is AssistantMessage:
                known = self._known_reply(messages, position)
            if not known:
                key = message_key(message)
                seen = here[key] = here.get(key, 0) + 1
                if seen > counts.get(key, 0):
                    counts[key] = seen
                    found.append(position)
            position += known or 1
        return found

    def say(self, text: str, calls: Sequence[ToolCall]) -> None:
        key = reply_key(text, calls)
        self._counts[key] = self._counts.get(key, 0) + 1
        if calls:
            self._replies.append((text, calls))

    def _known_reply(self, messages: list[Message], start: int) -> int:
        """How many messages from here on are one reply that was said; 0 when none are."""
        texts: list[str] = []
        calls: list[ToolCall] = []
        for position in range(start, min(len(messages), start + MAX_SPLIT)):
            message = messages[position]
            if type(message) is not AssistantMessage:
                break
            texts += [message.content] if message.content else []
            calls += message.tool_calls
            text = "\n".join(texts)
            if self._take(reply_key(text, calls)) or (calls and self._take_renamed(text, calls)):
                return position - start + 1
        return 0

    def _take(self, key: Key) -> bool:
        seen = self._here.get(key, 0)
        if seen >= self._counts.get(key, 0):
            return False
        self._here[key] = seen + 1
        return True

    def _take_renamed(self, text: str, calls: Sequence[ToolCall]) -> bool:
        for said, made in self._replies:
            self._by_content.setdefault(_content_key(said, made), []).append(reply_key(said, made))
        self._replies = []
        return any(self._take(key) for key in self._by_content.get(_content_key(text, calls), ()))
