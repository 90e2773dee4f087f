"""One call ahead, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Ahead"]

T = TypeVar("T")


class Ahead(Generic[T]):
    """Runs ``call`` at once in a daemon thread (the job's end never waits for one); ``result()`` waits for it."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call: Callable[[], T] | None = call
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="amp-evaluation page ahead", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        assert self._call is not None
        try:
            self._results.append(self._call())
        except BaseException as error:  # raised again where the result is wanted
            self._error = error
        self._call = None

    def result(self) -> T:
        """What the call returned, or its exception. Once: nothing is kept here afterwards."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._results.pop()
