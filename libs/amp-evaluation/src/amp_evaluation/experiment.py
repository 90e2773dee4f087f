"""Experiments: ask an agent every task of a dataset, fetch the traces of its runs, and evaluate them with their tasks.

Each call carries the OpenTelemetry baggage `task.id` and `trial.id`: over HTTP as a W3C header, in the same process in
the OpenTelemetry context where that API is installed. An instrumented agent puts both on its spans, and the traces
come back with `taskId` and `trialId`, by which they are paired.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from amp_evaluation._base_runner import BaseRunner, ask_ahead
from amp_evaluation._source import AnyTrace, LoadsTraces, TraceSource, guarded, open_source
from amp_evaluation._trace_run import ProgressCallback, TraceRun
from amp_evaluation.dataset.models import Dataset, Task, generate_id
from amp_evaluation.evaluators._base import BaseEvaluator
from amp_evaluation.invokers import AgentInvoker, InvokeResult, baggage
from amp_evaluation.models import EvalMode, RunError, TaskContext
from amp_evaluation.run_result import RunResult
from amp_evaluation.trace.models import Trace
from amp_evaluation.trace.sampling import Sampler

if TYPE_CHECKING:
    from amp_evaluation.config import Config

__all__ = ["Experiment"]

log = logging.getLogger("amp_evaluation.experiment")

TASK_KEY = "task.id"
TRIAL_KEY = "trial.id"
POLL_DELAYS_S = (1.0, 2.0, 4.0, 8.0)  # the last one again and again
CLOCK_SKEW = timedelta(seconds=5)  # between this machine and the agent's
MAX_NAMED = 10


@dataclass(slots=True)
class _Trials:
    """What was asked under which trial id, and the trials that a trace was found for."""

    tasks: dict[str, Task]
    by_id: dict[str, Task] = field(default_factory=dict)
    results: dict[str, InvokeResult] = field(default_factory=dict)
    paired: set[str] = field(default_factory=set)
    strangers: int = 0

    def task_of(self, task_id: str | None, trial_id: str | None) -> Task | None:
        """The task of a trace. With trials of its own the experiment takes only their traces."""
        if self.by_id:
            return self.by_id.get(trial_id or "")
        return self.tasks.get(task_id or "")


class Experiment(BaseRunner):
    """Runs an agent over a dataset and evaluates what it did.

    `trace_fetch_wait_seconds` is how long traces are waited for after the last call; the wait ends earlier when every
    trial has a trace that no longer grows. Raises ValueError for fewer than one trial a task or a negative wait.
    """

    eval_mode = EvalMode.EXPERIMENT

    def __init__(
        self,
        evaluators: Iterable[BaseEvaluator],
        invoker: AgentInvoker | None = None,
        dataset: Dataset | None = None,
        trials_per_task: int = 1,
        trace_fetch_wait_seconds: float = 60,
        config: "Config | None" = None,
        trace_fetcher: TraceSource | LoadsTraces | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(evaluators, config, trace_fetcher)
        if isinstance(trials_per_task, bool) or not isinstance(trials_per_task, int) or trials_per_task < 1:
            raise ValueError(f"trials_per_task={trials_per_task!r}: a whole number of at least 1 is wanted")
        if not trace_fetch_wait_seconds >= 0:
            raise ValueError(f"trace_fetch_wait_seconds={trace_fetch_wait_seconds!r}: at least 0 is wanted")
        self.invoker = invoker
        self.dataset = dataset
        self.trials_per_task = trials_per_task
        self.trace_fetch_wait_seconds = trace_fetch_wait_seconds
        self._clock = clock
        self._sleep = sleep

    def run(
        self,
        dataset: Dataset | None = None,
        traces: Iterable[AnyTrace] | None = None,
        *,
        on_progress: ProgressCallback | None = None,
    ) -> RunResult:
        """Invoke the agent for every task and trial, wait for the traces, evaluate each with its task.

        With `traces` nothing is invoked or fetched: they are paired by their `taskId` and `trialId`. Calls that fail,
        trials without a trace and given traces that name no task of the dataset are errors of the result.
        Raises ValueError without a dataset, and without an invoker or a source when traces aren't given.
        """
        chosen = self.dataset if dataset is None else dataset
        if chosen is None:
            raise ValueError("no dataset: pass it to Experiment or to run")
        trials = _Trials({task.task_id: task for task in chosen.tasks})
        result = self._new_result({"sample_rate": 1.0})
        result.dataset_id = chosen.dataset_id
        source = None
        if traces is None:
            source = self._source()
            traces = self._invoke_and_fetch(source, trials, result)
        with self._running(Sampler(1), on_progress) as run:
            _offer_paired(run, traces, trials)
            run.finish()
            _report(result, trials, given=source is None)
            return self._complete(result, run, source)

    def _invoke_and_fetch(
        self, source: TraceSource | LoadsTraces, trials: _Trials, result: RunResult
    ) -> Iterable[AnyTrace]:
        if self.invoker is None:
            raise ValueError("no invoker: pass one to Experiment, or traces to run")
        begin = datetime.now(UTC) - CLOCK_SKEW
        self._invoke(self.invoker, trials)
        end = self._wait_for_traces(source, begin, trials)
        result.metadata |= {"start_time": begin, "end_time": end, "invocations": trials.results}
        ask_ahead(source, self.evaluators)
        return guarded(open_source(source, begin, end, {}), result.errors)

    def _invoke(self, invoker: AgentInvoker, trials: _Trials) -> None:
        total = len(trials.tasks) * self.trials_per_task
        log.info("asking the agent %d tasks, %d times each", len(trials.tasks), self.trials_per_task)
        for task in trials.tasks.values():
            for _ in range(self.trials_per_task):
                trial_id = generate_id("trial_")
                trials.by_id[trial_id] = task
                with _carried({TASK_KEY: task.task_id, TRIAL_KEY: trial_id}):
                    trials.results[trial_id] = invoker.invoke_safely(task.input)
                log.debug("task %s, trial %s: %d of %d", task.task_id, trial_id, len(trials.results), total)

    def _wait_for_traces(self, source: TraceSource | LoadsTraces, begin: datetime, trials: _Trials) -> datetime:
        """Poll until each trial's trace is there and has stopped growing, or the wait is over; the window's end."""
        limit = self._clock() + self.trace_fetch_wait_seconds
        before: dict[str, int] = {}
        polls = 0
        while True:
            end = datetime.now(UTC) + CLOCK_SKEW
            left = limit - self._clock()
            if left <= 0:
                return end
            seen = _survey(source, begin, end, trials)
            if seen == before and seen.keys() == trials.by_id.keys():
                return end
            before = seen
            self._sleep(min(left, POLL_DELAYS_S[min(polls, len(POLL_DELAYS_S) - 1)]))
            polls += 1


def _survey(source: TraceSource | LoadsTraces, begin: datetime, end: datetime, trials: _Trials) -> dict[str, int]:
    """Trial id → spans of its trace so far. A source that fails here has its say when the traces are fetched."""
    seen: dict[str, int] = {}
    ignored: list[str] = []
    for raw in guarded(open_source(source, begin, end, {}), ignored):
        _, trial_id = _ids_of(raw)
        if trial_id in trials.by_id:
            seen[trial_id] = len(raw.spans)
    _start_over(source)
    return seen


def _start_over(source: object) -> None:
    """A loader goes on where the last call ended; every poll wants the whole again."""
    reset = getattr(source, "reset_checkpoint", None)
    if reset is not None:
        reset()


def _ids_of(raw: AnyTrace) -> tuple[str | None, str | None]:
    """Task and trial id of a trace: its own fields, else the baggage on one of its spans."""
    task_id = getattr(raw, "taskId", None) or getattr(raw, "task_id", None)
    trial_id = getattr(raw, "trialId", None) or getattr(raw, "trial_id", None)
    if isinstance(raw, Trace) or (task_id and trial_id):
        return task_id, trial_id
    for span in raw.spans:
        found = span.attributes.get(TASK_KEY), span.attributes.get(TRIAL_KEY)
        if any(found):
            return task_id or found[0], trial_id or found[1]
    return task_id, trial_id


def _offer_paired(run: TraceRun, traces: Iterable[AnyTrace], trials: _Trials) -> None:
    """Evaluate the traces that belong to a task; others of the same time are somebody else's."""
    for raw in traces:
        task_id, trial_id = _ids_of(raw)
        task = trials.task_of(task_id, trial_id)
        if task is None:
            trials.strangers += 1
        else:
            trials.paired.add(trial_id or "")
            run.offer(raw, (task, TaskContext(task.task_id, trial_id)))
        del raw  # else its page would stay in memory while the next one is read


def _report(result: RunResult, trials: _Trials, *, given: bool) -> None:
    failed = {trial: answer.error for trial, answer in trials.results.items() if answer.error is not None}
    missing = [trial for trial in trials.by_id if trial not in trials.paired]
    result.metadata |= {
        "trials": len(trials.by_id),
        "trials_failed": len(failed),
        "trials_without_trace": len(missing),
    }
    for trial, error in failed.items():
        text = f"task {trials.by_id[trial].task_id}, {trial}: {error}"
        result.errors.append(RunError(text, repeat_may_help=True))
    if missing:
        named = ", ".join(trials.by_id[trial].task_id for trial in missing[:MAX_NAMED])
        text = f"{len(missing)} of {len(trials.by_id)} trials have no trace (tasks {named}): is the agent instrumented?"
        result.errors.append(RunError(text, repeat_may_help=True))
    if given and trials.strangers:
        text = f"{trials.strangers} traces name no task of the dataset and were not evaluated"
        result.errors.append(RunError(text, repeat_may_help=False))


@contextmanager
def _carried(entries: dict[str, str]) -> Iterator[None]:
    """Baggage for invokers, and for agents in this process where OpenTelemetry's API is installed."""
    try:
        from opentelemetry import baggage as otel_baggage
        from opentelemetry import context as otel_context
    except ImportError:
        with baggage(entries):
            yield
        return
    context = otel_context.get_current()
    for key, value in entries.items():
        context = otel_baggage.set_baggage(key, value, context)
    token = otel_context.attach(context)
    try:
        with baggage(entries):
            yield
    finally:
        otel_context.detach(token)
