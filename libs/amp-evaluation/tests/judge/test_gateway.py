"""How requests to each provider look on the wire, behind the gateway and without it."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from loopback import Request, Response, Server, completion

from amp_evaluation._retry import RetryPolicy
from amp_evaluation.errors import TransientError
from amp_evaluation.judge._loop import run_on_loop
from amp_evaluation.judge.client import JudgeClient
from amp_evaluation.judge.client import Request as Question
from amp_evaluation.judge.faults import JudgeStoppedError
from amp_evaluation.judge.gateway import PROVIDERS, Access, resolve
from amp_evaluation.judge.usage import UsageMeter

KEY = "k-secret"
OWN_KEYS = {
    "OPENAI_API_KEY": "own-openai",
    "ANTHROPIC_API_KEY": "own-anthropic",
    "GEMINI_API_KEY": "own-gemini",
    "GROQ_API_KEY": "own-groq",
    "MISTRAL_API_KEY": "own-mistral",
    "AWS_BEARER_TOKEN_BEDROCK": "own-bedrock",
    "AZURE_OPENAI_AD_TOKEN": "own-azure-token",
    "AZURE_API_KEY": "own-azure",
}
PATHS = {
    "openai": "/base/chat/completions",
    "anthropic": "/base/v1/messages",
    "gemini": "/base/v1/models/some-model:generateContent",
    "groq": "/base/openai/v1/chat/completions",
    "mistral": "/base/v1/chat/completions",
    "bedrock": "/base/model/some-model/converse",
    "azureopenai": "/base/openai/deployments/some-model/chat/completions",
    "azure": "/base/chat/completions",
}
REPLIES: dict[str, Any] = {
    "messages": {
        "id": "x",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "hello"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 120, "output_tokens": 30},
    },
    "generateContent": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "hello"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 120, "candidatesTokenCount": 30, "totalTokenCount": 150},
    },
    "converse": {
        "output": {"message": {"role": "assistant", "content": [{"text": "hello"}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 120, "outputTokens": 30, "totalTokens": 150},
        "metrics": {"latencyMs": 1},
    },
    "completions": completion("hello"),
}


class Gateway:
    """Answers in each provider's own language, or with a status."""

    def __init__(self) -> None:
        self.status = 200
        self.server = Server("gateway", self.handle)

    def handle(self, request: Request) -> Response:
        if self.status != 200:
            headers = {"Location": "http://127.0.0.1:9/elsewhere", "Retry-After": "7"}
            return Response.of(self.status, {"error": {"message": f"bad {KEY}"}}, **headers)
        language = request.path.replace(":", "/").rpartition("/")[2]
        return Response.of(200, REPLIES[language])


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    for name, value in OWN_KEYS.items():
        monkeypatch.setenv(name, value)
    served = Gateway()
    yield served
    served.server.close()


def client(server: Server, **over: Any) -> JudgeClient:
    access = Access(base=f"{server.url}/base", key=KEY, **over)
    return JudgeClient(access, RetryPolicy(delays=()))


def ask(asked: JudgeClient, model: str) -> str:
    try:
        return asked.complete(Question(model=model, prompt="JSON please", max_tokens=77), UsageMeter()).content
    finally:
        asked.close()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_gateways_key_goes_with_each_provider_and_no_other_credential(gateway: Gateway, provider: str) -> None:
    assert ask(client(gateway.server), f"{provider}/some-model") == "hello"
    (request,) = gateway.server.requests
    assert request.path == PATHS[provider]
    assert request.headers["api-key"] == KEY
    assert not {"authorization", "x-api-key", "x-goog-api-key"} & set(request.headers)
    assert not any("own-" in value for value in (*request.headers.values(), *request.query.values()))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_tokens_are_counted_for_each_provider(gateway: Gateway, provider: str) -> None:
    asked, meter = client(gateway.server), UsageMeter()
    asked.complete(Question(model=f"{provider}/some-model", prompt="JSON"), meter)
    asked.close()
    usage = meter.read("m")
    assert usage is not None
    assert (usage.calls, usage.retries, usage.input_tokens, usage.output_tokens) == (1, 0, 120, 30)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("status", [401, 302])
def test_a_refusal_or_a_redirect_is_met_once_and_shows_no_secret(gateway: Gateway, provider: str, status: int) -> None:
    gateway.status = status
    with pytest.raises(JudgeStoppedError, match=f"HTTP {status}") as caught:
        ask(client(gateway.server), f"{provider}/some-model")
    assert len(gateway.server.requests) == 1
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None or KEY not in str(caught.value.__cause__)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_clients_own_retries_are_off_and_retry_after_is_read(gateway: Gateway, provider: str) -> None:
    gateway.status = 503
    with pytest.raises(TransientError, match="HTTP 503") as caught:
        ask(client(gateway.server), f"{provider}/some-model")
    assert len(gateway.server.requests) == 1
    assert caught.value.retry_after == 7.0


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_endpoint_that_refuses_connections_is_no_answer(gateway: Gateway, provider: str) -> None:
    gateway.server.close()
    with pytest.raises(TransientError, match="no answer"):
        ask(client(gateway.server), f"{provider}/some-model")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_endpoint_that_hangs_is_a_timeout(gateway: Gateway, provider: str) -> None:
    def hang(request: Request) -> Response:
        return Response(200, b"{}", delay_s=0.8)

    gateway.server._handler = hang
    with pytest.raises(TransientError, match=r"no answer in 0\.3 s"):
        ask(client(gateway.server, timeout_s=0.3), f"{provider}/some-model")


def test_bedrock_asks_for_no_response_format(gateway: Gateway) -> None:
    ask(client(gateway.server), "bedrock/some-model")
    body = gateway.server.requests[0].json()
    assert set(body) == {"messages", "inferenceConfig"}
    assert body["inferenceConfig"]["maxTokens"] == 77


def test_bedrocks_warning_about_blocking_is_not_repeated_on_every_call(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        ask(client(gateway.server), "bedrock/some-model")
    assert not [record for record in caplog.records if "async" in record.getMessage()]


@pytest.mark.parametrize(
    ("version", "path", "query"),
    [
        pytest.param("2024-10-21", PATHS["azureopenai"], {"api-version": "2024-10-21"}, id="a dated version is pinned"),
        pytest.param("v1", "/base/openai/v1/chat/completions", {}, id="the undated route"),
    ],
)
def test_azureopenais_api_version(gateway: Gateway, version: str, path: str, query: dict[str, str]) -> None:
    ask(client(gateway.server, azure_openai_api_version=version), "azureopenai/some-model")
    assert (gateway.server.requests[0].path, gateway.server.requests[0].query) == (path, query)


def test_azures_api_version_can_be_set(gateway: Gateway) -> None:
    ask(client(gateway.server, azure_foundry_api_version="2030-01-01"), "azure/some-model")
    assert gateway.server.requests[0].query == {"api-version": "2030-01-01"}


@pytest.mark.parametrize(
    ("model", "gateway_on", "name", "warned"),
    [
        pytest.param("gpt-x", True, "openai/gpt-x", True, id="a bare name behind the gateway"),
        pytest.param("gpt-x", False, "openai/gpt-x", False, id="a bare name"),
        pytest.param("anthropic/c", True, "anthropic/c", False, id="a known prefix"),
        pytest.param("OpenAI/gpt-x", True, "openai/gpt-x", False, id="a known prefix in capitals"),
        pytest.param("meta/llama-3", True, "openai/meta/llama-3", True, id="an unknown prefix behind the gateway"),
        pytest.param("ollama/llama3:8b", False, "ollama/llama3:8b", False, id="another provider, called directly"),
    ],
)
def test_where_a_model_goes(model: str, gateway_on: bool, name: str, warned: bool) -> None:
    route = resolve(model, gateway=gateway_on)
    assert (route.name, route.warning is not None) == (name, warned)


def test_the_warning_comes_once(gateway: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    asked = client(gateway.server)
    for _ in range(3):
        asked.complete(Question(model="meta/llama", prompt="JSON"), UsageMeter())
    asked.close()
    assert [json.loads(request.body)["model"] for request in gateway.server.requests] == ["meta/llama"] * 3
    assert len([record for record in caplog.records if "meta" in record.getMessage()]) == 1


def test_without_a_gateway_the_providers_own_key_and_address_are_used(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{gateway.server.url}/direct")
    asked = JudgeClient(Access(), RetryPolicy(delays=()))
    assert ask(asked, "openai/gpt-x") == "hello"
    (request,) = gateway.server.requests
    assert request.path == "/direct/chat/completions"
    assert request.headers["authorization"] == "Bearer own-openai"
    assert "api-key" not in request.headers


def test_another_provider_of_any_llm_is_called_directly(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "own-deepseek")
    monkeypatch.setenv("DEEPSEEK_API_BASE", f"{gateway.server.url}/direct")
    monkeypatch.setenv("DEEPSEEK_BASE_URL", f"{gateway.server.url}/direct")
    assert ask(JudgeClient(Access(), RetryPolicy(delays=())), "deepseek/chat") == "hello"


@pytest.mark.parametrize(
    ("model", "said"),
    [
        pytest.param("openai/gpt-x", "set OPENAI_API_KEY", id="no key"),
        pytest.param("nobody/x", "can't be made: 'nobody' is not a supported provider", id="an unknown provider"),
    ],
)
def test_a_client_that_can_not_be_made_stops_its_judges(
    model: str, said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    asked = JudgeClient(Access(), RetryPolicy(delays=()))
    for _ in range(3):
        with pytest.raises(JudgeStoppedError, match=said):
            ask(asked, model)
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1


def test_closing_a_client_leaves_it_usable(gateway: Gateway) -> None:
    asked = client(gateway.server)
    assert [ask(asked, "openai/m"), ask(asked, "openai/m")] == ["hello", "hello"]
    assert gateway.server.connections == 2


def test_calls_on_the_loop_are_waited_for_by_no_exit_hook() -> None:
    async def threads() -> tuple[bool, str]:
        return await asyncio.to_thread(lambda: (threading.current_thread().daemon, threading.current_thread().name))

    assert run_on_loop(threads()) == (True, "amp-evaluation-judge-call")
