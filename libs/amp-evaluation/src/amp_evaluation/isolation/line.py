"""The child's way to a model: it has no keys, so the job asks for it, while the child waits."""

from __future__ import annotations

import os
import pickle
import socket
import threading

from amp_evaluation.isolation import protocol
from amp_evaluation.isolation.protocol import Asking, ModelFailed, ModelReplied
from amp_evaluation.judge._habits import JudgeReply, Request
from amp_evaluation.judge.faults import BadReplyError, JudgeError

__all__ = ["JobLine"]


class JobLine:
    """Asks models over the channel. Open while an item is evaluated: at other times nobody listens."""

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
        with self._lock:
            if not self.is_open:
                raise JudgeError("a model can be asked only while an item is evaluated")
            protocol.send(self._channel, protocol.encode_reply(question))
            body = protocol.receive(self._channel)
        if body is None:
            os._exit(0)  # the job has gone
        answer: ModelReplied | ModelFailed = pickle.loads(body)
        if isinstance(answer, ModelReplied):
            return JudgeReply(answer.content, answer.cut_off)
        raise BadReplyError(answer.reason) if answer.may_ask_again else JudgeError(answer.reason)
