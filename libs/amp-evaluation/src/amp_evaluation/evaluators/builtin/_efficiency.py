"""Rules on what a run cost: time, tokens, iterations. 1 up to the limit, falling to 0 at twice the limit."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from amp_evaluation.evaluators._base import Target
from amp_evaluation.evaluators.builtin._rules import PATH_LEVELS, RuleEvaluator, capped, figure
from amp_evaluation.evaluators.params import Param
from amp_evaluation.models import EvalResult
from amp_evaluation.trace.models import AgentTrace, Trace, TraceMetrics

if TYPE_CHECKING:
    from amp_evaluation.dataset.models import Task

__all__ = ["IterationCountEvaluator", "LatencyEvaluator", "TokenEfficiencyEvaluator"]


def _limit(own: float, task: Task | None, constraint: str, use_task: bool) -> float:
    """The task's limit where it sets one above 0, else the evaluator's own."""
    if task is None or not use_task or task.constraints is None:
        return own
    limit: float | None = getattr(task.constraints, constraint)
    return limit if limit is not None and limit > 0 else own


@lru_cache(maxsize=256)
def _limit_text(limit: float) -> str:
    return f"limit {figure(limit)}"


class LatencyEvaluator(RuleEvaluator):
    """How long it took, against a limit in milliseconds."""

    name = "latency_performance"
    tags = ("rule-based", "efficiency")

    max_latency_ms: float = Param(default=30_000.0, min=0.0, description="Limit in milliseconds.")
    use_task_constraint: bool = Param(default=True, description="In experiments, the task's own limit goes first.")

    def evaluate(self, target: Target, task: Task | None = None) -> EvalResult:
        metrics = target.metrics
        if not metrics.duration_known:
            return EvalResult.skip("duration unknown")
        took = metrics.total_duration_ms if isinstance(metrics, TraceMetrics) else metrics.duration_ms
        limit = _limit(self.max_latency_ms, task, "max_latency_ms", self.use_task_constraint)
        return capped(took, limit, f"took {figure(took)} ms; {_limit_text(limit)} ms")


class TokenEfficiencyEvaluator(RuleEvaluator):
    """How many tokens were used, input and output together, against a limit."""

    name = "token_efficiency"
    tags = ("rule-based", "efficiency")

    max_tokens: int = Param(default=10_000, min=1, description="Limit of input and output tokens together.")
    use_context_constraint: bool = Param(default=True, description="In experiments, the task's own limit goes first.")

    def evaluate(self, target: Target, task: Task | None = None) -> EvalResult:
        metrics = target.metrics
        if not metrics.usage_known:
            return EvalResult.skip("token usage unknown")
        used = metrics.token_usage.total_tokens
        limit = _limit(self.max_tokens, task, "max_tokens", self.use_context_constraint)
        return capped(used, limit, f"used {used} tokens; {_limit_text(limit)}")


class IterationCountEvaluator(RuleEvaluator):
    """How many LLM steps it took, against a limit."""

    name = "iteration_efficiency"
    tags = ("rule-based", "efficiency", "reasoning")
    evaluates_failed_runs = True
    _supported_levels = PATH_LEVELS

    max_iterations: int = Param(default=10, min=1, description="Limit of LLM steps.")
    use_context_constraint: bool = Param(default=True, description="In experiments, the task's own limit goes first.")

    def evaluate(self, target: Target, task: Task | None = None) -> EvalResult:
        steps = _llm_steps(target)
        if not steps:
            return EvalResult.skip("no LLM step")
        limit = _limit(self.max_iterations, task, "max_iterations", self.use_context_constraint)
        return capped(steps, limit, _iterations(steps, limit))


def _llm_steps(target: Target) -> int:
    if isinstance(target, AgentTrace):
        return target.iterations()
    return len(target.get_llm_calls()) if isinstance(target, Trace) else 1


@lru_cache(maxsize=1024)
def _iterations(steps: int, limit: float) -> str:
    return f"{steps} LLM steps; {_limit_text(limit)}"
