"""Traces: the model that evaluators read, and where traces come from."""

from __future__ import annotations

from amp_evaluation.trace.fetcher import TraceFetcher
from amp_evaluation.trace.loader import TraceLoader
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
from amp_evaluation.trace.parser import parse_trace_for_evaluation, parse_traces_for_evaluation
from amp_evaluation.trace.sampling import sample_traces

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
