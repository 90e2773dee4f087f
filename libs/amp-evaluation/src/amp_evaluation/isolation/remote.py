"""An evaluator that lives in the child, as the job sees it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amp_evaluation.errors import ConfigError
from amp_evaluation.isolation._process import ChildLost
from amp_evaluation.isolation.models import Models, NoModels
from amp_evaluation.isolation.protocol import Failed, Loaded, Prompted, Reply, Scored, Unreadable
from amp_evaluation.trace.models import AgentTrace, LLMSpan, Trace

if TYPE_CHECKING:
    from amp_evaluation.isolation.sandbox import Sandbox

__all__ = ["Answer", "Remote"]

log = logging.getLogger("amp_evaluation.isolation.sandbox")

MAX_LOSSES_IN_A_ROW = 3
TOO_DEEP = "the trace holds data nested too deep to be handed to custom code"
NO_MODELS = NoModels()

Target = Trace | AgentTrace | LLMSpan
Answer = Scored | Prompted | Failed | Unreadable


@dataclass(eq=False)
class Remote:
    """One evaluator in the child. Three items in a row that hang it or kill it stop it for the rest of the run."""

    sandbox: Sandbox
    index: int
    name: str
    info: Loaded
    time_limit_s: float
    stopped: str | None = None
    """Why it is asked nothing any more."""
    losses_in_a_row: int = field(default=0, init=False)

    def ask(self, trace: Trace, target: Target, task: Any = None, models: Models = NO_MODELS) -> Answer:
        """The answer for one item of a trace; what went wrong is an answer too."""
        if self.stopped is not None:
            return Failed(reason=self.stopped)
        try:
            reply = self.sandbox.ask(self.index, trace, _place(trace, target), task, models)
        except (ChildLost, ConfigError) as error:
            return self._lost(error)
        except RecursionError:
            return Failed(reason=TOO_DEEP)
        self.losses_in_a_row = 0
        return _answer(reply)

    def read(self, content: str, models: Models = NO_MODELS) -> Answer:
        if self.stopped is not None:
            return Failed(reason=self.stopped)
        try:
            reply = self.sandbox.read(self.index, content, models)
        except (ChildLost, ConfigError) as error:
            return self._lost(error)
        self.losses_in_a_row = 0
        return _answer(reply)

    def stop(self, reason: str) -> None:
        """Ask it nothing any more."""
        if self.stopped is None:
            self.stopped = f"stopped: {reason}"
            log.error("evaluator %r is stopped for this run: %s", self.name, reason)

    def _lost(self, error: Exception) -> Failed:
        self.losses_in_a_row += 1
        if self.losses_in_a_row >= MAX_LOSSES_IN_A_ROW:
            self.stop(f"{MAX_LOSSES_IN_A_ROW} items in a row hung or killed its process, the last: {error}")
        return Failed(reason=f"the evaluator's process was lost: {error}")


def _answer(reply: Reply) -> Answer:
    if isinstance(reply, Scored | Prompted | Failed | Unreadable):
        return reply
    return Failed(reason="the evaluator's process gave no sensible answer")


def _place(trace: Trace, target: Target) -> str | int | None:
    """Where the child finds this item in its own copy of the trace."""
    if isinstance(target, AgentTrace):
        return target.agent_id
    if isinstance(target, LLMSpan):
        return next(position for position, call in enumerate(trace.get_llm_calls()) if call is target)
    return None
