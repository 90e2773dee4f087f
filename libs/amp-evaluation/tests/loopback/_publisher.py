"""The score publisher: upserts, and refuses whole bodies as the real one does."""

from __future__ import annotations

import json
import re
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any

from loopback._idp import IdentityProvider
from loopback._server import Request, Response

PATH = re.compile(r"/api/v1/publisher/monitors/([^/]+)/runs/([^/]+)/scores")
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.IGNORECASE)
LEVELS = ("trace", "agent", "llm")
MAX_NAME = 255

SCORE_TYPES: dict[str, tuple[type, ...]] = {
    "evaluatorName": (str,),
    "level": (str,),
    "traceId": (str,),
    "score": (int, float),
    "explanation": (str,),
    "traceStartTime": (str,),
    "skipReason": (str,),
    "spanContext": (dict,),
}
AGGREGATE_TYPES: dict[str, tuple[type, ...]] = {
    "identifier": (str,),
    "evaluatorName": (str,),
    "level": (str,),
    "aggregations": (dict,),
    "count": (int,),
    "skippedCount": (int,),
}


class Refusal(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass
class Publisher:
    """``scores``: (run, evaluator, trace, span) → item; ``aggregates``: (run, evaluator) → item.

    ``wrong`` lists what the real server would store without complaint but show wrongly; ``poison`` is a
    trace id whose items it can't store (500). ``max_body`` is the gateway's cap in bytes.
    """

    idp: IdentityProvider
    max_body: int = 1 << 20
    known_runs: frozenset[str] | None = None
    poison: str = ""
    scores: dict[tuple[str, str, str, str], dict[str, Any]] = field(default_factory=dict)
    aggregates: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    monitor_of_run: dict[str, str] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    posts: int = 0
    keep_scores: bool = True
    items: int = 0
    _lock: Any = field(default_factory=threading.Lock)

    def handle(self, request: Request) -> Response:
        try:
            with self._lock:
                stored = self._store(request)
        except Refusal as refusal:
            self.refusals.append(f"{refusal.status} {refusal}")
            return Response.of(refusal.status, {"error": str(refusal)})
        return Response.of(201, {"stored": stored})

    def _store(self, request: Request) -> int:
        self.posts += 1
        monitor, run = self._address(request)
        body = _decode(request.body)
        individual, aggregated = body["individualScores"], body["aggregatedScores"]
        if not individual and not aggregated:
            raise Refusal(400, "both lists are empty")
        for item in aggregated:
            _check_aggregate(item)
        names = [item["evaluatorName"] for item in aggregated]
        if len(set(names)) != len(names):
            raise Refusal(500, "an evaluatorName twice in one body")
        known = set(names) | {name for of_run, name in self.aggregates if of_run == run}
        keyed = self._check_scores(run, individual, known)
        self._forget_earlier_runs(monitor, run, {item["traceId"] for item in individual})
        self.monitor_of_run[run] = monitor
        self.aggregates.update({(run, item["evaluatorName"]): item for item in aggregated})
        self.items += len(keyed)
        if self.keep_scores:
            self.scores.update(keyed)
        return len(keyed)

    def _address(self, request: Request) -> tuple[str, str]:
        if not self.idp.accepts(request):
            raise Refusal(401, "bad token")
        if len(request.body) > self.max_body:
            raise Refusal(413, "body too large")
        match = PATH.fullmatch(request.path)
        if request.method != "POST" or match is None:
            raise Refusal(404, "no such path")
        if request.headers.get("content-type", "").split(";")[0] != "application/json":
            raise Refusal(400, "not JSON by its content type")
        monitor, run = match.groups()
        for text in (monitor, run):
            _check_uuid(text)
        if self.known_runs is not None and run not in self.known_runs:
            raise Refusal(500, "unknown run")
        return monitor, run

    def _check_scores(
        self, run: str, individual: list[Any], known: set[str]
    ) -> dict[tuple[str, str, str, str], dict[str, Any]]:
        keyed: dict[tuple[str, str, str, str], dict[str, Any]] = {}
        for item in individual:
            _check_score(item)
            self.wrong += _wrong_data(item)
            if item["evaluatorName"] not in known:
                raise Refusal(500, "unknown evaluatorName")
            if self.poison and item["traceId"] == self.poison:
                raise Refusal(500, "store error")
            key = (run, item["evaluatorName"], item["traceId"], (item.get("spanContext") or {}).get("spanId", ""))
            if key in keyed:
                raise Refusal(500, "an item twice in one body")
            keyed[key] = item | ({"score": round(item["score"], 4)} if "score" in item else {})
        return keyed

    def _forget_earlier_runs(self, monitor: str, run: str, trace_ids: set[str]) -> None:
        earlier = {old for old, its in self.monitor_of_run.items() if its == monitor and old != run}
        if earlier:
            stale = [key for key in self.scores if key[0] in earlier and key[2] in trace_ids]
            for key in stale:
                del self.scores[key]


def _decode(body: bytes) -> dict[str, list[Any]]:
    def no_constant(name: str) -> None:
        raise ValueError(name)

    try:
        decoded = json.loads(body.decode("utf-8"), parse_constant=no_constant)
    except ValueError:
        raise Refusal(400, "not JSON") from None
    if not isinstance(decoded, dict):
        raise Refusal(400, "not an object")
    lists = {name: decoded.get(name) or [] for name in ("individualScores", "aggregatedScores")}
    if not all(isinstance(items, list) and all(isinstance(item, dict) for item in items) for items in lists.values()):
        raise Refusal(400, "not two lists of objects")
    _check_texts(decoded)
    return lists


def _check_uuid(text: str) -> None:
    try:
        uuid.UUID(text)
    except ValueError:
        raise Refusal(400, "not a UUID") from None


def _check_texts(value: Any) -> None:
    if isinstance(value, str):
        if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
            raise Refusal(500, "a character that the store can't hold")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _check_texts(key)
            _check_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            _check_texts(inner)


def _check_types(item: dict[str, Any], types: dict[str, tuple[type, ...]]) -> None:
    for name, value in item.items():
        wanted = types.get(name)
        if wanted and value is not None and (not isinstance(value, wanted) or isinstance(value, bool)):
            raise Refusal(400, f"{name} has a wrong type")


def _check_name(name: Any, what: str) -> None:
    if not name or len(name) > MAX_NAME:
        raise Refusal(500, f"{what} is empty or over {MAX_NAME}")


def _check_aggregate(item: dict[str, Any]) -> None:
    _check_types(item, AGGREGATE_TYPES)
    _check_name(item.get("evaluatorName"), "evaluatorName")
    _check_name(item.get("identifier"), "identifier")
    if item.get("level") not in LEVELS:
        raise Refusal(500, "unknown level")
    if not {"aggregations", "count", "skippedCount"} <= item.keys():
        raise Refusal(500, "an aggregate lacks a field")
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in item["aggregations"].values()):
        raise Refusal(400, "an aggregation is no number")


def _check_score(item: dict[str, Any]) -> None:
    _check_types(item, SCORE_TYPES)
    _check_name(item.get("evaluatorName"), "evaluatorName")
    _check_name(item.get("traceId"), "traceId")
    moment = item.get("traceStartTime")
    if not moment:
        raise Refusal(500, "traceStartTime is missing")
    if not RFC3339.fullmatch(moment):
        raise Refusal(400, "traceStartTime is not RFC 3339")
    if item.get("level") not in LEVELS:
        raise Refusal(500, "unknown level")
    if item.get("score") is not None and not 0 <= item["score"] <= 1:
        raise Refusal(500, "score out of range")
    _check_context(item)


def _check_context(item: dict[str, Any]) -> None:
    context = item.get("spanContext")
    if context is None:
        return
    if item["level"] == "trace":
        raise Refusal(500, "spanContext at trace level")
    if not all(isinstance(value, str) for value in context.values()):
        raise Refusal(400, "spanContext holds other than text")
    label = context.get("agentName") or f"{context.get('vendor', '')}/{context.get('model', '')}"
    if len(context.get("spanId", "")) > MAX_NAME or len(label) > MAX_NAME:
        raise Refusal(500, "a label over 255")


def _wrong_data(item: dict[str, Any]) -> list[str]:
    faults = []
    if ("score" in item) == ("skipReason" in item):
        faults.append("not exactly one of score and skipReason")
    if item.get("skipReason") == "" or None in item.values() or "" in (item.get("spanContext") or {}).values():
        faults.append("a key without a value")
    return [f"{item['evaluatorName']} {item['traceId']}: {fault}" for fault in faults]
