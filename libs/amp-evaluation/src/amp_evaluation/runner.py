"""Runners: a `Monitor` evaluates traces as they are, an `Experiment` asks an agent first.

    result = Monitor([builtin("latency_performance")], trace_fetcher=fetcher).run(start_time=start, end_time=end)
    result.print_summary()

A run keeps its scores and, at any time, only the traces it is working on.
"""

from collections.abc import Iterable
from typing import Any

from amp_evaluation._base_runner import BaseRunner, ask_ahead, offer_all
from amp_evaluation._source import AnyTrace, Moment, guarded, open_source, paced
from amp_evaluation._trace_run import ProgressCallback
from amp_evaluation.experiment import Experiment
from amp_evaluation.models import EvalMode
from amp_evaluation.run_result import Progress, RunResult
from amp_evaluation.trace.sampling import Sampler

__all__ = ["BaseRunner", "Experiment", "Monitor", "Progress", "RunResult"]


class Monitor(BaseRunner):
    """Evaluates traces of an agent in use. Evaluators that need a task are left out with a warning."""

    eval_mode = EvalMode.MONITOR

    def run(
        self,
        start_time: Moment | None = None,
        end_time: Moment | None = None,
        traces: Iterable[AnyTrace] | None = None,
        sample_rate: float | None = None,
        *,
        on_progress: ProgressCallback | None = None,
        **kw: Any,
    ) -> RunResult:
        """Evaluate the traces given, or those that the source has from `start_time` up to `end_time`.

        `traces` may be parsed or as they come from a fetcher; an empty list means no traces. `sample_rate` in (0, 1]
        keeps the same traces on every run. `on_progress` is called in this thread after every trace, and every half
        second while judges are waited for. Other keywords go to the source as they are (`page_size`, `max_traces`).

        Failures of a source that leave evaluated traces behind are in `RunResult.errors`; scores come in trace order.
        Raises ValueError for a bad sample rate and without any source, TraceSourceError for a file that can't be read.
        """
        sampler = Sampler(1.0 if sample_rate is None else sample_rate)
        source = self._source() if traces is None else None
        result = self._new_result({"start_time": start_time, "end_time": end_time, "sample_rate": sampler.sample_rate})
        with self._running(sampler, on_progress) as run:
            if source is not None:
                ask_ahead(source, self.evaluators)
                traces = paced(guarded(open_source(source, start_time, end_time, kw), result.errors), source)
            offer_all(run, traces or ())
            run.finish()
            return self._complete(result, run, source)
