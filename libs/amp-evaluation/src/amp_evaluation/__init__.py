"""Evaluate AI agents from their traces: rules, LLM judges and evaluators of your own.

Names are loaded when they are first used: a program pays only for what it touches, and importing the package reads no
environment and loads no judge client.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from amp_evaluation._version import __version__

if TYPE_CHECKING:
    from amp_evaluation.config import AgentConfig, Config, TraceConfig, get_config, reload_config
    from amp_evaluation.dataset import (
        Constraints,
        Dataset,
        Task,
        TrajectoryStep,
        load_dataset_from_csv,
        load_dataset_from_json,
        save_dataset_to_json,
    )
    from amp_evaluation.errors import DataNotAvailableError
    from amp_evaluation.evaluators import BaseEvaluator, LLMAsJudgeEvaluator, Param
    from amp_evaluation.evaluators.builtin import (
        LLMConfigField,
        LLMProviderInfo,
        builtin,
        builtin_evaluator_catalog,
        get_llm_provider_catalog,
        list_builtin_evaluators,
    )
    from amp_evaluation.experiment import Experiment
    from amp_evaluation.invokers import AgentInvoker, HttpAgentInvoker, InvokeResult
    from amp_evaluation.models import (
        EvalMode,
        EvalResult,
        EvaluationLevel,
        EvaluatorInfo,
        EvaluatorScore,
        EvaluatorSummary,
        SpanContext,
        TaskContext,
    )
    from amp_evaluation.registry import discover_evaluators, evaluator, llm_judge
    from amp_evaluation.runner import BaseRunner, Monitor, RunResult

__all__ = [
    "AgentConfig",
    "AgentInvoker",
    "BaseEvaluator",
    "BaseRunner",
    "Config",
    "Constraints",
    "DataNotAvailableError",
    "Dataset",
    "EvalMode",
    "EvalResult",
    "EvaluationLevel",
    "EvaluatorInfo",
    "EvaluatorScore",
    "EvaluatorSummary",
    "Experiment",
    "HttpAgentInvoker",
    "InvokeResult",
    "LLMAsJudgeEvaluator",
    "LLMConfigField",
    "LLMProviderInfo",
    "Monitor",
    "Param",
    "RunResult",
    "SpanContext",
    "Task",
    "TaskContext",
    "TraceConfig",
    "TrajectoryStep",
    "__version__",
    "builtin",
    "builtin_evaluator_catalog",
    "discover_evaluators",
    "evaluator",
    "get_config",
    "get_llm_provider_catalog",
    "list_builtin_evaluators",
    "llm_judge",
    "load_dataset_from_csv",
    "load_dataset_from_json",
    "reload_config",
    "save_dataset_to_json",
]

_HOMES = {
    "amp_evaluation.config": "AgentConfig Config TraceConfig get_config reload_config",
    "amp_evaluation.dataset": (
        "Constraints Dataset Task TrajectoryStep load_dataset_from_csv load_dataset_from_json save_dataset_to_json"
    ),
    "amp_evaluation.errors": "DataNotAvailableError",
    "amp_evaluation.evaluators": "BaseEvaluator LLMAsJudgeEvaluator Param",
    "amp_evaluation.evaluators.builtin": (
        "LLMConfigField LLMProviderInfo builtin builtin_evaluator_catalog get_llm_provider_catalog "
        "list_builtin_evaluators"
    ),
    "amp_evaluation.experiment": "Experiment",
    "amp_evaluation.invokers": "AgentInvoker HttpAgentInvoker InvokeResult",
    "amp_evaluation.models": (
        "EvalMode EvalResult EvaluationLevel EvaluatorInfo EvaluatorScore EvaluatorSummary SpanContext TaskContext"
    ),
    "amp_evaluation.registry": "discover_evaluators evaluator llm_judge",
    "amp_evaluation.runner": "BaseRunner Monitor RunResult",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
_MODULES = (
    *("aggregators", "config", "dataset", "errors", "evaluators", "experiment"),
    *("invokers", "models", "registry", "runner", "trace"),
)


def __getattr__(name: str) -> Any:
    """Load a public name's module on first use (PEP 562); from then on it is an ordinary attribute."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
