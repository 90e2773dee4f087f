"""Rules on time, tokens and iterations."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation.dataset.models import Constraints, Task
from amp_evaluation.evaluators.builtin import builtin
from amp_evaluation.models import EvaluatorScore
from amp_evaluation.trace.models import (
    AgentMetrics,
    AgentSpan,
    AgentTrace,
    LLMMetrics,
    LLMReasoningStep,
    LLMSpan,
    TokenUsage,
    ToolExecutionStep,
    Trace,
    TraceMetrics,
)


def used(tokens: int) -> TokenUsage:
    return TokenUsage(tokens, 0, tokens)


def trace(**metrics: Any) -> Trace:
    return Trace("t1", "q", "a", metrics=TraceMetrics(**metrics))


def score_of(name: str, target: Trace, task: Task | None = None, **config: Any) -> EvaluatorScore:
    (score,) = builtin(name, **config).run(target, task)
    return score


def limited(**constraints: Any) -> Task:
    return Task(task_id="k", input="q", constraints=Constraints(**constraints))


class TestLatency:
    @pytest.mark.parametrize(
        ("limit", "took", "score"),
        [(1000, 1000, 1.0), (1000, 1500, 0.5), (1000, 2000, 0.0), (1000, 2500, 0.0), (0, 0, 1.0), (0, 10, 0.0)],
    )
    def test_the_curve(self, limit: int, took: int, score: float) -> None:
        found = score_of("latency_performance", trace(total_duration_ms=took), max_latency_ms=limit)
        assert (found.score, found.passed) == (score, took <= limit)
        assert found.explanation == f"took {took} ms; limit {limit} ms"

    def test_parts_of_a_millisecond_are_shown(self) -> None:
        found = score_of("latency_performance", trace(total_duration_ms=0.44), max_latency_ms=0)
        assert found.explanation == "took 0.4 ms; limit 0 ms"

    def test_no_limit_at_all_is_a_limit_too(self) -> None:
        found = score_of("latency_performance", trace(total_duration_ms=10.0), max_latency_ms=math.inf)
        assert (found.score, found.explanation) == (1.0, "took 10 ms; limit inf ms")

    @given(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(0, 1e7))
    def test_slower_is_never_better(self, one: float, other: float, limit: float) -> None:
        fast, slow = sorted((one, other))
        scores = [
            score_of("latency_performance", trace(total_duration_ms=took), max_latency_ms=limit).score
            for took in (fast, slow)
        ]
        assert scores[0] >= scores[1]  # type: ignore[operator]

    def test_an_unknown_duration_is_a_skip(self) -> None:
        assert score_of("latency_performance", trace(duration_known=False)).skip_reason == "duration unknown"

    @pytest.mark.parametrize(
        ("config", "constraints", "score"),
        [
            pytest.param({}, {"max_latency_ms": 500}, 0.0, id="the task's limit goes first"),
            pytest.param({"use_task_constraint": False}, {"max_latency_ms": 500}, 1.0, id="unless it isn't wanted"),
            pytest.param({}, {"max_latency_ms": 0}, 1.0, id="a limit of 0 is none"),
            pytest.param({}, {}, 1.0, id="no limit in the task"),
        ],
    )
    def test_the_task_may_set_a_limit(self, config: dict[str, Any], constraints: dict[str, Any], score: float) -> None:
        task = limited(**constraints)
        assert score_of("latency_performance", trace(total_duration_ms=1000), task, **config).score == score

    def test_a_task_without_constraints_leaves_the_own_limit(self) -> None:
        task = Task(task_id="k", input="q")
        assert score_of("latency_performance", trace(total_duration_ms=1000), task).score == 1.0

    def test_each_level_has_its_own_duration(self) -> None:
        spans = [
            AgentSpan("a1", metrics=AgentMetrics(duration_ms=1500)),
            LLMSpan("l1", "a1", output="x", metrics=LLMMetrics(duration_ms=500)),
        ]
        whole = Trace("t1", "q", "a", list(spans), TraceMetrics(total_duration_ms=2000))
        scores = [
            score_of("latency_performance", whole, max_latency_ms=1000, level=level).score
            for level in ("trace", "agent", "llm")
        ]
        assert scores == [0.0, 0.5, 1.0]

    @pytest.mark.parametrize(
        ("value", "held"), [(3000, 3000.0), ("3000", TypeError), (True, TypeError), (-1, ValueError)]
    )
    def test_the_limit_in_config(self, value: Any, held: Any) -> None:
        if isinstance(held, type):
            with pytest.raises(held, match="latency_performance: parameter 'max_latency_ms'"):
                builtin("latency_performance", max_latency_ms=value)
        else:
            made = builtin("latency_performance", max_latency_ms=value).max_latency_ms  # type: ignore[attr-defined]
            assert made == held
            assert type(made) is float


class TestTokens:
    @pytest.mark.parametrize(("tokens", "score"), [(0, 1.0), (100, 1.0), (150, 0.5), (200, 0.0), (1000, 0.0)])
    def test_the_curve(self, tokens: int, score: float) -> None:
        found = score_of("token_efficiency", trace(token_usage=used(tokens)), max_tokens=100)
        assert (found.score, found.passed) == (score, tokens <= 100)
        assert found.explanation == f"used {tokens} tokens; limit 100"

    def test_unknown_usage_is_a_skip(self) -> None:
        assert score_of("token_efficiency", trace(usage_known=False)).skip_reason == "token usage unknown"

    def test_the_task_may_set_a_limit(self) -> None:
        target = trace(token_usage=used(150))
        assert score_of("token_efficiency", target, limited(max_tokens=100)).score == 0.5
        assert score_of("token_efficiency", target, limited(max_tokens=100), use_context_constraint=False).score == 1.0

    @pytest.mark.parametrize(("level", "score"), [("trace", 0.0), ("llm", 0.5)])
    def test_each_level_has_its_own_usage(self, level: str, score: float) -> None:
        call = LLMSpan("l1", output="x", metrics=LLMMetrics(token_usage=used(150)))
        whole = Trace("t1", "q", "a", [call], TraceMetrics(token_usage=used(300)))
        assert score_of("token_efficiency", whole, max_tokens=100, level=level).score == score

    def test_an_agents_usage(self) -> None:
        view = AgentTrace("a1", metrics=AgentMetrics(token_usage=used(150)))
        assert builtin("token_efficiency", max_tokens=100, level="agent").evaluate(view).score == 0.5


class TestIterations:
    def agent(self, steps: int) -> AgentTrace:
        said = [LLMReasoningStep(str(n)) for n in range(steps)]
        return AgentTrace("a1", "q", "a", [*said, ToolExecutionStep("t")])

    @pytest.mark.parametrize(("steps", "score"), [(1, 1.0), (4, 1.0), (6, 0.5), (8, 0.0), (9, 0.0)])
    def test_the_curve(self, steps: int, score: float) -> None:
        found = builtin("iteration_efficiency", max_iterations=4).evaluate(self.agent(steps))
        assert (found.score, found.passed) == (score, steps <= 4)
        assert found.explanation == f"{steps} LLM steps; limit 4"

    def test_a_traces_llm_calls(self) -> None:
        whole = Trace("t1", "q", "a", [LLMSpan(f"l{n}", output=str(n)) for n in range(6)])
        assert score_of("iteration_efficiency", whole, max_iterations=4, level="trace").score == 0.5

    def test_the_task_may_set_a_limit(self) -> None:
        rule = builtin("iteration_efficiency")
        assert rule.evaluate(self.agent(6), limited(max_iterations=4)).score == 0.5

    def test_no_llm_step_is_a_skip(self) -> None:
        assert builtin("iteration_efficiency").evaluate(self.agent(0)).skip_reason == "no LLM step"


@pytest.mark.parametrize("name", ["latency_performance", "token_efficiency", "length_compliance"])
def test_a_failed_run_is_a_skip_for_what_measures_the_answer_or_its_cost(name: str) -> None:
    failed = Trace("t1", "q", "", failed=True, failure_reason="blocked by policy")
    assert score_of(name, failed).skip_reason == "the run failed: blocked by policy"
