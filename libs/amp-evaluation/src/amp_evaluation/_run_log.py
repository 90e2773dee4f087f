"""What a run's log says of its result: for people who build agents, so a few lines an evaluator."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from amp_evaluation.models import EvaluatorSummary
from amp_evaluation.run_result import COUNTED, RunResult, usage_lines

__all__ = ["log_result"]

log = logging.getLogger(__name__)

MAX_REASONS = 10
"""Skip reasons of an evaluator that are told; the rest is counted."""

MAX_REASON_CHARS = 300
"""Reasons are cut to this in the log; the publisher has them whole."""


def log_result(result: RunResult) -> None:
    """What was evaluated, what each evaluator found, and what the judges cost.

    The result's warnings aren't told again: whoever met the reason logged it then.
    """
    found, sampled = result.metadata["traces_found"], result.metadata["traces_sampled"]
    if result.traces_evaluated:
        log.info("%d traces found, %d sampled, %d evaluated", found, sampled, result.traces_evaluated)
    else:
        log.warning("no trace was evaluated: %d found in the window, %d sampled", found, sampled)
    for key, words in COUNTED:
        if result.metadata.get(key):
            log.warning("%s: %d", words, result.metadata[key])
    for summary in result.scores.values():
        for line in _summary_lines(summary):
            log.info("%s", line)
    for line in usage_lines(result.metadata["judge_usage"]):
        log.info("%s", line)


def _summary_lines(summary: EvaluatorSummary) -> Iterator[str]:
    """Its counts and mean, then the reasons for its skips, the most frequent first."""
    name = summary.evaluator_name
    scored, passed = summary.scored_count, summary.passed_count
    mean = "no mean" if summary.mean is None else f"mean {summary.mean:.4f}"
    yield f"{name}: {scored} scored, {passed} passed, {scored - passed} failed, {summary.skipped_count} skipped, {mean}"
    reasons = summary.skip_reasons()
    for reason, count in reasons[:MAX_REASONS]:
        yield f"{name}: {count} skipped: {reason[:MAX_REASON_CHARS]}"
    if len(reasons) > MAX_REASONS:
        yield f"{name}: {len(reasons) - MAX_REASONS} other reasons for skips"
