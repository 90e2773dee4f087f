"""Whether a provider can be used: how fast it wants to be asked, and when it is given up for the run."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from amp_evaluation._pool import released_slot
from amp_evaluation.errors import TransientError
from amp_evaluation.judge.faults import JudgeStoppedError

__all__ = ["Health", "Throttle"]

log = logging.getLogger("amp_evaluation.judge")

FAILURES_TO_STOP = 20  # in a row; so that thousands of items don't wait for a dead endpoint one by one
REFUSALS_TO_STOP = 20  # in a row: what every request has in common is wrong


class Throttle:
    """Calls to one provider at once. A 429 halves them and pauses all; each answer lets a little more through."""

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._allowed = float(limit)
        self._in_flight = 0
        self._not_before = 0.0
        self._clock = clock
        self._changed = threading.Condition()

    def slow_down(self, pause_s: float) -> None:
        """The provider asked for patience: nothing is sent for so long, and half as much at once afterwards."""
        with self._changed:
            now = self._clock()
            if now >= self._not_before:  # replies to calls already under way count once
                self._allowed = max(1.0, self._allowed / 2)
            self._not_before = max(self._not_before, now + pause_s)

    @contextmanager
    def turn(self, stopped: Callable[[], bool]) -> Iterator[None]:
        """Wait for a turn, with the run's slot given to others meanwhile; no wait when `stopped`."""
        if not self._enter():
            with released_slot():
                self._wait(stopped)
        try:
            yield
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify()

    def answered(self) -> None:
        with self._changed:
            self._allowed = min(float(self._limit), self._allowed + 1 / self._allowed)

    def wake(self) -> None:
        """Let all who wait look again: the provider has been given up."""
        with self._changed:
            self._changed.notify_all()

    def _enter(self) -> bool:
        with self._changed:
            return self._try_enter()

    def _try_enter(self) -> bool:
        if self._in_flight >= int(self._allowed) or self._clock() < self._not_before:
            return False
        self._in_flight += 1
        return True

    def _wait(self, stopped: Callable[[], bool]) -> None:
        with self._changed:
            while not self._try_enter():
                if stopped():
                    self._in_flight += 1
                    return
                pause = self._not_before - self._clock()
                self._changed.wait(pause if pause > 0 else None)


class Health:
    """Counts failures in a row over all calls to one provider, and holds why it, or a model of it, was given up."""

    def __init__(self, role: str, patience_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.role = role
        self.given_up = threading.Event()
        self._patience_s = patience_s
        self._clock = clock
        self._lock = threading.Lock()
        self._stops: dict[str | None, JudgeStoppedError] = {}
        self._failures = self._lost = self._refusals = 0
        self._failing_since = 0.0
        self._ever_answered = False
        self._last_detail = ""

    def check(self, model: str) -> None:
        """Raise why the model was given up, if it was."""
        stop = self._stops.get(None) or self._stops.get(model)
        if stop is not None:
            raise stop.again()

    def is_stopped(self, model: str) -> bool:
        return None in self._stops or model in self._stops

    def stop(self, error: JudgeStoppedError, model: str) -> JudgeStoppedError:
        """Give up the model, or the whole provider; the first time with one ERROR line."""
        key = None if error.whole_provider else model
        with self._lock:
            first = key not in self._stops
            known = self._stops.setdefault(key, error.again())
        if first:
            about = self.role if key is None else f"{self.role}, model {model}"
            log.error("%s: %s; its remaining items are skipped", about, error)
            if key is None:
                self.given_up.set()
        return known.again()

    def failed(self, error: TransientError) -> None:
        """A try had no answer, or a 5xx. A 429 is an answer of its kind: it doesn't count here."""
        with self._lock:
            self._last_detail = error.detail
            if error.status == 429:
                return
            if not self._failures:
                self._failing_since = self._clock()
            self._failures += 1

    def lost(self) -> None:
        """A call was given up after its retries."""
        with self._lock:
            self._lost += 1

    def answered(self) -> None:
        with self._lock:
            self._failures = self._lost = self._refusals = 0
            self._ever_answered = True

    def refused(self) -> None:
        """An answer, though no use: the endpoint is there."""
        with self._lock:
            self._failures = self._lost = 0
            self._refusals += 1

    def diagnosis(self, *, at_end: bool = False) -> JudgeStoppedError | None:
        """Why to give the provider up by now, if there is a reason.

        Twenty failures in a row count once they span a whole schedule of retries: sixteen calls at once would
        otherwise give up an endpoint after a hiccup of two seconds.
        """
        with self._lock:
            lasting = self._clock() - self._failing_since >= self._patience_s
            down = self._lost >= FAILURES_TO_STOP or (self._failures >= FAILURES_TO_STOP and lasting)
            never = at_end and self._lost > 0 and not self._ever_answered
            if down or never:
                count = max(self._failures, self._lost)
                reason = f"endpoint down: {count} failures in a row, the last one {self._last_detail}"
                return JudgeStoppedError(reason, repeat_may_help=True, whole_provider=True)
            if self._refusals >= REFUSALS_TO_STOP:
                reason = f"{self._refusals} requests in a row were refused"
                return JudgeStoppedError(reason, whole_provider=True)
        return None
