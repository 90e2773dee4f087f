"""Daemon worker threads with a bound on calls at once and on calls waiting.

Never `concurrent.futures` or `asyncio.to_thread`: their exit hooks wait for calls in flight, and the job has to end
within a second of a SIGTERM whatever a model is doing.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["WorkerPool", "released_slot"]

Call = Callable[[], None]
THREADS_PER_SLOT = 4  # how many threads may wait with their slot released, for each that runs
TICK_S = 0.5  # how often a waiting caller gets to do something, such as reporting progress

_worker = threading.local()


class WorkerPool:
    """At most `limit` calls at once; `submit` waits while `backlog` calls are queued.

    Threads are made when there is work for them. A call that raises ends the run: the exception comes out of the next
    `submit` or `drain`. There is nothing to close: threads are daemons, and `stop` sends idle ones home.
    """

    def __init__(self, limit: int, *, backlog: int | None = None, on_tick: Callable[[], None] = lambda: None) -> None:
        self.limit = limit
        self.backlog = limit if backlog is None else backlog
        self._on_tick = on_tick
        self._queue: deque[Call] = deque()
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)  # for idle threads: something to run and a slot for it
        self._slot = threading.Condition(self._lock)  # for calls that gave up their slot and want it back
        self._progress = threading.Condition(self._lock)  # a call was taken or is done
        self._running = 0
        self._unfinished = 0
        self._idle = 0
        self._returning = 0
        self._threads = 0
        self._stopped = False
        self._failure: BaseException | None = None

    @property
    def in_flight(self) -> int:
        """Calls that run now."""
        return self._running

    @property
    def unfinished(self) -> int:
        """Calls that run or wait."""
        return self._unfinished

    def submit(self, call: Call) -> None:
        """Queue a call; waits while the queue is full."""
        self.wait_until(lambda: len(self._queue) < self.backlog)
        with self._lock:
            self._queue.append(call)
            self._unfinished += 1
            self._grow()
            self._work.notify()

    def drain(self) -> None:
        """Wait until every call is done."""
        self.wait_until(lambda: self._unfinished == 0)

    def stop(self) -> None:
        """Let idle threads end, and busy ones after their call."""
        with self._lock:
            self._stopped = True
            self._queue.clear()
            self._work.notify_all()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition that only changes when a call is taken or done. Raises what a call raised."""
        while True:
            with self._lock:
                if self._failure is None and not condition():
                    self._progress.wait(TICK_S)
                failure, done = self._failure, condition()
            if failure is not None:
                raise failure
            if done:
                return
            self._on_tick()

    def _grow(self) -> None:
        """Start a thread when a call and a slot are there but nobody is free to bring them together."""
        startable = min(self.limit - self._running - self._returning, len(self._queue))
        if self._idle < startable and self._threads < self.limit * THREADS_PER_SLOT:
            self._threads += 1
            self._idle += 1
            threading.Thread(target=self._run, name=f"amp-evaluation-worker-{self._threads}", daemon=True).start()

    def _run(self) -> None:
        _worker.pool = self
        while True:
            call = self._take()
            if call is None:
                return
            failure = _attempt(call)
            del call  # what the call holds, a trace with its page, must not live on in an idle thread
            self._finish(failure)

    def _take(self) -> Call | None:
        with self._lock:
            # Calls that want their slot back go first: they are older than anything in the queue.
            while not self._stopped and not (self._queue and self._running + self._returning < self.limit):
                self._work.wait()
            self._idle -= 1
            if self._stopped:
                self._threads -= 1
                return None
            self._running += 1
            call = self._queue.popleft()
            self._progress.notify_all()
            return call

    def _finish(self, failure: BaseException | None) -> None:
        with self._lock:
            self._idle += 1
            self._unfinished -= 1
            self._failure = self._failure or failure
            self._free_slot()
            self._progress.notify_all()

    def _free_slot(self) -> None:
        self._running -= 1
        self._slot.notify()
        self._work.notify()

    def _release_slot(self) -> None:
        with self._lock:
            self._free_slot()
            self._grow()

    def _acquire_slot(self) -> None:
        with self._lock:
            self._returning += 1
            while self._running >= self.limit:
                self._slot.wait()
            self._returning -= 1
            self._running += 1


def _attempt(call: Call) -> BaseException | None:
    try:
        call()
    except BaseException as error:  # handed to the caller's thread, which decides
        return error
    return None


@contextmanager
def released_slot() -> Iterator[None]:
    """Let another call run while this one only waits, as between retries; outside a pool it does nothing.

    One provider that asks for patience then holds up its own calls, not those of other providers.
    """
    pool: WorkerPool | None = getattr(_worker, "pool", None)
    if pool is None:
        yield
        return
    pool._release_slot()
    try:
        yield
    finally:
        pool._acquire_slot()
