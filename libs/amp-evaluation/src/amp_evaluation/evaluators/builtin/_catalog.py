"""The built-in evaluators by name: one table, no search."""

from __future__ import annotations

from typing import Any

from amp_evaluation.evaluators._base import BaseEvaluator
from amp_evaluation.evaluators.builtin import llm_judge, standard
from amp_evaluation.evaluators.params import EvaluatorConfigError, nearest_first
from amp_evaluation.models import EvalMode, EvaluatorInfo

__all__ = ["BUILTINS", "builtin", "builtin_evaluator_catalog", "list_builtin_evaluators"]

BUILTINS: dict[str, type[BaseEvaluator]] = {
    "length_compliance": standard.AnswerLengthEvaluator,
    "content_coverage": standard.RequiredContentEvaluator,
    "content_safety": standard.ProhibitedContentEvaluator,
    "exact_match": standard.ExactMatchEvaluator,
    "contains_match": standard.ContainsMatchEvaluator,
    "sequence_adherence": standard.ToolSequenceEvaluator,
    "tool_coverage": standard.RequiredToolsEvaluator,
    "step_success_rate": standard.StepSuccessRateEvaluator,
    "latency_performance": standard.LatencyEvaluator,
    "token_efficiency": standard.TokenEfficiencyEvaluator,
    "iteration_efficiency": standard.IterationCountEvaluator,
    "helpfulness": llm_judge.HelpfulnessEvaluator,
    "clarity": llm_judge.ClarityEvaluator,
    "accuracy": llm_judge.AccuracyEvaluator,
    "completeness": llm_judge.CompletenessEvaluator,
    "groundedness": llm_judge.GroundednessEvaluator,
    "context_relevance": llm_judge.ContextRelevanceEvaluator,
    "relevance": llm_judge.RelevanceEvaluator,
    "semantic_similarity": llm_judge.SemanticSimilarityEvaluator,
    "coherence": llm_judge.CoherenceEvaluator,
    "conciseness": llm_judge.ConcisenessEvaluator,
    "safety": llm_judge.SafetyEvaluator,
    "tone": llm_judge.ToneEvaluator,
    "reasoning_quality": llm_judge.ReasoningQualityEvaluator,
    "path_efficiency": llm_judge.PathEfficiencyEvaluator,
    "error_recovery": llm_judge.ErrorRecoveryEvaluator,
    "instruction_following": llm_judge.InstructionFollowingEvaluator,
}


def builtin(name: str, **config: Any) -> BaseEvaluator:
    """The built-in evaluator of this name, configured.

    `level=` chooses among the levels that it supports. ValueError for an unknown name, with the known ones, the nearest
    first; TypeError for an unknown parameter or a wrong type, ValueError for a value out of range.
    """
    kind = BUILTINS.get(name)
    if kind is None:
        known = ", ".join(nearest_first(str(name), BUILTINS))
        raise ValueError(f"there is no built-in evaluator {name!r}; known: {known}")
    level = config.get("level")
    if level is not None and not kind._supported_levels and level != kind().level:  # a prompt is for one kind of item
        raise EvaluatorConfigError(f"{name}: level must be {kind().level}, not {level!r}")
    return kind(**config)


def list_builtin_evaluators(mode: EvalMode | str | None = None) -> list[str]:
    """Their names, or the names of those that can run in a mode. ValueError for an unknown mode."""
    return [info.name for info in builtin_evaluator_catalog(mode)]


def builtin_evaluator_catalog(mode: EvalMode | str | None = None) -> list[EvaluatorInfo]:
    """What the catalogue says of each, or of those that can run in a mode. ValueError for an unknown mode."""
    wanted = None if mode is None else EvalMode(mode)
    catalog = [kind().info for kind in BUILTINS.values()]
    return [info for info in catalog if wanted is None or wanted in info.modes]
