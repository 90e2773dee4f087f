"""The command that shows a trace: for people, as data, as trajectories."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from amp_evaluation.trace.__main__ import main
from amp_evaluation.trace._describe import MAX_SHOWN, describe, render
from amp_evaluation.trace.models import (
    AgentSpan,
    ChainSpan,
    LLMMetrics,
    LLMSpan,
    RetrievedDoc,
    RetrieverMetrics,
    RetrieverSpan,
    ToolMetrics,
    ToolSpan,
    Trace,
    TraceMetrics,
    UserMessage,
)

A, B = "a1" * 16, "b2" * 16


def attribute(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "value": {"intValue": value} if isinstance(value, int) else {"stringValue": value}}


def request(trace_id: str, **attributes: Any) -> str:
    span = {
        "traceId": trace_id,
        "spanId": "eee19b7ec3c1b174",
        "name": "chat",
        "startTimeUnixNano": "1796036009485744237",
        "endTimeUnixNano": "1796036009585744237",
        "attributes": [attribute(key.replace("__", "."), value) for key, value in attributes.items()],
    }
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}) + "\n"


CHAT = {
    "gen_ai__operation__name": "chat",
    "gen_ai__request__model": "gpt-4o-mini",
    "gen_ai__input__messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Next ferry?"}]}]),
    "gen_ai__output__messages": json.dumps(
        [{"role": "assistant", "parts": [{"type": "text", "content": "At 22:30."}]}]
    ),
    "gen_ai__usage__input_tokens": 12,
    "gen_ai__usage__output_tokens": 3,
}


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "spans.jsonl"
    path.write_text(request(A, **CHAT) + request(B, acme__ask="What?", acme__step="talk"))
    return str(path)


def run(*argv: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main(argv, out, err), out.getvalue(), err.getvalue()


def test_people_see_input_output_tree_and_tokens(file: str) -> None:
    code, out, err = run(file, A[:6])
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"trace {A}  2026-11-30T10:53:29.485744Z  100 ms",
        "  input   Next ferry?",
        "  output  At 22:30.",
        "  tokens  12 in, 3 out, 15 together; 1 LLM calls; 0 errors",
        "  tree",
        "    [llm] gpt-4o-mini (12 in, 3 out) -> At 22:30.",
        "",
    ]


def test_without_an_id_all_traces_are_shown(file: str) -> None:
    assert [line[:12] for line in run(file)[1].splitlines() if line.startswith("trace")] == [
        "trace a1a1a1",
        "trace b2b2b2",
    ]


def test_json_is_the_same_as_data_an_object_a_line(file: str) -> None:
    code, out, _ = run(file, "--json")
    first, second = map(json.loads, out.splitlines())
    assert code == 0
    assert (first["trace_id"], first["input"], first["output"]) == (A, "Next ferry?", "At 22:30.")
    assert first["tokens"] == {"known": True, "input": 12, "output": 3, "total": 15, "cache_read": 0}
    assert first["tree"][0]["kind"] == "llm"
    assert second["trace_id"] == B


def test_atif_is_a_trajectory_a_line(file: str) -> None:
    found = [json.loads(line) for line in run(file, "--atif")[1].splitlines()]
    assert [(t["session_id"], t["schema_version"]) for t in found] == [(A, "ATIF-v1.8"), (B, "ATIF-v1.8")]


def test_a_mapping_is_used(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mapping = tmp_path / "mapping.json"
    mapping.write_text(json.dumps({"input": "acme.ask", "kind": {"key": "acme.step", "values": {"talk": "agent"}}}))
    _, out, _ = run(file, B, "--json", "--mapping", str(mapping))
    assert (json.loads(out)["input"], json.loads(out)["tree"][0]["kind"]) == ("What?", "agent")
    monkeypatch.setenv("AMP_TRACE_MAPPING_PATH", str(mapping))
    assert json.loads(run(file, B, "--json")[1])["input"] == "What?"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        pytest.param(["missing.json"], "missing.json: no such file or folder", id="no file"),
        pytest.param(["{file}", "ffff"], "no trace whose id starts with 'ffff'", id="no such trace"),
        pytest.param(["{folder}/empty.jsonl"], "no trace", id="no trace at all"),
        pytest.param(["{file}", "--mapping", "{folder}/none.json"], "none.json' can't be read", id="no mapping"),
    ],
)
def test_nothing_to_show_is_exit_2_with_the_reason(file: str, argv: list[str], said: str) -> None:
    folder = Path(file).parent
    (folder / "empty.jsonl").write_text("")
    code, out, err = run(*[word.format(file=file, folder=folder) for word in argv])
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(("form", "seen"), [([], "! can't be parsed: "), (["--json"], '"defect": "')])
def test_a_trace_that_cannot_be_parsed_is_named_and_the_others_are_shown(
    tmp_path: Path, form: list[str], seen: str
) -> None:
    deep = f'{{"traceId": "{B}", "spans": {"[" * 100_000 + "]" * 100_000}}}'
    good = json.dumps({"traceId": A, "spans": [{"spanId": "s", "name": "run", "startTime": "2026-01-15T10:00:00Z"}]})
    (tmp_path / "t.jsonl").write_text(f"{deep}\n{good}\n")
    code, out, _ = run(str(tmp_path / "t.jsonl"), *form)
    assert code == 1
    assert seen in out and A in out and B in out


def test_the_module_runs_as_a_command(file: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "amp_evaluation.trace", file, A, "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["output"] == "At 22:30."


# --- the description --------------------------------------------------------------------------------------------------


def full_trace(**over: Any) -> Trace:
    spans = [
        ChainSpan("c", None, None, "serve"),
        AgentSpan("a", "c", None, "clerk", "acme", "gpt-4o-mini", input="Hi", output="Ho"),
        LLMSpan("l", "a", None, [UserMessage("Hi")], "", metrics=LLMMetrics(0, True, "HTTP 500", usage_known=False)),
        ToolSpan("t", "a", None, "fare", {"to": "Bari"}, None, ToolMetrics(7.0, True, None, "no such\nport")),
        RetrieverSpan(
            "r",
            "a",
            None,
            "ports",
            [RetrievedDoc("1", "Bari is a port.")],
            metrics=RetrieverMetrics(duration_known=False),
        ),
        AgentSpan("b", "c", None, ""),
    ]
    metrics = TraceMetrics(usage_known=False, duration_known=False, error_count=2, has_errors=True)
    return Trace("run", "Hi", "Ho", spans, metrics, **over)


def test_every_kind_of_span_and_its_error_is_shown() -> None:
    text = render(describe(full_trace(notes=["the root is missing"])))
    assert text.splitlines() == [
        "trace run  time unknown  duration unknown",
        "  input   Hi",
        "  output  Ho",
        "  tokens  unknown; 1 LLM calls; 2 errors",
        "  tree",
        "    [chain] serve",
        "      [agent] clerk",
        "        [llm] ERROR: HTTP 500",
        "        [tool] fare ERROR: no such port",
        "        [retriever] ports",
        "      [agent]",
        "  tools",
        '    1. fare({"to": "Bari"}) ->   ERROR: no such port  7 ms',
        "  retrievals",
        "    ports -> 1 documents",
        "      - Bari is a port.",
        "  agents",
        f"    clerk (acme, gpt-4o-mini): {len(full_trace().create_agent_trace('a').steps)} steps",
        "    (no name): 0 steps",
        "  skipped or ambiguous",
        "    - the root is missing",
    ]


@pytest.mark.parametrize(
    ("over", "said"),
    [
        pytest.param({"failed": True, "failure_reason": "HTTP 500"}, "  ! failed: HTTP 500", id="failed"),
        pytest.param({"initialization_only": True}, "  ! initialisation only", id="initialisation only"),
        pytest.param({"root_missing": True}, "  ! its root span was never exported", id="no root"),
        pytest.param({"cut": True}, "  ! cut by its source", id="cut"),
        pytest.param({"content_captured": False}, "  ! content not captured", id="no content"),
    ],
)
def test_states_are_said_first(over: dict[str, Any], said: str) -> None:
    assert render(describe(full_trace(**over))).splitlines()[1].startswith(said)


def test_long_texts_are_cut_for_people_and_whole_as_data() -> None:
    trace = Trace("run", "x" * (MAX_SHOWN + 1), "line 1\nline 2")
    text = render(describe(trace))
    assert f"x… ({MAX_SHOWN + 1} characters)" in text
    assert "  output  line 1\n          line 2\n" in text
    assert describe(trace)["input"] == trace.input


def test_a_trace_cannot_steer_the_readers_terminal() -> None:
    text = render(describe(Trace("run", "\x1b[2Jgone\r\u202e", "ok\ttab")))
    assert "\\x1b[2Jgone\\x0d\\x202e" in text
    assert "\x1b" not in text
    assert "ok\ttab" in text
