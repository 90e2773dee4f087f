"""What can go wrong with a judge's model, as a few classes; each says what to do next.

JudgeError                 the item is skipped, its text is the reason
├─ BadReplyError           the model answered, but not with a verdict: ask again
├─ ContextTooLongError     the prompt is too long for the model
├─ CallRefusedError        this one request is refused
├─ ParameterRefusedError   the model doesn't know a parameter: drop or rename it, and remember
└─ JudgeStoppedError       nothing more comes from this model in this run

Beside them stands `TransientError`, which the one retry policy handles. A failure is told by its HTTP status first and
by its text only where the status says no more than "refused". Texts of providers go no further than this file: they
hold keys, addresses and prompts; what a person reads is written here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from amp_evaluation._retry import TRANSIENT_STATUSES, parse_retry_after
from amp_evaluation.errors import AmpEvaluationError, PeerTimeoutError, TransientError

__all__ = [
    "BadReplyError",
    "CallRefusedError",
    "ContextTooLongError",
    "JudgeError",
    "JudgeStoppedError",
    "ParameterRefusedError",
    "no_answer",
    "read_failure",
]


class JudgeError(AmpEvaluationError):
    """No verdict on this item; the text is the reason, fit to be published."""


class BadReplyError(JudgeError):
    """A reply that holds no verdict. `final`: asking again can't help."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


class ContextTooLongError(JudgeError):
    """The prompt doesn't fit into the model's context."""


class CallRefusedError(JudgeError):
    """The provider refuses this request. `blocked`: for what the judged text holds, not for how it is asked."""

    def __init__(self, reason: str, *, blocked: bool = False) -> None:
        super().__init__(reason)
        self.blocked = blocked


class ParameterRefusedError(JudgeError):
    """The model refuses `parameter`; `instead` is the name that it wants, if it says one."""

    def __init__(self, parameter: str, instead: str | None) -> None:
        super().__init__(f"the model refuses the parameter {parameter}")
        self.parameter = parameter
        self.instead = instead


class JudgeStoppedError(JudgeError):
    """The model can't be used in this run. `whole_provider`: nor can any other of the same provider."""

    def __init__(self, reason: str, *, repeat_may_help: bool = False, whole_provider: bool = False) -> None:
        super().__init__(reason)
        self.repeat_may_help = repeat_may_help
        self.whole_provider = whole_provider

    def again(self) -> JudgeStoppedError:
        """A fresh one: raised for each of many items, one exception would gather all their frames and traces."""
        return JudgeStoppedError(str(self), repeat_may_help=self.repeat_may_help, whole_provider=self.whole_provider)


TOKEN_NAMES = ("max_completion_tokens", "max_tokens")
PARAMETERS = ("response_format", "temperature", *TOKEN_NAMES)  # the longer name of tokens first: it holds no other

_CONTEXT = re.compile(
    r"context.{0,20}(length|window|size)|maximum context|(prompt|input|request).{0,30}too (long|large)"
    r"|too many (input )?tokens|token count.{0,40}exceeds|reduce the length|context_length_exceeded",
    re.DOTALL,
)
_QUOTA = re.compile(
    r"insufficient[_ ](quota|balance|credit|funds)|credit balance|billing|payment required|out of credits"
)
_USED_UP = re.compile(r"exceeded your current quota|quota (exhausted|exceeded)")
_PAUSE_ONLY = re.compile(r"retry in|try again in|per minute|retrydelay")
_KEY = re.compile(
    r"api[ _-]?key.{0,30}(invalid|not valid|not found|expired|incorrect|missing)|(invalid|incorrect).{0,20}api[ _-]?key"
)
_MODEL = re.compile(
    r"model.{0,80}(not found|does not exist|doesn't exist|not exist|not supported|unknown|invalid|is not available)"
    r"|(unknown|invalid|no such|unsupported) model|model_not_found|deploymentnotfound|model identifier is invalid",
    re.DOTALL,
)
_BLOCKED = re.compile(r"content.{0,20}(filter|policy|management)|moderation|flagged|safety|responsible.?ai|guardrail")
_REFUSED_PARAMETER = re.compile(
    r"unsupported|not supported|not support|unrecognized|unknown|unexpected|not permitted|not allowed|deprecated"
    r"|only the default|invalid|not available|must be|too large|at most|instead"
)
_INSTEAD = re.compile(r"use\W{0,3}['\"`]?(max_completion_tokens|max_tokens)")
CODE = re.compile(r"[A-Za-z][\w.-]{0,59}", re.ASCII)


def no_answer(role: str, timeout_s: float | None = None) -> TransientError:
    """No connection, a connection that broke, or (with `timeout_s`) none of the reply in time."""
    if timeout_s is not None:
        return PeerTimeoutError(role, f"no answer in {timeout_s:g} s")
    return TransientError(role, "no answer: the connection failed")


def read_failure(error: BaseException, *, role: str, sent: frozenset[str]) -> JudgeError | TransientError:
    """The class of a failure that came with a reply, or came before anything was sent.

    `role` names the peer in texts ("judge openai"), `sent` holds the parameters that the request had.
    """
    text = " ".join(str(link) for link in _chain(error))[:20_000].lower()
    status, code = _status(error), _code(error)
    parameter = _refused_parameter(error, text, sent)
    if status is None:
        if parameter is not None:
            return parameter
        return BadReplyError(f"the reply is no chat completion ({type(_root(error)).__name__})")
    if status == 429 or status in TRANSIENT_STATUSES or status >= 500:
        return _patience(error, role, status, code, text)
    if status in (400, 422):
        return _refusal(status, code, text, parameter)
    return _by_status(status, code, text)


def _patience(error: BaseException, role: str, status: int, code: str, text: str) -> JudgeError | TransientError:
    if status == 429 and _no_quota(code, text):
        return _quota(status)
    return TransientError(role, f"HTTP {status}", status=status, retry_after=parse_retry_after(_retry_after(error)))


def _no_quota(code: str, text: str) -> bool:
    """A quota that is used up, not a rate limit: some providers use one sentence for both."""
    if _QUOTA.search(code) or "insufficient_quota" in text:
        return True
    used_up = _USED_UP.search(text) or _QUOTA.search(text)
    return bool(used_up) and not _PAUSE_ONLY.search(text) and "rate" not in code


def _refusal(status: int, code: str, text: str, parameter: ParameterRefusedError | None) -> JudgeError:
    """A 400 or 422: only the text tells what is refused."""
    if _CONTEXT.search(f"{code} {text}"):
        return ContextTooLongError("context length exceeded: the prompt is too long for the judge's model")
    if _QUOTA.search(f"{code} {text}"):
        return _quota(status)
    if _KEY.search(text):
        return _bad_key(status)
    if parameter is not None:
        return parameter
    if _BLOCKED.search(f"{code} {text}"):
        return CallRefusedError("the judge's provider blocked the request for its content", blocked=True)
    if _MODEL.search(f"{code} {text}"):
        return _unknown_model(status)
    return CallRefusedError(f"the judge's provider refused the request: HTTP {status}{f', {code}' if code else ''}")


def _by_status(status: int, code: str, text: str) -> JudgeError:
    if status == 403 and _BLOCKED.search(f"{code} {text}"):
        return CallRefusedError("the judge's provider blocked the request for its content", blocked=True)
    if status in (401, 403):
        return _bad_key(status)
    if status == 402:
        return _quota(status)
    if status == 404:
        return _unknown_model(status)
    if status == 413:
        return ContextTooLongError("context length exceeded: the prompt is too long for the judge's model (HTTP 413)")
    if 300 <= status < 400:
        return JudgeStoppedError(
            f"HTTP {status}: a redirect is not followed; set the base URL to the address it leads to",
            whole_provider=True,
        )
    if status < 300:
        return BadReplyError("the reply is no chat completion")
    return CallRefusedError(f"the judge's provider refused the request: HTTP {status}")


def _quota(status: int) -> JudgeStoppedError:
    return JudgeStoppedError(f"quota exhausted (HTTP {status}): check the plan and billing of the model's provider")


def _bad_key(status: int) -> JudgeStoppedError:
    reason = f"the credentials are not accepted (HTTP {status}): check the key and its rights"
    return JudgeStoppedError(reason, whole_provider=status == 401)


def _unknown_model(status: int) -> JudgeStoppedError:
    return JudgeStoppedError(f"unknown model or address (HTTP {status}): check the model's name and the base URL")


def _refused_parameter(error: BaseException, text: str, sent: frozenset[str]) -> ParameterRefusedError | None:
    """The sent parameter that a text complains about, or that the error names by itself."""
    named = next((value for link in _chain(error) if isinstance(value := getattr(link, "param", None), str)), "")
    named = named or getattr(error, "parameter_name", "")
    instead = _INSTEAD.search(text)
    for parameter in PARAMETERS:
        tokens = parameter in TOKEN_NAMES
        known = parameter in sent or (tokens and any(name in sent for name in TOKEN_NAMES))
        if known and (named.startswith(parameter) or (parameter in text and _REFUSED_PARAMETER.search(text))):
            return ParameterRefusedError("max_tokens" if tokens else parameter, instead[1] if instead else None)
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and the ones that it stands for, outermost first."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        original = getattr(link, "original_exception", None)
        link = original if isinstance(original, BaseException) else link.__cause__


def _root(error: BaseException) -> BaseException:
    return list(_chain(error))[-1]


def _status(error: BaseException) -> int | None:
    """The HTTP status, wherever the provider's library keeps it."""
    for link in _chain(error):
        response = getattr(link, "response", None)
        for holder, name in ((link, "status_code"), (response, "status_code"), (link, "status")):
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        value = _aws(response).get("HTTPStatusCode")
        if isinstance(value, int):
            return value
    return None


def _code(error: BaseException) -> str:
    """The provider's own short code of the failure, or ""."""
    for link in _chain(error):
        response = getattr(link, "response", None)
        aws = response.get("Error") if isinstance(response, dict) else None
        for value in (getattr(link, "code", None), getattr(link, "error_type", None), aws and aws.get("Code")):
            if isinstance(value, str) and CODE.fullmatch(value):
                return value.lower()
    return ""


def _retry_after(error: BaseException) -> str | None:
    for link in _chain(error):
        response = getattr(link, "response", None)
        if isinstance(value := getattr(link, "retry_after", None), str):
            return value
        for headers in (
            getattr(link, "headers", None),
            getattr(response, "headers", None),
            _aws(response).get("HTTPHeaders"),
        ):
            value = headers.get("retry-after") if isinstance(headers, Mapping) else None
            if isinstance(value, str):
                return value
    return None


def _aws(response: Any) -> Mapping[str, Any]:
    """What botocore keeps of the HTTP exchange."""
    found = response.get("ResponseMetadata") if isinstance(response, dict) else None
    return found if isinstance(found, Mapping) else {}
