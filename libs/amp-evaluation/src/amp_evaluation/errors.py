"""Every error that this package raises on purpose. The class says what to do next.

AmpEvaluationError
├─ ConfigError            what a person gave is wrong; nothing was sent
├─ PeerError              another program refused, or didn't answer
│  ├─ TransientError      a repeat may help
│  │  ├─ PeerTimeoutError no answer in time
│  │  └─ BodyCutError     an answer that ended early, or is no answer of this kind
│  └─ RefusedError        a repeat can't help
├─ TraceSourceError       a trace file is missing or broken
├─ TraceParseError        one trace can't be read
└─ DataNotAvailableError  an evaluator asked for what this run doesn't have
"""

from __future__ import annotations

__all__ = [
    "AmpEvaluationError",
    "BodyCutError",
    "ConfigError",
    "DataNotAvailableError",
    "PeerError",
    "PeerTimeoutError",
    "RefusedError",
    "TraceParseError",
    "TraceSourceError",
    "TransientError",
]


class AmpEvaluationError(Exception):
    """Base of all errors of this package."""


class ConfigError(AmpEvaluationError, ValueError):
    """A value that a person gave is wrong. The text shows the value, the rule and the remedy."""


class PeerError(AmpEvaluationError):
    """A peer failed. ``str(error)`` is ``"<role>: <detail>"``: never a host, a token or a secret.

    ``role`` is what the peer is to this program ("traces API"), ``status`` its HTTP status, or None
    when there was none. ``body`` is the start of the reply for callers that know an error code in it;
    it may hold anything and is never logged.
    """

    def __init__(self, role: str, detail: str, *, status: int | None = None, body: bytes = b"") -> None:
        super().__init__(role, detail)
        self.role = role
        self.detail = detail
        self.status = status
        self.body = body

    def __str__(self) -> str:
        return f"{self.role}: {self.detail}"


class TransientError(PeerError):
    """No answer, or one that asks for patience: 408, 425, 429, 500, 502, 503, 504.

    ``retry_after`` is the wait in seconds that the peer asked for. ``retried`` is True once a retry
    policy has given up on it, so that no second policy around the first starts over.
    """

    def __init__(
        self,
        role: str,
        detail: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        body: bytes = b"",
    ) -> None:
        super().__init__(role, detail, status=status, body=body)
        self.retry_after = retry_after
        self.retried = False


class PeerTimeoutError(TransientError):
    """No connection, or no reply, within the time limit."""


class BodyCutError(TransientError):
    """The reply ended before its length said so, or can't be decoded as such a reply."""


class RefusedError(PeerError):
    """The peer refused: 3xx, every other 4xx, or a reply of another kind. ``hint`` is what to check."""

    def __init__(self, role: str, detail: str, *, status: int | None = None, hint: str = "", body: bytes = b"") -> None:
        super().__init__(role, detail, status=status, body=body)
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.role}: {self.detail}" + (f" ({self.hint})" if self.hint else "")


class TraceSourceError(AmpEvaluationError):
    """A trace file is missing or broken. The text names the file and the place in it."""


class TraceParseError(AmpEvaluationError):
    """One trace can't be read as a trace. Each evaluator then has one skip for it."""


class DataNotAvailableError(AmpEvaluationError):
    """An evaluator asked for ``field_name``, which this run doesn't have (a task in a monitor)."""

    def __init__(self, field_name: str) -> None:
        super().__init__(field_name)
        self.field_name = field_name

    def __str__(self) -> str:
        return f"{self.field_name} is not available in this run"
