"""What a run gives back, and how it reads as text."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args

from amp_evaluation.models import EvalMode, EvaluatorScore, EvaluatorSummary, JudgeUsage

__all__ = ["COUNTED", "Progress", "RunResult", "Verbosity", "usage_lines"]

Verbosity = Literal["compact", "default", "detailed"]

COUNTED = (  # metadata keys that are told only when they aren't 0, with their words
    ("failed_runs", "failed runs"),
    ("initialization_only_runs", "runs that only initialised an agent"),
    ("parse_failures", "traces that could not be read"),
    ("not_addressable", "traces without an id or a time"),
    ("truncated", "traces truncated by the traces API"),
    ("cut", "traces that cross the window's border and may be cut"),
    ("root_missing", "traces whose root span is missing"),
)


class Progress(NamedTuple):
    """Where a run stands. (One is made for every trace: a frozen dataclass costs five times as much.)"""

    found: int
    sampled: int
    evaluated: int
    """Traces that every evaluator is done with."""
    in_flight: int
    """Judge calls under way."""
    seconds: float
    """Since the run's start."""


@dataclass
class RunResult:
    """The scores of a run with what is needed to judge how complete they are.

    `errors` holds texts; those that the runners add are `RunError`s, which say whether a repeat may help. Times are
    aware UTC. `metadata` has:

    | key | value |
    |---|---|
    | start_time, end_time | the window as it was passed, or None |
    | sample_rate | in (0, 1] |
    | traces_found, traces_sampled | before and after sampling |
    | failed_runs, initialization_only_runs | among the sampled traces |
    | parse_failures, not_addressable | sampled traces that weren't evaluated, and why |
    | truncated, cut, root_missing | traces that may be incomplete, and why |
    | requests | HTTP requests to the traces API, where the fetcher counts them |
    | warnings | list of texts |
    | judge_usage | evaluator name → list of JudgeUsage |

    Experiments add `trials`, `trials_failed` and `trials_without_trace`.
    """

    run_id: str
    eval_mode: EvalMode
    started_at: datetime
    completed_at: datetime | None = None
    organization: str = ""
    project: str = ""
    agent: str = ""
    environment: str = ""
    dataset_id: str | None = None
    traces_evaluated: int = 0
    evaluators_run: int = 0
    scores: dict[str, EvaluatorSummary] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def duration_seconds(self) -> float:
        """Wall time of the run; 0 while it has no end."""
        return 0.0 if self.completed_at is None else (self.completed_at - self.started_at).total_seconds()

    @property
    def success(self) -> bool:
        """No error, and at least one trace was evaluated."""
        return not self.errors and self.traces_evaluated > 0

    def summary(self, *, verbosity: Verbosity = "default") -> str:
        """The run as plain text.

        compact: one line. default: the counts, a line an evaluator, why items were skipped, the judges' tokens and
        cost, warnings and errors. detailed: every item's score and explanation besides.
        Raises ValueError for another verbosity.
        """
        if verbosity not in get_args(Verbosity):
            raise ValueError(f"verbosity={verbosity!r}: one of {', '.join(get_args(Verbosity))} is wanted")
        if verbosity == "compact":
            return _compact(self)
        return "\n".join(_lines(self, detailed=verbosity == "detailed"))

    def print_summary(self, verbosity: Verbosity = "default") -> None:
        """Print `summary` to standard output."""
        print(self.summary(verbosity=verbosity))  # noqa: T201 - the one purpose of this method


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _compact(result: RunResult) -> str:
    means = ", ".join(f"{name} {_number(_headline(summary)[1])}" for name, summary in result.scores.items())
    state = "ok" if result.success else "errors" if result.errors else "no traces"
    evaluated = _plural(result.traces_evaluated, "trace")
    return f"{result.eval_mode.value} {state}: {evaluated} evaluated; {means or 'no score'}"


def _headline(summary: EvaluatorSummary) -> tuple[str, float | None]:
    """The mean, else the first aggregation there is."""
    if summary.mean is not None:
        return "mean", summary.mean
    return next(iter(summary.aggregated_scores.items()), ("mean", None))


def _lines(result: RunResult, *, detailed: bool) -> Iterator[str]:
    yield from _head(result)
    yield from _table(result.scores)
    yield from _skips(result.scores)
    usage = result.metadata.get("judge_usage") or {}
    if usage:
        yield ""
    yield from usage_lines(usage)
    for warning in result.metadata.get("warnings") or ():
        yield f"warning: {warning}"
    for error in result.errors:
        yield f"error: {error}"
    if detailed:
        yield from _items(result.scores)


def _head(result: RunResult) -> Iterator[str]:
    target = "/".join(filter(None, (result.organization, result.project, result.agent, result.environment)))
    yield f"{result.eval_mode.value.capitalize()} run {result.run_id}" + (f" of {target}" if target else "")
    found, sampled = result.metadata.get("traces_found"), result.metadata.get("traces_sampled")
    counts = [] if found is None else [f"{_plural(found, 'trace')} found", f"{sampled} sampled"]
    counts.append(f"{result.traces_evaluated} evaluated in {result.duration_seconds:.1f} s")
    yield ", ".join(counts)
    for key, words in COUNTED:
        if result.metadata.get(key):
            yield f"{words}: {result.metadata[key]}"


def _table(scores: dict[str, EvaluatorSummary]) -> Iterator[str]:
    if not scores:
        return
    yield ""
    width = max(len("evaluator"), *map(len, scores))
    yield f"{'evaluator':{width}}  level  {'scored':>7} {'passed':>7} {'failed':>7} {'skipped':>7}  result"
    for name, summary in scores.items():
        scored, passed = summary.scored_count, summary.passed_count
        values = ", ".join(f"{key} {value:.3f}" for key, value in summary.aggregated_scores.items()) or "no score"
        yield (
            f"{name:{width}}  {summary.level.value:5}  {scored:7} {passed:7} {scored - passed:7}"
            f" {summary.skipped_count:7}  {values}"
        )


def _skips(scores: dict[str, EvaluatorSummary]) -> Iterator[str]:
    """Reasons by frequency; most evaluators skip a trace for the same one, so each stands once."""
    reasons: Counter[str] = Counter()
    for summary in scores.values():
        reasons.update(dict(summary.skip_reasons()))
    if reasons:
        yield ""
        yield "skipped because"
    for reason, count in reasons.most_common():
        yield f"{count:7}  {reason}"


def usage_lines(usage: dict[str, list[JudgeUsage]]) -> Iterator[str]:
    """Calls, tokens and cost of each judge, a line a model."""
    for name, models in usage.items():
        for use in models:
            cost = "cost unknown" if use.cost_usd is None else f"{use.cost_usd:.4f} USD"
            yield (
                f"{name}: {use.model}, {_plural(use.calls, 'call')}, {use.retries} retried,"
                f" {use.input_tokens} tokens in, {use.output_tokens} out, {cost}"
            )


def _items(scores: dict[str, EvaluatorSummary]) -> Iterator[str]:
    for name, summary in scores.items():
        yield ""
        yield name
        for score in summary.individual_scores:
            yield f"  {_item(score)}"


def _item(score: EvaluatorScore) -> str:
    place = score.trace_id
    if score.span_context is not None:
        place += f" {score.span_context.span_id}"
    if score.task_context is not None:
        place += f" task {score.task_context.task_id}"
    if score.is_skipped:
        return f"{place}  skipped: {score.skip_reason}"
    verdict = "passed" if score.passed else "failed"
    return f"{place}  {_number(score.score)} {verdict}" + (f": {score.explanation}" if score.explanation else "")
