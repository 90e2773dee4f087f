"""What the models of a trace asked tools for, and the tool messages that answered: each request once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amp_evaluation.trace._agents import as_text
from amp_evaluation.trace._nodes import Node
from amp_evaluation.trace._spans import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage


class Requests:
    """What the models of this trace asked for, and the tool messages that answered."""

    def __init__(self, calls: list[Node]) -> None:
        self.asked: list[tuple[ToolCall, Node]] = []
        self.answers: dict[str, ToolMessage] = {}
        self._unnamed: dict[str, list[ToolMessage]] = {}
        self._free: list[tuple[ToolCall, Node]] = []
        self._last: list[Message] = []
        self._open: list[ToolCall] = []
        self._replied: list[ToolCall] = []
        self._indexed = 0
        self._by_content: dict[tuple[str, str], list[ToolCall]] = {}
        self._shown: set[str] = set()
        """Ids under which histories show a request again."""
        self._last_call = calls[-1] if calls else None
        seen: set[tuple[str, ...]] = set()
        for node in calls:
            for call in node.calls:
                self._ask(call, node, seen)
            self._take_history(node, seen)
            self._replied += node.calls
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
        answered = True
        for message in fresh:
            if isinstance(message, ToolMessage):
                self._answer(message)
                answered = True
            elif isinstance(message, AssistantMessage):  # its calls may be messages of their own
                self._open = [*([] if answered else self._open), *message.tool_calls]
                answered = False
        for message in _after_last_user(fresh):
            if isinstance(message, AssistantMessage):
                for call in message.tool_calls:
                    if not call.id:
                        continue
                    if (call.id,) in seen:
                        self._shown.add(call.id)
                    elif not self._renamed(call, seen):
                        self._ask(call, node, seen)

    def _renamed(self, call: ToolCall, seen: set[tuple[str, ...]]) -> bool:
        """A request that a reply made already: some histories give it another id than the reply did."""
        while self._indexed < len(self._replied):
            asked = self._replied[self._indexed]
            self._by_content.setdefault((asked.name, as_text(asked.arguments)), []).append(asked)
            self._indexed += 1
        same = self._by_content.get((call.name, as_text(call.arguments)), [])
        while same:
            asked = same.pop(0)
            if asked.id not in self._shown:
                seen.add((call.id,))
                if call.id in self.answers:
                    self.answers.setdefault(asked.id, self.answers[call.id])
                return True
        return False

    def _answer(self, message: ToolMessage) -> None:
        """An answer without a name and with no id, or none that a call has, is the next call's: they come in order."""
        call_id = message.tool_call_id
        if self._open and not message.name and not any(call.id == call_id for call in self._open):
            call_id = self._open.pop(0).id or call_id
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

    def went_on(self, node: Node) -> bool:
        """Another call to a model came after it: what it asked for was done, even where no answer shows."""
        return node is not self._last_call

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
