"""A plain function as an evaluator."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

from amp_evaluation.evaluators._base import BaseEvaluator, first_line
from amp_evaluation.evaluators.params import RESERVED, ParamSpec, check_config, refuse_reserved

__all__ = ["FunctionEvaluator"]


class FunctionEvaluator(BaseEvaluator):
    """An evaluator made of a function: what `@evaluator` gives.

    The function's first parameter is the item (its hint is the level), then perhaps the task; the others are settings,
    declared with `Param(...)` or as plain defaults. `with_config` gives a configured copy. A setting can be read and
    set as an attribute. TypeError for unknown or missing settings and wrong types, ValueError for values out of range.
    """

    _reserved: ClassVar[frozenset[str]] = RESERVED

    def __init__(
        self,
        func: Callable[..., Any],
        name: str | None = None,
        description: str | None = None,
        tags: Sequence[str] | None = None,
        version: str | None = None,
        aggregations: Sequence[Any] | None = None,
        *,
        evaluates_failed_runs: bool | None = None,
        **config: Any,
    ) -> None:
        if not callable(func):
            raise TypeError(f"an evaluator is made of a function, not of {func!r}")
        self.func = func
        self.name = name or str(getattr(func, "__name__", type(func).__name__))
        self._catalog_module = str(getattr(func, "__module__", ""))
        self.__doc__ = func.__doc__
        self.description = description if description is not None else first_line(func.__doc__)
        self.tags = list(tags or ())
        self.version = version or type(self).version
        self.aggregations = aggregations
        self._settings: dict[str, Any] = {}
        super().__init__(evaluates_failed_runs=evaluates_failed_runs)
        refuse_reserved(self._config_params(), self.name, self._reserved)
        self._bind({})
        if config:
            self._take(config)

    def _hinted(self) -> Callable[..., Any]:
        return self.func

    def _config_params(self) -> dict[str, ParamSpec]:
        return self._signature.params

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function on one item, with its settings."""
        unset = self._unset()
        if unset:
            raise TypeError(f"required parameter {', '.join(map(repr, unset))} is missing")
        return self.func(*args, **self._bound, **kwargs)

    def with_config(self, **config: Any) -> Self:
        """A copy with these settings on top of its own; the original stays as it was."""
        made = copy.copy(self)
        made.tags = list(self.tags)
        made._take(config)
        return made

    def _take(self, config: dict[str, Any]) -> None:
        """Set what was given by keyword. The function's own parameters go before what every evaluator takes."""
        params = self._config_params()
        given = dict(config)
        if "level" in given and "level" not in params:
            self._set_level(given.pop("level"))
        if "evaluates_failed_runs" in given and "evaluates_failed_runs" not in params:
            self.evaluates_failed_runs = bool(given.pop("evaluates_failed_runs"))
        settings = {**self._settings, **given}
        known = {key: value for key, value in settings.items() if key in params or not self._signature.takes_any}
        self._bind(settings | check_config(params, known, self.name))

    def _bind(self, settings: dict[str, Any]) -> None:
        """Hold what every call passes: the defaults, as copies of this evaluator's own, and the settings."""
        defaults = {key: spec.fresh_default() for key, spec in self._config_params().items() if spec.has_default}
        self._settings = settings
        self._bound = defaults | settings

    def _unset(self) -> list[str]:
        return [key for key in self._config_params() if key not in self._bound]

    def __setattr__(self, key: str, value: Any) -> None:
        """A setting is checked and bound, unless every evaluator has an attribute of that name."""
        if "_bound" in self.__dict__ and key in self._config_params() and not hasattr(type(self), key):
            self._bind(self._settings | {key: self._config_params()[key].validate(value)})
        else:
            super().__setattr__(key, value)

    def __getattr__(self, key: str) -> Any:
        bound = self.__dict__.get("_bound", {})
        if key in bound:
            return bound[key]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {key!r}")
