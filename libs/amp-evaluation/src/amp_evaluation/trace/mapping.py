"""`mapping.json`: where attributes of one's own say what a span is and what it did.

An object with any of the entries in `FIELDS`. An entry is a place, or a list of places of which the first that holds
something counts:

    "acme.prompt"                                          the value of this attribute
    {"key": "acme.call", "path": "$.reply[0].text"}        inside the attribute's JSON value (text or structured)
    {"key": "acme.step", "values": {"ask": "llm"}}         the kind only: own words → kinds

Example:

    {"kind": {"key": "acme.step", "values": {"ask": "llm", "act": "tool"}},
     "input": "acme.prompt", "output": {"key": "acme.call", "path": "$.reply[0].text"},
     "tool_name": "acme.function", "tool_arguments": "acme.args", "tool_result": "acme.returned",
     "input_tokens": {"key": "acme.call", "path": "$.usage.in"}, "agent_name": "acme.agent"}

What a mapping finds wins over the built-in conventions; what it doesn't find is left to them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

from amp_evaluation.errors import ConfigError

JsonValue: TypeAlias = Any
"""Any JSON value as Python's `json` gives it."""

KINDS: Final = ("llm", "tool", "agent", "retriever", "embedding", "chain")

FIELDS: Final = (
    "kind",
    "input",
    "output",
    "tool_name",
    "tool_arguments",
    "tool_result",
    "tool_call_id",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "agent_name",
    "model",
    "vendor",
    "system_prompt",
)
_COUNTS: Final = frozenset({"input_tokens", "output_tokens", "cache_read_tokens"})
_TEXTS: Final = frozenset({"tool_name", "tool_call_id", "agent_name", "model", "vendor", "system_prompt"})

_STEP = re.compile(r"\.(?P<name>[^.\[\]'\"]+)|\[(?P<index>-?\d+)\]|\[(?P<quote>['\"])(?P<quoted>.*?)(?P=quote)\]")


@dataclass(frozen=True, slots=True)
class Place:
    """An attribute, and the steps into its JSON value: names of objects' fields and places in lists."""

    key: str
    steps: tuple[str | int, ...] = ()

    def find(self, attributes: Mapping[str, JsonValue]) -> JsonValue:
        """What stands there; None for nothing."""
        value = attributes.get(self.key)
        for step in self.steps:
            value = _step_into(_structured(value), step)
        return value


@dataclass(frozen=True, slots=True)
class TraceMapping:
    """A mapping that was checked. `keys` are the attributes it reads."""

    places: Mapping[str, tuple[Place, ...]]
    kinds: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(place.key for places in self.places.values() for place in places)

    def facts(self, attributes: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """What this span's attributes (flat, dotted keys) say: only entries that were found, by the names in `FIELDS`.

        Counts are int, names are text, a kind is one of `KINDS`; input, output, arguments and result stay as they are.
        """
        found = {}
        for name, places in self.places.items():
            value = next((v for v in (self._read(name, place, attributes) for place in places) if v is not None), None)
            if value is not None:
                found[name] = value
        return found

    def _read(self, name: str, place: Place, attributes: Mapping[str, JsonValue]) -> JsonValue:
        value = place.find(attributes)
        if name == "kind":
            return self.kinds.get(str(value)) or (str(value).lower() if str(value).lower() in KINDS else None)
        if name in _COUNTS:
            return _count(value)
        if name in _TEXTS:
            return None if value in (None, "") or isinstance(value, dict | list) else str(value)
        return value


def _step_into(value: JsonValue, step: str | int) -> JsonValue:
    if isinstance(step, str):
        return value.get(step) if isinstance(value, dict) else None
    if isinstance(value, list) and -len(value) <= step < len(value):
        return value[step]
    return None


def _structured(value: JsonValue) -> JsonValue:
    """JSON in a text, opened; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _count(value: JsonValue) -> int | None:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number >= 0 and not isinstance(value, bool) else None


# --- reading the file -------------------------------------------------------------------------------------------------


def load_mapping(path: str | PathLike[str]) -> TraceMapping:
    """The mapping in this file. ConfigError names the file, the entry, its value and the rule it breaks."""
    try:
        entries = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"mapping {str(path)!r} can't be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"mapping {str(path)!r} is not JSON: {error}") from error
    try:
        return parse_mapping(entries)
    except ConfigError as error:
        raise ConfigError(f"mapping {str(path)!r}: {error}") from error


def parse_mapping(entries: JsonValue) -> TraceMapping:
    """A mapping from its JSON value. ConfigError names the entry."""
    if not isinstance(entries, dict):
        raise ConfigError(f'an object is wanted, such as {{"input": "my.prompt"}}, not {entries!r}')
    unknown = [name for name in entries if name not in FIELDS]
    if unknown:
        raise ConfigError(f"entry {unknown[0]!r} is not known; entries are {', '.join(FIELDS)}")
    kinds: dict[str, str] = {}
    places = {name: tuple(_places(name, value, kinds)) for name, value in entries.items()}
    return TraceMapping(places, kinds)


def _places(name: str, value: JsonValue, kinds: dict[str, str]) -> list[Place]:
    items = value if isinstance(value, list) else [value]
    if not items:
        raise ConfigError(f"entry {name!r} is an empty list: leave it out, or name an attribute")
    return [_place(name, item, kinds) for item in items]


def _place(name: str, item: JsonValue, kinds: dict[str, str]) -> Place:
    if isinstance(item, str) and item:
        return Place(item)
    if not isinstance(item, dict) or not isinstance(item.get("key"), str) or not item["key"]:
        raise ConfigError(f'entry {name!r} is {item!r}: an attribute\'s name or {{"key": …, "path": …}} is wanted')
    allowed = {"key", "path", "values"} if name == "kind" else {"key", "path"}
    extra = sorted(set(item) - allowed)
    if extra:
        raise ConfigError(f"entry {name!r} has {extra[0]!r}, which is none of {', '.join(sorted(allowed))}")
    kinds.update(_own_kinds(item.get("values", {})))
    return Place(item["key"], _steps(name, item.get("path", "$")))


def _own_kinds(values: JsonValue) -> dict[str, str]:
    if not isinstance(values, dict):
        raise ConfigError(f"entry 'kind' has values {values!r}: an object of own words and kinds is wanted")
    for word, kind in values.items():
        if kind not in KINDS:
            raise ConfigError(f"entry 'kind' maps {word!r} to {kind!r}, which is none of {', '.join(KINDS)}")
    return values


def _steps(name: str, path: JsonValue) -> tuple[str | int, ...]:
    rule = "a JSON path such as $.reply[0].text is wanted"
    if not isinstance(path, str) or not path.startswith("$"):
        raise ConfigError(f"entry {name!r} has path {path!r}: {rule}")
    steps: list[str | int] = []
    position = 1
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            raise ConfigError(f"entry {name!r} has path {path!r}, unreadable from {path[position:]!r} on: {rule}")
        index = match["index"]
        steps.append(int(index) if index is not None else match["name"] or match["quoted"] or "")
        position = match.end()
    return tuple(steps)
