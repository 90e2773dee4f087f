"""Evaluators that come with the package, by name."""

from amp_evaluation.evaluators.builtin._catalog import builtin, builtin_evaluator_catalog, list_builtin_evaluators

__all__ = ["builtin", "builtin_evaluator_catalog", "list_builtin_evaluators"]
