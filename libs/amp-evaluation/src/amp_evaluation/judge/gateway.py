"""How each provider's client is made, with the gateway or without: one row a provider, one small function a row.

With the gateway on, every request goes to its base URL with its key in the header `api-key`, and no other credential
leaves the process: neither a provider's own key from the environment nor a signature. Redirects are not followed (they
would carry the key to another host), the clients' own retries are off.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["PROVIDERS", "Access", "Provider", "ProviderRow", "Route", "build_provider", "resolve"]

CONNECT_TIMEOUT_S = 10.0
GATEWAY_HEADER = "api-key"
PLACEHOLDER_KEY = "gateway"  # for clients that insist on a key of their own; it is taken off every request
OWN_CREDENTIALS = ("authorization", "x-api-key", "x-goog-api-key")
UNVERSIONED_AZURE_API = ("", "v1")  # any-llm's own route; a dated version has a route of its own
BEDROCK_REGION = "us-east-1"  # boto3 wants one; behind a gateway it decides nothing


@dataclass(frozen=True, kw_only=True)
class Access:
    """How models are reached; `base` and `key` are the gateway's, both set or both None."""

    base: str | None = None
    key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    connections: int = 16
    azure_openai_api_version: str = "2024-10-21"
    azure_foundry_api_version: str | None = None

    @property
    def gateway(self) -> bool:
        return self.base is not None


@dataclass(kw_only=True)
class Provider:
    """A client that has been made. `no_answer`: what it raises when no reply came, of whatever status."""

    complete: Callable[..., Awaitable[Any]]
    no_answer: tuple[type[BaseException], ...]
    closers: list[Callable[[], Awaitable[Any]]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ProviderRow:
    """What is special about a provider: how a token limit is passed under each name that its API may know it by,
    in the order in which they are tried; whether JSON can be asked for; and its name in the price lists."""

    build: Callable[[Access], Provider]
    token_limits: Mapping[str, Callable[[int], dict[str, Any]]] = field(default_factory=lambda: {"max_tokens": _usual})
    response_format: bool = True
    prices: str | None = None


@dataclass(frozen=True)
class Route:
    """Where a model's calls go: a row of the table, and the name that the provider knows the model by."""

    provider: str
    model: str
    warning: str | None = None

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"


def resolve(model: str, *, gateway: bool) -> Route:
    """`provider/model`; a bare name is OpenAI's, and behind the gateway so is a name with an unknown prefix."""
    prefix, slash, rest = model.partition("/")
    if not slash:
        warning = f"model {model!r} names no provider: taken as 'openai/{model}'" if gateway else None
        return Route("openai", model, warning)
    known = prefix.lower()
    if gateway and known not in PROVIDERS:
        return Route("openai", model, f"model {model!r}: {prefix!r} is no provider, taken as part of the model's name")
    return Route(known, rest)


def build_provider(name: str, access: Access) -> Provider:
    """The client of a provider; imports that provider's library only. Raises what any-llm raises."""
    row = PROVIDERS.get(name)
    return row.build(access) if row is not None else _any_other(name, access)


def _create(name: str, access: Access, **options: Any) -> Any:
    """any-llm's provider, with the gateway's address when it is on."""
    any_llm = importlib.import_module("any_llm")
    if access.gateway:
        options = {"api_key": PLACEHOLDER_KEY, "api_base": access.base, **options}
    return any_llm.AnyLLM.create(name, unified_exceptions=True, **options)


def _http_options(access: Access) -> dict[str, Any]:
    """Arguments of an httpx client, whichever of its generations a library uses."""
    hooks = [_only_gateway_key(access.key)] if access.gateway else []
    return {"follow_redirects": False, "event_hooks": {"request": hooks}}


def _only_gateway_key(key: str | None) -> Callable[[Any], Awaitable[None]]:
    async def set_key(request: Any) -> None:
        for name in OWN_CREDENTIALS:
            request.headers.pop(name, None)
        request.headers[GATEWAY_HEADER] = key

    return set_key


def _http_client(library: str, client_class: str, access: Access) -> Any:
    """A client of the httpx generation that the library brings along."""
    module = importlib.import_module(library)
    httpx = sys.modules[getattr(module, client_class).__mro__[1].__module__.partition(".")[0]]
    return getattr(module, client_class)(
        timeout=httpx.Timeout(access.timeout_s, connect=CONNECT_TIMEOUT_S),
        limits=httpx.Limits(max_connections=access.connections, max_keepalive_connections=access.connections),
        **_http_options(access),
    )


def _transport_errors() -> tuple[type[BaseException], ...]:
    loaded = (sys.modules[name] for name in ("httpx", "httpx2") if name in sys.modules)
    return (OSError, EOFError, *(module.TransportError for module in loaded))


def _with_own_http(name: str, library: str, access: Access, *, base_option: str | None = None) -> Provider:
    """Providers whose library takes an HTTP client: openai's own and those made after its model."""
    client = _http_client(library, "DefaultAsyncHttpxClient", access)
    options: dict[str, Any] = {"http_client": client, "timeout": client.timeout, "max_retries": 0}
    if base_option and access.gateway:
        options[base_option] = access.base
    made = _create(name, access, **options)
    errors = (importlib.import_module(library).APIConnectionError, *_transport_errors())
    return Provider(complete=made.acompletion, no_answer=errors, closers=[client.aclose])


def _openai(access: Access) -> Provider:
    return _with_own_http("openai", "openai", access)


def _anthropic(access: Access) -> Provider:
    return _with_own_http("anthropic", "anthropic", access)


def _groq(access: Access) -> Provider:
    # any-llm doesn't hand its base URL on to this library
    return _with_own_http("groq", "groq", access, base_option="base_url")


def _azureopenai(access: Access) -> Provider:
    """Behind the gateway the API version is pinned; dated versions have the route with the deployment in it."""
    openai = importlib.import_module("openai")
    client = _http_client("openai", "DefaultAsyncHttpxClient", access)
    options: dict[str, Any] = {"http_client": client, "timeout": client.timeout, "max_retries": 0}
    made = _create("azureopenai", access, **options)
    if access.gateway and access.azure_openai_api_version not in UNVERSIONED_AZURE_API:
        made.client = openai.AsyncAzureOpenAI(
            azure_endpoint=access.base,
            api_key=PLACEHOLDER_KEY,
            api_version=access.azure_openai_api_version,
            **options,
        )
    errors = (openai.APIConnectionError, *_transport_errors())
    return Provider(complete=made.acompletion, no_answer=errors, closers=[client.aclose])


def _gemini(access: Access) -> Provider:
    options = {"client_args": _http_options(access), "async_client_args": _http_options(access)}
    options["client_args"]["event_hooks"] = {}  # the client for blocking calls is made too, but never used
    made = _create("gemini", access, vertexai=False, max_retries=0, timeout=access.timeout_s, http_options=options)
    return Provider(complete=made.acompletion, no_answer=_transport_errors(), closers=[made.client.aio.aclose])


def _mistral(access: Access) -> Provider:
    httpx = importlib.import_module("httpx")
    client = httpx.AsyncClient(
        timeout=httpx.Timeout(access.timeout_s, connect=CONNECT_TIMEOUT_S), **_http_options(access)
    )
    made = _create("mistral", access, async_client=client, timeout_ms=int(access.timeout_s * 1000))
    return Provider(complete=made.acompletion, no_answer=_transport_errors(), closers=[client.aclose])


def _bedrock(access: Access) -> Provider:
    """Behind the gateway unsigned, with its header instead; otherwise with AWS's own credentials."""
    config_class = importlib.import_module("botocore.config").Config
    errors = importlib.import_module("botocore.exceptions")
    logging.getLogger("any_llm").addFilter(_not_about_blocking)
    options: dict[str, Any] = {
        "retries": {"max_attempts": 0},
        "connect_timeout": CONNECT_TIMEOUT_S,
        "read_timeout": access.timeout_s,
        "max_pool_connections": max(access.connections, 10),
    }
    if access.gateway:
        unsigned = importlib.import_module("botocore").UNSIGNED
        boto = importlib.import_module("boto3").Session(region_name=BEDROCK_REGION)
        config = config_class(signature_version=unsigned, **options)
        client = boto.client("bedrock-runtime", endpoint_url=access.base, config=config)
        client.meta.events.register("before-send.bedrock-runtime", _bedrock_header(access.key))
        made = _create("bedrock", access, client=client)
    else:
        made = _create("bedrock", access, config=config_class(**options))
    no_answer = (errors.HTTPClientError, errors.ConnectionError, *_transport_errors())
    return Provider(complete=made.acompletion, no_answer=no_answer)


def _bedrock_header(key: str | None) -> Callable[..., None]:
    def set_key(request: Any, **_: Any) -> None:
        for name in OWN_CREDENTIALS:
            if name in request.headers:
                del request.headers[name]
        request.headers[GATEWAY_HEADER] = key

    return set_key


def _not_about_blocking(record: logging.LogRecord) -> bool:
    """any-llm warns on every call that this client blocks; here it blocks a thread of its own."""
    return "does not support async" not in str(record.msg)


def _azure(access: Access) -> Provider:
    transports = importlib.import_module("azure.core.pipeline.transport")
    errors = importlib.import_module("azure.core.exceptions")
    options: dict[str, Any] = {
        # this transport hands one time limit on to requests, which takes a pair too
        "transport": transports.AsyncioRequestsTransport(connection_timeout=(CONNECT_TIMEOUT_S, access.timeout_s)),
        "retry_total": 0,
        "permit_redirects": False,
    }
    if access.azure_foundry_api_version:
        options["api_version"] = access.azure_foundry_api_version
    if access.gateway:
        options |= {"headers": {GATEWAY_HEADER: access.key}, "authentication_policy": _no_authentication()}
    made = _create("azure", access, **options)
    no_answer = (errors.ServiceRequestError, errors.ServiceResponseError, *_transport_errors())
    return Provider(complete=made.acompletion, no_answer=no_answer, closers=[made.chat_client.close])


def _no_authentication() -> Any:
    return importlib.import_module("azure.core.pipeline.policies").SansIOHTTPPolicy()


def _any_other(name: str, access: Access) -> Provider:
    """A provider without a row here, called directly: whatever any-llm makes of it."""
    unsupported = importlib.import_module("any_llm.exceptions").UnsupportedParameterError
    try:
        made = _create(name, access, max_retries=0)
    except unsupported:
        made = _create(name, access)
    return Provider(complete=made.acompletion, no_answer=_transport_errors())


def _usual(limit: int) -> dict[str, Any]:
    """any-llm's own parameter; it passes it on under the name in the row."""
    return {"max_tokens": limit}


# any-llm sends OpenAI `max_completion_tokens`, which servers made after its older API don't know
OPENAI_LIMITS = {"max_completion_tokens": _usual, "max_tokens": lambda limit: {"extra_body": {"max_tokens": limit}}}
GROQ_LIMITS = {"max_tokens": _usual, "max_completion_tokens": lambda limit: {"max_completion_tokens": limit}}
AZURE_LIMITS = {
    "max_tokens": _usual,
    "max_completion_tokens": lambda limit: {"model_extras": {"max_completion_tokens": limit}},
}

# Anthropic, Azure's inference API and Bedrock have no JSON mode that any-llm can ask for
PROVIDERS: dict[str, ProviderRow] = {
    "openai": ProviderRow(build=_openai, token_limits=OPENAI_LIMITS, prices="openai"),
    "anthropic": ProviderRow(build=_anthropic, response_format=False, prices="anthropic"),
    "gemini": ProviderRow(build=_gemini, prices="google"),
    "groq": ProviderRow(build=_groq, token_limits=GROQ_LIMITS, prices="groq"),
    "mistral": ProviderRow(build=_mistral, prices="mistral"),
    "bedrock": ProviderRow(build=_bedrock, response_format=False, prices="aws"),
    "azureopenai": ProviderRow(build=_azureopenai, token_limits=OPENAI_LIMITS, prices="azure"),
    "azure": ProviderRow(build=_azure, token_limits=AZURE_LIMITS, response_format=False, prices="azure"),
}
