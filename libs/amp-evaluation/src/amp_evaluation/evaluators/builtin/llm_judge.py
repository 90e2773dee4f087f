"""The built-in judges, at the path that existing code imports them from."""

from amp_evaluation.evaluators.builtin._judges_agent import (
    ErrorRecoveryEvaluator,
    InstructionFollowingEvaluator,
    PathEfficiencyEvaluator,
    ReasoningQualityEvaluator,
)
from amp_evaluation.evaluators.builtin._judges_context import (
    ContextRelevanceEvaluator,
    GroundednessEvaluator,
    SemanticSimilarityEvaluator,
)
from amp_evaluation.evaluators.builtin._judges_llm import (
    CoherenceEvaluator,
    ConcisenessEvaluator,
    SafetyEvaluator,
    ToneEvaluator,
)
from amp_evaluation.evaluators.builtin._judges_response import (
    AccuracyEvaluator,
    ClarityEvaluator,
    CompletenessEvaluator,
    HelpfulnessEvaluator,
    RelevanceEvaluator,
)

__all__ = [
    "AccuracyEvaluator",
    "ClarityEvaluator",
    "CoherenceEvaluator",
    "CompletenessEvaluator",
    "ConcisenessEvaluator",
    "ContextRelevanceEvaluator",
    "ErrorRecoveryEvaluator",
    "GroundednessEvaluator",
    "HelpfulnessEvaluator",
    "InstructionFollowingEvaluator",
    "PathEfficiencyEvaluator",
    "ReasoningQualityEvaluator",
    "RelevanceEvaluator",
    "SafetyEvaluator",
    "SemanticSimilarityEvaluator",
    "ToneEvaluator",
]
