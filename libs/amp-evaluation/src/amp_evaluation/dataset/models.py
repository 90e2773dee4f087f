"""What an agent is asked in an experiment, and what is expected of it."""

import uuid
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["Constraints", "Dataset", "Task", "TrajectoryStep", "generate_id"]

Difficulty = Literal["easy", "medium", "hard", "expert"]


def generate_id(prefix: str = "") -> str:
    """A short random id, with the prefix in front: `generate_id("task_")` → `task_3f9c0a1b2c4d`."""
    return f"{prefix}{uuid.uuid4().hex[:12]}"


class _Strict(BaseModel):
    """A misspelt key is an error, never a setting that silently does nothing."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)

    def __init__(self, *values: Any, **named: Any) -> None:
        """Fields by keyword, or by position in the order in which they are declared."""
        fields = list(type(self).model_fields)
        if len(values) > len(fields):
            raise TypeError(f"{type(self).__name__} takes {len(fields)} values at most, not {len(values)}")
        by_place = dict(zip(fields, values, strict=False))
        twice = sorted(by_place.keys() & named.keys())
        if twice:
            raise TypeError(f"{type(self).__name__} got {', '.join(map(repr, twice))} by position and by keyword")
        super().__init__(**by_place, **named)


class TrajectoryStep(_Strict):
    """One tool call that is expected of the agent."""

    tool: str = Field(min_length=1)
    args: dict[str, Any] = Field(default_factory=dict)
    expected_output: str | dict[str, Any] | list[Any] | None = None


class Constraints(_Strict):
    """Limits for one task; they replace the evaluators' own limits."""

    max_latency_ms: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=1)
    max_iterations: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, ge=0)
    """US dollars."""


class Task(_Strict):
    """One question to the agent with what is known about the right answer."""

    task_id: str = Field(default_factory=lambda: generate_id("task_"), min_length=1)
    input: str | dict[str, Any]
    """Text, or the object that the agent's endpoint takes."""
    name: str = ""
    description: str = ""
    expected_output: str | None = None
    expected_trajectory: list[TrajectoryStep] | None = None
    expected_outcome: str | dict[str, Any] | None = None
    """The state of the world afterwards: text, or an object in the agent's own terms."""
    success_criteria: str | list[str] | None = None
    prohibited_content: list[str] | None = None
    constraints: Constraints | None = None
    task_type: str = "general"
    difficulty: Difficulty = "medium"
    domain: str | None = None
    tags: list[str] = Field(default_factory=list)
    custom: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
    dataset_id: str | None = None
    created_at: datetime | None = None
    created_by: str | None = None


class Dataset(_Strict):
    """A named list of tasks."""

    dataset_id: str = Field(default_factory=lambda: generate_id("dataset_"), min_length=1)
    name: str = ""
    description: str = ""
    tasks: list[Task] = Field(default_factory=list)
    dataset_type: str = "golden_set"
    domain: str | None = None
    version: str = "1.0"
    tags: list[str] = Field(default_factory=list)
    source: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    created_at: datetime | None = None
    created_by: str | None = None

    @model_validator(mode="after")
    def _mark_tasks(self) -> Self:
        """Each task knows its dataset, so that what is saved and loaded again is equal."""
        for task in self.tasks:
            task.dataset_id = task.dataset_id or self.dataset_id
        return self

    @property
    def task_count(self) -> int:
        """How many tasks there are."""
        return len(self.tasks)

    def add_task(self, task: Task) -> None:
        """Append a task and mark it as this dataset's."""
        task.dataset_id = self.dataset_id
        self.tasks.append(task)

    def get_task(self, task_id: str) -> Task | None:
        """The task with this id, or None."""
        return next((task for task in self.tasks if task.task_id == task_id), None)
