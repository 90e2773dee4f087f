"""The rule-based evaluators of the catalogue, at the path that existing code imports them from."""

from amp_evaluation.evaluators.builtin._efficiency import (
    IterationCountEvaluator,
    LatencyEvaluator,
    TokenEfficiencyEvaluator,
)
from amp_evaluation.evaluators.builtin._output import (
    AnswerLengthEvaluator,
    ContainsMatchEvaluator,
    ExactMatchEvaluator,
    ProhibitedContentEvaluator,
    RequiredContentEvaluator,
)
from amp_evaluation.evaluators.builtin._trajectory import (
    RequiredToolsEvaluator,
    StepSuccessRateEvaluator,
    ToolSequenceEvaluator,
)

__all__ = [
    "AnswerLengthEvaluator",
    "ContainsMatchEvaluator",
    "ExactMatchEvaluator",
    "IterationCountEvaluator",
    "LatencyEvaluator",
    "ProhibitedContentEvaluator",
    "RequiredContentEvaluator",
    "RequiredToolsEvaluator",
    "StepSuccessRateEvaluator",
    "TokenEfficiencyEvaluator",
    "ToolSequenceEvaluator",
]
