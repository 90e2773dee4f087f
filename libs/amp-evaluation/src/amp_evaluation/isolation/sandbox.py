"""The job's side of the sandbox: one child for all user code of a run, replaced when it hangs or dies."""

from __future__ import annotations

import logging
import pickle
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from amp_evaluation.errors import ConfigError
from amp_evaluation.isolation._process import ChildHung, ChildLost, ChildProcess
from amp_evaluation.isolation.confine import LOAD_ALLOWANCE_BYTES, hide_memory
from amp_evaluation.isolation.models import Models
from amp_evaluation.isolation.packing import pack_spans, pack_trace
from amp_evaluation.isolation.protocol import (
    Asking,
    AskRequest,
    Broken,
    Kind,
    Level,
    Loaded,
    LoadRequest,
    ReadRequest,
    Ready,
    Refused,
    Reply,
    Request,
    SpansSent,
    SpansWanted,
)
from amp_evaluation.isolation.remote import TOO_DEEP, Answer, Remote
from amp_evaluation.trace.models import Trace

__all__ = ["Answer", "ChildLost", "Remote", "Sandbox"]

log = logging.getLogger(__name__)

START_LIMIT_S = 60.0  # a cold image reads its packages from a slow disk
LOAD_LIMIT_S = 60.0  # imports of one source; apart from the limit of an item
RESIDENT_SLACK_BYTES = 256 << 20  # code of libraries that is paged in while it is used

MAX_QUESTIONS = 100  # to models, for one item: user code in a loop must not spend without a bound


class Sandbox:
    """A child process for the user code of one run.

    `time_limit_s` holds for one item, `memory_mb` (MiB) for what evaluating may use above what imports took. The child
    is started with the first source; nothing is started otherwise. Close it when the run ends; it also ends with this
    process, whatever ends it.
    """

    def __init__(self, time_limit_s: float = 30.0, memory_mb: int = 256) -> None:
        self._time_limit_s = time_limit_s
        self._memory_mb = memory_mb
        self._child: ChildProcess | None = None
        self._sources: list[LoadRequest] = []
        self._remotes: list[Remote] = []
        self._sent: weakref.ref[Trace] | None = None
        self._served: set[int] = set()  # evaluators whose code has run in this child
        self._reads_spans = False
        self._warned = False
        self._greeted = False
        self._resident_limit = 0
        self._lock = threading.Lock()  # judges ask from several threads; the child does one thing at a time

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def child_pid(self) -> int | None:
        """The running child, if there is one."""
        child = self._child
        return child.pid if child is not None and child.is_alive else None

    def prepare(self) -> None:
        """Start the child without waiting for it: it gets ready while this process goes on with its own start."""
        with self._lock:
            if self._child is None:
                self._child = self._spawn()

    def close(self) -> None:
        """Kill the child; never waits for user code."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    def load(
        self,
        kind: Kind,
        source: str,
        *,
        name: str,
        config: Mapping[str, Any],
        level: Level | None,
        schema_keys: tuple[str, ...] = (),
    ) -> Remote:
        """Make an evaluator of `source` in the child. Raises ConfigError with what is wrong with it."""
        request = LoadRequest(
            index=len(self._sources),
            kind=kind,
            name=name,
            source=source,
            config=dict(config),
            level=level,
            schema_keys=schema_keys,
        )
        with self._lock:
            info = self._load(self._running_child(), request)
            self._sources.append(request)
            remote = Remote(self, request.index, name, info, self._time_limit_s)
            self._remotes.append(remote)
            return remote

    def _load(self, child: ChildProcess, request: LoadRequest) -> Loaded:
        try:
            reply = child.call(pickle.dumps(request), limit_s=LOAD_LIMIT_S, resident_limit=self._load_memory())
        except ChildLost as error:
            raise ConfigError(f"the code can't be loaded: {error}") from error
        if isinstance(reply, Refused):
            raise ConfigError(reply.reason)
        if not isinstance(reply, Loaded):
            child.kill()
            raise ConfigError("the code can't be loaded: its process gave no sensible answer")
        self._resident_limit = child.resident_bytes + RESIDENT_SLACK_BYTES + (self._memory_mb << 20)
        return reply

    def _load_memory(self) -> int:
        return LOAD_ALLOWANCE_BYTES + RESIDENT_SLACK_BYTES + (self._memory_mb << 20)

    def _running_child(self) -> ChildProcess:
        """The child, started when there is none, or none any more, with all that was loaded before."""
        if self._child is not None and self._child.is_alive and self._greeted:
            return self._child
        if self._child is None or not self._child.is_alive:
            self.close()
            self._child = self._spawn()
        child = self._child
        self._greet(child)
        for request, remote in zip(self._sources, self._remotes, strict=True):
            if remote.stopped is not None:
                continue
            try:
                self._load(child, request)
            except ConfigError as error:
                remote.stop(f"it could not be loaded again after a crash: {error}")
                if not child.is_alive:
                    return self._running_child()
        return child

    def _spawn(self) -> ChildProcess:
        hide_memory()
        self._sent = None
        self._served = set()
        self._greeted = False
        return ChildProcess(self._memory_mb)

    def _greet(self, child: ChildProcess) -> None:
        began = time.monotonic()
        try:
            greeting = child.wait_for_greeting(limit_s=START_LIMIT_S, resident_limit=self._load_memory())
        except ChildLost as error:
            raise ConfigError(f"the process for custom code did not start: {error}") from error
        if not isinstance(greeting, Ready):
            child.kill()
            raise ConfigError("the process for custom code did not start: it gave no sensible answer")
        self._greeted = True
        log.debug("waited %.2f s for the process for custom code", time.monotonic() - began)
        self._warn_once(greeting.landlock_abi)

    def _warn_once(self, landlock_abi: int) -> None:
        if landlock_abi == 0 and not self._warned:
            self._warned = True
            log.warning(
                "this kernel has no Landlock: custom code runs in a process of its own with an empty environment and "
                "limits on time and memory, but can read and write whatever files this user can, mounted secrets and "
                "other processes' environments among them"
            )

    def ask(self, index: int, trace: Trace, item: str | int | None, task: Any, models: Models) -> Reply:
        """One item's answer. Raises ChildLost."""

        def attempt(child: ChildProcess) -> Reply:
            known = self._sent is not None and self._sent() is trace
            packed = None if known else pack_trace(trace, with_spans=self._reads_spans or item is not None)
            self._sent = weakref.ref(trace)
            default = models.default_model
            request = AskRequest(index=index, trace=packed, item=item, task=task, default_model=default)
            return self._talk(child, request, models)

        with self._lock:
            return self._fairly(index, attempt)

    def read(self, index: int, content: str, models: Models) -> Reply:
        """What a judge with a reader of its own makes of a model's reply. Raises ChildLost."""
        request = ReadRequest(index=index, content=content, default_model=models.default_model)
        with self._lock:
            return self._fairly(index, lambda child: self._talk(child, request, models))

    def _fairly(self, index: int, attempt: Callable[[ChildProcess], Reply]) -> Reply:
        """Code of another evaluator may have left the child unfit: what dies at once is tried in a fresh one."""
        child = self._running_child()
        others = self._served - {index}
        self._served.add(index)
        try:
            return attempt(child)
        except ChildHung:
            raise
        except ChildLost:
            if not others:
                raise
        child = self._running_child()
        self._served.add(index)
        return attempt(child)

    def _talk(self, child: ChildProcess, request: Request, models: Models) -> Reply:
        """The reply to a request, after what the child asks models meanwhile. Their time is not the child's."""
        reply = self._call(child, request)
        asked = 0
        while isinstance(reply, Asking | SpansWanted):
            asked += 1
            if asked > MAX_QUESTIONS:
                child.kill()
                raise ChildHung(f"it asked for more than {MAX_QUESTIONS} things while it evaluated one item")
            try:
                answer = models.answer(reply) if isinstance(reply, Asking) else self._spans()
            except BaseException:
                child.kill()  # it waits for an answer, and would take the next request for it
                raise
            reply = self._call(child, answer)
        if isinstance(reply, Broken):
            child.kill()
            raise ChildLost(reply.reason)
        return reply

    def _spans(self) -> SpansSent:
        """The spans of the trace sent last. Who reads them once will read them again: from now on they go along."""
        self._reads_spans = True
        trace = self._sent() if self._sent is not None else None
        if trace is None:
            return SpansSent(packed=None, reason="the trace is no longer there")
        try:
            return SpansSent(packed=pack_spans(trace))
        except RecursionError:
            return SpansSent(packed=None, reason=TOO_DEEP)

    def _call(self, child: ChildProcess, request: Request) -> Reply:
        body = pickle.dumps(request, pickle.HIGHEST_PROTOCOL)
        return child.call(body, limit_s=self._time_limit_s, resident_limit=self._resident_limit)
