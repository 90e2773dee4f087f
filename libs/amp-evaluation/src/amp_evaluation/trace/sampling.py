"""Which traces a sampling rate keeps: always the same ones, by their ids alone."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Protocol, TypeVar

from amp_evaluation.errors import ConfigError

__all__ = ["Sampler", "sample_traces"]

BASE_DIGITS = 4  # the platform's rule looks at SHA-256(trace id) mod 10,000


class _Parsed(Protocol):
    trace_id: str


class _OnWire(Protocol):
    traceId: str


T = TypeVar("T", bound=_Parsed | _OnWire)


class Sampler:
    """``sampler(trace_id)`` says whether a rate keeps it; a higher rate keeps all that a lower one keeps.

    A trace is kept when SHA-256(trace id) mod 10,000 is below the rate times 10,000. A rate with more than four
    decimals is decided by further digits of the same number, after those four, so that the order of
    traces is one and the same for all rates. ConfigError (a ValueError) when the rate isn't in (0, 1].
    """

    def __init__(self, sample_rate: float) -> None:
        if isinstance(sample_rate, bool) or not isinstance(sample_rate, int | float):
            raise ConfigError(f"sample rate {sample_rate!r}: a number in (0, 1] is wanted")
        if not (math.isfinite(sample_rate) and 0 < sample_rate <= 1):
            raise ConfigError(f"sample rate {sample_rate!r}: above 0 and at most 1 is wanted, as in 0.25 for a quarter")
        exact = Decimal(repr(float(sample_rate)))
        exponent = exact.as_tuple().exponent
        self.sample_rate = sample_rate
        self._more = max(0, -int(exponent) - BASE_DIGITS)
        self._threshold = int(exact.scaleb(BASE_DIGITS + self._more))

    def __call__(self, trace_id: str) -> bool:
        if self.sample_rate == 1:
            return True
        digest = hashlib.sha256(trace_id.encode("utf-8", "surrogatepass")).digest()
        further, place = divmod(int.from_bytes(digest, "big"), 10**BASE_DIGITS)
        scale = 10**self._more
        return bool(place * scale + further % scale < self._threshold)


def sample_traces(traces: Iterable[T], sample_rate: float) -> list[T]:
    """The traces (parsed or as they came) that the rate keeps, in their order. ValueError outside (0, 1]."""
    keeps = Sampler(sample_rate)
    return [trace for trace in traces if keeps(_id_of(trace))]


def _id_of(trace: _Parsed | _OnWire) -> str:
    own: str | None = getattr(trace, "trace_id", None)
    other: str | None = getattr(trace, "traceId", None)
    return own or other or ""
