"""Finding evaluators in a module."""

from types import ModuleType

import pytest

from amp_evaluation.registry import discover_evaluators


def module(source: str) -> ModuleType:
    made = ModuleType("mine")
    head = (
        "from amp_evaluation.evaluators import BaseEvaluator, LLMAsJudgeEvaluator, FunctionEvaluator, Param\n"
        "from amp_evaluation.evaluators.builtin.standard import LatencyEvaluator\n"
        "from amp_evaluation.registry import evaluator\n"
        "from amp_evaluation.trace.models import Trace\n"
    )
    exec(head + source, vars(made))
    return made


CLASS = """
class {name}(BaseEvaluator):
    {body}
    def evaluate(self, trace: Trace) -> float:
        return 1.0
"""


@pytest.mark.parametrize(
    ("source", "names"),
    [
        pytest.param("", [], id="nothing that is only imported"),
        pytest.param("@evaluator('f')\ndef f(trace: Trace): ...", ["f"], id="a decorated function"),
        pytest.param(CLASS.format(name="A", body="..."), ["A"], id="a class"),
        pytest.param(CLASS.format(name="A", body="need: str = Param()"), [], id="no class that needs arguments"),
        pytest.param("class A(BaseEvaluator): ...", [], id="no abstract class"),
        pytest.param(
            CLASS.format(name="A", body="...") + "\na = A()\nb = a", ["A"], id="an instance once, not its class"
        ),
        pytest.param(
            "fast = LatencyEvaluator(max_latency_ms=1)", ["latency_performance"], id="an instance of an import"
        ),
        pytest.param(
            CLASS.format(name="B", body="...") + "\n@evaluator('a')\ndef a(trace: Trace): ...",
            ["B", "a"],
            id="in the order of definition",
        ),
    ],
)
def test_it_finds(source: str, names: list[str]) -> None:
    assert [found.name for found in discover_evaluators(module(source))] == names


def test_two_of_one_name_are_refused() -> None:
    source = "@evaluator('x')\ndef a(trace: Trace): ...\n@evaluator('x')\ndef b(trace: Trace): ..."
    with pytest.raises(ValueError, match="more than once: 'x'"):
        discover_evaluators(module(source))
