"""Which object of a source is the evaluator."""

from __future__ import annotations

from typing import Any

import pytest

from amp_evaluation.isolation.candidates import choose, compile_source, run_source
from amp_evaluation.isolation.loading import _given_names


def chosen(source: str) -> tuple[str, list[str]]:
    """The chosen object's name in its source, and the warnings."""
    name = "custom_evaluator_test"
    code, tree = compile_source(source, name)
    names = run_source(code, source, name, _given_names(source))
    found, warnings = choose(names, tree, name)
    return next(key for key, value in names.items() if value is found), warnings


CLASS = "class {0}({1}):\n    def evaluate(self, trace: Trace): return 1\n"


def a_class(name: str, base: str = "BaseEvaluator") -> str:
    return CLASS.format(name, base)


CASES: dict[str, tuple[str, str]] = {
    "a decorated function before all": (
        a_class("C") + "def r(t: Trace) -> EvalResult: ...\n@evaluator('x')\ndef d(t: Trace): ...\ndef last(t): ...\n",
        "d",
    ),
    "a judge function counts as decorated": ("def r(t: Trace) -> float: ...\n@llm_judge\ndef j(t: Trace): ...\n", "j"),
    "a decorated object that was assigned": ("def f(t: Trace): return 1\nmade = evaluator('x')(f)\n", "made"),
    "a result hint before a class": (a_class("C") + "def r(t: Trace) -> EvalResult: ...\n", "r"),
    "a number's hint": ("def h(t: Trace): ...\ndef r(t: Trace) -> float: ...\ndef h2(t: Trace): ...\n", "r"),
    "a bool's hint without a first hint": ("def r(t) -> bool: ...\ndef h(t: Trace): ...\n", "r"),
    "a dict's hint": ("def r(t: Trace) -> dict[str, float]: ...\ndef h(t: Trace): ...\n", "r"),
    "a hint as text": ("from __future__ import annotations\ndef r(t: Trace) -> EvalResult: ...\ndef h(t): ...\n", "r"),
    "a hint whose name is only known to type checkers": (
        "def r(t: 'Trace') -> 'missing.EvalResult': ...\ndef h(t: Trace): ...\n",
        "r",
    ),
    "an optional hint": ("def r(t: Trace) -> EvalResult | None: ...\ndef h(t: Trace): ...\n", "r"),
    "no result of a helper with another first hint": (a_class("C") + "def ratio(a: str) -> float: ...\n", "C"),
    "a class before a hinted function": (a_class("C") + "def h(t: Trace): ...\n", "C"),
    "the most derived class": (a_class("A") + a_class("B", "A"), "B"),
    "the most derived class above its base's other user": (a_class("A") + a_class("B", "A") + "x = A\n", "B"),
    "an abstract base stays out": (
        "from abc import abstractmethod\nclass Base(BaseEvaluator):\n    @abstractmethod\n    def limit(self): ...\n"
        "    def evaluate(self, trace: Trace): return 1\n"
        "class C(Base):\n    def limit(self): return 1\n",
        "C",
    ),
    "a judge class": ("class J(LLMAsJudgeEvaluator):\n    def build_prompt(self, t: Trace): return ''\n", "J"),
    "a hinted function before a later one without": ("def h(t: Trace): ...\ndef last(t): ...\n", "h"),
    "a function that takes nothing stays out": ("def a(t): ...\ndef b(): ...\ndef c(*args): ...\n", "a"),
    "a lambda": ("check = lambda t: 1\n", "check"),
    "an import never": ("def a(t): ...\nfrom textwrap import dedent\nfrom amp_evaluation.trace import *\n", "a"),
    "an imported class never": ("from collections import OrderedDict\nimport abc\ndef a(t): ...\n", "a"),
    "a given name never": ("def a(t): ...\nEvaluator = BaseEvaluator\n", "a"),
    "a definition below a condition": ("if True:\n    def a(t: Trace): ...\nelse:\n    def b(t: Trace): ...\n", "a"),
    "a definition in a try": ("try:\n    import x_y_z\nexcept ImportError:\n    def a(t: Trace): ...\n", "a"),
    "an inner function never": ("def a(t):\n    def inner(t: Trace) -> float: ...\n    return inner\n", "a"),
}


@pytest.mark.parametrize(("source", "wanted"), CASES.values(), ids=CASES.keys())
def test_the_evaluator_of_a_source(source: str, wanted: str) -> None:
    assert chosen(source) == (wanted, [])


EQUALS: dict[str, tuple[str, str, list[str]]] = {
    "two with a result": ("def a(t: Trace) -> EvalResult: ...\ndef b(t: Trace) -> float: ...\n", "b", ["'a'"]),
    "the one that was bound last": (
        "def a(t: Trace) -> EvalResult: ...\ndef b(t: Trace) -> EvalResult: ...\ndef a(t: Trace) -> EvalResult: ...\n",
        "a",
        ["'b'"],
    ),
    "two with a hint, one of which returns no result": (
        "def h(t: Trace): ...\ndef words(t: Trace) -> list: ...\n",
        "words",
        ["'h'"],
    ),
    "two functions without any hint": ("def a(t): ...\ndef b(t): ...\n", "b", ["'a'"]),
    "two decorated": ("@evaluator\ndef a(t: Trace): ...\n@evaluator\ndef b(t: Trace): ...\n", "b", ["'a'"]),
    "three classes": (a_class("A") + a_class("B") + a_class("C"), "C", ["'A'", "'B'"]),
}


@pytest.mark.parametrize(("source", "wanted", "others"), EQUALS.values(), ids=EQUALS.keys())
def test_among_equals_the_last_wins_and_the_others_are_named(source: str, wanted: str, others: list[str]) -> None:
    name, warnings = chosen(source)
    assert name == wanted
    assert len(warnings) == 1 and warnings[0].endswith("not used: " + ", ".join(others))


@pytest.mark.parametrize("source", ["", "x = 1\n", "import math\n", "from math import sqrt\n", "class C: ...\n"])
def test_a_source_without_an_evaluator_is_an_error_that_says_what_to_write(source: str) -> None:
    with pytest.raises(TypeError, match="write a function"):
        chosen(source)


@pytest.mark.parametrize(
    "name", ["EvalResult", "Param", "Task", "Trace", "AgentTrace", "LLMSpan", "UserMessage", "ToolExecutionStep"]
)
def test_names_are_given_without_an_import(name: str) -> None:
    namespace: dict[str, Any] = _given_names(name)
    assert isinstance(namespace[name], type) or callable(namespace[name])
