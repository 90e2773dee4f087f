"""What evaluators return, as results."""

from decimal import Decimal
from typing import Any

import pytest

from amp_evaluation.evaluators._outcome import as_eval_result, error_text
from amp_evaluation.models import EvalResult


class Scalar:
    """Quacks like one of numpy's: `.item()` gives the plain value, `.ndim` is 0."""

    def __init__(self, value: Any, ndim: int = 0) -> None:
        self.value, self.ndim = value, ndim

    def item(self) -> Any:
        return self.value


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class Graded(EvalResult):
    """Says another score than it was made with."""

    grade = 0.75

    @property
    def score(self) -> float:
        return self.grade


RESULTS = [
    pytest.param(Graded(0.1, "why", True), EvalResult(0.75, "why", True), id="a result of a class of one's own"),
    pytest.param(Graded.skip("none"), EvalResult.skip("none"), id="a skip of a class of one's own"),
    pytest.param(EvalResult(0.3, "why"), EvalResult(0.3, "why"), id="a result as it is"),
    pytest.param(True, EvalResult(1.0), id="True is 1"),
    pytest.param(False, EvalResult(0.0), id="False is 0"),
    pytest.param(1, EvalResult(1.0), id="an int"),
    pytest.param(0.25, EvalResult(0.25), id="a float"),
    pytest.param(Scalar(True), EvalResult(1.0), id="a scalar of an array library"),
    pytest.param({"score": 0.8}, EvalResult(0.8), id="a dict with a score"),
    pytest.param(
        {"score": True, "explanation": "ok", "passed": False}, EvalResult(1.0, "ok", False), id="a whole dict"
    ),
    pytest.param({"score": None, "skip_reason": "none"}, EvalResult.skip("none"), id="a dict with a skip reason"),
]


@pytest.mark.parametrize(("returned", "result"), RESULTS)
def test_it_becomes_a_result(returned: Any, result: EvalResult) -> None:
    assert as_eval_result(returned) == result


@pytest.mark.parametrize(
    ("returned", "error", "text"),
    [
        pytest.param(None, TypeError, "returned NoneType; wanted", id="nothing"),
        pytest.param("0.5", TypeError, "returned str", id="a text"),
        pytest.param(Decimal("0.5"), TypeError, "returned Decimal", id="a decimal"),
        pytest.param(Scalar(0.5, ndim=1), TypeError, "returned Scalar", id="an array"),
        pytest.param({"value": 1}, TypeError, r"without a score; its keys: \['value'\]", id="a dict without a score"),
        pytest.param({"score": 2}, ValueError, "not 2.0", id="a score out of range"),
        pytest.param({"score": "high"}, TypeError, "returned str", id="a text as the score"),
        pytest.param(float("nan"), ValueError, "finite", id="NaN"),
    ],
)
def test_or_it_is_refused(returned: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        as_eval_result(returned)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no order"), "ValueError: no order"),
        (KeyError(), "KeyError"),
        (Unreadable(), "Unreadable: its text can't be read"),
    ],
    ids=["class and text", "the class alone", "a text that raises"],
)
def test_an_exception_as_a_reason(error: Exception, text: str) -> None:
    assert error_text(error) == text


def test_a_long_text_is_cut() -> None:
    assert len(error_text(ValueError("x" * 100_000))) < 1100


@pytest.mark.filterwarnings("error")
def test_an_async_function_gives_no_result_and_no_warning() -> None:
    async def evaluate() -> float:
        return 1.0

    with pytest.raises(TypeError, match="an async function, which nobody awaits"):
        as_eval_result(evaluate())
