"""What the score publisher is sent: the payload's model, and items made ready for it.

`PublishBody` is the body of one POST, in the names and limits of the publisher's API. Its JSON Schema stands
beside this file as `publish.schema.json`. The items of its lists are checked dicts: a body holds thousands, and
an object each would cost more than everything else that is done with a score.

Nothing here sends anything; `_publish_plan` cuts bodies into parts, and the job posts them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired

import msgspec
from pydantic import BaseModel, ConfigDict, Field, with_config
from typing_extensions import TypedDict

from amp_evaluation._time import format_rfc3339
from amp_evaluation.models import NO_SCORE_REASON, EvaluatorScore, EvaluatorSummary, SpanContext

MAX_NAME_CHARS = 255
"""Names, ids and labels over this many characters make the publisher refuse the whole body."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_STRICT = ConfigDict(extra="forbid")

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]
Level = Literal["trace", "agent", "llm"]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Timestamp = Annotated[
    str,
    Field(
        pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$",
        json_schema_extra={"format": "date-time"},
    ),
]


class _Labels(TypedDict, total=False):
    agentName: Name
    model: Name
    vendor: Name


@with_config(_STRICT)
class SpanLabels(_Labels):
    """Which span an item at agent or llm level is about: its id, and the labels that have a value."""

    spanId: Name


class _Item(TypedDict):
    evaluatorName: Name
    level: Level
    traceId: Name
    traceStartTime: Timestamp
    explanation: NotRequired[str]
    spanContext: NotRequired[SpanLabels]


@with_config(_STRICT)
class ScoredItem(_Item):
    """One evaluated item; `score` lies in 0..1 and is finite."""

    score: Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


@with_config(_STRICT)
class SkippedItem(_Item):
    """One item without a score, and why."""

    skipReason: Annotated[str, Field(min_length=1)]


Item = ScoredItem | SkippedItem


@with_config(_STRICT)
class Aggregate(TypedDict):
    """One evaluator over the whole run; `count` has the skipped ones in it."""

    identifier: Name
    evaluatorName: Name
    level: Level
    aggregations: dict[str, Finite]
    count: Annotated[int, Field(ge=0)]
    skippedCount: Annotated[int, Field(ge=0)]


class PublishBody(BaseModel):
    """The body of one POST to the score publisher: all of a run's results, or a part of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    individualScores: list[Annotated[Item, Field(union_mode="left_to_right")]]
    aggregatedScores: list[Aggregate]

    def to_json(self) -> bytes:
        """The body as UTF-8 JSON, equal in content to `model_dump_json()` and several times as fast."""
        return encode({"individualScores": self.individualScores, "aggregatedScores": self.aggregatedScores})


encode = msgspec.json.Encoder().encode


def storable(text: str) -> str:
    """`text` without U+0000 and lone surrogates, which the publisher's store refuses."""
    if text.isascii() and "\x00" not in text:
        return text
    return _UNSTORABLE.sub("", text)


def aggregate_of(summary: EvaluatorSummary, identifier: str) -> Aggregate:
    """The aggregate of one evaluator; values that are no finite number are left out.

    `identifier` is the catalogue's, which several display names may share.
    """
    return {
        "identifier": _cut(identifier),
        "evaluatorName": _cut(summary.evaluator_name),
        "level": _level(summary),
        "aggregations": {
            storable(name): float(value) for name, value in summary.aggregated_scores.items() if math.isfinite(value)
        },
        "count": summary.count,
        "skippedCount": summary.skipped_count,
    }


class ItemSource:
    """Items of a run, ready to be sent, each (evaluator, trace, span) once, evaluator by evaluator.

    `totals` counts by evaluator what is to be stored; what can't be sent at all (no start time, no usable id) is in
    `unsendable`, a line each, and counts too.
    """

    def __init__(self, summaries: Mapping[str, EvaluatorSummary]) -> None:
        self.totals = {_cut(each.evaluator_name): len(each.individual_scores) for each in summaries.values()}
        self.unsendable: list[str] = []
        self._summaries = list(summaries.values())
        self._time_texts: dict[datetime | None, str] = {}
        self._labels: dict[tuple[str | None, ...], _Labels] = {}

    def __iter__(self) -> Iterator[Item]:
        for summary in self._summaries:
            yield from self._items_of(summary)

    def _items_of(self, summary: EvaluatorSummary) -> Iterator[Item]:
        name = _cut(summary.evaluator_name)
        level = _level(summary)
        seen: set[tuple[str, str | None]] = set()
        for score in summary.individual_scores:
            item = self._item(name, level, score)
            span = item.get("spanContext")
            key = (item["traceId"], span["spanId"] if span else None)
            if key in seen:
                self.totals[name] -= 1
                continue
            seen.add(key)
            fault = _fault(item)
            if fault:
                self.unsendable.append(f"{name!r}, trace {score.trace_id[:64]!r}: {fault}")
                continue
            yield item

    def _item(self, name: str, level: Level, score: EvaluatorScore) -> Item:
        time = score.trace_start_time
        item: Any = {
            "evaluatorName": name,
            "level": level,
            "traceId": storable(score.trace_id),
            "traceStartTime": self._time_texts.get(time) or self._time_text(time),
        }
        value = score.score
        if value is not None and score.skip_reason is None and 0.0 <= value <= 1.0:
            item["score"] = float(value)
        else:
            item["skipReason"] = _skip_reason(score)
        if score.explanation:
            item["explanation"] = storable(score.explanation)
        if score.span_context is not None and level != "trace":
            item["spanContext"] = self._span(score.span_context)
        checked: Item = item
        return checked

    def _time_text(self, time: datetime | None) -> str:
        """RFC 3339 with a zone (none means UTC), made once a trace; "" for none, or one outside UTC's years."""
        if time is None:
            return ""
        try:
            text = format_rfc3339(time)
        except OverflowError:
            text = ""
        self._time_texts[time] = text
        return text

    def _span(self, context: SpanContext) -> SpanLabels:
        key = (context.agent_name, context.model, context.vendor)
        labels = self._labels.get(key)
        if labels is None:
            labels = self._labels[key] = _labels(context)
        return {"spanId": storable(context.span_id), **labels}


def shortened(text: str, max_chars: int) -> str:
    """`text` without its middle, and with a mark that says how much is missing; about `max_chars` long."""
    keep = max(max_chars // 2, 0)
    left_out = len(text) - 2 * keep
    return f"{text[:keep]} … [{left_out:,} characters left out] … {text[len(text) - keep :]}"


def _level(summary: EvaluatorSummary) -> Level:
    return summary.level.value


def _cut(text: str) -> str:
    return storable(text)[:MAX_NAME_CHARS]


def _skip_reason(score: EvaluatorScore) -> str:
    if score.score is not None and score.skip_reason is None:
        # Scores are checked when they are made, but they can be changed afterwards.
        return f"The evaluator gave {score.score!r}, which is no score from 0 to 1"
    return storable(score.skip_reason or "") or NO_SCORE_REASON


def _fault(item: Item) -> str | None:
    """Why the publisher can't store this item, whatever is done; None when it can."""
    if not item["traceStartTime"]:
        return "no readable start time"
    if not 0 < len(item["traceId"]) <= MAX_NAME_CHARS:
        return f"a trace id of {len(item['traceId'])} characters (1 to {MAX_NAME_CHARS} can be stored)"
    span = item.get("spanContext")
    if span and not 0 < len(span["spanId"]) <= MAX_NAME_CHARS:
        return f"a span id of {len(span['spanId'])} characters (1 to {MAX_NAME_CHARS} can be stored)"
    return None


def _labels(context: SpanContext) -> _Labels:
    """The labels that have a value. The server joins vendor, "/" and model: together they must fit."""
    agent_name, vendor, model = (_cut(text or "") for text in (context.agent_name, context.vendor, context.model))
    if vendor and model and len(vendor) + 1 + len(model) > MAX_NAME_CHARS:
        vendor = vendor[: MAX_NAME_CHARS // 2]
        model = model[: MAX_NAME_CHARS - 1 - len(vendor)]
    labels: _Labels = {}
    if agent_name:
        labels["agentName"] = agent_name
    if model:
        labels["model"] = model
    if vendor:
        labels["vendor"] = vendor
    return labels
