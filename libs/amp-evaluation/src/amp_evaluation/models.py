"""What an evaluation gives: a result from an evaluator, a score for each item, a summary for each evaluator.

"No score" is not a low score: it is a skip with a reason, and nothing turns one into a number. A score outside [0, 1],
or one that isn't a finite number, can't be constructed, neither as an `EvalResult` nor as an `EvaluatorScore`.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from numbers import Real
from typing import Annotated, Self

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as checked_dataclass

from amp_evaluation._info import EvalMode, EvaluationLevel, EvaluatorInfo, LLMConfigField, LLMProviderInfo
from amp_evaluation._reports import EvaluatorReport, JudgeUsage, RunError
from amp_evaluation.errors import DataNotAvailableError

__all__ = [
    "NO_SCORE_REASON",
    "DataNotAvailableError",
    "EvalMode",
    "EvalResult",
    "EvaluationLevel",
    "EvaluatorInfo",
    "EvaluatorReport",
    "EvaluatorScore",
    "EvaluatorSummary",
    "JudgeUsage",
    "LLMConfigField",
    "LLMProviderInfo",
    "RunError",
    "SpanContext",
    "TaskContext",
]

PASS_MARK = 0.5  # a result that doesn't say whether it passed passes from here on
NO_SCORE_REASON = "Evaluation did not produce a score"

_new = object.__new__

_WHEN_USED = ConfigDict(defer_build=True)  # validators are built on first use: start-up is for all, scores are not

Finite = Annotated[float, Field(allow_inf_nan=False)]
UnitScore = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False, strict=True)]


class EvalResult:
    """What an evaluator found: a score in [0, 1], higher is better, and why; or a skip with its reason.

    `passed` defaults to score ≥ 0.5. Raises TypeError when the score is no number and ValueError when it is out of
    range or not finite. Reading `score` or `passed` of a skipped result raises AttributeError, so that a skip can't
    be taken for a number.
    """

    __slots__ = ("_passed", "_score", "explanation", "skip_reason")

    explanation: str | None
    skip_reason: str | None

    def __init__(self, score: float, explanation: str | None = None, passed: bool | None = None) -> None:
        number = score if type(score) is float and 0.0 <= score <= 1.0 else _unit(score)
        self._score: float | None = number
        self._passed = number >= PASS_MARK if passed is None else bool(passed)
        self.explanation = explanation if explanation is None or type(explanation) is str else str(explanation)
        self.skip_reason = None

    @classmethod
    def skip(cls, reason: str) -> Self:
        """No score could be given, for this reason."""
        skipped = cls.__new__(cls)
        skipped._score = None
        skipped._passed = False
        skipped.explanation = None
        skipped.skip_reason = str(reason) or NO_SCORE_REASON
        return skipped

    @property
    def is_skipped(self) -> bool:
        return self._score is None

    @property
    def score(self) -> float:
        if self._score is None:
            raise AttributeError(f"a skipped result has no score: {self.skip_reason}")
        return self._score

    @property
    def passed(self) -> bool:
        if self._score is None:
            raise AttributeError(f"a skipped result neither passed nor failed: {self.skip_reason}")
        return self._passed

    def _fields(self) -> tuple[float | None, bool, str | None, str | None]:
        return self._score, self._passed, self.explanation, self.skip_reason

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if isinstance(other, EvalResult) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # mutable, compared by value

    def __repr__(self) -> str:
        if self._score is None:
            return f"EvalResult.skip({self.skip_reason!r})"
        return f"EvalResult(score={self._score!r}, explanation={self.explanation!r}, passed={self._passed!r})"


def _unit(score: object) -> float:
    """The score as a float in [0, 1]."""
    if type(score) is not float:
        if not isinstance(score, Real):  # numpy's scalars are Real, text and Decimal aren't
            raise TypeError(f"score must be a number in [0, 1], not {score!r} ({type(score).__name__})")
        score = float(score)
    if not 0.0 <= score <= 1.0:
        rule = "be in [0, 1]" if math.isfinite(score) else "be finite"
        raise ValueError(f"score must {rule}, not {score!r}")
    return score


@dataclass(slots=True)
class SpanContext:
    """Which span an item at agent or LLM level is; None where the trace doesn't tell."""

    span_id: str
    agent_name: str | None = None
    model: str | None = None
    vendor: str | None = None


@dataclass(slots=True)
class TaskContext:
    """Which task of the dataset, and which of its trials, an item belongs to."""

    task_id: str
    trial_id: str | None = None


@checked_dataclass(slots=True, config=_WHEN_USED)
class EvaluatorScore:
    """One evaluator's verdict on one item: a score, or the reason why there is none; never both.

    `trace_start_time` is aware UTC, `span_context` stands only on items at agent and LLM level, `task_context` only in
    experiments. Without a score and without a reason the reason is `NO_SCORE_REASON`. Raises a ValueError (pydantic's
    ValidationError) for a bad score and for a score beside a skip reason.
    """

    trace_id: str
    trace_start_time: datetime | None = None
    score: UnitScore | None = None
    passed: bool | None = None
    explanation: str | None = None
    skip_reason: str | None = None
    span_context: SpanContext | None = None
    task_context: TaskContext | None = None

    def __post_init__(self) -> None:
        if self.score is None:
            self.skip_reason = self.skip_reason or NO_SCORE_REASON
            self.passed = None
        elif self.skip_reason is not None:
            raise ValueError(f"an item has a score or a skip reason, not both: {self.score!r}, {self.skip_reason!r}")
        elif self.passed is None:
            self.passed = self.score >= PASS_MARK

    @property
    def is_skipped(self) -> bool:
        return self.score is None

    @property
    def is_successful(self) -> bool:
        """The item has a score, high or low."""
        return self.score is not None

    @classmethod
    def from_eval_result(
        cls,
        eval_result: EvalResult,
        trace_id: str,
        trace_start_time: datetime | None = None,
        span_context: SpanContext | None = None,
    ) -> EvaluatorScore:
        """The result as the score of one item of a trace."""
        # An EvalResult has been checked when it was made: checking it again would be half the cost of a cheap rule.
        made = _new(cls)
        made.trace_id = trace_id
        made.trace_start_time = trace_start_time
        made.score = score = eval_result._score
        made.passed = None if score is None else eval_result._passed
        said = eval_result.explanation
        made.explanation = said if said is None or type(said) is str else str(said)
        made.skip_reason = eval_result.skip_reason
        made.span_context = span_context
        made.task_context = None
        return made


@checked_dataclass(slots=True, config=_WHEN_USED)
class EvaluatorSummary:
    """All scores of one evaluator over a run, and what they come to.

    `count` includes the skipped items; `aggregated_scores` holds a value for each aggregation and is empty when nothing
    was scored. `items_per_trace` counts items by trace id at agent and LLM level, and is None at trace level.
    """

    evaluator_name: str
    count: int = 0
    level: EvaluationLevel = EvaluationLevel.TRACE
    skipped_count: int = 0
    aggregated_scores: dict[str, Finite] = field(default_factory=dict)
    individual_scores: list[EvaluatorScore] = field(default_factory=list)
    items_per_trace: dict[str, int] | None = None

    def __getitem__(self, key: str) -> float:
        try:
            return self.aggregated_scores[key]
        except KeyError:
            known = ", ".join(self.aggregated_scores) or "none, nothing was scored"
            raise KeyError(f"{self.evaluator_name!r} has no aggregation {key!r}; it has: {known}") from None

    def get(self, key: str, default: float = 0.0) -> float:
        """The aggregation `key`; `default` where there is none, as when nothing was scored."""
        return self.aggregated_scores.get(key, default)

    @property
    def mean(self) -> float | None:
        """The aggregated mean; None when nothing was scored or no mean was asked for."""
        return self.aggregated_scores.get("mean")

    @property
    def pass_rate(self) -> float | None:
        """The aggregated pass rate: the one at the default threshold, else the only one there is, else None."""
        for default in ("pass_rate", "pass_rate_threshold_0.7"):
            if default in self.aggregated_scores:
                return self.aggregated_scores[default]
        rates = [value for key, value in self.aggregated_scores.items() if key.startswith("pass_rate_threshold_")]
        return rates[0] if len(rates) == 1 else None

    @property
    def error_count(self) -> int:
        """Another name of `skipped_count`."""
        return self.skipped_count

    @property
    def successful_scores(self) -> list[EvaluatorScore]:
        return [score for score in self.individual_scores if not score.is_skipped]

    @property
    def skipped_scores(self) -> list[EvaluatorScore]:
        return [score for score in self.individual_scores if score.is_skipped]

    @property
    def scored_count(self) -> int:
        """Items that have a score."""
        return self.count - self.skipped_count

    @property
    def passed_count(self) -> int:
        """Items whose evaluator says that they passed."""
        return sum(score.passed is True for score in self.individual_scores)

    def get_by_trace(self, trace_id: str) -> list[EvaluatorScore]:
        return [score for score in self.individual_scores if score.trace_id == trace_id]

    def get_agent_scores(self, agent_name: str) -> list[EvaluatorScore]:
        return [s for s in self.individual_scores if s.span_context and s.span_context.agent_name == agent_name]

    def get_model_scores(self, model: str) -> list[EvaluatorScore]:
        return [s for s in self.individual_scores if s.span_context and s.span_context.model == model]

    def summary(self, verbosity: str = "default") -> str:
        """The figures as text: "compact" is one line, "default" adds skip reasons, "detailed" every item."""
        if verbosity not in ("compact", "default", "detailed"):
            raise ValueError(f"verbosity must be compact, default or detailed, not {verbosity!r}")
        figures = ", ".join(f"{key} {value:.4g}" for key, value in self.aggregated_scores.items()) or "no score"
        lines = [f"{self.evaluator_name} ({self.level}): {figures}; {self.count} items, {self.skipped_count} skipped"]
        if verbosity != "compact":
            lines += [f"  skipped {count} times: {reason}" for reason, count in self.skip_reasons()]
        if verbosity == "detailed":
            lines += [f"  {_item_line(score)}" for score in self.individual_scores]
        return "\n".join(lines)

    def skip_reasons(self) -> list[tuple[str, int]]:
        """Skip reasons with their counts, the most frequent first; those of one count by their text."""
        counts = Counter(score.skip_reason or NO_SCORE_REASON for score in self.skipped_scores)
        return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))


def _item_line(score: EvaluatorScore) -> str:
    where = score.trace_id if score.span_context is None else f"{score.trace_id}/{score.span_context.span_id}"
    if score.score is None:
        return f"{where}: skipped, {score.skip_reason}"
    said = f", {score.explanation}" if score.explanation else ""
    return f"{where}: {score.score:.4g} {'passed' if score.passed else 'failed'}{said}"
