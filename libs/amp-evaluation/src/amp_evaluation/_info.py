"""What is said about an evaluator: its level, its modes, its entry in a catalogue."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["EvalMode", "EvaluationLevel", "EvaluatorInfo", "LLMConfigField", "LLMProviderInfo"]


class EvaluationLevel(StrEnum):
    """What one item is: a whole trace, one agent's run, or one LLM call."""

    TRACE = "trace"
    AGENT = "agent"
    LLM = "llm"


class EvalMode(StrEnum):
    """A monitor looks at traces as they are; an experiment also knows the task behind each."""

    MONITOR = "monitor"
    EXPERIMENT = "experiment"


@dataclass(slots=True)
class EvaluatorInfo:
    """What a catalogue says of an evaluator; `config_schema` holds one entry a parameter."""

    name: str
    description: str = ""
    tags: list[str] = field(default_factory=list)
    version: str = "1.0"
    modes: list[EvalMode] = field(default_factory=list)
    level: EvaluationLevel = EvaluationLevel.TRACE
    config_schema: list[dict[str, Any]] = field(default_factory=list)
    class_name: str = ""
    module: str = ""


@dataclass
class LLMConfigField:
    """One field of a provider's form; `field_type` is password or text, `env_var` is where its value goes."""

    key: str
    label: str
    field_type: str
    required: bool
    env_var: str
    description: str = ""


@dataclass
class LLMProviderInfo:
    """A provider: its name in `provider/model`, its form, and models to choose from."""

    name: str
    display_name: str
    config_fields: list[LLMConfigField]
    models: list[str]
