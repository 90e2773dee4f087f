"""Base classes of evaluators, at the path that existing evaluators import them from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from amp_evaluation.evaluators._base import BaseEvaluator
from amp_evaluation.evaluators._function import FunctionEvaluator
from amp_evaluation.evaluators._function_judge import FunctionLLMJudge
from amp_evaluation.evaluators._llm_judge import JudgeOutput, LLMAsJudgeEvaluator
from amp_evaluation.evaluators.params import Param
from amp_evaluation.models import EvalMode, EvaluationLevel

__all__ = [
    "BaseEvaluator",
    "EvalMode",
    "EvaluationLevel",
    "FunctionEvaluator",
    "FunctionLLMJudge",
    "JudgeOutput",
    "LLMAsJudgeEvaluator",
    "Param",
    "validate_unique_evaluator_names",
]


def validate_unique_evaluator_names(evaluators: Iterable[BaseEvaluator]) -> None:
    """Raise ValueError when two evaluators have one name: their scores couldn't be told apart."""
    twice = [name for name, count in Counter(evaluator.name for evaluator in evaluators).items() if count > 1]
    if twice:
        raise ValueError(f"each evaluator needs a name of its own; used more than once: {', '.join(map(repr, twice))}")
