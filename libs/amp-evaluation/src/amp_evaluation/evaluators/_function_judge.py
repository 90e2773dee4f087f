"""A function that gives a prompt as a judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, cast

from amp_evaluation.evaluators._function import FunctionEvaluator
from amp_evaluation.evaluators._llm_judge import LLMAsJudgeEvaluator
from amp_evaluation.evaluators.params import RESERVED
from amp_evaluation.models import EvalResult, EvaluatorInfo

__all__ = ["FunctionLLMJudge", "llm_judge"]


class FunctionLLMJudge(FunctionEvaluator, LLMAsJudgeEvaluator):
    """A judge made of a function that gives the prompt: what `@llm_judge` makes.

    The function's parameters are those of `@evaluator`; model, temperature, max_tokens and max_retries are the judge's
    own settings and can't be names of the function's.
    """

    _judge_settings: ClassVar[tuple[str, ...]] = ("model", "temperature", "max_tokens", "max_retries")
    _reserved: ClassVar[frozenset[str]] = RESERVED | frozenset(_judge_settings)

    def evaluate(self, *args: Any, **kwargs: Any) -> EvalResult:
        return LLMAsJudgeEvaluator.evaluate(self, *args, **kwargs)

    def build_prompt(self, *args: Any, **kwargs: Any) -> str | None:
        """Call the function on one item, with its settings."""
        return cast("str | None", FunctionEvaluator.evaluate(self, *args, **kwargs))

    def _has_own_evaluate(self) -> bool:
        return False

    def _hinted(self) -> Callable[..., Any]:
        return self.func

    @property
    def info(self) -> EvaluatorInfo:
        """What a catalogue says of it: the judge's settings, then the function's."""
        info = super().info
        info.config_schema = [self._params[key].to_schema() for key in self._judge_settings] + info.config_schema
        return info

    def with_config(self, **config: Any) -> Self:
        made = super().with_config(**config)
        made._client = made._meter = made._config = None  # the original's share stays the original's
        return made

    def _take(self, config: dict[str, Any]) -> None:
        own = {key: config[key] for key in self._judge_settings if key in config}
        super()._take({key: value for key, value in config.items() if key not in own})
        for key, value in own.items():
            setattr(self, key, value)


def llm_judge(
    name: str | Callable[..., Any] | None = None,
    description: str | None = None,
    tags: Sequence[str] | None = None,
    version: str | None = None,
    aggregations: Sequence[Any] | None = None,
    *,
    evaluates_failed_runs: bool = False,
    **settings: Any,
) -> Any:
    """Make a judge of a function that returns its prompt:

        @llm_judge(model="openai/gpt-4o")
        def polite(trace: Trace, language: str = Param(default="English")) -> str:
            return f"Is this reply polite by the habits of {language} speakers? {trace.output}"

    Also without parentheses. `settings` are model, temperature, max_tokens, max_retries, and the function's own.
    """

    def decorate(func: Callable[..., Any]) -> FunctionLLMJudge:
        given = name if isinstance(name, str) else None
        return FunctionLLMJudge(
            func,
            given,
            description,
            tags,
            version,
            aggregations,
            evaluates_failed_runs=evaluates_failed_runs,
            **settings,
        )

    return decorate(name) if callable(name) else decorate
