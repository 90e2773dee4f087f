"""Rules on the text of an output: its length, what it must and must not contain, what is expected."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from amp_evaluation.evaluators._base import NOT_CAPTURED_REASON, BaseEvaluator, Target
from amp_evaluation.evaluators.builtin._rules import RuleEvaluator, listed
from amp_evaluation.evaluators.params import Param
from amp_evaluation.models import EvalResult, EvaluationLevel
from amp_evaluation.trace.models import Trace

if TYPE_CHECKING:
    from amp_evaluation.dataset.models import Task

__all__ = [
    "AnswerLengthEvaluator",
    "ContainsMatchEvaluator",
    "ExactMatchEvaluator",
    "ProhibitedContentEvaluator",
    "RequiredContentEvaluator",
]

NO_OUTPUT = "no output"


class _Terms(NamedTuple):
    """Texts and patterns to look for, ready to be looked for; `shown` is how an explanation names each."""

    texts: tuple[tuple[str, str], ...]
    patterns: tuple[tuple[str, re.Pattern[str]], ...]
    case_sensitive: bool

    @property
    def total(self) -> int:
        return len(self.texts) + len(self.patterns)

    def missing_from(self, output: str) -> list[str]:
        return self._named(output, False)

    def found_in(self, output: str) -> list[str]:
        return self._named(output, True)

    def _named(self, output: str, present: bool) -> list[str]:
        """The terms that are there, or those that aren't."""
        text = output if self.case_sensitive else output.casefold()
        named = [shown for shown, wanted in self.texts if (wanted in text) is present]
        if self.patterns:
            named += [shown for shown, wanted in self.patterns if (wanted.search(output) is not None) is present]
        return named


@lru_cache(maxsize=256)
def _terms(texts: tuple[str, ...], patterns: tuple[str, ...], case_sensitive: bool) -> _Terms:
    """Empty texts and patterns are in every output: they say nothing, and are left out."""
    flags = re.NOFLAG if case_sensitive else re.IGNORECASE
    return _Terms(
        tuple((text, text if case_sensitive else text.casefold()) for text in dict.fromkeys(texts) if text),
        tuple((pattern, re.compile(pattern, flags)) for pattern in dict.fromkeys(patterns) if pattern),
        case_sensitive,
    )


@lru_cache(maxsize=1024)
def _found_all(count: int) -> str:
    return f"found {count} of {count}"


@lru_cache(maxsize=1024)
def _found_none(count: int) -> str:
    return f"found none of {count} prohibited"


def _check_patterns(owner: str, parameter: str, patterns: Iterable[str] | None) -> None:
    """Refuse a bad regular expression now, not on every trace."""
    for pattern in patterns or ():
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"{owner}: {parameter}: {pattern!r} is no regular expression: {error}") from None


class _TextRule(RuleEvaluator):
    """A rule that reads the output: without recorded content there is nothing to read."""

    needs_content = True
    _scores_empty_output = False

    def _unreadable(self, target: Target) -> EvalResult | None:
        if target.output:
            return None
        if isinstance(target, Trace) and not target.content_captured:
            return EvalResult.skip(NOT_CAPTURED_REASON)
        return None if self._scores_empty_output else EvalResult.skip(NO_OUTPUT)


class AnswerLengthEvaluator(_TextRule):
    """The output's length in characters is within the limits."""

    name = "length_compliance"
    tags = ("rule-based", "compliance", "quality")
    _scores_empty_output = True

    min_length: int = Param(default=1, min=0, description="Least number of characters.")
    max_length: int = Param(default=10_000, min=1, description="Greatest number of characters.")

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        if self.min_length > self.max_length:
            raise ValueError(f"{self.name}: min_length {self.min_length} is over max_length {self.max_length}")

    def evaluate(self, target: Target, task: Task | None = None) -> EvalResult:
        unreadable = self._unreadable(target)
        if unreadable is not None:
            return unreadable
        length, least, most = len(target.output), self.min_length, self.max_length
        fits = least <= length <= most
        return EvalResult(float(fits), f"{length} characters; allowed: {least} to {most}", fits)


class RequiredContentEvaluator(_TextRule):
    """The output contains what is required; the score is the share that was found."""

    name = "content_coverage"
    tags = ("rule-based", "relevance", "quality")

    required_strings: list[str] | None = Param(default=[], description="Texts that the output must contain.")
    required_patterns: list[str] | None = Param(default=[], description="Regular expressions that must match.")
    case_sensitive: bool = Param(default=False, description="Tell upper from lower case.")

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        _check_patterns(self.name, "required_patterns", self.required_patterns)

    def evaluate(self, target: Target, task: Task | None = None) -> EvalResult:
        terms = _terms(tuple(self.required_strings or ()), tuple(self.required_patterns or ()), self.case_sensitive)
        if not terms.total:
            return EvalResult.skip("nothing is required: set required_strings or required_patterns")
        unreadable = self._unreadable(target)
        if unreadable is not None:
            return unreadable
        missing = terms.missing_from(target.output)
        if not missing:
            return EvalResult(1.0, _found_all(terms.total), True)
        found = terms.total - len(missing)
        return EvalResult(found / terms.total, f"found {found} of {terms.total}; missing: {listed(missing)}", False)


class ProhibitedContentEvaluator(_TextRule):
    """The output contains nothing that is prohibited."""

    name = "content_safety"
    tags = ("rule-based", "safety", "compliance")

    prohibited_strings: list[str] | None = Param(default=[], description="Texts that the output must not contain.")
    prohibited_patterns: list[str] | None = Param(default=[], description="Regular expressions that must not match.")
    case_sensitive: bool = Param(default=False, description="Tell upper from lower case.")
    use_context_prohibited: bool = Param(
        default=True, description="In experiments, also look for the task's prohibited content."
    )

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        _check_patterns(self.name, "prohibited_patterns", self.prohibited_patterns)

    def evaluate(self, target: Target, task: Task | None = None) -> EvalResult:
        texts = tuple(self.prohibited_strings or ())
        if task is not None and self.use_context_prohibited:
            texts += tuple(task.prohibited_content or ())
        terms = _terms(texts, tuple(self.prohibited_patterns or ()), self.case_sensitive)
        if not terms.total:
            return EvalResult.skip("nothing is prohibited: set prohibited_strings or prohibited_patterns")
        unreadable = self._unreadable(target)
        if unreadable is not None:
            return unreadable
        found = terms.found_in(target.output)
        if not found:
            return EvalResult(1.0, _found_none(terms.total), True)
        return EvalResult(0.0, f"found {len(found)} of {terms.total} prohibited: {listed(found)}", False)


class _ExpectedOutputRule(_TextRule):
    """A rule that holds a trace's output against the expected one of its task."""

    _supported_levels = (EvaluationLevel.TRACE,)
    # the task is not optional here: the check for it is in the base class
    _evaluate_target = BaseEvaluator._evaluate_target

    def _incomparable(self, trace: Trace, task: Task) -> EvalResult | None:
        if not task.expected_output:
            return EvalResult.skip("the task has no expected output")
        return self._unreadable(trace)


class ExactMatchEvaluator(_ExpectedOutputRule):
    """The output is the expected one."""

    name = "exact_match"
    tags = ("rule-based", "correctness")

    case_sensitive: bool = Param(default=True, description="Tell upper from lower case.")
    strip_whitespace: bool = Param(default=True, description="Leave out whitespace around both texts.")

    def evaluate(self, trace: Trace, task: Task) -> EvalResult:  # type: ignore[override]
        incomparable = self._incomparable(trace, task)
        if incomparable is not None:
            return incomparable
        same = self._normal(trace.output) == self._normal(task.expected_output or "")
        return EvalResult(float(same), "output equals the expected one" if same else _difference(trace, task), same)

    def _normal(self, text: str) -> str:
        text = text.strip() if self.strip_whitespace else text
        return text if self.case_sensitive else text.casefold()


def _difference(trace: Trace, task: Task) -> str:
    return f"output {listed([trace.output])} differs from the expected {listed([task.expected_output or ''])}"


class ContainsMatchEvaluator(_ExpectedOutputRule):
    """The output contains the expected one."""

    name = "contains_match"
    tags = ("rule-based", "correctness")

    case_sensitive: bool = Param(default=False, description="Tell upper from lower case.")

    def evaluate(self, trace: Trace, task: Task) -> EvalResult:  # type: ignore[override]
        incomparable = self._incomparable(trace, task)
        if incomparable is not None:
            return incomparable
        expected = task.expected_output or ""
        missing = _terms((expected,), (), self.case_sensitive).missing_from(trace.output)
        verb = "lacks" if missing else "contains"
        return EvalResult(float(not missing), f"output {verb} the expected text {listed([expected])}", not missing)
