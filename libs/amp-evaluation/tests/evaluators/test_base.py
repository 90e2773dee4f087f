"""The contract of evaluators: items, eligibility, one skip an exception, and what constructors take."""

import copy
import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from amp_evaluation.config import Config, MonitorConfig
from amp_evaluation.dataset.models import Task
from amp_evaluation.evaluators import BaseEvaluator, EvalMode, EvaluationLevel, Param, validate_unique_evaluator_names
from amp_evaluation.evaluators._items import EvaluationItem
from amp_evaluation.models import EvalResult, EvaluatorReport, EvaluatorScore, SpanContext, TaskContext
from amp_evaluation.trace.models import AgentSpan, AgentTrace, ChainSpan, LLMSpan, Span, Trace

NOW = datetime(2026, 1, 15, 10, 30, tzinfo=UTC)


class OfTraces(BaseEvaluator):
    """One a trace."""

    def evaluate(self, trace: Trace) -> EvalResult:
        return EvalResult(1.0, f"trace {trace.trace_id}")


class OfAgents(BaseEvaluator):
    def evaluate(self, agent_trace: AgentTrace) -> EvalResult:
        if agent_trace.agent_name == "bad":
            raise ValueError("no steps")
        return EvalResult(1.0, agent_trace.agent_id)


class OfCalls(BaseEvaluator):
    def evaluate(self, llm_span: LLMSpan) -> float:
        return len(llm_span.output) / 10


class NeedsTask(BaseEvaluator):
    def evaluate(self, trace: Trace, task: Task) -> EvalResult:
        return EvalResult(1.0, task.task_id)


class MayHaveTask(BaseEvaluator):
    def evaluate(self, trace: Trace, task: Task | None = None) -> EvalResult:
        return EvalResult(1.0, "none" if task is None else task.task_id)


class KeywordTask(BaseEvaluator):
    def evaluate(self, trace: Trace, *, task: Task | None = None) -> EvalResult:
        return EvalResult(1.0, "none" if task is None else task.task_id)


class Unhinted(BaseEvaluator):
    def evaluate(self, item):  # type: ignore[no-untyped-def]
        return 1.0


def trace(*spans: Span, **fields: Any) -> Trace:
    return Trace("t1", "q", "a", list(spans), timestamp=NOW, **fields)


class TestItems:
    def test_a_trace_is_one_item_without_span_context(self) -> None:
        assert OfTraces().run(trace()) == [EvaluatorScore("t1", NOW, 1.0, True, "trace t1")]

    def test_calling_the_instance_is_running_it(self) -> None:
        class Loud(OfTraces):
            def run(self, trace: Trace, task: Task | None = None) -> list[EvaluatorScore]:
                return [*super().run(trace, task)] * 2

        assert OfTraces()(trace()) == OfTraces().run(trace())
        assert len(Loud()(trace())) == 2

    def test_each_agent_is_an_item_and_an_exception_costs_its_own_alone(self) -> None:
        scores = OfAgents().run(trace(AgentSpan("a1", name="good"), AgentSpan("a2", name="bad")))
        assert [score.span_context for score in scores] == [SpanContext("a1", "good"), SpanContext("a2", "bad")]
        assert scores[0].explanation == "a1"
        assert scores[1].skip_reason == "ValueError: no steps"

    @pytest.mark.parametrize(
        ("spans", "agent_id"),
        [
            pytest.param([ChainSpan("r1"), LLMSpan("l1", "r1")], "r1", id="the root of a chain"),
            pytest.param([LLMSpan("l1", "gone")], "l1", id="a span whose parent isn't there"),
            pytest.param([LLMSpan("l1", "r1"), ChainSpan("r1", "r1")], "r1", id="a root that is its own parent"),
            pytest.param([LLMSpan("l1", "l2"), LLMSpan("l2", "l1")], "l1", id="the first of a circle"),
            pytest.param([], "t1", id="the trace itself, without spans"),
        ],
    )
    def test_without_agents_the_whole_trace_is_one_agent_named_by_its_root(
        self, spans: list[Span], agent_id: str
    ) -> None:
        scores = OfAgents().run(trace(*spans))
        assert [(score.explanation, score.span_context) for score in scores] == [
            (score.explanation, SpanContext(agent_id)) for score in scores
        ]
        assert len(scores) == 1

    def test_each_llm_call_is_an_item_with_its_model(self) -> None:
        spans = [LLMSpan("l1", output="abc", model="gpt", vendor="openai"), LLMSpan("l2", output="abcde")]
        scores = OfCalls().run(trace(*spans))
        assert [score.score for score in scores] == [0.3, 0.5]
        assert [score.span_context for score in scores] == [SpanContext("l1", None, "gpt", "openai"), SpanContext("l2")]

    def test_no_item_at_the_level_is_one_skip_without_span_context(self) -> None:
        assert OfCalls().run(trace()) == [EvaluatorScore("t1", NOW, skip_reason="no LLM call in this trace")]

    def test_items_are_built_once_a_trace_and_shared(self) -> None:
        shared = trace(AgentSpan("a1"), LLMSpan("l1"))
        assert OfAgents()._plan(shared) is OfAgents()._plan(shared)
        assert OfCalls()._plan(shared) is OfCalls()._plan(shared)

    def test_items_follow_the_spans_when_they_change(self) -> None:
        changed = trace(LLMSpan("l1"))
        assert len(OfCalls().run(changed)) == 1
        changed.spans.append(LLMSpan("l2"))
        assert len(OfCalls().run(changed)) == 2
        changed.spans = [LLMSpan("l3"), LLMSpan("l4")]
        assert [score.span_context.span_id for score in OfCalls().run(changed) if score.span_context] == ["l3", "l4"]

    def test_a_trace_item_does_not_tie_the_trace_to_itself(self) -> None:
        plain = trace()
        OfTraces().run(plain)
        assert plain not in list(vars(plain).values())
        assert copy.deepcopy(plain) == plain

    def test_a_trace_that_cannot_be_taken_apart_is_a_skip(self) -> None:
        broken = trace()
        broken.spans = None  # type: ignore[assignment]
        (score,) = OfCalls().run(broken)
        assert score.skip_reason is not None
        assert score.skip_reason.startswith("the trace can't be taken apart: TypeError")


class TestEligibility:
    def test_a_failed_run_is_a_skip_with_its_reason(self) -> None:
        (score,) = OfTraces().run(trace(failed=True, failure_reason="blocked by policy"))
        assert score.skip_reason == "the run failed: blocked by policy"
        assert score.span_context is None

    def test_a_failure_without_a_reason_says_so(self) -> None:
        assert OfTraces().run(trace(failed=True))[0].skip_reason == "the run failed: no reason is known"

    def test_an_evaluator_may_look_at_failed_runs_by_class_or_keyword(self) -> None:
        class OfFailed(OfTraces):
            evaluates_failed_runs = True

        failed = trace(failed=True, failure_reason="x")
        assert OfFailed().run(failed)[0].score == 1.0
        assert OfTraces(evaluates_failed_runs=True).run(failed)[0].score == 1.0
        assert OfFailed(evaluates_failed_runs=False).run(failed)[0].is_skipped

    def test_the_setting_turns_the_rule_off_for_a_run(self) -> None:
        evaluator = OfTraces()
        evaluator._begin_run(Config(monitor=MonitorConfig(evaluate_failed=True)))
        assert evaluator.run(trace(failed=True))[0].score == 1.0
        evaluator._begin_run(Config(monitor=MonitorConfig(evaluate_failed=False)))
        assert evaluator.run(trace(failed=True))[0].is_skipped

    def test_a_trace_that_only_creates_an_agent_is_a_skip_for_all(self) -> None:
        evaluator = OfTraces(evaluates_failed_runs=True)
        (score,) = evaluator.run(trace(initialization_only=True))
        assert score.skip_reason is not None
        assert score.skip_reason.startswith("initialisation only")

    def test_without_content_an_evaluator_that_needs_it_skips(self) -> None:
        class Reads(OfTraces):
            needs_content = True

        assert Reads().run(trace(content_captured=False))[0].skip_reason == "content not captured"
        assert Reads().run(trace())[0].score == 1.0
        assert OfTraces().run(trace(content_captured=False))[0].score == 1.0


class TestTasks:
    task = Task(task_id="task1", input="q")

    @pytest.mark.parametrize("kind", [NeedsTask, MayHaveTask, KeywordTask])
    def test_the_task_arrives_and_is_named_in_the_score(self, kind: type[BaseEvaluator]) -> None:
        (score,) = kind().run(trace(), self.task)
        assert score.explanation == "task1"
        assert score.task_context == TaskContext("task1")

    @pytest.mark.parametrize("kind", [MayHaveTask, KeywordTask])
    def test_without_a_task_it_is_none(self, kind: type[BaseEvaluator]) -> None:
        (score,) = kind().run(trace())
        assert (score.explanation, score.task_context) == ("none", None)

    def test_an_evaluator_that_needs_one_skips_without(self) -> None:
        assert NeedsTask().run(trace())[0].skip_reason == "it needs a task: experiments only"

    def test_an_evaluator_without_such_a_parameter_is_called_without(self) -> None:
        assert OfTraces().run(trace(), self.task)[0].score == 1.0

    def test_modes(self) -> None:
        assert MayHaveTask().supports("monitor")
        assert NeedsTask().supports(EvalMode.EXPERIMENT)
        assert not NeedsTask().supports("monitor")
        assert NeedsTask().info.modes == [EvalMode.EXPERIMENT]


class TestLevels:
    def test_the_hint_gives_the_level(self) -> None:
        assert [kind().level for kind in (OfTraces, OfAgents, OfCalls)] == ["trace", "agent", "llm"]

    def test_a_missing_hint_is_a_type_error_when_the_level_is_first_needed(self) -> None:
        evaluator = Unhinted()
        for use in (lambda: evaluator.level, lambda: evaluator.info, lambda: evaluator.run(trace())):
            with pytest.raises(TypeError, match="Unhinted: parameter 'item' has no type hint"):
                use()

    def test_without_a_hint_the_level_may_be_given(self) -> None:
        assert Unhinted(level="agent").level is EvaluationLevel.AGENT
        evaluator = Unhinted()
        evaluator.level = "llm"  # type: ignore[assignment]
        assert evaluator.level is EvaluationLevel.LLM

    def test_a_class_may_declare_it(self) -> None:
        class Declared(Unhinted):
            level = "llm"  # type: ignore[assignment]

        assert Declared().level is EvaluationLevel.LLM
        assert Declared().run(trace())[0].skip_reason == "no LLM call in this trace"

    def test_its_own_level_is_accepted(self, caplog: pytest.LogCaptureFixture) -> None:
        assert OfAgents(level="agent").level is EvaluationLevel.AGENT
        assert caplog.records == []

    def test_the_hint_wins_over_another_level_with_a_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        assert OfAgents(level="trace").level is EvaluationLevel.AGENT
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert "the hint wins" in caplog.text

    @pytest.mark.parametrize("level", ["span", "", 3])
    def test_an_unknown_level_is_refused(self, level: Any) -> None:
        with pytest.raises(ValueError, match="level must be trace, agent or llm"):
            OfTraces(level=level)


class TestNamesAndInfo:
    def test_the_class_is_the_name_unless_it_gives_one(self) -> None:
        class Named(OfTraces):
            name = "named"
            tags = ("quality",)
            description = "Says things."
            version = "2.1"

        assert OfTraces().name == "OfTraces"
        info = Named().info
        assert (info.name, info.tags, info.description, info.version) == ("named", ["quality"], "Says things.", "2.1")

    def test_info_falls_back_on_the_docstring(self) -> None:
        info = OfTraces().info
        assert (info.description, info.version, info.class_name, info.module) == (
            "One a trace.",
            "1.0",
            "OfTraces",
            __name__,
        )
        assert OfAgents().info.description == ""

    def test_a_constructor_of_ones_own_needs_no_super(self) -> None:
        class Own(OfTraces):
            limit: float = Param(default=0.5)

            def __init__(self, extra: int) -> None:
                self.extra = extra

        own = Own(3)
        assert (own.name, own.limit, own.extra) == ("Own", 0.5, 3)
        assert own.run(trace())[0].score == 1.0

    def test_tags_are_not_shared(self) -> None:
        one = OfTraces()
        one.tags.append("x")  # type: ignore[attr-defined]
        assert list(OfTraces().tags) == []

    def test_an_evaluator_without_evaluate_is_abstract(self) -> None:
        with pytest.raises(TypeError, match="abstract"):
            type("Nothing", (BaseEvaluator,), {})()

    def test_names_must_differ(self) -> None:
        validate_unique_evaluator_names([OfTraces(), OfAgents()])
        with pytest.raises(ValueError, match="more than once: 'OfTraces'"):
            validate_unique_evaluator_names([OfTraces(), OfTraces(), OfAgents()])

    def test_its_repr_names_it(self) -> None:
        assert repr(OfTraces()) == "<OfTraces 'OfTraces'>"


class TestScoring:
    def test_a_number_is_a_score(self) -> None:
        assert OfCalls().run(trace(LLMSpan("l1", output="abc")))[0].score == 0.3

    def test_a_result_that_is_none_is_a_skip_that_says_what_is_wanted(self) -> None:
        class Nothing(BaseEvaluator):
            def evaluate(self, trace: Trace) -> None:
                return None

        assert "returned NoneType" in (Nothing().run(trace())[0].skip_reason or "")

    def test_a_result_class_of_ones_own_is_a_result(self) -> None:
        class Mine(EvalResult):
            pass

        class Returns(BaseEvaluator):
            def evaluate(self, trace: Trace) -> EvalResult:
                return Mine(0.4)

        assert Returns().run(trace())[0].score == 0.4

    @pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
    def test_what_stops_the_run_passes_through(self, stop: type[BaseException]) -> None:
        class Stops(BaseEvaluator):
            def evaluate(self, trace: Trace) -> float:
                raise stop

        with pytest.raises(stop):
            Stops().run(trace())

    def test_an_item_can_be_scored_alone(self) -> None:
        plain = trace()
        (item,) = OfTraces()._plan(plain)
        assert isinstance(item, EvaluationItem)
        assert OfTraces()._score_item(plain, item) == OfTraces().run(plain)[0]

    def test_a_run_ends_with_an_empty_report(self) -> None:
        assert OfTraces()._end_run() == EvaluatorReport()


class TestPropertiesOfASubclass:
    def test_a_name_that_is_a_property_counts_and_can_be_replaced(self) -> None:
        class Named(BaseEvaluator):
            @property
            def name(self) -> str:  # type: ignore[override]
                return "computed"

            @property
            def description(self) -> str:  # type: ignore[override]
                return "what it says of itself"

            @property
            def tags(self) -> list[str]:  # type: ignore[override]
                return ["quality"]

            def evaluate(self, trace: Trace) -> float:
                return 1.0

        made = Named()
        assert (made.info.name, made.info.description, made.info.tags) == (
            "computed",
            "what it says of itself",
            ["quality"],
        )
        made.name = "display name"  # type: ignore[misc]
        assert (made.info.name, Named().name) == ("display name", "computed")

    def test_a_constructor_may_say_the_modes(self) -> None:
        class Chooses(BaseEvaluator):
            def __init__(self) -> None:
                super().__init__()
                self._supported_eval_modes = [EvalMode.EXPERIMENT]

            def evaluate(self, trace: Trace) -> float:
                return 1.0

        assert Chooses().info.modes == [EvalMode.EXPERIMENT]
        assert not Chooses().supports("monitor")
