"""Monitors: which evaluators run, what is counted, what order scores have, and what a failing source leaves."""

import gc
import logging
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amp_evaluation.aggregators import Aggregation
from amp_evaluation.config import AgentConfig, Config, LLMJudgeConfig, MonitorConfig, TraceConfig
from amp_evaluation.dataset import Task
from amp_evaluation.errors import RefusedError, TraceSourceError, TransientError
from amp_evaluation.evaluators.base import BaseEvaluator, LLMAsJudgeEvaluator
from amp_evaluation.models import EvalMode, EvalResult, EvaluatorReport, EvaluatorScore, JudgeUsage, RunError
from amp_evaluation.runner import BaseRunner, Monitor, Progress, RunResult
from amp_evaluation.trace import AgentTrace, LLMSpan, Trace
from amp_evaluation.trace.fetcher import OTELTrace

START = datetime(2026, 1, 15, tzinfo=UTC)


class Length(BaseEvaluator):
    """Scores 1 for any output."""

    name = "length"

    def evaluate(self, trace: Trace) -> EvalResult:
        if trace.output == "raise":
            raise ValueError("no length")
        return EvalResult(1.0 if trace.output else 0.0, explanation=f"{len(trace.output)} characters")


class Calls(BaseEvaluator):
    """One item an LLM call."""

    name = "calls"

    def evaluate(self, call: LLMSpan) -> float:
        return 0.25


class NeedsTask(BaseEvaluator):
    """Experiments only."""

    name = "needs_task"

    def evaluate(self, trace: Trace, task: Task) -> float:
        return 1.0


class Judge(BaseEvaluator):
    """Waits like a model, and knows how many calls were under way at once."""

    name = "judge"
    is_concurrent = True

    def __init__(self, name: str = "judge", delay: float = 0.0) -> None:
        super().__init__()
        self.name = name
        self.delay = delay
        self.lock = threading.Lock()
        self.now = self.most = 0
        self.threads: set[str] = set()

    def evaluate(self, trace: Trace) -> EvalResult:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.threads.add(threading.current_thread().name)
        # Later traces are done first, so that order can't come by itself.
        time.sleep(self.delay / (1 + int(trace.trace_id[1:])))
        with self.lock:
            self.now -= 1
        return EvalResult(0.5, explanation=trace.trace_id)

    def _end_run(self) -> EvaluatorReport:
        return EvaluatorReport(
            errors=[RunError("judge: the quota is used up", repeat_may_help=False)] if self.name == "broke" else [],
            usage=[JudgeUsage("m-1", calls=3, input_tokens=30, output_tokens=4, cost_usd=0.5)],
            warnings=["one model for all"],
        )


def config(**monitor: Any) -> Config:
    return Config(
        agent=AgentConfig(organization="acme", project="shop", agent="clerk", environment="prod"),
        trace=TraceConfig(file_path=""),
        monitor=MonitorConfig(**monitor),
    )


def make(number: int, **over: Any) -> Trace:
    values: dict[str, Any] = {"output": "done", "timestamp": START + timedelta(seconds=number)}
    return Trace(f"t{number}", "ask", **(values | over))


def ids(result: RunResult, name: str) -> list[str]:
    return [score.trace_id for score in result.scores[name].individual_scores]


@dataclass
class Report:
    truncated: int = 1
    cut: int = 2
    requests: int = 3
    errors: list[str] = field(default_factory=lambda: ["traces API: a gap"])
    warnings: list[str] = field(default_factory=lambda: ["truncated"])


class Fetcher:
    """As little as a fetcher may have; ends with an exception when one is given."""

    def __init__(self, traces: Iterable[Any], failure: Exception | None = None) -> None:
        self.traces, self.failure = traces, failure
        self.asked: list[dict[str, Any]] = []

    def fetch_traces(self, **asked: Any) -> Iterator[Any]:
        self.asked.append(asked)
        yield from self.traces
        if self.failure is not None:
            raise self.failure


# --- which evaluators run ---------------------------------------------------------------------------------------------


def test_evaluators_that_need_a_task_are_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "amp_evaluation"):
        monitor = Monitor([Length(), NeedsTask()], config())
    assert monitor.evaluator_names == ["length"]
    assert (monitor.evaluator_count, monitor.eval_mode) == (1, EvalMode.MONITOR)
    assert "needs_task is left out" in caplog.text
    assert isinstance(monitor, BaseRunner)


@pytest.mark.parametrize(
    ("evaluators", "words"),
    [
        ([], "none was given"),
        ([NeedsTask()], "needs_task"),
        ([Length(), Length()], "two evaluators are named 'length'"),
    ],
    ids=["none", "none that can run", "two of one name"],
)
def test_a_list_that_can_not_run_is_refused(evaluators: list[BaseEvaluator], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Monitor(evaluators, config())


def test_what_is_no_evaluator_or_has_no_level_is_a_type_error() -> None:
    class Unhinted(BaseEvaluator):
        def evaluate(self, trace) -> float:  # type: ignore[no-untyped-def]
            return 1.0

    with pytest.raises(TypeError, match="is no evaluator"):
        Monitor([Length], config())  # type: ignore[list-item]
    with pytest.raises(TypeError, match="Unhinted"):
        Monitor([Unhinted()], config())


# --- a run ------------------------------------------------------------------------------------------------------------


def test_a_run_over_given_traces_has_every_field() -> None:
    call = LLMSpan("s1", None, START)
    traces = [make(0), make(1, output=""), make(2, output="raise"), make(3, spans=[call, LLMSpan("s2", None, START)])]
    result = Monitor([Length(), Calls()], config()).run(START, "2026-01-16", traces=traces)
    length, calls = result.scores["length"], result.scores["calls"]
    assert [score.score for score in length.individual_scores] == [1.0, 0.0, None, 1.0]
    assert (length.count, length.skipped_count, length.mean, length.items_per_trace) == (4, 1, 2 / 3, None)
    assert "no length" in (length.skipped_scores[0].skip_reason or "")
    assert (calls.count, calls.skipped_count, calls.mean) == (5, 3, 0.25)
    assert calls.items_per_trace == {"t0": 1, "t1": 1, "t2": 1, "t3": 2}
    assert (result.traces_evaluated, result.evaluators_run, result.success, result.errors) == (4, 2, True, [])
    assert (result.organization, result.project, result.agent, result.environment) == ("acme", "shop", "clerk", "prod")
    assert result.started_at.tzinfo is not None
    assert result.completed_at is not None
    assert 0 <= result.duration_seconds < 5
    assert result.metadata["start_time"] is START
    assert result.metadata["end_time"] == "2026-01-16"
    assert (result.metadata["traces_found"], result.metadata["traces_sampled"]) == (4, 4)


def test_evaluators_of_equal_items_share_one_table_of_them() -> None:
    class Agents(BaseEvaluator):
        def evaluate(self, agent: AgentTrace) -> float:
            return 1.0

    class Others(Agents):
        pass

    two_calls = [LLMSpan("s1", None, START), LLMSpan("s2", None, START)]
    result = Monitor([Agents(), Calls(), Others()], config()).run(traces=[make(0, spans=two_calls), make(1)])
    tables = [result.scores[name].items_per_trace for name in ("Agents", "calls", "Others")]
    assert tables == [{"t0": 1, "t1": 1}, {"t0": 2, "t1": 1}, {"t0": 1, "t1": 1}]


def test_repeated_texts_are_held_once_however_many_others_there_are() -> None:
    class Talker(Length):
        def evaluate(self, trace: Trace) -> EvalResult:
            number = int(trace.trace_id[1:])
            return EvalResult(1.0, explanation=f"said {'the same' if number % 2 else number}")

    scores = Monitor([Talker()], config()).run(traces=[make(n) for n in range(10_000)]).scores["length"]
    same = [score.explanation for score in scores.individual_scores[1::2]]
    assert set(same) == {"said the same"}
    assert len({id(text) for text in same}) <= 4
    assert scores.individual_scores[9_998].explanation == "said 9998"


def test_an_empty_list_means_no_traces() -> None:
    result = Monitor([Length()], config()).run(traces=[])
    assert (result.traces_evaluated, result.success, result.errors) == (0, False, [])
    assert (result.scores["length"].count, result.scores["length"].aggregated_scores) == (0, {})


def test_failed_and_initialisation_only_runs_are_counted_and_skipped() -> None:
    traces = [
        make(0, failed=True, failure_reason="blocked"),
        make(1, initialization_only=True),
        make(2, root_missing=True),
    ]
    result = Monitor([Length()], config()).run(traces=traces)
    counted = [result.metadata[key] for key in ("failed_runs", "initialization_only_runs", "root_missing")]
    assert counted == [1, 1, 1]
    assert (result.scores["length"].skipped_count, result.traces_evaluated) == (2, 3)
    assert "blocked" in (result.scores["length"].individual_scores[0].skip_reason or "")
    switched_off = Monitor([Length()], config(evaluate_failed=True)).run(traces=traces)
    assert switched_off.scores["length"].skipped_count == 1


def test_a_trace_without_id_or_time_is_an_error_and_one_that_cant_be_read_a_skip() -> None:
    raw = [
        OTELTrace(traceId="", startTime="2026-01-15T00:00:00Z"),
        *(OTELTrace(traceId=f"late{n}", startTime="soon") for n in range(12)),
        OTELTrace(traceId="broken", startTime="2026-01-15T00:00:00Z", defect="spans is a number"),
        OTELTrace(traceId="worse", defect="no time at all"),
        OTELTrace(traceId="fine", startTime="2026-01-15T00:00:00Z", output="x"),
    ]
    result = Monitor([Length()], config()).run(traces=raw)
    assert [str(error).partition(" were")[0] for error in result.errors] == [
        "1 traces without an id",
        "13 traces without a readable time on themselves or any span",
    ]
    assert "late9, …" in result.errors[1]
    assert not any(error.repeat_may_help for error in result.errors if isinstance(error, RunError))
    first, second = result.scores["length"].individual_scores
    assert (first.trace_id, first.trace_start_time) == ("broken", START)
    assert "spans is a number" in (first.skip_reason or "")
    assert second.trace_id == "fine"
    assert (result.metadata["parse_failures"], result.metadata["not_addressable"]) == (1, 14)
    assert result.traces_evaluated == 1


@given(rate=st.floats(0.01, 1.0), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_a_rate_keeps_the_same_traces_whatever_the_source(rate: float, seed: int) -> None:
    traces = [Trace(f"{seed}-{number}", output="x", timestamp=START) for number in range(30)]
    monitor = Monitor([Length()], config())
    first = monitor.run(traces=traces, sample_rate=rate)
    second = Monitor([Length()], config(), trace_fetcher=Fetcher(reversed(traces))).run(sample_rate=rate)
    assert sorted(ids(first, "length")) == sorted(ids(second, "length"))
    assert first.metadata["traces_sampled"] == first.traces_evaluated
    assert first.metadata["traces_found"] == 30


@pytest.mark.parametrize("rate", [0, -0.2, 1.5, float("nan")])
def test_a_rate_out_of_range_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match=r"\(0, 1\]|above 0"):
        Monitor([Length()], config()).run(traces=[], sample_rate=rate)


def test_the_scores_of_one_trace_alone_can_be_had() -> None:
    scores = Monitor([Length(), Judge()], config()).evaluate_trace(make(0), Task(task_id="k", input="q"), "k-1")
    assert list(scores) == ["length", "judge"]
    context = scores["judge"][0].task_context
    assert context is not None
    assert (context.task_id, context.trial_id) == ("k", "k-1")
    assert Monitor([Length()], config()).evaluate_trace(make(0))["length"][0].task_context is None


def test_one_trace_is_evaluated_by_the_runners_settings() -> None:
    class Names(LLMAsJudgeEvaluator):
        def build_prompt(self, trace: Trace) -> str:
            return "Fine?"

        def _call_llm_with_retry(self, prompt: str) -> EvalResult:
            return EvalResult(1, self.model)

    chosen = Config(monitor=MonitorConfig(evaluate_failed=True), llm_judge=LLMJudgeConfig(default_model="openai/own"))
    runner = Monitor([Names()], chosen)
    failed = Trace("t", "q", "a", failed=True)
    for _ in range(2):
        assert runner.evaluate_trace(failed)["Names"][0].explanation == "openai/own"
        assert runner.run(traces=[failed]).scores["Names"].individual_scores[0].explanation == "openai/own"


def test_an_evaluator_whose_run_raises_skips_that_trace_only() -> None:
    class Rude(Length):
        def run(self, trace: Trace, task: Task | None = None) -> list[EvaluatorScore]:
            if trace.trace_id == "t1":
                raise KeyError("rude")
            return super().run(trace, task)

    result = Monitor([Rude()], config()).run(traces=[make(0), make(1), make(2)])
    reasons = [score.skip_reason for score in result.scores["length"].individual_scores]
    assert reasons == [None, "KeyError: 'rude'", None]


def test_an_exception_whose_text_cannot_be_read_costs_its_trace_only() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    class Rude(Length):
        def run(self, trace: Trace, task: Task | None = None) -> list[EvaluatorScore]:
            raise Unspeakable

        def _end_run(self) -> EvaluatorReport:
            raise Unspeakable

    result = Monitor([Rude()], config()).run(traces=[make(0)])
    (score,) = result.scores["length"].individual_scores
    assert score.skip_reason == "Unspeakable: its text can't be read"
    assert result.errors == ["length: at the end of the run: Unspeakable: its text can't be read"]


def test_an_aggregation_that_raises_is_an_error_of_the_run() -> None:
    def odd(scores: list[float]) -> float:
        raise ZeroDivisionError("odd")

    evaluator = Length()
    evaluator.aggregations = [Aggregation(odd), Aggregation("max")]
    result = Monitor([evaluator], config()).run(traces=[make(0)])
    assert result.scores["length"].aggregated_scores == {"max": 1.0}
    assert result.errors == ["length: aggregation odd: ZeroDivisionError: odd"]


def test_an_end_of_run_hook_that_raises_is_an_error_of_the_run() -> None:
    class Faulty(Length):
        def _end_run(self) -> EvaluatorReport:
            raise OSError("closed")

    result = Monitor([Faulty()], config()).run(traces=[make(0)])
    assert result.errors == ["length: at the end of the run: OSError: closed"]
    assert result.scores["length"].mean == 1.0


# --- where traces come from -------------------------------------------------------------------------------------------


def test_a_fetcher_needs_only_fetch_traces_and_gets_the_times_as_they_are() -> None:
    fetcher = Fetcher([make(0)])
    result = Monitor([Length()], config(), trace_fetcher=fetcher).run("a", "b", max_traces=5)
    assert fetcher.asked == [{"start_time": "a", "end_time": "b", "max_traces": 5}]
    assert (result.metadata["truncated"], result.metadata["requests"], result.metadata["warnings"]) == (0, None, [])


def test_what_a_fetcher_reports_is_part_of_the_result() -> None:
    fetcher = Fetcher([make(0)])
    fetcher.report = Report()  # type: ignore[attr-defined]
    result = Monitor([Length()], config(), trace_fetcher=fetcher).run("a", "b")
    assert [result.metadata[key] for key in ("truncated", "cut", "requests")] == [1, 2, 3]
    assert (result.errors, result.metadata["warnings"]) == (["traces API: a gap"], ["truncated"])


@pytest.mark.parametrize(
    ("failure", "text", "repeat_may_help"),
    [
        (
            TransientError("traces API", "HTTP 503", status=503),
            "traces API: HTTP 503; later traces were not read",
            True,
        ),
        (RefusedError("traces API", "HTTP 403", status=403), "traces API: HTTP 403; later traces were not read", False),
        (TraceSourceError("t.json, line 9"), "t.json, line 9; later traces were not read", False),
        (KeyError("x"), "trace fetcher: KeyError: 'x'; later traces were not read", True),
        (ValueError("x"), "trace fetcher: ValueError: x; later traces were not read", True),
    ],
    ids=["transient", "refused", "a file broken in the middle", "a fetcher's own", "a value that came too late"],
)
def test_a_source_that_fails_for_good_keeps_what_was_evaluated(
    failure: Exception, text: str, repeat_may_help: bool
) -> None:
    result = Monitor([Length()], config(), trace_fetcher=Fetcher([make(0), make(1)], failure)).run("a", "b")
    assert (result.traces_evaluated, result.errors, result.success) == (2, [text], False)
    assert isinstance(result.errors[0], RunError)
    assert result.errors[0].repeat_may_help is repeat_may_help


@pytest.mark.parametrize(
    "failure", [ValueError("end before start"), TypeError("times"), TraceSourceError("no such file")], ids=str
)
def test_a_wrong_argument_or_an_unreadable_file_is_raised(failure: Exception) -> None:
    with pytest.raises(type(failure), match=str(failure)):
        Monitor([Length()], config(), trace_fetcher=Fetcher([], failure)).run("a", "b")


def test_a_loader_is_taken_as_a_fetcher_and_streams_when_it_can() -> None:
    class Loader:
        def load_traces(self, start_time: Any = None, end_time: Any = None) -> list[Trace]:
            return [make(0)]

    class Streaming(Loader):
        def iter_traces(self, start_time: Any = None, end_time: Any = None) -> Iterator[Trace]:
            yield make(1)

    class Whole:
        def load_traces(self) -> list[Trace]:
            return [make(2)]

    assert ids(Monitor([Length()], config(), trace_fetcher=Loader()).run(), "length") == ["t0"]
    assert ids(Monitor([Length()], config(), trace_fetcher=Whole()).run(), "length") == ["t2"]  # type: ignore[arg-type]
    assert ids(Monitor([Length()], config(), trace_fetcher=Streaming()).run(), "length") == ["t1"]
    with pytest.raises(TypeError, match="fetch_traces"):
        Monitor([Length()], config(), trace_fetcher=object()).run()  # type: ignore[arg-type]


def test_the_file_of_the_environment_is_the_default_source(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"traceId": "a", "startTime": "2026-01-15T00:00:00Z", "output": "x", "spans": []}\n')
    settings_ = Config(trace=TraceConfig(file_path=str(path)))
    assert ids(Monitor([Length()], settings_).run(), "length") == ["a"]
    with pytest.raises(ValueError, match="AMP_TRACE_FILE_PATH"):
        Monitor([Length()], config()).run()


def test_a_mapping_file_of_the_environment_is_used(tmp_path: Path) -> None:
    (tmp_path / "mapping.json").write_text('{"kind": {"key": "k", "values": {"ask": "llm"}}, "output": "said"}')
    (tmp_path / "t.json").write_text(
        '{"traceId": "a", "rootSpanId": "s", "startTime": "2026-01-15T00:00:00Z", "spans": [{"spanId": "s",'
        ' "name": "x", "startTime": "2026-01-15T00:00:00Z", "attributes": {"k": "ask", "said": "hello"}}]}'
    )
    trace = TraceConfig(file_path=str(tmp_path / "t.json"), mapping_path=str(tmp_path / "mapping.json"))
    result = Monitor([Calls()], Config(trace=trace)).run()
    assert (result.scores["calls"].count, result.scores["calls"].skipped_count) == (1, 0)


# --- judges -----------------------------------------------------------------------------------------------------------


def test_judges_run_side_by_side_within_the_limit_and_scores_keep_trace_order() -> None:
    one, two = Judge("one", 0.02), Judge("two", 0.02)
    traces = [make(number) for number in range(40)]
    result = Monitor([one, Length(), two], config(max_concurrency=5)).run(traces=traces)
    wanted = [trace.trace_id for trace in traces]
    assert [ids(result, name) for name in ("one", "length", "two")] == [wanted] * 3
    assert [score.explanation for score in result.scores["two"].individual_scores] == wanted
    assert 2 <= one.most + two.most <= 10
    assert max(one.most, two.most) <= 5
    assert len(one.threads | two.threads) <= 5
    assert result.traces_evaluated == 40


def test_two_runs_give_the_same_scores() -> None:
    traces = [make(number, failed=number % 3 == 0) for number in range(20)]
    runs = [Monitor([Judge(delay=0.003), Length()], config()).run(traces=traces).scores for _ in range(2)]
    assert runs[0] == runs[1]


def test_rules_alone_run_in_the_calling_thread() -> None:
    class Where(Length):
        seen: set[int]

        def evaluate(self, trace: Trace) -> EvalResult:
            self.seen.add(threading.get_ident())
            return EvalResult(1.0)

    evaluator = Where()
    evaluator.seen = set()
    before = set(threading.enumerate())
    Monitor([evaluator], config()).run(traces=[make(0), make(1)])
    assert evaluator.seen == {threading.get_ident()}
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(
    ("evaluators", "wanted"), [([Length()], False), ([Length(), Judge()], True)], ids=["no", "yes"]
)
def test_the_next_page_is_asked_for_ahead_only_when_judges_run(evaluators: list[BaseEvaluator], wanted: bool) -> None:
    fetcher = Fetcher([make(0)])
    fetcher.prefetch = not wanted  # type: ignore[attr-defined]
    Monitor(evaluators, config(), trace_fetcher=fetcher).run("a", "b")
    assert fetcher.prefetch is wanted  # type: ignore[attr-defined]


def test_few_traces_are_open_while_judges_are_slow() -> None:
    alive: list[weakref.ref[Trace]] = []
    most = 0

    def source() -> Iterator[Trace]:
        nonlocal most
        for number in range(60):
            trace = make(number)
            alive.append(weakref.ref(trace))
            most = max(most, sum(ref() is not None for ref in alive))
            yield trace
            del trace

    result = Monitor([Judge(delay=0.05), Length()], config(max_concurrency=3)).run(traces=source())
    assert result.traces_evaluated == 60
    assert most <= 3 + 3 + 2  # running, waiting, the one at hand and the one coming
    gc.collect()
    assert not any(ref() is not None for ref in alive)


def test_a_trace_is_let_go_before_the_next_is_asked_for() -> None:
    last: list[weakref.ref[Trace]] = []
    left: list[bool] = []

    def source() -> Iterator[Trace]:
        for number in range(5):
            left.append(any(ref() is not None for ref in last))
            trace = make(number)
            last[:] = [weakref.ref(trace)]
            yield trace
            del trace

    Monitor([Length(), Calls()], config()).run(traces=source())
    Monitor([Length()], config(), trace_fetcher=Fetcher(source())).run("a", "b")
    assert left == [False] * 10


def test_what_judges_report_is_part_of_the_result() -> None:
    result = Monitor([Judge("broke")], config()).run(traces=[make(0)])
    assert result.errors == ["judge: the quota is used up"]
    assert result.metadata["warnings"] == ["one model for all"]
    assert result.metadata["judge_usage"]["broke"][0].calls == 3


def test_a_judges_own_faults_cost_their_own_items() -> None:
    class BadPlan(Judge):
        def _plan(self, trace: Trace) -> Any:
            raise RuntimeError("plan")

    class BadItem(Judge):
        def _score_item(self, trace: Trace, item: Any, task: Any = None) -> EvaluatorScore:
            raise RuntimeError("item")

    result = Monitor([BadPlan("plan"), BadItem("item"), Judge()], config()).run(traces=[make(0), make(1)])
    reasons = {name: [s.skip_reason for s in result.scores[name].individual_scores] for name in ("plan", "item")}
    assert reasons == {"plan": ["RuntimeError: plan"] * 2, "item": ["RuntimeError: item"] * 2}
    assert result.scores["judge"].skipped_count == 0


def test_a_judge_with_a_run_of_its_own_is_called_by_it() -> None:
    class Own(Judge):
        def run(self, trace: Trace, task: Task | None = None) -> list[EvaluatorScore]:
            return [EvaluatorScore(trace.trace_id, trace.timestamp, score=0.75)]

    scores = Monitor([Own(), Judge("other")], config()).run(traces=[make(0), make(1)]).scores
    assert [score.score for score in scores["judge"].individual_scores] == [0.75, 0.75]
    assert [score.score for score in scores["other"].individual_scores] == [0.5, 0.5]


def test_judges_see_the_task_of_each_trace() -> None:
    scores = Monitor([Judge()], config()).evaluate_trace(make(0), Task(task_id="a", input="q"))
    assert scores["judge"][0].task_context is not None


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes_through_at_once_with_judges_in_flight(interrupt: type[BaseException]) -> None:
    told = []

    def stop(progress: Progress) -> None:
        if progress.found == 3 and not told:  # once: a second one would end a wait for the judges as well
            told.append(progress)
            raise interrupt

    answered = threading.Event()

    class Stuck(Judge):
        def evaluate(self, trace: Trace) -> EvalResult:
            answered.wait(30)
            return EvalResult(0.5)

    begin = time.monotonic()
    try:
        with pytest.raises(interrupt):
            Monitor([Stuck()], config(max_concurrency=2)).run(traces=[make(n) for n in range(9)], on_progress=stop)
        assert time.monotonic() - begin < 10
    finally:
        answered.set()


def test_progress_is_told_after_every_trace_and_while_judges_are_waited_for() -> None:
    told: list[Progress] = []
    Monitor([Length()], config()).run(traces=[make(0), make(1)], on_progress=told.append)
    assert [(p.found, p.sampled, p.evaluated, p.in_flight) for p in told] == [(1, 1, 1, 0), (2, 2, 2, 0), (2, 2, 2, 0)]
    told.clear()
    Monitor([Judge(delay=1.2)], config()).run(traces=[make(0)], on_progress=told.append)
    assert (told[0].evaluated, told[-1].evaluated) == (0, 1)
    assert any(progress.in_flight == 1 and progress.seconds > 0.4 for progress in told[1:-1])


class Slow(Fetcher):
    """Takes its time for each trace, and knows from which on it was told to ask ahead."""

    def __init__(self, traces: Iterable[Any], delay: float) -> None:
        super().__init__(traces)
        self.delay = delay
        self.prefetch = False
        self.ahead_from: int | None = None

    def fetch_traces(self, **asked: Any) -> Iterator[Any]:
        for number, trace in enumerate(self.traces):
            if self.prefetch and self.ahead_from is None:
                self.ahead_from = number
            time.sleep(self.delay)
            yield trace


def test_a_source_that_is_mostly_waited_for_is_told_to_ask_ahead() -> None:
    fetcher = Slow([make(n) for n in range(20)], delay=0.03)
    result = Monitor([Length()], config(), trace_fetcher=fetcher).run("a", "b")
    assert ids(result, "length") == [f"t{n}" for n in range(20)]
    assert fetcher.ahead_from is not None
    assert fetcher.ahead_from > 0
