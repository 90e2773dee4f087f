"""Functions as evaluators."""

import pickle
from typing import Any

import pytest

from amp_evaluation.dataset.models import Task
from amp_evaluation.evaluators import EvaluationLevel, FunctionEvaluator, Param
from amp_evaluation.evaluators.decorators import evaluator
from amp_evaluation.models import EvalResult
from amp_evaluation.trace.models import AgentTrace, Trace

TRACE = Trace("t1", "q", "refund in EUR")


@evaluator("mentions", tags=["quality"], version="2.0", aggregations=["max"])
def mentions(trace: Trace, word: str = Param(default="refund", description="What to find.")) -> EvalResult:
    """Finds a word.

    And says no more.
    """
    return EvalResult(float(word in trace.output), word)


def threshold(trace: Trace, least: float = 0.5, words: list[str] = []):  # noqa: B006  # is what is tried
    words.append("seen")
    return least


def required(trace: Trace, word: str = Param(), least: int = Param(default=1, min=1)) -> bool:
    return trace.output.count(word) >= least


class TestTheDecorator:
    def test_it_makes_an_evaluator_with_what_it_was_told(self) -> None:
        assert isinstance(mentions, FunctionEvaluator)
        info = mentions.info
        assert (info.name, info.description, info.tags, info.version) == (
            "mentions",
            "Finds a word.",
            ["quality"],
            "2.0",
        )
        assert (info.level, info.class_name, info.module) == (EvaluationLevel.TRACE, "FunctionEvaluator", __name__)
        assert mentions.aggregations == ["max"]
        assert [entry["key"] for entry in info.config_schema] == ["word"]

    def test_its_name_is_the_functions_by_default(self) -> None:
        assert evaluator()(threshold).name == "threshold"
        assert evaluator(threshold).name == "threshold"  # type: ignore[arg-type, attr-defined]

    def test_failed_runs_are_evaluated_when_asked(self) -> None:
        failed = Trace("t1", failed=True)
        assert evaluator("x", evaluates_failed_runs=True)(threshold).run(failed)[0].score == 0.5
        assert evaluator("x")(threshold).run(failed)[0].is_skipped

    def test_a_missing_hint_is_no_fault_of_the_decorator(self) -> None:
        made = evaluator("bare")(lambda item: 1.0)
        with pytest.raises(TypeError, match="bare: parameter 'item' has no type hint"):
            _ = made.level
        assert made.with_config(level="agent").level is EvaluationLevel.AGENT

    @pytest.mark.parametrize("name", ["func", "name"])
    def test_a_reserved_name_is_refused_when_it_is_made(self, name: str) -> None:
        space: dict[str, Any] = {"Trace": Trace}
        exec(f"def f(trace: Trace, {name}: str = 'x'): ...", space)
        with pytest.raises(TypeError, match=f"'{name}' can't be"):
            evaluator("x")(space["f"])

    def test_only_functions_are_taken(self) -> None:
        with pytest.raises(TypeError, match="not of 'f'"):
            FunctionEvaluator("f")  # type: ignore[arg-type]


class TestConfig:
    def test_a_configured_copy_leaves_the_original_as_it_was(self) -> None:
        copy = mentions.with_config(word="price")
        assert copy.run(TRACE)[0].score == 0.0
        assert mentions.run(TRACE)[0].score == 1.0
        assert (copy.word, mentions.word) == ("price", "refund")
        copy.tags.append("x")  # type: ignore[attr-defined]
        assert mentions.tags == ["quality"]

    def test_copies_of_copies_keep_what_they_had(self) -> None:
        made = FunctionEvaluator(required, "r", word="refund")
        assert made.with_config(least=2).run(TRACE)[0].score == 0.0
        assert made.with_config(least=1).run(TRACE)[0].score == 1.0

    def test_plain_defaults_are_settings_too(self) -> None:
        made = evaluator("t")(threshold)
        assert made.with_config(least=1).run(TRACE)[0].score == 1.0
        with pytest.raises(TypeError, match="t: parameter 'least' must be a number"):
            made.with_config(least="1")

    def test_mutable_defaults_are_never_shared(self) -> None:
        made = evaluator("t")(threshold)
        other = made.with_config(least=0.1)
        made.run(TRACE)
        assert (made.words, other.words) == (["seen"], [])
        assert threshold.__defaults__ == (0.5, [])

    @pytest.mark.parametrize(
        ("config", "error", "text"),
        [
            pytest.param({"word": "a", "wrod": 1}, TypeError, "unknown parameter 'wrod'; known: word", id="unknown"),
            pytest.param({}, TypeError, "required parameter 'word' is missing", id="missing"),
            pytest.param({"word": 3}, TypeError, "parameter 'word' must be a text", id="type"),
            pytest.param({"word": "a", "least": 0}, ValueError, "at least 1", id="range"),
        ],
    )
    def test_wrong_config_is_refused(self, config: dict[str, Any], error: type[Exception], text: str) -> None:
        made = evaluator("r")(required)
        with pytest.raises(error, match=f"r: .*{text}"):
            made.with_config(**config)

    def test_what_is_required_and_never_given_is_a_skip_that_says_so(self) -> None:
        (score,) = evaluator("r")(required).run(TRACE)
        assert score.skip_reason == "TypeError: required parameter 'word' is missing"

    def test_a_declared_default_is_taken_as_it_is(self) -> None:
        def odd(trace: Trace, limit: int = Param(default="none", max=3)) -> float:
            return 1.0 if limit == "none" else 0.0  # type: ignore[comparison-overlap]

        assert evaluator("odd")(odd).run(TRACE)[0].score == 1.0

    def test_a_function_that_takes_anything_gets_anything(self) -> None:
        def anything(trace: Trace, least: int = 1, **rest: Any) -> dict[str, Any]:
            return {"score": 1.0, "explanation": f"{least} {rest}"}

        made = evaluator("any")(anything).with_config(least=2, other="x")
        assert made.run(TRACE)[0].explanation == "2 {'other': 'x'}"

    def test_level_and_failed_runs_are_no_settings_unless_the_function_has_them(self) -> None:
        def own(trace: Trace, level: str = "high") -> dict[str, Any]:
            return {"score": 1.0, "explanation": level}

        made = evaluator("own")(own).with_config(level="low", evaluates_failed_runs=True)
        assert made.run(Trace("t", failed=True))[0].explanation == "low"

    def test_a_setting_set_as_an_attribute_is_checked_and_counts(self) -> None:
        made = mentions.with_config()
        made.word = "price"
        assert made.run(TRACE)[0].score == 0.0
        assert mentions.run(TRACE)[0].score == 1.0
        with pytest.raises(TypeError, match="parameter 'word' must be a text"):
            made.word = 3
        bare = evaluator("r")(required)
        bare.word = "refund"
        assert bare.run(TRACE)[0].score == 1.0

    def test_a_setting_may_have_the_name_of_an_evaluators_attribute(self) -> None:
        def tagged(trace: Trace, tags: list[str] = [], version: str = "a") -> dict[str, Any]:  # noqa: B006
            return {"score": 1.0, "explanation": f"{tags} {version}"}

        made = evaluator("tagged", tags=["quality"])(tagged).with_config(tags=["x"])
        made.version = "3.0"
        assert made.run(TRACE)[0].explanation == "['x'] a"
        assert (made.info.tags, made.info.version) == (["quality"], "3.0")

    def test_what_is_no_setting_is_no_attribute(self) -> None:
        with pytest.raises(AttributeError, match="'wrod'"):
            _ = mentions.wrod


class TestResults:
    def test_the_task_comes_with_the_settings(self) -> None:
        def both(trace: Trace, task: Task, least: float = 0.5) -> dict[str, Any]:
            return {"score": least, "explanation": task.task_id}

        made = evaluator("both")(both).with_config(least=0.9)
        assert made.run(TRACE, Task(task_id="k", input="q"))[0].explanation == "k"
        assert made.run(TRACE)[0].skip_reason == "it needs a task: experiments only"

    @pytest.mark.parametrize(("returned", "score"), [(True, 1.0), (0, 0.0), ({"score": 0.8}, 0.8)])
    def test_bools_numbers_and_dicts_are_results(self, returned: Any, score: float) -> None:
        def gives(agent: AgentTrace) -> Any:
            return returned

        assert evaluator("g")(gives).run(TRACE)[0].score == score

    def test_an_evaluator_of_a_module_pickles_without_its_name_in_the_way(self) -> None:
        made = FunctionEvaluator(required, "r", word="refund")
        assert pickle.loads(pickle.dumps(made)).run(TRACE) == made.run(TRACE)
