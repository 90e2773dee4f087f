"""Evaluators that arrive as text: Python sources and prompt templates. Their code runs in the sandbox's child process.

What stands here are their proxies: they plan the items of a trace as every evaluator does, and ask the child for each.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from amp_evaluation.aggregators import Aggregation
from amp_evaluation.errors import ConfigError
from amp_evaluation.evaluators._asked_models import AskedModels
from amp_evaluation.evaluators._base import BaseEvaluator
from amp_evaluation.evaluators._items import EvaluationItem
from amp_evaluation.evaluators._llm_judge import LLMAsJudgeEvaluator
from amp_evaluation.evaluators._outcome import error_text
from amp_evaluation.isolation.protocol import Failed, Level, Prompted, Scored, Unreadable
from amp_evaluation.isolation.sandbox import Answer, Remote, Sandbox
from amp_evaluation.models import (
    EvalMode,
    EvalResult,
    EvaluationLevel,
    EvaluatorInfo,
    EvaluatorReport,
    EvaluatorScore,
)
from amp_evaluation.trace.models import Trace

if TYPE_CHECKING:
    from amp_evaluation.config import Config

__all__ = ["code_evaluator", "template_judge"]

log = logging.getLogger(__name__)

_JUDGE_KEYS = ("model", "temperature", "max_tokens", "max_retries")
LEVELS: Mapping[str, Level] = {"trace": "trace", "agent": "agent", "llm": "llm"}


def code_evaluator(
    source: str, *, name: str, config: Mapping[str, Any], level: str | None, sandbox: Sandbox
) -> BaseEvaluator:
    """An evaluator of Python source: a function, an `@evaluator` or `@llm_judge` function, or an evaluator class.

    `level` counts where the source's own type hint doesn't tell. A judge's prompt is built by the source, its model is
    asked by this process. Raises ConfigError when the source doesn't compile or can't be imported, defines no
    evaluator, or doesn't take this config.
    """
    remote = sandbox.load("code", source, name=name, config=config, level=_checked(level))
    _warn(remote)
    judge = remote.info.judge
    if judge is None:
        return _CodeProxy(remote)
    settings: dict[str, Any] = {"temperature": judge.temperature, "max_tokens": judge.max_tokens}
    proxy = _CodeJudgeProxy if judge.reads_replies else _PromptProxy
    return proxy(remote, model=judge.model, max_retries=judge.max_retries, **settings)


def template_judge(
    template: str,
    *,
    name: str,
    config: Mapping[str, Any],
    level: str | None,
    schema_keys: Iterable[str],
    sandbox: Sandbox,
) -> BaseEvaluator:
    """A judge whose prompt is a template: text with Python expressions in `{…}` over the item, the task and `config`.

    `model`, `temperature`, `max_tokens` and `max_retries` of the config are the judge's own. `schema_keys` are names
    that a template may use although the config gives them no value (they are None). A template with a defect makes an
    evaluator whose items are all skipped with the reason, which `defect` holds. Raises ConfigError for the judge's own
    settings and the level.
    """
    checked = _checked(level) or "trace"
    remote = sandbox.load("template", template, name=name, config=config, level=checked, schema_keys=tuple(schema_keys))
    _warn(remote)
    try:
        return _TemplateProxy(remote, **{key: config[key] for key in _JUDGE_KEYS if key in config})
    except (TypeError, ValueError) as error:
        raise ConfigError(str(error)) from error


def _warn(remote: Remote) -> None:
    for warning in remote.info.warnings:
        log.warning("evaluator %r: %s", remote.name, warning)
    if remote.info.defect is not None:
        log.error("evaluator %r can't score anything: %s", remote.name, remote.info.defect)


def _checked(level: str | None) -> Level | None:
    if level is None:
        return None
    if level not in LEVELS:
        raise ConfigError(f"level must be trace, agent or llm, not {level!r}")
    return LEVELS[level]


class _Proxy(BaseEvaluator):
    """What stands in this process for an evaluator in the child: it is described as the child says."""

    _remote: Remote
    _models: AskedModels

    def _stand_for(self, remote: Remote) -> None:
        loaded = remote.info
        self._remote, self._models = remote, AskedModels()
        self.name = remote.name
        self.description = loaded.description
        self.tags = list(loaded.tags)
        self.version = loaded.version
        self.evaluates_failed_runs = loaded.evaluates_failed_runs
        self._level = EvaluationLevel(loaded.level)
        if loaded.aggregations is not None:
            self.aggregations = [Aggregation(each.name, **each.params) for each in loaded.aggregations]

    @property
    def _supported_eval_modes(self) -> Sequence[EvalMode]:
        return [EvalMode(mode) for mode in self._remote.info.modes]

    @property
    def info(self) -> EvaluatorInfo:
        """What a catalogue says of it, as the child told it."""
        loaded = self._remote.info
        return EvaluatorInfo(
            name=self.name,
            description=loaded.description,
            tags=list(loaded.tags),
            version=loaded.version,
            modes=list(self._supported_eval_modes),
            level=EvaluationLevel(loaded.level),
            config_schema=loaded.config_schema,
            class_name=loaded.class_name,
            module="custom",
        )

    def _begin_run(self, config: Config) -> None:
        super()._begin_run(config)
        self._models.begin(config)

    def _end_run(self) -> EvaluatorReport:
        return self._models.end(self.name, super()._end_run())


class _CodeProxy(_Proxy):
    """An evaluator whose `evaluate` runs in the child."""

    def __init__(self, remote: Remote) -> None:
        super().__init__()
        self._stand_for(remote)

    def evaluate(self, trace: Trace) -> EvalResult:
        """Never called: items go to the child with their trace."""
        raise NotImplementedError

    def _score_item(self, trace: Trace, item: EvaluationItem, task: Any = None) -> EvaluatorScore:
        result = _result(self._remote.ask(trace, item.target, task, self._models))
        return self._scored(result, trace, item, task)


class _BuiltItem(EvaluationItem):
    """An item with what the child made of it."""

    answer: Answer


class _PromptProxy(_Proxy, LLMAsJudgeEvaluator):
    """A judge whose prompts come from the child; the model is asked here.

    Prompts are built when a trace is planned, not when the model is asked: the child does one thing at a time, and all
    that it is asked about one trace comes in a row, so that the trace travels once.
    """

    def __init__(self, remote: Remote, **settings: Any) -> None:
        self.name = remote.name  # before the settings are checked: their errors name the evaluator
        super().__init__(**settings)
        self._stand_for(remote)

    def build_prompt(self, trace: Trace) -> str:
        """Never called: prompts come from the child."""
        raise NotImplementedError

    def _plan(self, trace: Trace) -> Sequence[EvaluationItem | EvaluatorScore]:
        return [
            self._built(trace, step, None) if isinstance(step, EvaluationItem) else step
            for step in super()._plan(trace)
        ]

    def _built(self, trace: Trace, item: EvaluationItem, task: Any) -> _BuiltItem:
        built = _BuiltItem(*item)
        built.answer = self._remote.ask(trace, item.target, task, self._models)
        return built

    def _score_item(self, trace: Trace, item: EvaluationItem, task: Any = None) -> EvaluatorScore:
        if task is not None or not isinstance(item, _BuiltItem):
            item = self._built(trace, item, task)
        try:
            result = self._judged(item.answer)
        except Exception as error:
            log.debug("%s: trace %s", self.name, trace.trace_id, exc_info=True)
            result = EvalResult.skip(error_text(error))
        return self._scored(result, trace, item, task)

    def _judged(self, answer: Answer) -> EvalResult:
        return self._judge_prompt(answer.text) if isinstance(answer, Prompted) else _result(answer)


class _CodeJudgeProxy(_PromptProxy):
    """A judge that also has a reader of replies of its own, in the child."""

    def _parse_and_validate(self, content: str) -> tuple[EvalResult | None, str | None]:
        answer = self._remote.read(content, self._models)
        if isinstance(answer, Unreadable):
            return None, answer.reason
        return _result(answer), None


class _TemplateProxy(_PromptProxy):
    """A judge whose prompts are rendered from a template."""

    @property
    def defect(self) -> str | None:
        """What is wrong with the template; None when nothing is."""
        return self._remote.info.defect

    def _built(self, trace: Trace, item: EvaluationItem, task: Any) -> _BuiltItem:
        if self.defect is None:
            ready = self._before_asking(item.target, task)
            ask = self._remote.ask
            answer = ask(trace, item.target, task, self._models) if ready is None else _as_answer(ready)
        else:
            answer = Failed(reason=self.defect)
        built = _BuiltItem(*item)
        built.answer = answer
        return built


def _as_answer(ready: EvalResult) -> Scored:
    return Scored(skip_reason=ready.skip_reason)


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
