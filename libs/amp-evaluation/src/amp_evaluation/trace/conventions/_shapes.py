"""Which keys a span has, worked out once for all spans that have the same ones in the same order.

Spans of one framework repeat their keys over and over, so what the keys alone decide (which conventions are there,
which values belong to which row) is kept by the tuple of keys.
"""

from __future__ import annotations

from typing import Any, NamedTuple

FAMILY_STEMS = ("llm.", "gen_ai.", "retrieval.", "reranker.", "embedding.")
WRAPPERS = (["message"], ["tool"], ["document"])
"""OpenInference repeats the row's name in each key (`….0.message.role`): the rests of its keys go without it."""
MAX_KEYS = 512
MAX_SHAPES = 4096
MAX_NAMES = 50_000

Group = tuple[str, int]
_known: dict[str, tuple[Group, str] | None] = {}
_groups: dict[Group, Group] = {}
"""One object a group, so that keys of one row are known by it."""


class Row(NamedTuple):
    """Flat keys `PREFIX.NUMBER.rest`: the rests, and the places of their values, which mostly stand together."""

    rests: tuple[str, ...]
    places: tuple[int, ...]
    start: int
    stop: int

    def values(self, values: list[Any]) -> tuple[Any, ...]:
        if self.stop:
            return tuple(values[self.start : self.stop])
        return tuple([values[place] for place in self.places])


class Shape:
    """`rows` are in the order of their numbers. `readers` is for whoever chooses the decoders by the keys, `plans` for
    what else follows from the keys alone."""

    __slots__ = ("plans", "readers", "rows")

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.readers: Any = None
        self.plans: dict[str, Any] = {}
        groups: dict[Group, list[tuple[str, int]]] = {}
        known = _known
        last: Group | None = None
        members: list[tuple[str, int]] = []
        for place, key in enumerate(keys):
            parts = known[key] if key in known else _remember(key)
            if parts is None:
                continue
            group, rest = parts
            if group is not last:
                last = group
                members = groups.setdefault(group, [])
            members.append((rest, place))
        self.rows: dict[str, dict[int, Row]] = {}
        for (family, number), members in sorted(groups.items()):
            self.rows.setdefault(family, {})[number] = _row(members)


def _row(members: list[tuple[str, int]]) -> Row:
    rests, places = tuple(rest for rest, _ in members), tuple(place for _, place in members)
    together = places == tuple(range(places[0], places[0] + len(places)))
    return Row(rests, places, places[0], places[-1] + 1 if together else 0)


def _remember(key: str) -> tuple[Group, str] | None:
    """((family, number), rest) of a flat key; None for one that belongs to no family."""
    parts = None
    if key.startswith(FAMILY_STEMS):
        pieces = key.split(".")
        at = next((n for n, piece in enumerate(pieces) if piece.isdecimal() and len(piece) < 7), 0)
        if at:
            rest = pieces[at + 2 :] if pieces[at + 1 : at + 2] in WRAPPERS else pieces[at + 1 :]
            group = (".".join(pieces[:at]) + ".", int(pieces[at]))
            parts = (_groups.setdefault(group, group), ".".join(rest))
    if len(_known) >= MAX_NAMES:
        _known.clear()
        _groups.clear()
    if len(key) < 200:
        _known[key] = parts
    return parts


_shapes: dict[tuple[str, ...], Shape] = {}


def shape_of(attributes: dict[str, Any]) -> Shape:
    keys = tuple(attributes)
    shape = _shapes.get(keys)
    if shape is None:
        shape = Shape(keys)
        if len(keys) <= MAX_KEYS:
            if len(_shapes) >= MAX_SHAPES:
                _shapes.clear()
            _shapes[keys] = shape
    return shape
