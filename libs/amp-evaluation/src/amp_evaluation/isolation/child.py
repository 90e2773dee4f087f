"""The child's main program: lock in, then load sources and answer for items, one request at a time.

Run as `python -I` by `_process.py` with the channel's descriptor, the parent's process id and the memory limit in MiB.
The process ends when the channel closes, and is killed with its parent.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from amp_evaluation.evaluators._llm_judge import LLMAsJudgeEvaluator
from amp_evaluation.evaluators._outcome import error_text
from amp_evaluation.isolation import protocol
from amp_evaluation.isolation.confine import die_with, limit_resources, lock_in
from amp_evaluation.isolation.line import JobLine
from amp_evaluation.isolation.loading import LoadedEvaluator, SourceError, load
from amp_evaluation.isolation.packing import ArrivingTrace, unpack_trace
from amp_evaluation.isolation.protocol import (
    AskRequest,
    Broken,
    Failed,
    LoadRequest,
    ReadRequest,
    Ready,
    Refused,
    Reply,
    Request,
)
from amp_evaluation.trace.models import AgentTrace, LLMSpan, Trace

RECURSION_LIMIT = 1000  # set again for each item: one that raised it must not take the next one down
OWN_REFERENCES = 2  # to the trace, between two items: the attribute, and the argument of the function that counts
NO_MEMORY = "MemoryError: it needs more memory than AMP_CODE_EVALUATOR_MEMORY_MB allows"


def main(argv: Sequence[str]) -> None:
    descriptor, parent_pid, memory_mb = map(int, argv[1:4])
    die_with(parent_pid)
    sys.argv[:] = ["custom-evaluators"]
    os.environ.pop("LC_CTYPE", None)  # set by the interpreter itself where LANG says nothing
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    memory = limit_resources(memory_mb)
    abi = lock_in()
    with socket.socket(fileno=descriptor) as channel:
        os.set_inheritable(descriptor, False)
        protocol.send(channel, protocol.encode_reply(Ready(landlock_abi=abi)))
        LLMAsJudgeEvaluator._line = line = JobLine(channel)
        serve(channel, Evaluators(memory), line)


def serve(channel: socket.socket, evaluators: Evaluators, line: JobLine | None = None) -> None:
    """Answer requests until the other side goes; `line` is open meanwhile."""
    own = os.getpid()
    line = line or JobLine(channel)
    while (body := protocol.receive(channel)) is not None:
        reply = evaluators.answer(body, line)
        if os.getpid() != own:  # user code forked and both copies came back here
            os._exit(0)
        channel.setblocking(True)  # user code may have played with every descriptor it found
        protocol.send(channel, protocol.encode_reply(reply))


class Limits(Protocol):
    """Memory allowed for loading a source, and for evaluating."""

    def for_loading(self) -> None: ...

    def for_evaluating(self) -> None: ...


class Evaluators:
    """What has been loaded, and the trace that was sent last."""

    def __init__(self, memory: Limits) -> None:
        self._memory = memory
        self._loaded: dict[int, LoadedEvaluator] = {}
        self._trace: Trace | None = None
        self._arrived = 0

    def answer(self, body: bytes, line: JobLine | None = None) -> Reply:
        """The reply to one request. Whatever user code raises is a reply, `sys.exit()` too."""
        try:
            sys.setrecursionlimit(RECURSION_LIMIT)
            request: Request = pickle.loads(body)
            self._take_in(request, line)
        except MemoryError:
            gc.collect()
            return Failed(reason=NO_MEMORY)
        except BaseException as error:
            return Broken(reason=f"it can't read what it is sent: {error_text(error)}")
        try:
            with _opened(line, request):
                return _HANDLERS[type(request)](self, request)
        except MemoryError:
            gc.collect()
            return Failed(reason=NO_MEMORY)
        except SystemExit:
            return Failed(reason="SystemExit: it called exit()")
        except BaseException as error:
            return Failed(reason=error_text(error))

    def load(self, request: LoadRequest) -> Reply:
        self._memory.for_loading()
        try:
            loaded = self._loaded[request.index] = load(request)
            return loaded.info
        except SourceError as error:
            return Refused(reason=str(error))
        except MemoryError:
            return Refused(reason="loading it takes too much memory")
        except BaseException as error:
            return Refused(reason=error_text(error))
        finally:
            self._memory.for_evaluating()

    def _take_in(self, request: Request, line: JobLine | None) -> None:
        if isinstance(request, AskRequest) and request.trace is not None:
            self._trace = None  # let go of the old one before the next is made
            self._arrived += 1
            self._trace = unpack_trace(request.trace, partial(self._fetch_spans, line, self._arrived))

    def _fetch_spans(self, line: JobLine | None, number: int) -> list[Any]:
        """The spans of the trace that arrived as number so; the job holds those of the last one only."""
        if line is None or number != self._arrived:
            raise RuntimeError("the spans of a trace can be read only while it is evaluated")
        return line.fetch_spans()

    def ask(self, request: AskRequest) -> Reply:
        if self._trace is None:
            return Failed(reason="the trace did not reach the evaluator's process")
        try:
            return self._loaded[request.index].ask(self._trace, _target(self._trace, request.item), request.task)
        finally:
            # the code has kept the trace: its spans can't be had any more once the next one is here
            if isinstance(self._trace, ArrivingTrace) and sys.getrefcount(self._trace) > OWN_REFERENCES:
                _ = self._trace.spans

    def read(self, request: ReadRequest) -> Reply:
        return self._loaded[request.index].read(request.content)


@contextmanager
def _opened(line: JobLine | None, request: Request) -> Iterator[None]:
    """The way to the models is open while an item is evaluated, or a reply is read."""
    if line is None or not isinstance(request, AskRequest | ReadRequest):
        yield
        return
    line.default_model, line.is_open = request.default_model, True
    try:
        yield
    finally:
        line.is_open = False


_HANDLERS: dict[type, Callable[[Evaluators, Any], Reply]] = {
    LoadRequest: Evaluators.load,
    AskRequest: Evaluators.ask,
    ReadRequest: Evaluators.read,
}


def _target(trace: Trace, item: str | int | None) -> Trace | AgentTrace | LLMSpan:
    if item is None:
        return trace
    if isinstance(item, int):
        return trace.get_llm_calls()[item]
    return trace.create_agent_trace(item)
