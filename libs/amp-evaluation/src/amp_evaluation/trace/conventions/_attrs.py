"""A span's attributes as decoders read them: each value is decoded when somebody asks for it, and at most once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from amp_evaluation.trace._records import SMALL, WireAmp, WireSpan, attribute_map, items_of, plain
from amp_evaluation.trace.conventions._history import HISTORY, Shared, shared_attributes
from amp_evaluation.trace.conventions._shapes import Shape, shape_of
from amp_evaluation.trace.conventions._values import json_text, structured

Rows = dict[int, dict[str, Any]]
RawRow = tuple[tuple[str, ...], tuple[Any, ...]]
Memo = dict[Any, Any]
"""Messages of one trace by the bytes they were made from: histories repeat, and each message is decoded once."""


class Attrs:
    """Read access to one span, for decoders. `opened` keeps what was parsed, by key."""

    shared: Shared | None = None
    own: dict[str, Any] = {}  # noqa: RUF012 - replaced, never added to
    _values: list[Any] | None = None
    _events: list[dict[str, Any]] | None = None

    def __init__(self, wire: WireSpan, memo: Memo | None = None) -> None:
        self._wire = wire
        self.memo: Memo = {} if memo is None else memo
        raw = wire.attributes
        if type(raw) is msgspec.Raw and len(raw) > SMALL:
            self.raw, self.shared = shared_attributes(raw, self.memo)
            self._shaped = self.shared.others if self.shared is not None else self.raw
        else:
            self.raw = self._shaped = attribute_map(raw)
        self.shape = shape_of(self._shaped)
        self._opened: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return self._wire.name if isinstance(self._wire.name, str) else ""

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
        if type(value) is msgspec.Raw:
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

    def items(self, key: str) -> list[bytes] | None:
        """The elements of a list of messages as undecoded bytes; None where it is no list, or no undecoded one."""
        value = self.raw.get(key)
        if isinstance(value, msgspec.Raw):
            value = self.get(key)
        return items_of(value) if isinstance(value, str) and value[:1] == "[" else None

    def amp_bytes(self, side: str) -> bytes:
        """The input or output that the platform recorded, undecoded; b"" for one that was built by hand."""
        amp = self._wire.ampAttributes
        value = getattr(amp, side) if amp is not None else None
        return bytes(value) if type(value) is msgspec.Raw else b""

    def raw_rows(self, prefix: str) -> list[RawRow]:
        """Flat keys `PREFIX.N.rest`: for each N, in order, the rests and their values, which may be undecoded."""
        if self.shared is not None and prefix == HISTORY:
            return list(rows_in(self.raw, prefix).values())
        rows = self.shape.rows.get(prefix)
        if rows is None:
            return []
        values = self._values
        if values is None:
            values = self._values = list(self._shaped.values())
        return [
            (row.rests, tuple(values[row.start : row.stop]) if row.stop else row.values(values))
            for row in rows.values()
        ]

    def rows(self, prefix: str) -> list[dict[str, Any]]:
        """The same as {rest: value}, decoded."""
        return [plain_row(*row) for row in self.raw_rows(prefix)]

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


def rows_in(attributes: dict[str, Any], prefix: str) -> dict[int, RawRow]:
    """The rows of these attributes by number, without keeping their shape."""
    values = list(attributes.values())
    rows = Shape(tuple(attributes)).rows.get(prefix, {})
    return {number: (row.rests, row.values(values)) for number, row in rows.items()}


def plain_row(rests: tuple[str, ...], values: tuple[Any, ...]) -> dict[str, Any]:
    """A row as {rest: value}, decoded."""
    return dict(zip(rests, map(plain, values), strict=True))


def row_key(row: RawRow) -> tuple[Any, ...]:
    """What a row says, for comparing: its bytes where it is undecoded. Not hashable when it holds objects."""
    rests, values = row
    if type(values[0]) is msgspec.Raw:
        return rests, *[bytes(value) if type(value) is msgspec.Raw else value for value in values]
    return row
