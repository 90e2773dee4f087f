"""The walk through a window, driven without sockets against a store that filters spans as the real one does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback import StoredTrace, TraceStore, from_ns, span, to_ns, whole
from loopback._store import Found, Resolution

from amp_evaluation._time import parse_rfc3339
from amp_evaluation.trace._asks import Ask, Facts
from amp_evaluation.trace._page_size import MAX_PAGE
from amp_evaluation.trace._paging import Walk

DAY = to_ns("2026-01-15T12:00:00Z")
START = datetime(2026, 1, 15, 11, 59, tzinfo=UTC)
END = datetime(2026, 1, 15, 12, 10, tzinfo=UTC)
MS = 1_000_000
MANY_REQUESTS = 3000


@dataclass
class Run:
    """What one walk did."""

    walk: Walk
    ids: list[str] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)


def stored(number: int, start: int, *, length: int = 0, inner: tuple[int, ...] = ()) -> StoredTrace:
    """A trace whose root has ``length`` ns, with short spans that start at ``inner`` ns after it."""
    spans = [span(number, 0, start, start + length)]
    spans += [span(number, 1 + i, start + at, start + min(length, at + 5), parent=0) for i, at in enumerate(inner)]
    return StoredTrace.of(whole(number, spans))


def drive(
    store: TraceStore,
    page_size: int = 10,
    *,
    fails: Callable[[list[Found], Ask], bool] = lambda found, ask: False,
    shorten: Callable[[list[Found]], list[Found]] = lambda found: found,
    total: Callable[[int], int | None] = lambda total: total,
    end: datetime = END,
) -> Run:
    """Walk to the end, giving each page as the traces API would."""
    walk = Walk(start=START, end=end, page_limit=lambda: max(2, page_size))
    run, seen, orders = Run(walk), set[str](), walk.asks()
    ask: Ask | None = next(orders)
    while ask is not None:
        run.asks.append(ask)
        assert len(run.asks) < MANY_REQUESTS, "the walk doesn't end"
        found, count = store.query(to_ns(ask.start.isoformat()), to_ns(end.isoformat()), ask.limit)
        failed = fails(found, ask) or any(group.trace.broken for group in found)
        found = shorten(found)
        ids = [group.trace.trace_id for group in found]
        new = [name for name in ids if name not in seen]
        starts = [parse_rfc3339(from_ns(group.start)) for group in found]
        walk.discarded = False
        try:
            ask = orders.send(None if failed else Facts(ask.limit, ids, starts, len(new), total(count)))
        except StopIteration:
            ask = None
        if not (failed or walk.discarded):
            run.ids += new
            seen.update(new)
    return run


def numbers(run: Run) -> list[int]:
    return [int(name, 16) for name in run.ids]


# --- laws ---------------------------------------------------------------------------------------------

stores = st.builds(
    TraceStore,
    resolution=st.sampled_from(get_args(Resolution)),
    rounds=st.booleans(),
    both_sides=st.booleans(),
    order_ms=st.booleans(),
)
spacings = st.sampled_from([0, 1, 700, 99_000, MS, 7 * MS, 160 * MS, 900 * MS, 4000 * MS])
clumps = st.lists(st.tuples(st.integers(0, 5_000_000_000), st.integers(1, 45), spacings), min_size=0, max_size=5)
lengths = st.sampled_from([0, 3 * MS, 900 * MS, 6000 * MS])


def lay(clumped: list[tuple[int, int, int]], length: int) -> list[StoredTrace]:
    """Clumps of traces: where each begins, how many, how far apart."""
    starts = [DAY + begin + index * apart for begin, count, apart in clumped for index in range(count)]
    inner = (0, length // 3, length // 2) if length else ()
    return [stored(number, start, length=length, inner=inner) for number, start in enumerate(sorted(starts))]


@settings(max_examples=150, deadline=None)
@given(store=stores, clumped=clumps, length=lengths, page_size=st.integers(1, 60))
def test_every_trace_comes_once_whatever_the_resolution_the_page_size_and_the_clumping(
    store: TraceStore, clumped: list[tuple[int, int, int]], length: int, page_size: int
) -> None:
    store.add(lay(clumped, length))
    run = drive(store, page_size)
    assert sorted(run.ids) == sorted(trace.trace_id for trace in store.traces)
    assert run.walk.gaps == []
    assert not run.walk.dead


@settings(max_examples=60, deadline=None)
@given(
    clumped=clumps,
    page_size=st.integers(2, 30),
    broken=st.sets(st.integers(0, 60), max_size=4),
    resolution=st.sampled_from(get_args(Resolution)),
)
def test_with_traces_that_fail_the_walk_ends_and_what_is_missing_lies_in_a_reported_gap(
    clumped: list[tuple[int, int, int]], page_size: int, broken: set[int], resolution: Resolution
) -> None:
    store = TraceStore(resolution=resolution)
    store.add(lay(clumped, 0))
    for index in broken & set(range(len(store.traces))):
        store.traces[index].broken = True
    run = drive(store, page_size)
    missing = [trace for trace in store.traces if trace.trace_id not in run.ids]
    for trace in missing:
        start = parse_rfc3339(from_ns(trace.start))
        assert start is not None
        slack = timedelta(seconds=1)  # a store of full seconds can't be asked more finely
        assert any(gap.start - slack <= start < gap.end + slack for gap in run.walk.gaps), (start, run.walk.gaps)
    bad = [index for index, trace in enumerate(store.traces) if trace.broken]
    # a failing page doesn't tell which trace fails it: a good one between two bad ones may be stepped over, and then
    # lies in the reported gap
    beside_each_other = bad == list(range(bad[0], bad[0] + len(bad))) if bad else True
    told_apart = len({trace.start // 1000 for trace in store.traces}) == len(store.traces)
    if resolution == "ns" and told_apart and beside_each_other:
        assert all(trace.broken for trace in missing), "traces that can be told apart cost only themselves"
    assert {trace.trace_id for trace in store.traces if trace.broken} <= {trace.trace_id for trace in missing}


@settings(max_examples=60, deadline=None)
@given(clumped=clumps, page_size=st.integers(2, 30), most=st.integers(1, 9), seed=st.randoms(use_true_random=False))
def test_it_ends_with_a_service_that_sends_less_than_it_was_asked_for(
    clumped: list[tuple[int, int, int]], page_size: int, most: int, seed: object
) -> None:
    store = TraceStore()
    store.add(lay(clumped, 0))
    run = drive(store, page_size, shorten=lambda found: found[:most])
    assert len(run.ids) == len(set(run.ids))


def test_ids_come_in_ascending_order_of_start() -> None:
    store = TraceStore(order_ms=False)
    store.add(lay([(0, 40, 700), (10 * MS, 30, 0), (20 * MS, 40, 7 * MS)], 0))
    run = drive(store)
    starts = {trace.trace_id: trace.start for trace in store.traces}
    assert [starts[name] for name in run.ids] == sorted(starts.values())


# --- cases --------------------------------------------------------------------------------------------

CASE_STARTS = (
    [to_ns("2026-01-15T12:00:00.123100Z")] * 9
    + [to_ns("2026-01-15T12:00:00.123400Z"), to_ns("2026-01-15T12:00:00.123900Z")]
    + [to_ns("2026-01-15T12:00:00.124900Z") + index * MS for index in range(20)]
)


@pytest.mark.parametrize("both_sides", [False, True], ids=["query only", "both sides"])
@pytest.mark.parametrize("rounds", [False, True], ids=["truncates", "rounds"])
@pytest.mark.parametrize("resolution", ["us", "ms", "s"])
def test_nine_one_one_and_twenty_traces_are_31_in_a_store_that(
    resolution: Resolution, rounds: bool, both_sides: bool
) -> None:
    store = TraceStore(resolution=resolution, rounds=rounds, both_sides=both_sides)
    store.add(stored(number, start) for number, start in enumerate(CASE_STARTS))
    assert sorted(numbers(drive(store))) == list(range(31))


def test_a_store_that_rounds_the_query_up_to_the_next_second_loses_nothing() -> None:
    store = TraceStore(resolution="s", rounds=True, both_sides=False)
    store.add(stored(number, DAY + number * 70 * MS) for number in range(50))
    assert numbers(drive(store)) == list(range(50))


def test_a_fragment_of_the_last_trace_does_not_pass_for_it_where_the_query_is_rounded_up() -> None:
    store = TraceStore(resolution="s", rounds=True, both_sides=False)
    long_ones = [stored(n, DAY + n * 70 * MS, length=9_000 * MS, inner=(5_000 * MS,)) for n in range(30)]
    store.add(long_ones)
    assert numbers(drive(store)) == list(range(30))


def test_a_trace_that_vanishes_meanwhile_ends_nothing() -> None:
    store = TraceStore()
    store.add(stored(number, DAY + 500 * MS + number * 70 * MS) for number in range(40))
    pages = iter(range(99))

    def without_the_last_one(found: list[Found]) -> list[Found]:
        return [group for group in found if group.trace.trace_id != f"{9:032x}"] if next(pages) else found

    assert numbers(drive(store, shorten=without_the_last_one)) == list(range(40))


def test_fragments_of_a_long_trace_do_not_hide_the_ones_after_it() -> None:
    store = TraceStore()
    long_ones = [stored(n, DAY + n, length=8_000 * MS, inner=tuple(range(MS, 7_000 * MS, MS * 50))) for n in range(12)]
    store.add([*long_ones, *(stored(100 + n, DAY + n * 300 * MS) for n in range(20))])
    assert sorted(numbers(drive(store))) == [*range(12), *range(100, 120)]


@pytest.mark.parametrize(
    ("count", "limits"),
    [(37, [10, 10, 20, 40]), (900, [10, 10, 20, 40, 80, 160, 320, 640, 1000])],
    ids=["37 at one instant: the limit doubles", "900 at one instant: up to 1,000"],
)
def test_a_tie_is_met_by_larger_limits(count: int, limits: list[int]) -> None:
    store = TraceStore()
    store.add(stored(number, DAY) for number in range(count))
    run = drive(store)
    assert len(run.ids) == count
    assert [ask.limit for ask in run.asks] == limits


def test_the_limit_goes_back_to_the_page_size_once_the_cursor_moves() -> None:
    store = TraceStore()
    store.add([stored(n, DAY) for n in range(15)] + [stored(100 + n, DAY + n * 1000 * MS) for n in range(1, 30)])
    limits = [ask.limit for ask in drive(store).asks]
    assert max(limits) == 20
    assert limits[-1] == 10


def test_more_than_a_thousand_at_one_instant_are_a_gap_with_the_time_and_the_count() -> None:
    store = TraceStore()
    store.add([stored(n, DAY) for n in range(1300)] + [stored(2000 + n, DAY + (n + 2) * 1000 * MS) for n in range(5)])
    run = drive(store)
    assert len(run.ids) == 1005
    (gap,) = run.walk.gaps
    assert (gap.start, gap.lost, gap.failing) == (datetime(2026, 1, 15, 12, tzinfo=UTC), 300, False)


def test_a_thousand_within_one_millisecond_and_more_are_told_apart_by_a_store_that_compares_finely() -> None:
    store = TraceStore(order_ms=False)
    store.add([stored(n, DAY + n * 500) for n in range(1900)] + [stored(2000, DAY + 3000 * MS)])
    run = drive(store)
    assert run.walk.gaps == []
    assert len(run.ids) == 1901


def test_more_than_a_thousand_in_one_millisecond_of_a_store_that_sorts_no_finer_end_with_a_count_of_the_lost() -> None:
    store = TraceStore(order_ms=True)
    store.add([stored(n, DAY + (n * 7919 % 1900) * 500) for n in range(1900)] + [stored(2000, DAY + 3000 * MS)])
    run = drive(store)
    assert len(run.asks) < 100
    lost = sum(gap.lost or 0 for gap in run.walk.gaps)
    assert (len(run.ids), lost) == (1101, 800)
    assert run.ids[-1] == store.traces[-1].trace_id


def test_a_service_without_total_counts_is_read_until_a_short_page() -> None:
    store = TraceStore()
    store.add(stored(n, DAY + n * MS) for n in range(25))
    run = drive(store, total=lambda count: None)
    assert len(run.ids) == 25
    assert len(run.asks) == 3


def test_a_service_that_counts_more_than_it_gives_is_asked_for_up_to_a_thousand_and_then_left() -> None:
    store = TraceStore()
    store.add(stored(n, DAY + n * MS) for n in range(3))
    run = drive(store, total=lambda count: count + 2)
    assert len(run.ids) == 3
    assert run.walk.short_of_total
    assert max(ask.limit for ask in run.asks) == MAX_PAGE


def test_short_pages_of_a_service_with_a_cap_of_its_own_are_followed_to_the_end() -> None:
    store = TraceStore()
    store.add(stored(n, DAY + n * 20 * MS) for n in range(50))
    run = drive(store, shorten=lambda found: found[:4])
    assert numbers(run) == list(range(50))
    assert not run.walk.short_of_total


def test_the_cursor_is_floored_to_the_millisecond() -> None:
    store = TraceStore()
    store.add(stored(n, DAY + 123_456_789 + n * 10 * MS) for n in range(12))
    second = drive(store).asks[1].start
    assert second == datetime(2026, 1, 15, 12, 0, 0, 213_000, tzinfo=UTC)


def test_no_page_is_smaller_than_two() -> None:
    store = TraceStore()
    store.add(stored(n, DAY + n * MS) for n in range(9))
    store.traces[4].broken = True
    run = drive(store, 1)
    assert min(ask.limit for ask in run.asks if not ask.probe) == 2
    assert sorted(numbers(run)) == [0, 1, 2, 3, 5, 6, 7, 8]


def test_one_trace_that_fails_costs_only_itself_and_the_gap_is_small() -> None:
    store = TraceStore()
    store.add(stored(n, DAY + n * 100 * MS) for n in range(30))
    store.traces[17].broken = True
    run = drive(store)
    assert numbers(run) == [n for n in range(30) if n != 17]
    (gap,) = run.walk.gaps
    bad = datetime(2026, 1, 15, 12, 0, 1, 700_000, tzinfo=UTC)
    assert gap.failing
    assert gap.start == bad - timedelta(milliseconds=100)
    assert gap.end == bad + timedelta(microseconds=1)
    assert [ask.probe for ask in run.asks].count(False) == 4, "only usual pages are retried"


def test_a_failure_that_was_the_services_own_leaves_no_gap() -> None:
    store = TraceStore()
    store.add(stored(n, DAY + n * 100 * MS) for n in range(30))
    failures = iter([False, True, True, True, True])
    run = drive(store, fails=lambda found, ask: next(failures, False))
    assert sorted(numbers(run)) == list(range(30))
    assert run.walk.gaps == []


def test_a_service_that_fails_from_some_point_on_is_dead_there() -> None:
    store = TraceStore()
    store.add(stored(n, DAY + n * 100 * MS) for n in range(30))
    pages = iter([False])
    run = drive(store, fails=lambda found, ask: next(pages, True))
    assert run.walk.dead
    assert len(run.ids) == 10
    assert run.walk.cursor == datetime(2026, 1, 15, 12, 0, 0, 900_000, tzinfo=UTC)


def test_traces_without_a_readable_time_come_once_and_do_not_stop_the_walk() -> None:
    walk = Walk(start=START, end=END, page_limit=lambda: 2)
    orders = walk.asks()
    next(orders)
    known = datetime(2026, 1, 15, 12, tzinfo=UTC)
    second = orders.send(Facts(2, ["a", "b"], [known, None], 2, 4))
    assert second == Ask(known, 2)
    third = orders.send(Facts(2, ["b", "c"], [None, None], 1, 4))
    assert third == Ask(known, 4, least=3)


def test_it_ends_early_once_traces_start_after_what_is_wanted() -> None:
    walk = Walk(start=START, end=END, page_limit=lambda: 2, enough=datetime(2026, 1, 15, 12, tzinfo=UTC))
    orders = walk.asks()
    next(orders)
    late = datetime(2026, 1, 15, 12, 0, 1, tzinfo=UTC)
    with pytest.raises(StopIteration):
        orders.send(Facts(2, ["a", "b"], [late, late], 2, 400))


def test_a_query_that_is_rounded_up_is_noticed_among_failing_pages_too() -> None:
    store = TraceStore(resolution="s", rounds=True, both_sides=False)
    store.add(stored(number, DAY + 800 * MS + number * 70 * MS) for number in range(40))
    store.traces[36].broken = True
    run = drive(store, 30)
    lost = set(range(40)) - set(numbers(run))
    assert 36 in lost
    for gap in run.walk.gaps:
        lost -= {n for n in lost if gap.start <= starts_at(store, n) < gap.end}
    assert lost == set()


def starts_at(store: TraceStore, number: int) -> datetime:
    (start,) = [trace.start for trace in store.traces if trace.trace_id == f"{number:032x}"]
    moment = parse_rfc3339(from_ns(start))
    assert moment is not None
    return moment


def test_a_failure_that_is_over_at_the_smaller_page_ends_like_any_last_page() -> None:
    store = TraceStore()
    store.add(stored(n, DAY + n * 100 * MS) for n in range(4))
    failures = iter([True])
    run = drive(store, fails=lambda found, ask: next(failures, False))
    assert numbers(run) == [0, 1, 2, 3]
    assert [ask.probe for ask in run.asks] == [False, True]


def test_a_thousand_at_one_instant_and_some_after_it_are_all_read() -> None:
    store = TraceStore()
    store.add([stored(n, DAY) for n in range(1000)] + [stored(1000 + n, DAY + (n + 1) * 100 * MS) for n in range(30)])
    run = drive(store)
    assert len(run.ids) == 1030
    assert run.walk.gaps == []


def test_what_is_lost_without_totals_is_of_unknown_number() -> None:
    store = TraceStore()
    store.add([stored(n, DAY) for n in range(1200)] + [stored(2000, DAY + 3000 * MS)])
    run = drive(store, total=lambda count: None)
    assert len(run.ids) == 1001
    assert [gap.lost for gap in run.walk.gaps] == [None]


def test_a_service_that_always_sends_the_same_thousand_is_given_up_at_the_end_of_the_window() -> None:
    walk = Walk(start=START, end=END, page_limit=lambda: 10)
    orders = walk.asks()
    ask: Ask | None = next(orders)
    asked = 0
    ids = [f"{n:x}" for n in range(MAX_PAGE)]
    while ask is not None:
        asked += 1
        assert asked < 100
        known = asked > 8
        facts = Facts(ask.limit, ids[: ask.limit], [START] * ask.limit, 0 if known else 1, 5000)
        try:
            ask = orders.send(facts)
        except StopIteration:
            ask = None
    (gap,) = walk.gaps
    assert (gap.start, gap.end, gap.lost) == (START, END, None)
