"""Evaluators that arrive as text: Python sources and prompt templates. Their code runs in the sandbox's child process.

What stands here are their proxies: they plan the items of a trace as every evaluator does, and ask the child for each.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from amp_evaluation.errors import ConfigError
from amp_evaluation.evaluators._base import BaseEvaluator, EvaluationItem
from amp_evaluation.isolation.protocol import Level, Loaded, Scored
from amp_evaluation.isolation.sandbox import Remote, Sandbox
from amp_evaluation.models import EvalMode, EvalResult, EvaluationLevel, EvaluatorInfo, EvaluatorScore
from amp_evaluation.trace.models import Trace

__all__ = ["code_evaluator", "template_judge"]

log = logging.getLogger(__name__)

LEVELS: Mapping[str, Level] = {"trace": "trace", "agent": "agent", "llm": "llm"}


def code_evaluator(
    source: str, *, name: str, config: Mapping[str, Any], level: str | None, sandbox: Sandbox
) -> BaseEvaluator:
    """An evaluator of Python source: a function, an `@evaluator` or `@llm_judge` function, or an evaluator class.

    `level` counts where the source's own type hint doesn't tell. Raises ConfigError when the source doesn't compile or
    can't be imported, defines no evaluator, or doesn't take this config.
    """
    remote = sandbox.load("code", source, name=name, config=config, level=_checked(level))
    for warning in remote.info.warnings:
        log.warning("evaluator %r: %s", name, warning)
    return _CodeProxy(remote)


def _checked(level: str | None) -> Level | None:
    if level is None:
        return None
    if level not in LEVELS:
        raise ConfigError(f"level must be trace, agent or llm, not {level!r}")
    return LEVELS[level]


class _CodeProxy(BaseEvaluator):
    """An evaluator whose `evaluate` runs in the child."""

    def __init__(self, remote: Remote) -> None:
        super().__init__()
        self._remote = remote
        _describe(self, remote.name, remote.info)

    def evaluate(self, trace: Trace) -> EvalResult:
        """Never called: items go to the child with their trace."""
        raise NotImplementedError

    @property
    def _supported_eval_modes(self) -> Sequence[EvalMode]:
        return [EvalMode(mode) for mode in self._remote.info.modes]

    @property
    def info(self) -> EvaluatorInfo:
        return _info(self, self._remote.info)

    def _score_item(self, trace: Trace, item: EvaluationItem, task: Any = None) -> EvaluatorScore:
        result = _result(self._remote.ask(trace, item.target, task))
        return EvaluatorScore.from_eval_result(result, trace.trace_id, trace.timestamp, item.span_context)


def _describe(proxy: BaseEvaluator, name: str, loaded: Loaded) -> None:
    """What the child said of the evaluator, on its proxy."""
    proxy.name = name
    proxy.description = loaded.description
    proxy.tags = list(loaded.tags)
    proxy.version = loaded.version
    proxy.evaluates_failed_runs = loaded.evaluates_failed_runs
    proxy._level = EvaluationLevel(loaded.level)


def _info(proxy: BaseEvaluator, loaded: Loaded) -> EvaluatorInfo:
    return EvaluatorInfo(
        name=proxy.name,
        description=loaded.description,
        tags=list(loaded.tags),
        version=loaded.version,
        modes=[EvalMode(mode) for mode in loaded.modes],
        level=EvaluationLevel(loaded.level),
        config_schema=loaded.config_schema,
        class_name=loaded.class_name,
        module="custom",
    )


def _result(answer: object) -> EvalResult:
    """The child's answer as a result; it is checked again here, where it counts."""
    if not isinstance(answer, Scored):
        return EvalResult.skip(getattr(answer, "reason", "the evaluator's process gave no sensible answer"))
    if answer.score is None:
        return EvalResult.skip(answer.skip_reason or "")
    try:
        return EvalResult(answer.score, answer.explanation, answer.passed)
    except ValueError as error:
        return EvalResult.skip(str(error))
