"""What the log says of a run's result."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from amp_evaluation._run_log import log_result
from amp_evaluation.models import EvalMode, EvaluatorScore, EvaluatorSummary, JudgeUsage
from amp_evaluation.run_result import RunResult


def lines(
    caplog: pytest.LogCaptureFixture, *, evaluated: int = 3, scores: object = None, **metadata: object
) -> list[str]:
    counts = {"traces_found": 5, "traces_sampled": 3, "warnings": [], "judge_usage": {}}
    result = RunResult("r", EvalMode.MONITOR, datetime.now(UTC), traces_evaluated=evaluated, metadata=counts | metadata)
    if isinstance(scores, EvaluatorSummary):
        result.scores[scores.evaluator_name] = scores
    with caplog.at_level(logging.INFO, "amp_evaluation"):
        log_result(result)
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records]


def test_an_evaluators_line_has_its_counts_and_mean(caplog: pytest.LogCaptureFixture) -> None:
    scores = [EvaluatorScore("a", score=0.9), EvaluatorScore("b", score=0.1)]
    summary = EvaluatorSummary("L", 2, aggregated_scores={"mean": 0.5}, individual_scores=scores)
    assert lines(caplog, scores=summary) == [
        "INFO 5 traces found, 3 sampled, 3 evaluated",
        "INFO L: 2 scored, 1 passed, 1 failed, 0 skipped, mean 0.5000",
    ]


def test_skip_reasons_come_by_frequency_and_end_at_ten(caplog: pytest.LogCaptureFixture) -> None:
    reasons = ["often"] * 3 + [f"once {number}" for number in range(11)] + ["x" * 1000] * 2
    scores = [EvaluatorScore(f"t{number}", skip_reason=reason) for number, reason in enumerate(reasons)]
    summary = EvaluatorSummary("L", 16, skipped_count=16, individual_scores=scores)
    told = lines(caplog, scores=summary)
    assert told[1] == "INFO L: 0 scored, 0 passed, 0 failed, 16 skipped, no mean"
    assert told[2] == "INFO L: 3 skipped: often"
    assert told[3] == "INFO L: 2 skipped: " + "x" * 300
    assert told[-1] == "INFO L: 3 other reasons for skips"
    assert len(told) == 13


def test_no_trace_is_a_warning_with_both_numbers(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = lines(caplog, evaluated=0)
    assert line == "WARNING no trace was evaluated: 5 found in the window, 3 sampled"


def test_odd_traces_and_judges_costs_are_told_and_warnings_not_twice(caplog: pytest.LogCaptureFixture) -> None:
    usage = {"J": [JudgeUsage("m-1", calls=2, input_tokens=10, output_tokens=4)]}
    told = lines(caplog, truncated=2, warnings=["a short page"], judge_usage=usage)
    assert any(line.startswith("WARNING") and "truncated" in line and "2" in line for line in told)
    assert not any("a short page" in line for line in told)
    assert any(line.startswith("INFO J: m-1, 2 calls") and "cost unknown" in line for line in told)
