"""The payload: its model, its schema file, and how scores become items that the publisher can store."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from importlib.resources import files

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from amp_evaluation.models import EvaluationLevel, EvaluatorScore, EvaluatorSummary, SpanContext
from amp_evaluation.publish import ItemSource, PublishBody, aggregate_of, shortened, storable

VALIDATOR = jsonschema.Draft202012Validator(json.loads((files("amp_evaluation") / "publish.schema.json").read_text()))

START = datetime(2026, 1, 15, 10, 30, tzinfo=UTC)
ITEM = {
    "evaluatorName": "Latency",
    "level": "trace",
    "traceId": "t1",
    "score": 0.93,
    "traceStartTime": "2026-01-15T10:30:00+00:00",
}
AGGREGATE = {
    "identifier": "latency_performance",
    "evaluatorName": "Latency",
    "level": "trace",
    "aggregations": {"mean": 0.93},
    "count": 1,
    "skippedCount": 0,
}


def score(trace_id: str = "t1", value: float | None = 0.5, **fields: object) -> EvaluatorScore:
    fields.setdefault("trace_start_time", START)
    return EvaluatorScore(trace_id, score=value, **fields)  # type: ignore[arg-type]


def source(*scores: EvaluatorScore, level: str = "trace", name: str = "Latency") -> ItemSource:
    return ItemSource(
        {name: EvaluatorSummary(name, len(scores), EvaluationLevel(level), individual_scores=list(scores))}
    )


def test_the_schema_file_is_the_models_own() -> None:
    assert VALIDATOR.schema == PublishBody.model_json_schema()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"score": 1.2}, id="a score above 1"),
        pytest.param({"score": "0.5x"}, id="a score that is text"),
        pytest.param({"skipReason": "why"}, id="a score beside a skip reason"),
        pytest.param({"score": None}, id="a null score"),
        pytest.param({"level": "span"}, id="an unknown level"),
        pytest.param({"traceStartTime": "2026-01-15T10:30:00"}, id="a time without a zone"),
        pytest.param({"traceStartTime": None}, id="no time"),
        pytest.param({"evaluatorName": "n" * 256}, id="a name over 255 characters"),
        pytest.param({"traceId": ""}, id="an empty trace id"),
        pytest.param({"spanContext": {"spanId": "s", "kind": "llm"}}, id="an unknown label"),
        pytest.param({"spanContext": {"agentName": "a"}}, id="labels without a span id"),
        pytest.param({"colour": "red"}, id="an unknown key"),
    ],
)
def test_model_and_schema_both_refuse(change: dict[str, object]) -> None:
    body = {"individualScores": [{**ITEM, **change}], "aggregatedScores": [AGGREGATE]}
    with pytest.raises(ValidationError):
        PublishBody.model_validate(body)
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(body)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_the_model_refuses_numbers_that_json_has_not(value: float) -> None:
    with pytest.raises(ValidationError):
        PublishBody.model_validate({"individualScores": [{**ITEM, "score": value}], "aggregatedScores": []})
    aggregate = {**AGGREGATE, "aggregations": {"mean": value}}
    with pytest.raises(ValidationError):
        PublishBody.model_validate({"individualScores": [], "aggregatedScores": [aggregate]})


texts = st.text(st.characters(codec=None), max_size=12) | st.sampled_from(["x" * 256, "é" * 300, "\ud800", "\x00"])
contexts = st.builds(
    SpanContext, span_id=texts, agent_name=st.none() | texts, model=st.none() | texts, vendor=st.none() | texts
)
scores = st.builds(
    score,
    trace_id=st.sampled_from(["t1", "t2", "", "t\x001"]) | texts,
    value=st.none() | st.floats(0, 1),
    explanation=st.none() | texts,
    span_context=st.none() | contexts,
    trace_start_time=st.none() | st.datetimes() | st.datetimes(timezones=st.just(timezone(timedelta(hours=5.5)))),
)


@settings(deadline=None)
@given(st.lists(scores, max_size=8), st.sampled_from(["trace", "agent", "llm"]))
def test_whatever_was_scored_makes_a_body_that_holds_to_the_schema(made: list[EvaluatorScore], level: str) -> None:
    items = source(*made, level=level)
    sendable = list(items)
    body = PublishBody(individualScores=sendable, aggregatedScores=[])
    sent = json.loads(body.to_json())
    assert sent == json.loads(body.model_dump_json())
    VALIDATOR.validate(sent)
    assert len(sendable) + len(items.unsendable) == sum(items.totals.values()) <= len(made)
    keys = [(item["traceId"], item.get("spanContext", {}).get("spanId")) for item in sendable]
    assert len(keys) == len(set(keys))
    assert b"\\u0000" not in body.to_json()
    for item in sendable:
        span = item.get("spanContext", {})
        label = "/".join(filter(None, [span.get("vendor"), span.get("model")]))
        assert max(len(label), len(span.get("agentName", ""))) <= 255
        assert not (level == "trace" and span)


def test_a_scored_trace_as_the_publisher_wants_it() -> None:
    (item,) = source(score(value=1, explanation="1234 ms"))
    assert item == {
        "evaluatorName": "Latency",
        "level": "trace",
        "traceId": "t1",
        "traceStartTime": "2026-01-15T10:30:00Z",
        "score": 1.0,
        "explanation": "1234 ms",
    }
    assert type(item["score"]) is float


def test_a_skipped_item_has_its_reason_and_no_score() -> None:
    (item,) = source(score(value=None, skip_reason="no output"))
    assert "score" not in item
    assert item["skipReason"] == "no output"


def test_a_score_spoilt_after_it_was_made_is_a_skip_that_shows_it() -> None:
    spoilt = score()
    spoilt.score = math.nan
    (item,) = source(spoilt)
    assert "nan" in item["skipReason"]
    assert "score" not in item


def test_a_skip_without_a_reason_gets_the_agreed_one() -> None:
    bare = score(value=None)
    bare.skip_reason = "\x00"
    (item,) = source(bare)
    assert item["skipReason"] == "Evaluation did not produce a score"


def test_only_labels_with_a_value_are_sent() -> None:
    context = SpanContext("s1", agent_name="planner", model="", vendor=None)
    (item,) = source(score(span_context=context), level="agent")
    assert item["spanContext"] == {"spanId": "s1", "agentName": "planner"}


def test_vendor_and_model_are_cut_so_that_their_joined_label_fits() -> None:
    context = SpanContext("s1", model="m" * 300, vendor="v" * 20)
    (item,) = source(score(span_context=context), level="llm")
    span = item["spanContext"]
    assert span["vendor"] == "v" * 20
    assert len(span["vendor"]) + 1 + len(span["model"]) == 255


def test_the_same_item_twice_is_sent_once_and_counts_once() -> None:
    items = source(score(value=0.1), score(value=0.2), score("t2"))
    assert [item["traceId"] for item in items] == ["t1", "t2"]
    assert sum(items.totals.values()) == 2


def test_one_trace_has_an_item_for_each_span() -> None:
    spans = [score(span_context=SpanContext(span)) for span in ("a", "b")]
    assert len(list(source(*spans, level="agent"))) == 2


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        pytest.param(score(trace_start_time=None), "no readable start time", id="no start time"),
        pytest.param(
            score(trace_start_time=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))),
            "no readable start time",
            id="a start before the year 1 in UTC",
        ),
        pytest.param(score("i" * 256), "trace id of 256 characters", id="a trace id that is too long"),
        pytest.param(score(""), "trace id of 0 characters", id="no trace id"),
        pytest.param(score(span_context=SpanContext("s" * 300)), "span id of 300 characters", id="a span id too long"),
    ],
)
def test_what_can_not_be_stored_is_reported_and_the_rest_is_sent(made: EvaluatorScore, fault: str) -> None:
    items = source(made, score("t2"), level="agent")
    assert [item["traceId"] for item in items] == ["t2"]
    assert len(items.unsendable) == 1
    assert fault in items.unsendable[0]
    assert sum(items.totals.values()) == 2


def test_an_aggregate_leaves_out_what_is_no_finite_number() -> None:
    summary = EvaluatorSummary("La\x00tency", 3, EvaluationLevel.AGENT, 1, {"mean": 0.5})
    summary.aggregated_scores["own"] = math.nan
    assert aggregate_of(summary, "latency_performance") == {
        "identifier": "latency_performance",
        "evaluatorName": "Latency",
        "level": "agent",
        "aggregations": {"mean": 0.5},
        "count": 3,
        "skippedCount": 1,
    }


def test_nothing_scored_has_no_aggregation_and_all_counts() -> None:
    aggregate = aggregate_of(EvaluatorSummary("L", 4, skipped_count=4), "latency_performance")
    assert (aggregate["aggregations"], aggregate["count"], aggregate["skippedCount"]) == ({}, 4, 4)


@pytest.mark.parametrize(
    ("text", "stored"),
    [("plain", "plain"), ("a\x00b", "ab"), ("\ud83d!", "!"), ("🏁", "🏁"), ("é\x00", "é"), ("\x07", "\x07")],
)
def test_only_what_the_store_refuses_is_removed(text: str, stored: str) -> None:
    assert storable(text) == stored


def test_a_shortened_text_keeps_both_ends_and_says_what_is_missing() -> None:
    assert shortened("a" * 50 + "b" * 2000 + "c" * 50, 100) == "a" * 50 + " … [2,000 characters left out] … " + "c" * 50
