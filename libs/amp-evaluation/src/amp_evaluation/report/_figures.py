"""The figures of a report, computed once from a run's result: what the page shows and what the JSON file holds."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from amp_evaluation._time import format_rfc3339
from amp_evaluation.models import EvaluatorScore, EvaluatorSummary, JudgeUsage
from amp_evaluation.run_result import COUNTED, RunResult

__all__ = ["EvaluatorFigures", "Group", "Interval", "ReportFigures", "WorstItem", "mean_interval", "report_figures"]

BINS = 10
WORST_ITEMS = 5
MAX_GROUPS = 12
MIN_TRACES_FOR_INTERVAL = 5  # fewer traces say too little of how traces differ
MAX_RESAMPLES, MIN_RESAMPLES = 2_000, 200
DRAWS = 1_000_000  # a mean: bounds the work: a large run has a narrow interval that few resamples find as well
SEED = 20_260_115  # fixed, so that the same scores give the same report
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A 95 % interval of a mean, by the percentile bootstrap over traces (Efron & Tibshirani, 1993, chapter 13)."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstItem:
    """One of the lowest scores with the reason that the evaluator gave."""

    trace_id: str
    span_id: str | None
    score: float
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The scored items of one agent or one model."""

    kind: str
    """agent or model"""
    label: str
    count: int
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorFigures:
    """One evaluator over the run. `mean` and `pass_rate` are None where nothing was scored."""

    name: str
    level: str
    count: int
    scored: int
    passed: int
    skipped: int
    mean: float | None
    interval: Interval | None
    """None where nothing was scored, or in fewer than five traces."""
    pass_rate: float | None
    """passed / scored, by each item's own `passed`"""
    aggregations: dict[str, float]
    histogram: list[int]
    """ten bins of equal width over [0, 1]; the last one includes 1"""
    skip_reasons: list[tuple[str, int]]
    worst: list[WorstItem]
    groups: list[Group]
    usage: list[JudgeUsage]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFigures:
    """All of a report. Times are RFC 3339 in UTC."""

    title: str
    target: str
    run_id: str
    window: tuple[str, str] | None
    sample_rate: float | None
    started_at: str
    seconds: float
    found: int | None
    sampled: int | None
    evaluated: int
    stored: str
    """what became of the scores, in words"""
    remarks: list[tuple[str, int]]
    """counts of what a reader should know: failed runs, truncated traces, …"""
    warnings: list[str]
    errors: list[str]
    evaluators: list[EvaluatorFigures]


def report_figures(result: RunResult, *, title: str, stored: str = "") -> ReportFigures:
    """The figures of a run; `stored` says in words what became of the scores."""
    meta = result.metadata
    start, end = meta.get("start_time"), meta.get("end_time")
    usage = meta.get("judge_usage") or {}
    return ReportFigures(
        title=title,
        target=" / ".join(filter(None, (result.organization, result.project, result.agent, result.environment))),
        run_id=result.run_id,
        window=(format_rfc3339(start), format_rfc3339(end)) if start and end else None,
        sample_rate=meta.get("sample_rate"),
        started_at=format_rfc3339(result.started_at.replace(microsecond=0)),
        seconds=round(result.duration_seconds, 3),
        found=meta.get("traces_found"),
        sampled=meta.get("traces_sampled"),
        evaluated=result.traces_evaluated,
        stored=stored,
        remarks=[(words, meta[key]) for key, words in COUNTED if meta.get(key)],
        warnings=[str(warning) for warning in meta.get("warnings") or ()],
        errors=[str(error) for error in result.errors],
        evaluators=[_evaluator(name, summary, usage.get(name) or []) for name, summary in result.scores.items()],
    )


def _evaluator(name: str, summary: EvaluatorSummary, usage: list[JudgeUsage]) -> EvaluatorFigures:
    scored = summary.successful_scores
    passed = summary.passed_count
    return EvaluatorFigures(
        name=name,
        level=str(summary.level),
        count=summary.count,
        scored=len(scored),
        passed=passed,
        skipped=summary.skipped_count,
        mean=summary.mean,
        interval=mean_interval(scored),
        pass_rate=passed / len(scored) if scored else None,
        aggregations=dict(summary.aggregated_scores),
        histogram=_histogram(scored),
        skip_reasons=summary.skip_reasons(),
        worst=_worst(scored),
        groups=[*_groups(scored, "agent", _agent), *_groups(scored, "model", _model)],
        usage=usage,
    )


def mean_interval(scored: Sequence[EvaluatorScore]) -> Interval | None:
    """The 95 % interval of the items' mean, None below five traces.

    Whole traces are drawn, not items: the items of one trace resemble each other, and an interval that took them for
    independent would be too narrow.
    """
    totals: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for item in scored:
        if item.score is not None:
            total = totals[item.trace_id]
            total[0] += item.score
            total[1] += 1
    if len(totals) < MIN_TRACES_FOR_INTERVAL:
        return None
    means = _resampled_means([(total, count) for total, count in totals.values()])
    tail = (1 - CONFIDENCE) / 2
    return Interval(low=_quantile(means, tail), high=_quantile(means, 1 - tail))


def _resampled_means(traces: Sequence[tuple[float, float]]) -> list[float]:
    """The means of resamples of whole traces, each given as (sum of its scores, number of them); ascending."""
    totals, counts = [total for total, _ in traces], [count for _, count in traces]
    draw = random.Random(SEED).choices
    resamples = max(MIN_RESAMPLES, min(MAX_RESAMPLES, DRAWS // len(traces)))
    if len(set(counts)) == 1:  # as at trace level: half the work
        items = sum(counts)
        return sorted(sum(draw(totals, k=len(totals))) / items for _ in range(resamples))
    means = []
    for _ in range(resamples):
        drawn = draw(range(len(traces)), k=len(traces))
        means.append(sum(map(totals.__getitem__, drawn)) / sum(map(counts.__getitem__, drawn)))
    return sorted(means)


def _quantile(ascending: Sequence[float], share: float) -> float:
    """Linear between the two nearest values."""
    place = share * (len(ascending) - 1)
    below = int(place)
    above = min(below + 1, len(ascending) - 1)
    return ascending[below] + (ascending[above] - ascending[below]) * (place - below)


def _histogram(scored: Iterable[EvaluatorScore]) -> list[int]:
    bins = [0] * BINS
    for item in scored:
        if item.score is not None:
            bins[min(BINS - 1, int(item.score * BINS))] += 1
    return bins


def _worst(scored: Iterable[EvaluatorScore]) -> list[WorstItem]:
    """The lowest scores below 1; ties stay in trace order."""
    low = sorted((item for item in scored if (item.score or 0.0) < 1), key=lambda item: item.score or 0.0)
    return [
        WorstItem(
            trace_id=item.trace_id,
            span_id=item.span_context.span_id if item.span_context else None,
            score=item.score or 0.0,
            explanation=item.explanation or "",
        )
        for item in low[:WORST_ITEMS]
    ]


def _agent(item: EvaluatorScore) -> str | None:
    return item.span_context.agent_name if item.span_context else None


def _model(item: EvaluatorScore) -> str | None:
    return item.span_context.model if item.span_context else None


def _groups(
    scored: Iterable[EvaluatorScore], kind: str, label_of: Callable[[EvaluatorScore], str | None]
) -> list[Group]:
    """The largest groups first."""
    scores: defaultdict[str, list[float]] = defaultdict(list)
    for item in scored:
        label = label_of(item)
        if label and item.score is not None:
            scores[label].append(item.score)
    largest = sorted(scores.items(), key=lambda entry: (-len(entry[1]), entry[0]))[:MAX_GROUPS]
    return [Group(kind=kind, label=label, count=len(s), mean=sum(s) / len(s)) for label, s in largest]
