"""Calling the agent under test in an experiment.

`AgentInvoker` is the seam: subclass it to call an agent in the same process. `HttpAgentInvoker` posts to an endpoint.
While an experiment invokes an agent, `current_baggage()` holds the task and trial ids; over HTTP they go as a W3C
`baggage` header, which an instrumented agent puts on its spans.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from amp_evaluation.errors import AmpEvaluationError, TransientError
from amp_evaluation.http import HttpClient, Reply, RetryPolicy

__all__ = ["AgentInvoker", "HttpAgentInvoker", "InvokeResult", "TaskInput", "baggage", "current_baggage"]

TaskInput = str | dict[str, Any]

# An agent acts on the world: a call is repeated only when the endpoint says that it was not taken on. After a timeout
# or a cut body nobody knows, and a second run under the same trial id would spoil the pairing.
NOT_TAKEN_ON = frozenset({429, 503})
OUTPUT_KEYS = ("output", "response", "answer", "message", "content", "result", "text")
MAX_NESTED_OUTPUTS = 3

_baggage: ContextVar[Mapping[str, str]] = ContextVar("amp_evaluation_baggage", default={})  # noqa: B039 - never mutated


@contextmanager
def baggage(entries: Mapping[str, str]) -> Iterator[None]:
    """Carry these entries with every call made inside the block."""
    token = _baggage.set(dict(entries))
    try:
        yield
    finally:
        _baggage.reset(token)


def current_baggage() -> Mapping[str, str]:
    """The entries that calls made now carry, such as `{"task.id": "t1", "trial.id": "t1-1"}`."""
    return _baggage.get()


def format_baggage(entries: Mapping[str, str]) -> str:
    """W3C baggage: `key=value` joined by commas, values percent-encoded."""
    return ",".join(f"{key}={quote(value, safe='')}" for key, value in entries.items())


@dataclass
class InvokeResult:
    """What came of one call of the agent."""

    input: Any
    output: Any = None
    error: str | None = None
    trajectory: list[Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        """True when the agent answered."""
        return self.error is None

    @property
    def has_trajectory(self) -> bool:
        """True when the agent told its steps."""
        return bool(self.trajectory)


class AgentInvoker(ABC):
    """Calls an agent with one task's input."""

    @abstractmethod
    def invoke(self, task_input: TaskInput) -> InvokeResult:
        """Call the agent once. A failure is an InvokeResult with `error`, or an exception, which counts the same."""

    def invoke_batch(self, inputs: Iterable[TaskInput]) -> list[InvokeResult]:
        """Call the agent with one input after the other; a failure doesn't stop the rest."""
        return [self.invoke_safely(task_input) for task_input in inputs]

    def invoke_safely(self, task_input: TaskInput) -> InvokeResult:
        """`invoke`, with an exception as a result that holds its text."""
        try:
            return self.invoke(task_input)
        except Exception as error:  # an agent may fail in any way; the experiment goes on with the next task
            return InvokeResult(input=task_input, error=f"{type(error).__name__}: {error}")


class _NotRepeatable(AmpEvaluationError):
    """The agent may have acted already."""


class HttpAgentInvoker(AgentInvoker):
    """Calls an agent's HTTP endpoint with JSON.

    `payload_builder` makes the body from the task's input; without one an object goes as it is and a text as
    `{"message": text}`. With method GET the body's keys go as query parameters. The reply's text is looked for under
    `output`, `response`, `answer`, `message`, `content`, `result` or `text`; a reply of another form is the output
    as a whole.
    """

    def __init__(
        self,
        base_url: str,
        endpoint: str = "/chat",
        method: str = "POST",
        timeout: float = 60.0,
        headers: Mapping[str, str] | None = None,
        payload_builder: Callable[[TaskInput], Any] | None = None,
        *,
        retry: RetryPolicy | None = None,
    ) -> None:
        if urlsplit(base_url).scheme not in ("http", "https"):
            raise ValueError(f"base_url={base_url!r}: an http:// or https:// URL is wanted")
        if method.upper() not in ("GET", "POST"):
            raise ValueError(f"method={method!r}: GET or POST is wanted")
        if not (isinstance(timeout, (int, float)) and math.isfinite(timeout) and timeout > 0):
            raise ValueError(f"timeout={timeout!r}: a number of seconds above 0 is wanted")
        self.base_url = base_url.rstrip("/")
        self.endpoint = endpoint if endpoint.startswith("/") or not endpoint else f"/{endpoint}"
        self.method = method.upper()
        self.timeout = timeout
        self.headers = dict(headers or {})
        self.payload_builder = payload_builder
        self._retry = retry or RetryPolicy()
        self._client = HttpClient("agent", self.base_url, read_timeout_s=timeout)

    def invoke(self, task_input: TaskInput) -> InvokeResult:
        """Call the endpoint once; a failure is a result with `error`, never an exception."""
        try:
            payload = self._build_payload(task_input)
            reply = self._retry.run(lambda: self._send(payload), role="agent")
        except AmpEvaluationError as error:
            return InvokeResult(input=task_input, error=str(error), metadata=_status_of(error))
        return _read_reply(task_input, reply)

    def _build_payload(self, task_input: TaskInput) -> Any:
        if self.payload_builder is not None:
            return self.payload_builder(task_input)
        return {"message": task_input} if isinstance(task_input, str) else task_input

    def _send(self, payload: Any) -> Reply:
        try:
            return self._send_once(payload)
        except TransientError as error:
            if error.status in NOT_TAKEN_ON:
                raise
            raise _NotRepeatable(str(error)) from error

    def _send_once(self, payload: Any) -> Reply:
        headers = dict(self.headers)
        entries = current_baggage()
        if entries:
            given = headers.pop("baggage", "")
            headers["baggage"] = ",".join(filter(None, [given, format_baggage(entries)]))
        if self.method == "GET":
            return self._client.get(self.endpoint, params=payload, headers=headers, retry=False)
        body = json.dumps(payload, ensure_ascii=True).encode()
        return self._client.post(
            self.endpoint, body=body, content_type="application/json", headers=headers, retry=False
        )


def _status_of(error: AmpEvaluationError) -> dict[str, Any]:
    status = getattr(error, "status", None) or getattr(error.__cause__, "status", None)
    return {} if status is None else {"status_code": status}


def _read_reply(task_input: TaskInput, reply: Reply) -> InvokeResult:
    text = reply.body.decode("utf-8", errors="replace")
    metadata: dict[str, Any] = {"status_code": reply.status}
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return InvokeResult(input=task_input, output=text, metadata=metadata)
    trajectory = data.get("trajectory") if isinstance(data, dict) else None
    return InvokeResult(
        input=task_input,
        output=_find_output(data),
        trajectory=trajectory if isinstance(trajectory, list) else None,
        metadata=metadata,
    )


def _find_output(data: Any) -> Any:
    """The text in a reply such as `{"response": "…"}` or `{"message": {"content": "…"}}`, else the reply itself."""
    value = data
    for _ in range(MAX_NESTED_OUTPUTS):
        if not isinstance(value, dict):
            break
        key = next((name for name in OUTPUT_KEYS if value.get(name) is not None), None)
        if key is None:
            break
        value = value[key]
    return value if isinstance(value, str) else data
