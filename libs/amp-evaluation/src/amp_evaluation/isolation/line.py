"""The child's way to what only the job has: models, for it has no keys, and the spans of the trace at hand."""

from __future__ import annotations

import os
import pickle
import socket
import threading
from typing import Any

from amp_evaluation.isolation import protocol
from amp_evaluation.isolation.packing import unpack_spans
from amp_evaluation.isolation.protocol import Asking, ModelFailed, ModelReplied, SpansSent, SpansWanted
from amp_evaluation.judge._habits import JudgeReply, Request
from amp_evaluation.judge.faults import BadReplyError, JudgeError

__all__ = ["JobLine"]


class JobLine:
    """Asks over the channel, and waits. Open while an item is evaluated: at other times nobody listens."""

    def __init__(self, channel: socket.socket) -> None:
        self.default_model = ""
        self.is_open = False
        self._channel = channel
        self._lock = threading.Lock()  # threads of user code ask one after the other

    def ask(self, request: Request, *, again: bool) -> JudgeReply:
        """The model's reply. Raises JudgeError, BadReplyError where asking again can help."""
        question = Asking(
            model=request.model,
            prompt=request.prompt,
            temperature=request.temperature,
            max_tokens=request.max_tokens,
            again=again,
        )
        answer: ModelReplied | ModelFailed | None = self._exchange(question)
        if answer is None:
            raise JudgeError("a model can be asked only while an item is evaluated")
        if isinstance(answer, ModelReplied):
            return JudgeReply(answer.content, answer.cut_off)
        raise BadReplyError(answer.reason) if answer.may_ask_again else JudgeError(answer.reason)

    def fetch_spans(self) -> list[Any]:
        """The spans of the trace at hand."""
        answer: SpansSent | None = self._exchange(SpansWanted())
        if answer is None:
            raise RuntimeError("the spans of a trace can be read only while it is evaluated")
        if answer.packed is None:
            raise RuntimeError(answer.reason)
        return unpack_spans(answer.packed)

    def _exchange(self, question: Asking | SpansWanted) -> Any:
        """The job's answer; None when nobody listens."""
        with self._lock:
            if not self.is_open:
                return None
            protocol.send(self._channel, protocol.encode_reply(question))
            body = protocol.receive(self._channel)
        if body is None:
            os._exit(0)  # the job has gone
        return pickle.loads(body)
