"""A model behind an OpenAI-compatible endpoint (the gateway's too): replies by list or by function."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from loopback._server import Request, Response

Reply = str | dict[str, Any] | Response
VERDICT = '{"explanation": "as asked", "score": 0.8}'


@dataclass
class Model:
    """``replies`` are taken in turn, then ``reply``: a text, a whole body, a Response, or a function of the body.

    ``max_in_flight`` is the largest number of calls that were open at once.
    """

    reply: Reply | Callable[[dict[str, Any]], Reply] = VERDICT
    replies: list[Reply] = field(default_factory=list)
    delay_s: float = 0.0
    api_key: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    in_flight: int = 0
    max_in_flight: int = 0
    _lock: Any = field(default_factory=threading.Lock)

    def handle(self, request: Request) -> Response:
        if request.method != "POST" or not request.path.endswith("/chat/completions"):
            return Response.of(404, {"error": {"message": "no such path", "code": "not_found"}})
        if self.api_key and request.headers.get("api-key") != self.api_key:
            return Response.of(401, {"error": {"message": "bad key", "code": "invalid_api_key"}})
        with self._lock:
            self.in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            if self.delay_s:
                time.sleep(self.delay_s)
            return self._complete(request.json())
        finally:
            with self._lock:
                self.in_flight -= 1

    def _complete(self, body: dict[str, Any]) -> Response:
        with self._lock:
            self.calls.append(body)
            reply: Any = self.replies.pop(0) if self.replies else self.reply
        if callable(reply):
            reply = reply(body)
        if isinstance(reply, Response):
            return reply
        return Response.of(200, reply if isinstance(reply, dict) else completion(reply, body.get("model", "m")))


def completion(text: str | None, model: str = "m", finish_reason: str = "stop", **message: Any) -> dict[str, Any]:
    """The body of a chat completion with one choice."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1768471200,
        "model": model,
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
        "usage": {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150},
    }
