"""RFC 3339 in one place: what is read, what is written, and that they agree."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation._time import floor_to, format_rfc3339, format_unix_nanos, from_unix_nanos, parse_rfc3339, utc

TEN = datetime(2026, 1, 15, 10, tzinfo=UTC)


@pytest.fixture(params=["UTC", "Asia/Kolkata"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = os.environ.get("TZ")
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    assert os.environ.get("TZ") == before
    time.tzset()


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-15T10:00:00Z", TEN),
        ("2026-01-15T10:00:00", TEN),
        ("2026-01-15", TEN.replace(hour=0)),
        ("2026-01-15T15:30:00+05:30", TEN),
        ("2026-01-15T10:00:00.123456789Z", TEN.replace(microsecond=123456)),
        ("2026-01-15T10:00:00.9999999Z", TEN.replace(microsecond=999999)),
        ("2026-01-15T10:00:00.1Z", TEN.replace(microsecond=100000)),
        ("2026-01-15t10:00:00z", TEN),
        (" 2026-01-15T10:00:00Z ", TEN),
        ("2026-01-15T09:59:60Z", TEN.replace(hour=9, minute=59, second=59)),
        ("0001-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00+05:30", None),
        ("9999-12-31T23:59:59-10:00", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_a_time_is_read_whatever_zone_this_machine_is_in(text: str, moment: datetime | None) -> None:
    found = parse_rfc3339(text)
    assert found == moment
    assert found is None or found.utcoffset() == timedelta(0)


@pytest.mark.usefixtures("zone")
def test_a_time_without_a_zone_is_utc() -> None:
    assert utc(datetime(2026, 1, 15, 10)) == TEN
    assert utc(datetime(2026, 1, 15, 15, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))) == TEN


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (TEN, "2026-01-15T10:00:00Z"),
        (TEN.replace(microsecond=120), "2026-01-15T10:00:00.000120Z"),
        (TEN.replace(tzinfo=None), "2026-01-15T10:00:00Z"),
        (TEN.astimezone(timezone(timedelta(hours=-3))), "2026-01-15T10:00:00Z"),
    ],
)
def test_a_time_is_written_in_utc_with_a_zone(moment: datetime, text: str) -> None:
    assert format_rfc3339(moment) == text


moments = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))


@given(moments)
def test_what_is_written_is_read_back(moment: datetime) -> None:
    assert parse_rfc3339(format_rfc3339(moment)) == moment


@given(moments, st.sampled_from([1, 1000, 1_000_000]))
def test_a_floor_is_at_most_one_grain_below(moment: datetime, micros: int) -> None:
    grain = timedelta(microseconds=micros)
    floor = floor_to(moment, grain)
    assert floor <= moment < floor + grain
    assert floor.microsecond % micros == 0


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (1_768_471_200_000_000_000, "2026-01-15T10:00:00.000000000Z"),
        (1_768_471_200_123_456_789, "2026-01-15T10:00:00.123456789Z"),
        (0, ""),
        (-1, ""),
        (300_000_000_000_000_000_000, ""),
    ],
)
def test_nanoseconds_since_1970_are_written_with_all_digits(nanos: int, text: str) -> None:
    assert format_unix_nanos(nanos) == text
    assert from_unix_nanos(nanos) == parse_rfc3339(text)
