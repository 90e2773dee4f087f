"""Which replies ask for patience, how long to wait, and when to give up: the one retry policy.

Statuses, waits and limits are the platform's contract for all of its peers.
"""

from __future__ import annotations

import email.utils
import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from amp_evaluation.errors import PeerError, RefusedError, TransientError

__all__ = [
    "MAX_RETRY_AFTER_S",
    "RETRY_DELAYS_S",
    "TOTAL_DEADLINE_S",
    "TRANSIENT_STATUSES",
    "RetryPolicy",
    "classify",
    "parse_retry_after",
]

log = logging.getLogger("amp_evaluation.http")

T = TypeVar("T")

TRANSIENT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
RETRY_DELAYS_S = (2.0, 4.0, 8.0)
MAX_RETRY_AFTER_S = 60.0
TOTAL_DEADLINE_S = 300.0

HINTS = {
    400: "a value of the request is refused",
    401: "the credentials are not accepted: check the client and the audience of its token",
    403: "check the rights of the client",
    404: "check the endpoint and the ids",
    413: "the body is too large",
}


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """When a transient error is met again: waits and the total deadline in seconds, clock and sleep."""

    delays: tuple[float, ...] = RETRY_DELAYS_S
    max_retry_after_s: float = MAX_RETRY_AFTER_S
    deadline_s: float = TOTAL_DEADLINE_S
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def next_delay(self, attempt: int, error: TransientError, elapsed: float) -> float | None:
        """Seconds to wait before retry number ``attempt`` (from 0), or None to give up.

        ``elapsed`` is the time since the first try. A wait that the peer asked for goes before the schedule.
        """
        if attempt >= len(self.delays) or error.retried:
            return None
        delay = self.delays[attempt]
        if error.retry_after is not None:
            delay = min(error.retry_after, self.max_retry_after_s)
        return delay if elapsed + delay < self.deadline_s else None

    def run(self, call: Callable[[], T], *, role: str) -> T:
        """Call until it doesn't raise TransientError; the last error when patience is at its end."""
        begin = self.clock()
        attempt = 0
        while True:
            try:
                return call()
            except TransientError as error:
                delay = self.next_delay(attempt, error, self.clock() - begin)
                if delay is None:
                    error.retried = True
                    raise
                self.log_retry(error, attempt, delay)
            attempt += 1
            self.sleep(delay)

    def log_retry(self, error: TransientError, attempt: int, delay: float) -> None:
        """One WARNING a retry; ``attempt`` counts from 0."""
        log.warning("%s, retry %d of %d in %g s", error, attempt + 1, len(self.delays), delay)


def parse_retry_after(value: str | None, now: float | None = None) -> float | None:
    """Seconds to wait from a Retry-After header in either form; None when it is absent or unreadable.

    ``now`` is the wall clock in seconds since the epoch (default: the machine's).
    """
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = _seconds_until(value, time.time() if now is None else now)
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _seconds_until(http_date: str, now: float) -> float:
    try:
        return email.utils.parsedate_to_datetime(http_date).timestamp() - now
    except (ValueError, OverflowError):
        return math.nan


def classify(role: str, status: int, headers: Mapping[str, str], body: bytes = b"") -> PeerError:
    """The error for a status that isn't 2xx. ``headers`` must find names in any case."""
    if status in TRANSIENT_STATUSES:
        wait = parse_retry_after(headers.get("Retry-After"))
        return TransientError(role, f"HTTP {status}", status=status, retry_after=wait, body=body)
    if 300 <= status < 400:
        hint = "give the address that it leads to as the endpoint"
        return RefusedError(role, f"HTTP {status}, a redirect, is not followed", status=status, hint=hint, body=body)
    return RefusedError(role, f"HTTP {status}", status=status, hint=HINTS.get(status, ""), body=body)
