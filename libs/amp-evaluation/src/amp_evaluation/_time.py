"""RFC 3339 in one place, so that a time read twice is the same time.

``datetime.fromisoformat`` takes ``Z``, offsets and nine digits and cuts beyond the microsecond, where
other readers round: two of them in one program would disagree on which trace comes first.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["floor_to", "format_rfc3339", "format_unix_nanos", "from_unix_nanos", "parse_rfc3339", "utc"]

_LAST_SECOND = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())


def parse_rfc3339(text: str) -> datetime | None:
    """Read a time as aware UTC; None when it is absent (``0001-01-01T00:00:00Z``) or can't be read.

    Also reads what ISO 8601 allows beyond RFC 3339: a date alone, and a time without a zone, which is UTC.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return _parse_unusual(text)
    return _known(moment)


def format_rfc3339(moment: datetime) -> str:
    """Write a time as RFC 3339 in UTC with ``Z``; digits of the second only when there are any."""
    return utc(moment).isoformat().replace("+00:00", "Z")


def from_unix_nanos(nanos: int) -> datetime | None:
    """The moment so many nanoseconds after 1970, cut to the microsecond; None for 0 or less (absent) and after 9999."""
    seconds, rest = divmod(nanos, 1_000_000_000)
    if nanos <= 0 or seconds > _LAST_SECOND:
        return None
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)


def format_unix_nanos(nanos: int) -> str:
    """Nanoseconds after 1970 as RFC 3339 with all nine digits; "" where `from_unix_nanos` gives None."""
    moment = from_unix_nanos(nanos)
    return "" if moment is None else f"{moment:%Y-%m-%dT%H:%M:%S}.{nanos % 1_000_000_000:09d}Z"


def utc(moment: datetime) -> datetime:
    """The same moment in UTC; one without a zone is taken as UTC, whatever zone this machine is in."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def floor_to(moment: datetime, grain: timedelta) -> datetime:
    """The latest multiple of ``grain`` (at most one second) that isn't after ``moment``."""
    micros = grain // timedelta(microseconds=1)
    return moment.replace(microsecond=moment.microsecond - moment.microsecond % micros)


def _known(moment: datetime) -> datetime | None:
    if moment.year <= 1:  # how absent times are written (Go's zero time)
        return None
    try:
        return utc(moment)
    except OverflowError:
        return None


def _parse_unusual(text: str) -> datetime | None:
    """Lower-case letters and leap seconds are RFC 3339 too; leap seconds become the second before."""
    usual = text.strip().upper().replace(":60", ":59")
    try:
        return _known(datetime.fromisoformat(usual))
    except ValueError:
        return None
