"""Evaluators: the base classes, functions as evaluators and judges, and their parameters."""

from amp_evaluation.evaluators.base import (
    BaseEvaluator,
    EvalMode,
    EvaluationLevel,
    FunctionEvaluator,
    FunctionLLMJudge,
    JudgeOutput,
    LLMAsJudgeEvaluator,
    Param,
    validate_unique_evaluator_names,
)

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
