"""The job run whole against a platform on loopback: flags in, scores stored, exit code and log out.

Peers are real servers on real sockets (`loopback`), as strict as the platform. Waits go to the platform's own clock,
so that retries take no time; what is about processes and signals runs as a process of its own.
"""

from __future__ import annotations

import gc
import io
import itertools
import json
import logging
import os
import random
import re
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from amp_evaluation.errors import RefusedError
from amp_evaluation.http import RetryPolicy
from loopback import FAULT_NAMES, MONITOR_ID, RUN_ID, Fault, Platform, Response, bare, series, simple, status
from loopback._store import StoredTrace, to_ns

import main

ROOT = Path(__file__).parent
LATENCY = {"identifier": "latency_performance", "displayName": "Latency", "config": {}}
LENGTH = {"identifier": "length_compliance", "displayName": "Length"}
SEVEN_RULES: list[dict[str, Any]] = [
    LATENCY,
    LENGTH,
    {"identifier": "token_efficiency", "displayName": "Tokens", "config": {"max_tokens": 100}},
    {"identifier": "iteration_efficiency", "displayName": "Iterations"},
    {"identifier": "content_safety", "displayName": "Safety", "config": {"prohibited_strings": ["guarantee", "ever"]}},
    {"identifier": "tool_coverage", "displayName": "Tools", "config": {"required_tools": ["find_order"]}},
    {"identifier": "step_success_rate", "displayName": "Steps"},
]


@dataclass
class Ended:
    """What a run leaves behind: its exit code and its log, which must be JSON lines and nothing else."""

    code: int
    text: str

    @property
    def lines(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self.text.splitlines()]

    def of(self, level: str) -> list[str]:
        return [line["msg"] for line in self.lines if line["level"] == level]

    def stored(self) -> tuple[int, int]:
        """The n and m of the log's "stored n of m scores"."""
        (found,) = re.findall(r"stored (\d+) of (\d+) scores", self.text)
        return int(found[0]), int(found[1])


def job(platform: Platform, *, env: dict[str, str | None] | None = None, **flags: Any) -> Ended:
    """Run the job in this process; its waits move the platform's clock instead of taking time."""
    stream = io.BytesIO()
    code = main.run(
        platform.argv(**flags),
        platform.env(**(env or {})),
        clock=platform.clock,
        sleep=platform.sleep,
        log_stream=stream,
        state=main.RunState(),
    )
    return Ended(code, stream.getvalue().decode())


def child_env(platform: Platform, **over: str | None) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent"} | platform.env(**over)


def child(platform: Platform, *, env: dict[str, str | None] | None = None, **flags: Any) -> Ended:
    """Run the job as a process of its own."""
    command = [sys.executable, ROOT / "main.py", *platform.argv(**flags)]
    done = subprocess.run(command, env=child_env(platform, **(env or {})), capture_output=True, text=True, timeout=60)
    assert done.stdout == ""
    return Ended(done.returncode, done.stderr)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No .env file of this machine gets into a run."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def platform() -> Iterator[Platform]:
    with Platform(series(25)) as platform:
        yield platform


def sent_anything(platform: Platform) -> bool:
    return any(platform.requests(role) for role in platform.servers)


def stored_traces(platform: Platform, name: str = "Latency") -> list[str]:
    """Trace ids of one evaluator's scores, in the order in which they came."""
    return [key[2] for key in platform.publisher.scores if key[1] == name]


# --- command line and start -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evaluators", "told"),
    [
        pytest.param(["latency"], ["entry 0", "an object is wanted", "'latency'"], id="a text for an entry"),
        pytest.param(
            [LATENCY | {"displayName": "L1"}, LATENCY | {"displayName": "L1"}],
            ["entry 1 ('L1')", "entry 0"],
            id="two entries of one display name",
        ),
        pytest.param([LATENCY | {"identifier": ""}], ["entry 0", "identifier"], id="no identifier"),
        pytest.param([{"identifier": "latency_performance"}], ["entry 0", "displayName"], id="no display name"),
        pytest.param([LATENCY | {"displayName": "n" * 256}], ["256", "255"], id="a display name over 255 characters"),
        pytest.param([LATENCY | {"displayName": "\u0000"}], ["displayName"], id="a display name of nothing storable"),
        pytest.param([LATENCY | {"config": {"max_latency": 1}}], ["max_latency"], id="an unknown config key"),
        pytest.param([LATENCY | {"config": {"max_latency_ms": "3000"}}], ["max_latency_ms"], id="a text for a number"),
        pytest.param([LATENCY | {"config": [1]}], ["config", "object"], id="a list for config"),
        pytest.param([LATENCY | {"level": "span"}], ["level", "trace, agent or llm"], id="an unknown level"),
        pytest.param([LATENCY | {"type": "python"}], ["type", "'python'"], id="an unknown type"),
        pytest.param([LATENCY | {"type": "code"}], ["source"], id="code without a source"),
        pytest.param([LATENCY | {"type": "code", "source": "def f(:"}], ["entry 0", "line 1"], id="code with an error"),
        pytest.param([], ["at least one"], id="no evaluator"),
        pytest.param("{}", ["array"], id="an object for the list"),
        pytest.param("[1,", ["JSON"], id="no JSON"),
        pytest.param("[" * 100_000, ["JSON"], id="JSON nested too deep"),
        pytest.param("@no/such/file", ["no/such/file"], id="a file that isn't there"),
        pytest.param([LENGTH | {"identifier": "exact_match"}], ["Length", "monitor"], id="nothing for a monitor"),
    ],
)
def test_a_wrong_evaluators_list_ends_with_2_before_anything_is_sent(
    platform: Platform, evaluators: Any, told: list[str]
) -> None:
    ended = job(platform, evaluators=evaluators)
    assert ended.code == 2
    text = "\n".join(ended.of("ERROR"))
    assert all(part in text for part in told), text
    assert not sent_anything(platform)


def test_all_faults_of_a_list_are_reported_in_one_run_and_the_flags_with_them(platform: Platform) -> None:
    wrong = [["x"], LATENCY | {"identifier": "nope"}, LENGTH | {"config": {"colour": 1}}]
    ended = job(platform, evaluators=wrong, sampling_rate="2", env={"AMP_MONITOR_MAX_CONCURRENCY": "abc"})
    assert ended.code == 2
    errors = ended.of("ERROR")
    assert len(errors) == 5
    assert [f"entry {index}" in errors[2 + index] for index in range(3)] == [True] * 3
    assert "--sampling-rate='2'" in errors[0]
    assert "AMP_MONITOR_MAX_CONCURRENCY" in errors[1]
    assert not sent_anything(platform)


def test_an_unknown_identifier_is_answered_with_the_valid_ones_nearest_first(platform: Platform) -> None:
    ended = job(platform, evaluators=[LATENCY | {"identifier": "latency_perfomance"}])
    (error,) = ended.of("ERROR")
    known = re.findall(r"[a-z]+_[a-z_]+", error.partition("latency_perfomance")[2])
    assert known[0] == "latency_performance"
    assert "length_compliance" in known


def test_one_identifier_under_two_display_names_runs_twice(platform: Platform) -> None:
    ended = job(platform, evaluators=[LATENCY | {"displayName": "L1"}, LATENCY | {"displayName": "L2", "config": None}])
    assert ended.code == 0
    aggregates = platform.publisher.aggregates
    assert {key[1]: item["identifier"] for key, item in aggregates.items()} == {
        "L1": "latency_performance",
        "L2": "latency_performance",
    }


def test_an_evaluator_that_needs_a_task_is_left_out_with_a_warning(platform: Platform) -> None:
    ended = job(platform, evaluators=[LATENCY, LENGTH | {"identifier": "exact_match", "displayName": "Exact"}])
    assert ended.code == 0
    assert any("Exact" in line for line in ended.of("WARN"))
    assert {key[1] for key in platform.publisher.aggregates} == {"Latency"}


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        pytest.param({"trace_start": "2026-01-16T00:00:01Z"}, "before --trace-end", id="start after end"),
        pytest.param({"trace_start": "2026-01-16"}, "before --trace-end", id="start at the end"),
        pytest.param({"trace_end": "tomorrow"}, "--trace-end='tomorrow'", id="no time"),
        *(
            pytest.param({"sampling_rate": rate}, f"--sampling-rate='{rate}'", id=f"sampling rate {rate}")
            for rate in ("0", "-0.2", "1.5", "nan", "half")
        ),
        pytest.param({"monitor_id": "7"}, "--monitor-id='7': a UUID", id="a monitor id that is no UUID"),
        pytest.param({"run_id": ""}, "--run-id=''", id="an empty run id"),
        pytest.param({"agent": " "}, "--agent is empty", id="an empty agent"),
        pytest.param({"agent": "\udcff"}, "--agent='\\udcff' is not valid UTF-8", id="an agent in other bytes"),
        pytest.param({"publisher_endpoint": "http://two words"}, "--publisher-endpoint=", id="a host with a blank"),
        pytest.param({"publisher_endpoint": "http://.host"}, "--publisher-endpoint=", id="a host without a name"),
        pytest.param({"traces_api_endpoint": "http://*.host"}, "--traces-api-endpoint=", id="a pattern for a host"),
        pytest.param({"traces_api_endpoint": "ftp://host"}, "http", id="an endpoint of another scheme"),
        pytest.param({"traces_api_endpoint": "http://[::1"}, "http", id="an endpoint that is no URL"),
        pytest.param({"traces_api_endpoint": "file:"}, "file:PATH", id="file: without a path"),
        pytest.param({"traces_api_endpoint": "file:no/such.json"}, "no such file", id="a traces file that isn't there"),
        pytest.param({"publisher_endpoint": "http://host/?q=1"}, "without query", id="an endpoint with a query"),
        pytest.param({"publisher_endpoint": "file:no/such/folder/x"}, "folder", id="a target in no folder"),
        pytest.param({"publisher_endpoint": "file:/"}, "a file in a folder", id="a folder for a target"),
    ],
)
def test_wrong_flags_end_with_2_and_show_the_value(platform: Platform, flags: dict[str, str], told: str) -> None:
    ended = job(platform, **flags)
    assert ended.code == 2
    assert told in "\n".join(ended.of("ERROR"))
    assert not sent_anything(platform)


def test_credentials_in_an_endpoint_are_refused_and_not_shown(platform: Platform) -> None:
    ended = job(platform, publisher_endpoint="https://user:hidden-pw@host")
    assert ended.code == 2
    assert "credentials" in ended.text
    assert "hidden-pw" not in ended.text


@pytest.mark.parametrize(
    ("env", "told"),
    [
        pytest.param({"AMP_MONITOR_MAX_CONCURRENCY": "0"}, "AMP_MONITOR_MAX_CONCURRENCY", id="concurrency 0"),
        pytest.param({"AMP_MONITOR_MAX_CONCURRENCY": "abc"}, "AMP_MONITOR_MAX_CONCURRENCY", id="concurrency abc"),
        pytest.param({"LOG_LEVEL": "LOUD"}, "LOG_LEVEL='LOUD'", id="an unknown log level"),
        pytest.param({"LLM_API_KEY": "k-1234"}, "LLM_API_BASE is not", id="a gateway key without a base"),
        pytest.param({"LLM_API_BASE": "gateway", "LLM_API_KEY": "k-1234"}, "LLM_API_BASE", id="a base that is no URL"),
        pytest.param({"IDP_TOKEN_URL": "idp"}, "IDP_TOKEN_URL='idp'", id="a token URL that is none"),
        pytest.param({"IDP_TOKEN_URL": "http://.idp/t"}, "IDP_TOKEN_URL=", id="a token URL that can't be sent to"),
        pytest.param({"IDP_CLIENT_SECRET": ""}, "IDP_CLIENT_SECRET is not set", id="an empty secret is unset"),
    ],
)
def test_a_wrong_environment_ends_with_2_and_names_the_variable(
    platform: Platform, env: dict[str, str | None], told: str
) -> None:
    ended = job(platform, env=env)
    assert ended.code == 2
    assert told in "\n".join(ended.of("ERROR"))
    assert "k-1234" not in ended.text
    assert not sent_anything(platform)


def test_all_missing_credentials_are_named_at_once(platform: Platform) -> None:
    ended = job(platform, env={"IDP_TOKEN_URL": None, "IDP_CLIENT_ID": None, "IDP_CLIENT_SECRET": None})
    assert ended.code == 2
    assert len(ended.of("ERROR")) == 3


def test_a_gateway_whose_key_is_not_there_yet_asks_for_a_repeat(platform: Platform) -> None:
    ended = job(platform, env={"LLM_API_BASE": platform.model_url, "LLM_API_KEY": ""})
    assert ended.code == 1
    assert "LLM_API_KEY" in ended.text
    assert not sent_anything(platform)


def test_a_wrong_flag_goes_before_a_missing_gateway_key(platform: Platform) -> None:
    assert job(platform, env={"LLM_API_BASE": platform.model_url}, sampling_rate="7").code == 2


def test_empty_settings_count_as_unset(platform: Platform) -> None:
    empty: dict[str, str | None] = dict.fromkeys(("LLM_API_BASE", "LLM_API_KEY", "LOG_LEVEL"), "")
    assert job(platform, env=empty | {"AMP_MONITOR_MAX_CONCURRENCY": ""}).code == 0


@pytest.fixture(params=["UTC", "Asia/Kolkata", "America/Los_Angeles"])
def local_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.delenv("TZ")
    time.tzset()


@pytest.mark.usefixtures("local_zone")
@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("2026-01-15", "2026-01-15T00:00:00Z"),
        ("2026-01-15T10:00:00", "2026-01-15T10:00:00Z"),
        ("2026-01-15T10:00:00+05:30", "2026-01-15T04:30:00Z"),
        ("2026-01-15T10:00:00.123456789Z", "2026-01-15T10:00:00.123Z"),
    ],
)
def test_every_way_to_write_a_time_reaches_the_traces_api_as_rfc_3339(
    platform: Platform, given: str, meant: str
) -> None:
    assert job(platform, trace_start=given).code == 0
    asked = platform.pages[0].query["startTime"]
    margin = timedelta(seconds=60)
    assert datetime.fromisoformat(asked) == datetime.fromisoformat(meant) - margin
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", asked)


def test_a_small_sampling_rate_is_logged_as_it_was_given(platform: Platform) -> None:
    ended = job(platform, sampling_rate="0.004")
    assert ended.code == 0
    assert "sampling rate 0.004" in ended.text


def test_a_slash_at_an_endpoints_end_is_not_doubled(platform: Platform) -> None:
    over = {"traces_api_endpoint": platform.traces_url + "/", "publisher_endpoint": platform.publisher_url + "//"}
    assert job(platform, **over).code == 0
    assert all("//" not in request.path for role in platform.servers for request in platform.requests(role))


def test_ids_in_capitals_and_braces_are_sent_as_uuids(platform: Platform) -> None:
    assert job(platform, run_id="{" + RUN_ID.upper() + "}").code == 0
    assert platform.requests("publisher")[0].path.endswith(f"/monitors/{MONITOR_ID}/runs/{RUN_ID}/scores")


def test_a_list_of_300_kb_comes_from_a_file(platform: Platform, tmp_path: Path) -> None:
    words = [f"forbidden phrase number {number}" for number in range(10_000)]
    rules = [LENGTH | {"identifier": "content_safety", "config": {"prohibited_strings": words}}]
    (tmp_path / "rules.json").write_text("\ufeff" + json.dumps(rules))
    assert (tmp_path / "rules.json").stat().st_size > 300_000
    assert job(platform, evaluators=f"@{tmp_path / 'rules.json'}").code == 0
    assert len(platform.publisher.scores) == 25


@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [(["--help"], 0, "Exit codes"), ([], 2, "--monitor-name"), (["--monitor", "x"], 2, "required")],
    ids=["help tells the exit codes", "no flag at all", "a flag that is cut short is none"],
)
def test_argparse_has_the_first_word(argv: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.run(argv, {})
    assert ended.value.code == code
    assert told in "".join(capsys.readouterr())


def test_the_usage_in_the_docstring_is_accepted_by_the_parser() -> None:
    usage = (main.__doc__ or "").partition("Usage\n")[2].replace("\\\n", " ").split()
    assert usage[:2] == ["python", "main.py"]
    args = main.parse_args(usage[2:])
    assert args.evaluators == "@evaluators.json"


# --- credentials ------------------------------------------------------------------------------------------------------


def token_manager(platform: Platform, secret: str | None = None) -> main.OAuth2TokenManager:
    idp = platform.idp
    config = main.IdpConfig(
        token_url=platform.token_url, client_id=idp.client_id, client_secret=secret or idp.client_secret
    )
    return main.OAuth2TokenManager(config, retry=RetryPolicy(clock=platform.clock, sleep=platform.sleep))


def token_requests(platform: Platform) -> int:
    return len(platform.requests("idp"))


def test_one_token_serves_the_whole_run(platform: Platform) -> None:
    assert job(platform).code == 0
    assert token_requests(platform) == 1
    assert platform.requests("idp")[0].body == b"grant_type=client_credentials"


def test_a_token_is_renewed_within_30_seconds_of_its_end_and_not_before(platform: Platform) -> None:
    platform.idp.life_s = 100.0
    tokens = token_manager(platform)
    first = tokens()
    platform.sleep(69)
    assert tokens() == first
    platform.sleep(2)
    assert tokens() != first
    tokens.close()


def test_a_token_that_expires_during_the_run_is_renewed(platform: Platform) -> None:
    platform.idp.life_s = 100.0
    platform.interfere(Fault("traces", status(429, Retry_After="60"), times=2))
    assert job(platform).code == 0
    assert platform.naps == [60.0, 60.0]
    assert token_requests(platform) == 2
    assert len(platform.publisher.scores) == 25


def test_a_token_that_lives_a_second_is_fetched_once_a_request(platform: Platform) -> None:
    platform.fault("token_life_1s")
    assert job(platform).code == 0
    calls = len(platform.requests("traces")) + len(platform.requests("publisher"))
    assert token_requests(platform) == calls


@pytest.mark.parametrize("told", ["3600", "3600.0", None, "soon", "nan", -5], ids=lambda told: f"expires_in {told!r}")
def test_every_way_to_tell_a_tokens_life_is_understood(platform: Platform, told: Any) -> None:
    platform.idp.expires_in = told
    tokens = token_manager(platform)
    assert tokens() in platform.idp.issued
    again = tokens()
    assert (again == platform.idp.issued[0]) == (told != -5)
    tokens.close()


@pytest.mark.parametrize("decodes", [True, False], ids=["a server that decodes", "a server that doesn't"])
def test_a_secret_of_odd_characters_reaches_both_kinds_of_servers(platform: Platform, decodes: bool) -> None:
    platform.fault("token_secret_decoded" if decodes else "token_secret_plain")
    ended = job(platform)
    assert ended.code == 0
    assert token_requests(platform) == (1 if decodes else 2)
    assert "a+b%c" not in ended.text


def test_a_server_that_takes_credentials_only_in_the_form_is_asked_that_way_last_and_then_always(
    platform: Platform,
) -> None:
    platform.fault("token_post_only")
    platform.idp.client_secret = "a b"
    tokens = token_manager(platform)
    first = tokens()
    ways = [
        ("authorization" in request.headers, b"client_secret" in request.body) for request in platform.requests("idp")
    ]
    assert ways == [(True, False), (True, False), (False, True)]
    tokens.invalidate(first)
    assert tokens() != first
    assert token_requests(platform) == 4
    tokens.close()


def test_a_plain_secret_is_not_sent_twice_in_the_same_form(platform: Platform) -> None:
    tokens = token_manager(platform, secret="wrong-one")
    with pytest.raises(RefusedError) as refused:
        tokens()
    assert token_requests(platform) == 2
    assert str(refused.value).startswith("identity provider: HTTP 401 invalid_client")
    assert "wrong-one" not in str(refused.value)
    tokens.close()


@pytest.mark.parametrize(
    ("reply", "tries", "told"),
    [
        (Response.of(400, {"error": "unauthorized_client"}), 1, "HTTP 400 unauthorized_client"),
        (Response.of(400, {"error": "invalid_request"}), 2, "HTTP 400 invalid_request"),
        (Response.of(403, {"error": "s3cret echoed"}), 1, "HTTP 403"),
        (Response.of(403, ["no object"]), 1, "HTTP 403"),
        (Response(404, b"<html>"), 1, "HTTP 404"),
        (Response.of(200, {"token": "x"}), 1, "no access token"),
        (Response.of(200, {"access_token": 7}), 1, "no access token"),
        (Response.of(200, []), 1, "no access token"),
        (Response(200, b"<html>"), 1, "no access token"),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Response) else None,
)
def test_a_final_refusal_names_role_status_and_oauth_code_only(
    platform: Platform, reply: Response, tries: int, told: str
) -> None:
    platform.interfere(Fault("idp", lambda *_: reply, times=9))
    ended = job(platform)
    assert ended.code == 3
    assert token_requests(platform) == tries
    (error,) = [line for line in ended.of("ERROR") if "identity provider" in line]
    assert told in error
    assert "echoed" not in ended.text


def test_an_identity_provider_that_stays_away_is_retried_then_asks_for_a_repeat(platform: Platform) -> None:
    platform.interfere(Fault("idp", status(503), times=99))
    ended = job(platform)
    assert ended.code == 1
    assert platform.naps == [2.0, 4.0, 8.0]
    assert "identity provider: HTTP 503" in ended.text


def test_threads_that_need_a_token_at_the_same_time_share_one_request(platform: Platform) -> None:
    platform.interfere(Fault("idp", lambda p, request, answer: slow(answer()), times=1))
    tokens = token_manager(platform)
    seen: list[str] = []
    threads = [threading.Thread(target=lambda: seen.append(tokens())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 1
    assert token_requests(platform) == 1
    tokens.close()


def slow(response: Response, seconds: float = 0.2) -> Response:
    response.delay_s = seconds
    return response


def test_a_refused_token_is_dropped_but_not_a_newer_one(platform: Platform) -> None:
    tokens = token_manager(platform)
    first = tokens()
    tokens.invalidate(first)
    second = tokens()
    tokens.invalidate(first)
    assert tokens() == second != first
    tokens.close()


def test_a_token_urls_last_slash_and_query_are_part_of_it(platform: Platform) -> None:
    platform.interfere(Fault("idp", lambda p, request, answer: p.idp.issue(), times=9))
    assert job(platform, env={"IDP_TOKEN_URL": platform.servers["idp"].url + "/o/token/?tenant=acme"}).code == 0
    request = platform.requests("idp")[0]
    assert (request.path, request.query) == ("/o/token/", {"tenant": "acme"})


def test_line_ends_around_addresses_do_no_harm(platform: Platform) -> None:
    """A YAML block, or a file that became a secret, ends in one."""
    flags = {"traces_api_endpoint": f"{platform.traces_url}/\n", "publisher_endpoint": f" {platform.publisher_url}\n"}
    token_url = platform.env()["IDP_TOKEN_URL"]
    assert job(platform, env={"IDP_TOKEN_URL": f"{token_url}\n"}, **flags).code == 0
    assert platform.pages[0].path == "/api/v1/traces/export"


# --- fetching ---------------------------------------------------------------------------------------------------------


def test_twenty_five_traces_in_pages_of_ten_are_evaluated_once_each_in_order(platform: Platform) -> None:
    assert job(platform).code == 0
    assert stored_traces(platform) == [trace.trace_id for trace in platform.store.traces]
    assert {request.query["limit"] for request in platform.pages} == {"10"}
    names = ("organization", "project", "agent", "environment", "sortOrder")
    asked = [platform.pages[0].query[name] for name in names]
    assert asked == ["acme", "shop", "assistant", "production", "asc"]


def test_thirty_seven_traces_at_one_instant_are_all_stored() -> None:
    with Platform(series(37, step_ms=0)) as platform:
        assert job(platform).code == 0
        assert len(platform.publisher.scores) == 37


def test_a_page_that_fails_once_is_retried_with_one_line_in_the_log(platform: Platform) -> None:
    platform.fault("export_503")
    ended = job(platform)
    assert ended.code == 0
    assert len(stored_traces(platform)) == 25
    assert [line for line in ended.of("WARN") if "retry" in line] == ["traces API: HTTP 503, retry 1 of 3 in 2 s"]
    assert platform.naps == [2.0]


def test_null_for_traces_is_no_trace_and_no_error() -> None:
    with Platform() as platform:
        platform.interfere(Fault("traces", lambda *_: Response.of(200, {"traces": None, "totalCount": 0}), times=99))
        ended = job(platform)
    assert ended.code == 0
    assert ended.of("ERROR") == []


def test_no_trace_in_the_window_is_a_warning_and_publishes_nothing() -> None:
    with Platform() as platform:
        ended = job(platform)
        assert ended.code == 0
        assert any("0 found" in line and "0 sampled" in line for line in ended.of("WARN"))
        assert platform.requests("publisher") == []


def test_found_but_not_sampled_says_both_numbers() -> None:
    with Platform(series(5)) as platform:
        ended = job(platform, sampling_rate="0.0001")
        assert ended.code == 0
        assert any("5 found" in line and "0 sampled" in line for line in ended.of("WARN"))
        assert platform.requests("publisher") == []


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda wire: wire.pop("rootSpanId"), id="without a root span id"),
        pytest.param(lambda wire: wire.update(spans=None), id="with null for spans"),
        pytest.param(lambda wire: wire["spans"][0].pop("name"), id="with a span that has no name"),
    ],
)
def test_one_odd_trace_of_ten_costs_at_most_its_own_score(spoil: Any) -> None:
    wires = series(10)
    served = [StoredTrace.of(wire) for wire in wires]
    spoil(wires[4])
    served[4].whole = json.dumps(wires[4]).encode()
    with Platform(served) as platform:
        ended = job(platform)
        assert ended.code == 0
        assert len(platform.publisher.scores) == 10
        assert sum("score" in item for item in platform.publisher.scores.values()) >= 9
        for item in platform.publisher.scores.values():
            assert "score" in item or item["skipReason"]


def test_truncated_traces_are_a_warning_in_the_log(platform: Platform) -> None:
    platform.fault("truncated")
    ended = job(platform)
    assert ended.code == 0
    assert any("truncated" in line for line in ended.of("WARN"))


def test_a_run_that_crosses_the_windows_end_is_evaluated_whole_and_once() -> None:
    crossing = simple(1, "2026-01-15T23:59:55Z", seconds=20)
    with Platform([crossing]) as platform:
        assert job(platform).code == 0
        (item,) = platform.publisher.scores.values()
        assert "20" in item["explanation"]
        other = job(platform, trace_start="2026-01-16T00:00:00Z", trace_end="2026-01-17T00:00:00Z")
        assert other.code == 0
        assert len(platform.requests("publisher")) == 1


def test_a_trace_that_can_not_be_assembled_leaves_all_others_stored(platform: Platform) -> None:
    platform.fault("page_500")
    ended = job(platform)
    assert ended.code in (1, 3)
    assert len(platform.publisher.scores) == 24
    assert ended.stored() == (24, 24)
    assert ended.of("ERROR")


def test_a_trace_without_any_time_is_reported_and_the_others_are_stored() -> None:
    wires = series(3)
    served = [StoredTrace.of(wire) for wire in wires]
    for wire in (wires[1], *wires[1]["spans"]):
        wire.update(startTime="0001-01-01T00:00:00Z", endTime="0001-01-01T00:00:00Z")
    served[1].whole = json.dumps(wires[1]).encode()
    with Platform(served) as platform:
        ended = job(platform)
        assert ended.code == 3
        assert len(platform.publisher.scores) == 2
        assert any(wires[1]["traceId"] in line for line in ended.of("ERROR"))


def test_a_trace_without_a_time_of_its_own_takes_its_first_spans() -> None:
    wires = series(3)
    served = [StoredTrace.of(wire) for wire in wires]
    wires[1].pop("startTime")
    served[1].whole = json.dumps(wires[1]).encode()
    with Platform(served) as platform:
        assert job(platform).code == 0
        item = platform.publisher.scores[RUN_ID, "Latency", wires[1]["traceId"], ""]
        first = min(to_ns(span["startTime"]) for span in wires[1]["spans"])
        assert to_ns(item["traceStartTime"]) == first


def test_what_was_evaluated_before_fetching_failed_for_good_is_published(platform: Platform) -> None:
    platform.fault("export_503_forever")
    ended = job(platform)
    assert ended.code == 1
    assert ended.stored() == (10, 10)
    assert len(platform.publisher.scores) == 10
    assert any("traces API: HTTP 503" in line for line in ended.of("ERROR"))


def test_traces_come_from_a_file_and_scores_go_to_one_without_any_peer(tmp_path: Path) -> None:
    (tmp_path / "traces.json").write_text(json.dumps({"traces": series(25), "totalCount": 25}))
    with Platform() as platform:
        ended = job(
            platform,
            env=dict.fromkeys(("IDP_TOKEN_URL", "IDP_CLIENT_ID", "IDP_CLIENT_SECRET")),
            traces_api_endpoint=f"file:{tmp_path / 'traces.json'}",
            publisher_endpoint=f"file:{tmp_path / 'scores.json'}",
        )
        assert not sent_anything(platform)
    assert ended.code == 0
    assert ended.stored() == (25, 25)
    body = json.loads((tmp_path / "scores.json").read_bytes())
    assert len(body["individualScores"]) == 25
    assert body["aggregatedScores"][0]["identifier"] == "latency_performance"


def test_a_window_beside_the_files_traces_is_told_once_with_their_times(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "traces.json").write_text(json.dumps({"traces": series(25), "totalCount": 25}))
    ended = job(platform, traces_api_endpoint="file:traces.json", trace_start="2031-01-01", trace_end="2031-01-02")
    assert ended.code == 0
    (told,) = [line for line in ended.of("WARN") if "outside the window" in line]
    assert "traces.json holds 25 traces" in told
    assert series(25)[0]["startTime"][:19] in told


def test_a_broken_traces_file_names_file_and_place(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "traces.json").write_text('{"traces": [{]}')
    ended = job(platform, traces_api_endpoint=f"file:{tmp_path / 'traces.json'}")
    assert ended.code == 3
    assert "traces.json" in ended.of("ERROR")[0]
    assert not sent_anything(platform)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        pytest.param(
            {"publisher_endpoint": "file:./traces.json"}, "--traces-api-endpoint", id="scores over the traces"
        ),
        pytest.param(
            {"publisher_endpoint": "file:r.json", "report": "r.html"}, "figures", id="figures over the scores"
        ),
        pytest.param(
            {"publisher_endpoint": "file:r.html", "report": "r.html"}, "--publisher", id="page over the scores"
        ),
        pytest.param({"publisher_endpoint": "file:rules.json"}, "--evaluators", id="scores over the evaluators"),
    ],
)
def test_no_file_is_overwritten_that_the_run_reads_or_writes(
    platform: Platform, tmp_path: Path, flags: dict[str, str], told: str
) -> None:
    (tmp_path / "traces.json").write_text(json.dumps({"traces": series(2), "totalCount": 2}))
    (tmp_path / "rules.json").write_text(json.dumps([LATENCY]))
    before = sorted(tmp_path.iterdir())
    ended = job(platform, evaluators="@rules.json", traces_api_endpoint="file:traces.json", **flags)
    assert ended.code == 2
    assert "would overwrite" in ended.text
    assert told in ended.text
    assert sorted(tmp_path.iterdir()) == before


def test_an_at_sign_within_the_list_names_no_file(platform: Platform, tmp_path: Path) -> None:
    rules = json.dumps([LATENCY | {"displayName": "@scores.json"}])
    (tmp_path / "traces.json").write_text(json.dumps({"traces": series(2), "totalCount": 2}))
    target = rules.partition("@")[2]
    ended = job(platform, evaluators=rules, traces_api_endpoint="file:traces.json", publisher_endpoint=f"file:{target}")
    assert "would overwrite" not in ended.text


def test_a_target_that_can_not_be_written_asks_for_a_repeat(tmp_path: Path) -> None:
    (tmp_path / "traces.json").write_text(json.dumps({"traces": series(2), "totalCount": 2}))
    flags = {"traces_api_endpoint": f"file:{tmp_path / 'traces.json'}", "publisher_endpoint": "file:/dev/full"}
    with Platform() as platform:
        ended = job(platform, **flags)
    assert ended.code == 1
    assert "can't be written" in ended.text
    assert ended.stored()[0] == 0


def test_a_target_that_breaks_off_holds_no_score(platform: Platform, tmp_path: Path) -> None:
    """Much of it may be there by then; but half a JSON document is none."""
    command = [sys.executable, str(ROOT / "main.py"), *platform.argv(publisher_endpoint=f"file:{tmp_path / 'scores'}")]
    platform.serve(series(3000, start="2026-01-15T11:00:00Z", step_ms=1)[25:])
    limited = ["bash", "-c", 'ulimit -f 400; exec "$@"', "bash", *command]
    done = subprocess.run(limited, env=child_env(platform), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert (tmp_path / "scores").stat().st_size > 100_000
    assert "stored 0 of 3000 scores" in done.stderr


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_do_no_harm(platform: Platform, tmp_path: Path, closed: str) -> None:
    """Their numbers go to the next things that are opened: a log must not get into the scores."""
    target = tmp_path / "scores.json"
    command = [sys.executable, str(ROOT / "main.py"), *platform.argv(publisher_endpoint=f"file:{target}")]
    closing = ["bash", "-c", f'exec "$@" {closed}', "bash", *command]
    assert subprocess.run(closing, env=child_env(platform), capture_output=True, timeout=60).returncode == 0
    assert len(json.loads(target.read_bytes())["individualScores"]) == 25


def test_a_mapping_that_is_wrong_ends_with_2(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "mapping.json").write_text('{"colour": "red"}')
    ended = job(platform, env={"AMP_TRACE_MAPPING_PATH": str(tmp_path / "mapping.json")})
    assert ended.code == 2
    assert "colour" in ended.text


# --- evaluators by type -----------------------------------------------------------------------------------------------

SAYS_WAY = """
from math import sqrt

def on_its_way(trace: Trace, word="way"):
    print("looking at", trace.trace_id)
    return word in trace.output
"""


def test_code_is_evaluated_and_its_prints_are_debug_lines_of_the_log(platform: Platform) -> None:
    code = {"identifier": "own", "displayName": "On its way", "type": "code", "source": SAYS_WAY}
    ended = job(platform, evaluators=[code, code | {"displayName": "Lost", "config": {"word": "lost"}}])
    assert ended.code == 0
    assert {item["score"] for key, item in platform.publisher.scores.items() if key[1] == "On its way"} == {1.0}
    assert {item["score"] for key, item in platform.publisher.scores.items() if key[1] == "Lost"} == {0.0}
    assert platform.publisher.aggregates[RUN_ID, "Lost"]["identifier"] == "own"
    assert "looking at" not in ended.text
    told = job(platform, evaluators=[code], env={"LOG_LEVEL": "debug"})
    assert any("looking at" in line for line in told.of("DEBUG"))


def gateway(platform: Platform) -> dict[str, str | None]:
    platform.model.api_key = "gateway-key-1"
    return {"LLM_API_BASE": platform.model_url, "LLM_API_KEY": "gateway-key-1"}


def judge(identifier: str, source: str, level: str = "trace", **more: Any) -> dict[str, Any]:
    entry = {"identifier": identifier, "displayName": "Judge", "type": "llm_judge", "level": level, "source": source}
    return entry | {"config": {"model": "openai/m-1"}} | more


def test_a_template_is_rendered_and_judged_through_the_gateway() -> None:
    with Platform(series(3)) as platform:
        entry = judge("own", "Judge {trace.output} by {rule}.", configSchema=[{"key": "rule"}, {"key": 7}, "odd"])
        entry["config"] |= {"rule": "kindness"}
        ended = job(platform, evaluators=[entry], env=gateway(platform))
        assert ended.code == 0
        prompts = [json.dumps(call["messages"]) for call in platform.model.calls]
        assert all("kindness" in prompt and "is on its way" in prompt for prompt in prompts)
        assert {item["score"] for item in platform.publisher.scores.values()} == {0.8}
        assert any("tokens in" in line for line in ended.of("INFO"))
        assert "gateway-key-1" not in ended.text


def test_a_template_that_names_the_unknown_costs_its_own_items_only() -> None:
    with Platform(series(3)) as platform:
        ended = job(platform, evaluators=[judge("own", "Judge {contxt}."), LATENCY], env=gateway(platform))
        assert ended.code == 0
        assert ended.stored() == (6, 6)
        reasons = {item.get("skipReason", "") for key, item in platform.publisher.scores.items() if key[1] == "Judge"}
        (reason,) = reasons
        assert "contxt" in reason
        assert "trace" in reason
        assert len(ended.of("ERROR")) == 1


def test_a_built_in_judge_sent_with_its_prompt_runs_by_its_own_rules() -> None:
    with Platform(series(2)) as platform:
        entry = judge("helpfulness", "THE TEMPLATE {trace.output}", config={"model": "openai/m-1"})
        assert job(platform, evaluators=[entry], env=gateway(platform)).code == 0
        assert len(platform.model.calls) == 2
        assert all("THE TEMPLATE" not in json.dumps(call) for call in platform.model.calls)


def test_a_built_in_judges_name_at_another_level_is_a_template_of_its_own() -> None:
    with Platform(series(2)) as platform:
        entry = judge("helpfulness", "THE TEMPLATE {agent_trace.output}", level="agent")
        assert job(platform, evaluators=[entry], env=gateway(platform)).code == 0
        assert all("THE TEMPLATE" in json.dumps(call) for call in platform.model.calls)


def test_a_judge_without_a_source_is_the_built_in() -> None:
    with Platform(series(1)) as platform:
        entry = {"identifier": "safety", "displayName": "Safe", "type": "llm_judge", "config": {"model": "openai/m-1"}}
        assert job(platform, evaluators=[entry], env=gateway(platform)).code == 0
        assert {key[1] for key in platform.publisher.scores} == {"Safe"}
        assert {item["level"] for item in platform.publisher.scores.values()} == {"llm"}


@pytest.mark.parametrize(("fault", "code"), [("model_502_forever", 1), ("model_401_forever", 3)])
def test_a_judge_that_can_not_work_is_one_error_line_and_its_items_are_skips(fault: str, code: int) -> None:
    with Platform(series(20)) as platform:
        platform.fault(fault)
        ended = job(platform, evaluators=[judge("own", "Judge {trace.output}"), LATENCY], env=gateway(platform))
        assert ended.code == code
        assert len(ended.of("ERROR")) == 1
        assert ended.stored() == (40, 40)
        assert sum("skipReason" in item for item in platform.publisher.scores.values()) == 20


def test_a_level_in_the_entry_goes_before_the_built_ins_own(platform: Platform) -> None:
    assert job(platform, evaluators=[LATENCY | {"level": "llm", "type": None}]).code == 0
    assert {item["level"] for item in platform.publisher.scores.values()} == {"llm"}
    assert len(platform.publisher.scores) == 50


# --- publishing -------------------------------------------------------------------------------------------------------


def test_a_hundred_traces_by_seven_rules_are_seven_hundred_scores_stored() -> None:
    with Platform(series(100)) as platform:
        ended = job(platform, evaluators=SEVEN_RULES)
        assert ended.code == 0
        assert len(platform.publisher.scores) == 700
        assert platform.publisher.refusals == platform.publisher.wrong == []
        assert ended.stored() == (700, 700)
        assert {request.query["limit"] for request in platform.pages} == {"10"}
        assert {item["count"] for item in platform.publisher.aggregates.values()} == {100}


def test_ten_thousand_scores_with_long_explanations_are_stored_in_parts_under_the_cap() -> None:
    missing = [f"phrase number {number} that no answer holds" for number in range(14)]  # the explanation names them
    rules = [
        {"identifier": "content_coverage", "displayName": f"Long {number}", "config": {"required_strings": missing}}
        for number in range(40)
    ]
    with Platform(series(250, step_ms=10)) as platform:
        platform.publisher.max_body = 900_000
        ended = job(platform, evaluators=rules)
        assert ended.code == 0
        assert ended.stored() == (10_000, 10_000)
        assert len(platform.publisher.scores) == 10_000
        assert all(len(item["explanation"]) > 500 for item in platform.publisher.scores.values())
        assert platform.publisher.refusals == platform.publisher.wrong == []
        assert 8 <= platform.publisher.posts <= 14


def test_a_body_over_the_gateways_cap_is_halved_until_it_fits() -> None:
    with Platform(series(100)) as platform:
        platform.publisher.max_body = 10_000
        ended = job(platform, evaluators=SEVEN_RULES)
        assert ended.code == 0
        assert len(platform.publisher.scores) == 700
        assert ended.stored() == (700, 700)


EXPLAINS = """
def explains(trace: Trace) -> EvalResult:
    return EvalResult(0.5, "x" * 2_000_000)
"""


def test_an_explanation_larger_than_any_body_loses_its_middle() -> None:
    with Platform(series(2)) as platform:
        code = {"identifier": "own", "displayName": "Long", "type": "code", "source": EXPLAINS}
        assert job(platform, evaluators=[code]).code == 0
        texts = [item["explanation"] for item in platform.publisher.scores.values()]
        assert len(texts) == 2
        assert all("characters left out" in text and len(text) < 900_000 for text in texts)


def test_two_503s_then_success_waits_two_and_four_seconds_and_stores_once(platform: Platform) -> None:
    platform.fault("publisher_503_twice")
    ended = job(platform)
    assert ended.code == 0
    assert platform.naps == [2.0, 4.0]
    assert len(platform.publisher.scores) == 25
    assert [line for line in ended.of("WARN") if "retry" in line] == [
        "publisher: HTTP 503, retry 1 of 3 in 2 s",
        "publisher: HTTP 503, retry 2 of 3 in 4 s",
    ]


def test_a_publisher_that_stays_away_is_left_after_three_retries(platform: Platform) -> None:
    platform.fault("publisher_503_forever")
    ended = job(platform)
    assert ended.code == 1
    assert platform.naps == [2.0, 4.0, 8.0]
    assert len(platform.requests("publisher")) == 4
    assert ended.stored() == (0, 25)
    assert any("missing: 25 of 'Latency'" in line for line in ended.of("WARN"))


def test_a_lost_reply_leaves_each_score_stored_once(platform: Platform) -> None:
    platform.fault("publisher_reply_lost")
    assert job(platform).code == 0
    assert platform.publisher.posts == 2
    assert len(platform.publisher.scores) == 25


def test_a_401_on_the_last_try_gets_one_more_with_a_fresh_token(platform: Platform) -> None:
    platform.interfere(Fault("publisher", status(503), times=3))
    platform.interfere(Fault("publisher", status(401)))
    ended = job(platform)
    assert ended.code == 0
    assert len(platform.requests("publisher")) == 5
    assert token_requests(platform) == 2
    assert len(platform.publisher.scores) == 25


def test_a_401_that_stays_is_final(platform: Platform) -> None:
    platform.interfere(Fault("publisher", status(401), times=99))
    ended = job(platform)
    assert ended.code == 3
    assert len(platform.requests("publisher")) == 2
    assert any("publisher: HTTP 401" in line for line in ended.of("ERROR"))


SPOILS_ONE = """
def spoils(trace: Trace):
    number = int(trace.trace_id, 16)
    return {"score": float("nan") if number == 7 else 0.5, "explanation": "a\\x00b"}
"""


def test_one_nan_is_a_skip_and_nul_characters_are_removed() -> None:
    with Platform(series(50, step_ms=10)) as platform:
        spoils = {"identifier": "own", "displayName": "Own", "type": "code", "source": SPOILS_ONE}
        ended = job(platform, evaluators=[spoils])
        assert ended.code == 0
        items = platform.publisher.scores.values()
        assert sum("score" in item for item in items) == 49
        assert {item["explanation"] for item in items if "score" in item} == {"ab"}
        assert platform.publisher.refusals == []


def test_one_item_that_the_publisher_refuses_is_named_and_all_others_are_stored() -> None:
    with Platform(series(100)) as platform:
        platform.fault("publisher_500_item")
        ended = job(platform)
        assert ended.code == 3
        assert len(platform.publisher.scores) == 99
        assert ended.stored() == (99, 100)
        (error,) = ended.of("ERROR")
        assert platform.publisher.poison in error
        assert "'Latency'" in error
        assert platform.naps == [2.0, 4.0, 8.0]


def test_many_refused_items_are_named_up_to_ten_and_counted_from_there() -> None:
    with Platform(series(30)) as platform:
        platform.publisher.poison = platform.store.traces[3].trace_id
        rules = [LENGTH | {"displayName": f"Length {number}"} for number in range(15)]
        ended = job(platform, evaluators=rules)
        assert ended.code == 3
        assert ended.stored() == (29 * 15, 30 * 15)
        assert len(ended.of("ERROR")) == 11
        assert "5 other scores" in ended.of("ERROR")[-1]


def test_an_unknown_run_is_told_from_an_outage_as_far_as_can_be(platform: Platform) -> None:
    platform.publisher.known_runs = frozenset()
    ended = job(platform, evaluators=SEVEN_RULES)
    assert ended.code == 1
    assert ended.stored() == (0, 175)
    assert any("--run-id" in line and "likelier than an outage" in line for line in ended.of("ERROR"))
    assert len(platform.requests("publisher")) < 40


def test_an_outage_in_the_middle_of_the_search_for_a_bad_item_is_retried() -> None:
    with Platform(series(100)) as platform:
        platform.publisher.poison = platform.store.traces[50].trace_id
        platform.interfere(Fault("publisher", status(503), after=6))
        ended = job(platform)
        assert ended.code == 3
        assert ended.stored() == (99, 100)


def test_an_identity_provider_that_fails_with_500_is_no_verdict_on_the_scores(platform: Platform) -> None:
    platform.interfere(Fault("idp", status(500), times=99, after=1))
    platform.interfere(Fault("publisher", status(401)))
    ended = job(platform)
    assert ended.code == 1
    assert any("identity provider: HTTP 500" in line for line in ended.of("ERROR"))
    assert len(platform.requests("publisher")) == 1


def test_nothing_scored_and_all_skipped_is_published_with_empty_aggregations(platform: Platform) -> None:
    rule = {"identifier": "content_safety", "displayName": "Safety"}
    assert job(platform, evaluators=[rule]).code == 0
    aggregate = platform.publisher.aggregates[RUN_ID, "Safety"]
    assert (aggregate["aggregations"], aggregate["count"], aggregate["skippedCount"]) == ({}, 25, 25)
    assert all("score" not in item for item in platform.publisher.scores.values())


def test_a_redirect_is_a_clear_error_and_not_followed(platform: Platform) -> None:
    platform.fault("publisher_redirect")
    ended = job(platform)
    assert ended.code == 3
    assert len(platform.requests("publisher")) == 1
    assert any("publisher" in line and "redirect" in line for line in ended.of("ERROR"))


def test_a_connection_that_died_during_a_long_evaluation_is_opened_anew(platform: Platform) -> None:
    def drop(platform: Platform, request: Any, answer: Any) -> Response:
        reply: Response = answer()
        threading.Timer(0.05, platform.servers["publisher"].drop_connections).start()
        return slow(reply, 0.2)

    platform.interfere(Fault("traces", drop, times=1, after=2))
    assert job(platform).code == 0
    assert len(platform.publisher.scores) == 25


# --- ends -------------------------------------------------------------------------------------------------------------


def test_where_1_and_3_both_apply_it_is_1(platform: Platform) -> None:
    platform.fault("page_500")
    platform.fault("publisher_503_forever")
    assert job(platform).code == 1


def test_an_error_of_an_unknown_kind_may_pass() -> None:
    assert main.conclude(["somebody's own fetcher failed"], main.Publication()) == 1


class Broken(main.RunState):
    """A collaborator with a fault of its own, as a stand-in for what nobody foresaw."""

    def on_progress(self, progress: main.Progress) -> None:
        raise RuntimeError("line one\nline two")


def test_what_nobody_foresaw_is_one_line_with_its_stack_and_asks_for_a_repeat(platform: Platform) -> None:
    stream = io.BytesIO()
    code = main.run(platform.argv(), platform.env(), log_stream=stream, state=Broken())
    assert code == 1
    (line,) = [line for line in Ended(code, stream.getvalue().decode()).lines if line["level"] == "ERROR"]
    assert "RuntimeError: line one\nline two" in line["stack"]


# --- log --------------------------------------------------------------------------------------------------------------

SECRETS = {"IDP_CLIENT_SECRET": "very-secret-1", "LLM_API_KEY": "very-secret-2", "OPENAI_API_KEY": "very-secret-3"}


def test_the_log_is_one_json_object_a_line_with_time_level_message_and_logger(platform: Platform) -> None:
    for line in job(platform, env={"LOG_LEVEL": "DEBUG"}).lines:
        assert {"time", "level", "msg", "logger"} <= line.keys()
        assert line["level"] in ("DEBUG", "INFO", "WARN", "ERROR")
        moment = datetime.fromisoformat(line["time"])
        assert moment.utcoffset() == timedelta(0)
        assert abs((datetime.now(UTC) - moment).total_seconds()) < 60


def test_five_evaluators_without_skips_take_under_twenty_lines() -> None:
    with Platform(series(60)) as platform:
        rules = [rule for rule in SEVEN_RULES if rule["displayName"] not in ("Safety", "Steps")]
        ended = job(platform, evaluators=rules)
        assert ended.code == 0
        assert len(ended.lines) < 20
        assert {line["level"] for line in ended.lines} == {"INFO"}
        text = "\n".join(ended.of("INFO"))
        assert "60 traces found, 60 sampled, 60 evaluated" in text
        assert "Latency: 60 scored, 60 passed, 0 failed, 0 skipped, mean 1.0000" in text


def test_skip_reasons_are_told_with_their_number(platform: Platform) -> None:
    ended = job(platform, evaluators=[{"identifier": "content_safety", "displayName": "Safety"}])
    assert any(line.startswith("Safety: 25 skipped: ") for line in ended.of("INFO"))


def test_log_level_governs_the_job_and_leaves_other_libraries_at_warning(platform: Platform) -> None:
    quiet = job(platform, env={"LOG_LEVEL": "WARN"})
    assert quiet.lines == []
    loud = job(platform, env={"LOG_LEVEL": "debug"})
    assert loud.of("DEBUG")
    assert all(line["logger"].startswith("amp_evaluation") for line in loud.lines if line["level"] == "DEBUG")
    assert logging.getLogger("urllib3.connectionpool").getEffectiveLevel() == logging.WARNING


@pytest.mark.parametrize("fault", [None, "export_503", "token_503", "publisher_401", "publisher_403", "export_html"])
def test_no_line_at_any_level_holds_a_secret_a_token_a_header_or_a_host(fault: str | None) -> None:
    with Platform(series(12)) as platform:
        platform.idp.client_secret = SECRETS["IDP_CLIENT_SECRET"]
        platform.model.api_key = SECRETS["LLM_API_KEY"]
        if fault is not None:
            platform.fault(fault)
        rules = [LATENCY, judge("own", "Judge {trace.output}")]
        env = SECRETS | {"LOG_LEVEL": "DEBUG", "LLM_API_BASE": platform.model_url}
        ended = job(platform, evaluators=rules, env={**env})
        assert ended.of("DEBUG")
        for hidden in (*SECRETS.values(), *platform.idp.issued, "Bearer", "127.0.0.1"):
            assert hidden not in ended.text


def test_a_secret_that_a_library_logs_is_masked() -> None:
    stream = io.BytesIO()
    main.set_up_logging(SECRETS, stream)
    try:
        raise ValueError("very-secret-2")
    except ValueError:
        logging.getLogger("somebody.elses").warning("key very-secret-3", exc_info=True)
    assert b"very-secret" not in stream.getvalue()
    assert b"key ***" in stream.getvalue()


def test_progress_is_a_line_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.BytesIO()
    main.set_up_logging({}, stream)
    state = main.RunState()
    for second in range(60):
        progress = main.Progress(found=second, sampled=second, evaluated=second, in_flight=0, seconds=float(second))
        state.on_progress(progress)
    lines = Ended(0, stream.getvalue().decode()).of("INFO")
    assert len(lines) == 5
    assert lines[0] == "10 traces found, 10 sampled, 10 evaluated after 10 s"
    assert state.evaluated == 59


# --- report, dry run and check ----------------------------------------------------------------------------------------


def test_a_report_and_small_files_are_written_beside_the_scores(platform: Platform, tmp_path: Path) -> None:
    ended = job(platform, evaluators=SEVEN_RULES, report=tmp_path / "report.html", outputs=tmp_path)
    assert ended.code == 0
    page = (tmp_path / "report.html").read_text()
    assert "175 of 175 stored" in page
    assert "<script" not in page
    assert "Latency" in json.dumps(json.loads((tmp_path / "report.json").read_text()))
    assert (tmp_path / "traces-evaluated").read_text() == "25"
    assert (tmp_path / "scores-stored").read_text() == "175"
    assert json.loads((tmp_path / "means.json").read_text())["Latency"] == 1.0


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"report": "no/folder/report.html"}, "--report="),
        ({"report": "report.json"}, "--report="),
        ({"outputs": "no/folder"}, "--outputs="),
    ],
)
def test_a_place_that_can_not_hold_the_files_is_refused_at_the_start(
    platform: Platform, flags: dict[str, str], told: str
) -> None:
    ended = job(platform, **flags)
    assert ended.code == 2
    assert told in ended.of("ERROR")[0]
    assert not sent_anything(platform)


def test_files_that_can_not_be_written_cost_no_score_and_ask_for_a_repeat(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "means.json").mkdir()
    ended = job(platform, report="/dev/full", outputs=tmp_path)
    assert ended.code == 1
    assert ended.stored() == (25, 25)
    assert any("--outputs can't be written" in line for line in ended.of("ERROR"))
    assert any("--report can't be written" in line for line in ended.of("ERROR"))


def printed(
    platform: Platform, flag: str, *, env: dict[str, str | None] | None = None, **flags: Any
) -> tuple[int, str]:
    """Exit code and standard output of a run that only looks."""
    out, stream = io.StringIO(), io.BytesIO()
    code = main.run(
        [*platform.argv(**flags), flag],
        platform.env(**(env or {})),
        clock=platform.clock,
        sleep=platform.sleep,
        log_stream=stream,
        out=out,
        state=main.RunState(),
    )
    return code, out.getvalue() + stream.getvalue().decode()


def test_a_dry_run_prints_the_plan_and_sends_nothing(platform: Platform) -> None:
    code, text = printed(platform, "--dry-run", evaluators=SEVEN_RULES, sampling_rate="0.5")
    assert code == 0
    for told in ("from 2026-01-15T00:00:00Z until before 2026-01-16T00:00:00Z", "0.5", "Latency", "trace", "monitor"):
        assert told in text
    assert not sent_anything(platform)


def test_a_dry_run_on_a_file_shows_each_judges_prompt_for_one_trace(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "traces.json").write_text(json.dumps({"traces": series(3), "totalCount": 3}))
    source = f"file:{tmp_path / 'traces.json'}"
    rules = [LATENCY, judge("own", "Judge {trace.output} strictly")]
    code, text = printed(platform, "--dry-run", evaluators=rules, traces_api_endpoint=source, env=gateway(platform))
    assert code == 0
    assert text.count("Order 0 is on its way.") == 1
    assert "strictly" in text
    assert not sent_anything(platform)


def test_a_dry_run_shows_a_trace_that_judges_would_look_at(platform: Platform, tmp_path: Path) -> None:
    traces = series(4)
    traces[0]["extra"] = "too deep"
    traces[1]["output"] = ""
    for span in traces[1]["spans"]:
        span.get("ampAttributes", {}).pop("output", None)
    text = json.dumps({"traces": traces, "totalCount": 4}).replace('"too deep"', "[" * 50_000 + "]" * 50_000)
    (tmp_path / "traces.json").write_text(text)
    rules = [judge("own", "Judge {trace.output} strictly")]
    flags = {"evaluators": rules, "traces_api_endpoint": "file:traces.json"}
    code, text = printed(platform, "--dry-run", env=gateway(platform), **flags)
    assert code == 0
    assert "traces of the file in the window: 4" in text
    assert "Order 2 is on its way." in text


def test_a_dry_run_refuses_a_wrong_mapping(platform: Platform) -> None:
    code, text = printed(platform, "--dry-run", env={"AMP_TRACE_MAPPING_PATH": "no-such.json"})
    assert code == 2
    assert "no-such.json" in text


def test_a_dry_run_on_a_file_without_traces_shows_the_plan_alone(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "traces.json").write_text('{"traces": []}')
    code, text = printed(platform, "--dry-run", traces_api_endpoint=f"file:{tmp_path / 'traces.json'}")
    assert code == 0
    assert "Latency" in text


def test_a_dry_run_refuses_a_broken_template(platform: Platform) -> None:
    code, text = printed(platform, "--dry-run", evaluators=[judge("own", "Judge {contxt}")], env=gateway(platform))
    assert code == 2
    assert "contxt" in text


def test_a_check_tries_each_peer_once_and_stores_nothing(platform: Platform) -> None:
    rules = [LATENCY, judge("own", "Judge {trace.output}")]
    code, text = printed(platform, "--check", evaluators=rules, env=gateway(platform))
    assert code == 0, text
    assert [len(platform.requests(role)) for role in ("idp", "traces", "publisher", "model")] == [1, 1, 1, 1]
    assert platform.publisher.scores == platform.publisher.aggregates == {}
    for peer in ("identity provider", "traces API", "publisher", "judge openai/m-1"):
        assert re.search(rf"{peer} +pass", text)


def test_a_check_says_which_peer_fails_and_what_to_do(platform: Platform) -> None:
    platform.fault("export_404")
    platform.fault("publisher_503_forever")
    code, text = printed(platform, "--check")
    assert code == 1
    assert re.search("traces API +FAIL +.*HTTP 404", text)
    assert "--traces-api-endpoint" in text
    assert platform.naps == []


def test_a_check_without_a_token_asks_nobody_for_whom_it_is_needed(platform: Platform) -> None:
    code, text = printed(platform, "--check", env={"IDP_CLIENT_SECRET": "wrong-secret"})
    assert code == 1
    assert re.search("identity provider +FAIL +.*invalid_client", text)
    for role in ("traces API", "publisher"):
        assert re.search(rf"{role} +FAIL +not tried without a token\n +→ mend the identity provider first", text)
    assert not platform.pages
    assert not platform.requests("publisher")
    assert len(platform.requests("idp")) <= 3  # the three ways to show one secret
    assert "wrong-secret" not in text


@pytest.mark.parametrize("model", ["openai/m-1", "m-1"])
def test_a_check_says_of_a_judge_that_fails_what_is_its_own_to_mend(platform: Platform, model: str) -> None:
    platform.servers["model"].close()
    rules = [judge("own", "Judge {trace.output}") | {"config": {"model": model}}]
    code, text = printed(platform, "--check", evaluators=rules, env=gateway(platform))
    assert code == 1
    assert re.search(f"judge {model} +FAIL", text)
    assert "check the model's name, and LLM_API_BASE and LLM_API_KEY" in text


def test_a_check_asks_only_models_that_the_run_will_ask(platform: Platform) -> None:
    compared = {"identifier": "semantic_similarity", "displayName": "Same", "config": {"model": "openai/never-asked"}}
    rules = [LATENCY, compared, judge("own", "Judge {contxt}")]
    assert printed(platform, "--check", evaluators=rules, env=gateway(platform))[0] == 0
    assert not platform.requests("model")


def test_a_check_of_files_has_no_peer_to_try(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "traces.json").write_text('{"traces": []}')
    flags = {"traces_api_endpoint": f"file:{tmp_path / 'traces.json'}", "publisher_endpoint": f"file:{tmp_path / 's'}"}
    code, text = printed(platform, "--check", **flags)
    assert code == 0
    assert "no peer to try" in text
    assert not sent_anything(platform)


@pytest.mark.parametrize("role", ["traces_api_endpoint", "publisher_endpoint"])
def test_a_check_of_one_file_tries_the_other_peer(platform: Platform, tmp_path: Path, role: str) -> None:
    (tmp_path / "traces.json").write_text('{"traces": []}')
    assert printed(platform, "--check", **{role: f"file:{tmp_path / 'traces.json'}"})[0] == 0
    assert sent_anything(platform)


class Terminal(io.BytesIO):
    """Standard error where a person looks at it."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_readable_lines_and_a_table_instead_of_json(platform: Platform) -> None:
    stream = Terminal()
    code = main.run(platform.argv(), platform.env(), log_stream=stream, state=main.RunState())
    assert code == 0
    text = stream.getvalue().decode()
    assert "stored 25 of 25 scores" in text
    assert "evaluator" in text
    assert "Latency" in text
    assert '{"time"' not in text


# --- processes and signals --------------------------------------------------------------------------------------------


def test_the_whole_job_as_a_process_stores_all_and_prints_nothing_but_its_log(platform: Platform) -> None:
    ended = child(platform, evaluators=SEVEN_RULES)
    assert ended.code == 0
    assert len(platform.publisher.scores) == 175
    assert ended.stored() == (175, 175)


@pytest.mark.parametrize(
    ("fault", "flags", "code"),
    [
        ("publisher_403", {}, 3),
        (None, {"sampling_rate": "7"}, 2),
        (None, {"traces_api_endpoint": "http://127.0.0.1:9", "evaluators": None}, 2),
    ],
    ids=["refused", "a wrong flag", "a flag that is missing"],
)
def test_exit_codes_reach_the_parent_process(
    platform: Platform, fault: str | None, flags: dict[str, Any], code: int
) -> None:
    if fault is not None:
        platform.fault(fault)
    command = [sys.executable, ROOT / "main.py", *platform.argv(**flags)]
    assert subprocess.run(command, env=child_env(platform), capture_output=True, timeout=60).returncode == code


HANGS = """
import time
def hangs(trace: Trace) -> float:
    time.sleep(60)
    return 0.5
"""


def wait_for(condition: Any, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


@dataclass
class Terminated(Ended):
    children: list[int]


def terminated(
    platform: Platform, is_busy: Any, *, env: dict[str, str | None] | None = None, **flags: Any
) -> Terminated:
    """Start the job, send SIGTERM once it is busy, and see it end at once: a call in flight would take 30 s."""
    command = [sys.executable, ROOT / "main.py", *platform.argv(**flags)]
    process = subprocess.Popen(command, env=child_env(platform, **(env or {})), stderr=subprocess.PIPE, text=True)
    try:
        wait_for(is_busy)
        time.sleep(0.2)
        children = children_of(process.pid)
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, text = process.communicate(timeout=10)
        assert time.monotonic() - begin < 1.0  # at once is under a second; it takes a tenth
        return Terminated(process.returncode, text, children)
    finally:
        process.kill()
        process.wait()


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def test_sigterm_with_judge_calls_in_flight_ends_at_once_and_says_what_is_lost(platform: Platform) -> None:
    platform.model.delay_s = 30.0
    ended = terminated(
        platform,
        lambda: platform.model.in_flight >= 16,
        env=gateway(platform),
        evaluators=[LATENCY, judge("own", "Judge {trace.output}")],
    )
    assert ended.code == 0
    (line,) = [line for line in ended.of("WARN") if "SIGTERM" in line]
    assert re.search(r"\d+ traces were evaluated and none of their scores was published", line)
    assert platform.requests("publisher") == []


def test_sigterm_with_custom_code_at_work_ends_at_once_and_leaves_no_child_behind(platform: Platform) -> None:
    code = {"identifier": "own", "displayName": "Hangs", "type": "code", "source": HANGS}
    ended = terminated(platform, lambda: platform.pages, evaluators=[code])
    assert ended.code == 0
    assert any("SIGTERM" in line for line in ended.of("WARN"))
    assert ended.children
    wait_for(lambda: not any(Path(f"/proc/{child}").exists() for child in ended.children), 5.0)


def test_sigterm_while_the_traces_api_keeps_silent_ends_at_once(platform: Platform) -> None:
    platform.observer.page_delay_s = 30.0
    ended = terminated(platform, lambda: platform.requests("traces"))
    assert ended.code == 0
    assert any("0 traces were evaluated" in line for line in ended.of("WARN"))


@pytest.fixture
def as_a_script(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Arguments and environment are the process's own; what the script changes of the process is undone."""
    monkeypatch.setattr(sys, "argv", ["main.py", *platform.argv()])
    for name, value in platform.env().items():
        monkeypatch.setenv(name, value)
    before, hook = signal.getsignal(signal.SIGTERM), threading.excepthook
    yield
    signal.signal(signal.SIGTERM, before)
    threading.excepthook = hook
    gc.unfreeze()


def run_script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "main.py"), run_name="__main__")


@pytest.mark.usefixtures("as_a_script")
def test_run_as_a_script_it_ends_with_its_exit_code_and_handles_sigterm(
    platform: Platform, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run_script()
    assert ended.value.code == 0
    assert len(platform.publisher.scores) == 25
    handler = signal.getsignal(signal.SIGTERM)
    assert callable(handler)
    assert handler.__name__ == "handle_sigterm"
    with pytest.raises(SystemExit) as again:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
    assert again.value.code == 0
    last = Ended(0, capfdbinary.readouterr().err.decode()).lines[-1]
    assert last["level"] == "WARN"
    assert "25 of their scores were published" in last["msg"]


@pytest.mark.usefixtures("as_a_script")
def test_ctrl_c_ends_with_130_and_a_line_in_the_log(
    platform: Platform, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def interrupt(platform: Platform, request: Any, answer: Any) -> Response:
        os.kill(os.getpid(), signal.SIGINT)
        return slow(answer(), 1.0)

    platform.interfere(Fault("traces", interrupt))
    with pytest.raises(SystemExit) as ended:
        run_script()
    assert ended.value.code == 130
    last = Ended(130, capfdbinary.readouterr().err.decode()).lines[-1]
    assert (last["level"], "interrupted" in last["msg"]) == ("WARN", True)


@pytest.mark.usefixtures("as_a_script")
def test_a_thread_that_fails_is_a_line_of_the_log(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with pytest.raises(SystemExit):
        run_script()
    thread = threading.Thread(target=lambda: 1 // 0)
    thread.start()
    thread.join()
    last = Ended(0, capfdbinary.readouterr().err.decode()).lines[-1]
    assert last["level"] == "ERROR"
    assert "ZeroDivisionError" in last["stack"]


def test_the_sigterm_line_counts_what_was_evaluated() -> None:
    stream = io.BytesIO()
    main.set_up_logging({}, stream)
    with pytest.raises(SystemExit) as ended:
        main.handle_sigterm(signal.SIGTERM, None)
    gc.unfreeze()
    assert ended.value.code == 0
    (line,) = Ended(0, stream.getvalue().decode()).of("WARN")
    assert "traces were evaluated and none of their scores was published" in line


# --- faults, alone and in pairs ---------------------------------------------------------------------------------------

FINAL_AT_ONCE = {"token_401": 3, "export_403": 3, "export_404": 3, "export_html_forever": 3}
"""Faults that leave nothing to evaluate, and the exit code."""

INCOMPLETE = {"page_500": 3, "export_503_forever": 1}
"""Faults that leave a part of the traces out."""

UNSTORED = {"publisher_403": 3, "publisher_404": 3, "publisher_redirect": 3, "publisher_503_forever": 1}
"""Faults that leave scores unstored."""

LOSE_REPLIES = {"publisher_reply_lost", "publisher_cut"}
"""Faults after which a publisher may have more than the job was told of."""

FAULTS = [name for name in FAULT_NAMES if not name.startswith("model_")] + ["instant_37", "instant_900"]
SEED = 20260115
PAIRS = random.Random(SEED).sample(list(itertools.combinations(FAULTS, 2)), 200)


def world(faults: tuple[str, ...]) -> Platform:
    at_one_instant = any(name.startswith("instant") for name in faults)
    step_ns = 0 if at_one_instant else 10**9
    begin = to_ns("2026-01-15T10:00:00Z")
    count = 900 if "instant_900" in faults else 37
    platform = Platform([bare(number, begin + number * step_ns) for number in range(count)])
    for name in faults:
        if not name.startswith("instant"):
            platform.fault(name)
    return platform


def expected_code(faults: tuple[str, ...]) -> int:
    first = next((FINAL_AT_ONCE[name] for name in faults if name in FINAL_AT_ONCE), None)
    if first is not None:
        return first
    codes = [table[name] for table in (INCOMPLETE, UNSTORED) for name in faults if name in table]
    codes += [3 for name in faults if name == "publisher_500_item"]
    return 1 if 1 in codes else max(codes, default=0)


def check_faults(faults: tuple[str, ...]) -> None:
    with world(faults) as platform:
        ended = job(platform, evaluators=[LATENCY])
        stored, total = ended.stored()
        assert ended.code == expected_code(faults), ended.text
        if set(faults) & LOSE_REPLIES:
            assert len(platform.publisher.scores) >= stored
        else:
            assert len(platform.publisher.scores) == stored
        assert platform.publisher.wrong == []
        if ended.code == 0:
            assert stored == total == len(platform.store.traces)
        assert platform.idp.client_secret not in ended.text
        assert not any(token in ended.text for token in platform.idp.issued)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_alone_leaves_all_stored_or_the_right_exit_code(fault: str) -> None:
    check_faults((fault,))


@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_two_faults_together_leave_all_stored_or_the_right_exit_code(pair: tuple[str, str]) -> None:
    check_faults(pair)


def test_a_peer_that_is_never_there_asks_for_a_repeat(platform: Platform) -> None:
    for role in ("idp", "traces", "publisher"):
        with Platform(series(3)) as platform:
            platform.servers[role].close()
            ended = job(platform)
            assert ended.code == 1
            assert platform.naps == [2.0, 4.0, 8.0]


def test_closed_standard_streams_are_filled_before_the_log_is_opened() -> None:
    saved = {number: os.dup(number) for number in (0, 2)}
    try:
        for number in saved:
            os.close(number)
        stream = main.open_stderr()
        assert stream.write(b"{}\n") == 3
        assert os.path.samestat(os.fstat(2), Path(os.devnull).stat())  # and not a socket that was opened later
    finally:
        for number, copy in saved.items():
            os.dup2(copy, number)
            os.close(copy)
