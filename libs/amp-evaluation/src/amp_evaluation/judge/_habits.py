"""A question to a model and its reply; and what a run learns of a model: which parameters it takes, and their names."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from amp_evaluation.judge.faults import ParameterRefusedError
from amp_evaluation.judge.gateway import PROVIDERS

__all__ = ["JudgeReply", "ModelHabits", "Request"]

JSON_OBJECT = {"type": "json_object"}
MAX_TOKEN_REFUSALS = 3  # a model that refuses every name of the token limit gets none


@dataclass(frozen=True, kw_only=True)
class Request:
    """One question to a model; `max_tokens` bounds its reply."""

    model: str
    prompt: str
    temperature: float = 0.0
    max_tokens: int = 1024


@dataclass(frozen=True)
class JudgeReply:
    """What a model said; `cut_off` when its token limit ended it."""

    content: str
    cut_off: bool = False


def _plain_limit(limit: int) -> dict[str, Any]:
    return {"max_tokens": limit}


class ModelHabits:
    """The parameters that a model has not refused so far. Used from several threads."""

    def __init__(self, provider: str) -> None:
        row = PROVIDERS.get(provider)
        self._lock = threading.Lock()
        self._limits: Mapping[str, Callable[[int], dict[str, Any]]]
        self._limits = dict(row.token_limits) if row else {"max_tokens": _plain_limit}
        self._takes = {"temperature"} | ({"response_format"} if row is None or row.response_format else set())
        self._token_name: str | None = next(iter(self._limits))
        self._token_refusals = 0

    def arguments(self, model: str, request: Request) -> tuple[dict[str, Any], frozenset[str]]:
        """What any-llm is called with, and the names of the parameters that can be refused."""
        with self._lock:
            takes, token_name = set(self._takes), self._token_name
        sent: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": request.prompt}]}
        if "temperature" in takes:
            sent["temperature"] = request.temperature
        if "response_format" in takes:
            sent["response_format"] = JSON_OBJECT
        if token_name is not None:
            sent |= self._limits[token_name](request.max_tokens)
            takes.add(token_name)
        return sent, frozenset(takes)

    def learn(self, refusal: ParameterRefusedError, sent: frozenset[str]) -> bool:
        """Drop or rename what was refused; False when there is nothing left to change."""
        with self._lock:
            if refusal.parameter == "max_tokens":
                return self._learn_token_name(refusal.instead, sent)
            self._takes.discard(refusal.parameter)
            return refusal.parameter in sent

    def _learn_token_name(self, instead: str | None, sent: frozenset[str]) -> bool:
        if self._token_name is None:
            return bool(sent & self._limits.keys())
        if self._token_name not in sent:  # another call has learnt it meanwhile
            return True
        self._token_refusals += 1
        others = [name for name in self._limits if name != self._token_name]
        if self._token_refusals >= MAX_TOKEN_REFUSALS:
            self._token_name = None
        elif instead in self._limits:
            self._token_name = instead
        else:
            self._token_name = others[0] if others and self._token_refusals == 1 else None
        return True
