"""The identity provider: client credentials by Basic or in the form, with servers of both readings."""

from __future__ import annotations

import base64
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote_plus

from loopback._server import Request, Response

ABSENT = object()


@dataclass
class IdentityProvider:
    """``decodes``: whether Basic's parts are url-decoded, as RFC 6749 2.3.1 has it. ``methods``: what is taken."""

    now: Callable[[], float]
    client_id: str = "amp-job"
    client_secret: str = "s3cret-of-the-job"
    decodes: bool = True
    methods: frozenset[str] = frozenset({"basic", "post"})
    life_s: float = 3600.0
    expires_in: Any = None  # what the reply says; None: life_s, ABSENT: nothing
    issued: list[str] = field(default_factory=list)
    _expiry: dict[str, float] = field(default_factory=dict)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))
    _lock: Any = field(default_factory=threading.Lock)

    def handle(self, request: Request) -> Response:
        if request.method != "POST" or request.path != "/oauth2/token":
            return Response.of(404, {"error": "not_found"})
        if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            return Response.of(400, {"error": "invalid_request"})
        form = {name: values[0] for name, values in parse_qs(request.body.decode(), keep_blank_values=True).items()}
        if form.get("grant_type") != "client_credentials":
            return Response.of(400, {"error": "unsupported_grant_type"})
        return self._judge(request.headers.get("authorization"), form)

    def _judge(self, authorization: str | None, form: dict[str, str]) -> Response:
        in_form = "client_id" in form or "client_secret" in form
        if authorization and in_form:
            return Response.of(400, {"error": "invalid_request", "error_description": "two methods"})
        method = "post" if in_form else "basic"
        given = (form.get("client_id"), form.get("client_secret")) if in_form else self._basic(authorization)
        if method not in self.methods or given != (self.client_id, self.client_secret):
            return Response.of(401, {"error": "invalid_client"}, **{"WWW-Authenticate": "Basic"})
        return self.issue()

    def _basic(self, authorization: str | None) -> tuple[str | None, str | None]:
        scheme, _, encoded = (authorization or "").partition(" ")
        if scheme != "Basic":
            return None, None
        name, _, secret = base64.b64decode(encoded).decode().partition(":")
        return (unquote_plus(name), unquote_plus(secret)) if self.decodes else (name, secret)

    def issue(self) -> Response:
        """A new token, as the reply that bears it."""
        with self._lock:
            token = f"token-{next(self._numbers)}-{id(self):x}"
            self.issued.append(token)
            self._expiry[token] = self.now() + self.life_s
        reply: dict[str, Any] = {"access_token": token, "token_type": "Bearer"}
        if self.expires_in is not ABSENT:
            reply["expires_in"] = int(self.life_s) if self.expires_in is None else self.expires_in
        return Response.of(200, reply)

    def accepts(self, request: Request) -> bool:
        """Whether the request bears a token of this provider that hasn't expired or been revoked."""
        return self._expiry.get(request.bearer, float("-inf")) > self.now()

    def revoke_all(self) -> None:
        with self._lock:
            self._expiry.clear()
