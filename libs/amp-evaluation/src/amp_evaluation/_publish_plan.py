"""In which parts a run's scores are posted, and what becomes of a part that is refused. Pure: it sends nothing.

A caller takes parts from the plan, posts each, and tells the plan what came of it::

    for part in plan:
        plan.settle(part, post(part))

Gateways cap a body (413), so parts stay under a byte limit, which is halved whenever a part is still too large.
The publisher answers 500 for a whole body when one value in it is refused, so a part that stays 500 is halved down
to what is refused. Names must stand in `aggregatedScores` of the same or an earlier body: each part has them all,
but where they fill half a body, which then come first.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any, TypeVar

from amp_evaluation.models import EvaluatorSummary
from amp_evaluation.publish import Aggregate, Item, ItemSource, PublishBody, aggregate_of, encode, shortened

MAX_PART_BYTES = 900_000
"""Parts stay under this many bytes of JSON: gateways commonly cap a body at 1 MiB."""

FIRST_PART_ITEMS = 2_000
"""Items of the first part, before it is known what an item weighs."""

MIN_TEXT_CHARS = 200
"""A text that was cut to this and is still too large is not what makes the body too large."""

MAX_REFUSED_IN_A_ROW = 20
"""Single items refused without one stored between them: then a witness tells whether it is the items, or all."""

T = TypeVar("T")


class Verdict(Enum):
    """What came of posting a part."""

    STORED = "stored"
    TOO_LARGE = "413"
    REFUSED = "500 that stayed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One body to post. `is_probe`: it comes from a part that was refused, whose retries were spent already.

    `is_witness`: nothing in it can be wrong, so when it is refused, it isn't what is sent (an outage, an unknown run).
    """

    body: bytes
    items: list[Item]
    aggregates: list[Aggregate]
    is_probe: bool
    is_witness: bool = False


@dataclass(frozen=True, slots=True)
class _Chunk:
    items: list[Item]
    aggregates: list[Aggregate]
    is_probe: bool = False
    is_witness: bool = False


class PublishPlan:
    """The parts still to be posted; iterate over it and settle each part before the next is taken.

    `stored` of `total` scores are with the publisher so far; `refused` names what never will be, a line each.
    `hopeless`: everything is refused, so the rest was given up.
    """

    def __init__(
        self,
        summaries: Mapping[str, EvaluatorSummary],
        identifiers: Mapping[str, str],
        *,
        max_part_bytes: int = MAX_PART_BYTES,
    ) -> None:
        self._source = ItemSource(summaries)
        self._items = iter(self._source)
        self._aggregates = [aggregate_of(summary, identifiers[name]) for name, summary in summaries.items()]
        self._cap = max_part_bytes
        self._queue: deque[_Chunk] = deque()
        self._names_are_known = False
        self._names_go_apart = False
        self._bad_names: set[str] = set()
        self._refused_in_a_row = 0
        self._item_bytes: float | None = None
        self._started = False
        self._refused: list[str] = []
        self._stored_by: Counter[str] = Counter()
        self.hopeless = False

    @property
    def total(self) -> int:
        """Scores that ought to be stored, each (evaluator, trace, span) counted once."""
        return sum(self._source.totals.values())

    @property
    def stored(self) -> int:
        """Scores that the publisher has, as far as is known."""
        return self._stored_by.total()

    @property
    def missing(self) -> dict[str, int]:
        """Scores that aren't stored, by evaluator; without those that have all."""
        missing = {name: total - self._stored_by[name] for name, total in self._source.totals.items()}
        return {name: count for name, count in missing.items() if count}

    @property
    def refused(self) -> list[str]:
        """What can't be stored, however often it is sent."""
        return self._source.unsendable + self._refused

    def __iter__(self) -> PublishPlan:
        return self

    def __next__(self) -> Part:
        while not self.hopeless:
            chunk = self._queue.popleft() if self._queue else self._next_chunk()
            if chunk is None:
                break
            part = self._fitted(chunk)
            if part is not None:
                return part
        raise StopIteration

    def one_body(self) -> Iterator[bytes]:
        """All of it as the pieces of one body, for a target without a limit; counts as stored."""
        yield b'{"individualScores":['
        separator = b""
        for part in self:
            if part.items:
                yield separator + encode(part.items)[1:-1]
                separator = b","
            self.settle(part, Verdict.STORED)
        yield b'],"aggregatedScores":' + encode(self._aggregates) + b"}\n"

    def take_back(self) -> None:
        """Nothing counts as stored any more: the target broke off, and a part of a body is none."""
        self._stored_by.clear()

    def settle(self, part: Part, verdict: Verdict) -> None:
        """Take note of what came of `part`, and plan what follows from it."""
        chunk = _Chunk(part.items, part.aggregates, part.is_probe)
        if verdict is Verdict.STORED:
            self._stored_by.update(item["evaluatorName"] for item in part.items)
            self._refused_in_a_row = 0
            self._names_are_known = True
        elif part.is_witness:
            self.hopeless = True
        elif verdict is Verdict.TOO_LARGE:
            self._cap = min(self._cap, len(part.body)) // 2
            self._make_smaller(chunk, len(part.body))
        else:
            self._search(chunk)

    def _next_chunk(self) -> _Chunk | None:
        count = FIRST_PART_ITEMS
        if self._item_bytes is not None:
            count = max(1, int(self._cap / self._item_bytes))
        items = list(islice(self._items, count))
        if items or (self._aggregates and not self._started):
            self._started = True
            return _Chunk(items, [] if self._names_go_apart else self._aggregates)
        return None

    def _fitted(self, chunk: _Chunk) -> Part | None:
        """The chunk as a part; None when it had to be cut first (its pieces are next in the queue) or is empty."""
        items, aggregates = self._without_bad_names(chunk)
        if items and self._names_go_apart:
            aggregates = []
        if not items and not aggregates:
            return None
        body = PublishBody(individualScores=items, aggregatedScores=aggregates).to_json()
        if items:
            # A tenth of room: the next items may be a little heavier.
            self._item_bytes = 1.1 * len(body) / len(items)
        if len(body) >= self._cap and not chunk.is_witness:
            self._make_smaller(_Chunk(items, aggregates, chunk.is_probe), len(body))
            return None
        probe, witness = chunk.is_probe, chunk.is_witness
        return Part(body=body, items=items, aggregates=aggregates, is_probe=probe, is_witness=witness)

    def _without_bad_names(self, chunk: _Chunk) -> tuple[list[Item], list[Aggregate]]:
        bad = self._bad_names
        if not bad:
            return chunk.items, chunk.aggregates
        self._refused += [
            f"{_refusal(item)}: the evaluator's name or aggregate is refused"
            for item in chunk.items
            if item["evaluatorName"] in bad
        ]
        items = [item for item in chunk.items if item["evaluatorName"] not in bad]
        return items, [each for each in chunk.aggregates if each["evaluatorName"] not in bad]

    def _make_smaller(self, chunk: _Chunk, size: int) -> None:
        """Cut what is too large: names that fill a body go apart, once; then between the items; then a lone text."""
        items, aggregates, is_probe = chunk.items, chunk.aggregates, chunk.is_probe
        if items and aggregates and (len(items) == 1 or 2 * len(encode(aggregates)) > self._cap):
            self._names_go_apart = True
            self._put_first(_Chunk([], aggregates, is_probe), _Chunk(items, [], is_probe))
        elif len(items) > 1:
            self._put_first(*(_Chunk(half, aggregates, is_probe) for half in _halves(items)))
        elif len(aggregates) > 1:
            self._put_first(*(_Chunk([], half, is_probe) for half in _halves(aggregates)))
        elif items and (shorter := _with_less_text(items[0], size, self._cap)):
            self._put_first(_Chunk([shorter], [], is_probe))
        else:
            self._give_up_on(chunk, "too large for the publisher")

    def _search(self, chunk: _Chunk) -> None:
        """Close in on what is refused: first whether the names are, then by halves."""
        if chunk.items and chunk.aggregates and not self._names_are_known:
            halves = (half for half in _halves(chunk.items) if half)
            self._put_first(_Chunk([], chunk.aggregates, True), *(_Chunk(h, chunk.aggregates, True) for h in halves))
        elif len(chunk.items) > 1:
            self._put_first(*(_Chunk(half, chunk.aggregates, True) for half in _halves(chunk.items)))
        elif not chunk.items and len(chunk.aggregates) > 1:
            self._put_first(*(_Chunk([], half, True) for half in _halves(chunk.aggregates)))
        else:
            self._give_up_on(chunk, "refused by the publisher")

    def _give_up_on(self, chunk: _Chunk, why: str) -> None:
        if chunk.items:
            self._refused.append(f"{_refusal(chunk.items[0])}: {why}")
        else:
            self._bad_names.add(chunk.aggregates[0]["evaluatorName"])
        self._refused_in_a_row += 1
        good = [each for each in self._aggregates if each["evaluatorName"] not in self._bad_names]
        self.hopeless = not good
        if good and self._refused_in_a_row == MAX_REFUSED_IN_A_ROW:
            self._put_first(_Chunk([], good[:1], is_witness=True))

    def _put_first(self, *chunks: _Chunk) -> None:
        self._queue.extendleft(reversed(chunks))


def _halves(things: list[T]) -> tuple[list[T], list[T]]:
    middle = len(things) // 2
    return things[:middle], things[middle:]


def _with_less_text(item: Item, size: int, cap: int) -> Item | None:
    """The item with the middle of its longest text left out, so that `size` bytes become less than `cap`."""
    cut: Any = dict(item)
    length, key = max((len(cut.get(key, "")), key) for key in ("explanation", "skipReason"))
    if length <= MIN_TEXT_CHARS:
        return None
    # Bytes a character vary along a text and the mark takes room: aim lower, the plan asks again if it wasn't enough.
    cut[key] = shortened(cut[key], max(MIN_TEXT_CHARS // 2, int(0.9 * length * cap / size) - 100))
    shorter: Item = cut
    return shorter


def _refusal(item: Item) -> str:
    span_id = item.get("spanContext", {}).get("spanId")
    return f"{item['evaluatorName']!r}, trace {item['traceId']!r}" + (f", span {span_id!r}" if span_id else "")
