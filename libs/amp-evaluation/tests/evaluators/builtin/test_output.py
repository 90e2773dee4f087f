"""Rules on the output's text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation.dataset.models import Task
from amp_evaluation.evaluators.builtin import builtin
from amp_evaluation.models import EvalResult, EvaluatorScore
from amp_evaluation.trace.models import AgentSpan, AgentTrace, LLMSpan, Trace


def score_of(name: str, output: str, task: Task | None = None, **config: Any) -> EvaluatorScore:
    (score,) = builtin(name, **config).run(Trace("t1", "q", output), task)
    return score


def task(**fields: Any) -> Task:
    return Task(task_id="k", input="q", **fields)


class TestLength:
    @pytest.mark.parametrize(
        ("output", "score"),
        [("", 0.0), ("ab", 0.0), ("abc", 1.0), ("abcde", 1.0), ("abcdef", 0.0), ("äöü🏳", 1.0)],
        ids=["empty is too short", "below", "the least", "the greatest", "above", "characters, not bytes"],
    )
    def test_within_the_limits_or_not(self, output: str, score: float) -> None:
        found = score_of("length_compliance", output, min_length=3, max_length=5)
        assert (found.score, found.passed) == (score, score == 1.0)
        assert found.explanation == f"{len(output)} characters; allowed: 3 to 5"

    def test_by_default_an_empty_output_that_was_captured_fails(self) -> None:
        assert score_of("length_compliance", "").score == 0.0
        assert score_of("length_compliance", "a").score == 1.0

    @given(st.text(max_size=50), st.integers(0, 30), st.integers(1, 30))
    def test_it_is_all_or_nothing(self, output: str, least: int, more: int) -> None:
        found = score_of("length_compliance", output, min_length=least, max_length=least + more)
        assert found.score == float(least <= len(output) <= least + more)

    def test_limits_that_nothing_meets_are_refused(self) -> None:
        with pytest.raises(ValueError, match="min_length 9 is over max_length 3"):
            builtin("length_compliance", min_length=9, max_length=3)


class TestCoverage:
    def test_three_of_four_name_the_missing_one(self) -> None:
        found = score_of("content_coverage", "alpha beta gamma", required_strings=["alpha", "beta", "gamma", "delta"])
        assert (found.score, found.passed) == (0.75, False)
        assert found.explanation == "found 3 of 4; missing: 'delta'"

    def test_all_found_passes(self) -> None:
        found = score_of("content_coverage", "Order 123", required_strings=["order"], required_patterns=[r"\d{3}"])
        assert (found.score, found.passed, found.explanation) == (1.0, True, "found 2 of 2")

    def test_a_missing_pattern_is_named(self) -> None:
        found = score_of("content_coverage", "no number", required_patterns=[r"\d+", "number"])
        assert (found.score, found.explanation) == (0.5, r"found 1 of 2; missing: '\\d+'")

    @pytest.mark.parametrize(
        ("case_sensitive", "score"), [(True, 0.0), (False, 1.0)], ids=["case counts", "case doesn't count"]
    )
    def test_case(self, case_sensitive: bool, score: float) -> None:
        found = score_of(
            "content_coverage",
            "STRASSE 12A",
            required_strings=["straße"],
            required_patterns=["12a"],
            case_sensitive=case_sensitive,
        )
        assert found.score == score

    @pytest.mark.parametrize(
        "config", [{}, {"required_strings": []}, {"required_strings": [""], "required_patterns": None}]
    )
    def test_nothing_required_is_a_skip_with_a_hint(self, config: dict[str, Any]) -> None:
        assert "set required_strings" in (score_of("content_coverage", "text", **config).skip_reason or "")

    def test_what_is_required_twice_counts_once(self) -> None:
        assert score_of("content_coverage", "a", required_strings=["a", "a", "b"]).score == 0.5

    def test_settings_changed_later_count(self) -> None:
        rule = builtin("content_coverage", required_strings=["a"])
        rule.required_strings.append("b")  # type: ignore[attr-defined]
        assert rule.run(Trace("t", output="a"))[0].score == 0.5
        rule.case_sensitive = True  # type: ignore[attr-defined]
        assert rule.run(Trace("t", output="A"))[0].score == 0.0

    @given(st.text(min_size=1, max_size=20), st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=6))
    def test_the_score_is_the_share_found(self, output: str, wanted: list[str]) -> None:
        found = score_of("content_coverage", output, required_strings=wanted, case_sensitive=True)
        kinds = set(wanted)
        assert found.score == sum(text in output for text in kinds) / len(kinds)
        assert found.passed is (found.score == 1.0)

    def test_a_long_list_of_missing_ones_is_cut(self) -> None:
        found = score_of("content_coverage", "none", required_strings=[f"{n}" * 200 for n in range(10, 60)])
        assert "and 30 more" in (found.explanation or "")
        assert len(found.explanation or "") < 2500


class TestSafety:
    def test_nothing_prohibited_found_is_one(self) -> None:
        found = score_of("content_safety", "all fine", prohibited_strings=["password", "secret"])
        assert (found.score, found.passed, found.explanation) == (1.0, True, "found none of 2 prohibited")

    def test_one_found_is_zero_and_named(self) -> None:
        found = score_of("content_safety", "the PassWord", prohibited_strings=["password"], prohibited_patterns=["^x"])
        assert (found.score, found.passed) == (0.0, False)
        assert found.explanation == "found 1 of 2 prohibited: 'password'"

    def test_a_pattern_is_found(self) -> None:
        assert score_of("content_safety", "call 0151", prohibited_patterns=[r"\b0\d{3}\b"]).score == 0.0

    def test_nothing_configured_is_a_skip_with_a_hint(self) -> None:
        assert "set prohibited_strings" in (score_of("content_safety", "text").skip_reason or "")

    def test_an_empty_text_prohibits_nothing(self) -> None:
        assert score_of("content_safety", "text", prohibited_strings=[""]).is_skipped

    def test_the_tasks_prohibited_content_is_added(self) -> None:
        found = score_of("content_safety", "the refund", task(prohibited_content=["refund"]), prohibited_strings=["x"])
        assert (found.score, found.explanation) == (0.0, "found 1 of 2 prohibited: 'refund'")

    def test_unless_it_is_not_wanted(self) -> None:
        found = score_of(
            "content_safety",
            "the refund",
            task(prohibited_content=["refund"]),
            prohibited_strings=["x"],
            use_context_prohibited=False,
        )
        assert found.score == 1.0


class TestExact:
    @pytest.mark.parametrize(
        ("output", "config", "score"),
        [
            pytest.param("Paris", {}, 1.0, id="equal"),
            pytest.param(" Paris\n", {}, 1.0, id="whitespace around doesn't count"),
            pytest.param(" Paris", {"strip_whitespace": False}, 0.0, id="unless it is said to"),
            pytest.param("paris", {}, 0.0, id="case counts"),
            pytest.param("paris", {"case_sensitive": False}, 1.0, id="unless it is said not to"),
            pytest.param("Paris, France", {}, 0.0, id="more is not equal"),
        ],
    )
    def test_it_equals_the_expected_output_or_not(self, output: str, config: dict[str, Any], score: float) -> None:
        found = score_of("exact_match", output, task(expected_output="Paris"), **config)
        assert (found.score, found.passed) == (score, score == 1.0)

    def test_a_difference_shows_both(self) -> None:
        found = score_of("exact_match", "Rome", task(expected_output="Paris"))
        assert found.explanation == "output 'Rome' differs from the expected 'Paris'"

    @pytest.mark.parametrize("name", ["exact_match", "contains_match"])
    @pytest.mark.parametrize("expected", [None, ""])
    def test_no_expected_output_is_a_skip(self, name: str, expected: str | None) -> None:
        found = score_of(name, "Paris", task(expected_output=expected))
        assert found.skip_reason == "the task has no expected output"

    @pytest.mark.parametrize("name", ["exact_match", "contains_match"])
    def test_no_output_is_a_skip(self, name: str) -> None:
        assert score_of(name, "", task(expected_output="Paris")).skip_reason == "no output"

    @pytest.mark.parametrize("name", ["exact_match", "contains_match"])
    def test_without_a_task_it_is_a_skip(self, name: str) -> None:
        assert score_of(name, "Paris").skip_reason == "it needs a task: experiments only"


class TestContains:
    @pytest.mark.parametrize(
        ("output", "config", "score"),
        [
            pytest.param("It is PARIS.", {}, 1.0, id="case doesn't count"),
            pytest.param("It is PARIS.", {"case_sensitive": True}, 0.0, id="unless it is said to"),
            pytest.param("It is Rome.", {}, 0.0, id="not there"),
        ],
    )
    def test_it_contains_the_expected_output_or_not(self, output: str, config: dict[str, Any], score: float) -> None:
        found = score_of("contains_match", output, task(expected_output="Paris"), **config)
        assert (found.score, found.passed) == (score, score == 1.0)
        assert "'Paris'" in (found.explanation or "")


TEXT_RULES: list[tuple[str, dict[str, Any]]] = [
    ("length_compliance", {}),
    ("content_coverage", {"required_strings": ["a"]}),
    ("content_safety", {"prohibited_strings": ["a"]}),
    ("exact_match", {}),
    ("contains_match", {}),
]


class TestWithoutText:
    @pytest.mark.parametrize(("name", "config"), TEXT_RULES)
    def test_content_that_was_not_captured_is_a_skip(self, name: str, config: dict[str, Any]) -> None:
        silent = Trace("t1", content_captured=False)
        wanted = task(expected_output="a")
        assert builtin(name, **config).run(silent, wanted)[0].skip_reason == "content not captured"
        assert builtin(name, **config).evaluate(silent, wanted) == EvalResult.skip("content not captured")

    @pytest.mark.parametrize(("name", "config"), TEXT_RULES[1:])
    def test_content_elsewhere_but_no_output_is_a_skip(self, name: str, config: dict[str, Any]) -> None:
        assert score_of(name, "", task(expected_output="a"), **config).skip_reason == "no output"

    @pytest.mark.parametrize("level", ["agent", "llm"])
    @pytest.mark.parametrize(("name", "config"), TEXT_RULES[1:3])
    def test_the_same_below_the_trace(self, name: str, config: dict[str, Any], level: str) -> None:
        spoken = Trace("t1", "q", "a", [AgentSpan("a1", input="q"), LLMSpan("l1", "a1")])
        assert [score.skip_reason for score in builtin(name, level=level, **config).run(spoken)] == ["no output"]


class TestLevels:
    @pytest.mark.parametrize(
        ("level", "score"), [("trace", 1.0), ("agent", 0.0), ("llm", 0.0)], ids=lambda value: str(value)
    )
    def test_the_level_chooses_whose_output(self, level: str, score: float) -> None:
        spans = [AgentSpan("a1", input="q", output="no"), LLMSpan("l1", "a1", output="neither", model="gpt")]
        rule = builtin("content_coverage", required_strings=["yes"], level=level)
        (found,) = rule.run(Trace("t1", "q", "yes", list(spans)))
        assert found.score == score
        assert (found.span_context is None) is (level == "trace")

    def test_an_agent_view_made_by_hand_is_taken(self) -> None:
        rule = builtin("length_compliance", level="agent")
        assert rule.evaluate(AgentTrace("a1", "q", "abc")).explanation == "3 characters; allowed: 1 to 10000"


@pytest.mark.parametrize(
    ("name", "parameter"),
    [("content_coverage", "required_patterns"), ("content_safety", "prohibited_patterns")],
)
@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "[z-a]", "*"])
def test_a_bad_pattern_is_refused_when_the_rule_is_made(name: str, parameter: str, pattern: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: {parameter}: .* is no regular expression"):
        builtin(name, **{parameter: ["fine", pattern]})
