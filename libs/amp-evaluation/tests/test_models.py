"""Results, scores and summaries: a bad score can't be made, and a skip is never a number."""

import copy
import dataclasses
import math
import pickle
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from amp_evaluation.models import (
    NO_SCORE_REASON,
    EvalMode,
    EvalResult,
    EvaluationLevel,
    EvaluatorInfo,
    EvaluatorReport,
    EvaluatorScore,
    EvaluatorSummary,
    JudgeUsage,
    RunError,
    SpanContext,
    TaskContext,
)

NOW = datetime(2026, 1, 15, 10, 30, tzinfo=UTC)

NOT_NUMBERS = [None, "0.5", [0.5], {"score": 0.5}, object()]
OUT_OF_RANGE = [-0.1, 1.0000001, 9999, math.inf, -math.inf, math.nan]


class TestEvalResult:
    @pytest.mark.parametrize("score", NOT_NUMBERS, ids=lambda score: type(score).__name__)
    def test_a_score_that_is_no_number_is_a_type_error(self, score: Any) -> None:
        with pytest.raises(TypeError, match="score must be a number"):
            EvalResult(score)

    @pytest.mark.parametrize("score", OUT_OF_RANGE)
    def test_a_score_out_of_range_is_a_value_error_that_shows_it(self, score: float) -> None:
        with pytest.raises(ValueError, match="score must be"):
            EvalResult(score)

    @given(st.floats(0, 1))
    def test_every_number_in_range_is_a_score_and_passes_from_a_half_on(self, score: float) -> None:
        result = EvalResult(score)
        assert result.score == score
        assert result.passed is (score >= 0.5)
        assert not result.is_skipped

    @given(st.floats() | st.integers() | st.booleans() | st.fractions())
    def test_whatever_number_comes_a_made_result_is_in_range(self, score: float) -> None:
        try:
            result = EvalResult(score)
        except ValueError:
            return
        assert type(result.score) is float
        assert 0 <= result.score <= 1

    @pytest.mark.parametrize(("score", "held"), [(True, 1.0), (0, 0.0), (Fraction(1, 4), 0.25)])
    def test_other_numbers_become_floats(self, score: Any, held: float) -> None:
        assert EvalResult(score).score == held

    def test_passed_can_differ_from_the_default(self) -> None:
        assert EvalResult(0.9, passed=False).passed is False
        assert EvalResult(0.1, "why", True).passed is True

    def test_an_explanation_that_is_no_text_becomes_one(self) -> None:
        assert EvalResult(1.0, ["a", "b"]).explanation == "['a', 'b']"  # type: ignore[arg-type]
        assert EvalResult(1.0).explanation is None

    def test_a_skip_has_a_reason_and_neither_score_nor_verdict(self) -> None:
        skipped = EvalResult.skip("no output")
        assert skipped.is_skipped
        assert skipped.skip_reason == "no output"
        for name in ("score", "passed"):
            with pytest.raises(AttributeError, match="no output"):
                getattr(skipped, name)

    def test_a_skip_without_a_reason_gets_one(self) -> None:
        assert EvalResult.skip("").skip_reason == NO_SCORE_REASON

    def test_results_compare_by_value_copy_and_pickle(self) -> None:
        for result in (EvalResult(0.25, "why", True), EvalResult.skip("none")):
            assert pickle.loads(pickle.dumps(result)) == result
            assert copy.deepcopy(result) == result
            assert result != EvalResult(1.0)
            assert result != 0.25

    def test_its_repr_says_what_it_is(self) -> None:
        assert repr(EvalResult(0.5, "why")) == "EvalResult(score=0.5, explanation='why', passed=True)"
        assert repr(EvalResult.skip("none")) == "EvalResult.skip('none')"

    def test_it_is_mutable_so_it_is_not_hashable(self) -> None:
        with pytest.raises(TypeError):
            hash(EvalResult(1.0))


class TestEvaluatorScore:
    @pytest.mark.parametrize("score", [*NOT_NUMBERS[1:], *OUT_OF_RANGE, True])
    def test_a_bad_score_is_refused(self, score: Any) -> None:
        with pytest.raises(ValidationError):
            EvaluatorScore("t1", NOW, score)

    def test_a_score_beside_a_skip_reason_is_refused(self) -> None:
        with pytest.raises(ValueError, match="not both"):
            EvaluatorScore("t1", score=0.5, skip_reason="none")

    def test_fields_come_in_the_documented_order(self) -> None:
        context, task = SpanContext("s1", "shop", "gpt", "openai"), TaskContext("task", "trial")
        score = EvaluatorScore("t1", NOW, 0.25, True, "why", None, context, task)
        assert (score.trace_id, score.trace_start_time, score.score, score.passed) == ("t1", NOW, 0.25, True)
        assert (score.explanation, score.span_context, score.task_context) == ("why", context, task)
        assert score.is_successful
        assert not score.is_skipped

    def test_passed_follows_the_score_when_nothing_says_it(self) -> None:
        assert EvaluatorScore("t1", score=0.5).passed is True
        assert EvaluatorScore("t1", score=0.49).passed is False

    def test_no_score_and_no_reason_is_a_skip_with_the_known_reason(self) -> None:
        score = EvaluatorScore("t1")
        assert score.is_skipped
        assert not score.is_successful
        assert (score.skip_reason, score.passed) == (NO_SCORE_REASON, None)

    @given(st.floats(0, 1), st.none() | st.text(), st.none() | st.booleans())
    def test_the_short_way_from_a_result_gives_what_the_constructor_gives(
        self, score: float, explanation: str | None, passed: bool | None
    ) -> None:
        result = EvalResult(score, explanation, passed)
        made = EvaluatorScore.from_eval_result(result, "t1", NOW, SpanContext("s1"))
        assert made == EvaluatorScore("t1", NOW, score, result.passed, explanation, None, SpanContext("s1"))

    def test_a_skipped_result_becomes_a_skipped_score(self) -> None:
        made = EvaluatorScore.from_eval_result(EvalResult.skip("none"), "t1")
        assert made == EvaluatorScore("t1", skip_reason="none")

    def test_an_explanation_that_was_set_to_something_else_becomes_text(self) -> None:
        result = EvalResult(1.0)
        result.explanation = ["a"]  # type: ignore[assignment]
        assert EvaluatorScore.from_eval_result(result, "t1").explanation == "['a']"

    def test_it_is_mutable_replaced_copied_and_pickled(self) -> None:
        score = EvaluatorScore.from_eval_result(EvalResult(0.5, "why"), "t1", NOW, SpanContext("s1"))
        score.task_context = TaskContext("task")
        assert pickle.loads(pickle.dumps(score)) == score == copy.deepcopy(score)
        assert dataclasses.replace(score, trace_id="t2").trace_id == "t2"
        with pytest.raises(ValidationError):
            dataclasses.replace(score, score=2.0)

    def test_it_has_slots_a_dict_a_score_would_cost_a_kilobyte(self) -> None:
        assert not hasattr(EvaluatorScore("t1"), "__dict__")


def summary() -> EvaluatorSummary:
    agent, model = SpanContext("s1", "shop"), SpanContext("s2", None, "gpt", "openai")
    return EvaluatorSummary(
        "Latency",
        count=4,
        level=EvaluationLevel.AGENT,
        skipped_count=2,
        aggregated_scores={"mean": 0.75, "p90": 0.9},
        individual_scores=[
            EvaluatorScore("t1", NOW, 0.5, True, "slow", None, agent),
            EvaluatorScore("t1", NOW, 1.0, span_context=model),
            EvaluatorScore("t2", NOW, skip_reason="no LLM call"),
            EvaluatorScore("t3", NOW, 0.2),
        ],
        items_per_trace={"t1": 2, "t2": 1, "t3": 1},
    )


class TestEvaluatorSummary:
    def test_a_value_is_read_by_its_name(self) -> None:
        made = summary()
        assert (made["p90"], made.get("p90"), made.mean) == (0.9, 0.9, 0.75)
        assert (made.get("p99"), made.get("p99", 0.5)) == (0.0, 0.5)

    def test_a_value_that_is_not_there_is_a_key_error_with_those_that_are(self) -> None:
        with pytest.raises(KeyError, match=r"'p99'.*mean, p90"):
            summary()["p99"]
        with pytest.raises(KeyError, match="nothing was scored"):
            EvaluatorSummary("x")["mean"]

    def test_nothing_scored_has_no_mean(self) -> None:
        assert EvaluatorSummary("x", count=3, skipped_count=3).mean is None

    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_an_aggregate_that_is_not_finite_is_refused(self, value: float) -> None:
        with pytest.raises(ValidationError):
            EvaluatorSummary("x", aggregated_scores={"mean": value})

    @pytest.mark.parametrize(
        ("scores", "rate"),
        [
            pytest.param({"pass_rate": 0.4, "pass_rate_threshold_0.9": 0.1}, 0.4, id="the default one"),
            pytest.param(
                {"pass_rate_threshold_0.7": 0.4, "pass_rate_threshold_0.9": 0.1}, 0.4, id="the default spelt out"
            ),
            pytest.param({"pass_rate_threshold_0.9": 0.1, "mean": 1.0}, 0.1, id="the only one there is"),
            pytest.param({"pass_rate_threshold_0.9": 0.1, "pass_rate_threshold_0.8": 0.2}, None, id="neither of two"),
            pytest.param({"mean": 1.0}, None, id="none"),
        ],
    )
    def test_the_pass_rate_is(self, scores: dict[str, float], rate: float | None) -> None:
        assert EvaluatorSummary("x", aggregated_scores=scores).pass_rate == rate

    def test_scores_are_found_by_trace_agent_and_model(self) -> None:
        made = summary()
        first, second, skipped, last = made.individual_scores
        assert made.get_by_trace("t1") == [first, second]
        assert made.get_agent_scores("shop") == [first]
        assert made.get_model_scores("gpt") == [second]
        assert made.successful_scores == [first, second, last]
        assert made.skipped_scores == [skipped]
        assert made.error_count == made.skipped_count == 2
        assert (made.scored_count, made.passed_count) == (2, 2)

    def test_compact_is_one_line_with_the_figures(self) -> None:
        assert summary().summary("compact") == "Latency (agent): mean 0.75, p90 0.9; 4 items, 2 skipped"

    def test_the_default_adds_reasons_and_detailed_every_item(self) -> None:
        assert "skipped 1 times: no LLM call" in summary().summary()
        detailed = summary().summary("detailed").splitlines()
        assert "  t1/s1: 0.5 passed, slow" in detailed
        assert "  t2: skipped, no LLM call" in detailed
        assert "  t3: 0.2 failed" in detailed

    def test_reasons_come_by_frequency(self) -> None:
        scores = [EvaluatorScore("t", skip_reason=reason) for reason in ("a", "b", "b")]
        assert EvaluatorSummary("x", individual_scores=scores).summary().splitlines()[1:] == [
            "  skipped 2 times: b",
            "  skipped 1 times: a",
        ]

    def test_an_unknown_verbosity_is_refused(self) -> None:
        with pytest.raises(ValueError, match="'loud'"):
            summary().summary("loud")

    def test_no_score_is_said_so(self) -> None:
        assert "no score" in EvaluatorSummary("x").summary("compact")


class TestTheRest:
    def test_levels_and_modes_are_their_own_text(self) -> None:
        assert f"{EvaluationLevel.LLM}" == "llm" == EvaluationLevel.LLM
        assert [*EvalMode] == ["monitor", "experiment"]

    @pytest.mark.parametrize("may_help", [True, False])
    def test_an_error_of_the_run_is_a_text_that_knows_whether_a_repeat_may_help(self, may_help: bool) -> None:
        error = RunError("traces API: HTTP 503", repeat_may_help=may_help)
        for same in (error, copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
            assert same == "traces API: HTTP 503"
            assert same.repeat_may_help is may_help

    def test_reports_share_nothing(self) -> None:
        EvaluatorReport().errors.append(RunError("x", repeat_may_help=True))
        EvaluatorInfo("a").tags.append("b")
        assert EvaluatorReport().errors == []
        assert EvaluatorInfo("a").tags == []
        assert JudgeUsage("m").cost_usd is None
