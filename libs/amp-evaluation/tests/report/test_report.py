"""The report: figures that can be checked by hand, a page that holds no more than it should."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation.models import EvalMode, EvaluatorScore, EvaluatorSummary, JudgeUsage, RunError, SpanContext
from amp_evaluation.report import mean_interval, report_figures, write_report
from amp_evaluation.run_result import RunResult

START = datetime(2026, 1, 15, tzinfo=UTC)


def scored(trace: int, score: float, **more: object) -> EvaluatorScore:
    return EvaluatorScore(trace_id=f"t{trace}", trace_start_time=START, score=score, **more)  # type: ignore[arg-type]


def summary(name: str, scores: list[EvaluatorScore], level: str = "trace") -> EvaluatorSummary:
    values = [s.score for s in scores if s.score is not None]
    return EvaluatorSummary(
        evaluator_name=name,
        count=len(scores),
        level=level,  # type: ignore[arg-type]
        skipped_count=len(scores) - len(values),
        aggregated_scores={"mean": sum(values) / len(values)} if values else {},
        individual_scores=scores,
    )


def run_result(*summaries: EvaluatorSummary, **metadata: object) -> RunResult:
    return RunResult(
        run_id="run-1",
        eval_mode=EvalMode.MONITOR,
        started_at=START,
        completed_at=START + timedelta(seconds=2.5),
        organization="acme",
        agent="assistant",
        traces_evaluated=9,
        scores={s.evaluator_name: s for s in summaries},
        metadata=dict(metadata),
    )


class Page(HTMLParser):
    """Tags, attributes and text of a page, and whether every tag is closed."""

    VOID = frozenset({"meta", "rect", "line"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_figures_of_an_evaluator_can_be_checked_by_hand() -> None:
    scores = [scored(1, 0.0, explanation="bad"), scored(2, 0.45), scored(3, 1.0)]
    scores += [EvaluatorScore(trace_id="t4", skip_reason="no response"), EvaluatorScore(trace_id="t5", skip_reason="x")]
    scores += [EvaluatorScore(trace_id="t6", skip_reason="no response")]
    figures = report_figures(run_result(summary("Help", scores)), title="m").evaluators[0]
    assert (figures.count, figures.scored, figures.passed, figures.skipped) == (6, 3, 1, 3)
    assert figures.mean == pytest.approx(1.45 / 3)
    assert figures.pass_rate == pytest.approx(1 / 3)
    assert figures.histogram == [1, 0, 0, 0, 1, 0, 0, 0, 0, 1]
    assert figures.skip_reasons == [("no response", 2), ("x", 1)]
    assert [(w.trace_id, w.score, w.explanation) for w in figures.worst] == [("t1", 0.0, "bad"), ("t2", 0.45, "")]


def test_an_evaluator_that_scored_nothing_has_no_number() -> None:
    skips = [EvaluatorScore(trace_id="t1", skip_reason="no response")]
    figures = report_figures(run_result(summary("Help", skips)), title="m").evaluators[0]
    assert (figures.mean, figures.interval, figures.pass_rate, figures.worst) == (None, None, None, [])


def test_items_are_grouped_by_agent_and_by_model() -> None:
    contexts = [SpanContext("a", agent_name="x", model="m1"), SpanContext("b", agent_name="x"), SpanContext("c")]
    scores = [scored(i, i / 2, span_context=c) for i, c in enumerate(contexts)]
    groups = report_figures(run_result(summary("S", scores, "agent")), title="m").evaluators[0].groups
    assert [(g.kind, g.label, g.count, g.mean) for g in groups] == [("agent", "x", 2, 0.25), ("model", "m1", 1, 0.0)]


@pytest.mark.parametrize(("traces", "has_interval"), [(4, False), (5, True)])
def test_there_is_no_interval_below_five_traces(traces: int, has_interval: bool) -> None:
    scores = [scored(t, t % 2, span_context=SpanContext(str(i))) for t in range(traces) for i in range(3)]
    assert (mean_interval(scores) is not None) == has_interval


@given(st.lists(st.floats(0, 1), min_size=5, max_size=40))
def test_an_interval_lies_between_the_extremes_and_is_the_same_each_time(values: list[float]) -> None:
    scores = [scored(i, v) for i, v in enumerate(values)]
    interval = mean_interval(scores)
    assert interval is not None
    assert min(values) - 1e-9 <= interval.low <= interval.high <= max(values) + 1e-9
    assert interval == mean_interval(scores)


def test_an_interval_has_the_width_that_the_normal_approximation_gives() -> None:
    scores = [scored(i, i % 2) for i in range(400)]
    interval = mean_interval(scores)
    assert interval is not None
    assert interval.low == pytest.approx(0.5 - 1.96 * 0.5 / 20, abs=0.006)
    assert interval.high == pytest.approx(0.5 + 1.96 * 0.5 / 20, abs=0.006)


@pytest.mark.parametrize("per_trace", [1, 2], ids=["one item a trace", "one or two"])
def test_five_thousand_traces_cost_no_minutes(per_trace: int) -> None:
    context = SpanContext("s")
    scores = [scored(i, i % 97 / 97, span_context=context) for i in range(5000) for _ in range(1 + i % per_trace)]
    begin = time.process_time()
    mean_interval(scores)
    assert time.process_time() - begin < 1.0  # 0.1 or 0.2 s; a second an evaluator would be seconds a report


def test_items_of_one_trace_are_drawn_together() -> None:
    alone = mean_interval([scored(i, i % 2) for i in range(40)])
    repeated = mean_interval([scored(i, i % 2, span_context=SpanContext(str(k))) for i in range(40) for k in range(9)])
    assert alone is not None
    assert repeated is not None
    assert repeated.high - repeated.low == pytest.approx(alone.high - alone.low, rel=0.05)


HOSTILE = "<script>alert(1)</script> & \" ' </style> \ud800 🏴"


def test_hostile_text_stays_text_and_the_page_is_well_formed(tmp_path: Path) -> None:
    result = run_result(
        summary(HOSTILE, [scored(1, 0.2, explanation=HOSTILE, span_context=SpanContext("s", agent_name=HOSTILE))]),
        start_time=START,
        end_time=START + timedelta(days=1),
        sample_rate=0.5,
        traces_found=20,
        traces_sampled=9,
        truncated=2,
        warnings=[HOSTILE],
        judge_usage={HOSTILE: [JudgeUsage(HOSTILE, 3, 1, 10, 20, None), JudgeUsage("m", 1, 0, 1, 1, 0.5)]},
    )
    result.errors.append(RunError(HOSTILE, repeat_may_help=True))
    page, data = write_report(tmp_path / "r.html", result, title=HOSTILE, stored=HOSTILE)
    read = Page(page.read_text(encoding="utf-8"))
    assert read.open == []
    assert "script" not in read.tags
    assert not [value for name, value in read.attributes if name in ("src", "href") and not value.startswith("#")]
    assert read.text.count("alert(1)") >= 8
    assert "unknown" in read.text
    assert "0.5000 USD" in read.text
    assert "truncated" in read.text
    assert json.loads(data.read_bytes())["evaluators"][0]["mean"] == pytest.approx(0.2)


def test_the_json_holds_what_the_page_shows(tmp_path: Path) -> None:
    scores = [scored(i, i / 10) for i in range(10)]
    _, data = write_report(tmp_path / "out.html", run_result(summary("S", scores)), title="nightly", stored="9 of 9")
    figures = json.loads(data.read_bytes())
    assert data.name == "out.json"
    assert (figures["title"], figures["stored"], figures["target"]) == ("nightly", "9 of 9", "acme / assistant")
    assert figures["evaluators"][0]["histogram"] == [1] * 10
    assert figures["evaluators"][0]["interval"]["low"] < 0.45 < figures["evaluators"][0]["interval"]["high"]


def test_a_report_named_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"name the page"):
        write_report(tmp_path / "r.json", run_result(), title="m")


def test_many_skip_reasons_are_cut_with_a_count(tmp_path: Path) -> None:
    skips = [EvaluatorScore(trace_id="t", skip_reason=f"reason {i}") for i in range(15)]
    page, _ = write_report(tmp_path / "r.html", run_result(summary("S", skips)), title="m")
    assert "for 3 other reasons" in page.read_text(encoding="utf-8")


def test_long_texts_are_cut_on_the_page_and_whole_in_the_json(tmp_path: Path) -> None:
    scores = [scored(1, 0.1, explanation="é" * 1500 + "end")]
    page, data = write_report(tmp_path / "r.html", run_result(summary("S", scores)), title="m")
    assert "é" * 1000 + " … (503 more characters in the JSON file)" in page.read_text(encoding="utf-8")
    assert "é" * 1001 not in page.read_text(encoding="utf-8")
    assert "é" * 1500 + "end" in data.read_text(encoding="utf-8")


def test_a_run_without_a_trace_says_so_first(tmp_path: Path) -> None:
    run = run_result(summary("S", []))
    run.traces_evaluated = 0
    page, _ = write_report(tmp_path / "r.html", run, title="m")
    assert "no trace was evaluated" in page.read_text(encoding="utf-8")
