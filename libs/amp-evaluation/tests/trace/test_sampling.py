"""Sampling: the same traces on every run, by their ids alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation.trace.fetcher import OTELTrace
from amp_evaluation.trace.sampling import Sampler, sample_traces


@dataclass
class Named:
    trace_id: str


IDS = [f"{number:032x}" for number in range(5000)]


@pytest.mark.parametrize("rate", [0, -0.2, 1.5, float("nan"), float("inf"), True, "0.5", None])
def test_a_rate_outside_its_range_is_refused_with_the_value(rate: object) -> None:
    with pytest.raises(ValueError, match=r"sample rate") as caught:
        sample_traces([], rate)  # type: ignore[arg-type]
    assert repr(rate) in str(caught.value)


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.9999, 0.0001])
def test_up_to_four_decimals_the_rule_is_sha_256_modulo_10_000(rate: float) -> None:
    keeps = Sampler(rate)
    for trace_id in IDS[:1000]:
        number = int(hashlib.sha256(trace_id.encode()).hexdigest(), 16)
        assert keeps(trace_id) == (number % 10_000 < round(rate * 10_000))


def test_a_share_of_the_traces_is_kept_in_their_order() -> None:
    kept = sample_traces([Named(name) for name in IDS], 0.3)
    assert 0.27 < len(kept) / len(IDS) < 0.33
    assert [trace.trace_id for trace in kept] == sorted(trace.trace_id for trace in kept)


def test_a_rate_of_one_keeps_all() -> None:
    assert sample_traces([Named("a"), Named("")], 1) == [Named("a"), Named("")]


def test_a_rate_too_fine_for_four_decimals_still_keeps_some() -> None:
    many = (f"{number:032x}" for number in range(200_000))
    kept = sum(map(Sampler(0.00005), many))
    assert 1 <= kept <= 30


def test_traces_as_they_came_are_sampled_by_the_same_ids() -> None:
    raw = [OTELTrace(traceId=name) for name in IDS[:200]]
    assert [trace.traceId for trace in sample_traces(raw, 0.5)] == [
        trace.trace_id for trace in sample_traces([Named(name) for name in IDS[:200]], 0.5)
    ]


def test_an_id_with_a_lone_surrogate_is_sampled_like_any_other() -> None:
    assert Sampler(0.5)("\ud800") in (True, False)


rates = st.floats(0.0, 1.0, exclude_min=True, allow_subnormal=False).filter(lambda rate: rate > 1e-12)


@given(low=rates, high=rates, trace_id=st.text(max_size=40))
def test_a_higher_rate_keeps_all_that_a_lower_one_keeps(low: float, high: float, trace_id: str) -> None:
    low, high = sorted((low, high))
    assert not Sampler(low)(trace_id) or Sampler(high)(trace_id)
