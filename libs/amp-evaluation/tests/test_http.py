"""The HTTP client against real sockets: statuses, broken replies, waits, tokens, connections."""

from __future__ import annotations

import gzip
import logging
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import Request, Response, Server

from amp_evaluation.errors import (
    BodyCutError,
    ConfigError,
    PeerError,
    PeerTimeoutError,
    RefusedError,
    TransientError,
)
from amp_evaluation.http import (
    TRANSIENT_STATUSES,
    BodyTooLargeError,
    HttpClient,
    RetryPolicy,
    classify,
    parse_retry_after,
)

OK = Response(200, b'{"fine": true}')
ROLE = "publisher"


class Peer:
    """A server that gives one reply after the other, the last one for ever; naps are counted, never slept."""

    def __init__(self) -> None:
        self.replies: list[Response | Callable[[Request], Response]] = [OK]
        self.naps: list[float] = []
        self.time = 1000.0
        self.server = Server("peer", self._next)

    def _next(self, request: Request) -> Response:
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return reply(request) if callable(reply) else reply

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.time += seconds

    @property
    def retry(self) -> RetryPolicy:
        return RetryPolicy(clock=lambda: self.time, sleep=self.sleep)

    def client(self, **options: float) -> HttpClient:
        return HttpClient(ROLE, self.server.url, retry=self.retry, **options)


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.server.close()


class Tokens:
    """Gives t1, t2, … : a new one after each ``invalidate``."""

    def __init__(self) -> None:
        self.number = 1
        self.dropped: list[str] = []

    def __call__(self) -> str:
        return f"t{self.number}"

    def invalidate(self, token: str) -> None:
        self.dropped.append(token)
        self.number += 1


def only(*accepted: str) -> Callable[[Request], Response]:
    return lambda request: OK if request.bearer in accepted else Response(401)


# --- which error --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", sorted(TRANSIENT_STATUSES))
def test_a_status_that_asks_for_patience_is_tried_four_times(peer: Peer, status: int) -> None:
    peer.replies = [Response(status)]
    with pytest.raises(TransientError, match=f"publisher: HTTP {status}") as caught:
        peer.client().get("/x")
    assert caught.value.status == status
    assert len(peer.server.requests) == 4
    assert peer.naps == [2.0, 4.0, 8.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 413, 422, 501, 505])
def test_every_other_refusal_is_final_at_once(peer: Peer, status: int) -> None:
    peer.replies = [Response(status, b'{"error": "invalid_client"}')]
    with pytest.raises(RefusedError) as caught:
        peer.client().post("/x", body=b"{}", content_type="application/json")
    assert (caught.value.status, len(peer.server.requests), peer.naps) == (status, 1, [])
    assert caught.value.body == b'{"error": "invalid_client"}'
    assert "invalid_client" not in str(caught.value), "a reply's body may hold anything"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_redirect_is_a_clear_error_and_never_followed(peer: Peer, status: int, method: str) -> None:
    peer.replies = [Response(status, headers={"Location": peer.server.url + "/elsewhere"})]
    client = peer.client()
    with pytest.raises(RefusedError, match="redirect"):
        if method == "get":
            client.get("/x")
        else:
            client.post("/x", body=b"{}", content_type="application/json")
    assert [request.path for request in peer.server.requests] == ["/x"]


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

BROKEN: dict[str, tuple[Response, type[TransientError]]] = {
    "a body shorter than its length": (Response(200, b"x" * 5000, breakage="cut"), BodyCutError),
    "chunks without an end": (Response(body=CHUNKED + b"5\r\nabcde\r\n", breakage="raw"), BodyCutError),
    "a chunk that stops inside": (Response(body=CHUNKED + b"50\r\nabcde", breakage="raw"), BodyCutError),
    "gzip that isn't": (Response(200, b"not gzip", {"Content-Encoding": "gzip"}), BodyCutError),
    "a reset": (Response(breakage="reset"), TransientError),
    "a close before the reply": (Response(breakage="close"), TransientError),
    "no HTTP at all": (Response(body=b"SSH-2.0-x\r\n\r\n", breakage="raw"), TransientError),
}


@pytest.mark.parametrize(("broken", "kind"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_reply_is_transient(peer: Peer, broken: Response, kind: type[TransientError]) -> None:
    peer.replies = [broken]
    with pytest.raises(kind) as caught:
        peer.client().get("/x")
    assert len(peer.server.requests) == 4
    assert "127.0.0.1" not in str(caught.value)


@pytest.mark.parametrize(("broken", "kind"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_reply_followed_by_a_good_one_is_good(
    peer: Peer, broken: Response, kind: type[TransientError]
) -> None:
    peer.replies = [broken, OK]
    assert peer.client().get("/x").body == OK.body
    assert peer.naps == [2.0]


@pytest.mark.parametrize("status", [401, 403, 404, 413, 503])
@pytest.mark.parametrize(
    "rest", [b"Content-Length: 500\r\n\r\n{", b"Content-Encoding: gzip\r\n\r\nplain"], ids=["cut", "no gzip"]
)
def test_a_status_counts_however_the_reply_ends(peer: Peer, status: int, rest: bytes) -> None:
    peer.replies = [Response(body=f"HTTP/1.1 {status} No\r\n".encode() + rest, breakage="raw")]
    with pytest.raises(PeerError) as caught:
        peer.client().post("/x", body=b"{}", content_type="application/json", retry=False)
    assert (caught.value.status, type(caught.value)) == (status, TransientError if status == 503 else RefusedError)


def test_a_refusal_whose_body_stalls_is_one(peer: Peer) -> None:
    peer.replies = [Response(body=b"HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\n123456789", breakage="raw", drip_s=0.5)]
    with pytest.raises(RefusedError, match="HTTP 403"):
        peer.client(read_timeout_s=0.1).get("/x")


def test_no_reply_in_time_is_a_timeout(peer: Peer) -> None:
    peer.replies = [Response(delay_s=0.6)]
    with pytest.raises(PeerTimeoutError, match="publisher: no reply in time"):
        peer.client(read_timeout_s=0.1).get("/x", retry=False)


def test_a_body_that_stalls_is_a_timeout(peer: Peer) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
    peer.replies = [Response(body=head + b"ab", breakage="raw", drip_s=0.5)]
    with pytest.raises(PeerTimeoutError):
        peer.client(read_timeout_s=0.1).get("/x", retry=False)


def test_a_body_that_drips_ends_with_the_total_deadline(peer: Peer) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"
    peer.replies = [Response(body=head + b"a" * 900, breakage="raw", drip_s=0.02)]
    client = HttpClient(ROLE, peer.server.url, retry=RetryPolicy(deadline_s=0.3, sleep=peer.sleep))
    begin = time.monotonic()
    with pytest.raises(PeerTimeoutError, match="took over"):
        client.get("/x")
    assert time.monotonic() - begin < 3


def test_a_refused_connection_is_transient_and_names_no_host(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    peer.server.close()
    with pytest.raises(TransientError) as caught:
        peer.client().get("/x")
    assert caught.value.status is None
    for text in (str(caught.value), caplog.text):
        assert "127.0.0.1" not in text
        assert str(peer.server.port) not in text


# --- waits --------------------------------------------------------------------------------------------


def test_two_503s_then_a_reply(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    peer.replies = [Response(503), Response(503), OK]
    assert peer.client().get("/x").body == OK.body
    assert peer.naps == [2.0, 4.0]
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", "publisher: HTTP 503, retry 1 of 3 in 2 s"),
        ("WARNING", "publisher: HTTP 503, retry 2 of 3 in 4 s"),
    ]


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [("7", 7, 7), ("3600", 60, 60), ("0", 0, 0), ("-5", 0, 0), ("1.5", 1.5, 1.5), ("soon", 2, 2), ("inf", 2, 2)],
)
def test_a_retry_after_goes_before_the_schedule_up_to_60_s(peer: Peer, header: str, low: float, high: float) -> None:
    peer.replies = [Response(429, headers={"Retry-After": header}), OK]
    peer.client().get("/x")
    assert low <= peer.naps[0] <= high


def test_a_retry_after_can_be_a_date(peer: Peer) -> None:
    peer.replies = [Response(503, headers={"Retry-After": formatdate(time.time() + 20, usegmt=True)}), OK]
    peer.client().get("/x")
    assert 17 <= peer.naps[0] <= 20


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("nonsense", None),
        ("nan", None),
        ("Thu, 15 Jan 2026 10:00:30 GMT", 30.0),
        ("Thu, 15 Jan 2026 09:00:00 GMT", 0.0),
        ("Thu, 99 Jan 2026 09:00:00 GMT", None),
        ("12", 12.0),
    ],
)
def test_retry_after_is_read_in_both_forms(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, now=1768471200.0) == seconds


def test_no_wait_goes_past_the_deadline(peer: Peer) -> None:
    peer.replies = [Response(503, headers={"Retry-After": "60"})]
    client = HttpClient(
        ROLE, peer.server.url, retry=RetryPolicy(deadline_s=100, clock=lambda: peer.time, sleep=peer.sleep)
    )
    with pytest.raises(TransientError):
        client.get("/x")
    assert peer.naps == [60.0]


def test_without_retry_there_is_one_try(peer: Peer) -> None:
    peer.replies = [Response(503)]
    with pytest.raises(TransientError):
        peer.client().get("/x", retry=False)
    assert len(peer.server.requests) == 1


def test_a_policy_around_another_does_not_start_over(peer: Peer) -> None:
    peer.replies = [Response(503)]
    client = peer.client()
    with pytest.raises(TransientError):
        client.retry.run(lambda: client.get("/x"), role=ROLE)
    assert len(peer.server.requests) == 4


@given(
    attempt=st.integers(0, 9),
    retry_after=st.none() | st.floats(0, 1e6),
    elapsed=st.floats(0, 1e4),
    delays=st.lists(st.floats(0, 100), max_size=5).map(tuple),
)
def test_a_wait_is_within_its_limits(
    attempt: int, retry_after: float | None, elapsed: float, delays: tuple[float, ...]
) -> None:
    policy = RetryPolicy(delays=delays)
    wait = policy.next_delay(attempt, TransientError("x", "y", retry_after=retry_after), elapsed)
    if wait is not None:
        assert attempt < len(delays)
        assert elapsed + wait < policy.deadline_s
        assert wait <= max(policy.max_retry_after_s, *delays)


# --- tokens -------------------------------------------------------------------------------------------


def test_a_401_is_met_with_one_new_token(peer: Peer) -> None:
    tokens = Tokens()
    peer.replies = [only("t2")]
    assert peer.client().get("/x", token=tokens).body == OK.body
    assert (tokens.dropped, peer.naps) == (["t1"], [])


def test_a_second_401_is_final(peer: Peer) -> None:
    peer.replies = [only()]
    with pytest.raises(RefusedError) as caught:
        peer.client().get("/x", token=Tokens())
    assert (caught.value.status, len(peer.server.requests)) == (401, 2)


def test_a_401_on_the_last_try_is_met_with_a_new_token_too(peer: Peer) -> None:
    peer.replies = [Response(503), Response(503), Response(503), only("t2")]
    assert peer.client().post("/x", body=b"1", content_type="text/plain", token=Tokens()).body == OK.body


def test_a_401_without_retries_is_met_with_a_new_token_too(peer: Peer) -> None:
    peer.replies = [only("t2")]
    assert peer.client().get("/x", token=Tokens(), retry=False).body == OK.body


def test_a_plain_callable_is_asked_again_for_another_token(peer: Peer) -> None:
    given_out = iter(["t1", "t2"])
    peer.replies = [only("t2")]
    assert peer.client().get("/x", token=lambda: next(given_out)).body == OK.body


def test_a_plain_callable_with_one_token_only_is_refused_after_one_request(peer: Peer) -> None:
    peer.replies = [only("other")]
    with pytest.raises(RefusedError):
        peer.client().get("/x", token=lambda: "t1")
    assert len(peer.server.requests) == 1


def test_a_403_never_costs_a_token(peer: Peer) -> None:
    tokens = Tokens()
    peer.replies = [Response(403)]
    with pytest.raises(RefusedError):
        peer.client().get("/x", token=tokens)
    assert tokens.dropped == []


def test_a_token_source_that_gave_up_is_not_asked_all_over(peer: Peer) -> None:
    calls = []

    def down() -> str:
        calls.append(1)
        raise TransientError("identity provider", "HTTP 503")

    source = RetryPolicy(delays=(), sleep=peer.sleep)
    with pytest.raises(TransientError, match="identity provider"):
        peer.client().get("/x", token=lambda: source.run(down, role="identity provider"))
    assert len(calls) == 1


@pytest.mark.parametrize("token", ["s3cret\nX-Evil: 1", "s3cr\u00e9t", "s3cret\x00"])
def test_a_token_that_no_header_can_hold_is_refused_without_showing_it(peer: Peer, token: str) -> None:
    with pytest.raises(RefusedError) as caught:
        peer.client().get("/x", token=lambda: token)
    assert "cr" not in str(caught.value).replace("access", "").replace("character", "")
    assert peer.server.requests == []


def test_no_text_shows_a_token_or_a_secret(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="amp_evaluation")
    peer.replies = [Response(503, b"t0ken-of-mine"), Response(401, b"t0ken-of-mine")]
    with pytest.raises(PeerError) as caught:
        peer.client().post("/x", body=b"t0ken-of-mine", content_type="text/plain", token=lambda: "t0ken-of-mine")
    for text in (str(caught.value), caplog.text):
        assert "t0ken" not in text
        assert "127.0.0.1" not in text


# --- what is sent -------------------------------------------------------------------------------------


def test_a_request_arrives_as_it_was_meant(peer: Peer) -> None:
    client = peer.client()
    client.get("/a", params={"q": "x y&z", "t": "2026-01-15T10:00:00+00:00"}, token=lambda: "abc", headers={"X-A": "1"})
    client.post("/b", body=b"\x00\xff", content_type="application/json", headers={"api-key": "k"})
    first, second = peer.server.requests
    assert (first.method, first.path) == ("GET", "/a")
    assert first.query == {"q": "x y&z", "t": "2026-01-15T10:00:00+00:00"}
    assert (first.headers["authorization"], first.headers["x-a"]) == ("Bearer abc", "1")
    assert (second.method, second.path, second.body) == ("POST", "/b", b"\x00\xff")
    assert (second.headers["content-type"], second.headers["api-key"]) == ("application/json", "k")
    assert "authorization" not in second.headers, "one call's headers are not the next one's"
    assert second.headers["user-agent"].startswith("amp-evaluation/")


def test_a_trailing_slash_of_the_base_makes_one_slash(peer: Peer) -> None:
    HttpClient(ROLE, peer.server.url + "/base/").get("/x")
    assert peer.server.requests[0].path == "/base/x"


def test_a_base_can_be_the_whole_url(peer: Peer) -> None:
    HttpClient(ROLE, peer.server.url + "/oauth2/token").post("", body=b"", content_type="text/plain")
    assert peer.server.requests[0].path == "/oauth2/token"


@pytest.mark.parametrize(
    "base",
    [
        *("", "example.org", "ftp://example.org", "http://", "http://[::1", "http://h:99999"),
        *("http://.example.org", "http://*.example.org", "http://two words", "http://example.org\n"),
    ],
)
def test_a_base_that_is_no_http_url_is_a_config_error(base: str) -> None:
    with pytest.raises(ConfigError, match="publisher"):
        HttpClient(ROLE, base)


def test_netrc_never_replaces_the_token(peer: Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login joe password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    client = peer.client()
    client.get("/x", token=lambda: "abc")
    client.get("/x")
    assert peer.server.requests[0].headers["authorization"] == "Bearer abc"
    assert "authorization" not in peer.server.requests[1].headers


def test_a_proxy_of_the_environment_is_used(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", peer.server.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    client = HttpClient(ROLE, "http://traces.invalid")
    monkeypatch.delenv("http_proxy")  # the environment is read once, when the client is made
    assert client.get("/x").body == OK.body


def test_a_host_that_needs_no_proxy_is_reached_directly(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert peer.client().get("/x").body == OK.body


def test_a_ca_bundle_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "missing.pem"))
    naps: list[float] = []
    with pytest.raises(TransientError) as caught:
        HttpClient(ROLE, "https://127.0.0.1:9", retry=RetryPolicy(sleep=naps.append)).get("/x")
    assert str(tmp_path) not in str(caught.value)


# --- what is received ---------------------------------------------------------------------------------


def test_gzip_is_decoded(peer: Peer) -> None:
    peer.replies = [Response(200, gzip.compress(b"x" * 300_000), {"Content-Encoding": "gzip"})]
    assert peer.client().get("/x").body == b"x" * 300_000
    assert "gzip" in peer.server.requests[0].headers["accept-encoding"]


def test_chunks_are_joined(peer: Peer) -> None:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (b"abc", b"d" * 9000, b"e")) + b"0\r\n\r\n"
    peer.replies = [Response(body=CHUNKED + chunks, breakage="raw")]
    assert peer.client().get("/x").body == b"abc" + b"d" * 9000 + b"e"


def test_headers_of_a_reply_are_found_in_any_case(peer: Peer) -> None:
    peer.replies = [Response(201, b"", {"X-Thing": "1"})]
    reply = peer.client().get("/x")
    assert (reply.status, reply.headers["x-thing"], reply.body) == (201, "1", b"")


LARGE = b"x" * 100_000
LARGE_REPLIES = {
    "by its length": Response(200, LARGE),
    "in chunks": Response(body=CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (len(LARGE), LARGE), breakage="raw"),
    "unpacked": Response(200, gzip.compress(LARGE), {"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("reply", LARGE_REPLIES.values(), ids=LARGE_REPLIES.keys())
def test_a_reply_above_the_limit_is_not_read(peer: Peer, reply: Response) -> None:
    peer.replies = [reply]
    client = peer.client()
    with pytest.raises(BodyTooLargeError) as caught:
        client.get("/x", max_bytes=99_999)
    assert caught.value.size >= 100_000
    assert client.get("/x", max_bytes=100_000).body == LARGE
    assert len(peer.server.requests) == 2, "it is no fault, and not retried"


# --- connections --------------------------------------------------------------------------------------


def test_calls_share_one_connection(peer: Peer) -> None:
    client = peer.client()
    peer.replies = [OK, Response(404, b"n" * 100), Response(503, b"busy"), OK]
    client.get("/a")
    with pytest.raises(RefusedError):
        client.get("/b")
    client.post("/c", body=b"{}", content_type="application/json")
    client.get("/d", max_bytes=1000)
    assert peer.server.connections == 1


def test_a_connection_that_died_meanwhile_is_replaced(peer: Peer) -> None:
    client = peer.client()
    client.get("/a")
    peer.server.drop_connections()
    time.sleep(0.05)
    client.post("/b", body=b"{}", content_type="application/json")
    assert (peer.naps, peer.server.connections) == ([], 2)


def test_a_connection_that_idled_too_long_is_not_trusted(peer: Peer) -> None:
    client = peer.client()
    client.get("/a")
    peer.time += 31
    client.get("/b")
    assert peer.server.connections == 2


def test_closing_is_not_the_end(peer: Peer) -> None:
    client = peer.client()
    client.get("/a")
    client.close()
    assert client.get("/b").status == 200


def test_classify_is_public_for_clients_of_other_kinds() -> None:
    error = classify("judge", 429, {"Retry-After": "9"}, b"quota")
    assert isinstance(error, TransientError)
    assert (error.role, error.status, error.retry_after, error.body) == ("judge", 429, 9.0, b"quota")
