"""Rules on the path: which tools an agent used, in which order, and how that went."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from amp_evaluation.evaluators._base import Target
from amp_evaluation.evaluators.builtin._rules import PATH_LEVELS, RuleEvaluator, listed
from amp_evaluation.evaluators.params import Param
from amp_evaluation.models import EvalResult
from amp_evaluation.trace.models import AgentTrace, Trace

if TYPE_CHECKING:
    from amp_evaluation.dataset.models import Task

__all__ = ["RequiredToolsEvaluator", "StepSuccessRateEvaluator", "ToolSequenceEvaluator"]

NO_STEPS = "no steps recorded"


def _tool_runs(target: Target) -> list[tuple[str, bool]]:
    """(name, failed) of the tools that ran, in order: an agent's own steps, or all of a trace."""
    if isinstance(target, AgentTrace):
        return target.tool_runs()
    return [(span.name, span.metrics.error) for span in target.get_tool_calls()] if isinstance(target, Trace) else []


def _is_blank(target: Target) -> bool:
    """Nothing that an agent does was recorded: that no tool is among it says nothing about the agent."""
    if isinstance(target, AgentTrace):
        return not (target.steps or target.input or target.output)
    return isinstance(target, Trace) and not (target.output or target.get_llm_calls() or target.get_tool_calls())


def _expected_tools(task: Task | None) -> list[str]:
    return [step.tool for step in (task.expected_trajectory or ())] if task is not None else []


def _met_in_order(expected: Sequence[str], called: Sequence[str]) -> list[int]:
    """The places of the longest part of `expected` that stands in `called` in the same order."""
    # lengths[i][j]: the most that can be met of expected[i:] within called[j:]
    lengths = [[0] * (len(called) + 1) for _ in range(len(expected) + 1)]
    for i in range(len(expected) - 1, -1, -1):
        below, row = lengths[i + 1], lengths[i]
        for j in range(len(called) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if expected[i] == called[j] else max(below[j], row[j + 1])
    met, i, j = [], 0, 0
    while i < len(expected) and j < len(called):
        if expected[i] == called[j]:
            met.append(i)
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return met


class ToolSequenceEvaluator(RuleEvaluator):
    """The expected tools were called in the expected order; others between them don't matter unless strict."""

    name = "sequence_adherence"
    tags = ("rule-based", "tool-use", "reasoning")
    evaluates_failed_runs = True
    _supported_levels = PATH_LEVELS

    expected_sequence: list[str] | None = Param(default=[], description="Names of tools, in the order expected.")
    strict: bool = Param(default=False, description="Exactly these calls, nothing between them.")
    use_context_trajectory: bool = Param(
        default=True, description="In experiments, the task's expected trajectory replaces expected_sequence."
    )

    def evaluate(self, target: Target, task: Task | None = None) -> EvalResult:
        expected = (self.use_context_trajectory and _expected_tools(task)) or list(self.expected_sequence or ())
        if not expected:
            return EvalResult.skip("no sequence is expected: set expected_sequence")
        called = [name for name, _ in _tool_runs(target)]
        if not called and _is_blank(target):
            return EvalResult.skip(NO_STEPS)
        if self.strict:
            same = called == expected
            verb = "as expected" if same else f"expected exactly: {listed(expected)}"
            return EvalResult(float(same), f"called: {listed(called)}; {verb}", same)
        met = _met_in_order(expected, called)
        said = f"met {len(met)} of {len(expected)} in order"
        if len(met) == len(expected):
            return EvalResult(1.0, said, True)
        missing = listed(name for place, name in enumerate(expected) if place not in met)
        return EvalResult(len(met) / len(expected), f"{said}; not met: {missing}; called: {listed(called)}", False)


class RequiredToolsEvaluator(RuleEvaluator):
    """The required tools were used, in whatever order; the score is the share of them."""

    name = "tool_coverage"
    tags = ("rule-based", "tool-use")
    evaluates_failed_runs = True
    _supported_levels = PATH_LEVELS

    required_tools: set[str] | None = Param(
        default=set(), description="Names of tools. When empty, the task's expected trajectory names them."
    )

    def evaluate(self, target: Target, task: Task | None = None) -> EvalResult:
        required = self.required_tools or set(_expected_tools(task))
        if not required:
            return EvalResult.skip("no tool is required: set required_tools")
        called = {name for name, _ in _tool_runs(target)}
        if not called and _is_blank(target):
            return EvalResult.skip(NO_STEPS)
        missing = required - called
        used = len(required) - len(missing)
        explanation = _coverage(used, len(required), tuple(sorted(missing)) if missing else ())
        return EvalResult(used / len(required), explanation, not missing)


@lru_cache(maxsize=1024)
def _coverage(used: int, required: int, missing: tuple[str, ...]) -> str:
    return f"used {used} of {required} required tools" + (f"; missing: {listed(missing)}" if missing else "")


class StepSuccessRateEvaluator(RuleEvaluator):
    """The share of tool steps that ended without an error."""

    name = "step_success_rate"
    tags = ("rule-based", "tool-use", "quality")
    evaluates_failed_runs = True
    _supported_levels = PATH_LEVELS

    min_success_rate: float = Param(default=0.8, min=0.0, max=1.0, description="Least share that passes.")

    def evaluate(self, target: Target, task: Task | None = None) -> EvalResult:
        runs = _tool_runs(target)
        if not runs:
            return EvalResult.skip("no tool step")
        failed = tuple([name for name, bad in runs if bad])
        rate = (len(runs) - len(failed)) / len(runs)
        least = self.min_success_rate
        return EvalResult(rate, _success(len(runs), failed, least), rate >= least)


@lru_cache(maxsize=1024)
def _success(steps: int, failed: tuple[str, ...], least: float) -> str:
    said = f"{steps - len(failed)} of {steps} tool steps without an error; at least {least:.0%} wanted"
    return f"{said}; failed: {listed(failed)}" if failed else said
