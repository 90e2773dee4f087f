"""The window of a run: what is evaluated, and the wider one that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from amp_evaluation._time import parse_rfc3339, utc

__all__ = ["Window", "moment", "windows"]

LONGEST_REQUEST = timedelta(days=30)  # the service answers 500 beyond it
CLOCKS_DIFFER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Window:
    """Traces that start in [start, end) are evaluated; requests ask from ``asked_from`` to ``asked_to``."""

    start: datetime
    end: datetime
    asked_from: datetime
    asked_to: datetime

    def holds(self, moment: datetime) -> bool:
        return self.start <= moment < self.end

    def touches(self, start: datetime, end: datetime) -> bool:
        """Whether [start, end) and the window have a moment in common."""
        return start < self.end and end > self.start


def windows(start: datetime, end: datetime, margin: timedelta, now: datetime) -> Iterator[Window]:
    """The window with its margins, in slices where a request would be too long for the service.

    A run that crosses a border comes whole within the margin. The end asked for is at most ``now``, but
    never before ``end``: clocks differ, and what lies beyond simply isn't there yet. For the same reason no
    slice but the first begins in the future, however far away ``end`` is.
    """
    longest = LONGEST_REQUEST - 2 * margin
    latest = max(start, now + CLOCKS_DIFFER)
    while start < end and start <= latest:
        until = start + longest if end - start > longest else end
        yield Window(start, until, start - margin, max(until, min(until + margin, now)))
        start = until


def moment(name: str, value: str | datetime) -> datetime:
    """A time that a caller gave, in UTC; without a zone it is UTC. ValueError that names it when it is none."""
    found = parse_rfc3339(value) if isinstance(value, str) else utc(value) if isinstance(value, datetime) else None
    if found is None:
        raise ValueError(f"{name}={value!r}: a datetime or an ISO 8601 time is wanted, as in 2026-01-15T10:00:00Z")
    return found
