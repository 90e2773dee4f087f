"""What the rule-based evaluators share: levels, texts of explanations, the curve of the efficiency rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from amp_evaluation.evaluators._base import BaseEvaluator, Target
from amp_evaluation.models import EvalResult, EvaluationLevel

if TYPE_CHECKING:
    from amp_evaluation.dataset.models import Task

__all__ = ["ANY_LEVEL", "PATH_LEVELS", "RuleEvaluator", "capped", "figure", "listed"]

# the default level first
ANY_LEVEL = (EvaluationLevel.TRACE, EvaluationLevel.AGENT, EvaluationLevel.LLM)
PATH_LEVELS = (EvaluationLevel.AGENT, EvaluationLevel.TRACE)

MAX_LISTED = 20  # names in an explanation
MAX_NAME = 100  # characters of each


class RuleEvaluator(BaseEvaluator):
    """A rule of the catalogue. It takes each of its levels' items; a task changes its limits where there is one."""

    _catalog_module = "standard"
    _supported_levels: ClassVar[tuple[EvaluationLevel, ...]] = ANY_LEVEL

    def evaluate(self, target: Target, task: Task | None = None) -> EvalResult:
        raise NotImplementedError

    def _evaluate_target(self, target: Target, task: Task | None) -> Any:
        return self.evaluate(target, task)


def figure(number: float) -> str:
    """A number as people write it: no decimals where there are none, one elsewhere."""
    return f"{number:.1f}".removesuffix(".0")


def listed(names: Iterable[str]) -> str:
    """Names for an explanation, quoted and bounded; "none" without any."""
    shown = [name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…" for name in names]
    more = len(shown) - MAX_LISTED
    text = ", ".join(repr(name) for name in shown[:MAX_LISTED])
    return (text + f" and {more} more" if more > 0 else text) or "none"


def capped(measured: float, limit: float, explanation: str) -> EvalResult:
    """1 up to the limit L, then 1 - (x - L)/L, and 0 from twice the limit; with a limit of 0 only 0 is good."""
    if measured <= limit:
        return EvalResult(1.0, explanation, True)
    score = 0.0 if limit <= 0 else max(0.0, 1.0 - (measured - limit) / limit)
    return EvalResult(score, explanation, False)
