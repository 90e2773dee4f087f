"""What code in the child asks the job for, over a real channel."""

from __future__ import annotations

import pickle
import socket
import threading
from collections.abc import Iterator

import msgspec
import pytest

from amp_evaluation.isolation import protocol
from amp_evaluation.isolation.line import JobLine
from amp_evaluation.isolation.models import NoModels
from amp_evaluation.isolation.packing import pack_spans
from amp_evaluation.isolation.protocol import Asking, ModelFailed, ModelReplied, SpansSent, SpansWanted
from amp_evaluation.judge._habits import JudgeReply, Request
from amp_evaluation.judge.faults import BadReplyError, JudgeError
from amp_evaluation.trace.models import Trace, UserInputStep

QUESTION = Request(model="", prompt="Fine?", temperature=0.5, max_tokens=9)


class Job:
    """The other end: gives one answer, and holds what it was asked."""

    def __init__(self) -> None:
        self.channel, theirs = socket.socketpair()
        self.line = JobLine(theirs)
        self.theirs = theirs
        self.line.is_open = True
        self.asked: protocol.Reply | None = None

    def will_say(self, answer: object) -> None:
        def serve() -> None:
            self.asked = protocol.decode_reply(protocol.receive(self.channel) or b"")
            protocol.send(self.channel, pickle.dumps(answer))

        threading.Thread(target=serve, daemon=True).start()


@pytest.fixture
def job() -> Iterator[Job]:
    made = Job()
    yield made
    made.channel.close()
    made.theirs.close()


def test_a_models_reply_comes_back(job: Job) -> None:
    job.will_say(ModelReplied(content="yes", cut_off=True))
    assert job.line.ask(QUESTION, again=True) == JudgeReply("yes", cut_off=True)
    assert job.asked == Asking(model="", prompt="Fine?", temperature=0.5, max_tokens=9, again=True)


@pytest.mark.parametrize(("may_ask_again", "kind"), [(True, BadReplyError), (False, JudgeError)])
def test_a_failure_says_whether_to_ask_again(job: Job, may_ask_again: bool, kind: type[Exception]) -> None:
    job.will_say(ModelFailed(reason="no luck", may_ask_again=may_ask_again))
    with pytest.raises(JudgeError, match="no luck") as caught:
        job.line.ask(QUESTION, again=False)
    assert type(caught.value) is kind


def test_spans_come_back_whole(job: Job) -> None:
    trace = Trace("t", spans=[UserInputStep("not a span, but it travels")])  # type: ignore[list-item]
    job.will_say(SpansSent(packed=pack_spans(trace)))
    assert job.line.fetch_spans() == trace.spans
    assert job.asked == SpansWanted()


def test_spans_that_can_not_be_had_are_an_error_with_the_reason(job: Job) -> None:
    job.will_say(SpansSent(packed=None, reason="too deep"))
    with pytest.raises(RuntimeError, match="too deep"):
        job.line.fetch_spans()


def test_a_closed_line_asks_nobody(job: Job) -> None:
    job.line.is_open = False
    with pytest.raises(JudgeError, match="only while an item is evaluated"):
        job.line.ask(QUESTION, again=False)
    with pytest.raises(RuntimeError, match="only while it is evaluated"):
        job.line.fetch_spans()


def test_where_no_model_is_wanted_the_answer_says_so() -> None:
    asking = Asking(model="m", prompt="p", temperature=0.0, max_tokens=1, again=False)
    assert NoModels().answer(asking) == ModelFailed(reason="no model can be asked here")
    assert msgspec.json.decode(protocol.encode_reply(asking))["type"] == "asking"
