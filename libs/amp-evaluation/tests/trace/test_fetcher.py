"""The fetcher against a platform on real sockets that filters spans, fails and falls short as the real one does."""

from __future__ import annotations

import gc
import json
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations, islice
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loopback import (
    Fault,
    Platform,
    Request,
    Response,
    StoredTrace,
    bare,
    broken,
    from_ns,
    series,
    simple,
    span,
    status,
    to_ns,
    trace_id,
    whole,
)
from loopback._store import Resolution

from amp_evaluation.errors import BodyCutError, ConfigError, PeerTimeoutError, RefusedError, TransientError
from amp_evaluation.http import READ_TIMEOUT_S, RetryPolicy
from amp_evaluation.trace.fetcher import OTELTrace, TraceFetcher

START, END = "2026-01-15T00:00:00Z", "2026-01-16T00:00:00Z"
TEN = to_ns("2026-01-15T10:00:00Z")
MS, S = 1_000_000, 1_000_000_000


def fetcher_of(platform: Platform, **over: Any) -> TraceFetcher:
    options: dict[str, Any] = {
        "base_url": platform.traces_url,
        "organization": "acme",
        "project": "shop",
        "agent": "assistant",
        "environment": "production",
        "token_provider": platform.token,
        "retry": RetryPolicy(clock=platform.clock, sleep=platform.sleep),
    }
    return TraceFetcher(**(options | over))


def numbers(traces: Iterator[OTELTrace]) -> list[int]:
    return [int(trace.traceId, 16) for trace in traces]


def limits(platform: Platform) -> list[int]:
    return [int(page.query["limit"]) for page in platform.pages]


# --- every trace, once, in order ----------------------------------------------------------------------


def test_25_traces_in_pages_of_ten_come_once_each_in_order() -> None:
    with Platform(series(25)) as platform:
        fetcher = fetcher_of(platform)
        assert numbers(fetcher.fetch_traces(START, END)) == list(range(25))
        assert limits(platform) == [10, 10, 10]
        report = fetcher.report
        assert (report.found, report.outside, report.requests, report.errors, report.warnings) == (25, 0, 3, [], [])


def test_a_request_says_who_and_when_as_the_service_wants_it() -> None:
    with Platform(series(12)) as platform:
        list(fetcher_of(platform, window_margin_s=30).fetch_traces("2026-01-15T05:30:00+05:30", "2026-01-16"))
        first, second = (page.query for page in platform.pages)
        assert first == {
            "organization": "acme",
            "project": "shop",
            "agent": "assistant",
            "environment": "production",
            "startTime": "2026-01-14T23:59:30Z",
            "endTime": "2026-01-16T00:00:30Z",
            "limit": "10",
            "sortOrder": "asc",
        }
        assert second["startTime"] == "2026-01-15T10:00:09Z"
        assert second["endTime"] == first["endTime"], "an earlier end would cut traces that run past it"


def test_37_traces_at_one_instant_are_37() -> None:
    with Platform(series(37, step_ms=0)) as platform:
        assert sorted(numbers(fetcher_of(platform).fetch_traces(START, END))) == list(range(37))


@pytest.mark.parametrize("both_sides", [False, True], ids=["query only", "both sides"])
@pytest.mark.parametrize("rounds", [False, True], ids=["truncates", "rounds"])
@pytest.mark.parametrize("resolution", ["us", "ms", "s"])
def test_31_traces_within_some_milliseconds_are_31_in_a_store_that(
    resolution: Resolution, rounds: bool, both_sides: bool
) -> None:
    starts = [TEN + 123_100_000] * 9 + [TEN + 123_400_000, TEN + 123_900_000]
    starts += [TEN + 123_900_000 + number * MS for number in range(1, 21)]
    traces = [bare(number, start) for number, start in enumerate(starts)]
    with Platform(traces, resolution=resolution, rounds=rounds, both_sides=both_sides) as platform:
        assert sorted(numbers(fetcher_of(platform).fetch_traces(START, END))) == list(range(31))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    clumps=st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 25)), max_size=4),
    resolution=st.sampled_from(get_args(Resolution)),
    rounds=st.booleans(),
    page_size=st.integers(1, 40),
    prefetch=st.booleans(),
)
def test_every_trace_comes_once_over_real_sockets_too(
    clumps: list[tuple[int, int]], resolution: Resolution, rounds: bool, page_size: int, prefetch: bool
) -> None:
    starts = sorted(TEN + at * MS for at, count in clumps for _ in range(count))
    traces = [bare(number, start) for number, start in enumerate(starts)]
    with Platform(traces, resolution=resolution, rounds=rounds) as platform:
        fetcher = fetcher_of(platform, page_size=page_size)
        fetcher.prefetch = prefetch
        assert sorted(numbers(fetcher.fetch_traces(START, END))) == list(range(len(traces)))
        assert fetcher.report.errors == []


def test_more_at_one_instant_than_a_page_holds_is_an_error_with_the_time_and_the_count() -> None:
    with Platform([bare(number, TEN) for number in range(1010)]) as platform:
        fetcher = fetcher_of(platform)
        assert len(list(fetcher.fetch_traces(START, END))) == 1000
        (error,) = fetcher.report.errors
        assert not error.repeat_may_help
        assert "10 traces" in error
        assert "2026-01-15T10:00:00Z" in error


def test_traces_null_is_no_trace_and_no_error() -> None:
    with Platform() as platform:
        body = b'{"traces": null, "totalCount": 0, "truncated": false}'
        platform.interfere(Fault("traces", lambda *_: Response(200, body)))
        fetcher = fetcher_of(platform)
        assert list(fetcher.fetch_traces(START, END)) == []
        assert (fetcher.report.errors, fetcher.report.requests) == ([], 1)


def odd_ones() -> list[dict[str, Any]]:
    wires = series(10)
    del wires[3]["rootSpanId"]
    wires[5]["spans"] = None
    del wires[7]["spans"][1]["name"]
    return wires


def test_ten_traces_of_which_some_lack_parts_are_ten() -> None:
    body = json.dumps({"traces": odd_ones(), "totalCount": 10, "truncated": False}).encode()
    with Platform() as platform:
        platform.interfere(Fault("traces", lambda *_: Response(200, body), times=2))
        assert numbers(fetcher_of(platform).fetch_traces(START, END)) == list(range(10))


def test_a_trace_without_an_id_or_without_a_time_is_given_out_once() -> None:
    nameless, timeless = simple(1), simple(2)
    nameless["traceId"] = ""
    for item in (timeless, *timeless["spans"]):
        item["startTime"] = "0001-01-01T00:00:00Z"
    body = json.dumps({"traces": [nameless, timeless], "totalCount": 2}).encode()
    with Platform() as platform:
        platform.interfere(Fault("traces", lambda *_: Response(200, body), times=99))
        got = list(fetcher_of(platform, page_size=2).fetch_traces(START, END))
        assert [trace.traceId for trace in got] == ["", trace_id(2)]


def test_a_consumer_that_stops_after_three_traces_costs_no_third_page() -> None:
    with Platform(series(25)) as platform:
        traces = fetcher_of(platform, page_size=2).fetch_traces(START, END)
        assert numbers(islice(traces, 3)) == [0, 1, 2]
        time.sleep(0.05)
        assert len(platform.pages) == 2


def test_nothing_is_asked_before_a_trace_is_wanted() -> None:
    with Platform(series(5)) as platform:
        fetcher_of(platform).fetch_traces(START, END)
        assert platform.pages == []


def test_max_traces_ends_it() -> None:
    with Platform(series(25)) as platform:
        assert numbers(fetcher_of(platform).fetch_traces(START, END, max_traces=12)) == list(range(12))
        assert len(platform.pages) == 2


def test_a_page_size_can_be_given_for_one_fetch() -> None:
    with Platform(series(25)) as platform:
        fetcher = fetcher_of(platform)
        list(fetcher.fetch_traces(START, END, page_size=20))
        assert limits(platform) == [20, 20]


def test_short_pages_are_followed_to_the_end() -> None:
    with Platform(series(30)) as platform:
        platform.observer.shorten = lambda found: found[:3]
        fetcher = fetcher_of(platform)
        assert numbers(fetcher.fetch_traces(START, END)) == list(range(30))
        assert fetcher.report.warnings == []


def test_a_total_that_is_never_reached_ends_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with Platform(series(3)) as platform:
        platform.observer.total_count = lambda total: total + 4
        fetcher = fetcher_of(platform)
        assert numbers(fetcher.fetch_traces(START, END)) == [0, 1, 2]
        (warning,) = fetcher.report.warnings
        assert "counts more traces than it gives" in warning
        assert warning in caplog.text
        assert max(limits(platform)) == 1000


def test_truncated_is_a_warning_in_the_log_and_in_the_report(caplog: pytest.LogCaptureFixture) -> None:
    with Platform(series(15)) as platform:
        platform.fault("truncated")
        fetcher = fetcher_of(platform)
        assert len(list(fetcher.fetch_traces(START, END))) == 15
        assert fetcher.report.truncated == 2
        assert len(fetcher.report.warnings) == 1
        assert "shortened" in caplog.text


# --- the window ---------------------------------------------------------------------------------------


def test_a_run_that_crosses_the_end_comes_whole_and_once_and_the_next_window_leaves_it_out() -> None:
    crossing = simple(1, "2026-01-15T23:59:55Z", seconds=20)
    with Platform([crossing]) as platform:
        fetcher = fetcher_of(platform)
        (trace,) = fetcher.fetch_traces(START, END)
        assert len(trace.spans) == 4
        assert fetcher.report.cut == 0
        assert list(fetcher.fetch_traces(END, "2026-01-17T00:00:00Z")) == []
        assert fetcher.report.outside == 1


def test_a_run_longer_than_the_margin_is_counted_as_cut() -> None:
    begin = to_ns("2026-01-15T23:59:55Z")
    steps = [span(1, 1 + n, begin + n * 20 * S, begin + (n * 20 + 15) * S, parent=0) for n in range(5)]
    with Platform([whole(1, [span(1, 0, begin, begin + 100 * S), *steps])]) as platform:
        fetcher = fetcher_of(platform)
        (trace,) = fetcher.fetch_traces(START, END)
        assert len(trace.spans) == 3
        assert trace.cut
        assert fetcher.report.cut == 1


def test_a_root_that_was_never_exported_is_not_called_cut() -> None:
    orphan = whole(1, [span(1, 2, TEN, TEN + S, parent=0), span(1, 3, TEN, TEN + S, parent=0)], rootSpanId="")
    with Platform([orphan]) as platform:
        fetcher = fetcher_of(platform)
        assert len(list(fetcher.fetch_traces(START, END))) == 1
        assert fetcher.report.cut == 0


@pytest.mark.parametrize(
    ("start", "is_in"),
    [
        ("2026-01-15T00:00:00Z", True),
        ("2026-01-14T23:59:59.999999Z", False),
        ("2026-01-15T23:59:59.999999Z", True),
        ("2026-01-16T00:00:00Z", False),
    ],
    ids=["at the start", "just before it", "just before the end", "at the end"],
)
def test_a_trace_belongs_to_the_window_in_which_it_starts(start: str, is_in: bool) -> None:
    with Platform([bare(1, to_ns(start))]) as platform:
        fetcher = fetcher_of(platform)
        assert numbers(fetcher.fetch_traces(START, END)) == ([1] if is_in else [])
        assert (fetcher.report.found, fetcher.report.outside) == (int(is_in), int(not is_in))


def test_the_first_copy_of_a_trace_wins_over_the_fragments_that_follow() -> None:
    inner = [span(1, index, TEN + index * S, TEN + index * S + MS, parent=0) for index in range(1, 60)]
    long = whole(1, [span(1, 0, TEN, TEN + 60 * S), *inner])
    with Platform([long, *(bare(2 + n, TEN + n * 900 * MS) for n in range(60))]) as platform:
        got = list(fetcher_of(platform).fetch_traces(START, END))
        assert sorted(int(trace.traceId, 16) for trace in got) == list(range(1, 62))
        assert [len(trace.spans) for trace in got if trace.traceId == trace_id(1)] == [60]


def test_many_long_runs_at_once_cost_few_pages() -> None:
    """Once their starts are read, pages hold nothing but what they still do: half a minute of it, a span a second."""

    def run(number: int) -> dict[str, Any]:
        begin = TEN + number * MS
        inner = [span(number, k, begin + k * S, begin + k * S + MS, parent=0) for k in range(1, 30)]
        return whole(number, [span(number, 0, begin, begin + 30 * S), *inner])

    with Platform([run(number) for number in range(100)]) as platform:
        assert numbers(fetcher_of(platform).fetch_traces(START, END)) == list(range(100))
        assert len(limits(platform)) < 30


@pytest.mark.parametrize(
    ("now", "asked"),
    [("2026-01-16T00:00:20Z", "2026-01-16T00:00:20Z"), ("2026-01-15T12:00:00Z", "2026-01-16T00:00:00Z")],
    ids=["the margin ends now", "the window's own end stays"],
)
def test_the_margin_does_not_reach_into_the_future(now: str, asked: str) -> None:
    with Platform(series(1)) as platform:
        moment = datetime.fromisoformat(now)
        list(fetcher_of(platform, now=lambda: moment).fetch_traces(START, END))
        assert platform.pages[0].query["endTime"] == asked


def test_what_lies_past_the_window_is_not_read_to_its_end() -> None:
    late = [bare(100 + n, to_ns(END) + 10 * S + n * MS) for n in range(200)]
    with Platform([bare(1, to_ns(END) - S), *late]) as platform:
        assert numbers(fetcher_of(platform).fetch_traces(START, END)) == [1]
        assert len(platform.pages) == 1


def test_a_window_over_30_days_is_split_and_each_trace_comes_once() -> None:
    begin = to_ns("2026-01-01T00:00:00Z")
    day = 24 * 3600 * S
    traces = [simple(n, begin + n * day // 2, seconds=100) for n in range(160)]
    with Platform(traces) as platform:
        fetcher = fetcher_of(platform, page_size=100)
        assert numbers(fetcher.fetch_traces("2026-01-01", "2026-03-22")) == list(range(160))
        spans = [to_ns(page.query["endTime"]) - to_ns(page.query["startTime"]) for page in platform.pages]
        assert max(spans) <= 30 * day
        assert fetcher.report.errors == []


@pytest.mark.parametrize(
    ("start", "end", "slices"),
    [
        ("2026-01-15T00:00:00Z", "9999-12-31T23:59:59Z", 1),
        ("2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z", 1),
        ("2025-12-01T00:00:00Z", "9999-12-31T23:59:59Z", 2),
        ("2100-01-01T00:00:00Z", "2200-01-01T00:00:00Z", 1),
    ],
)
def test_an_end_in_the_far_future_costs_no_requests(start: str, end: str, slices: int) -> None:
    now = datetime(2026, 1, 20, tzinfo=UTC)
    with Platform() as platform:
        assert list(fetcher_of(platform, now=lambda: now).fetch_traces(start, end)) == []
        assert len(platform.pages) == slices


def test_a_fragment_in_the_next_slice_of_a_long_window_is_no_second_copy() -> None:
    border = to_ns("2026-01-31T00:00:00Z") - 120 * S
    begin = border - 100 * S
    long = whole(1, [span(1, 0, begin, border + 30 * S), span(1, 1, border + 5 * S, border + 6 * S, parent=0)])
    with Platform([long]) as platform:
        got = list(fetcher_of(platform).fetch_traces("2026-01-01", "2026-02-10"))
        assert [len(trace.spans) for trace in got] == [2]
        assert len(platform.pages) == 2


@pytest.mark.parametrize(
    ("start", "end"),
    [("2026-01-16", "2026-01-15"), ("2026-01-15", "2026-01-15"), ("yesterday", "2026-01-15"), (None, "2026-01-15")],
)
def test_a_window_that_is_none_is_refused_at_once(start: Any, end: str) -> None:
    with Platform() as platform, pytest.raises(ValueError, match="start_time"):
        fetcher_of(platform).fetch_traces(start, end)


def test_datetimes_are_as_good_as_texts() -> None:
    with Platform(series(3)) as platform:
        window = (datetime(2026, 1, 15, tzinfo=UTC), datetime(2026, 1, 16))
        assert numbers(fetcher_of(platform).fetch_traces(*window)) == [0, 1, 2]


# --- faults -------------------------------------------------------------------------------------------


def test_a_503_on_page_two_costs_one_retry_line(caplog: pytest.LogCaptureFixture) -> None:
    with Platform(series(25)) as platform:
        platform.fault("export_503")
        assert numbers(fetcher_of(platform).fetch_traces(START, END)) == list(range(25))
        assert [record.message for record in caplog.records] == ["traces API: HTTP 503, retry 1 of 3 in 2 s"]


SURVIVED = ("export_503", "export_429", "export_401", "export_cut", "export_reset", "export_html", "page_500")


@pytest.mark.parametrize("pair", [*((name,) for name in SURVIVED), *combinations(SURVIVED, 2)], ids="+".join)
def test_faults_that_pass_cost_no_trace(pair: tuple[str, ...]) -> None:
    with Platform(series(25)) as platform:
        for name in pair:
            platform.fault(name)
        expected = [n for n in range(25) if n != 12] if "page_500" in pair else list(range(25))
        fetcher = fetcher_of(platform)
        assert numbers(fetcher.fetch_traces(START, END)) == expected
        assert len(fetcher.report.errors) == ("page_500" in pair)


@pytest.mark.parametrize(
    ("fault", "kind", "text", "before"),
    [
        ("export_403", RefusedError, "HTTP 403", 0),
        ("export_404", RefusedError, "HTTP 404", 0),
        ("export_503_forever", TransientError, "HTTP 503", 10),
        ("export_html_forever", RefusedError, "check the endpoint", 0),
    ],
)
def test_a_fault_that_stays_ends_the_walk_after_what_came_before(
    fault: str, kind: type[Exception], text: str, before: int
) -> None:
    with Platform(series(25)) as platform:
        platform.fault(fault)
        got = []
        with pytest.raises(kind, match=text) as caught:
            got.extend(fetcher_of(platform).fetch_traces(START, END))
        assert len(got) == before
        assert "127.0.0.1" not in str(caught.value)


def test_one_trace_that_cannot_be_assembled_costs_itself_and_its_gap_is_reported() -> None:
    with Platform([bare(n, TEN + n * S) for n in range(25)]) as platform:
        platform.break_traces(trace_id(12))
        fetcher = fetcher_of(platform)
        assert numbers(fetcher.fetch_traces(START, END)) == [n for n in range(25) if n != 12]
        (error,) = fetcher.report.errors
        assert not error.repeat_may_help
        assert "2026-01-15T10:00:11Z" in error
        assert "2026-01-15T10:00:12.000001Z" in error
        assert platform.naps == [2.0, 4.0, 8.0], "only the page is retried, not the probes"
        assert [limit for limit in limits(platform) if limit != 1][-1] == 10


def test_a_bad_trace_that_lasts_is_waited_for_once_and_costs_no_other_trace() -> None:
    """Each of its spans makes pages fail, long after its start."""
    inner = [span(3, k, TEN + k * S, TEN + k * S + MS, parent=0) for k in range(4, 20)]
    bad = whole(3, [span(3, 0, TEN + 3 * S, TEN + 20 * S), *inner])
    with Platform([bad, *(bare(n, TEN + n * S + MS * 500) for n in range(25) if n != 3)]) as platform:
        platform.break_traces(trace_id(3))
        fetcher = fetcher_of(platform)
        assert numbers(fetcher.fetch_traces(START, END)) == [n for n in range(25) if n != 3]
        assert platform.naps == [2.0, 4.0, 8.0]
        assert len(fetcher.report.errors) == 11
        assert "6 more such stretches" in fetcher.report.errors[-1]


def test_what_a_page_never_holds_is_told_and_not_scored_by_its_later_spans() -> None:
    """Two of five at one instant never come, whatever the limit; but what they do ten seconds later does."""

    def long(number: int) -> dict[str, Any]:
        later = TEN + 10 * S + number * MS
        return whole(number, [span(number, 0, TEN, TEN + 20 * S), span(number, 1, later, later + S, parent=0)])

    def at_most_three(platform: Platform, request: Request, answer: Any) -> Response:
        page = json.loads(answer().body)
        return Response.of(200, {**page, "traces": page["traces"][:3]})

    with Platform([*(long(number) for number in range(5)), bare(9, TEN + S)]) as platform:
        platform.interfere(Fault("traces", at_most_three, times=999))
        fetcher = fetcher_of(platform)
        assert numbers(fetcher.fetch_traces(START, END)) == [0, 1, 2, 9]
        assert ["2 traces start where pages can't be read" in error for error in fetcher.report.errors] == [True]
        assert ["it counts more traces than it gives" in text for text in fetcher.report.warnings] == [True]


def test_an_outage_after_a_gap_is_waited_out() -> None:
    with Platform([bare(n, TEN + n * S) for n in range(60)]) as platform:
        platform.break_traces(trace_id(12))
        fetcher = fetcher_of(platform)
        traces = fetcher.fetch_traces(START, END)
        assert numbers(islice(traces, 20)) == [n for n in range(21) if n != 12]
        platform.interfere(
            Fault("traces", lambda p, request, answer: answer() if len(p.naps) > 4 else Response(500), 99)
        )
        assert numbers(traces) == list(range(21, 60))
        assert platform.naps == [2.0, 4.0, 8.0, 2.0, 4.0]
        assert len(fetcher.report.errors) == 1


def test_what_a_gap_leaves_of_a_trace_is_not_taken_for_all_of_it() -> None:
    """The cursor steps past its root, and the spans after that come as a trace of their own."""
    torn = whole(1, [span(1, 0, TEN + MS, TEN + 9 * S), span(1, 1, TEN + 8 * S, TEN + 9 * S, parent=0)])
    bad = whole(0, [span(0, 0, TEN, TEN + 5 * S), span(0, 1, TEN + 4 * S, TEN + 5 * S, parent=0)])
    with Platform([bad, torn, bare(2, TEN + 10 * S)]) as platform:
        platform.break_traces(trace_id(0))
        fetcher = fetcher_of(platform, page_size=2)
        assert numbers(fetcher.fetch_traces(START, END)) == [2]
        gap, rest = fetcher.report.errors
        assert "2026-01-15T10:00:04.000001Z" in gap
        assert "1 traces start where pages can't be read" in rest
        assert not rest.repeat_may_help


def test_a_root_that_was_never_exported_is_evaluated_where_there_is_no_gap() -> None:
    rootless = whole(1, [span(1, 0, TEN, TEN + S), span(1, 1, TEN, TEN + S, parent=0)])
    del rootless["spans"][0]
    with Platform([rootless, bare(2, TEN + S)]) as platform:
        fetcher = fetcher_of(platform)
        assert numbers(fetcher.fetch_traces(START, END)) == [1, 2]
        assert fetcher.report.errors == []


@pytest.mark.parametrize("bad", [{0}, {1}, {24}, {3, 5}, {0, 1, 23, 24}], ids=str)
def test_all_traces_beside_the_bad_ones_come(bad: set[int]) -> None:
    with Platform([bare(n, TEN + n * S) for n in range(25)]) as platform:
        platform.break_traces(*map(trace_id, bad))
        fetcher = fetcher_of(platform)
        assert numbers(fetcher.fetch_traces(START, END)) == [n for n in range(25) if n not in bad]
        assert fetcher.report.errors != []


def test_a_bad_trace_in_the_margin_is_no_error_of_this_run() -> None:
    starts = [TEN, to_ns(END) + 1 * S, to_ns(END) + 2 * S, to_ns(END) + 3 * S]
    with Platform([bare(1 + n, start) for n, start in enumerate(starts)]) as platform:
        platform.break_traces(trace_id(3), trace_id(4))
        fetcher = fetcher_of(platform)
        assert numbers(fetcher.fetch_traces(START, END)) == [1]
        assert fetcher.report.errors == []


def test_a_store_that_is_down_for_good_is_an_outage_and_not_a_gap() -> None:
    with Platform(series(25)) as platform:
        platform.interfere(Fault("traces", status(500), 1 << 30, after=1))
        fetcher = fetcher_of(platform)
        got = []
        with pytest.raises(TransientError, match=r"HTTP 500 for every page from 2026-01-15T10:00:09Z on"):
            got.extend(fetcher.fetch_traces(START, END))
        assert len(got) == 10
        assert fetcher.report.errors == []
        assert len(platform.pages) < 60


def test_a_store_that_fails_past_the_window_fails_nobody() -> None:
    with Platform(bare(n, to_ns(END) - S + n * 200 * MS) for n in range(20)) as platform:
        platform.interfere(Fault("traces", status(500), 1 << 30, after=1))
        assert numbers(fetcher_of(platform).fetch_traces(START, END)) == [0, 1, 2, 3, 4]


def test_a_503_among_the_probes_is_retried_and_misleads_nobody() -> None:
    with Platform([bare(n, TEN + n * S) for n in range(25)]) as platform:
        platform.break_traces(trace_id(12))
        for after in (8, 9, 13, 20):
            platform.interfere(Fault("traces", status(503), after=after))
        fetcher = fetcher_of(platform)
        assert numbers(fetcher.fetch_traces(START, END)) == [n for n in range(25) if n != 12]
        assert "before 2026-01-15T10:00:12.000001Z" in fetcher.report.errors[0]


def test_after_a_cut_body_the_page_is_halved_at_once_and_grows_again() -> None:
    with Platform(series(150)) as platform:
        platform.fault("export_cut")
        assert numbers(fetcher_of(platform).fetch_traces(START, END)) == list(range(150))
        assert limits(platform)[:4] == [10, 10, 5, 5]
        assert limits(platform)[-1] == 10


@pytest.mark.parametrize("code", [504, 408])
def test_a_timeout_that_a_gateway_tells_of_halves_the_page_too(code: int) -> None:
    with Platform(series(25)) as platform:
        platform.interfere(Fault("traces", status(code), after=1))
        assert numbers(fetcher_of(platform).fetch_traces(START, END)) == list(range(25))
        assert limits(platform)[:4] == [10, 10, 5, 5]


@pytest.mark.parametrize("how", ["500", "cut", "slow"])
def test_an_identity_provider_that_fails_is_no_page_that_cannot_be_read(how: str) -> None:
    failures = {
        "500": TransientError("identity provider", "HTTP 500", status=500),
        "cut": BodyCutError("identity provider", "the reply ended early"),
        "slow": PeerTimeoutError("identity provider", "no reply in time"),
    }
    asked: list[str] = []

    def token() -> str:
        asked.append(how)
        if len(asked) > 1:
            raise failures[how]
        return platform.token()

    with Platform(series(25)) as platform:
        fetcher = fetcher_of(platform, token_provider=token)
        traces = fetcher.fetch_traces(START, END)
        assert len(list(islice(traces, 9))) == 9
        with pytest.raises(TransientError, match=r"^identity provider: [^;]*$") as caught:
            list(traces)
        assert "for every page" not in str(caught.value)
        assert (len(asked), limits(platform)) == (5, [10]), "one page, tried four times, at its full size"


def test_after_a_timeout_the_page_is_halved_at_once() -> None:
    with Platform(series(12)) as platform:
        slow = Fault("traces", lambda _p, _r, answer: replace(answer(), delay_s=1.5))
        platform.interfere(slow)
        assert len(list(fetcher_of(platform, timeout=0.5).fetch_traces(START, END))) == 12
        assert limits(platform)[:2] == [10, 5]


def test_pages_that_are_always_cut_are_walked_around() -> None:
    with Platform([bare(n, TEN + n * S) for n in range(12)]) as platform:
        cut = broken("cut")

        def spoil(platform: Platform, request: Request, answer: Any) -> Response:
            response: Response = answer()
            return cut(platform, request, lambda: response) if trace_id(6).encode() in response.body else response

        platform.interfere(Fault("traces", spoil, 1 << 30))
        fetcher = fetcher_of(platform)
        assert numbers(fetcher.fetch_traces(START, END)) == [n for n in range(12) if n != 6]
        assert len(fetcher.report.errors) == 1


def test_a_body_that_ends_inside_the_json_is_a_cut_body_and_not_a_wrong_endpoint() -> None:
    with Platform(series(12)) as platform:

        def half(platform: Platform, request: Request, answer: Any) -> Response:
            return Response(200, answer().body[:-200].rstrip(b"} \n"))

        platform.interfere(Fault("traces", half, 1))
        assert len(list(fetcher_of(platform).fetch_traces(START, END))) == 12
        assert limits(platform)[:2] == [10, 5]


def test_a_page_within_the_time_limit_is_no_failure() -> None:
    assert READ_TIMEOUT_S == 30
    with Platform(series(5)) as platform:
        platform.observer.page_delay_s = 0.2
        assert len(list(fetcher_of(platform, timeout=5).fetch_traces(START, END))) == 5
        assert platform.naps == []


def test_a_service_that_never_answers_in_time_is_transient() -> None:
    with Platform(series(5)) as platform:
        platform.observer.page_delay_s = 1.5
        with pytest.raises(PeerTimeoutError):
            list(fetcher_of(platform, timeout=0.3).fetch_traces(START, END))
        assert limits(platform) == [10, 5, 2, 2]


# --- tokens -------------------------------------------------------------------------------------------


def test_tokens_that_expire_during_the_walk_are_renewed() -> None:
    with Platform(series(25)) as platform:
        platform.idp.life_s = 0.5
        held = [platform.token()]

        class Tokens:
            def __call__(self) -> str:
                return held[-1]

            def invalidate(self, token: str) -> None:
                assert token == held[-1]
                held.append(platform.token())

        got = []
        for trace in fetcher_of(platform, token_provider=Tokens()).fetch_traces(START, END):
            got.append(int(trace.traceId, 16))
            platform.sleep(0.3)
        assert got == list(range(25))
        assert len(held) > 2


def ton(number: int) -> dict[str, Any]:
    """A trace of 17 MB."""
    return bare(number, TEN + number * S) | {"input": "x" * (17 * 1024 * 1024)}


# --- weight and memory --------------------------------------------------------------------------------


def test_pages_shrink_to_what_heavy_traces_allow_and_never_below_two() -> None:
    with Platform(ton(n) for n in range(4)) as platform:
        platform.servers["traces"].keep_requests = True
        fetcher = fetcher_of(platform)
        got = 0
        for trace in fetcher.fetch_traces(START, END):
            got += 1
            assert trace.size > 16 * 1024 * 1024
            del trace
        assert got == 4
        assert limits(platform)[0] == 10, "nothing is known yet, and a reply too heavy is not read to its end"
        assert set(limits(platform)[1:]) == {2}
        assert platform.naps == []


def test_traces_of_two_megabytes_come_about_sixteen_at_once() -> None:
    text = "x" * 2_000_000
    with Platform(bare(n, TEN + n * S) | {"input": text} for n in range(40)) as platform:
        assert len(list(fetcher_of(platform, page_size=30).fetch_traces(START, END))) == 40
        assert limits(platform)[0] == 30
        assert all(6 <= limit <= 9 for limit in limits(platform)[2:])


def test_a_page_is_let_go_before_the_next_one_is_read() -> None:
    with Platform(series(30)) as platform:
        alive: list[weakref.ref[OTELTrace]] = []
        left: list[int] = []

        def look(platform: Platform, request: Request, answer: Any) -> Response:
            left.append(sum(ref() is not None for ref in alive))
            return answer()

        platform.interfere(Fault("traces", look, 99))
        gc.disable()
        try:
            for trace in fetcher_of(platform).fetch_traces(START, END):
                alive.append(weakref.ref(trace))
                del trace
        finally:
            gc.enable()
        assert len(alive) == 30
        assert set(left) == {0}


# --- one page ahead -----------------------------------------------------------------------------------


def pages_asked(platform: Platform, at_least: int) -> int:
    deadline = time.monotonic() + 2
    while len(platform.pages) < at_least and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    return len(platform.pages)


def test_with_prefetch_one_page_is_asked_for_ahead_and_no_more() -> None:
    with Platform(series(50)) as platform:
        fetcher = fetcher_of(platform)
        fetcher.prefetch = True
        traces = fetcher.fetch_traces(START, END)
        next(traces)
        assert pages_asked(platform, 2) == 2
        assert numbers(traces) == list(range(1, 50))


def test_without_prefetch_no_page_is_asked_for_ahead() -> None:
    with Platform(series(50)) as platform:
        next(fetcher_of(platform).fetch_traces(START, END))
        assert pages_asked(platform, 1) == 1


def test_no_page_is_asked_for_ahead_of_a_heavy_one() -> None:
    with Platform(ton(n) for n in range(5)) as platform:
        fetcher = fetcher_of(platform)
        fetcher.prefetch = True
        traces = fetcher.fetch_traces(START, END)
        next(traces)
        assert pages_asked(platform, 2) == 2, "the first was too heavy, the second is in hand"


def test_a_fault_of_the_page_ahead_comes_after_the_traces_before_it() -> None:
    with Platform(series(25)) as platform:
        platform.fault("export_503_forever")
        fetcher = fetcher_of(platform)
        fetcher.prefetch = True
        got = []
        with pytest.raises(TransientError, match="HTTP 503"):
            got.extend(fetcher.fetch_traces(START, END))
        assert len(got) == 10


# --- the rest of the interface --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["base_url", "organization", "project", "agent", "environment"])
@pytest.mark.parametrize("value", ["", "  ", None])
def test_each_text_is_required(name: str, value: Any) -> None:
    with Platform() as platform, pytest.raises(ValueError, match=name):
        fetcher_of(platform, **{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("page_size", 0),
        ("page_size", "ten"),
        ("token_provider", "a token"),
        ("window_margin_s", -1),
        ("window_margin_s", 1_296_000),
    ],
)
def test_a_setting_out_of_range_is_refused(name: str, value: Any) -> None:
    with Platform() as platform, pytest.raises(ConfigError, match=name):
        fetcher_of(platform, **{name: value})


def test_a_trace_is_found_by_its_id() -> None:
    with Platform(series(150)) as platform:
        now = datetime(2026, 1, 20, tzinfo=UTC)
        fetcher = fetcher_of(platform, now=lambda: now)
        found = fetcher.fetch_trace_by_id(trace_id(120))
        assert found is not None
        assert found.traceId == trace_id(120)
        assert limits(platform) == [100, 100]
        assert fetcher.fetch_trace_by_id("unknown", start_time=START, end_time=END) is None


@pytest.mark.parametrize("answer", [None, Response(503), Response(404), Response(breakage="reset")])
def test_the_health_check_asks_once(answer: Response | None) -> None:
    with Platform() as platform:
        fetcher = fetcher_of(platform)
        if answer is not None:
            platform.servers["traces"]._handler = lambda request: answer
        assert fetcher.health_check() is (answer is None)
        assert [request.path for request in platform.requests("traces")] == ["/health"]
        assert platform.naps == []


def test_two_fetches_at_once_do_not_mix() -> None:
    with Platform(series(25)) as platform:
        fetcher = fetcher_of(platform)
        first, second = fetcher.fetch_traces(START, END), fetcher.fetch_traces(START, END)
        assert numbers(iter([t for pair in zip(first, second, strict=True) for t in pair])) == [
            n for n in range(25) for _ in range(2)
        ]


def test_stored_traces_and_wire_dicts_are_served_alike() -> None:
    with Platform([StoredTrace.of(simple(1)), simple(2)]) as platform:
        assert numbers(fetcher_of(platform).fetch_traces(START, END)) == [1, 2]
        assert from_ns(to_ns("2026-01-15T10:00:00.000000001Z")) == "2026-01-15T10:00:00.000000001Z"
