"""How large a page is asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation.trace._page_size import LEAST_PAGE, MAX_PAGE, PAGE_BYTES, PageSizer

MB = 1024 * 1024


def test_light_traces_come_in_full_pages() -> None:
    sizer = PageSizer(10)
    sizer.came(10, 130_000)
    assert sizer.limit() == 10


def test_a_page_shrinks_to_about_sixteen_megabytes() -> None:
    sizer = PageSizer(10)
    sizer.came(10, 25 * MB)
    assert sizer.limit() == 6


def test_never_below_two() -> None:
    sizer = PageSizer(10)
    sizer.came(2, 40 * MB)
    assert sizer.limit() == LEAST_PAGE
    assert PageSizer(1).limit() == LEAST_PAGE


def test_never_above_what_the_service_takes() -> None:
    assert PageSizer(5000).limit() == MAX_PAGE


def test_one_heavy_page_is_remembered_for_a_while_and_not_for_ever() -> None:
    sizer = PageSizer(10)
    sizer.came(2, 40 * MB)
    sizer.came(2, 26_000)
    assert sizer.limit() == LEAST_PAGE
    for _ in range(30):
        sizer.came(2, 26_000)
    assert sizer.limit() == 10


def test_an_empty_page_weighs_nothing() -> None:
    sizer = PageSizer(10)
    sizer.came(0, 60)
    assert sizer.limit() == 10


def test_a_reply_too_heavy_to_read_halves_the_page_at_least() -> None:
    sizer = PageSizer(10)
    sizer.too_heavy(10, 33 * MB)
    assert sizer.limit() == 4


def test_a_halved_page_grows_again_after_eight_good_ones() -> None:
    sizer = PageSizer(10)
    sizer.halve(10)
    assert sizer.limit() == 5
    for _ in range(7):
        sizer.came(5, 1000)
    assert sizer.limit() == 5
    sizer.came(5, 1000)
    assert sizer.limit() == 10


sizes = st.integers(0, 200 * MB)
events = st.lists(st.tuples(st.sampled_from(["came", "too_heavy", "halve"]), st.integers(1, MAX_PAGE), sizes))


@pytest.mark.parametrize("page_size", [1, 10, 100, 5000])
@given(events=events)
def test_the_size_stays_within_its_bounds_whatever_comes(page_size: int, events: list[tuple[str, int, int]]) -> None:
    sizer = PageSizer(page_size)
    for name, limit, size in events:
        if name == "came":
            sizer.came(limit, size)
            assert sizer.limit() * size / limit <= max(PAGE_BYTES, LEAST_PAGE * size / limit) * 1.001
        elif name == "too_heavy":
            sizer.too_heavy(limit, size)
        else:
            sizer.halve(limit)
        assert LEAST_PAGE <= sizer.limit() <= min(MAX_PAGE, max(LEAST_PAGE, page_size))
