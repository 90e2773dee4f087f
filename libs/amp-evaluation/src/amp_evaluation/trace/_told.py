"""What a framework's record of the conversation tells where no span recorded the model's calls.

Some instrumentations see only the outer run (Haystack's agents under OpenInference): what the model asked for, what the
tools answered and what it cost stands in the messages that the run ended with, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from amp_evaluation.trace._nodes import Node
from amp_evaluation.trace._spans import AssistantMessage, TokenUsage, UserMessage
from amp_evaluation.trace.conventions._envelopes import conversation_in
from amp_evaluation.trace.conventions._facts import usage_of
from amp_evaluation.trace.conventions._messages import messages_of

_HOLDERS = ("_meta", "meta", "response_metadata", "usage_metadata", "models_usage", "usage")
_USAGES = ("usage", "token_usage")
_SENT, _GOT = ("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")


@dataclass
class Told:
    """The span that tells, with the conversation as its messages, and the usage of this run's replies."""

    node: Node
    usage: TokenUsage | None


def told_by(nodes: Iterable[Node]) -> Told | None:
    """The outermost agent or chain whose output holds a conversation with replies of the model; None without one."""
    for node in nodes:
        items = conversation_in(node.read("output")) if node.kind in ("agent", "chain") else []
        messages = messages_of(items)
        if any(isinstance(message, AssistantMessage) for message in messages):
            node.messages = messages
            return Told(node, _usage(items))
    return None


def _usage(items: list[Any]) -> TokenUsage | None:
    """The sum over the replies after the last user message: earlier ones were paid by earlier runs."""
    total: TokenUsage | None = None
    for item in reversed(items):
        if any(isinstance(message, UserMessage) for message in messages_of([item])):
            break
        found = _usage_of(item) if isinstance(item, dict) else None
        if found is not None:
            total = found if total is None else found + total
    return total


def _usage_of(item: dict[str, Any]) -> TokenUsage | None:
    holders = [item[key] for key in _HOLDERS if isinstance(item.get(key), dict)]
    holders += [holder[key] for holder in holders for key in _USAGES if isinstance(holder.get(key), dict)]
    for holder in holders:
        sent = next((holder[key] for key in _SENT if holder.get(key) is not None), None)
        got = next((holder[key] for key in _GOT if holder.get(key) is not None), None)
        if sent is not None and got is not None:
            return usage_of(sent, got, holder.get("total_tokens"))
    return None
