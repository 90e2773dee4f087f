"""OAuth2 on the wire: what is sent to identity providers and what their replies mean."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation._oauth import (
    IdpConfig,
    credential_readings,
    may_be_misread,
    named_refusal,
    oauth_error,
    parse_token,
    split_url,
)
from amp_evaluation.errors import RefusedError


def idp(client_id: str = "job", secret: str = "plain-1") -> IdpConfig:
    return IdpConfig(token_url="https://idp/token", client_id=client_id, client_secret=secret)


def basic(reading: object) -> str:
    header: str = reading.headers["Authorization"]  # type: ignore[attr-defined]
    scheme, _, encoded = header.partition(" ")
    assert scheme == "Basic"
    return base64.b64decode(encoded).decode()


def test_plain_characters_are_read_alike_so_basic_is_tried_once() -> None:
    first, last = credential_readings(idp("a-b.c_d~1", "x"))
    assert basic(first) == "a-b.c_d~1:x"
    assert last.form == {"client_id": "a-b.c_d~1", "client_secret": "x"}
    assert not last.headers


def test_odd_characters_are_sent_encoded_then_plain_then_in_the_form() -> None:
    encoded, plain, form = credential_readings(idp("id", "a+b%c:d/e f"))
    assert basic(encoded) == "id:a%2Bb%25c%3Ad%2Fe%20f"
    assert basic(plain) == "id:a+b%c:d/e f"
    assert form.form["client_secret"] == "a+b%c:d/e f"


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_never_two_methods_in_one_request(client_id: str, secret: str) -> None:
    for reading in credential_readings(idp(client_id, secret)):
        assert bool(reading.headers) != bool(reading.form)


def test_the_secret_is_not_in_the_settings_repr() -> None:
    assert "plain-1" not in repr(idp())


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"error": "invalid_client"}', "invalid_client"),
        (b'{"error": "my-secret"}', ""),
        (b'{"error": ["invalid_client"]}', ""),
        (b'["invalid_client"]', ""),
        (b"<html>", ""),
        (b"[" * 100_000, ""),
    ],
)
def test_only_known_error_codes_are_taken_from_a_reply(body: bytes, code: str) -> None:
    assert oauth_error(RefusedError("idp", "HTTP 400", status=400, body=body)) == code


@pytest.mark.parametrize(
    ("status", "error", "misread"),
    [
        (401, "", True),
        (401, "invalid_client", True),
        (400, "invalid_request", True),
        (400, "invalid_client", True),
        (400, "unauthorized_client", False),
        (403, "invalid_client", False),
    ],
)
def test_which_refusals_may_come_from_how_the_credentials_were_written(status: int, error: str, misread: bool) -> None:
    refusal = RefusedError("idp", f"HTTP {status}", status=status, body=json.dumps({"error": error}).encode())
    assert may_be_misread(refusal) is misread


@pytest.mark.parametrize(("status", "hint"), [(401, "IDP_CLIENT_ID"), (403, "the rights")])
def test_a_refusal_is_told_by_role_status_code_and_hint(status: int, hint: str) -> None:
    refusal = RefusedError("x", "HTTP", status=status, hint="the rights", body=b'{"error": "invalid_client"}')
    told = str(named_refusal(refusal))
    assert told.startswith(f"identity provider: HTTP {status} invalid_client (")
    assert hint in told


@pytest.mark.parametrize(
    ("expires_in", "life_s"),
    [
        (300, 300.0),
        ("300", 300.0),
        ("12.5", 12.5),
        (None, 3600.0),
        ("soon", 3600.0),
        ("inf", 3600.0),
        ([], 3600.0),
        pytest.param(10**400, 3600.0, id="a number that no float holds"),
    ],
)
def test_a_tokens_life_is_read_in_every_form(expires_in: object, life_s: float) -> None:
    body = json.dumps({"access_token": "t", "expires_in": expires_in}).encode()
    assert parse_token(body) == ("t", life_s)
    assert parse_token(b'{"access_token": "t"}') == ("t", 3600.0)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b'{"access_token": ""}', b'{"access_token": 1}'])
def test_a_reply_without_a_token_is_refused_without_being_shown(body: bytes) -> None:
    with pytest.raises(RefusedError, match="no access token"):
        parse_token(body)


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://idp/token", ("https://idp", "/token")),
        ("https://idp:8443/o/token/?tenant=a%2Fb", ("https://idp:8443", "/o/token/?tenant=a%2Fb")),
        ("https://idp", ("https://idp", "/")),
    ],
)
def test_a_token_url_keeps_its_last_slash_and_query(url: str, parts: tuple[str, str]) -> None:
    assert split_url(url) == parts
