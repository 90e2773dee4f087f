"""The terminal view, written to a stream that says it is a terminal."""

from __future__ import annotations

import io
import logging
import re
from datetime import UTC, datetime

import pytest

from amp_evaluation.models import EvalMode, EvaluatorScore, EvaluatorSummary
from amp_evaluation.run_result import Progress, RunResult
from amp_evaluation.terminal import TerminalView


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def result() -> RunResult:
    scores = [EvaluatorScore(trace_id="a", score=0.75), EvaluatorScore(trace_id="b", skip_reason="no response")]
    return RunResult(
        run_id="r",
        eval_mode=EvalMode.MONITOR,
        started_at=datetime(2026, 1, 15, tzinfo=UTC),
        traces_evaluated=2,
        scores={
            "Help [bold]ful": EvaluatorSummary(
                evaluator_name="Help [bold]ful",
                count=2,
                skipped_count=1,
                aggregated_scores={"mean": 0.75},
                individual_scores=scores,
            ),
            "Nothing": EvaluatorSummary(evaluator_name="Nothing", count=1, skipped_count=1),
        },
    )


def test_a_table_with_a_bar_for_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Tty()
    TerminalView(stream).show_results(result())
    text = stream.getvalue()
    assert "2 traces evaluated" in text
    assert "Help [bold]ful" in text
    row = next(line for line in text.splitlines() if "Help" in line)
    assert row.split("ful")[1].split() == ["trace", "1", "1", "1", "0.750", "█" * 15 + "░" * 5]
    assert "no score" in text


@pytest.mark.parametrize(("no_color", "coloured"), [("1", False), ("", True)])
def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch, no_color: str, coloured: bool) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", no_color)
    stream = Tty()
    view = TerminalView(stream)
    view.handle(logging.LogRecord("x", logging.ERROR, "f", 1, "traces API: HTTP %s", (503,), None))
    assert "traces API: HTTP 503" in stream.getvalue()
    assert ("\x1b[1;31m" in stream.getvalue()) == coloured


def test_log_lines_and_the_progress_bar_share_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Tty()
    view = TerminalView(stream)
    view.on_progress(Progress(found=9, sampled=4, evaluated=3, in_flight=0, seconds=0.1))
    view.handle(logging.LogRecord("x", logging.WARNING, "f", 1, "careful [/b]", (), None))
    view.close()
    view.close()
    assert "3 of 4 traces" in stream.getvalue()
    written = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert "WARN  careful [/b]\n" in written  # the level and its text in one line, without the bar between them


@pytest.mark.parametrize("columns", [50, 60, 80, 120])
def test_no_number_is_cut_however_narrow_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    run = result()
    run.scores["N" * 200] = run.scores["Nothing"]
    stream = Tty()
    TerminalView(stream).show_results(run)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert "…" not in text
    assert {"scored", "passed", "skipped", "mean", "0.750", "trace"} <= set(text.split())
    assert text.count("N") >= 200
    assert max(map(len, text.splitlines())) <= columns
    assert ("█" in text) == (columns >= 72)


def test_a_line_that_cannot_be_formatted_does_not_end_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    TerminalView(Tty()).handle(logging.LogRecord("x", logging.INFO, "f", 1, "%d", ("no number",), None))
    assert "Logging error" in capsys.readouterr().err


def test_what_a_trace_says_cannot_steer_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Tty()
    view = TerminalView(stream)
    view.handle(logging.LogRecord("x", logging.INFO, "f", 1, "two\n\tlines \x1b]0;owned\x07 \u202e \x9b2J", (), None))
    run = result()
    run.scores["\x1b[2JN"] = run.scores["Nothing"]
    view.show_results(run)
    assert "two\n" in stream.getvalue()
    assert not set("\x1b\x07\u202e\x9b") & set(stream.getvalue())
    assert "\\x1b]0;owned" in stream.getvalue()
