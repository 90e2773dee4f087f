"""What evaluators may return, made into one kind of result."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from numbers import Real
from typing import Any

from amp_evaluation.models import EvalResult

__all__ = ["as_eval_result", "error_text"]

MAX_ERROR_CHARS = 1000  # of an exception's text in a skip reason


def as_eval_result(value: object) -> EvalResult:
    """An EvalResult as it is; a number or a bool (1 or 0) as the score; a dict by its keys.

    A dict has `score` and perhaps `explanation` and `passed`, or `skip_reason` instead of a score. TypeError for
    anything else, ValueError for a score out of range.
    """
    if isinstance(value, EvalResult):
        return value if type(value) is EvalResult else _from_subclass(value)
    if isinstance(value, Mapping):
        return _from_mapping(value)
    if isinstance(value, bool | Real):
        return EvalResult(float(value))
    if callable(plain := getattr(value, "item", None)) and getattr(value, "ndim", None) == 0:
        return as_eval_result(plain())  # numpy's bool and zero-dimensional arrays
    if isinstance(value, Coroutine):
        value.close()
        raise TypeError("it is an async function, which nobody awaits: let a plain one call asyncio.run")
    raise TypeError(
        f"returned {type(value).__name__}; wanted: an EvalResult, a number in [0, 1], a bool, or a dict with 'score'"
    )


def _from_subclass(value: EvalResult) -> EvalResult:
    """A result of a class of somebody's own, whose properties may say something else than what it was made with."""
    if value.is_skipped:
        return EvalResult.skip(value.skip_reason or "")
    return EvalResult(value.score, value.explanation, value.passed)


def _from_mapping(value: Mapping[Any, Any]) -> EvalResult:
    score = value.get("score")
    if score is None:
        reason = value.get("skip_reason")
        if reason:
            return EvalResult.skip(str(reason))
        raise TypeError(f"returned a dict without a score; its keys: {sorted(map(str, value))}")
    return EvalResult(as_eval_result(score).score, value.get("explanation"), value.get("passed"))


def error_text(error: BaseException) -> str:
    """Somebody else's exception in a skip reason or an error of the run: its class and its text, cut."""
    try:
        said = str(error)
    except Exception:
        said = "its text can't be read"
    name = type(error).__name__
    return f"{name}: {said[:MAX_ERROR_CHARS]}" if said else name
