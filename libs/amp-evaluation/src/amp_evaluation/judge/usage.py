"""What the calls of one judge cost: requests, retries, tokens, dollars."""

from __future__ import annotations

import threading
from decimal import Decimal

from amp_evaluation.judge.prices import price_of
from amp_evaluation.models import JudgeUsage

__all__ = ["UsageMeter"]


class UsageMeter:
    """Counts from several threads at once. A request counts as a call when it is sent, as a retry when it repeats one.

    The cost is the sum over the calls; it is unknown as soon as one call's price or token count is.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls = 0
        self._retries = 0
        self._tokens = [0, 0]
        self._cost: Decimal | None = Decimal(0)

    def sent(self, *, again: bool) -> None:
        with self._lock:
            self._calls += 1
            self._retries += again

    def answered(self, provider: str, model: str, input_tokens: int | None, output_tokens: int | None) -> None:
        with self._lock:
            self._tokens[0] += input_tokens or 0
            self._tokens[1] += output_tokens or 0
            known = input_tokens is not None and output_tokens is not None
            price = price_of(provider, model, input_tokens or 0, output_tokens or 0) if known else None
            self._cost = None if self._cost is None or price is None else self._cost + price

    def read(self, model: str) -> JudgeUsage | None:
        """The figures under the model's name; None when nothing was sent."""
        with self._lock:
            if not self._calls:
                return None
            cost = None if self._cost is None else float(self._cost)
            return JudgeUsage(model, self._calls, self._retries, self._tokens[0], self._tokens[1], cost)
