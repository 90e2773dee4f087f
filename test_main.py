"""The job run whole against a platform on loopback: flags in, scores stored, exit code and log out.

Peers are real servers on real sockets (`loopback`), as strict as the platform. Waits go to the platform's own clock,
so that retries take no time; what is about processes and signals runs as a process of its own.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from amp_evaluation.errors import RefusedError
from amp_evaluation.http import RetryPolicy
from loopback import MONITOR_ID, RUN_ID, Fault, Platform, Response, series, simple, status
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
        pytest.param(
            [LENGTH | {"identifier": "exact_match"}], ["exact_match" and "monitor"], id="nothing for a monitor"
        ),
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
        ("2026-01-15T10:00:00.123456789Z", "2026-01-15T10:00:00.123456Z"),
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
    idp = main.IdpConfig(
        token_url=platform.token_url,
        client_id=platform.idp.client_id,
        client_secret=secret or platform.idp.client_secret,
    )
    return main.OAuth2TokenManager(idp, retry=RetryPolicy(clock=platform.clock, sleep=platform.sleep))


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
    platform.idp.life_s = 600.0
    platform.interfere(Fault("traces", status(429, Retry_After="60"), times=3))
    platform.interfere(Fault("publisher", status(503, Retry_After="60"), times=3))
    platform.idp.life_s = 200.0
    assert job(platform).code == 0
    assert token_requests(platform) >= 2
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


def test_a_broken_traces_file_names_file_and_place(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "traces.json").write_text('{"traces": [{]}')
    ended = job(platform, traces_api_endpoint=f"file:{tmp_path / 'traces.json'}")
    assert ended.code == 3
    assert "traces.json" in ended.of("ERROR")[0]
    assert not sent_anything(platform)


def test_a_target_that_can_not_be_written_asks_for_a_repeat(tmp_path: Path) -> None:
    (tmp_path / "traces.json").write_text(json.dumps({"traces": series(2), "totalCount": 2}))
    flags = {"traces_api_endpoint": f"file:{tmp_path / 'traces.json'}", "publisher_endpoint": "file:/dev/full"}
    with Platform() as platform:
        ended = job(platform, **flags)
    assert ended.code == 1
    assert "can't be written" in ended.text


def test_a_mapping_that_is_wrong_ends_with_2(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "mapping.json").write_text('{"colour": "red"}')
    ended = job(platform, env={"AMP_TRACE_MAPPING_PATH": str(tmp_path / "mapping.json")})
    assert ended.code == 2
    assert "colour" in ended.text
