"""What a run has to say beside its scores: errors, warnings, and what the judges' models cost."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["EvaluatorReport", "JudgeUsage", "RunError"]


class RunError(str):
    """An error of the run, as text; `repeat_may_help` tells an outage from what stays wrong.

    `is_logged`: the log has it already, from the moment when it came up.
    """

    repeat_may_help: bool
    is_logged: bool

    def __new__(cls, text: str, *, repeat_may_help: bool, is_logged: bool = False) -> RunError:
        made = super().__new__(cls, text)
        made.repeat_may_help = repeat_may_help
        made.is_logged = is_logged
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, bool]]:
        return (str(self),), {"repeat_may_help": self.repeat_may_help, "is_logged": self.is_logged}


@dataclass(slots=True)
class JudgeUsage:
    """What one model cost over a run; `cost_usd` is None where the price is unknown."""

    model: str
    calls: int = 0
    retries: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


@dataclass(slots=True)
class EvaluatorReport:
    """What an evaluator has to say at the end of a run beside its scores."""

    errors: list[RunError] = field(default_factory=list)
    usage: list[JudgeUsage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
