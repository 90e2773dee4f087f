"""The platform on loopback is as strict as it says: a lax fake would let the job's faults through."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
import requests
from loopback import MONITOR_ID, RUN_ID, Platform, bare, benchmark, heavy, series, simple, span, to_ns, trace_id, whole

S = 1_000_000_000
TEN = to_ns("2026-01-15T10:00:00Z")
ODD_SECRET = "a+b%c:d/e f"


def basic(name: str, secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{name}:{secret}".encode()).decode()}


def ask_token(platform: Platform, headers: dict[str, str] | None = None, **form: str) -> requests.Response:
    form.setdefault("grant_type", "client_credentials")
    return requests.post(platform.token_url, data=form, headers=headers, timeout=5)


@pytest.mark.parametrize(
    ("decodes", "sent", "status"),
    [
        (True, quote(ODD_SECRET, safe=""), 200),
        (True, quote_plus(ODD_SECRET), 200),
        (True, ODD_SECRET, 401),
        (False, ODD_SECRET, 200),
        (False, quote(ODD_SECRET, safe=""), 401),
    ],
)
def test_an_identity_provider_decodes_or_does_not(decodes: bool, sent: str, status: int) -> None:
    with Platform() as platform:
        platform.fault("token_secret_decoded" if decodes else "token_secret_plain")
        assert ask_token(platform, basic("amp-job", sent)).status_code == status


def test_the_token_endpoint_refuses_all_but_one_well_formed_method() -> None:
    with Platform() as platform:
        good = basic(platform.idp.client_id, platform.idp.client_secret)
        post = {"client_id": platform.idp.client_id, "client_secret": platform.idp.client_secret}
        assert ask_token(platform, good).status_code == 200
        assert ask_token(platform, **post).status_code == 200
        assert ask_token(platform, good, **post).json()["error"] == "invalid_request"
        assert ask_token(platform, good, grant_type="password").status_code == 400
        assert ask_token(platform).json()["error"] == "invalid_client"
        assert requests.post(platform.token_url, json={}, headers=good, timeout=5).status_code == 400
        platform.fault("token_post_only")
        assert ask_token(platform, good).status_code == 401


QUERY = {
    "organization": "a",
    "project": "b",
    "agent": "c",
    "environment": "d",
    "startTime": "2026-01-15T00:00:00Z",
    "endTime": "2026-01-16T00:00:00+00:00",
    "sortOrder": "asc",
}


def export(platform: Platform, token: str | None = None, **over: str) -> requests.Response:
    query = {name: value for name, value in (QUERY | over).items() if value != "-"}
    headers = {"Authorization": f"Bearer {platform.token() if token is None else token}"}
    return requests.get(platform.traces_url + "/api/v1/traces/export", params=query, headers=headers, timeout=5)


@pytest.mark.parametrize(
    ("over", "status"),
    [
        ({}, 200),
        ({"organization": "-"}, 400),
        ({"environment": ""}, 400),
        ({"startTime": "2026-01-15T00:00:00"}, 400),
        ({"startTime": "2026-01-15"}, 400),
        ({"endTime": "-"}, 400),
        ({"startTime": "2026-01-17T00:00:00Z"}, 400),
        ({"limit": "0"}, 400),
        ({"limit": "1001"}, 400),
        ({"sortOrder": "up"}, 400),
        ({"startTime": "2025-12-01T00:00:00Z"}, 500),
    ],
)
def test_the_traces_api_is_strict_about_its_query(over: dict[str, str], status: int) -> None:
    with Platform(series(3)) as platform:
        assert export(platform, **over).status_code == status


def test_a_token_that_expired_or_was_revoked_or_never_was_is_refused() -> None:
    with Platform() as platform:
        platform.idp.life_s = 5
        token = platform.token()
        assert export(platform, token).status_code == 200
        platform.sleep(6)
        assert export(platform, token).status_code == 401
        assert export(platform, "made up").status_code == 401
        token = platform.token()
        platform.idp.revoke_all()
        assert export(platform, token).status_code == 401


def test_the_window_filters_spans_and_not_traces() -> None:
    inner = [span(1, 1 + n, TEN + n * S, TEN + n * S + S // 2, parent=0) for n in range(1, 9)]
    with Platform([whole(1, [span(1, 0, TEN, TEN + 20 * S), *inner])]) as platform:
        (late,) = export(platform, startTime="2026-01-15T10:00:05Z").json()["traces"]
        assert (late["startTime"], late["spanCount"], "rootSpanId" in late) == ("2026-01-15T10:00:05Z", 4, False)
        (early,) = export(platform, endTime="2026-01-15T10:00:03Z").json()["traces"]
        assert (early["startTime"], early["spanCount"]) == ("2026-01-15T10:00:01Z", 2)
        instant = "2026-01-15T10:00:00Z"
        assert export(platform, startTime=instant, endTime=instant).json()["traces"] == []


def test_order_and_total_are_of_the_whole_window() -> None:
    with Platform(series(30)) as platform:
        page = export(platform, limit="4", startTime="2026-01-15T10:00:10Z").json()
        assert [trace["traceId"] for trace in page["traces"]] == [trace_id(n) for n in (10, 11, 12, 13)]
        assert (page["totalCount"], page["truncated"]) == (20, False)
        newest = export(platform, limit="2", sortOrder="desc").json()["traces"]
        assert [trace["traceId"] for trace in newest] == [trace_id(29), trace_id(28)]


def test_a_page_fails_when_it_would_hold_what_cannot_be_assembled() -> None:
    huge = whole(9, [span(9, n, TEN + 9 * S, TEN + 9 * S) for n in range(1001)])
    with Platform([*(bare(n, TEN + n * S) for n in range(5)), huge]) as platform:
        assert export(platform, limit="5").status_code == 200
        assert export(platform, limit="6").status_code == 500
        platform.break_traces(trace_id(2))
        assert [export(platform, limit=str(n)).status_code for n in (2, 3)] == [200, 500]


def score(**over: Any) -> dict[str, Any]:
    item = {
        "evaluatorName": "Latency",
        "level": "trace",
        "traceId": "t1",
        "score": 0.93216,
        "explanation": "fast",
        "traceStartTime": "2026-01-15T10:30:00Z",
    }
    return {name: value for name, value in (item | over).items() if value is not ...}


AGGREGATE = {
    "identifier": "latency_performance",
    "evaluatorName": "Latency",
    "level": "trace",
    "aggregations": {"mean": 0.93},
    "count": 1,
    "skippedCount": 0,
}


def post(platform: Platform, *items: dict[str, Any], run: str = RUN_ID, body: bytes | None = None) -> int:
    path = f"{platform.publisher_url}/api/v1/publisher/monitors/{MONITOR_ID}/runs/{run}/scores"
    data = json.dumps({"individualScores": items, "aggregatedScores": [AGGREGATE]}).encode() if body is None else body
    headers = {"Authorization": f"Bearer {platform.token()}", "Content-Type": "application/json"}
    return requests.post(path, data=data, headers=headers, timeout=5).status_code


@pytest.mark.parametrize(
    ("items", "status"),
    [
        ([score()], 201),
        ([score(score=1.01)], 500),
        ([score(score=True)], 400),
        ([score(score="0.5")], 400),
        ([score(score=float("nan"))], 400),
        ([score(traceStartTime=...)], 500),
        ([score(traceStartTime="2026-01-15T10:30:00")], 400),
        ([score(level="step")], 500),
        ([score(evaluatorName="Other")], 500),
        ([score(evaluatorName="x" * 256)], 500),
        ([score(traceId="x" * 256)], 500),
        ([score(explanation="a\0b")], 500),
        ([score(explanation="\ud800")], 500),
        ([score(), score()], 500),
        ([score(spanContext={"spanId": "s"})], 500),
        ([score(level="agent", spanContext={"spanId": "s"}), score(level="agent", spanContext={"spanId": "u"})], 201),
        ([score(level="llm", spanContext={"spanId": "s", "vendor": "v" * 200, "model": "m" * 60})], 500),
        ([score(level="llm", spanContext={"spanId": 7})], 400),
    ],
)
def test_the_publisher_refuses_whole_bodies(items: list[dict[str, Any]], status: int) -> None:
    with Platform() as platform:
        assert post(platform, *items) == status
        assert len(platform.publisher.scores) == (len(items) if status == 201 else 0)


def test_the_publisher_refuses_other_bodies_ids_and_sizes() -> None:
    with Platform() as platform:
        assert post(platform, body=b"{") == 400
        assert post(platform, body=b"[]") == 400
        assert post(platform, body=b'{"individualScores": [], "aggregatedScores": []}') == 400
        assert post(platform, score(), run="run-1") == 400
        platform.publisher.max_body = 100
        assert post(platform, score()) == 413
        platform.publisher.known_runs = frozenset()
        platform.publisher.max_body = 10_000
        assert post(platform, score()) == 500


def test_the_publisher_upserts_rounds_and_forgets_earlier_runs_of_the_same_traces() -> None:
    other = "00000000-0000-0000-0000-000000000001"
    with Platform() as platform:
        assert post(platform, score(), score(traceId="t2")) == 201
        assert post(platform, score(score=0.5), score(traceId="t2")) == 201
        assert len(platform.publisher.scores) == 2
        assert platform.publisher.scores[RUN_ID, "Latency", "t2", ""]["score"] == 0.9322
        assert post(platform, score(), run=other) == 201
        assert sorted(key[::2] for key in platform.publisher.scores) == [(other, "t1"), (RUN_ID, "t2")]
        assert platform.publisher.wrong == []
        assert post(platform, score(score=...)) == 201
        assert len(platform.publisher.wrong) == 1


def test_the_model_counts_what_is_in_flight() -> None:
    with Platform() as platform:
        platform.model.delay_s = 0.1
        platform.model.replies = ["first"]

        def call() -> None:
            requests.post(platform.model_url + "/chat/completions", json={"model": "m", "messages": []}, timeout=5)

        threads = [threading.Thread(target=call) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert platform.model.max_in_flight == 5
        assert (platform.model.in_flight, len(platform.model.calls)) == (0, 5)


def test_a_refusing_listener_comes_back_when_enough_time_was_slept() -> None:
    with Platform() as platform:
        platform.refuse("publisher", 5)
        with pytest.raises(requests.ConnectionError):
            post(platform, score())
        platform.sleep(5)
        assert post(platform, score()) == 201


SIZES: dict[str, tuple[Callable[[], Any], int, float, float]] = {
    "benchmark": (lambda: benchmark(20), 12, 12e3, 15e3),
    "benchmark, OpenInference": (lambda: benchmark(20, convention="openinference"), 12, 12e3, 21e3),
    "heavy": (lambda: heavy(2), 324, 19e6, 21e6),
}


@pytest.mark.parametrize(("make", "spans", "low", "high"), SIZES.values(), ids=SIZES.keys())
def test_generated_traces_weigh_what_they_should(make: Callable[[], Any], spans: int, low: float, high: float) -> None:
    bodies = [trace.whole() if callable(trace.whole) else trace.whole for trace in make()]
    assert low < sum(map(len, bodies)) / len(bodies) < high
    decoded = [json.loads(body) for body in bodies]
    assert {len(trace["spans"]) for trace in decoded} == {spans}
    assert len({trace["traceId"] for trace in decoded}) == len(decoded)
    assert len({item["spanId"] for item in decoded[0]["spans"]}) == spans


def test_a_simple_trace_is_whole() -> None:
    trace = simple(3, seconds=2)
    assert (trace["spanCount"], trace["durationInNanos"]) == (4, 2 * S)


def test_it_runs_as_a_process_of_its_own_until_its_input_ends(tmp_path: Path) -> None:
    address = tmp_path / "address.json"
    command = [sys.executable, "-m", "loopback", "--ports-file", str(address), "--traces", "3", "--kind", "simple"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=Path(__file__).parent)
    try:
        deadline = time.monotonic() + 20
        while not address.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        told = json.loads(address.read_text())
        assert requests.get(told["urls"]["traces"] + "/health", timeout=5).status_code == 200
        assert requests.get(told["urls"]["publisher"] + "/_state", timeout=5).json()["traces"] == 3
    finally:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0
