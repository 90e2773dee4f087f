"""What the built-in judges share.

Each judge has one criterion, what to look at in which order, and a scale of five steps. Its `build_prompt` is one
f-string over the item and the task: the platform reads it from the source to show it, and to let people start from it.
What is put in from a trace fences itself (judge/fence.py).
"""

from __future__ import annotations

from typing import Any

from amp_evaluation.evaluators._llm_judge import LLMAsJudgeEvaluator
from amp_evaluation.evaluators.params import Param
from amp_evaluation.models import EvalResult

__all__ = ["BuiltinJudge", "ContextJudge"]


class BuiltinJudge(LLMAsJudgeEvaluator):
    """A judge of the catalogue."""

    _catalog_module = "llm_judge"


class ContextJudge(BuiltinJudge):
    """A judge that needs something beside the response: without it the item is skipped, or scored 0 if so wished."""

    on_missing_context: str = Param(
        default="skip",
        enum=["skip", "zero"],
        description="Without the material that it judges by: skip the item, or score it 0.",
    )

    def _before_asking(self, target: Any, task: Any) -> EvalResult | None:
        ready = super()._before_asking(target, task)
        if ready is not None:
            return ready
        missing = self._missing_context(target, task)
        if missing is None:
            return None
        return EvalResult(0.0, missing, False) if self.on_missing_context == "zero" else EvalResult.skip(missing)

    def _missing_context(self, target: Any, task: Any) -> str | None:
        """What is missing, in words for a person; None when all is there."""
        raise NotImplementedError
