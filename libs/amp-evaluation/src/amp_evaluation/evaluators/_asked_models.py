"""Models that code in the child process asks by way of the job, while it evaluates an item.

A judge that only builds a prompt needs none of this. One that wants the verdict itself, to change it, to ask twice, or
to put several judges together, runs where its source runs and has no keys there.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from amp_evaluation._retry import RetryPolicy
from amp_evaluation.config import get_config
from amp_evaluation.errors import TransientError
from amp_evaluation.isolation.protocol import Asking, ModelFailed, ModelReplied
from amp_evaluation.judge._habits import Request
from amp_evaluation.judge.faults import BadReplyError, JudgeError, JudgeStoppedError
from amp_evaluation.judge.fence import MAX_PROMPT_CHARS, sendable
from amp_evaluation.judge.usage import UsageMeter
from amp_evaluation.models import EvaluatorReport, RunError

if TYPE_CHECKING:
    from amp_evaluation.config import Config
    from amp_evaluation.judge.client import JudgeClient

__all__ = ["AskedModels"]

MAX_CORRECTION_CHARS = 1_000  # what a repeated question has beyond a whole prompt


class AskedModels:
    """One evaluator's share of the run's judge client, taken when its code first asks; a meter a model."""

    _retry_policy = RetryPolicy()

    def __init__(self) -> None:
        self._config: Config | None = None
        self._client: JudgeClient | None = None
        self._meters: dict[str, UsageMeter] = {}
        self._stops: dict[str, JudgeStoppedError] = {}

    @property
    def default_model(self) -> str:
        return (self._config or get_config()).llm_judge.default_model

    def begin(self, config: Config) -> None:
        """A run begins: its settings count, and nothing has been asked."""
        self._give_back()
        self._config, self._meters, self._stops = config, {}, {}

    def answer(self, asking: Asking) -> ModelReplied | ModelFailed:
        """Ask for the child. What goes wrong is an answer too; its text holds no secret."""
        request = Request(
            model=asking.model or self.default_model,
            prompt=sendable(asking.prompt, MAX_PROMPT_CHARS + MAX_CORRECTION_CHARS),
            temperature=asking.temperature,
            max_tokens=asking.max_tokens,
        )
        meter = self._meters.setdefault(request.model, UsageMeter())
        try:
            reply = self._connected().complete(request, meter, again=asking.again)
        except BadReplyError as error:
            return ModelFailed(reason=str(error), may_ask_again=not error.final)
        except JudgeStoppedError as stop:
            self._stops.setdefault(request.model, stop.again())
            return ModelFailed(reason=str(stop))
        except JudgeError as error:
            return ModelFailed(reason=str(error))
        except TransientError as error:
            return ModelFailed(reason=f"the judge's model could not be asked: {error.detail}, after its retries")
        return ModelReplied(content=reply.content, cut_off=reply.cut_off)

    def end(self, name: str, report: EvaluatorReport) -> EvaluatorReport:
        """The report with what was asked and what it cost, and why a model gave nothing if it didn't."""
        for model, meter in self._meters.items():
            usage = meter.read(model)
            if usage is not None and self._client is not None:
                report.usage.append(usage)
                stop = self._stops.get(model) or self._client.outage(model)
                if stop is not None:
                    text = f"{name}: {stop}"
                    report.errors.append(RunError(text, repeat_may_help=stop.repeat_may_help, is_logged=True))
        self._give_back()
        self._config = None
        return report

    def _connected(self) -> JudgeClient:
        if self._client is None:
            shared = importlib.import_module("amp_evaluation.judge.shared")
            self._client = shared.take(self._config or get_config(), self._retry_policy)
        return self._client

    def _give_back(self) -> None:
        if self._client is not None:
            importlib.import_module("amp_evaluation.judge.shared").give_back(self._client)
            self._client = None
