"""Traces: the model that evaluators read, and where traces come from.

Where they come from is loaded when it is first used: custom code, in a process of its own, reads traces only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from amp_evaluation.trace.models import (
    AgentSpan,
    AgentStep,
    AgentTrace,
    AssistantMessage,
    ChainSpan,
    LLMReasoningStep,
    LLMSpan,
    Message,
    RetrievedDoc,
    RetrieverSpan,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolCallInfo,
    ToolExecutionStep,
    ToolMessage,
    ToolSpan,
    Trace,
    TraceMetrics,
    UserInputStep,
    UserMessage,
)
from amp_evaluation.trace.sampling import sample_traces

if TYPE_CHECKING:
    from amp_evaluation.trace.fetcher import TraceFetcher
    from amp_evaluation.trace.loader import TraceLoader
    from amp_evaluation.trace.parser import parse_trace_for_evaluation, parse_traces_for_evaluation

__all__ = [
    "AgentSpan",
    "AgentStep",
    "AgentTrace",
    "AssistantMessage",
    "ChainSpan",
    "LLMReasoningStep",
    "LLMSpan",
    "Message",
    "RetrievedDoc",
    "RetrieverSpan",
    "SystemMessage",
    "TokenUsage",
    "ToolCall",
    "ToolCallInfo",
    "ToolExecutionStep",
    "ToolMessage",
    "ToolSpan",
    "Trace",
    "TraceFetcher",
    "TraceLoader",
    "TraceMetrics",
    "UserInputStep",
    "UserMessage",
    "parse_trace_for_evaluation",
    "parse_traces_for_evaluation",
    "sample_traces",
]

_HOME_OF = {
    "TraceFetcher": "fetcher",
    "TraceLoader": "loader",
    "parse_trace_for_evaluation": "parser",
    "parse_traces_for_evaluation": "parser",
}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
