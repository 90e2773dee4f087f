"""What a run would do, as text: each evaluator with its level and mode, and the prompts that judges would send."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from amp_evaluation._time import format_rfc3339
from amp_evaluation._visible import visible
from amp_evaluation.errors import TraceParseError
from amp_evaluation.evaluators._base import BaseEvaluator
from amp_evaluation.evaluators._items import EvaluationItem
from amp_evaluation.evaluators._llm_judge import LLMAsJudgeEvaluator
from amp_evaluation.models import EvalMode, EvalResult
from amp_evaluation.trace._otel import OTELTrace
from amp_evaluation.trace.mapping import TraceMapping, load_mapping
from amp_evaluation.trace.models import Trace
from amp_evaluation.trace.parser import parse_trace_for_evaluation

__all__ = ["file_lines", "mapping_at", "plan_lines"]

PROMPT_ONLY = "a preview asks no model"


def plan_lines(
    run: str,
    *,
    window: tuple[datetime, datetime],
    sample_rate: float,
    traces: str,
    publisher: str,
    evaluators: Iterable[BaseEvaluator],
) -> Iterator[str]:
    """What would be evaluated, by what, and where scores would go."""
    start, end = map(format_rfc3339, window)
    yield f"{visible(run)}: a dry run, nothing is sent"
    yield f"traces that start from {start} until before {end}"
    yield f"  from {traces}; " + ("every trace" if sample_rate == 1 else f"{sample_rate!r} of the traces, by trace id")
    yield f"scores would go to {publisher}"
    yield "evaluators"
    yield from evaluator_lines(evaluators)


def mapping_at(path: str | None) -> TraceMapping | None:
    """The mapping of the run's settings. Raises ConfigError when it is wrong."""
    return load_mapping(path) if path else None


def file_lines(
    traces: Iterable[OTELTrace], mapping: TraceMapping | None, evaluators: Iterable[BaseEvaluator]
) -> Iterator[str]:
    """How many traces a file holds in the window, and each judge's prompt for one of them."""
    counted = _Counted(traces)
    example = example_trace(counted, mapping)
    for _ in counted:  # the example may be the first of many
        pass
    yield f"traces of the file in the window: {counted.found}"
    if example is not None:
        yield from prompt_lines(evaluators, example)


class _Counted(Iterator[OTELTrace]):
    """Counts what it hands on; a file may hold more than fits into memory."""

    def __init__(self, traces: Iterable[OTELTrace]) -> None:
        self.found = 0
        self._traces = iter(traces)

    def __next__(self) -> OTELTrace:
        trace = next(self._traces)
        self.found += 1
        return trace


def evaluator_lines(evaluators: Iterable[BaseEvaluator]) -> Iterator[str]:
    """A line an evaluator: its name, level, the modes it works in, and a judge's model."""
    rows = [
        (visible(evaluator.name), str(evaluator.level), _modes(evaluator.info.modes), _model(evaluator))
        for evaluator in evaluators
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for name, level, modes, model in rows:
        yield f"  {name:{widths[0]}}  {level:{widths[1]}}  {modes:{widths[2]}}  {model}".rstrip()


def example_trace(traces: Iterable[OTELTrace], mapping: TraceMapping | None) -> Trace | None:
    """The first trace that judges of an answer would look at, else the first that can be parsed."""
    first: Trace | None = None
    for raw in traces:
        try:
            trace = parse_trace_for_evaluation(raw, mapping=mapping)
        except TraceParseError:
            continue
        if trace.output and not trace.failed and not trace.initialization_only:
            return trace
        first = first or trace
    return first


def prompt_lines(evaluators: Iterable[BaseEvaluator], trace: Trace) -> Iterator[str]:
    """For each judge what its model would be asked about the trace's first item, or why it wouldn't be."""
    for evaluator in evaluators:
        if isinstance(evaluator, LLMAsJudgeEvaluator) and EvalMode.MONITOR in evaluator.info.modes:
            yield ""
            yield f"--- {visible(evaluator.name)}: prompt for trace {trace.trace_id} ---"
            yield visible(_first_prompt(evaluator, trace))


def _modes(modes: Sequence[EvalMode]) -> str:
    return "and".join(f" {mode.value} " for mode in modes).strip()


def _model(evaluator: BaseEvaluator) -> str:
    return f"judge {evaluator.model}" if isinstance(evaluator, LLMAsJudgeEvaluator) else ""


def _first_prompt(judge: LLMAsJudgeEvaluator, trace: Trace) -> str:
    asked: list[str] = []

    def remember(prompt: str) -> EvalResult:
        asked.append(prompt)
        return EvalResult.skip(PROMPT_ONLY)

    judge._call_llm_with_retry = remember  # type: ignore[method-assign]  # the hook by which a model is replaced
    try:
        first = judge._plan(trace)[0]
        score = judge._score_item(trace, first) if isinstance(first, EvaluationItem) else first
    finally:
        del judge._call_llm_with_retry
    return asked[0] if asked else f"(no prompt: {score.skip_reason})"
