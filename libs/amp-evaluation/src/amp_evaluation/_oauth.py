"""OAuth2 client credentials on the wire: how they are sent, and what an identity provider's replies say.

Pure: it sends nothing. Sources: RFC 6749 (2.3.1, 4.4, 5.2) and how servers in use differ from it.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit, urlunsplit

from amp_evaluation.errors import RefusedError

__all__ = [
    "IDENTITY_PROVIDER",
    "Credentials",
    "IdpConfig",
    "credential_readings",
    "may_be_misread",
    "named_refusal",
    "parse_token",
    "split_url",
]

IDENTITY_PROVIDER = "identity provider"
"""Its role: what the log calls it, instead of its host."""

DEFAULT_TOKEN_LIFE_S = 3600.0
"""Life of a token whose reply doesn't tell it."""


@dataclass(frozen=True, kw_only=True)
class IdpConfig:
    """The OAuth2 client whose token goes to the traces API and the publisher."""

    token_url: str
    client_id: str
    client_secret: str = field(repr=False)


@dataclass(frozen=True)
class Credentials:
    """One way to tell the identity provider who asks: extra form fields, or a header."""

    form: Mapping[str, str]
    headers: Mapping[str, str]


def credential_readings(idp: IdpConfig) -> list[Credentials]:
    """The ways to send id and secret, the standard's first; servers differ in how they read them.

    RFC 6749, 2.3.1 encodes both before Basic's own encoding. Servers that don't decode want the plain text, and some
    take credentials only in the form. Never two ways in one request: the standard forbids it.
    """
    plain = (idp.client_id, idp.client_secret)
    encoded = tuple(quote(text, safe="") for text in plain)
    readings = [Credentials({}, _basic(*encoded))]
    if encoded != plain:
        readings.append(Credentials({}, _basic(*plain)))
    readings.append(Credentials({"client_id": idp.client_id, "client_secret": idp.client_secret}, {}))
    return readings


def _basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")}


def split_url(url: str) -> tuple[str, str]:
    """Scheme and host, and the rest: a token endpoint's last slash and query are part of its name."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}", urlunsplit(("", "", parts.path or "/", parts.query, ""))


OAUTH_ERRORS = (
    *("invalid_request", "invalid_client", "invalid_grant"),
    *("unauthorized_client", "unsupported_grant_type", "invalid_scope"),
)


def oauth_error(refusal: RefusedError) -> str:
    """The reply's OAuth error code (RFC 6749, 5.2), or "". Only known codes: a reply can hold anything, secrets too."""
    try:
        code = json.loads(refusal.body).get("error")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return code if isinstance(code, str) and code in OAUTH_ERRORS else ""


def may_be_misread(refusal: RefusedError) -> bool:
    """The identity provider may have read the credentials another way than they were written."""
    return refusal.status == 401 or (
        refusal.status == 400 and oauth_error(refusal) in ("invalid_request", "invalid_client")
    )


def named_refusal(refusal: RefusedError) -> RefusedError:
    detail = " ".join(filter(None, [f"HTTP {refusal.status}", oauth_error(refusal)]))
    hint = "check IDP_CLIENT_ID and IDP_CLIENT_SECRET" if refusal.status in (400, 401) else refusal.hint
    return RefusedError(IDENTITY_PROVIDER, detail, status=refusal.status, hint=hint)


def parse_token(body: bytes) -> tuple[str, float]:
    """The access token and its life in seconds. `expires_in` comes as number or text, or not at all."""
    try:
        reply = json.loads(body)
        token = reply["access_token"]
    except (ValueError, LookupError, TypeError, RecursionError):
        token = None
    if not isinstance(token, str) or not token:
        raise RefusedError(IDENTITY_PROVIDER, "the reply holds no access token", hint="check IDP_TOKEN_URL")
    try:
        life_s = float(reply.get("expires_in"))
    except (ValueError, TypeError, OverflowError):
        life_s = DEFAULT_TOKEN_LIFE_S
    return token, life_s if math.isfinite(life_s) else DEFAULT_TOKEN_LIFE_S
