"""Aggregations: right values, laws, and names that series in storage rely on."""

import math
import pickle
import statistics
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation.aggregators import Aggregation, AggregationType, normalize_aggregations

scores = st.lists(st.floats(0, 1), min_size=1, max_size=40)
BETWEEN = [t for t in AggregationType if t not in ("sum", "count", "stdev", "variance", "pass_rate")]


@pytest.mark.parametrize(
    ("aggregation", "value"),
    [
        ("mean", 0.5),
        ("median", 0.4),
        ("min", 0.2),
        ("max", 0.9),
        ("sum", 1.5),
        ("count", 3.0),
        ("stdev", 0.36055512754639896),
        ("variance", 0.13),
        ("p50", 0.4),
        ("p75", 0.65),
        ("p90", 0.8),
        ("p95", 0.85),
        ("p99", 0.89),
        ("pass_rate", 1 / 3),
    ],
)
def test_the_value_over_point2_point4_point9(aggregation: str, value: float) -> None:
    assert Aggregation(aggregation).compute([0.4, 0.9, 0.2]) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(("threshold", "rate"), [(0.5, 1 / 3), (0.4, 2 / 3), (0.0, 1.0), (1.0, 0.0)])
def test_the_pass_rate_counts_scores_from_the_threshold_on(threshold: float, rate: float) -> None:
    assert Aggregation(AggregationType.PASS_RATE, threshold=threshold).compute([0.2, 0.4, 0.9]) == rate


def test_the_default_threshold_is_that_of_running_series() -> None:
    assert Aggregation(AggregationType.PASS_RATE).compute([0.7, 0.69]) == 0.5


@pytest.mark.parametrize("aggregation", ["stdev", "variance"])
def test_one_score_has_no_spread(aggregation: str) -> None:
    assert Aggregation(aggregation).compute([0.3]) == 0.0


@pytest.mark.parametrize("aggregation", AggregationType)
def test_no_scores_give_no_value(aggregation: AggregationType) -> None:
    assert Aggregation(aggregation).compute([]) is None


@given(scores, st.sampled_from(BETWEEN))
def test_the_value_lies_between_the_least_and_the_greatest_score(values: list[float], kind: AggregationType) -> None:
    found = Aggregation(kind).compute(values)
    assert found is not None
    assert min(values) <= found <= max(values)


@given(scores, st.sampled_from(list(AggregationType)), st.randoms())
def test_the_order_of_the_scores_does_not_matter(values: list[float], kind: AggregationType, random: Any) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)
    assert Aggregation(kind).compute(shuffled) == Aggregation(kind).compute(values)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_spread_and_median_agree_with_the_standard_library(values: list[float]) -> None:
    assert Aggregation("stdev").compute(values) == pytest.approx(statistics.stdev(values), abs=1e-9)
    assert Aggregation("median").compute(values) == pytest.approx(statistics.median(values), abs=1e-12)


@given(scores, st.floats(0, 1), st.floats(0, 1))
def test_a_higher_threshold_never_passes_more(values: list[float], one: float, other: float) -> None:
    low, high = sorted((one, other))
    rates = [Aggregation("pass_rate", threshold=mark).compute(values) for mark in (low, high)]
    assert rates[0] >= rates[1]  # type: ignore[operator]


def test_equal_scores_have_that_mean_exactly() -> None:
    assert Aggregation("mean").compute([0.1] * 3) == 0.1  # their sum is 0.30000000000000004


def test_scores_may_come_from_a_generator() -> None:
    assert Aggregation("mean").compute(score for score in (0.0, 1.0)) == 0.5
    assert Aggregation("mean")([0.0, 1.0]) == 0.5


def spread(values: Sequence[float], scale: float = 1.0) -> float:
    return (max(values) - min(values)) * scale


class Callable1:
    def __call__(self, values: Sequence[float]) -> float:
        return 0.5


@pytest.mark.parametrize(
    ("made", "name"),
    [
        pytest.param(Aggregation(AggregationType.MEAN), "mean", id="a type is its own name"),
        pytest.param(Aggregation("P95"), "p95", id="a type by its name"),
        pytest.param(Aggregation(AggregationType.PASS_RATE), "pass_rate", id="the default threshold stays out of it"),
        pytest.param(
            Aggregation(AggregationType.PASS_RATE, threshold=0.7), "pass_rate_threshold_0.7", id="a given one enters it"
        ),
        pytest.param(Aggregation(spread), "spread", id="a function is named after itself"),
        pytest.param(Aggregation(spread, scale=0.5), "spread_scale_0.5", id="with its parameters"),
        pytest.param(Aggregation(Callable1()), "Callable1", id="an object is named after its class"),
    ],
)
def test_the_name(made: Aggregation, name: str) -> None:
    assert made.name == name
    assert name in repr(made)


def test_a_function_gets_the_scores_and_its_parameters() -> None:
    assert Aggregation(spread, scale=0.5).compute([0.2, 0.8]) == pytest.approx(0.3)


@pytest.mark.parametrize("result", [math.nan, math.inf, None, "0.5"])
def test_a_result_that_is_no_finite_number_is_refused(result: Any) -> None:
    with pytest.raises(ValueError, match="finite number"):
        Aggregation(lambda values: result).compute([0.5])


@pytest.mark.parametrize(
    ("kind", "params", "error", "text"),
    [
        pytest.param("mode", {}, ValueError, "unknown aggregation 'mode'; known: mean", id="an unknown name"),
        pytest.param(3, {}, TypeError, "not 3", id="no aggregation at all"),
        pytest.param(
            "mean", {"threshold": 0.5}, TypeError, "no parameter 'threshold'", id="a parameter it doesn't take"
        ),
        pytest.param("pass_rate", {"scores": 0.5}, TypeError, "no parameter 'scores'", id="what isn't a parameter"),
        pytest.param(
            "pass_rate", {"threshold": 1.5}, ValueError, r"in \[0, 1\], not 1.5", id="a threshold out of range"
        ),
        pytest.param("pass_rate", {"threshold": math.nan}, ValueError, "not nan", id="a threshold that is no number"),
        pytest.param("pass_rate", {"threshold": True}, TypeError, "a number", id="a bool for a threshold"),
    ],
)
def test_a_wrong_aggregation_is_refused_when_it_is_made(
    kind: Any, params: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        Aggregation(kind, **params)


@pytest.mark.parametrize(
    ("given_ones", "names"),
    [
        pytest.param(None, ["mean"], id="the mean by default"),
        pytest.param([], ["mean"], id="the mean for an empty list"),
        pytest.param("p90", ["p90"], id="one name"),
        pytest.param(AggregationType.MAX, ["max"], id="one type"),
        pytest.param(Aggregation("min"), ["min"], id="one object"),
        pytest.param(spread, ["spread"], id="one function"),
        pytest.param(
            [AggregationType.MEAN, Aggregation("pass_rate", threshold=0.9), spread, "mean"],
            ["mean", "pass_rate_threshold_0.9", "spread"],
            id="a mixed list, each once",
        ),
    ],
)
def test_what_evaluators_may_ask_for(given_ones: Any, names: list[str]) -> None:
    assert [aggregation.name for aggregation in normalize_aggregations(given_ones)] == names


def test_two_functions_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="both named '<lambda>'"):
        normalize_aggregations([lambda values: 0.1, lambda values: 0.2])


def test_equal_aggregations_are_equal_and_hash_alike() -> None:
    one, same = Aggregation("pass_rate", threshold=0.9), Aggregation("pass_rate", threshold=0.9)
    assert one == same
    assert len({one, same}) == 1
    assert one != Aggregation("pass_rate")
    assert one != "pass_rate_threshold_0.9"


@pytest.mark.parametrize("kind", AggregationType)
def test_every_aggregation_travels_to_other_processes(kind: AggregationType) -> None:
    made = pickle.loads(pickle.dumps(Aggregation(kind)))
    assert made == Aggregation(kind)
    assert made.compute([0.25, 0.75]) == Aggregation(kind).compute([0.25, 0.75])
