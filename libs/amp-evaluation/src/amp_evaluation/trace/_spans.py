"""What a trace is made of: messages, tools, documents, metrics and spans.

All are plain mutable dataclasses: built positionally, compared, replaced, pickled. Times are aware UTC, durations are
milliseconds, tokens are counts. What is unknown stays 0 where people do arithmetic, and a flag beside it says so
(`duration_known`, `usage_known`). A class based on `Lazy` may come from the parser with parts that are read from the
wire only when somebody asks for them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from amp_evaluation.trace._lazy import Lazy


@dataclass
class TokenUsage:
    """Tokens of one call or of several; `+` adds."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cache_read_tokens: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        if not isinstance(other, TokenUsage):
            return NotImplemented
        return TokenUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.total_tokens + other.total_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
        )


@dataclass
class SpanMetrics:
    """How long a span took and whether it failed; `duration_known` is False where nothing told the duration."""

    duration_ms: float = 0.0
    error: bool = False
    error_type: str | None = None
    error_message: str | None = None
    duration_known: bool = field(default=True, kw_only=True)


@dataclass
class LLMMetrics(SpanMetrics):
    """`usage_known` is False where no token count was recorded."""

    token_usage: TokenUsage = field(default_factory=TokenUsage)
    time_to_first_token_ms: float | None = None
    usage_known: bool = field(default=True, kw_only=True)


@dataclass
class ToolMetrics(SpanMetrics):
    pass


@dataclass
class RetrieverMetrics(SpanMetrics):
    documents_retrieved: int = 0


@dataclass
class AgentMetrics(SpanMetrics):
    """Tokens of the LLM calls below the agent, never the sums that some frameworks write on the agent's own span."""

    token_usage: TokenUsage = field(default_factory=TokenUsage)
    usage_known: bool = field(default=True, kw_only=True)


@dataclass
class TraceMetrics:
    total_duration_ms: float = 0.0
    token_usage: TokenUsage = field(default_factory=TokenUsage)
    error_count: int = 0
    has_errors: bool = False
    usage_known: bool = True
    duration_known: bool = True


@dataclass
class ToolCall:
    """A call that the model asked for. Arguments that are no JSON object stand under `{"input": …}`."""

    id: str = ""
    name: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass
class ToolDefinition:
    """A tool that the model or the agent may use; parameters are its JSON Schema."""

    name: str = ""
    description: str = ""
    parameters: dict[str, Any] | str | None = None


@dataclass
class RetrievedDoc:
    id: str = ""
    content: str = ""
    score: float = 0.0
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class SystemMessage:
    content: str = ""
    role: ClassVar[str] = "system"


@dataclass
class UserMessage:
    content: str = ""
    role: ClassVar[str] = "user"


@dataclass
class AssistantMessage:
    content: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    role: ClassVar[str] = "assistant"


@dataclass
class ToolMessage:
    content: str = ""
    tool_call_id: str = ""
    name: str = field(default="", compare=False, repr=False)
    is_error: bool = field(default=False, compare=False, repr=False)
    role: ClassVar[str] = "tool"


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


@dataclass
class LLMSpan(Lazy):
    """One call of a model: the messages sent, and the text of the reply (a line per call where it only calls tools)."""

    span_id: str
    parent_span_id: str | None = None
    start_time: datetime | None = None
    input: list[Message] = field(default_factory=list)
    output: str = field(default_factory=str)
    available_tools: list[ToolDefinition] = field(default_factory=list)
    _tool_calls: list[ToolCall] = field(default_factory=list)
    model: str = field(default_factory=str)
    vendor: str = field(default_factory=str)
    temperature: float | None = field(default_factory=lambda: None)
    metrics: LLMMetrics = field(default_factory=LLMMetrics)

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls of the reply."""
        return self._tool_calls

    def get_system_messages(self) -> list[SystemMessage]:
        return [message for message in self.input if isinstance(message, SystemMessage)]

    def get_user_messages(self) -> list[UserMessage]:
        return [message for message in self.input if isinstance(message, UserMessage)]

    def get_assistant_messages(self) -> list[AssistantMessage]:
        return [message for message in self.input if isinstance(message, AssistantMessage)]

    def get_tool_messages(self) -> list[ToolMessage]:
        return [message for message in self.input if isinstance(message, ToolMessage)]

    def get_tool_calls(self) -> list[ToolCall]:
        return self._tool_calls

    def format_messages(self) -> str:
        """The messages sent, one `[role] text` each; "(no messages)" when there are none."""
        return format_messages(self.input)


@dataclass
class ToolSpan(Lazy):
    """One execution of a tool. `tool_call_id` is the model's id of the call, where the trace tells it."""

    span_id: str
    parent_span_id: str | None = None
    start_time: datetime | None = None
    name: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    result: Any = field(default_factory=lambda: None)
    metrics: ToolMetrics = field(default_factory=ToolMetrics)
    tool_call_id: str = field(default="", compare=False)


@dataclass
class RetrieverSpan(Lazy):
    """One retrieval: the query and the documents it brought."""

    span_id: str
    parent_span_id: str | None = None
    start_time: datetime | None = None
    query: str = field(default_factory=str)
    documents: list[RetrievedDoc] = field(default_factory=list)
    vector_db: str = field(default_factory=str)
    top_k: int = field(default_factory=int)
    metrics: RetrieverMetrics = field(default_factory=RetrieverMetrics)


@dataclass
class AgentSpan(Lazy):
    """One agent's run within the trace."""

    span_id: str
    parent_span_id: str | None = None
    start_time: datetime | None = None
    name: str = ""
    framework: str = field(default_factory=str)
    model: str = field(default_factory=str)
    system_prompt: str = field(default_factory=str)
    available_tools: list[ToolDefinition] = field(default_factory=list)
    max_iterations: int | None = field(default_factory=lambda: None)
    input: str = field(default_factory=str)
    output: str = field(default_factory=str)
    metrics: AgentMetrics = field(default_factory=AgentMetrics)

    @property
    def agent_name(self) -> str:
        return self.name


@dataclass
class ChainSpan:
    """A step of the framework that is kept for the shape of the tree."""

    span_id: str
    parent_span_id: str | None = None
    start_time: datetime | None = None
    name: str = ""


Span = LLMSpan | ToolSpan | RetrieverSpan | AgentSpan | ChainSpan


def clip(text: str, limit: int) -> str:
    """One line of at most `limit` characters: what templates embed is bounded."""
    text = " ".join(text[: limit * 4].split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def format_messages(messages: list[Message]) -> str:
    return "\n".join(map(_message_line, messages)) or "(no messages)"


def _message_line(message: Message) -> str:
    line = f"[{message.role}] {clip(message.content, 500)}".rstrip()
    calls = message.tool_calls[:20] if isinstance(message, AssistantMessage) else []
    return f"{line} calls {', '.join(clip(call.name, 100) or '?' for call in calls)}" if calls else line
