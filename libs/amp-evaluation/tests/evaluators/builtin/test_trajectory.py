"""Rules on the path."""

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation.dataset.models import Task, TrajectoryStep
from amp_evaluation.evaluators.builtin import builtin
from amp_evaluation.models import EvalResult
from amp_evaluation.trace.models import (
    AgentSpan,
    AgentTrace,
    LLMReasoningStep,
    LLMSpan,
    ToolExecutionStep,
    ToolMetrics,
    ToolSpan,
    Trace,
    UserInputStep,
)

names = st.sampled_from("abcd")


def agent(*tools: str, failed: tuple[str, ...] = ()) -> AgentTrace:
    steps = [ToolExecutionStep(tool, error="boom" if tool in failed else None) for tool in tools]
    return AgentTrace("a1", "q", "a", [UserInputStep("q"), *steps, LLMReasoningStep("a")])


def whole(*tools: str, failed: tuple[str, ...] = ()) -> Trace:
    """The same as a trace, whose tools are spans."""
    spans = [ToolSpan(f"s{n}", name=tool, metrics=ToolMetrics(error=tool in failed)) for n, tool in enumerate(tools)]
    return Trace("t1", "q", "a", [LLMSpan("l1"), *spans])


def expecting(*tools: str) -> Task:
    return Task(task_id="k", input="q", expected_trajectory=[TrajectoryStep(tool=tool) for tool in tools])


def result(name: str, target: Any, task: Task | None = None, **config: Any) -> EvalResult:
    found: EvalResult = builtin(name, **config).evaluate(target, task)
    return found


SEQUENCES = [
    # expected, called, loose, strict
    pytest.param("abc", "axb", 2 / 3, 0.0, id="a, b, c against a, x, b"),
    pytest.param("abc", "abc", 1.0, 1.0, id="the very calls"),
    pytest.param("abc", "axbyc", 1.0, 0.0, id="others between them"),
    pytest.param("abc", "bc", 2 / 3, 0.0, id="the first one left out"),
    pytest.param("ab", "ba", 0.5, 0.0, id="the other way round"),
    pytest.param("aa", "a", 0.5, 0.0, id="once instead of twice"),
    pytest.param("ab", "", 0.0, 0.0, id="no call at all"),
    pytest.param("a", "aa", 1.0, 0.0, id="once more than expected"),
]


class TestSequence:
    @pytest.mark.parametrize("make", [agent, whole], ids=["agent", "trace"])
    @pytest.mark.parametrize(("expected", "called", "loose", "strict"), SEQUENCES)
    def test_expected_against_called(self, make: Any, expected: str, called: str, loose: float, strict: float) -> None:
        found = result("sequence_adherence", make(*called), expected_sequence=list(expected))
        assert (found.score, found.passed) == (loose, loose == 1.0)
        found = result("sequence_adherence", make(*called), expected_sequence=list(expected), strict=True)
        assert (found.score, found.passed) == (strict, strict == 1.0)

    def test_it_says_what_was_met_and_what_was_called(self) -> None:
        found = result("sequence_adherence", agent("a", "x", "b"), expected_sequence=["a", "b", "c"])
        assert found.explanation == "met 2 of 3 in order; not met: 'c'; called: 'a', 'x', 'b'"
        found = result("sequence_adherence", agent("a"), expected_sequence=["a", "b"], strict=True)
        assert found.explanation == "called: 'a'; expected exactly: 'a', 'b'"
        found = result("sequence_adherence", agent("a"), expected_sequence=["a"], strict=True)
        assert found.explanation == "called: 'a'; as expected"
        assert result("sequence_adherence", agent("a"), expected_sequence=["a"]).explanation == "met 1 of 1 in order"

    @given(st.lists(names, min_size=1, max_size=5), st.lists(names, max_size=7))
    def test_the_score_is_the_longest_part_met_in_order(self, expected: list[str], called: list[str]) -> None:
        def is_met(part: tuple[str, ...]) -> bool:
            rest = iter(called)
            return all(tool in rest for tool in part)

        longest = max(n for n in range(len(expected) + 1) if any(map(is_met, combinations(expected, n))))
        found = result("sequence_adherence", agent(*called), expected_sequence=expected)
        assert found.score == longest / len(expected)

    def test_the_tasks_trajectory_replaces_the_own_one(self) -> None:
        found = result("sequence_adherence", agent("x"), expecting("x"), expected_sequence=["a"])
        assert found.score == 1.0
        found = result(
            "sequence_adherence", agent("x"), expecting("x"), expected_sequence=["a"], use_context_trajectory=False
        )
        assert found.score == 0.0

    def test_a_task_without_one_leaves_the_own_one(self) -> None:
        assert result("sequence_adherence", agent("a"), expecting(), expected_sequence=["a"]).score == 1.0

    @pytest.mark.parametrize("config", [{}, {"expected_sequence": []}, {"expected_sequence": None}])
    def test_nothing_expected_is_a_skip(self, config: dict[str, Any]) -> None:
        assert "set expected_sequence" in (result("sequence_adherence", agent("a"), **config).skip_reason or "")


class TestCoverage:
    @pytest.mark.parametrize("make", [agent, whole], ids=["agent", "trace"])
    @pytest.mark.parametrize(
        ("required", "called", "score"),
        [
            pytest.param("ab", "bb", 0.5, id="a, b against b, b"),
            pytest.param("ab", "xba", 1.0, id="in whatever order"),
            pytest.param("ab", "", 0.0, id="none"),
        ],
    )
    def test_required_against_called(self, make: Any, required: str, called: str, score: float) -> None:
        found = result("tool_coverage", make(*called), required_tools=list(required))
        assert (found.score, found.passed) == (score, score == 1.0)

    def test_the_missing_ones_are_named_in_order(self) -> None:
        found = result("tool_coverage", agent("b"), required_tools=["c", "b", "a"])
        assert found.explanation == "used 1 of 3 required tools; missing: 'a', 'c'"
        assert result("tool_coverage", agent("b"), required_tools=["b"]).explanation == "used 1 of 1 required tools"

    def test_the_tasks_trajectory_fills_only_what_is_empty(self) -> None:
        assert result("tool_coverage", agent("x"), expecting("x", "y")).score == 0.5
        assert result("tool_coverage", agent("x"), expecting("x", "y"), required_tools=["x"]).score == 1.0

    def test_nothing_required_is_a_skip(self) -> None:
        for config in ({}, {"required_tools": []}, {"required_tools": None}):
            assert "set required_tools" in (result("tool_coverage", agent("a"), **config).skip_reason or "")

    def test_a_json_list_becomes_a_set(self) -> None:
        assert builtin("tool_coverage", required_tools=["a", "a"]).required_tools == {"a"}  # type: ignore[attr-defined]


class TestSuccess:
    @pytest.mark.parametrize("make", [agent, whole], ids=["agent", "trace"])
    @pytest.mark.parametrize(
        ("tools", "failed", "rate", "passed"),
        [
            pytest.param("abcd", "", 1.0, True, id="none failed"),
            pytest.param("abcde", "b", 0.8, True, id="exactly the least share"),
            pytest.param("abcd", "b", 0.75, False, id="below the least share"),
            pytest.param("a", "a", 0.0, False, id="all failed"),
        ],
    )
    def test_the_share_without_an_error(self, make: Any, tools: str, failed: str, rate: float, passed: bool) -> None:
        found = result("step_success_rate", make(*tools, failed=tuple(failed)))
        assert (found.score, found.passed) == (rate, passed)

    def test_a_low_score_passes_under_a_low_limit(self) -> None:
        found = result("step_success_rate", agent("a", "b", "c", failed=("a", "b")), min_success_rate=0.3)
        assert found.passed
        assert found.explanation == "1 of 3 tool steps without an error; at least 30% wanted; failed: 'a', 'b'"

    @pytest.mark.parametrize("make", [agent, whole])
    def test_no_tool_step_is_a_skip(self, make: Any) -> None:
        assert result("step_success_rate", make()).skip_reason == "no tool step"


PATH_RULES: list[tuple[str, dict[str, Any]]] = [
    ("sequence_adherence", {"expected_sequence": ["a"]}),
    ("tool_coverage", {"required_tools": ["a"]}),
    ("step_success_rate", {}),
    ("iteration_efficiency", {}),
]


@pytest.mark.parametrize("level", ["agent", "trace"])
@pytest.mark.parametrize(("name", "config"), PATH_RULES)
def test_a_trace_in_which_nothing_was_recognised_is_a_skip(name: str, config: dict[str, Any], level: str) -> None:
    (score,) = builtin(name, level=level, **config).run(Trace("t1"))
    assert score.is_skipped


@pytest.mark.parametrize(("name", "config"), PATH_RULES)
def test_failed_runs_are_looked_at(name: str, config: dict[str, Any]) -> None:
    spans = [AgentSpan("a1", input="q"), LLMSpan("l1", "a1", output="x"), ToolSpan("s1", "a1", name="a")]
    failed = Trace("t1", "q", "", list(spans), failed=True, failure_reason="boom")
    (score,) = builtin(name, **config).run(failed)
    assert score.score == 1.0
    assert score.span_context is not None
    assert score.span_context.span_id == "a1"


@pytest.mark.parametrize(("name", "config"), PATH_RULES)
def test_an_llm_call_has_no_path(name: str, config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="level must be one of: agent, trace; not 'llm'"):
        builtin(name, level="llm", **config)
