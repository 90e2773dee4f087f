"""What monitors and experiments share: which evaluators run, and how a run's result is put together."""

import logging
import uuid
from abc import ABC
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from amp_evaluation._scoring import runs_apart, score_trace
from amp_evaluation._source import AnyTrace, LoadsTraces, TraceSource
from amp_evaluation._summaries import summarize_all
from amp_evaluation._trace_run import ProgressCallback, TraceRun
from amp_evaluation.config import get_config
from amp_evaluation.dataset.models import Task
from amp_evaluation.evaluators._base import BaseEvaluator
from amp_evaluation.evaluators._outcome import error_text
from amp_evaluation.models import EvalMode, EvaluatorReport, EvaluatorScore, JudgeUsage, RunError, TaskContext
from amp_evaluation.run_result import RunResult
from amp_evaluation.trace.loader import TraceLoader
from amp_evaluation.trace.mapping import load_mapping
from amp_evaluation.trace.models import Trace
from amp_evaluation.trace.sampling import Sampler

if TYPE_CHECKING:
    from amp_evaluation.config import Config

__all__ = ["BaseRunner", "ask_ahead", "offer_all"]

log = logging.getLogger("amp_evaluation.runner")


class BaseRunner(ABC):
    """Runs evaluators over traces. `Monitor` and `Experiment` are the two kinds.

    Evaluators that can't run in this runner's mode are left out with a warning. Raises ValueError when none is left
    or two have one name, TypeError when one is no evaluator or has no level.
    """

    eval_mode: ClassVar[EvalMode]

    def __init__(
        self,
        evaluators: Iterable[BaseEvaluator],
        config: "Config | None" = None,
        trace_fetcher: TraceSource | LoadsTraces | None = None,
    ) -> None:
        self.config = get_config() if config is None else config
        self.evaluators = self._choose(list(evaluators))
        self._trace_fetcher = trace_fetcher

    @property
    def evaluator_names(self) -> list[str]:
        """Names of the evaluators that run, in their order."""
        return [evaluator.name for evaluator in self.evaluators]

    @property
    def evaluator_count(self) -> int:
        """How many evaluators run."""
        return len(self.evaluators)

    def evaluate_trace(
        self, trace: Trace, task: Task | None = None, trial_id: str | None = None
    ) -> dict[str, list[EvaluatorScore]]:
        """The scores of one trace by evaluator name, in the calling thread."""
        context = None if task is None else TaskContext(task.task_id, trial_id)
        for evaluator in self.evaluators:
            evaluator._configure(self.config)
        return {evaluator.name: score_trace(evaluator, trace, task, context) for evaluator in self.evaluators}

    def _choose(self, evaluators: list[BaseEvaluator]) -> list[BaseEvaluator]:
        chosen: dict[str, BaseEvaluator] = {}
        for evaluator in evaluators:
            if not isinstance(evaluator, BaseEvaluator):
                raise TypeError(f"{evaluator!r} is no evaluator: an instance of BaseEvaluator is wanted")
            _ = evaluator.level  # now, rather than as a skip of every trace
            if not evaluator.supports(self.eval_mode):
                log.warning("%s is left out: it needs a task, which only experiments have", evaluator.name)
            elif evaluator.name in chosen:
                raise ValueError(f"two evaluators are named {evaluator.name!r}: each needs a name of its own")
            else:
                chosen[evaluator.name] = evaluator
        if not chosen:
            names = ", ".join(evaluator.name for evaluator in evaluators) or "none was given"
            raise ValueError(f"no evaluator can run in {self.eval_mode.value} mode ({names})")
        return list(chosen.values())

    def _source(self) -> TraceSource | LoadsTraces:
        """The trace fetcher, else the file of AMP_TRACE_FILE_PATH. Raises ValueError with neither."""
        if self._trace_fetcher is not None:
            return self._trace_fetcher
        if self.config.trace.file_path is None:
            raise ValueError("no traces: pass trace_fetcher or traces, or set AMP_TRACE_FILE_PATH")
        return TraceLoader(self.config.trace.file_path)

    def _new_result(self, metadata: dict[str, Any]) -> RunResult:
        agent = self.config.agent
        return RunResult(
            run_id=str(uuid.uuid4()),
            eval_mode=self.eval_mode,
            started_at=datetime.now(UTC),
            organization=agent.organization,
            project=agent.project,
            agent=agent.agent,
            environment=agent.environment,
            evaluators_run=len(self.evaluators),
            metadata=metadata,
        )

    @contextmanager
    def _running(self, sampler: Sampler, on_progress: ProgressCallback | None) -> Iterator[TraceRun]:
        """A run in progress. On the way out nothing waits for calls in flight, so that an interrupt ends it at once."""
        path = self.config.trace.mapping_path
        run = TraceRun(
            self.evaluators,
            max_concurrency=self.config.monitor.max_concurrency,
            sampler=sampler,
            mapping=None if path is None else load_mapping(path),
            on_progress=on_progress,
        )
        for evaluator in self.evaluators:
            evaluator._begin_run(self.config)
        try:
            yield run
        finally:
            run.board.stop()

    def _complete(self, result: RunResult, run: TraceRun, source: object) -> RunResult:
        """Fill in scores, counts, errors and warnings once everything is evaluated."""
        counts = run.counts
        result.traces_evaluated = run.board.evaluated
        result.metadata |= {
            "traces_found": counts.found,
            "traces_sampled": counts.sampled,
            "failed_runs": counts.failed_runs,
            "initialization_only_runs": counts.initialization_only_runs,
            "parse_failures": counts.parse_failures,
            "not_addressable": counts.nameless + len(counts.timeless),
            "root_missing": counts.root_missing,
        }
        self._take_source_report(result, run, source)
        result.errors += run.errors()
        self._take_evaluator_reports(result)
        result.scores = summarize_all(self.evaluators, run.board.scores(), result.errors)
        result.completed_at = datetime.now(UTC)
        return result

    def _take_source_report(self, result: RunResult, run: TraceRun, source: object) -> None:
        """What the fetcher or loader met, where it tells; any other source is taken to have met nothing."""
        report = getattr(source, "report", None)
        result.metadata |= {
            "truncated": getattr(report, "truncated", 0),
            "cut": max(getattr(report, "cut", 0), run.counts.cut),
            "requests": getattr(report, "requests", None),
            "warnings": list(getattr(report, "warnings", ())),
        }
        result.errors += getattr(report, "errors", ())

    def _take_evaluator_reports(self, result: RunResult) -> None:
        usage: dict[str, list[JudgeUsage]] = {}
        for evaluator in self.evaluators:
            report = _end(evaluator)
            result.errors += report.errors
            result.metadata["warnings"] += report.warnings
            if report.usage:
                usage[evaluator.name] = report.usage
        result.metadata["judge_usage"] = usage


def _end(evaluator: BaseEvaluator) -> EvaluatorReport:
    try:
        return evaluator._end_run()
    except Exception as error:  # a hook that a user overrode; the scores are there
        text = f"{evaluator.name}: at the end of the run: {error_text(error)}"
        return EvaluatorReport(errors=[RunError(text, repeat_may_help=False)])


def offer_all(run: TraceRun, traces: Iterable[AnyTrace]) -> None:
    """Evaluate every trace."""
    for trace in traces:
        run.offer(trace)
        del trace  # else it, and the page it came in, would stay in memory while the next is read


def ask_ahead(source: object, evaluators: Iterable[BaseEvaluator]) -> None:
    """The next page is fetched while judges are waited for; for rules alone a second thread only costs."""
    if hasattr(source, "prefetch"):
        source.prefetch = any(map(runs_apart, evaluators))
