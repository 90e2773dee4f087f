"""The table of built-in evaluators: names, levels, tags, schemas, and what `builtin` refuses."""

import json
from typing import Any

import pytest

from amp_evaluation.evaluators.builtin import builtin, builtin_evaluator_catalog, list_builtin_evaluators, standard
from amp_evaluation.evaluators.builtin._catalog import BUILTINS
from amp_evaluation.models import EvalMode, EvaluatorInfo

KNOWN_TAGS = {
    "rule-based",
    "llm-judge",
    "correctness",
    "relevance",
    "quality",
    "safety",
    "efficiency",
    "compliance",
    "reasoning",
    "tool-use",
}
RULES = {
    # name: class, levels with the default first, whether monitors can run it, parameters with defaults
    "length_compliance": ("AnswerLengthEvaluator", "trace agent llm", True, {"min_length": 1, "max_length": 10000}),
    "content_coverage": (
        "RequiredContentEvaluator",
        "trace agent llm",
        True,
        {"required_strings": [], "required_patterns": [], "case_sensitive": False},
    ),
    "content_safety": (
        "ProhibitedContentEvaluator",
        "trace agent llm",
        True,
        {
            "prohibited_strings": [],
            "prohibited_patterns": [],
            "case_sensitive": False,
            "use_context_prohibited": True,
        },
    ),
    "exact_match": ("ExactMatchEvaluator", "trace", False, {"case_sensitive": True, "strip_whitespace": True}),
    "contains_match": ("ContainsMatchEvaluator", "trace", False, {"case_sensitive": False}),
    "sequence_adherence": (
        "ToolSequenceEvaluator",
        "agent trace",
        True,
        {"expected_sequence": [], "strict": False, "use_context_trajectory": True},
    ),
    "tool_coverage": ("RequiredToolsEvaluator", "agent trace", True, {"required_tools": []}),
    "step_success_rate": ("StepSuccessRateEvaluator", "agent trace", True, {"min_success_rate": 0.8}),
    "latency_performance": (
        "LatencyEvaluator",
        "trace agent llm",
        True,
        {"max_latency_ms": 30000.0, "use_task_constraint": True},
    ),
    "token_efficiency": (
        "TokenEfficiencyEvaluator",
        "trace agent llm",
        True,
        {"max_tokens": 10000, "use_context_constraint": True},
    ),
    "iteration_efficiency": (
        "IterationCountEvaluator",
        "agent trace",
        True,
        {"max_iterations": 10, "use_context_constraint": True},
    ),
}


def info_of(name: str) -> EvaluatorInfo:
    return next(info for info in builtin_evaluator_catalog() if info.name == name)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_as_documented(name: str) -> None:
    class_name, levels, in_monitors, defaults = RULES[name]
    info = info_of(name)
    assert (info.class_name, info.module, info.version) == (class_name, "standard", "1.0")
    assert isinstance(builtin(name), getattr(standard, class_name))
    assert info.level == levels.split()[0]
    assert (EvalMode.MONITOR in info.modes) is in_monitors
    assert EvalMode.EXPERIMENT in info.modes
    assert {entry["key"]: entry.get("default") for entry in info.config_schema} == defaults
    assert info.description


@pytest.mark.parametrize("name", RULES)
def test_a_rule_accepts_its_levels_and_no_other(name: str) -> None:
    levels = RULES[name][1].split()
    for level in ("trace", "agent", "llm"):
        if level in levels:
            assert builtin(name, level=level).level == level
        else:
            for error in (TypeError, ValueError):
                with pytest.raises(error, match=f"{name}: level must be one of: {', '.join(levels)}"):
                    builtin(name, level=level)


@pytest.mark.parametrize("name", BUILTINS)
def test_the_table_names_each_by_its_own_name(name: str) -> None:
    assert BUILTINS[name].name == name
    assert info_of(name).class_name == BUILTINS[name].__name__


@pytest.mark.parametrize("name", BUILTINS)
def test_it_accepts_each_of_its_defaults_and_its_level_given_explicitly(name: str) -> None:
    info = info_of(name)
    defaults = {entry["key"]: entry["default"] for entry in info.config_schema if "default" in entry}
    for config in (defaults, json.loads(json.dumps(defaults)), *({key: value} for key, value in defaults.items())):
        made = builtin(name, **config, level=info.level)
        assert made.info == info


@pytest.mark.parametrize("name", BUILTINS)
def test_its_schema_is_json_without_level_and_its_tags_are_known(name: str) -> None:
    info = info_of(name)
    assert json.loads(json.dumps(info.config_schema)) == info.config_schema
    assert "level" not in {entry["key"] for entry in info.config_schema}
    for entry in info.config_schema:
        assert {"key", "type", "required", "description"} <= set(entry)
        assert entry["type"] in ("string", "integer", "float", "boolean", "array", "object")
        assert entry["description"]
    assert info.tags[0] in ("rule-based", "llm-judge")
    assert set(info.tags) <= KNOWN_TAGS
    assert len(info.tags) >= 2


def test_the_catalogue_can_be_asked_by_mode() -> None:
    monitor = list_builtin_evaluators("monitor")
    assert {"exact_match", "contains_match"}.isdisjoint(monitor)
    assert set(list_builtin_evaluators()) == set(BUILTINS) == set(list_builtin_evaluators(EvalMode.EXPERIMENT))
    assert [info.name for info in builtin_evaluator_catalog(EvalMode.MONITOR)] == monitor
    with pytest.raises(ValueError, match="loud"):
        list_builtin_evaluators("loud")


def test_every_rule_of_the_public_module_is_in_the_table() -> None:
    assert {row[0] for row in RULES.values()} == set(standard.__all__)


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [("latency", "latency_performance"), ("content_safty", "content_safety"), ("Exact-Match", "exact_match")],
)
def test_an_unknown_name_is_refused_with_the_nearest_first(wrong: str, nearest: str) -> None:
    with pytest.raises(ValueError, match=f"no built-in evaluator '{wrong}'; known: {nearest}, ") as caught:
        builtin(wrong)
    assert all(name in str(caught.value) for name in BUILTINS)


@pytest.mark.parametrize("name", BUILTINS)
def test_an_unknown_setting_is_a_type_error_that_names_the_evaluator(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: unknown parameter 'nonsense'"):
        builtin(name, nonsense=1)


@pytest.mark.parametrize("name", BUILTINS)
def test_each_call_makes_one_of_its_own(name: str) -> None:
    one: Any = builtin(name)
    assert one is not builtin(name)


def test_a_judge_takes_its_own_level_and_no_other() -> None:
    assert builtin("safety", level="llm").level == "llm"
    for error in (TypeError, ValueError):
        with pytest.raises(error, match="safety: level must be llm, not 'trace'"):
            builtin("safety", level="trace")


def test_a_subclass_of_a_judge_goes_by_its_hint(caplog: pytest.LogCaptureFixture) -> None:
    class Stricter(BUILTINS["safety"]):  # type: ignore[misc]
        pass

    assert Stricter(level="trace").level == "llm"
    assert "the hint wins" in caplog.text
