"""Where evaluators are made by decorators, and found in a module."""

from __future__ import annotations

import inspect
from types import ModuleType

from amp_evaluation.evaluators.base import BaseEvaluator, validate_unique_evaluator_names
from amp_evaluation.evaluators.decorators import evaluator, llm_judge

__all__ = ["discover_evaluators", "evaluator", "llm_judge"]


def discover_evaluators(module: ModuleType) -> list[BaseEvaluator]:
    """All evaluators of a module, in the order of its names' definition.

    Every instance that the module holds, and an instance of every class that the module itself defines, unless the
    class needs arguments, is abstract, or has an instance there already. ValueError when two have one name.
    """
    held = list(vars(module).values())
    instances = {id(value): value for value in held if isinstance(value, BaseEvaluator)}
    made = {type(instance) for instance in instances.values()}
    found: dict[int, BaseEvaluator] = {}
    for value in held:
        if id(value) in instances:
            found[id(value)] = instances[id(value)]
        elif _is_own_class(value, module) and value not in made:
            made.add(value)
            instance = _without_arguments(value)
            if instance is not None:
                found[id(instance)] = instance
    evaluators = list(found.values())
    validate_unique_evaluator_names(evaluators)
    return evaluators


def _is_own_class(value: object, module: ModuleType) -> bool:
    return (
        inspect.isclass(value)
        and issubclass(value, BaseEvaluator)
        and not inspect.isabstract(value)
        and value.__module__ == module.__name__
    )


def _without_arguments(kind: type[BaseEvaluator]) -> BaseEvaluator | None:
    """An instance, or None where the class wants arguments."""
    try:
        return kind()
    except TypeError:
        return None
