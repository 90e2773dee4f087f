"""The rules on traces as the parser gives them: what a trace doesn't tell is a skip with a reason, never a score."""

from typing import Any

import pytest

from amp_evaluation.evaluators.builtin import builtin
from amp_evaluation.models import EvaluatorScore
from amp_evaluation.trace.fetcher import OTELSpan, OTELTrace
from amp_evaluation.trace.parser import parse_trace_for_evaluation

SEVEN_RULES: dict[str, dict[str, Any]] = {
    "latency_performance": {},
    "token_efficiency": {},
    "iteration_efficiency": {},
    "length_compliance": {},
    "content_safety": {"prohibited_strings": ["password", "secret"]},
    "tool_coverage": {"required_tools": ["search"]},
    "step_success_rate": {},
}
USER = '[{"role": "user", "parts": [{"type": "text", "content": "Where is my order?"}]}]'
REPLY = '[{"role": "assistant", "parts": [{"type": "text", "content": "On its way."}]}]'


def span(number: int, parent: int | None = None, *, status: Any = None, **attributes: Any) -> OTELSpan:
    return OTELSpan(
        traceId="t1",
        spanId=f"s{number}",
        parentSpanId=None if parent is None else f"s{parent}",
        name="work",
        startTime=f"2026-01-15T10:30:0{number}Z",
        endTime=f"2026-01-15T10:30:0{number + 1}Z",
        durationInNanos=1_000_000_000,
        status=status,
        attributes={f"gen_ai.{key.replace('__', '.')}": value for key, value in attributes.items()},
    )


def scores(*spans: OTELSpan) -> dict[str, list[EvaluatorScore]]:
    wire = OTELTrace(
        traceId="t1",
        rootSpanId=spans[0].spanId,
        startTime="2026-01-15T10:30:00Z",
        durationInNanos=2_000_000_000,
        spans=list(spans),
    )
    trace = parse_trace_for_evaluation(wire)
    return {name: builtin(name, **config).run(trace) for name, config in SEVEN_RULES.items()}


def reasons(found: dict[str, list[EvaluatorScore]]) -> dict[str, str | None]:
    return {name: score.skip_reason for name, (score,) in found.items()}


def test_spans_without_any_known_attribute_are_scored_for_latency_alone() -> None:
    assert reasons(scores(span(0), span(1, 0))) == {
        "latency_performance": None,
        "token_efficiency": "token usage unknown",
        "iteration_efficiency": "no LLM step",
        "length_compliance": "content not captured",
        "content_safety": "content not captured",
        "tool_coverage": "no steps recorded",
        "step_success_rate": "no tool step",
    }


def test_a_trace_that_only_creates_an_agent_is_skipped_by_all() -> None:
    found = scores(span(0, operation__name="create_agent", agent__name="shop"))
    for reason in reasons(found).values():
        assert (reason or "").startswith("initialisation only")


def test_beside_an_agent_that_runs_the_created_one_is_no_item() -> None:
    found = scores(
        span(0, operation__name="create_agent", agent__name="shop"),
        span(1, operation__name="invoke_agent", agent__name="shop"),
        span(2, 1, operation__name="chat", input__messages=USER, output__messages=REPLY),
    )
    (score,) = found["iteration_efficiency"]
    assert score.score == 1.0
    assert score.span_context is not None
    assert (score.span_context.span_id, score.span_context.agent_name) == ("s1", "shop")


def test_a_failed_run_is_looked_at_by_the_rules_of_the_path_alone() -> None:
    found = scores(
        span(0, operation__name="invoke_agent", status={"code": "ERROR", "message": "blocked by policy"}),
        span(1, 0, operation__name="chat", input__messages=USER),
        span(2, 0, operation__name="execute_tool", tool__name="search", tool__call__arguments='{"q": "x"}'),
    )
    for name in ("latency_performance", "token_efficiency", "length_compliance", "content_safety"):
        assert "blocked by policy" in (found[name][0].skip_reason or "")
    assert found["step_success_rate"][0].score == 1.0
    assert found["tool_coverage"][0].score == 1.0


@pytest.mark.parametrize(("status", "score"), [("ERROR", 0.0), ("Error", 0.0), ("OK", 1.0), (None, 1.0)])
def test_a_tools_error_is_the_steps(status: str | None, score: float) -> None:
    found = scores(
        span(0, operation__name="invoke_agent", input__messages=USER, output__messages=REPLY),
        span(1, 0, operation__name="chat", input__messages=USER, output__messages=REPLY),
        span(2, 0, operation__name="execute_tool", tool__name="search", status=status),
    )
    (step,) = found["step_success_rate"]
    assert step.score == score
    assert ("failed: 'search'" in (step.explanation or "")) is (score == 0.0)
