"""Evaluators made of sources, inside of the child: what a load request asks for."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import amp_evaluation
from amp_evaluation.evaluators._base import BaseEvaluator
from amp_evaluation.evaluators._function import FunctionEvaluator
from amp_evaluation.evaluators._outcome import as_eval_result, error_text
from amp_evaluation.isolation.candidates import Candidate, choose, compile_source, run_source
from amp_evaluation.isolation.protocol import (
    Failed,
    Loaded,
    LoadRequest,
    Prompted,
    Reply,
    Scored,
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
        info = _info(made)
    info.warnings.extend(warnings)
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


def _info(made: BaseEvaluator) -> Loaded:
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
        judge=None,
        warnings=[],
    )


class _CodeEvaluator:
    """Scores items where the source's code runs."""

    def __init__(self, made: BaseEvaluator, info: Loaded) -> None:
        self.info = info
        self._made = made

    def ask(self, trace: Trace, target: Target, task: Any) -> Reply:
        return _scored(as_eval_result(self._made._evaluate_target(target, task)))

    def read(self, content: str) -> Reply:
        return Failed(reason="it reads no replies")


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
        return Prompted(text=fence.bound(self._template.render(names, fence.insert)))

    def read(self, content: str) -> Reply:
        return Failed(reason="it reads no replies")
