"""Evaluators made of sources, inside of the child: what a load request asks for."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import amp_evaluation
from amp_evaluation.aggregators import AggregationType, normalize_aggregations
from amp_evaluation.evaluators._base import BaseEvaluator
from amp_evaluation.evaluators._function import FunctionEvaluator
from amp_evaluation.evaluators._llm_judge import LLMAsJudgeEvaluator
from amp_evaluation.evaluators._outcome import as_eval_result, error_text
from amp_evaluation.isolation.candidates import Candidate, choose, compile_source, run_source
from amp_evaluation.isolation.protocol import (
    AggregationSpec,
    Failed,
    JudgeSettings,
    Loaded,
    LoadRequest,
    Prompted,
    Reply,
    Scored,
    Unreadable,
)
from amp_evaluation.isolation.template import SUBJECTS, Template, TemplateDefect, parse_template
from amp_evaluation.judge import fence
from amp_evaluation.models import EvalMode, EvalResult
from amp_evaluation.trace import models as trace_models
from amp_evaluation.trace.models import AgentTrace, LLMSpan, Trace

__all__ = ["LoadedEvaluator", "SourceError", "load"]

Target = Trace | AgentTrace | LLMSpan


class SourceError(ValueError):
    """A source or a config that no evaluator can be made of."""


class LoadedEvaluator(Protocol):
    """What answers for the items of one evaluator."""

    info: Loaded

    def ask(self, trace: Trace, target: Target, task: Any) -> Reply: ...

    def read(self, content: str) -> Reply: ...


def load(request: LoadRequest) -> LoadedEvaluator:
    """Make an evaluator. Raises SourceError, and whatever the source raises on its own account."""
    if request.kind == "template":
        return _TemplateJudge(request)
    with _warnings_of_this_package() as warnings:
        made = _made_of_source(request, warnings)
        info = _info(made, warnings)
    if info.judge is not None:
        return _CodeJudge(made, info)
    return _CodeEvaluator(made, info)


def _made_of_source(request: LoadRequest, warnings: list[str]) -> BaseEvaluator:
    module_name = f"custom_evaluator_{request.index}"
    try:
        code, tree = compile_source(request.source, module_name)
    except SyntaxError as error:
        raise SourceError(f"the source does not compile: {error.msg} (line {error.lineno})") from error
    except (ValueError, RecursionError) as error:
        raise SourceError(f"the source does not compile: {error}") from error
    try:
        names = run_source(code, request.source, module_name, _given_names(request.source))
    except Exception as error:
        raise SourceError(f"the source can't be imported: {error_text(error)}{_line_of(error, module_name)}") from error
    try:
        candidate, said = choose(names, tree, module_name)
        warnings += said
        return _configured(candidate, request)
    except (TypeError, ValueError) as error:
        raise SourceError(str(error)) from error


def _given_names(source: str) -> dict[str, Any]:
    """What a source finds without an import. Judges cost more to load than the rest: only where they are mentioned."""
    traces = {name: getattr(trace_models, name) for name in trace_models.__all__}
    return traces | {name: getattr(amp_evaluation, name) for name in _GIVEN if name in source}


_GIVEN = ("EvalResult", "Param", "Task", "BaseEvaluator", "LLMAsJudgeEvaluator", "evaluator", "llm_judge")


def _line_of(error: BaseException, module_name: str) -> str:
    """Where in the source an exception came from."""
    line = None
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == f"<{module_name}>":
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return "" if line is None else f" (line {line})"


def _configured(candidate: Candidate, request: LoadRequest) -> BaseEvaluator:
    """The evaluator with its config, its display name and its level; TypeError or ValueError where they don't fit."""
    made: Any
    if isinstance(candidate, type):
        made = candidate(**request.config)
    elif isinstance(candidate, BaseEvaluator):
        made = candidate.with_config(**request.config)  # type: ignore[attr-defined]  # all decorated ones have it
    else:
        made = FunctionEvaluator(candidate, request.name, **request.config)
    if not isinstance(made, BaseEvaluator):
        raise TypeError(f"{request.name}: the class makes {type(made).__name__}, which is no evaluator")
    if isinstance(made, FunctionEvaluator) and made._unset():
        raise TypeError(f"required parameter {', '.join(map(repr, made._unset()))} is missing in the config")
    made.name = request.name
    if request.level is not None:
        made.level = request.level
    return made


@contextmanager
def _warnings_of_this_package() -> Iterator[list[str]]:
    """Collect what this package warns of while an evaluator is made: the job logs it, with the evaluator's name."""
    collected: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            collected.append(record.getMessage())

    handler = Collector(logging.WARNING)
    logger = logging.getLogger("amp_evaluation")
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield collected
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated


def _info(made: BaseEvaluator, warnings: list[str]) -> Loaded:
    """Raises SourceError when nothing tells the level."""
    try:
        info = made.info
    except TypeError as error:
        raise SourceError(f"{error}; or give the entry a level") from error
    return Loaded(
        level=info.level.value,
        modes=[EvalMode(mode).value for mode in info.modes],
        description=info.description,
        tags=[str(tag) for tag in info.tags],
        version=str(info.version),
        config_schema=info.config_schema,
        class_name=info.class_name,
        evaluates_failed_runs=bool(made.evaluates_failed_runs),
        aggregations=_aggregations(made, warnings),
        judge=_judge_settings(made),
        warnings=warnings,
    )


def _aggregations(made: BaseEvaluator, warnings: list[str]) -> list[AggregationSpec] | None:
    """The named ones; a function of the source's own would have to run in the job."""
    if made.aggregations is None:
        return None
    wanted = normalize_aggregations(made.aggregations)
    named = [AggregationSpec(each.type.value, each.params) for each in wanted if isinstance(each.type, AggregationType)]
    if len(named) < len(wanted):
        warnings.append("aggregations that are functions are left out: custom code may name aggregations only")
    return named


def _judge_settings(made: BaseEvaluator) -> JudgeSettings | None:
    """How the job asks the model; None for an evaluator that asks none, or goes on when it has been answered."""
    if not isinstance(made, LLMAsJudgeEvaluator) or made._asks_in_its_own_way():
        return None
    kind = type(made)
    return JudgeSettings(
        model=_named_model(made),
        temperature=float(made.temperature),
        max_tokens=int(made.max_tokens),
        max_retries=int(made.max_retries),
        reads_replies=kind._parse_and_validate is not LLMAsJudgeEvaluator._parse_and_validate,
    )


def _named_model(made: LLMAsJudgeEvaluator) -> str:
    """The model that the config or the class names; the default one is the job's to choose, and not known here."""
    vars(made)["_default_model"] = str
    try:
        return str(made.model)
    finally:
        del vars(made)["_default_model"]


class _CodeEvaluator:
    """Scores items where the source's code runs."""

    def __init__(self, made: BaseEvaluator, info: Loaded) -> None:
        self.info = info
        self._made = made

    def ask(self, trace: Trace, target: Target, task: Any) -> Reply:
        return _scored(as_eval_result(self._made._evaluate_target(target, task)))

    def read(self, content: str) -> Reply:
        return Failed(reason="it reads no replies")


class _Built:
    """What a judge's builder gave, instead of the model's verdict on it."""

    def __init__(self, prompt: object) -> None:
        self.prompt = prompt


class _CodeJudge:
    """Builds prompts where the source's code runs; the model is asked by the job."""

    def __init__(self, made: BaseEvaluator, info: Loaded) -> None:
        self.info = info
        self._made = made
        vars(made)["_judge_prompt"] = _Built

    def ask(self, trace: Trace, target: Target, task: Any) -> Reply:
        built = self._made._evaluate_target(target, task)
        if not isinstance(built, _Built):
            return _scored(as_eval_result(built))
        if isinstance(built.prompt, EvalResult):
            return _scored(built.prompt)
        if built.prompt is None:
            return Prompted(text=None)
        if not isinstance(built.prompt, str):
            raise TypeError(f"{self._made.name}: its prompt builder returned {type(built.prompt).__name__}, not text")
        return Prompted(text=fence.sendable(f"{built.prompt}"))  # formatted: judged text alone fences itself then

    def read(self, content: str) -> Reply:
        result, fault = self._made._parse_and_validate(content)  # type: ignore[attr-defined]  # only judges get here
        if result is None:
            return Unreadable(reason=str(fault or "it holds no score"))
        return _scored(as_eval_result(result))


def _scored(result: EvalResult) -> Scored:
    if result.is_skipped:
        return Scored(skip_reason=result.skip_reason)
    return Scored(score=result.score, passed=result.passed, explanation=result.explanation)


class _TemplateJudge:
    """Renders a template for each item. A defect is found here, once, and is no reason to stop the others."""

    def __init__(self, request: LoadRequest) -> None:
        level = request.level or "trace"
        self._subject = SUBJECTS[level]
        self._names = dict.fromkeys(request.schema_keys) | request.config
        self._template: Template | None = None
        defect = None
        warnings = []
        try:
            self._template = parse_template(request.source, level=level, config_keys=self._names)
        except TemplateDefect as error:
            defect = str(error)
        else:
            warnings = [f"{group} is left as text" for group in self._template.left_as_text]
        self.info = Loaded(level=level, modes=["monitor", "experiment"], defect=defect, warnings=warnings)

    def ask(self, trace: Trace, target: Target, task: Any) -> Reply:
        if self._template is None:
            return Failed(reason=self.info.defect or "the template has a defect")
        names = {"task": task, **self._names, self._subject: target}
        return Prompted(text=fence.sendable(self._template.render(names, fence.insert)))

    def read(self, content: str) -> Reply:
        return Failed(reason="it reads no replies")
