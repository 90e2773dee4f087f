"""Experiments: what the agent is asked and carries, how long traces are waited for, and how they are paired."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry import baggage as otel_baggage

from amp_evaluation.config import Config, TraceConfig
from amp_evaluation.dataset import Dataset, Task
from amp_evaluation.errors import TransientError
from amp_evaluation.evaluators.base import BaseEvaluator
from amp_evaluation.experiment import Experiment
from amp_evaluation.invokers import AgentInvoker, InvokeResult, TaskInput, current_baggage
from amp_evaluation.models import EvalMode, RunError
from amp_evaluation.trace import Trace
from amp_evaluation.trace.fetcher import OTELSpan, OTELTrace

CONFIG = Config(trace=TraceConfig(file_path=""))


class Matches(BaseEvaluator):
    """Experiments only."""

    name = "matches"

    def evaluate(self, trace: Trace, task: Task) -> float:
        return float(trace.output == task.expected_output)


class Plain(BaseEvaluator):
    """Needs no task."""

    name = "plain"

    def evaluate(self, trace: Trace) -> float:
        return 1.0


class Clock:
    """Time that passes only in sleep."""

    def __init__(self) -> None:
        self.now = 0.0
        self.naps: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds


class World(AgentInvoker):
    """An agent that doubles its input, and the platform that has its traces: some late, some growing."""

    def __init__(self, *, lost: int = 0, late_polls: int = 0, by_attributes: bool = False) -> None:
        self.lost, self.late_polls, self.by_attributes = lost, late_polls, by_attributes
        self.traces: list[OTELTrace] = [trace("stranger", "x", "other", "other-trial")]
        self.carried: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.windows: list[tuple[datetime, datetime]] = []

    def invoke(self, task_input: TaskInput) -> InvokeResult:
        carried = dict(current_baggage())
        self.carried.append((carried, dict(otel_baggage.get_all())))
        if task_input == "bad":
            raise ConnectionError("the agent is down")
        output = f"{task_input}{task_input}"
        if len(self.carried) > self.lost:
            number = len(self.carried)
            self.traces.append(
                trace(f"t{number}", output, carried["task.id"], carried["trial.id"], by_attributes=self.by_attributes)
            )
        return InvokeResult(task_input, output)

    def fetch_traces(self, start_time: datetime, end_time: datetime) -> Iterator[OTELTrace]:
        self.windows.append((start_time, end_time))
        if self.late_polls:
            self.late_polls -= 1
            return iter(())
        return iter(self.traces)


def trace(trace_id: str, output: str, task_id: str, trial_id: str, *, by_attributes: bool = False) -> OTELTrace:
    span = OTELSpan(spanId=f"{trace_id}-s", name="run", startTime="2026-01-15T00:00:00Z")
    made = OTELTrace(
        traceId=trace_id, rootSpanId=span.spanId, startTime="2026-01-15T00:00:00Z", output=output, spans=[span]
    )
    if by_attributes:
        span.attributes = {"task.id": task_id, "trial.id": trial_id}
    else:
        made.taskId, made.trialId = task_id, trial_id
    return made


def dataset(*inputs: str) -> Dataset:
    return Dataset(dataset_id="d", tasks=[Task(task_id=f"k{i}", input=i, expected_output=i + i) for i in inputs])


def experiment(world: World, clock: Clock, **options: Any) -> Experiment:
    return Experiment(
        [Matches(), Plain()], world, config=CONFIG, trace_fetcher=world, clock=clock, sleep=clock.sleep, **options
    )


@pytest.mark.parametrize("by_attributes", [False, True], ids=["ids of the trace", "baggage on a span"])
def test_each_trial_is_paired_with_its_task(by_attributes: bool) -> None:
    world, clock = World(by_attributes=by_attributes), Clock()
    result = experiment(world, clock, trials_per_task=2).run(dataset("a", "b"))
    assert (result.eval_mode, result.dataset_id, result.success) == (EvalMode.EXPERIMENT, "d", True)
    assert [score.trace_id for score in result.scores["matches"].individual_scores] == ["t1", "t2", "t3", "t4"]
    contexts = [score.task_context for score in result.scores["plain"].individual_scores]
    assert [context.task_id for context in contexts if context] == ["ka", "ka", "kb", "kb"]
    assert len({context.trial_id for context in contexts if context}) == 4
    assert result.scores["matches"].mean == 1.0
    counts = [result.metadata[key] for key in ("trials", "trials_failed", "trials_without_trace", "traces_found")]
    assert counts == [4, 0, 0, 4]
    assert [answer.output for answer in result.metadata["invocations"].values()] == ["aa", "aa", "bb", "bb"]


def test_judges_score_with_the_task_too() -> None:
    class Judge(Matches):
        name = "judge"
        is_concurrent = True

    world, clock = World(), Clock()
    runner = Experiment([Judge()], world, config=CONFIG, trace_fetcher=world, clock=clock, sleep=clock.sleep)
    scores = runner.run(dataset("a", "b")).scores["judge"].individual_scores
    assert [score.task_context.task_id for score in scores if score.task_context] == ["ka", "kb"]
    assert all(score.task_context and score.task_context.trial_id for score in scores)
    assert [score.score for score in scores] == [1.0, 1.0]


def test_calls_carry_task_and_trial_for_http_and_for_opentelemetry() -> None:
    world = World()
    experiment(world, Clock()).run(dataset("a"))
    carried, in_context = world.carried[0]
    assert carried["task.id"] == "ka"
    assert carried["trial.id"].startswith("trial_")
    assert in_context == carried
    assert otel_baggage.get_all() == {}
    assert current_baggage() == {}


def test_without_opentelemetry_the_header_still_goes() -> None:
    code = """
import sys
sys.modules["opentelemetry"] = None
from amp_evaluation.experiment import _carried
from amp_evaluation.invokers import current_baggage
with _carried({"task.id": "k"}):
    print(current_baggage())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{'task.id': 'k'}\n"


def test_the_wait_ends_when_every_trace_is_there_and_no_longer_grows() -> None:
    world, clock = World(late_polls=2), Clock()
    result = experiment(world, clock).run(dataset("a"))
    assert clock.naps == [1.0, 2.0, 4.0]
    assert result.success
    begin, end = world.windows[-1]
    assert begin < datetime.now(UTC) < end
    assert (result.metadata["start_time"], result.metadata["end_time"]) == (begin, end)


def test_the_wait_has_an_end_and_missing_traces_are_an_error() -> None:
    world, clock = World(lost=1), Clock()
    result = experiment(world, clock, trace_fetch_wait_seconds=20).run(dataset("a", "b"))
    assert clock.naps == [1.0, 2.0, 4.0, 8.0, 5.0]
    assert result.errors == ["1 of 2 trials have no trace (tasks ka): is the agent instrumented?"]
    assert result.metadata["trials_without_trace"] == 1
    assert result.scores["plain"].count == 1


def test_no_wait_asks_at_once() -> None:
    clock = Clock()
    assert experiment(World(), clock, trace_fetch_wait_seconds=0).run(dataset("a")).success
    assert clock.naps == []


def test_a_call_that_fails_is_an_error_and_the_others_go_on() -> None:
    clock = Clock()
    result = experiment(World(), clock, trace_fetch_wait_seconds=2).run(dataset("a", "bad", "c"))
    assert result.metadata["trials_failed"] == 1
    assert "ConnectionError: the agent is down" in result.errors[0]
    assert isinstance(result.errors[0], RunError)
    assert result.scores["plain"].count == 2


def test_a_source_that_fails_while_waiting_is_told_once() -> None:
    class Down(World):
        def fetch_traces(self, start_time: datetime, end_time: datetime) -> Iterator[OTELTrace]:
            raise TransientError("traces API", "HTTP 503", status=503)
            yield  # type: ignore[unreachable]

    result = experiment(Down(), Clock(), trace_fetch_wait_seconds=3).run(dataset("a"))
    assert sum("HTTP 503" in error for error in result.errors) == 1


def test_a_loader_is_read_from_the_start_at_every_poll() -> None:
    class File:
        def __init__(self, world: World) -> None:
            self.world, self.given = world, 0

        def load_traces(self, start_time: Any = None, end_time: Any = None) -> list[OTELTrace]:
            fresh = self.world.traces[self.given :]
            self.given = len(self.world.traces)
            return fresh

        def reset_checkpoint(self) -> None:
            self.given = 0

    world, clock = World(), Clock()
    runner = Experiment([Plain()], world, config=CONFIG, trace_fetcher=File(world), clock=clock, sleep=clock.sleep)
    assert runner.run(dataset("a")).scores["plain"].count == 1


def test_given_traces_are_paired_without_any_call() -> None:
    traces = [trace("t1", "aa", "ka", "1"), trace("t2", "no", "kb", "1"), trace("t3", "x", "other", "1")]
    result = Experiment([Matches()], config=CONFIG, dataset=dataset("a", "b")).run(traces=traces)
    assert [score.score for score in result.scores["matches"].individual_scores] == [1.0, 0.0]
    assert result.errors == ["1 traces name no task of the dataset and were not evaluated"]
    assert result.metadata["trials"] == 0


def test_a_parsed_trace_names_no_task() -> None:
    result = Experiment([Plain()], config=CONFIG, dataset=dataset("a")).run(traces=[Trace("t1")])
    assert len(result.errors) == 1


@pytest.mark.parametrize(
    "options",
    [{"trials_per_task": 0}, {"trials_per_task": True}, {"trials_per_task": 1.5}, {"trace_fetch_wait_seconds": -1}],
    ids=str,
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))}="):
        Experiment([Plain()], config=CONFIG, **options)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="no dataset"):
        Experiment([Plain()], config=CONFIG).run()
    with pytest.raises(ValueError, match="AMP_TRACE_FILE_PATH"):
        Experiment([Plain()], config=CONFIG).run(dataset("a"))
    with pytest.raises(ValueError, match="no invoker"):
        Experiment([Plain()], config=CONFIG, trace_fetcher=World()).run(dataset("a"))
