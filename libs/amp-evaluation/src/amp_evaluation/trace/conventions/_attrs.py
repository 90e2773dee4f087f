"""A span's attributes as decoders read them: each value is decoded when somebody asks for it, and at most once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from amp_evaluation.trace._records import WireAmp, WireSpan, attribute_map, items_of, plain
from amp_evaluation.trace.conventions._history import HISTORY, Shared, shared_attributes
from amp_evaluation.trace.conventions._values import json_text, structured

Rows = dict[int, dict[str, Any]]
Memo = dict[Any, Any]
"""Messages of one trace by the bytes they were made from: histories repeat, and each message is decoded once."""

RawRows = dict[int, list[Any]]
"""Rows of flat keys, still undecoded: for each number the rests of its keys and their values in turn."""

_FAMILY_STEMS = ("llm.", "gen_ai.", "retrieval.", "reranker.", "embedding.")
_WRAPPERS = (["message"], ["tool"], ["document"])
"""OpenInference repeats the row's name in each key (`….0.message.role`): the rests of its keys go without it."""
_MAX_KEYS = 50_000
LONG = 300
"""Bytes of attributes from which it pays to look whether they repeat the last span's."""
Group = tuple[str, int]
_split: dict[str, tuple[Group, str] | None] = {}
_groups: dict[Group, Group] = {}


class Attrs:
    """Read access to one span, for decoders. `opened` keeps what was parsed, by key."""

    raw: dict[str, Any]
    shared: Shared | None = None
    own: dict[str, Any] = {}  # noqa: RUF012 - replaced, never added to
    _families: dict[str, RawRows] | None = None
    _events: list[dict[str, Any]] | None = None

    def __init__(self, wire: WireSpan, memo: Memo | None = None) -> None:
        self._wire = wire
        self.memo: Memo = {} if memo is None else memo
        raw = wire.attributes
        if type(raw) is not msgspec.Raw:
            self.raw = attribute_map(raw)
        elif len(raw) > LONG:
            self.raw, self.shared = shared_attributes(raw, self.memo)
        else:
            self.raw = attribute_map(raw) if raw else {}
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

    def amp_items(self, side: str) -> list[bytes] | None:
        """The same for the input or output that the platform recorded."""
        amp = self._wire.ampAttributes
        value = getattr(amp, side) if amp is not None else None
        return items_of(value) if isinstance(value, msgspec.Raw) and value else None

    def raw_rows(self, prefix: str) -> RawRows:
        """Flat keys `PREFIX.N.rest`, undecoded, in the order of N. One pass over the keys serves all prefixes."""
        if self.shared is not None and prefix == HISTORY:
            return _group(self.raw).get(prefix, {})
        if self._families is None:
            self._families = _group(self.raw if self.shared is None else self.shared.rest)
        rows = self._families.get(prefix)
        if rows is None:
            return {}
        return rows if list(rows) == sorted(rows) else dict(sorted(rows.items()))

    def fresh_rows(self) -> RawRows:
        """The rows of the history that the last span didn't have."""
        return _group(self.shared.fresh).get(HISTORY, {}) if self.shared is not None else {}

    def rows(self, prefix: str) -> Rows:
        """Flat keys `PREFIX.N.rest` as {N: {rest: value}}, in the order of N."""
        return {number: plain_row(row) for number, row in self.raw_rows(prefix).items()}

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


def _group(attributes: dict[str, Any]) -> dict[str, RawRows]:
    groups: dict[Group, list[Any]] = {}
    known = _split
    last: Group | None = None
    row: list[Any] = []
    for key, value in attributes.items():
        parts = known[key] if key in known else _remember(key)
        if parts is None:
            continue
        group, rest = parts
        if group is not last:
            last = group
            if group in groups:
                row = groups[group]
            else:
                row = groups[group] = []
        row += (rest, value)
    families: dict[str, RawRows] = {}
    for (family, number), row in groups.items():
        if family in families:
            families[family][number] = row
        else:
            families[family] = {number: row}
    return families


def _remember(key: str) -> tuple[Group, str] | None:
    """((family, number), rest) of a flat key; None for one that belongs to no family. Keys of all traces repeat."""
    parts = None
    if key.startswith(_FAMILY_STEMS):
        pieces = key.split(".")
        at = next((n for n, piece in enumerate(pieces) if piece.isdecimal() and len(piece) < 7), 0)
        if at:
            rest = pieces[at + 2 :] if pieces[at + 1 : at + 2] in _WRAPPERS else pieces[at + 1 :]
            group = (".".join(pieces[:at]) + ".", int(pieces[at]))
            if len(_groups) < _MAX_KEYS:
                group = _groups.setdefault(group, group)
            parts = (group, ".".join(rest))
    if len(_split) < _MAX_KEYS and len(key) < 200:
        _split[key] = parts
    return parts


def plain_row(row: list[Any]) -> dict[str, Any]:
    """An undecoded row as {rest: value}."""
    return dict(zip(row[::2], map(plain, row[1::2]), strict=True))


def row_key(row: list[Any]) -> tuple[Any, ...]:
    """What a row says, for comparing: its bytes where it is undecoded. Not hashable when it holds objects."""
    if type(row[1]) is msgspec.Raw:
        return tuple([bytes(part) if type(part) is msgspec.Raw else part for part in row])
    return tuple(row)
