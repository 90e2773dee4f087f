"""Public paths that existing evaluators import from, and what an import of the package costs."""

import importlib
import subprocess
import sys

import pytest

SURFACE = {
    "amp_evaluation": (
        "Monitor Experiment RunResult evaluator llm_judge BaseEvaluator LLMAsJudgeEvaluator Param EvalResult "
        "EvaluatorInfo EvaluatorScore EvaluatorSummary SpanContext TaskContext Task Dataset Constraints TrajectoryStep "
        "AgentInvoker HttpAgentInvoker InvokeResult load_dataset_from_json load_dataset_from_csv save_dataset_to_json "
        "builtin list_builtin_evaluators builtin_evaluator_catalog get_llm_provider_catalog discover_evaluators "
        "LLMConfigField LLMProviderInfo Config EvaluationLevel EvalMode __version__ "
        "BaseRunner AgentConfig TraceConfig get_config reload_config DataNotAvailableError"
    ),
    "amp_evaluation.models": (
        "EvalResult EvaluatorInfo EvaluatorScore EvaluatorSummary SpanContext TaskContext EvaluationLevel EvalMode"
    ),
    "amp_evaluation.aggregators": "AggregationType Aggregation normalize_aggregations",
    "amp_evaluation.aggregators.base": "AggregationType Aggregation normalize_aggregations",
    "amp_evaluation.registry": "evaluator llm_judge discover_evaluators",
    "amp_evaluation.evaluators": (
        "BaseEvaluator LLMAsJudgeEvaluator FunctionEvaluator FunctionLLMJudge JudgeOutput Param EvaluationLevel "
        "EvalMode validate_unique_evaluator_names"
    ),
    "amp_evaluation.evaluators.base": (
        "BaseEvaluator LLMAsJudgeEvaluator FunctionEvaluator FunctionLLMJudge JudgeOutput Param EvaluationLevel "
        "EvalMode validate_unique_evaluator_names"
    ),
    "amp_evaluation.evaluators.params": "Param",
    "amp_evaluation.evaluators.builtin": (
        "builtin list_builtin_evaluators builtin_evaluator_catalog get_llm_provider_catalog"
    ),
    "amp_evaluation.evaluators.builtin.standard": (
        "AnswerLengthEvaluator RequiredContentEvaluator ProhibitedContentEvaluator ExactMatchEvaluator "
        "ContainsMatchEvaluator ToolSequenceEvaluator RequiredToolsEvaluator StepSuccessRateEvaluator LatencyEvaluator "
        "TokenEfficiencyEvaluator IterationCountEvaluator"
    ),
    "amp_evaluation.evaluators.builtin.llm_judge": (
        "HelpfulnessEvaluator ClarityEvaluator AccuracyEvaluator CompletenessEvaluator GroundednessEvaluator "
        "ContextRelevanceEvaluator RelevanceEvaluator SemanticSimilarityEvaluator CoherenceEvaluator "
        "ConcisenessEvaluator SafetyEvaluator ToneEvaluator ReasoningQualityEvaluator PathEfficiencyEvaluator "
        "ErrorRecoveryEvaluator InstructionFollowingEvaluator"
    ),
    "amp_evaluation.trace": (
        "Trace AgentTrace LLMSpan ToolSpan RetrieverSpan AgentSpan ChainSpan TraceMetrics TokenUsage Message ToolCall "
        "RetrievedDoc SystemMessage UserMessage AssistantMessage ToolMessage AgentStep ToolCallInfo UserInputStep "
        "LLMReasoningStep ToolExecutionStep parse_trace_for_evaluation parse_traces_for_evaluation TraceFetcher "
        "TraceLoader sample_traces"
    ),
    "amp_evaluation.trace.models": (
        "Trace AgentTrace LLMSpan ToolSpan RetrieverSpan AgentSpan ChainSpan TraceMetrics TokenUsage Message ToolCall "
        "RetrievedDoc SystemMessage UserMessage AssistantMessage ToolMessage AgentStep ToolCallInfo UserInputStep "
        "LLMReasoningStep ToolExecutionStep SpanMetrics LLMMetrics ToolMetrics RetrieverMetrics AgentMetrics "
        "ToolDefinition Span"
    ),
    "amp_evaluation.trace.fetcher": (
        "OTELTrace OTELSpan OTELTokenUsage OTELTraceStatus AmpAttributes AmpSpanData AmpSpanStatus TraceFetcher"
    ),
    "amp_evaluation.trace.parser": (
        "filter_infrastructure_spans INFRASTRUCTURE_KINDS SEMANTIC_KINDS parse_trace_for_evaluation"
    ),
    "amp_evaluation.runner": "Monitor Experiment BaseRunner RunResult",
    "amp_evaluation.invokers": "AgentInvoker HttpAgentInvoker InvokeResult",
    "amp_evaluation.dataset": (
        "Task Dataset Constraints TrajectoryStep generate_id load_dataset_from_json load_dataset_from_csv "
        "save_dataset_to_json"
    ),
    "amp_evaluation.dataset.models": "Task Dataset Constraints TrajectoryStep generate_id",
    "amp_evaluation.dataset.loader": "load_dataset_from_json load_dataset_from_csv save_dataset_to_json",
    "amp_evaluation.config": "Config AgentConfig TraceConfig LLMJudgeConfig get_config reload_config",
}


@pytest.mark.parametrize("path", SURFACE)
def test_every_public_name_is_there_and_declared(path: str) -> None:
    module = importlib.import_module(path)
    names = set(SURFACE[path].split())
    assert {name for name in names if not hasattr(module, name)} == set()
    assert names - set(module.__all__) == set()


@pytest.mark.parametrize("path", SURFACE)
def test_every_declared_name_is_there_once(path: str) -> None:
    module = importlib.import_module(path)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert len(module.__all__) == len(set(module.__all__))


def test_one_name_is_one_thing_wherever_it_is_imported_from() -> None:
    found: dict[str, set[int]] = {}
    for path, names in SURFACE.items():
        for name in names.split():
            found.setdefault(name, set()).add(id(getattr(importlib.import_module(path), name)))
    assert {name for name, things in found.items() if len(things) > 1} == set()


HEAVY = (
    "any_llm",
    "openai",
    "anthropic",
    "httpx",
    "opentelemetry",
    "numpy",
    "pandas",
    "genai_prices",
    "rich",
    "jinja2",
)

CHECK = """
import importlib, sys
for name in {names!r}:
    importlib.import_module(name)
    import amp_evaluation
    [getattr(amp_evaluation, each) for each in amp_evaluation.__all__ if name == "amp_evaluation"]
print(*sorted({{module.partition(".")[0] for module in sys.modules}} & set({heavy!r})))
"""


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["amp_evaluation"], id="the front door, with every name used"),
        pytest.param(["amp_evaluation.evaluators.builtin"], id="the catalogue"),
        pytest.param(["amp_evaluation.trace.models"], id="the trace model"),
        pytest.param(["amp_evaluation.evaluators.params"], id="parameters"),
        pytest.param(["amp_evaluation.models"], id="results"),
    ],
)
def test_it_can_be_imported_first_and_loads_nothing_heavy(names: list[str]) -> None:
    code = CHECK.format(names=names, heavy=HEAVY)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []


def test_importing_the_package_reads_no_environment() -> None:
    code = "import amp_evaluation, amp_evaluation.evaluators.builtin, amp_evaluation.runner"
    env = {"AMP_MONITOR_MAX_CONCURRENCY": "abc", "AMP_TRACE_WINDOW_MARGIN_SECONDS": "-1"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=env, check=False)
    assert run.returncode == 0, run.stderr


def test_importing_the_package_alone_loads_none_of_its_modules() -> None:
    code = "import sys, amp_evaluation; print(*(m for m in sys.modules if m.startswith('amp_evaluation.')))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.split() == ["amp_evaluation._version"]
