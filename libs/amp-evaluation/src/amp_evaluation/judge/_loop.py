"""One asyncio loop in a daemon thread, for the native async clients of the models' providers.

Nothing here holds up the end of the process: the loop's thread is a daemon, and so are the threads of its executor,
where some providers run blocking calls. `concurrent.futures` threads would be waited for at exit.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["run_on_loop"]

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


class _DaemonExecutor(concurrent.futures.ThreadPoolExecutor):
    """A daemon thread a call. How many there are is bounded by the calls that a run has in flight."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[T]:
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # whoever awaits the future gets it
                future.set_exception(error)

        threading.Thread(target=call, name="amp-evaluation-judge-call", daemon=True).start()
        return future


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            _loop.set_default_executor(_DaemonExecutor())
            threading.Thread(target=_loop.run_forever, name="amp-evaluation-judges", daemon=True).start()
        return _loop


def run_on_loop(call: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine on the loop and wait; an interrupt of the waiting thread cancels it."""
    future = asyncio.run_coroutine_threadsafe(call, _running_loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
