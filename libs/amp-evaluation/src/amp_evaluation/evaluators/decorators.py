"""`@evaluator` and `@llm_judge`: a function becomes an evaluator where it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from amp_evaluation.evaluators._function import FunctionEvaluator
from amp_evaluation.evaluators._function_judge import llm_judge

__all__ = ["evaluator", "llm_judge"]


def evaluator(
    name: str | None = None,
    description: str | None = None,
    tags: Sequence[str] | None = None,
    version: str | None = None,
    aggregations: Sequence[Any] | None = None,
    *,
    evaluates_failed_runs: bool = False,
) -> Callable[[Callable[..., Any]], FunctionEvaluator]:
    """Make an evaluator of a function:

        @evaluator("mentions_price", tags=["quality"])
        def mentions_price(trace: Trace, currency: str = Param(default="EUR")) -> EvalResult: ...

    The function's first parameter is hinted Trace, AgentTrace or LLMSpan; it returns an EvalResult, a number in [0, 1],
    a bool, or a dict with `score`. The name defaults to the function's, the description to its docstring's first line.
    A missing hint is a TypeError when the level is first needed.
    """

    def decorate(func: Callable[..., Any]) -> FunctionEvaluator:
        return FunctionEvaluator(
            func,
            name,
            description,
            tags,
            version,
            aggregations,
            evaluates_failed_runs=evaluates_failed_runs,
        )

    if callable(name):  # written without parentheses
        func, name = name, None
        return decorate(func)
    return decorate
