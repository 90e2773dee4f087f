"""HTTP to one peer: a keep-alive session, error classes by status, and the one retry policy.

Time limits and the 401 rule are the platform's contract for all of its peers; statuses and waits are in
``_retry``, and are public from here. The shape of the calls is for speed: the environment (proxies, CA
bundle) is looked up once a base URL, requests are sent prepared, bodies are read as they arrive.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlencode

import requests
import urllib3

from amp_evaluation._adapter import OneHostAdapter, Received
from amp_evaluation._retry import (
    MAX_RETRY_AFTER_S,
    RETRY_DELAYS_S,
    TOTAL_DEADLINE_S,
    TRANSIENT_STATUSES,
    RetryPolicy,
    classify,
    parse_retry_after,
)
from amp_evaluation._url import is_http_url
from amp_evaluation._version import __version__
from amp_evaluation.errors import (
    BodyCutError,
    ConfigError,
    PeerError,
    PeerTimeoutError,
    RefusedError,
    TransientError,
)

__all__ = [
    "CONNECT_TIMEOUT_S",
    "MAX_RETRY_AFTER_S",
    "READ_TIMEOUT_S",
    "RETRY_DELAYS_S",
    "TOTAL_DEADLINE_S",
    "TRANSIENT_STATUSES",
    "BodyTooLargeError",
    "HttpClient",
    "Reply",
    "RetryPolicy",
    "TokenProvider",
    "classify",
    "parse_retry_after",
]

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 30.0
IDLE_LIMIT_S = 30.0  # proxies and NAT forget idle connections without a word: a request on one hangs
CHUNK_BYTES = 1024 * 1024
ERROR_BODY_BYTES = 4096  # enough for an error code; the rest of an error page is of no use


class TokenProvider(Protocol):
    """Gives the current bearer token. A plain callable is one.

    It may have a method ``invalidate(token: str) -> None``, which is told of a token that a peer refused.
    """

    def __call__(self) -> str: ...


class BodyTooLargeError(PeerError):
    """The reply is larger than the caller can hold; ``size`` is its length in bytes as far as known."""

    def __init__(self, role: str, size: int) -> None:
        super().__init__(role, f"a reply of at least {size:,} bytes", status=200)
        self.size = size


@dataclass(slots=True)
class Reply:
    """A 2xx reply. Names of ``headers`` are found in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpClient:
    """All calls to one base URL. Safe to use from several threads."""

    def __init__(
        self,
        role: str,
        base_url: str,
        *,
        retry: RetryPolicy | None = None,
        read_timeout_s: float = READ_TIMEOUT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        self.role = role
        self.retry = RetryPolicy() if retry is None else retry
        self._base = _checked_base(role, base_url)
        self._timeout = (connect_timeout_s, read_timeout_s)
        self._session = requests.Session()
        settings = self._session.merge_environment_settings(self._base, {}, True, None, None)
        self._session.trust_env = False  # from here on: no look-ups a call, and .netrc never
        self._proxies, self._cert = settings["proxies"], settings["cert"]
        self._verify: bool | str = True if settings["verify"] is None else settings["verify"]
        self._session.headers["User-Agent"] = f"amp-evaluation/{__version__}"
        self._adapter = OneHostAdapter()
        self._session.mount(self._base, self._adapter)
        self._templates = {method: self._template(method) for method in ("GET", "POST")}
        self._last_used = self.retry.clock()

    def get(
        self,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        token: TokenProvider | None = None,
        headers: Mapping[str, str] | None = None,
        retry: bool = True,
        max_bytes: int | None = None,
    ) -> Reply:
        """GET ``base_url + path``. A 2xx body above ``max_bytes`` is not read: BodyTooLargeError."""
        query = f"?{urlencode(params)}" if params else ""
        request = self._prepare("GET", path + query)
        request.headers.update(headers or {})
        return self._call(request, token, retry, max_bytes)

    def post(
        self,
        path: str,
        *,
        body: bytes,
        content_type: str,
        token: TokenProvider | None = None,
        headers: Mapping[str, str] | None = None,
        retry: bool = True,
    ) -> Reply:
        """POST ``body``. It is sent again after transient errors: the peer must bear the same body twice."""
        request = self._prepare("POST", path)
        request.body = body
        request.headers["Content-Type"] = content_type
        request.headers["Content-Length"] = str(len(body))
        request.headers.update(headers or {})
        return self._call(request, token, retry, None)

    def close(self) -> None:
        """Close the connections. A later call opens new ones."""
        self._session.close()

    def _template(self, method: str) -> requests.PreparedRequest:
        return self._session.prepare_request(requests.Request(method, self._base))

    def _prepare(self, method: str, path: str) -> requests.PreparedRequest:
        """A copy of the template: preparing anew would parse the URL and all headers on every call."""
        template = self._templates[method]
        request = requests.PreparedRequest()
        request.__dict__.update(template.__dict__)
        request.url = self._base + path
        request.headers = template.headers.copy()
        return request

    def _call(
        self, request: requests.PreparedRequest, token: TokenProvider | None, retry: bool, max_bytes: int | None
    ) -> Reply:
        def attempt() -> Reply:
            return self._authorized(request, token, max_bytes)

        return self.retry.run(attempt, role=self.role) if retry else attempt()

    def _authorized(
        self, request: requests.PreparedRequest, token: TokenProvider | None, max_bytes: int | None
    ) -> Reply:
        """One try; a 401 is answered with one new token, on the last try as on the first."""
        if token is None:
            return self._send(request, max_bytes)
        used = token()
        self._bear(request, used)
        try:
            return self._send(request, max_bytes)
        except RefusedError as refusal:
            renewed = _renew(token, used) if refusal.status == 401 else None
            if renewed is None:
                raise
        self._bear(request, renewed)
        return self._send(request, max_bytes)

    def _bear(self, request: requests.PreparedRequest, token: str) -> None:
        if not (token.isascii() and token.isprintable()):  # the HTTP library would show it in its own error
            raise RefusedError(self.role, "the access token holds characters that no header can")
        request.headers["Authorization"] = f"Bearer {token}"

    def _send(self, request: requests.PreparedRequest, max_bytes: int | None) -> Reply:
        now = self.retry.clock()
        if now - self._last_used > IDLE_LIMIT_S:
            self._session.close()
        try:
            # Not by way of the session: its hooks, cookies and redirects are not for us, and cost a quarter of a call.
            response = self._adapter.fetch(
                request, timeout=self._timeout, proxies=self._proxies, verify=self._verify, cert=self._cert
            )
            try:
                return self._receive(response, max_bytes)
            finally:
                response.close()
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            raise self._foreign(error) from error
        finally:
            self._last_used = self.retry.clock()

    def _receive(self, response: Received, max_bytes: int | None) -> Reply:
        status, headers = response.status_code, response.headers
        if not 200 <= status < 300:
            raise classify(self.role, status, headers, self._error_body(response))
        if max_bytes is None:
            return Reply(status, headers, self._read(response, sys.maxsize))
        announced = response.raw.length_remaining  # None when the peer sends chunks
        if announced is not None and announced > max_bytes:
            raise BodyTooLargeError(self.role, announced)
        body = self._read(response, max_bytes)
        if len(body) > max_bytes:
            raise BodyTooLargeError(self.role, len(body))
        return Reply(status, headers, body)

    def _error_body(self, response: Received) -> bytes:
        """Its start, as far as it can be had: a refusal is one however its reply ends, and gateways often hang up."""
        try:
            return self._read(response, ERROR_BODY_BYTES)[:ERROR_BODY_BYTES]
        except (PeerTimeoutError, requests.RequestException, urllib3.exceptions.HTTPError, OSError):
            return b""

    def _read(self, response: Received, enough: int) -> bytes:
        """The body, or its start once that is over ``enough`` bytes; as it arrives, so that the deadline holds.

        BytesIO gives its buffer away without a copy: a page of traces can be tens of megabytes.
        """
        begin, received = self.retry.clock(), io.BytesIO()
        while chunk := response.raw.read1(CHUNK_BYTES, decode_content=True):
            received.write(chunk)
            if received.tell() > enough:
                break
            if self.retry.clock() - begin > self.retry.deadline_s:
                raise PeerTimeoutError(self.role, f"the reply took over {self.retry.deadline_s:g} s")
        return received.getvalue()

    def _foreign(self, error: Exception) -> TransientError:
        """The HTTP library's errors, mapped in one place. Their own texts name hosts, so they stay out."""
        for kinds, error_class, detail in FOREIGN_ERRORS:
            if isinstance(error, kinds):
                return error_class(self.role, detail)
        return TransientError(self.role, "no connection")


# First match wins. A body cut short is ProtocolError on a streamed read, ChunkedEncodingError elsewhere.
FOREIGN_ERRORS: tuple[tuple[tuple[type[Exception], ...], type[TransientError], str], ...] = (
    ((requests.ConnectTimeout,), PeerTimeoutError, "no connection in time"),
    ((requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError), PeerTimeoutError, "no reply in time"),
    (
        (urllib3.exceptions.ProtocolError, requests.exceptions.ChunkedEncodingError),
        BodyCutError,
        "the reply ended early",
    ),
    (
        (urllib3.exceptions.DecodeError, requests.exceptions.ContentDecodingError),
        BodyCutError,
        "the reply can't be unpacked",
    ),
    ((requests.exceptions.ProxyError,), TransientError, "the proxy gives no connection"),
    ((requests.exceptions.SSLError,), TransientError, "no secure connection (check the CA certificates)"),
)


def _checked_base(role: str, base_url: str) -> str:
    base = base_url.rstrip("/")
    if not is_http_url(base):
        raise ConfigError(f"{role}: the address {base_url!r} is not an http:// or https:// URL with a host")
    return base


def _renew(token: TokenProvider, used: str) -> str | None:
    """A new token after a refused one; None when the provider has no other."""
    invalidate: Callable[[str], None] | None = getattr(token, "invalidate", None)
    if invalidate is not None:
        invalidate(used)
        return token()
    fresh = token()
    return fresh if fresh != used else None
