"""What a decoder can tell of a span, and the shapes it tells it in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from amp_evaluation.trace._records import number
from amp_evaluation.trace._spans import RetrievedDoc, TokenUsage, ToolDefinition
from amp_evaluation.trace.conventions._attrs import Attrs
from amp_evaluation.trace.conventions._values import content_text, json_text, structured

Reader = Callable[[Attrs], Any]

FACTS = (
    "kind",  # Kind
    "messages",  # list[Message]: what an LLM call sent, system instructions first
    "reply",  # list[Message]: what it got back
    "said",  # list[Message]: the same for calls that ended well, out of what the span says only in general
    "input",  # the value a span was started with, for people
    "output",  # the value it ended with
    "tool_name",
    "tool_id",
    "arguments",  # of a tool execution: an object, JSON text, or a bare value
    "result",
    "tool_failed",  # the framework marks the result as an error: True, or the error's text
    "usage",  # TokenUsage
    "model",
    "vendor",
    "temperature",
    "finish",  # finish reason: something was received
    "response_id",
    "first_token_ms",
    "agent_name",
    "framework",
    "system_prompt",
    "tools",  # list[ToolDefinition]
    "max_iterations",
    "query",
    "documents",  # list[RetrievedDoc]
    "vector_db",
    "top_k",
    "handoff",  # True: this span only passes control to another agent
)


@dataclass(frozen=True)
class Convention:
    """One way to write facts into attributes.

    `marks` are keys of which at least one is there when the convention is; `readers` has a function a fact, which
    gives None (or "", or an empty list) for nothing.
    """

    name: str
    marks: frozenset[str]
    readers: dict[str, Reader] = field(default_factory=dict)


class Kind(NamedTuple):
    """What a span is, and how sure its writer was: a named operation beats a word like task, and both beat guesses."""

    name: str
    strong: bool


def usage_of(sent: Any, got: Any, total: Any = None, cached: Any = None) -> TokenUsage | None:
    """Token counts; None when neither side was recorded, and for 0/0, which streams report when they know nothing."""
    usual = type(sent) is int and type(got) is int and 0 < sent < _MOST and 0 <= got < _MOST and cached is None
    if usual and (total is None or total == sent + got):
        return TokenUsage(sent, got, sent + got)
    if sent is None and got is None and total is None:
        return None
    prompt, completion, everything = _count(sent), _count(got), _count(total)
    if not prompt and not completion:
        if not everything:
            return None
        prompt = everything
    return TokenUsage(prompt, completion, everything or prompt + completion, _count(cached))


_MOST = 2**63


def _count(value: Any) -> int:
    if type(value) is int and 0 <= value < _MOST:
        return value
    return max(0, int(number(value))) if value is not None else 0


def first(a: Attrs, *keys: str) -> Any:
    """The value of the first key that is there."""
    for key in keys:
        if key in a.raw and (value := a.get(key)) is not None:
            return value
    return None


def tool_definitions(value: Any) -> list[ToolDefinition]:
    """Definitions from a list (or JSON text of one) of names, of functions, or of objects with a function inside."""
    value = structured(value)
    if isinstance(value, dict):
        value = list(value.values()) if all(isinstance(item, dict) for item in value.values()) else [value]
    found = []
    for item in value if isinstance(value, list) else ():
        item = structured(item)
        if isinstance(item, str):
            found.append(ToolDefinition(item))
        elif isinstance(item, dict):
            found += _definitions(item)
    return found


def _definitions(item: dict[str, Any]) -> list[ToolDefinition]:
    grouped = item.get("functionDeclarations") or item.get("function_declarations")
    if isinstance(grouped, list):
        return [made for each in grouped if isinstance(each, dict) for made in _definitions(each)]
    for key in ("function", "toolSpec", "tool"):
        if isinstance(item.get(key), dict):
            item = item[key]
    name = item.get("name")
    schema = next((item[key] for key in _SCHEMA_KEYS if item.get(key)), None)
    parameters = structured(schema)
    if not isinstance(name, str) or not name:
        return []
    described = item.get("description")
    return [
        ToolDefinition(
            name, described if isinstance(described, str) else "", parameters if isinstance(parameters, dict) else None
        )
    ]


_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema", "json_schema", "parameters_json_schema", "schema")


def documents_of(value: Any) -> list[RetrievedDoc]:
    """Documents from a list of texts or objects, or from an object that holds such a list."""
    value = structured(value)
    if isinstance(value, dict):
        held = next((value[key] for key in _LIST_KEYS if isinstance(value.get(key), list)), None)
        value = held if held is not None else [value]
    if not isinstance(value, list):
        return []
    if value and all(isinstance(item, list) for item in value):
        value = [inner for item in value for inner in item]
    return [made for item in value if (made := document_of(structured(item))) is not None]


_LIST_KEYS = ("documents", "outputs", "output", "nodes", "results", "matches", "hits", "source_nodes", "chunks", "data")


def document_of(item: Any) -> RetrievedDoc | None:
    if isinstance(item, RetrievedDoc):
        return item
    if isinstance(item, str):
        return RetrievedDoc(content=item) if item else None
    if not isinstance(item, dict):
        return None
    outer, item = item, _unwrap(item)
    content = next((item[key] for key in _CONTENT_KEYS if item.get(key) not in (None, "")), None)
    if content is None:
        return None
    metadata = structured(next((item[key] for key in ("metadata", "meta", "extra_info") if item.get(key)), None))
    score = next((source[key] for source in (outer, item) for key in _SCORE_KEYS if source.get(key) is not None), 0)
    found_id = next((item[key] for key in ("id", "id_", "document_id", "node_id") if item.get(key)), "")
    return RetrievedDoc(
        found_id if isinstance(found_id, str) else json_text(found_id),
        content_text(content),
        number(score),
        metadata if isinstance(metadata, dict) else {},
    )


_CONTENT_KEYS = ("page_content", "content", "text", "document", "chunk", "value", "snippet")
_SCORE_KEYS = ("score", "relevance_score", "similarity", "distance", "_score")


def _unwrap(item: dict[str, Any]) -> dict[str, Any]:
    for key in ("document", "node", "kwargs", "payload"):
        if isinstance(item.get(key), dict):
            return _unwrap(item[key])
    return item
