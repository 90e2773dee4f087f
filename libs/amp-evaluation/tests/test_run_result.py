"""A run as text: what each verbosity tells, and that nothing is told that isn't there."""

from datetime import UTC, datetime, timedelta

import pytest

from amp_evaluation.models import (
    EvalMode,
    EvaluationLevel,
    EvaluatorScore,
    EvaluatorSummary,
    JudgeUsage,
    SpanContext,
    TaskContext,
)
from amp_evaluation.run_result import RunResult

START = datetime(2026, 1, 15, tzinfo=UTC)


def full_result() -> RunResult:
    latency = [
        EvaluatorScore("t1", START, score=1.0, explanation="fast"),
        EvaluatorScore("t2", START, score=0.25, task_context=TaskContext("k")),
        EvaluatorScore("t3", START, skip_reason="the run failed: blocked"),
    ]
    steps = [EvaluatorScore("t1", START, skip_reason="no tool step", span_context=SpanContext("s1"))]
    return RunResult(
        run_id="r1",
        eval_mode=EvalMode.MONITOR,
        started_at=START,
        completed_at=START + timedelta(seconds=2.5),
        organization="acme",
        agent="clerk",
        traces_evaluated=3,
        evaluators_run=2,
        scores={
            "Latency": EvaluatorSummary("Latency", 3, EvaluationLevel.TRACE, 1, {"mean": 0.625}, latency),
            "Steps": EvaluatorSummary("Steps", 1, EvaluationLevel.AGENT, 1, {}, steps),
        },
        errors=["traces API: HTTP 503"],
        metadata={
            "traces_found": 5,
            "traces_sampled": 3,
            "failed_runs": 1,
            "cut": 0,
            "warnings": ["the root is missing"],
            "judge_usage": {
                "Tone": [JudgeUsage("m-1", 1, 0, 10, 2, 0.25), JudgeUsage("m-2", 2, 1, 3, 4)],
            },
        },
    )


DEFAULT = """\
Monitor run r1 of acme/clerk
5 traces found, 3 sampled, 3 evaluated in 2.5 s
failed runs: 1

evaluator  level   scored  passed  failed skipped  result
Latency    trace        2       1       1       1  mean 0.625
Steps      agent        0       0       0       1  no score

skipped because
      1  the run failed: blocked
      1  no tool step

Tone: m-1, 1 call, 0 retried, 10 tokens in, 2 out, 0.2500 USD
Tone: m-2, 2 calls, 1 retried, 3 tokens in, 4 out, cost unknown
warning: the root is missing
error: traces API: HTTP 503"""

ITEMS = """

Latency
  t1  1.000 passed: fast
  t2 task k  0.250 failed
  t3  skipped: the run failed: blocked

Steps
  t1 s1  skipped: no tool step"""


def test_default_tells_counts_figures_reasons_cost_and_faults() -> None:
    assert full_result().summary() == DEFAULT


def test_detailed_tells_every_item_besides() -> None:
    assert full_result().summary(verbosity="detailed") == DEFAULT + ITEMS


def test_compact_is_one_line() -> None:
    result = full_result()
    assert result.summary(verbosity="compact") == "monitor errors: 3 traces evaluated; Latency 0.625, Steps -"
    result.errors.clear()
    assert result.summary(verbosity="compact").startswith("monitor ok: ")
    result.traces_evaluated = 1
    result.scores = {"M": EvaluatorSummary("M", aggregated_scores={"median": 0.5})}
    assert result.summary(verbosity="compact") == "monitor ok: 1 trace evaluated; M 0.500"


def test_an_empty_run_says_so() -> None:
    result = RunResult(run_id="r", eval_mode=EvalMode.EXPERIMENT, started_at=START)
    assert result.summary() == "Experiment run r\n0 evaluated in 0.0 s"
    assert result.summary(verbosity="compact") == "experiment no traces: 0 traces evaluated; no score"
    assert (result.success, result.duration_seconds) == (False, 0.0)


def test_another_verbosity_is_refused() -> None:
    with pytest.raises(ValueError, match="verbosity='loud'"):
        full_result().summary(verbosity="loud")  # type: ignore[arg-type]


def test_print_summary_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    full_result().print_summary("compact")
    assert capsys.readouterr().out == full_result().summary(verbosity="compact") + "\n"
