"""Signatures: level and mode from hints, and what the rest of the parameters are."""

import functools
from typing import TYPE_CHECKING, Annotated, Any, Optional

import pytest

from amp_evaluation.dataset.models import Task
from amp_evaluation.evaluators import Param
from amp_evaluation.evaluators._signature import BOTH_MODES, EXPERIMENT_ONLY, read_signature
from amp_evaluation.models import EvaluationLevel
from amp_evaluation.trace import models
from amp_evaluation.trace.models import AgentTrace, LLMSpan, Trace

if TYPE_CHECKING:
    from amp_evaluation.trace.models import Trace as Hidden

# ruff: noqa: UP045  # texts and Optional are what is tried here


def trace(item: Trace): ...
def agent(item: AgentTrace): ...
def llm(item: LLMSpan): ...
def as_text(item: "AgentTrace"): ...
def text_in_text(item: "'LLMSpan'"): ...
def dotted(item: "models.LLMSpan"): ...
def dotted_unknown(item: "somewhere.LLMSpan"): ...  # type: ignore[name-defined]  # noqa: F821
def annotated(item: Annotated[Trace, "note"]): ...
def only_for_checkers(item: "Hidden"): ...
def any_trace(*args: Trace): ...
def nothing(): ...
def keyword(*, item: Trace): ...
def unhinted(item): ...
def wrong(item: str): ...
def optional(item: Trace | None): ...
def wrong_text(item: "Tracer"): ...  # type: ignore[name-defined]  # noqa: F821


class Evaluator:
    def evaluate(self, item: AgentTrace) -> None: ...

    def __call__(self, item: LLMSpan) -> None: ...


def enclosed() -> Any:
    local = AgentTrace

    def inner(item: "local"): ...

    return inner, lambda: local


LEVELS = [
    (trace, EvaluationLevel.TRACE),
    (agent, EvaluationLevel.AGENT),
    (llm, EvaluationLevel.LLM),
    (as_text, EvaluationLevel.AGENT),
    (text_in_text, EvaluationLevel.LLM),
    (dotted, EvaluationLevel.LLM),
    (dotted_unknown, EvaluationLevel.LLM),
    (Evaluator().evaluate, EvaluationLevel.AGENT),
    (functools.partial(trace), EvaluationLevel.TRACE),
]


@pytest.mark.parametrize(("function", "level"), LEVELS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_the_first_hint_is_the_level(function: Any, level: EvaluationLevel) -> None:
    signature = read_signature(function, "mine")
    assert signature.level is level
    assert signature.problem == ""


def test_a_hint_may_name_what_the_function_closes_over() -> None:
    def make(kind: type) -> Any:
        def inner(item: "kind"):  # type: ignore[valid-type]
            return kind

        return inner

    assert read_signature(make(AgentTrace), "mine").level is EvaluationLevel.AGENT


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (unhinted, "parameter 'item' has no type hint"),
        (wrong, "hinted str"),
        (optional, r"hinted .*Trace \| None"),
        (wrong_text, "hinted Tracer"),
        (only_for_checkers, "hinted Hidden"),
        (nothing, "takes no trace"),
        (keyword, "takes no trace"),
        (any_trace, "takes no trace"),
        (dict, "mine: "),
    ],
    ids=lambda value: getattr(value, "__name__", "it says so"),
)
def test_anything_else_is_a_problem_that_names_the_evaluator(function: Any, text: str) -> None:
    import re

    signature = read_signature(function, "mine")
    assert signature.level is None
    assert signature.problem.startswith("mine: ")
    assert re.search(text, signature.problem)


def test_a_missing_hint_differs_from_a_wrong_one() -> None:
    assert read_signature(unhinted, "mine").unhinted
    assert not read_signature(wrong, "mine").unhinted


def needs_task(item: Trace, task: Task): ...
def may_have_task(item: Trace, task: Task | None = None): ...
def optional_task(item: Trace, task: Optional[Task] = None): ...
def other_name(item: Trace, expected): ...
def other_default(item: Trace, expected=None): ...
def by_hint(item: Trace, goal: "Task | None" = None): ...
def by_unknown_hint(item: Trace, goal: "Optional[api.Task]" = None): ...  # type: ignore[name-defined]  # noqa: F821
def setting(item: Trace, threshold: float = 0.5): ...
def none_setting(item: Trace, words: list[str] | None = None): ...
def param_first(item: Trace, words: list[str] = Param(default=[]), task: Task | None = None): ...
def param_then_needed(item: Trace, words: list[str] = Param(default=[]), *, task: Task): ...
def setting_then_task(item: Trace, threshold: float = 0.5, task=None): ...
def keyword_task(item: Trace, *, task: Task | None = None): ...
def keyword_setting(item: Trace, *, threshold: float = 0.5): ...
def only_param(item: Trace, words: list[str] = Param()): ...
def task_and_setting(item: Trace, task: Task, threshold: float = 0.5): ...
def with_rest(item: Trace, *args: Any, **kwargs: Any): ...


MODES = [
    # function, needs a task, the task's name, can be given by position, the settings
    (trace, False, "", False, []),
    (needs_task, True, "task", True, []),
    (may_have_task, False, "task", True, []),
    (optional_task, False, "task", True, []),
    (other_name, True, "expected", True, []),
    (other_default, False, "expected", True, []),
    (by_hint, False, "goal", True, []),
    (by_unknown_hint, False, "goal", True, []),
    (setting, False, "", False, ["threshold"]),
    (none_setting, False, "", False, ["words"]),
    (param_first, False, "task", False, ["words"]),
    (param_then_needed, True, "task", False, ["words"]),
    (setting_then_task, False, "task", False, ["threshold"]),
    (keyword_task, False, "task", False, []),
    (keyword_setting, False, "", False, ["threshold"]),
    (only_param, False, "", False, ["words"]),
    (task_and_setting, True, "task", True, ["threshold"]),
    (with_rest, False, "", False, []),
]


@pytest.mark.parametrize(
    ("function", "needs", "task", "positional", "settings"), MODES, ids=[row[0].__name__ for row in MODES]
)
def test_the_second_parameter_decides_the_mode(
    function: Any, needs: bool, task: str, positional: bool, settings: list[str]
) -> None:
    signature = read_signature(function, "mine")
    assert signature.modes == (EXPERIMENT_ONLY if needs else BOTH_MODES)
    assert signature.task == task
    assert signature.task_positional is positional
    assert list(signature.params) == settings


def test_settings_have_type_default_and_need() -> None:
    def function(
        item: Trace, task: Task, a: int, b: "float" = 1, c=2, d: str = Param(default="x", description="D")
    ): ...

    params = read_signature(function, "mine").params
    assert [(spec.name, spec.type, spec.required) for spec in params.values()] == [
        ("a", int, True),
        ("b", float, False),
        ("c", Any, False),
        ("d", str, False),
    ]
    assert params["b"].default == 1  # a function's declared default is taken as it is
    assert params["d"].description == "D"


def test_a_function_that_takes_anything_says_so() -> None:
    assert read_signature(with_rest, "mine").takes_any
    assert not read_signature(trace, "mine").takes_any
