"""The contract of every evaluator: which items of a trace it looks at, and one score for each of them.

A subclass writes `evaluate`. The hint of its first parameter says what an item is (`Trace`, `AgentTrace`, `LLMSpan`),
the second parameter whether a task is needed (`_signature.py` has the rules). Planning and scoring are two steps, so
that a runner can score the items of slow evaluators side by side.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from amp_evaluation.evaluators._items import EvaluationItem, Target, items_of
from amp_evaluation.evaluators._outcome import as_eval_result, error_text
from amp_evaluation.evaluators._signature import Signature, read_signature
from amp_evaluation.evaluators.params import (
    EvaluatorConfigError,
    ParamSpec,
    check_config,
    collect_params,
    refuse_reserved,
)
from amp_evaluation.models import (
    EvalMode,
    EvalResult,
    EvaluationLevel,
    EvaluatorInfo,
    EvaluatorReport,
    EvaluatorScore,
    TaskContext,
)
from amp_evaluation.trace.models import Trace

if TYPE_CHECKING:
    from amp_evaluation.config import Config
    from amp_evaluation.dataset.models import Task

__all__ = ["BaseEvaluator", "EvaluationItem", "Target"]

log = logging.getLogger(__name__)

INITIALIZATION_REASON = "initialisation only: the trace creates an agent and runs none"
NO_ITEM_REASONS = {
    EvaluationLevel.TRACE: "no trace",
    EvaluationLevel.AGENT: "no agent in this trace",
    EvaluationLevel.LLM: "no LLM call in this trace",
}
NOT_CAPTURED_REASON = "content not captured"
NO_TASK_REASON = "it needs a task: experiments only"
CLASS_RESERVED = frozenset({"func", "name", "level"})


class Computed:
    """A property that an instance may set all the same: a runner names evaluators, a constructor may narrow modes."""

    def __init__(self, getter: Callable[[Any], Any]) -> None:
        self._getter = getter

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else self._getter(instance)


class BaseEvaluator(ABC):
    """An evaluator of traces, of the agents in them, or of their LLM calls.

    Keyword arguments of the constructor set the declared parameters; beside them `level=` names the level (an
    evaluator that has only one accepts that one) and `evaluates_failed_runs=` says that runs that failed are scored
    like any other. TypeError for an unknown or a missing parameter and for a wrong type, ValueError for a value out
    of range.
    """

    name: str = ""
    """Display name; the class's own name by default."""
    description: str = ""
    tags: Sequence[str] = ()
    version: str = "1.0"
    aggregations: Sequence[Any] | None = None
    """What the scores are brought together to; None means the mean."""
    evaluates_failed_runs: bool = False
    """Score runs that failed too, instead of skipping them with the reason of the failure."""
    needs_content: bool = False
    """Skip a trace that holds no text anywhere: content capture was off."""
    is_concurrent: bool = False
    """A runner may call `_score_item` from several threads at once."""

    _params: ClassVar[dict[str, ParamSpec]] = {}
    _supported_levels: ClassVar[tuple[EvaluationLevel, ...]] = ()
    _catalog_module: str = ""
    _declared_level: ClassVar[EvaluationLevel | None] = None
    _level: EvaluationLevel | None = None
    _includes_failed: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        declared = vars(cls).get("level")
        if isinstance(declared, str):  # a plain attribute would hide the property
            cls._declared_level = EvaluationLevel(declared)
            del cls.level
        for name in ("name", "description", "tags"):
            own = vars(cls).get(name)
            if isinstance(own, property) and own.fget is not None and own.fset is None:
                setattr(cls, name, Computed(own.fget))
        for name, spec in collect_params(cls).items():
            plain = vars(cls).get(name, spec)
            if not hasattr(plain, "__get__"):  # a value; a property or a method replaces the parameter
                setattr(cls, name, spec.with_default(plain))
        cls._params = collect_params(cls)
        refuse_reserved(cls._params, cls.__name__, CLASS_RESERVED)
        for spec in cls._params.values():
            spec.check_default()

    def __new__(cls, *args: Any, **kwargs: Any) -> BaseEvaluator:
        # here, so that it holds for subclasses whose __init__ doesn't call ours
        made = super().__new__(cls)
        if not isinstance(cls.name, Computed):
            made.name = cls.name or cls.__name__
        if not isinstance(cls.tags, Computed):
            made.tags = list(cls.tags)
        return made

    def __init__(self, **config: Any) -> None:
        level = config.pop("level", None)
        failed = config.pop("evaluates_failed_runs", None)
        for key, value in check_config(self._params, config, self.name).items():
            self.__dict__[key] = value
        if level is not None:
            self._set_level(level)
        if failed is not None:
            self.evaluates_failed_runs = bool(failed)

    @abstractmethod
    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """The result for one item; hints and parameters as the module's text says."""

    def _hinted(self) -> Callable[..., Any]:
        """The function whose hints decide level and mode."""
        return self.evaluate

    @property
    def _signature(self) -> Signature:
        found: Signature | None = self.__dict__.get("_signature_read")
        if found is None:
            found = self.__dict__["_signature_read"] = read_signature(self._hinted(), self.name)
        return found

    @property
    def level(self) -> EvaluationLevel:
        """The level of the items; TypeError when nothing tells it."""
        if self._level is None:
            self._level = self._find_level()
        return self._level

    @level.setter
    def level(self, level: str) -> None:
        self._set_level(level)

    def _find_level(self) -> EvaluationLevel:
        if self._supported_levels:
            return self._supported_levels[0]
        level = self._signature.level or self._declared_level
        if level is None:
            raise TypeError(self._signature.problem)
        return level

    def _set_level(self, level: str) -> None:
        try:
            wanted = EvaluationLevel(level)
        except ValueError:
            raise EvaluatorConfigError(f"{self.name}: level must be trace, agent or llm, not {level!r}") from None
        if self._supported_levels and wanted not in self._supported_levels:
            known = ", ".join(self._supported_levels)
            raise EvaluatorConfigError(f"{self.name}: level must be one of: {known}; not {level!r}")
        hinted = None if self._supported_levels else self._signature.level
        if hinted not in (None, wanted):
            log.warning("%s: its type hint says %s level, not %s; the hint wins", self.name, hinted, wanted)
        self._level = hinted or wanted

    @Computed
    def _supported_eval_modes(self) -> Sequence[EvalMode]:
        return self._signature.modes

    def supports(self, mode: EvalMode | str) -> bool:
        """The evaluator can run in this mode."""
        return EvalMode(mode) in self._supported_eval_modes

    @property
    def info(self) -> EvaluatorInfo:
        """What a catalogue says of it; TypeError when its level can't be told."""
        return EvaluatorInfo(
            name=self.name,
            description=self.description or first_line(type(self).__doc__),
            tags=list(self.tags),
            version=self.version,
            modes=list(self._supported_eval_modes),
            level=self.level,
            config_schema=[spec.to_schema() for spec in self._config_params().values()],
            class_name=type(self).__name__,
            module=self._catalog_module or type(self).__module__,
        )

    def _config_params(self) -> dict[str, ParamSpec]:
        return self._params

    def run(self, trace: Trace, task: Task | None = None) -> list[EvaluatorScore]:
        """One score an item of the trace, in order; a skip where there is none. Never raises for what a trace holds."""
        plan = self._plan(trace)
        return [self._score_item(trace, step, task) if isinstance(step, EvaluationItem) else step for step in plan]

    def __call__(self, trace: Trace, task: Task | None = None) -> list[EvaluatorScore]:
        """The same as `run`."""
        return self.run(trace, task)

    def _plan(self, trace: Trace) -> Sequence[EvaluationItem | EvaluatorScore]:
        """The items to score, or one ready skip for a trace that has none to score. Not to be changed: it is shared."""
        if trace.initialization_only:
            return [self._skip(trace, INITIALIZATION_REASON)]
        if trace.failed and not (self.evaluates_failed_runs or self._includes_failed):
            return [self._skip(trace, f"the run failed: {trace.failure_reason or 'no reason is known'}")]
        if self.needs_content and not trace.content_captured:
            return [self._skip(trace, NOT_CAPTURED_REASON)]
        level = self._level or self.level
        try:
            items = items_of(trace, level)
        except Exception as error:
            log.debug("trace %s: its %s items can't be built", trace.trace_id, level, exc_info=True)
            return [self._skip(trace, f"the trace can't be taken apart: {error_text(error)}")]
        return items or [self._skip(trace, NO_ITEM_REASONS[level])]

    def _score_item(self, trace: Trace, item: EvaluationItem, task: Task | None = None) -> EvaluatorScore:
        """The score of one item. An exception is a skip of that item alone."""
        try:
            result = self._evaluate_target(item.target, task)
            if type(result) is not EvalResult:
                result = as_eval_result(result)
        except Exception as error:
            log.debug("%s: trace %s", self.name, trace.trace_id, exc_info=True)
            result = EvalResult.skip(error_text(error))
        return self._scored(result, trace, item, task)

    def _scored(self, result: EvalResult, trace: Trace, item: EvaluationItem, task: Task | None) -> EvaluatorScore:
        """A result as the score of its item."""
        score = EvaluatorScore.from_eval_result(result, trace.trace_id, trace.timestamp, item.span_context)
        if task is not None:
            score.task_context = TaskContext(task.task_id)
        return score

    def _evaluate_target(self, target: Target, task: Task | None) -> Any:
        signature = self._signature
        if not signature.task:
            return self.evaluate(target)
        if task is None and EvalMode.MONITOR not in signature.modes:
            return EvalResult.skip(NO_TASK_REASON)
        if signature.task_positional:
            return self.evaluate(target, task)
        return self.evaluate(target, **{signature.task: task})

    def _skip(self, trace: Trace, reason: str) -> EvaluatorScore:
        return EvaluatorScore.from_eval_result(EvalResult.skip(reason), trace.trace_id, trace.timestamp)

    def _begin_run(self, config: Config) -> None:
        """Called once before a run. Overrides call this one too: it takes the run's settings up."""
        self._configure(config)

    def _configure(self, config: Config) -> None:
        """Take settings up, for a run or for a trace that is evaluated alone."""
        self._includes_failed = config.monitor.evaluate_failed

    def _end_run(self) -> EvaluatorReport:
        """Called once after a run: errors, warnings and cost that are no item's own."""
        return EvaluatorReport()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


def first_line(text: str | None) -> str:
    return text.strip().partition("\n")[0] if text else ""
