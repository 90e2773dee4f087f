"""What the signature of an evaluator says: the level of its items, whether it needs a task, and its parameters.

The hint of the first parameter is the level. The second parameter that isn't a `Param` is the task: without a default
the evaluator works in experiments only, with one in monitors too. Hints may be texts; they are resolved without the
names that only type checkers see, and then go by the name that they spell.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from amp_evaluation.dataset.models import Task
from amp_evaluation.evaluators import _hints
from amp_evaluation.evaluators.params import ParamSpec
from amp_evaluation.models import EvalMode, EvaluationLevel
from amp_evaluation.trace.models import AgentTrace, LLMSpan, Trace

__all__ = ["Signature", "read_signature"]

LEVELS: Mapping[Any, EvaluationLevel] = {
    Trace: EvaluationLevel.TRACE,
    AgentTrace: EvaluationLevel.AGENT,
    LLMSpan: EvaluationLevel.LLM,
}
_SPELLED_LEVELS = {"Trace": Trace, "AgentTrace": AgentTrace, "LLMSpan": LLMSpan}

BOTH_MODES = (EvalMode.MONITOR, EvalMode.EXPERIMENT)
EXPERIMENT_ONLY = (EvalMode.EXPERIMENT,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A signature, read once.

    `level` is None where the hint doesn't tell, and `problem` then says what is wrong with it; `unhinted` tells a
    missing hint from a wrong one. `task` is the name of the parameter that takes the task, "" without one.
    """

    level: EvaluationLevel | None = None
    unhinted: bool = False
    problem: str = ""
    modes: tuple[EvalMode, ...] = BOTH_MODES
    task: str = ""
    task_positional: bool = True
    params: dict[str, ParamSpec] = field(default_factory=dict)
    takes_any: bool = False


def read_signature(function: Callable[..., Any], owner: str) -> Signature:
    """The signature of a function or a bound method; `owner` is the evaluator's name, for error texts."""
    try:
        given = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        return Signature(problem=f"{owner}: the signature can't be read ({error})")
    names = _hints.namespace_of(function)
    takes_any = any(p.kind is p.VAR_KEYWORD for p in given)
    given = [p for p in given if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not given or given[0].kind is given[0].KEYWORD_ONLY:
        return Signature(problem=f"{owner}: it takes no trace; {_WANTED}", takes_any=takes_any)
    level, problem = _level(given[0], names, owner)
    rest = given[1:]
    second = next((p for p in rest if not isinstance(p.default, ParamSpec) and p.kind is not p.KEYWORD_ONLY), None)
    task = _task_parameter(rest, second, names)
    required = second is not None and second.default is second.empty
    required = required or (task is not None and task.default is task.empty)
    return Signature(
        level=level,
        unhinted=given[0].annotation is given[0].empty,
        problem=problem,
        modes=EXPERIMENT_ONLY if required else BOTH_MODES,
        task="" if task is None else task.name,
        task_positional=task is not None and task is second and rest[0] is task and task.kind is not task.KEYWORD_ONLY,
        params={p.name: _as_param(p, names) for p in rest if p is not task},
        takes_any=takes_any,
    )


_WANTED = "the first parameter must be hinted Trace, AgentTrace or LLMSpan"


def _level(first: inspect.Parameter, names: Mapping[str, Any], owner: str) -> tuple[EvaluationLevel | None, str]:
    """The level that the hint names, or what is wrong with it."""
    if first.annotation is first.empty:
        return None, f"{owner}: parameter {first.name!r} has no type hint; {_WANTED}"
    hint = _hints.resolve(first.annotation, names)
    if isinstance(hint, str):
        hint = _SPELLED_LEVELS.get(hint.strip("\"' ").rpartition(".")[2], hint)
    level = LEVELS.get(hint) if isinstance(hint, type) else None
    if level is None:
        shown = hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))
        return None, f"{owner}: parameter {first.name!r} is hinted {shown}; {_WANTED}"
    return level, ""


def _task_parameter(
    rest: list[inspect.Parameter], second: inspect.Parameter | None, names: Mapping[str, Any]
) -> inspect.Parameter | None:
    """The parameter that takes the task.

    One that says so by its name or hint; else a second parameter without a default, or with None and no hint. Any
    other default is a setting of the function's own (`threshold: float = 0.5`).
    """
    plain = [p for p in rest if not isinstance(p.default, ParamSpec)]
    for parameter in plain:
        if parameter.name == "task" or _is_task(_hints.resolve(parameter.annotation, names)):
            return parameter
    if second is None:
        return None
    if second.default is second.empty:
        return second
    untyped = second.annotation in (second.empty, Any, object)
    return second if second.default is None and untyped else None


def _is_task(hint: Any) -> bool:
    if isinstance(hint, str):
        spelled = hint.replace("Optional[", "").replace("]", "").split("|")
        return any(word.strip("\"' ").rpartition(".")[2] == "Task" for word in spelled)
    return hint is Task or any(arm is Task for arm in getattr(hint, "__args__", ()))


def _as_param(parameter: inspect.Parameter, names: Mapping[str, Any]) -> ParamSpec:
    """A parameter of the function as a parameter of the evaluator."""
    hint = Any if parameter.annotation is parameter.empty else parameter.annotation
    if isinstance(parameter.default, ParamSpec):
        return parameter.default.bound(parameter.name, hint, names)
    plain = ParamSpec() if parameter.default is parameter.empty else ParamSpec(default=parameter.default)
    return plain.bound(parameter.name, hint, names)
