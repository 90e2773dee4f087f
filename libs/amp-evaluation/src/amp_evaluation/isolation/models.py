"""Who asks models for the child, which has no keys."""

from __future__ import annotations

from typing import Protocol

from amp_evaluation.isolation.protocol import Asking, ModelFailed, ModelReplied

__all__ = ["Models", "NoModels"]


class Models(Protocol):
    """Asks, and gives failures as answers; what it raises ends the child."""

    @property
    def default_model(self) -> str: ...

    def answer(self, asking: Asking) -> ModelReplied | ModelFailed: ...


class NoModels:
    """For code that has no business with models."""

    default_model = ""

    def answer(self, asking: Asking) -> ModelReplied | ModelFailed:
        return ModelFailed(reason="no model can be asked here")
