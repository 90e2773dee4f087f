"""The classes behind `amp_evaluation.config`, whose text has the rules; they are public from there."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from amp_evaluation.errors import ConfigError

__all__ = [
    "AgentConfig",
    "CodeEvaluatorConfig",
    "Config",
    "LLMJudgeConfig",
    "MonitorConfig",
    "Secret",
    "TraceConfig",
]

MASK = "**********"
MAX_CONCURRENCY_LIMIT = 1000  # threads; beyond it the machine, not the model, is what is waited for
MAX_MARGIN_S = 86_400.0  # a day; the traces API refuses windows of over 30 days


class Secret(str):
    """A text that can be used like any other, but that `repr` and serialised settings never show."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Secret({MASK!r})"


SecretText = Annotated[
    Secret | None,
    BeforeValidator(lambda value: None if value is None or value == "" else Secret(value)),
    PlainSerializer(lambda value: None if value is None else MASK, return_type=str | None),
]
OptionalText = Annotated[str | None, BeforeValidator(lambda value: value or None)]


def _describe(prefix: str, error: ValidationError) -> str:
    """One line a fault: the variable, the value, the rule."""
    lines = []
    for fault in error.errors(include_url=False, include_context=False):
        name = str(fault["loc"][0]) if fault["loc"] else "?"
        lines.append(f"{prefix}{name.upper()}={fault['input']!r}: {fault['msg']}")
    return "; ".join(lines)


class _Section(BaseSettings):
    """A group of variables with one prefix; faults come as a ConfigError."""

    model_config = SettingsConfigDict(
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
        defer_build=True,
    )

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(_describe(str(self.model_config.get("env_prefix", "")), error)) from None


class AgentConfig(_Section):
    """What is evaluated: `AMP_ORGANIZATION`, `AMP_PROJECT`, `AMP_AGENT`, `AMP_ENVIRONMENT`."""

    model_config = SettingsConfigDict(env_prefix="AMP_")

    organization: str = ""
    project: str = ""
    agent: str = ""
    environment: str = ""


class TraceConfig(_Section):
    """Where traces come from: `AMP_TRACE_*`."""

    model_config = SettingsConfigDict(env_prefix="AMP_TRACE_")

    file_path: OptionalText = None
    """A file, folder or glob of traces, read when a runner has no trace fetcher."""
    mapping_path: OptionalText = None
    """A mapping.json for attributes of one's own."""
    window_margin_seconds: float = Field(default=60.0, ge=0, le=MAX_MARGIN_S)
    """Seconds asked for on both sides of the window, so that a run crossing its border comes whole."""


class LLMJudgeConfig(_Section):
    """How judges reach their model: `AMP_LLM_JUDGE_*`."""

    model_config = SettingsConfigDict(env_prefix="AMP_LLM_JUDGE_")

    default_model: str = "gpt-4o-mini"
    api_base: OptionalText = None
    api_key: SecretText = Field(default=None, repr=False)
    azure_openai_api_version: str = "2024-10-21"
    azure_foundry_api_version: OptionalText = None
    timeout_seconds: float = Field(default=60.0, gt=0, le=3600)


class MonitorConfig(_Section):
    """How a run goes: `AMP_MONITOR_*`."""

    model_config = SettingsConfigDict(env_prefix="AMP_MONITOR_")

    max_concurrency: int = Field(default=16, ge=1, le=MAX_CONCURRENCY_LIMIT)
    """Judge calls in flight at once, over all judges."""
    evaluate_failed: bool = False
    """Evaluate failed runs like any other."""


class CodeEvaluatorConfig(_Section):
    """Limits of evaluators sent as code: `AMP_CODE_EVALUATOR_*`."""

    model_config = SettingsConfigDict(env_prefix="AMP_CODE_EVALUATOR_")

    timeout_seconds: float = Field(default=30.0, gt=0, le=3600)
    """Seconds for one item."""
    memory_mb: int = Field(default=256, ge=16, le=1_048_576)
    """MiB of data, above what the child process's own imports use."""


class Config(BaseModel):
    """All settings, by group. Groups that aren't passed are read from the environment and `.env`."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    agent: AgentConfig
    trace: TraceConfig
    llm_judge: LLMJudgeConfig
    monitor: MonitorConfig
    code_evaluator: CodeEvaluatorConfig

    def __init__(
        self,
        *,
        agent: AgentConfig | None = None,
        trace: TraceConfig | None = None,
        llm_judge: LLMJudgeConfig | None = None,
        monitor: MonitorConfig | None = None,
        code_evaluator: CodeEvaluatorConfig | None = None,
    ) -> None:
        given = {
            "agent": agent,
            "trace": trace,
            "llm_judge": llm_judge,
            "monitor": monitor,
            "code_evaluator": code_evaluator,
        }
        super().__init__(**_read_sections(lambda name, section: section() if given[name] is None else given[name]))

    @classmethod
    def from_env(cls, env: Mapping[str, str], **given: Mapping[str, Any]) -> "Config":
        """Settings from the variables in `env`; `given` has values by group, which win over them."""

        def read(name: str, section: type[_Section]) -> _Section:
            prefix = str(section.model_config["env_prefix"])
            found = {key: env[var] for key in section.model_fields if env.get(var := prefix + key.upper())}
            return section(**{**found, **given.get(name, {})})

        return cls(**_read_sections(read))


_SECTIONS: dict[str, type[_Section]] = {
    "agent": AgentConfig,
    "trace": TraceConfig,
    "llm_judge": LLMJudgeConfig,
    "monitor": MonitorConfig,
    "code_evaluator": CodeEvaluatorConfig,
}


def _read_sections(read: Callable[[str, type[_Section]], Any]) -> dict[str, Any]:
    """Each group as `read` gives it; every fault of every group goes into one ConfigError."""
    sections: dict[str, Any] = {}
    faults: list[str] = []
    for name, section in _SECTIONS.items():
        try:
            sections[name] = read(name, section)
        except ConfigError as error:
            faults.append(str(error))
    if faults:
        raise ConfigError("; ".join(faults))
    return sections
