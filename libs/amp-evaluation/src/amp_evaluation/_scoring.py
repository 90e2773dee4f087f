"""Every evaluator's scores over a run, in the order of the traces whatever finished first.

Evaluators that only compute run in place, in the calling thread; with no other kind there is no pool and no thread.
Items of evaluators that wait for a model go to daemon workers. Each item's slot in its evaluator's column is reserved
when its trace is planned, so the order doesn't depend on who is done first, and a trace is let go with its last item.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from amp_evaluation._pool import WorkerPool
from amp_evaluation.dataset.models import Task
from amp_evaluation.evaluators._base import BaseEvaluator, EvaluationItem
from amp_evaluation.evaluators._outcome import error_text
from amp_evaluation.models import EvaluatorScore, TaskContext
from amp_evaluation.trace.models import Trace

__all__ = ["ScoreBoard", "runs_apart", "score_trace"]

# What traces with items under way may weigh on the wire, together, before the next one waits. One trace is always let
# through. Decoded text takes about as much again.
MAX_OPEN_BYTES = 32 * 1024 * 1024
MAX_SHARED_TEXTS = 4096

Column = list[EvaluatorScore | None]


def runs_apart(evaluator: BaseEvaluator) -> bool:
    """Its items go to workers. One with a `run` of its own is called by it, as it is, in the calling thread."""
    return evaluator.is_concurrent and type(evaluator).run is BaseEvaluator.run


def score_trace(
    evaluator: BaseEvaluator, trace: Trace, task: Task | None, context: TaskContext | None
) -> list[EvaluatorScore]:
    """All items of one trace, in the calling thread. An evaluator that raises gives one skip with the exception."""
    try:
        scores = evaluator.run(trace, task)
    except Exception as error:  # an evaluator's own code; its fault costs this trace's score only
        scores = [_skip(trace, error)]
    if context is not None:
        for score in scores:
            score.task_context = context
    return scores


def _skip(trace: Trace, error: Exception) -> EvaluatorScore:
    return EvaluatorScore(trace_id=trace.trace_id, trace_start_time=trace.timestamp, skip_reason=error_text(error))


class _OpenTrace:
    """How much of a trace is still to do. It doesn't hold the trace: only its items do."""

    __slots__ = ("items_left", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.items_left = 0


class _Call:
    """One item on its way through the pool."""

    __slots__ = ("_board", "_column", "_context", "_evaluator", "_item", "_open", "_slot", "_task", "_trace")

    def __init__(
        self,
        board: "ScoreBoard",
        evaluator: BaseEvaluator,
        trace: Trace,
        item: EvaluationItem,
        task: Task | None,
        context: TaskContext | None,
        column: Column,
        open_trace: _OpenTrace,
    ) -> None:
        self._board, self._evaluator, self._trace, self._item = board, evaluator, trace, item
        self._task, self._context, self._column, self._open = task, context, column, open_trace
        self._slot = len(column)
        column.append(None)

    def __call__(self) -> None:
        try:
            score = self._evaluator._score_item(self._trace, self._item, self._task)
        except Exception as error:  # `_score_item` doesn't raise; one that a user overrode may
            score = _skip(self._trace, error)
            score.span_context = self._item.span_context
        if self._context is not None:
            score.task_context = self._context
        self._column[self._slot] = score
        self._board._item_done(self._open)


class ScoreBoard:
    """Takes traces one after the other, and holds a column of scores for each evaluator."""

    def __init__(
        self, evaluators: Sequence[BaseEvaluator], max_concurrency: int, on_tick: Callable[[], None] = lambda: None
    ) -> None:
        self.columns: list[Column] = [[] for _ in evaluators]
        self.evaluated = 0
        self._rows = list(zip(evaluators, self.columns, strict=True))
        self._shared: dict[str, str] = {}
        self._lock = threading.Lock()
        self._open_bytes = 0
        self._open_traces = 0
        concurrent = any(map(runs_apart, evaluators))
        self._pool = WorkerPool(max_concurrency, on_tick=on_tick) if concurrent else None

    @property
    def in_flight(self) -> int:
        """Items that workers are busy with."""
        return 0 if self._pool is None else self._pool.in_flight

    def add(self, trace: Trace, task: Task | None = None, context: TaskContext | None = None, *, size: int = 0) -> None:
        """Evaluate a trace; with a pool this returns while items are under way. `size` is its bytes on the wire."""
        if self._pool is None:
            for evaluator, column in self._rows:
                self._keep(column, score_trace(evaluator, trace, task, context))
            self.evaluated += 1
        else:
            self._add_concurrently(self._pool, trace, task, context, size)

    def add_skip(self, trace_skip: Callable[[], EvaluatorScore]) -> None:
        """One skipped score for every evaluator, for a trace that can't be evaluated."""
        for _, column in self._rows:
            column.append(trace_skip())

    def finish(self) -> None:
        """Wait for the items under way."""
        if self._pool is not None:
            self._pool.drain()

    def stop(self) -> None:
        """Let the workers go, without waiting for any of them."""
        if self._pool is not None:
            self._pool.stop()

    def scores(self) -> list[list[EvaluatorScore]]:
        """The columns, complete after `finish`."""
        return cast(list[list[EvaluatorScore]], self.columns)

    def _add_concurrently(
        self, pool: WorkerPool, trace: Trace, task: Task | None, context: TaskContext | None, size: int
    ) -> None:
        pool.wait_until(lambda: self._open_traces == 0 or self._open_bytes + size <= MAX_OPEN_BYTES)
        opened = _OpenTrace(size)
        calls: list[_Call] = []
        for evaluator, column in self._rows:
            if runs_apart(evaluator):
                calls += self._plan(evaluator, column, trace, task, context, opened)
        self._open(opened, len(calls) + 1)  # one more for the rules below
        for call in calls:
            pool.submit(call)
        for evaluator, column in self._rows:
            if not runs_apart(evaluator):
                self._keep(column, score_trace(evaluator, trace, task, context))
        self._item_done(opened)

    def _plan(
        self,
        evaluator: BaseEvaluator,
        column: Column,
        trace: Trace,
        task: Task | None,
        context: TaskContext | None,
        opened: _OpenTrace,
    ) -> list[_Call]:
        try:
            plan = evaluator._plan(trace)
        except Exception as error:  # as in `score_trace`
            plan = [_skip(trace, error)]
        calls = []
        for entry in plan:
            if isinstance(entry, EvaluatorScore):
                entry.task_context = context
                self._keep(column, (entry,))
            else:
                calls.append(_Call(self, evaluator, trace, entry, task, context, column, opened))
        return calls

    def _keep(self, column: Column, scores: Iterable[EvaluatorScore]) -> None:
        """Append scores, with one copy of each repeated text: rules say the same of most traces."""
        shared = self._shared
        for score in scores:
            text = score.explanation
            if text is not None:
                score.explanation = shared.setdefault(text, text)
            elif score.skip_reason is not None:
                score.skip_reason = shared.setdefault(score.skip_reason, score.skip_reason)
            column.append(score)
        if len(shared) > MAX_SHARED_TEXTS:
            shared.clear()

    def _open(self, opened: _OpenTrace, items: int) -> None:
        with self._lock:
            opened.items_left = items
            self._open_traces += 1
            self._open_bytes += opened.size

    def _item_done(self, opened: _OpenTrace) -> None:
        with self._lock:
            opened.items_left -= 1
            if opened.items_left == 0:
                self.evaluated += 1
                self._open_traces -= 1
                self._open_bytes -= opened.size
