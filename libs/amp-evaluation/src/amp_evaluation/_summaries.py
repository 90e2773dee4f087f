"""A run's columns of scores as one summary an evaluator, aggregated once at the end."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from amp_evaluation.aggregators import Aggregation, normalize_aggregations
from amp_evaluation.evaluators._base import BaseEvaluator
from amp_evaluation.evaluators._outcome import error_text
from amp_evaluation.models import EvaluationLevel, EvaluatorScore, EvaluatorSummary, RunError

__all__ = ["summarize_all"]


def summarize_all(
    evaluators: Sequence[BaseEvaluator], columns: Sequence[list[EvaluatorScore]], errors: list[str]
) -> dict[str, EvaluatorSummary]:
    """Evaluator name → summary, in the evaluators' order. An aggregation that raises becomes an error of the run."""
    tables: list[dict[str, int]] = []
    summaries: dict[str, EvaluatorSummary] = {}
    for evaluator, scores in zip(evaluators, columns, strict=True):
        values = [score.score for score in scores if score.score is not None]
        summaries[evaluator.name] = _summary(
            evaluator_name=evaluator.name,
            count=len(scores),
            level=evaluator.level,
            skipped_count=len(scores) - len(values),
            aggregated_scores=_aggregate(evaluator, values, errors),
            individual_scores=scores,
            items_per_trace=None if evaluator.level is EvaluationLevel.TRACE else _count_items(scores, tables),
        )
    return summaries


def _summary(**values: Any) -> EvaluatorSummary:
    """All of it was checked when it was made; to build the validators for seven summaries would take 50 ms."""
    made = object.__new__(EvaluatorSummary)
    for name, value in values.items():
        setattr(made, name, value)
    return made


def _aggregate(evaluator: BaseEvaluator, values: list[float], errors: list[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for aggregation in normalize_aggregations(evaluator.aggregations):
        value = _compute(evaluator, aggregation, values, errors)
        if value is not None:
            found[aggregation.name] = value
    return found


def _compute(
    evaluator: BaseEvaluator, aggregation: Aggregation, values: list[float], errors: list[str]
) -> float | None:
    try:
        return aggregation.compute(values)
    except Exception as error:  # a function of the user's own
        text = f"{evaluator.name}: aggregation {aggregation.name}: {error_text(error)}"
        errors.append(RunError(text, repeat_may_help=False))
        return None


def _count_items(scores: list[EvaluatorScore], tables: list[dict[str, int]]) -> dict[str, int]:
    """Items by trace id; evaluators that saw the same items share one table."""
    counts = dict(Counter(score.trace_id for score in scores))
    for table in tables:
        if table == counts:
            return table
    tables.append(counts)
    return counts
