"""Evaluators that come with the package, by name."""

from amp_evaluation.evaluators.builtin._catalog import builtin, builtin_evaluator_catalog, list_builtin_evaluators
from amp_evaluation.evaluators.builtin._providers import LLMConfigField, LLMProviderInfo, get_llm_provider_catalog

__all__ = [
    "LLMConfigField",
    "LLMProviderInfo",
    "builtin",
    "builtin_evaluator_catalog",
    "get_llm_provider_catalog",
    "list_builtin_evaluators",
]
