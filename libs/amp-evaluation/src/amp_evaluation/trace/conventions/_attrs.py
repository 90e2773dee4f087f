"""A span's attributes as decoders read them: each value is decoded when somebody asks for it, and at most once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from amp_evaluation.trace._records import WireAmp, WireSpan, attribute_map, plain
from amp_evaluation.trace.conventions._values import json_text, structured

Rows = dict[int, dict[str, Any]]


class Attrs:
    """Read access to one span, for decoders. `opened` keeps what was parsed, by key."""

    __slots__ = ("_events", "_opened", "_wire", "name", "own", "raw")

    def __init__(self, wire: WireSpan) -> None:
        self._wire = wire
        self.raw = attribute_map(wire.attributes)
        self.own: dict[str, Any] = {}
        self.name = wire.name if isinstance(wire.name, str) else ""
        self._opened: dict[str, Any] = {}
        self._events: list[dict[str, Any]] | None = None

    @property
    def amp(self) -> WireAmp | None:
        return self._wire.ampAttributes

    def amp_value(self, side: str) -> Any:
        """The input or output that the platform recorded."""
        if side not in self._opened:
            amp = self._wire.ampAttributes
            self._opened[side] = plain(getattr(amp, side)) if amp is not None else None
        return self._opened[side]

    def get(self, key: str) -> Any:
        """The value of a key; None when there is none."""
        value = self.raw.get(key)
        if isinstance(value, msgspec.Raw):
            value = self.raw[key] = plain(value)
        return value

    def text(self, *keys: str) -> str:
        """The first of the keys that has something, as text; "" when none has."""
        for key in keys:
            value = self.get(key)
            if value is not None and value != "":
                return value if isinstance(value, str) else json_text(value)
        return ""

    def data(self, key: str) -> Any:
        """The value of a key with JSON text opened."""
        if key in self._opened:
            return self._opened[key]
        value = self._opened[key] = structured(self.get(key))
        return value

    def has(self, *keys: str) -> bool:
        return any(key in self.raw for key in keys)

    def rows(self, prefix: str) -> Rows:
        """Flat keys `PREFIX.N.rest` as {N: {rest: value}}, in the order of N."""
        start = len(prefix)
        found: Rows = {}
        for key in self.raw:
            if key.startswith(prefix):
                number, _, rest = key[start:].partition(".")
                if number.isdecimal() and len(number) < 7:
                    found.setdefault(int(number), {})[rest] = self.get(key)
        return dict(sorted(found.items()))

    @property
    def events(self) -> list[dict[str, Any]]:
        if self._events is None:
            self._events = list(_events(plain(self._wire.events)))
        return self._events


def _events(value: Any) -> Iterator[dict[str, Any]]:
    for event in value if isinstance(value, list) else ():
        if isinstance(event, dict) and isinstance(event.get("name"), str):
            attributes = event.get("attributes")
            yield {**event, "attributes": attributes if isinstance(attributes, dict) else {}}


def rows_of(row: dict[str, Any], prefix: str) -> Rows:
    """The same for keys of one row: `contents.0.type` …"""
    found: Rows = {}
    for key, value in row.items():
        if key.startswith(prefix):
            number, _, rest = key[len(prefix) :].partition(".")
            if number.isdecimal() and len(number) < 7:
                found.setdefault(int(number), {})[rest] = value
    return dict(sorted(found.items()))
