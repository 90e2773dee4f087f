"""The first minutes: the examples, the report, the dry run, the check of peers, and the view at a terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from loopback import Platform, series

import main

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
IDS = (
    "--monitor-id=00000000-0000-4000-8000-000000000001",
    "--run-id=00000000-0000-4000-8000-000000000002",
)
WHAT = ("--monitor-name=example", "--organization=acme", "--project=shop", "--agent=assistant", "--environment=local")
WINDOW = ("--trace-start=2026-01-15", "--trace-end=2026-01-16")


def example_argv(tmp_path: Path, *more: str, evaluators: str = "") -> list[str]:
    return [
        *WHAT,
        *IDS,
        *WINDOW,
        f"--evaluators={evaluators or '@' + str(EXAMPLES / 'evaluators.json')}",
        f"--traces-api-endpoint=file:{EXAMPLES / 'traces.json'}",
        f"--publisher-endpoint=file:{tmp_path / 'scores.json'}",
        *more,
    ]


def run_job(argv: list[str], env: dict[str, str] | None = None) -> tuple[int, str, list[dict[str, str]]]:
    """Exit code, standard output and log lines of a run in this process."""
    out, log = io.StringIO(), io.BytesIO()
    code = main.run(argv, env or {}, log_stream=log, out=out, sleep=lambda _: None, state=main.RunState())
    return code, out.getvalue(), [json.loads(line) for line in log.getvalue().splitlines()]


def by_name(tmp_path: Path) -> dict[str, dict[str, object]]:
    posted = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    return {aggregate["evaluatorName"]: aggregate for aggregate in posted["aggregatedScores"]}


def test_the_examples_give_the_scores_that_can_be_counted_in_them(tmp_path: Path) -> None:
    code, _, _ = run_job(example_argv(tmp_path))
    assert code == 0
    found = {n: (a["count"], a["skippedCount"], a["aggregations"]) for n, a in by_name(tmp_path).items()}
    # 12 traces, one of which failed; two have a second agent; refunds were issued in one, refused in one
    assert found["Names the refund"] == (12, 11, {"mean": 1.0})
    assert found["Answer length"][:2] == (12, 1)
    assert found["Answer length"][2]["mean"] == pytest.approx(9 / 11)
    # of 8 agent runs with tools: one tool in two failed for one, the only one for another
    assert found["Tool success"][0] == 14
    assert found["Latency"][2]["mean"] == pytest.approx(10 / 11)


def test_a_report_and_the_output_files_are_written(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    code, _, _ = run_job(example_argv(tmp_path, f"--report={page}", f"--outputs={tmp_path}"))
    assert code == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    figures = json.loads(page.with_suffix(".json").read_bytes())
    assert (figures["found"], figures["evaluated"]) == (12, 12)
    assert (tmp_path / "traces-evaluated").read_text() == "12"
    total = sum(int(str(a["count"])) for a in by_name(tmp_path).values())
    assert (tmp_path / "scores-stored").read_text() == str(total)
    means = json.loads((tmp_path / "means.json").read_text())
    assert means["Latency"] == pytest.approx(10 / 11)


@pytest.mark.parametrize(
    ("flag", "given", "blocked"), [("--report", "r.html", "r.json"), ("--outputs", "", "means.json")]
)
def test_what_cannot_be_written_is_an_error_and_the_scores_are_stored(
    tmp_path: Path, flag: str, given: str, blocked: str
) -> None:
    place = tmp_path / "place"
    # a folder in the way of a file that is to be written
    (place / blocked).mkdir(parents=True)
    code, _, log = run_job(example_argv(tmp_path, f"{flag}={place / given}"))
    assert code == 1
    assert any(f"{flag} can't be written" in line["msg"] for line in log)
    assert by_name(tmp_path)


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--report=/no/such/folder/r.html", "a page (.html) in a folder that exists"),
        ("--report=r.json", "a page (.html)"),
        ("--outputs=/no/such/folder", "a folder that exists"),
    ],
)
def test_a_wrong_place_for_files_is_found_before_anything_is_read(tmp_path: Path, flag: str, words: str) -> None:
    code, _, log = run_job(example_argv(tmp_path, flag))
    assert code == 2
    assert any(words in line["msg"] for line in log)


def test_a_dry_run_prints_the_plan_and_each_judges_prompt_and_sends_nothing(tmp_path: Path) -> None:
    code, out, _ = run_job(example_argv(tmp_path, "--dry-run", evaluators=f"@{EXAMPLES / 'judges.json'}"))
    assert code == 0
    assert "traces that start from 2026-01-15T00:00:00Z until before 2026-01-16T00:00:00Z" in out
    assert "every trace" in out
    assert f"scores would go to {tmp_path / 'scores.json'}" in out
    assert "Kindness" in out
    assert "Are you open on Sundays?" in out
    assert "kind and warm" in out
    assert "(no prompt:" in out  # groundedness: nothing to ground the first answer in
    assert not (tmp_path / "scores.json").exists()


def test_a_dry_run_over_http_connects_to_nothing(tmp_path: Path) -> None:
    with Platform(series(3)) as platform:
        code, out, _ = run_job([*platform.argv(), "--dry-run", "--sampling-rate=0.25"], platform.env())
        assert [request for role in platform.servers for request in platform.requests(role)] == []
    assert code == 0
    assert "0.25 of the traces, by trace id" in out


def test_a_dry_run_refuses_a_template_with_a_defect(tmp_path: Path) -> None:
    broken = [{"identifier": "j", "displayName": "J", "type": "llm_judge", "level": "trace", "source": "{contxt}"}]
    code, _, log = run_job(example_argv(tmp_path, "--dry-run", evaluators=json.dumps(broken)))
    assert code == 2
    assert any("contxt" in line["msg"] and line["level"] == "ERROR" for line in log)


def test_a_dry_run_of_an_empty_window_says_so_by_its_plan_alone(tmp_path: Path) -> None:
    argv = [word for word in example_argv(tmp_path, "--dry-run") if not word.startswith("--trace-")]
    code, out, _ = run_job([*argv, "--trace-start=2020-01-01", "--trace-end=2020-01-02"])
    assert code == 0
    assert "evaluators" in out


JUDGE = [{"identifier": "helpfulness", "displayName": "Help", "config": {"model": "openai/gpt-4o-mini"}}]


def check(platform: Platform, **over: str) -> tuple[int, str]:
    env = {**platform.env(), "LLM_API_BASE": platform.model_url, "LLM_API_KEY": "judge-key-1234", **over}
    argv = [word for word in platform.argv() if not word.startswith("--evaluators=")]
    code, out, _ = run_job([*argv, f"--evaluators={json.dumps(JUDGE)}", "--check"], env)
    return code, out


def test_a_check_asks_each_peer_once_and_stores_nothing() -> None:
    with Platform(series(3)) as platform:
        code, out = check(platform)
        assert code == 0, out
        assert [line.split("  ")[0].strip() for line in out.splitlines()] == [
            "identity provider",
            "traces API",
            "publisher",
            "judge openai/gpt-4o-mini",
        ]
        assert {role: len(platform.requests(role)) for role in platform.servers} == {
            "idp": 1,
            "traces": 1,
            "publisher": 1,
            "model": 1,
        }
        assert platform.publisher.scores == {}


def test_a_check_says_what_to_do_where_a_peer_fails() -> None:
    with Platform(series(3)) as platform:
        platform.fault("publisher_403")
        platform.fault("export_503", after=0)
        platform.servers["model"].close()
        code, out = check(platform)
    assert code == 1
    assert out.count("FAIL") == 3
    assert "HTTP 403" in out
    assert "the client lacks the rights" in out
    assert "try again later" in out
    assert "check the model's name, and LLM_API_BASE and LLM_API_KEY" in out


def test_a_check_without_an_identity_provider_says_which_to_mend_first() -> None:
    with Platform(series(3)) as platform:
        platform.servers["idp"].close()
        code, out = check(platform)
    assert code == 1
    assert "mend the identity provider first" in out


def test_a_check_of_what_is_no_traces_api() -> None:
    with Platform(series(3)) as platform:
        platform.fault("export_html", after=0)
        code, out = check(platform)
    assert code == 1
    assert "a reply that holds no traces" in out


@contextmanager
def terminal() -> Iterator[tuple[int, list[bytes]]]:
    """A pseudo-terminal: its inner end, and what was shown on it so far."""
    outer, inner = pty.openpty()
    shown: list[bytes] = []

    def read() -> None:
        try:
            while chunk := os.read(outer, 65536):
                shown.append(chunk)
        except OSError:  # the inner end is closed
            return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield inner, shown
    finally:
        os.close(inner)
        reader.join(30)
        os.close(outer)


def test_at_a_terminal_people_see_lines_and_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "110")
    with terminal() as (inner, shown):
        stream = io.FileIO(inner, "wb", closefd=False)
        assert main.run(example_argv(tmp_path), {}, log_stream=stream, state=main.RunState()) == 0
    text = b"".join(shown).decode()
    assert "12 traces evaluated" in text
    assert "█" in text
    assert "stored" in text
    assert '{"time"' not in text


def test_the_process_itself_takes_a_terminal_for_one(tmp_path: Path) -> None:
    with terminal() as (inner, shown):
        words = [sys.executable, ROOT / "main.py", *example_argv(tmp_path)]
        env = {"PATH": os.environ["PATH"], "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "110"}
        assert subprocess.run(words, stderr=inner, env=env, check=False).returncode == 0
    text = b"".join(shown).decode()
    assert "12 traces evaluated" in text
    assert "\x1b[1;3" not in text
