"""Aggregations: a name and a function from scores to one value.

Skipped items never enter, and no scores give no value, not 0. Sums are exact (`math.fsum`), so the order of the scores
doesn't matter. Percentiles interpolate linearly; standard deviation and variance are a sample's, 0 for one score.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from numbers import Real
from typing import Any

__all__ = ["Aggregation", "AggregationType", "normalize_aggregations"]

DEFAULT_PASS_THRESHOLD = 0.7  # kept as it is for time series that already run

AggregationFunction = Callable[..., float]


class AggregationType(StrEnum):
    """The aggregations that go by a name. COUNT is of scored items; PASS_RATE is a share in [0, 1]."""

    MEAN = "mean"
    MEDIAN = "median"
    MIN = "min"
    MAX = "max"
    SUM = "sum"
    COUNT = "count"
    STDEV = "stdev"
    VARIANCE = "variance"
    P50 = "p50"
    P75 = "p75"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"
    PASS_RATE = "pass_rate"


def _mean(scores: Sequence[float]) -> float:
    # rounding may carry the quotient past the greatest score (0.1 three times)
    return min(max(math.fsum(scores) / len(scores), min(scores)), max(scores))


def _variance(scores: Sequence[float]) -> float:
    if min(scores) == max(scores):  # one score, too: a sample of one has no spread
        return 0.0
    mean = math.fsum(scores) / len(scores)
    return math.fsum((score - mean) ** 2 for score in scores) / (len(scores) - 1)


def _percentile(percent: float) -> AggregationFunction:
    def percentile(scores: Sequence[float]) -> float:
        ordered = sorted(scores)
        place = (len(ordered) - 1) * percent / 100
        below = math.floor(place)
        low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
        return low + (high - low) * (place - below)

    return percentile


def _pass_rate(scores: Sequence[float], threshold: float = DEFAULT_PASS_THRESHOLD) -> float:
    return sum(score >= threshold for score in scores) / len(scores)


_FUNCTIONS: dict[AggregationType, AggregationFunction] = {
    AggregationType.MEAN: _mean,
    AggregationType.MEDIAN: _percentile(50),
    AggregationType.MIN: min,
    AggregationType.MAX: max,
    AggregationType.SUM: math.fsum,
    AggregationType.COUNT: len,
    AggregationType.STDEV: lambda scores: math.sqrt(_variance(scores)),
    AggregationType.VARIANCE: _variance,
    AggregationType.P50: _percentile(50),
    AggregationType.P75: _percentile(75),
    AggregationType.P90: _percentile(90),
    AggregationType.P95: _percentile(95),
    AggregationType.P99: _percentile(99),
    AggregationType.PASS_RATE: _pass_rate,
}


class Aggregation:
    """An aggregation with its parameters: `Aggregation(AggregationType.PASS_RATE, threshold=0.8)`.

    Parameters enter the name: `pass_rate_threshold_0.8`. A plain function takes the list of scores (and the given
    parameters) and is named after itself. TypeError for a parameter that the function doesn't take, ValueError for a
    threshold outside [0, 1].
    """

    __slots__ = ("_function", "name", "params", "type")

    def __init__(self, type: AggregationType | str | AggregationFunction, **params: Any) -> None:
        self.type: AggregationType | AggregationFunction
        if isinstance(type, str):
            self.type = _known_type(type)
            self._function = _FUNCTIONS[self.type]
            base = self.type.value
            _check_params(base, self._function, params)
        elif callable(type):
            self.type = self._function = type
            base = getattr(type, "__name__", None) or type.__class__.__name__
        else:
            raise TypeError(f"an aggregation is an AggregationType, its name or a function, not {type!r}")
        self.params = dict(params)
        self.name = "_".join([base, *(f"{key}_{value}" for key, value in params.items())])

    def compute(self, scores: Iterable[float]) -> float | None:
        """The value over the scores; None when there are none.

        A function of the user's own may raise what it likes; a result that is no finite number is a ValueError.
        """
        values = list(scores)
        if not values:
            return None
        found = self._function(values, **self.params)
        if not isinstance(found, Real) or not math.isfinite(found):
            raise ValueError(f"aggregation {self.name!r} must give a finite number, not {found!r}")
        return float(found)

    __call__ = compute

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.type, self.params)  # a built-in function may have no name to be found by

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aggregation) and (self.type, self.params) == (other.type, other.params)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Aggregation({self.name})"


def _rebuilt(type: AggregationType | AggregationFunction, params: dict[str, Any]) -> Aggregation:
    return Aggregation(type, **params)


def _known_type(name: str) -> AggregationType:
    try:
        return AggregationType(name.lower())
    except ValueError:
        known = ", ".join(AggregationType)
        raise ValueError(f"unknown aggregation {name!r}; known: {known}") from None


def _check_params(name: str, function: AggregationFunction, params: dict[str, Any]) -> None:
    known = inspect.signature(function).parameters if function is _pass_rate else {}
    for key, value in params.items():
        if key == "scores" or key not in known:
            raise TypeError(f"aggregation {name!r} takes no parameter {key!r}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"aggregation {name!r}: {key} must be a number, not {value!r}")
        if not 0 <= value <= 1:
            raise ValueError(f"aggregation {name!r}: {key} must be in [0, 1], not {value!r}")


def normalize_aggregations(
    aggregations: Iterable[AggregationType | Aggregation | AggregationFunction | str] | None = None,
) -> list[Aggregation]:
    """The aggregations as objects, each once; the mean when none is asked for.

    ValueError when two that differ have one name.
    """
    if isinstance(aggregations, str | Aggregation) or callable(aggregations):
        aggregations = [aggregations]
    found: dict[str, Aggregation] = {}
    for wanted in aggregations or [AggregationType.MEAN]:
        made = wanted if isinstance(wanted, Aggregation) else Aggregation(wanted)
        if found.setdefault(made.name, made) != made:
            raise ValueError(f"two aggregations are both named {made.name!r}")
    return list(found.values())
