"""Evaluators: the base class, functions as evaluators, and their parameters."""

from amp_evaluation.evaluators.base import (
    BaseEvaluator,
    EvalMode,
    EvaluationLevel,
    FunctionEvaluator,
    Param,
    validate_unique_evaluator_names,
)

__all__ = [
    "BaseEvaluator",
    "EvalMode",
    "EvaluationLevel",
    "FunctionEvaluator",
    "Param",
    "validate_unique_evaluator_names",
]
