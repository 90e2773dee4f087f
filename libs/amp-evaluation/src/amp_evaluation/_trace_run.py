"""A run in progress: traces go in one after the other, counts and scores come out."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from amp_evaluation._scoring import ScoreBoard
from amp_evaluation._source import AnyTrace
from amp_evaluation.dataset.models import Task
from amp_evaluation.evaluators._base import BaseEvaluator
from amp_evaluation.models import EvaluatorScore, RunError, TaskContext
from amp_evaluation.run_result import Progress
from amp_evaluation.trace.mapping import TraceMapping
from amp_evaluation.trace.models import Trace
from amp_evaluation.trace.parser import parse_trace_for_evaluation
from amp_evaluation.trace.sampling import Sampler

__all__ = ["Counts", "Pairing", "TraceRun"]

log = logging.getLogger("amp_evaluation.runner")

MAX_NAMED_TRACES = 10  # how many ids an error names; the count says the rest

ProgressCallback = Callable[[Progress], None]
Pairing = tuple[Task | None, TaskContext | None]


@dataclass(slots=True)
class Counts:
    """What happened to the traces of a run; RunResult's docstring says what each number is."""

    found: int = 0
    sampled: int = 0
    failed_runs: int = 0
    initialization_only_runs: int = 0
    parse_failures: int = 0
    root_missing: int = 0
    cut: int = 0
    nameless: int = 0
    timeless: list[str] = field(default_factory=list)


class TraceRun:
    """Samples, parses and evaluates traces, and counts what it meets."""

    def __init__(
        self,
        evaluators: Sequence[BaseEvaluator],
        *,
        max_concurrency: int,
        sampler: Sampler,
        mapping: TraceMapping | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> None:
        self.counts = Counts()
        self.board = ScoreBoard(evaluators, max_concurrency, on_tick=self._report_progress)
        self._keeps = sampler
        self._mapping = mapping
        self._on_progress = on_progress
        self._begin = time.monotonic()

    def offer(self, raw: AnyTrace, pairing: Pairing = (None, None)) -> None:
        """Take one trace: leave it out, note why it can't be evaluated, or evaluate it."""
        counts = self.counts
        counts.found += 1
        trace_id = raw.trace_id if isinstance(raw, Trace) else raw.traceId
        if not trace_id:
            counts.nameless += 1
        elif self._keeps(trace_id):
            counts.sampled += 1
            self._evaluate(raw, trace_id, pairing)
        if self._on_progress is not None:
            self._report_progress()

    def finish(self) -> None:
        """Wait for the items under way."""
        self.board.finish()
        self._report_progress()

    def errors(self) -> list[str]:
        """Traces that can't be addressed: an error for each kind, with the count and the first ids."""
        errors: list[str] = []
        if self.counts.nameless:
            text = f"{self.counts.nameless} traces without an id were not evaluated"
            errors.append(RunError(text, repeat_may_help=False))
        timeless = self.counts.timeless
        if timeless:
            named = ", ".join(timeless[:MAX_NAMED_TRACES]) + (", …" if len(timeless) > MAX_NAMED_TRACES else "")
            text = (
                f"{len(timeless)} traces without a readable time on themselves or any span were not evaluated: {named}"
            )
            errors.append(RunError(text, repeat_may_help=False))
        return errors

    def _evaluate(self, raw: AnyTrace, trace_id: str, pairing: Pairing) -> None:
        if isinstance(raw, Trace):
            trace, size = raw, 0
        else:
            parsed = self._parse(raw, trace_id)
            if parsed is None:
                return
            trace, size = parsed, raw.size
            if trace.timestamp is None:
                self.counts.timeless.append(trace_id)
                return
        log.debug("trace %s: %d bytes", trace_id, size)
        self._count(trace)
        del raw  # the trace itself holds what it needs
        self.board.add(trace, *pairing, size=size)

    def _parse(self, raw: AnyTrace, trace_id: str) -> Trace | None:
        """The trace; None when it can't be read: then every evaluator has one skip that says so."""
        assert not isinstance(raw, Trace)
        try:
            return parse_trace_for_evaluation(raw, mapping=self._mapping)
        except Exception as error:  # TraceParseError, and whatever a hostile trace may still bring about
            reason = f"the trace can't be read: {error or type(error).__name__}"
        start = raw.start
        if start is None:
            self.counts.timeless.append(trace_id)
            return None
        self.counts.parse_failures += 1
        self.board.add_skip(lambda: EvaluatorScore(trace_id=trace_id, trace_start_time=start, skip_reason=reason))
        return None

    def _count(self, trace: Trace) -> None:
        counts = self.counts
        counts.failed_runs += trace.failed
        counts.initialization_only_runs += trace.initialization_only
        counts.root_missing += trace.root_missing
        counts.cut += trace.cut

    def _report_progress(self) -> None:
        if self._on_progress is None:
            return
        counts, board = self.counts, self.board
        seconds = time.monotonic() - self._begin
        self._on_progress(Progress(counts.found, counts.sampled, board.evaluated, board.in_flight, seconds))
