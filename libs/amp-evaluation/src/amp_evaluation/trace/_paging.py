"""How a window is walked through an API that has no cursor: which page is asked for after which.

Pure: a ``Walk`` says what to ask, is told what came, and never sees a socket. The rules, all of them
from how the traces API behaves:

* The next page starts where the last trace of this one starts, floored to the millisecond: order is exact
  to the millisecond, while the filter compares nanoseconds.
* A full page never ends the walk. When nothing new comes, or the cursor can't move, many traces share one
  stored time: the same request with twice the limit, up to 1,000.
* A short page ends it when it holds its own reply's ``totalCount``; else it is asked again, larger.
* A page from a trace's own start must hold that trace again. When it doesn't, the store rounds the query
  up: from then on the cursor is floored to the second.
* A page that fails for good holds a trace that can't be assembled: smaller pages up to it, steps past it,
  and the gap is bisected.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from amp_evaluation._time import floor_to
from amp_evaluation.trace._page_size import LEAST_PAGE, MAX_PAGE

__all__ = ["Ask", "Facts", "Gap", "Walk"]

MICROSECOND = timedelta(microseconds=1)
MILLISECOND = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)
SECOND_LOOKS = 5  # how often a failing page may turn out well after all, before it counts as failing


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: traces from ``start`` on, at most ``limit``.

    ``least`` is the size down to which a smaller page is as useful. A probe is not retried: its failure is
    what is asked about.
    """

    start: datetime
    limit: int
    least: int = LEAST_PAGE
    probe: bool = False


@dataclass(slots=True)
class Facts:
    """What came: ids and start times in the page's order, how many ids are new, the reply's total.

    ``limit`` is the size that was asked for in the end.
    """

    limit: int
    ids: list[str]
    starts: list[datetime | None]
    fresh: int
    total: int | None

    @property
    def full(self) -> bool:
        return len(self.ids) >= self.limit

    @property
    def complete(self) -> bool:
        """Short, and all that the service says there is."""
        return not self.full and (self.total is None or len(self.ids) >= self.total)

    def edge(self) -> tuple[str, datetime] | None:
        """Id and start of the last trace that has a readable start."""
        for trace_id, start in zip(reversed(self.ids), reversed(self.starts), strict=True):
            if start is not None:
                return trace_id, start
        return None

    def before(self, moment: datetime) -> int:
        return sum(1 for start in self.starts if start is not None and start < moment)


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch [start, end) that can't be read to its end. ``lost`` is how many traces, when it is known.

    ``failing``: pages that touch it fail; else more traces share one time than a page can hold.
    """

    start: datetime
    end: datetime
    failing: bool
    lost: int | None = None


Asking = Generator[Ask, Facts | None, None]
Detour = Generator[Ask, Facts | None, bool]  # returns whether the walk ends with it


@dataclass(slots=True)
class Walk:
    """One walk from ``start`` to ``end`` (both UTC). ``page_limit`` gives the usual size of a page.

    ``asks()`` yields requests and is sent what came, None for a page that failed for good. It sets
    ``discarded`` when the page just sent was only a look ahead, whose traces will come again. It ends when
    all is read, or a trace starts after ``enough``; ``dead`` then says that from some point on every page
    failed, ``short_of_total`` that the service counts more than it gives.
    """

    start: datetime
    end: datetime
    page_limit: Callable[[], int]
    enough: datetime | None = None
    gaps: list[Gap] = field(default_factory=list)
    discarded: bool = False
    dead: bool = False
    short_of_total: bool = False
    cursor: datetime = field(init=False)
    _grain: timedelta = MILLISECOND
    _edge: tuple[str, datetime] | None = None
    _checks_edges: bool = True
    _second_looks: int = SECOND_LOOKS

    def __post_init__(self) -> None:
        self.cursor = floor_to(self.start, MILLISECOND)

    def asks(self) -> Asking:
        limit, works = self.page_limit(), 0
        while True:
            facts = yield Ask(self.cursor, limit, least=max(LEAST_PAGE, works + 1))
            if facts is None:
                ended = yield from self._pass_failure(max(1, works), limit)
            elif self._rounded_up(facts):
                self.discarded = True
                continue
            else:
                works = facts.limit
                if self._ends(facts):
                    return
                if not self._move(facts):
                    if facts.limit < MAX_PAGE:
                        limit = min(MAX_PAGE, facts.limit * 2)
                        continue
                    if facts.fresh:
                        continue
                    ended = yield from self._step_on(facts)
                else:
                    ended = False
            if ended:
                return
            limit, works = self.page_limit(), 0

    def _ends(self, facts: Facts) -> bool:
        edge = facts.edge()
        return facts.complete or (self.enough is not None and edge is not None and edge[1] > self.enough)

    def _move(self, facts: Facts) -> bool:
        """Take the cursor to the last trace's start; False when it is there already."""
        edge = facts.edge()
        target = self.cursor if edge is None else floor_to(edge[1], self._grain)
        if target <= self.cursor:
            return False
        self.cursor, self._edge = target, edge
        return True

    def _rounded_up(self, facts: Facts) -> bool:
        """Whether the trace from whose start this page was asked is missing, though later ones are there.

        Then the cursor goes back to the full second, which no store rounds up. When that doesn't help,
        the trace has vanished, and nothing is concluded from missing ones any more.
        """
        edge = self._edge
        if edge is None or not self._checks_edges:
            return False
        first = next((start for start in facts.starts if start is not None), None)
        if edge[0] in facts.ids or (first is not None and first < floor_to(edge[1], MILLISECOND) + MILLISECOND):
            self._edge = None
            return False
        back = floor_to(self.cursor, SECOND)
        if back == self.cursor:
            self._grain, self._checks_edges = MILLISECOND, False
            return False
        self.cursor, self._grain = back, SECOND
        return True

    # --- pages that fail ------------------------------------------------------------------------------

    def _pass_failure(self, works: int, fails: int) -> Detour:
        """Up to the trace that makes pages fail, then past it.

        ``works`` is the largest page that is known to come from this cursor (1: none), ``fails`` one that doesn't.
        """
        while works < (middle := max(LEAST_PAGE, (works + fails) // 2)) < fails:
            facts = yield Ask(self.cursor, middle, least=middle, probe=True)
            if facts is None:
                fails = middle
            elif self._ends(facts):
                return True
            else:
                works = 1 if self._move(facts) else middle
        return (yield from self._step_past(fails))

    def _step_past(self, fails: int) -> Detour:
        begin = low = self.cursor
        step = MILLISECOND
        while True:
            high = min(begin + step, self.end)
            if (yield Ask(high, LEAST_PAGE, probe=True)) is not None:
                break
            if high >= self.end:
                self.dead = True
                return True
            low, step = high, step * 2
        self.discarded = True
        if self._second_looks and (yield Ask(begin, fails, least=fails, probe=True)) is not None:
            self.discarded = True  # it was the service, not a trace
            self._second_looks -= 1
            return False
        while high - low > MICROSECOND:
            middle = low + (high - low) // 2
            if (yield Ask(middle, LEAST_PAGE, probe=True)) is None:
                low = middle
            else:
                self.discarded = True
                high = middle
        self.gaps.append(Gap(begin, high, failing=True))
        self.cursor, self._edge = high, None
        return False

    # --- more traces at one time than a page holds ----------------------------------------------------

    def _step_on(self, stuck: Facts) -> Detour:
        """Past a page of the largest size that brought nothing new."""
        begin = self.cursor
        for step in _steps(endless=stuck.full):
            if begin + step > self.end:
                break
            facts = yield Ask(begin + step, MAX_PAGE, least=MAX_PAGE)
            if facts is None or not (facts.fresh or facts.complete):
                continue
            self._note_lost(stuck, facts, begin + step)
            self.cursor = begin + step
            if self._ends(facts):
                return True
            self._move(facts)
            return False
        if stuck.full:
            self.gaps.append(Gap(begin, self.end, failing=False))
        self.short_of_total = not stuck.full
        return True

    def _note_lost(self, stuck: Facts, facts: Facts, reached: datetime) -> None:
        """How many traces lie between the stuck page and where it goes on, beyond those that it held."""
        if stuck.total is None or facts.total is None:
            lost = None
        else:
            lost = max(0, stuck.total - facts.total - stuck.before(reached))
        if lost != 0:
            self.gaps.append(Gap(self.cursor, reached, failing=False, lost=lost))


def _steps(*, endless: bool) -> Iterator[timedelta]:
    """One unit of each resolution that stores have; when ``endless``, growing from there."""
    yield from (MICROSECOND, MILLISECOND, SECOND)
    step = SECOND
    while endless:
        step *= 2
        yield step
