"""Each failure of a model's call has one class, by its status first and by its text where that says too little."""

from __future__ import annotations

import pytest
from any_llm.exceptions import AnyLLMError, RateLimitError, UnsupportedParameterError
from botocore.exceptions import ClientError

from amp_evaluation.errors import PeerTimeoutError, TransientError
from amp_evaluation.judge.faults import (
    BadReplyError,
    CallRefusedError,
    ContextTooLongError,
    JudgeError,
    JudgeStoppedError,
    ParameterRefusedError,
    no_answer,
    read_failure,
)

SENT = frozenset({"response_format", "temperature", "max_completion_tokens"})
OPENAI_TOKENS = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)
RATE_TEXT = "You exceeded your current quota, please check your plan and billing details"


def failure(status: int | None, text: str = "", **more: str) -> JudgeError | TransientError:
    code, param = more.get("code"), more.get("param")
    error = AnyLLMError(text or "x", provider_name="openai", status_code=status, code=code, param=param)
    return read_failure(error, role="judge openai", sent=SENT)


@pytest.mark.parametrize(
    ("status", "text", "code", "kind"),
    [
        pytest.param(503, "policy context length", None, TransientError, id="a 503 whatever its text says"),
        pytest.param(500, "", None, TransientError, id="a 500"),
        pytest.param(529, "overloaded", None, TransientError, id="a 5xx of a provider's own"),
        pytest.param(408, "", None, TransientError, id="a 408"),
        pytest.param(429, "slow down", None, TransientError, id="a rate limit"),
        pytest.param(429, f"{RATE_TEXT}. Please retry in 34s.", None, TransientError, id="a rate limit put as a quota"),
        pytest.param(429, RATE_TEXT, "rate_limit_exceeded", TransientError, id="a rate limit by its code"),
        pytest.param(429, "no", "insufficient_quota", JudgeStoppedError, id="a quota by its code"),
        pytest.param(429, RATE_TEXT, None, JudgeStoppedError, id="a quota by its text"),
        pytest.param(402, "", None, JudgeStoppedError, id="payment required"),
        pytest.param(400, "Your credit balance is too low", None, JudgeStoppedError, id="credit gone, as a 400"),
        pytest.param(401, "", None, JudgeStoppedError, id="a bad key"),
        pytest.param(403, "", None, JudgeStoppedError, id="a key without the right"),
        pytest.param(400, "API key not valid. Please pass a valid one", None, JudgeStoppedError, id="a bad key as 400"),
        pytest.param(404, "", None, JudgeStoppedError, id="an unknown model"),
        pytest.param(400, "The model `x` does not exist", None, JudgeStoppedError, id="an unknown model as a 400"),
        pytest.param(302, "", None, JudgeStoppedError, id="a redirect"),
        pytest.param(403, "flagged by moderation", None, CallRefusedError, id="a blocked prompt as a 403"),
        pytest.param(400, "content management policy", None, CallRefusedError, id="a blocked prompt"),
        pytest.param(400, "something else", "odd_thing", CallRefusedError, id="a 400 of no known kind"),
        pytest.param(409, "", None, CallRefusedError, id="a 409"),
        pytest.param(
            400, "maximum context length is 8192 tokens", None, ContextTooLongError, id="too long by its text"
        ),
        pytest.param(400, "no", "context_length_exceeded", ContextTooLongError, id="too long by its code"),
        pytest.param(400, "prompt is too long: 9 > 8", None, ContextTooLongError, id="too long in other words"),
        pytest.param(413, "", None, ContextTooLongError, id="a 413"),
        pytest.param(200, "invalid json", None, BadReplyError, id="a 200 that can't be read"),
        pytest.param(None, "anything", None, BadReplyError, id="no status: the reply couldn't be taken apart"),
        pytest.param(400, OPENAI_TOKENS, None, ParameterRefusedError, id="a refused parameter"),
    ],
)
def test_it_is_told_by(status: int | None, text: str, code: str | None, kind: type[Exception]) -> None:
    more = {"code": code} if code else {}
    assert type(failure(status, text, **more)) is kind


@pytest.mark.parametrize(
    ("text", "param", "parameter", "instead"),
    [
        pytest.param(OPENAI_TOKENS, None, "max_tokens", "max_completion_tokens", id="tokens, with the other name"),
        pytest.param("temperature: only the default (1) is supported", None, "temperature", None, id="temperature"),
        pytest.param("response_format not supported", None, "response_format", None, id="response_format"),
        pytest.param("no", "response_format.type", "response_format", None, id="by the error's own field"),
        pytest.param("max_completion_tokens is too large", None, "max_tokens", None, id="a limit above the model's"),
    ],
)
def test_a_refused_parameter(text: str, param: str | None, parameter: str, instead: str | None) -> None:
    found = failure(400, text, **({"param": param} if param else {}))
    assert isinstance(found, ParameterRefusedError)
    assert (found.parameter, found.instead) == (parameter, instead)


def test_a_parameter_that_was_not_sent_can_not_be_refused() -> None:
    error = AnyLLMError("temperature is not supported", status_code=400)
    assert type(read_failure(error, role="judge x", sent=frozenset())) is CallRefusedError


def test_a_parameter_that_the_library_refuses_before_sending() -> None:
    error = UnsupportedParameterError("response_format with type 'json_object'", "anthropic")
    found = read_failure(error, role="judge anthropic", sent=SENT)
    assert isinstance(found, ParameterRefusedError)
    assert found.parameter == "response_format"


def test_what_stops_a_whole_provider_and_what_only_a_model() -> None:
    whole = {status: failure(status) for status in (401, 403, 404, 402)}
    assert [
        status for status, stop in whole.items() if isinstance(stop, JudgeStoppedError) and stop.whole_provider
    ] == [401]


def test_retry_after_in_seconds_and_as_the_exception_of_the_library() -> None:
    error = RateLimitError("x", retry_after="7", status_code=429)
    found = read_failure(error, role="judge openai", sent=SENT)
    assert isinstance(found, TransientError)
    assert found.retry_after == 7.0


def test_aws_keeps_status_code_and_headers_elsewhere() -> None:
    reply = {
        "Error": {"Code": "ThrottlingException", "Message": "slow"},
        "ResponseMetadata": {"HTTPStatusCode": 429, "HTTPHeaders": {"retry-after": "3"}},
    }
    error = AnyLLMError("x", original_exception=ClientError(reply, "Converse"))  # type: ignore[arg-type]
    found = read_failure(error, role="judge bedrock", sent=SENT)
    assert isinstance(found, TransientError)
    assert (found.status, found.retry_after) == (429, 3.0)


def test_a_providers_own_text_is_in_no_reason() -> None:
    for status in (200, 302, 400, 401, 402, 403, 404, 409, 413, 429, 500, None):
        assert "k-secret" not in str(failure(status, "bad key k-secret at http://host/x"))


def test_a_chain_that_bites_its_tail_ends() -> None:
    first, second = AnyLLMError("a"), AnyLLMError("b", status_code=404)
    first.original_exception, second.original_exception = second, first
    assert type(read_failure(first, role="judge x", sent=SENT)) is JudgeStoppedError


def test_no_answer_at_all() -> None:
    assert isinstance(no_answer("judge x", 60.0), PeerTimeoutError)
    assert str(no_answer("judge x", 60.0)) == "judge x: no answer in 60 s"
    assert str(no_answer("judge x")) == "judge x: no answer: the connection failed"


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("text", ["something else", "credit balance", "invalid api key", "unknown model"])
def test_a_refusal_names_the_status_that_came(status: int, text: str) -> None:
    assert f"HTTP {status}" in str(failure(status, text))
