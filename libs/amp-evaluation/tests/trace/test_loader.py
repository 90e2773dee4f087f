"""Trace files: every shape, window, order, and faults that name their place."""

from __future__ import annotations

import gzip
import json
import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amp_evaluation._time import format_rfc3339
from amp_evaluation.errors import TraceSourceError
from amp_evaluation.trace.loader import TraceLoader

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)


def at(seconds: float) -> str:
    return format_rfc3339(NOON + timedelta(seconds=seconds))


def full(name: str, seconds: float | None = 0) -> dict[str, Any]:
    times = {"startTime": at(seconds), "endTime": at(seconds + 1)} if seconds is not None else {}
    span = {"traceId": name, "spanId": f"{name}-root", "name": "run", "service": "s", "durationInNanos": 5, **times}
    return {"traceId": name, "rootSpanId": f"{name}-root", "durationInNanos": 5, "spans": [span], **times}


def request(name: str, seconds: float = 0) -> dict[str, Any]:
    nanos = round((NOON + timedelta(seconds=seconds)).timestamp() * 1e6) * 1000
    span = {"traceId": name, "spanId": "eee19b7ec3c1b174", "name": "run", "startTimeUnixNano": str(nanos)}
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [span]}]}]}


A, B, C = "a" * 32, "b" * 32, "c" * 32


def lines(*documents: Any) -> str:
    return "".join(json.dumps(document) + "\n" for document in documents)


def write(path: Path, text: str | bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def ids(place: str, **window: Any) -> list[str]:
    return [trace.traceId for trace in TraceLoader(place).load_traces(**window)]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps({"traces": [full(B, 2), full(A, 1)], "totalCount": 2}), id="an export reply"),
        pytest.param(json.dumps({"traces": [full(B, 2), full(A, 1)]}, indent=2), id="an export reply on many lines"),
        pytest.param(json.dumps([full(B, 2), full(A, 1)]), id="a list of traces"),
        pytest.param(lines(full(B, 2), full(A, 1)), id="a trace a line"),
        pytest.param("\n\n" + lines(full(B, 2)) + "\n" + lines(full(A, 1)), id="a trace a line with blank lines"),
        pytest.param("\ufeff" + lines(full(B, 2), full(A, 1)), id="a trace a line behind a byte order mark"),
        pytest.param(lines({"traces": [full(B, 2)]}, [full(A, 1)]), id="a reply and a list, a line each"),
        pytest.param(lines(request(B, 2), request(A, 1)), id="an OTLP request a line"),
        pytest.param(json.dumps([request(B, 2), request(A, 1)], indent=1), id="a list of OTLP requests"),
        pytest.param(lines(request(B, 2), full(A, 1)), id="OTLP and exports mixed"),
    ],
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_shapes_of_a_file(tmp_path: Path, text: str, packed: bool) -> None:
    data = text.encode()
    assert ids(write(tmp_path / "traces", gzip.compress(data) if packed else data)) == [A, B]


def test_a_file_with_one_trace_over_many_lines(tmp_path: Path) -> None:
    assert ids(write(tmp_path / "one.json", json.dumps(full(A), indent=2))) == [A]
    assert ids(write(tmp_path / "otlp.json", json.dumps(request(B), indent=2))) == [B]


def test_a_folder_is_all_its_trace_files_and_spans_of_a_trace_meet_over_files(tmp_path: Path) -> None:
    write(tmp_path / "one.jsonl", lines(request(A), request(B)))
    write(tmp_path / "day=2" / "two.json.gz", gzip.compress(json.dumps(request(A, 3)).encode()))
    write(tmp_path / "three.ndjson", lines(full(C, 9)))
    write(tmp_path / "notes.txt", "not a trace")
    write(tmp_path / ".hidden" / "x.json", "not JSON")
    traces = TraceLoader(str(tmp_path)).load_traces()
    assert [(t.traceId, len(t.spans)) for t in traces] == [(A, 2), (B, 1), (C, 1)]


def test_a_glob_pattern_is_what_it_matches(tmp_path: Path) -> None:
    write(tmp_path / "run-1.json", json.dumps(full(A)))
    write(tmp_path / "run-2.json", json.dumps(full(B)))
    write(tmp_path / "other.json", json.dumps(full(C)))
    assert ids(str(tmp_path / "run-*.json")) == [A, B]
    assert ids(str(tmp_path / "**" / "other.json")) == [C]


def test_a_file_whose_name_has_brackets_is_that_file(tmp_path: Path) -> None:
    assert ids(write(tmp_path / "run[1].json", json.dumps(full(A)))) == [A]


def test_the_first_copy_of_an_id_wins(tmp_path: Path) -> None:
    twice = TraceLoader(write(tmp_path / "t.jsonl", lines(full(A, 5), full(A, 1)))).load_traces()
    assert [(t.traceId, t.startTime) for t in twice] == [(A, at(5))]


# --- window and order -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        pytest.param(None, None, [A, B, C], id="no window"),
        pytest.param(at(1), at(3), [A, B], id="the start is inside, the end outside"),
        pytest.param(NOON + timedelta(seconds=2), None, [B, C], id="datetimes, no end"),
        pytest.param(None, at(2).replace("Z", ""), [A], id="no zone is UTC"),
        pytest.param("2026-01-15T17:30:02+05:30", "2026-01-16", [B, C], id="another zone, and a day"),
        pytest.param("", "", [A, B, C], id="empty is none"),
    ],
)
def test_traces_belong_to_the_window_they_start_in(tmp_path: Path, start: Any, end: Any, expected: list[str]) -> None:
    for name, text in (("e.jsonl", lines(full(C, 3), full(A, 1), full(B, 2))), ("o.json", "")):
        text = text or lines(request(C, 3), request(A, 1), request(B, 2))
        loader = TraceLoader(write(tmp_path / name, text))
        assert [t.traceId for t in loader.iter_traces(start, end)] == expected
        assert (loader.report.found, loader.report.outside) == (len(expected), 3 - len(expected))


def test_a_window_beside_all_traces_is_told_where_they_are(tmp_path: Path) -> None:
    loader = TraceLoader(write(tmp_path / "t.jsonl", lines(full(C, 3), full(A, 1))))
    assert list(loader.iter_traces("2026-03-01", "2026-03-02")) == []
    told = f"holds 2 traces, all outside the window: the first starts at {at(1)}, the last at {at(3)}"
    assert loader.report.warnings == [f"{tmp_path / 't.jsonl'} {told}"]


def test_a_time_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    loader = TraceLoader(write(tmp_path / "t.json", json.dumps(full(A))))
    with pytest.raises(ValueError, match="end_time='noon'"):
        loader.load_traces(end_time="noon")


def test_traces_without_an_id_or_a_time_are_given_last_for_the_run_to_report(tmp_path: Path) -> None:
    nameless = full("", 1)
    place = write(tmp_path / "t.jsonl", lines(full(B, None), nameless, full(A, 2)))
    assert ids(place) == ["", A, B]
    assert ids(place, start_time=at(100)) == [B]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(seconds=st.lists(st.integers(0, 50), max_size=12), low=st.integers(0, 50), high=st.integers(0, 50))
def test_each_trace_of_the_window_comes_once_in_order(tmp_path: Path, seconds: list[int], low: int, high: int) -> None:
    known = {f"{n:032x}": second for n, second in enumerate(seconds, 1)}
    place = write(tmp_path / "t.jsonl", lines(*(full(name, second) for name, second in known.items())))
    traces = TraceLoader(place).load_traces(at(low), at(high))
    assert [known[t.traceId] for t in traces] == sorted(s for s in seconds if low <= s < high)
    assert len({t.traceId for t in traces}) == len(traces)


# --- going on where the last call ended -------------------------------------------------------------------------------


def test_load_traces_goes_on_where_the_last_call_ended(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    loader = TraceLoader(write(path, lines(full(A, 1), full(B, 2))))
    assert [t.traceId for t in loader.load_traces(end_time=at(2))] == [A]
    assert [t.traceId for t in loader.load_traces()] == [B]
    assert loader.load_traces() == []
    write(path, lines(full(A, 1), full(B, 2), full(C, 0)))
    assert [t.traceId for t in loader.load_traces()] == [C]
    loader.reset_checkpoint()
    assert [t.traceId for t in loader.load_traces()] == [C, A, B]


def test_iter_traces_and_fetch_traces_give_all_every_time(tmp_path: Path) -> None:
    loader = TraceLoader(tmp_path / "t.json")
    write(tmp_path / "t.json", json.dumps(full(A)))
    loader.load_traces()
    assert [t.traceId for t in loader.iter_traces()] == [A]
    assert [t.traceId for t in loader.fetch_traces(start_time=at(0), end_time=at(1))] == [A]


def test_a_line_of_a_trace_is_read_again_only_when_its_turn_comes(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    traces = TraceLoader(write(path, lines(full(A, 1), full(B, 2)))).iter_traces()
    assert next(traces).traceId == A
    os.truncate(path, 10)
    with pytest.raises(TraceSourceError, match=r"t\.jsonl, byte \d+: changed while it was read"):
        next(traces)


# --- faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        pytest.param("t.json", "{", "line 1", id="one brace"),
        pytest.param("t.json", '{"traces": [\n{"traceId": x}]}', "line 2, column 13", id="a word without quotes"),
        pytest.param("t.json", json.dumps({"traces": [full(A)]})[:-9], "line 1", id="an export cut short"),
        pytest.param("t.json", "[1, 2", "line 1", id="a list cut short"),
        pytest.param("t.json", '{"acme": 1}', "line 1: ", id="an object that is no trace"),
        pytest.param("t.json", "<html>", "line 1, column 1", id="no JSON at all"),
        pytest.param("t.jsonl", lines(full(A)) + '{"traceId": \n' + lines(full(B)), "line 2", id="a broken line"),
        pytest.param("t.jsonl", lines(full(A), full(B))[:-20], "line 2", id="a last line cut short"),
        pytest.param("t.jsonl", '{"traceId": "a", "spans": [\n' + lines(full(B)), "line 1", id="a broken first line"),
        pytest.param("t.jsonl", lines(request(A)) + '{"resourceSpans": [\n', "line 2", id="a broken OTLP line"),
        pytest.param("t.json", '{"resourceSpans": [}', "line 1, column 20", id="a broken OTLP request"),
        pytest.param("t.pb", "not protobuf", "offset 0", id="no protobuf"),
        pytest.param("t.json.gz", gzip.compress(lines(full(A)).encode())[:-12], "can't be read", id="gzip cut short"),
        pytest.param("t.json", b"\x28\xb5\x2f\xfd....", "zstd", id="zstd"),
    ],
)
def test_a_broken_file_is_an_error_that_names_it_and_the_place(
    tmp_path: Path, name: str, text: str | bytes, said: str
) -> None:
    place = write(tmp_path / name, text)
    with pytest.raises(TraceSourceError) as error:
        TraceLoader(place).load_traces()
    assert place in str(error.value)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        pytest.param("missing.json", "no such file or folder", id="a file"),
        pytest.param("missing-*.json", "no file matches", id="a pattern"),
        pytest.param("", "no trace file below it", id="a folder without trace files"),
    ],
)
def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path, place: str, said: str) -> None:
    with pytest.raises(TraceSourceError, match=said) as error:
        TraceLoader(tmp_path / place).load_traces()
    assert str(tmp_path / place) in str(error.value)


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.json")
    (tmp_path / "t.json").unlink()
    (tmp_path / "t.json").symlink_to(tmp_path / "t.json")
    with pytest.raises(TraceSourceError, match=r"t\.json"):
        TraceLoader(tmp_path / "t.json").load_traces()


def test_no_path_is_refused() -> None:
    with pytest.raises(ValueError, match="file_path is empty"):
        TraceLoader(" ")


def test_an_empty_file_is_no_trace_and_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    loader = TraceLoader(write(tmp_path / "t.jsonl", "\n"))
    with caplog.at_level(logging.WARNING, "amp_evaluation"):
        assert loader.load_traces() == []
    assert loader.report.warnings == [f"{tmp_path / 't.jsonl'} holds no trace"]
    assert "holds no trace" in caplog.text


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param('{"traceId": "%s", "startTime": "%s", "spans": null}', id="spans that are null"),
        pytest.param('{"traceId": "%s", "startTime": "%s", "spans": [{"spanId": NaN}]}', id="NaN"),
        pytest.param('{"traceId": "%s", "startTime": "%s", "spans": [{"name": "\\ud800"}]}', id="a lone surrogate"),
        pytest.param(
            '{"traceId": "%s", "startTime": "%s", "spans": ' + "[" * 100_000 + "]" * 100_000 + "}", id="deep nesting"
        ),
    ],
)
def test_one_bad_trace_is_not_the_files_loss(tmp_path: Path, bad: str) -> None:
    broken = bad % (B, at(2))
    for text in (
        lines(full(A, 1)) + broken + "\n" + lines(full(C, 3)),
        f'{{"traces": [{json.dumps(full(A, 1))}, {broken}, {json.dumps(full(C, 3))}]}}',
    ):
        assert ids(write(tmp_path / "t.json", text)) == [A, B, C]


def test_what_belongs_to_no_trace_is_said(tmp_path: Path) -> None:
    log = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"traceId": A, "spanId": "ff" * 8, "body": {}}]}]}]}
    stray = {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "no id"}, 17]}]}]}
    loader = TraceLoader(write(tmp_path / "t.jsonl", lines(request(A), log, stray)))
    assert [t.traceId for t in loader.load_traces()] == [A]
    assert [w for w in loader.report.warnings if "1 log records name no span" in w]
    texts = [str(error) for error in loader.report.errors]
    assert [t for t in texts if "t.jsonl, line 3: span 1 is no object" in t]
    assert [t for t in texts if "1 spans" in t and "no trace id" in t]
    assert not any(error.repeat_may_help for error in loader.report.errors)
