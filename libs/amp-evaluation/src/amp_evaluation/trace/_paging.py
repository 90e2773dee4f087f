"""How a window is walked through an API that has no cursor: which page is asked for after which.

Pure: a ``Walk`` says what to ask, is told what came, and never sees a socket. The rules, all of them
from how the traces API behaves:

* The next page starts where the last trace of this one starts, floored to the millisecond: order is exact
  to the millisecond, while the filter compares nanoseconds.
* A full page never ends the walk. When the cursor can't move, many traces share one stored time: the same
  request with twice the limit, up to 1,000. When it moves and nothing new came, the page was full of what
  known traces, long ones, still do: the next one is twice as large too.
* A short page ends it when it holds its own reply's ``totalCount``; else it is asked again, larger.
* A page from a trace's own start must hold that trace again. When it doesn't, the store rounds the query
  up: from then on the cursor is floored to the second.
* A page that fails for good holds a trace that can't be assembled: smaller pages up to it, steps past it,
  and the gap is bisected. What such a trace does later on is in later pages, and they fail as well: after the
  first gap no page that fails is waited for, but where all of the rest does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from amp_evaluation._time import floor_to
from amp_evaluation.trace._asks import Ask, Asking, Detour, Facts, Gap
from amp_evaluation.trace._page_size import LEAST_PAGE, MAX_PAGE

__all__ = ["Walk"]

MICROSECOND = timedelta(microseconds=1)
MILLISECOND = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)
MANY_SMALL_STEPS = 20  # one after the other: then a whole millisecond at once, with what it costs
WIDE_GAP = timedelta(milliseconds=100)  # from here on it is worth looking for pages in between
LOOKS_BACK = 10
GOLDEN_RATIO = 0.618034
SECOND_LOOKS = 5  # how often a failing page may turn out well after all, before it counts as failing


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
    _on_known_trace: bool = False
    _second_looks: int = SECOND_LOOKS
    _small_steps: int = 0
    _met_gap: bool = False
    _limit: int = LEAST_PAGE
    _works: int = 0

    def __post_init__(self) -> None:
        self.cursor = floor_to(self.start, MILLISECOND)

    def asks(self) -> Asking:
        self._start_over()
        ended = False
        while not ended:
            facts = yield Ask(self.cursor, self._limit, least=max(LEAST_PAGE, self._works + 1), hasty=self._met_gap)
            if facts is None:
                ended = yield from self._pass_failure(self._works, self._limit)
                self._start_over()
            elif self._rounded_up(facts):
                self.discarded = True
            else:
                ended = yield from self._take(facts)

    def _start_over(self) -> None:
        """From a new cursor: the usual size, and no page that is known to come."""
        self._limit, self._works = self.page_limit(), 0

    def _take(self, facts: Facts) -> Detour:
        if self._ends(facts):
            return True
        if self._move(facts):
            self._start_over()
            if not facts.fresh:
                self._limit = min(MAX_PAGE, facts.limit * 2)
            return False
        self._works = facts.limit
        if facts.limit < MAX_PAGE or facts.fresh:
            self._limit = min(MAX_PAGE, facts.limit * 2)
            return False
        return (yield from self._step_on(facts))

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
        self._on_known_trace = True
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
        among_ties = first is not None and first < floor_to(edge[1], MILLISECOND) + MILLISECOND
        if among_ties or edge in zip(facts.ids, facts.starts, strict=True):  # a later fragment of it isn't it
            self._edge = None
            return False
        back = floor_to(self.cursor, SECOND)
        self._on_known_trace = False
        if back == self.cursor:
            self._grain, self._checks_edges = MILLISECOND, False
            return False
        self.cursor, self._grain = back, SECOND
        return True

    # --- pages that fail ------------------------------------------------------------------------------

    def _pass_failure(self, works: int, fails: int) -> Detour:
        """Up to the trace that makes pages fail, then past it.

        ``works`` is the largest page that is known to come from this cursor, ``fails`` one that doesn't. The least
        is two, where the cursor stands on a known trace; elsewhere the first trace alone may be had.
        """
        known = works > 0 or self._on_known_trace
        works = max(works, int(known))
        while works < (middle := max(works + 1, (works + fails) // 2)) < fails:
            facts = yield Ask(self.cursor, middle, least=middle, probe=True)
            if facts is None:
                fails = middle
            elif self._rounded_up(facts):
                self.discarded = True
                return False
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
            if (yield from self._leads_on(high)):
                break
            if high >= self.end:
                return (yield from self._gives_up(begin, fails))
            low, step = high, step * 2
        if self._second_looks and (yield Ask(begin, fails, least=fails, probe=True)) is not None:
            self.discarded = True  # it was the service, not a trace
            self._second_looks -= 1
            return False
        if high - begin > WIDE_GAP:
            low, high = begin, (yield from self._earlier(begin, high))
        while high - low > MICROSECOND:
            middle = low + (high - low) // 2
            if (yield from self._leads_on(middle)):
                high = middle
            else:
                low = middle
        blurred = SECOND if self._grain is SECOND else timedelta(0)  # a query that is rounded up skips so much
        self.gaps.append(Gap(begin, high + blurred, failing=True))
        self._met_gap = True
        self.cursor, self._edge, self._on_known_trace = high, None, False
        return False

    def _earlier(self, begin: datetime, high: datetime) -> Generator[Ask, Facts | None, datetime]:
        """A start before ``high`` that leads on too, if there is one, and so on.

        The steps to ``high`` were wide, and a trace that can't be assembled comes again with each of its spans: there
        may be others in between. Looks are spread by the golden ratio, so that they fall in no step with the spans.
        """
        looks = 0
        while looks < LOOKS_BACK and high - begin > MILLISECOND:
            looks += 1
            target = begin + (high - begin) * (looks * GOLDEN_RATIO % 1)
            if (yield from self._leads_on(target)):
                high, looks = target, 0
        return high

    def _gives_up(self, begin: datetime, fails: int) -> Detour:
        """Every page fails from here on: the walk ends, but not before that was asked with patience."""
        if self._met_gap and self._second_looks and (yield Ask(begin, fails, least=fails)) is not None:
            self.discarded = True
            self._second_looks -= 1
            return False
        self.dead = True
        return True

    def _leads_on(self, start: datetime) -> Detour:
        """Whether the first trace from ``start`` can be had, or there is none. Looks only: nothing is taken."""
        limit = 1
        while (facts := (yield Ask(start, limit, least=limit, probe=True))) is not None:
            self.discarded = True
            if facts.fresh or facts.complete or limit == MAX_PAGE:
                return True
            limit = min(MAX_PAGE, limit * 2)  # fragments of known traces, or more of them at one time
        return False

    # --- more traces at one time than a page holds ----------------------------------------------------

    def _step_on(self, stuck: Facts) -> Detour:
        """Past a page of the largest size that brought nothing new."""
        self.short_of_total = self.short_of_total or not stuck.full
        for target, only_without_loss in self._targets(stuck):
            facts = yield Ask(target, MAX_PAGE, least=MAX_PAGE)
            if facts is None or not (facts.fresh or facts.complete):
                continue
            lost = _lost_between(stuck, facts, target)
            if only_without_loss and lost != 0:
                self.discarded = True
                continue
            if lost != 0:
                self.gaps.append(Gap(self.cursor, target, failing=False, lost=lost))
            self._small_steps = self._small_steps + 1 if target - self.cursor == MICROSECOND else 0
            self.cursor = target
            self._limit, self._works = MAX_PAGE, 0
            if self._ends(facts):
                return True
            if self._move(facts):
                self._start_over()
            return False
        if stuck.full:
            self.gaps.append(Gap(self.cursor, self.end, failing=False))
        return True

    def _targets(self, stuck: Facts) -> Iterator[tuple[datetime, bool]]:
        """Where to go on, and whether it is good only when the totals say that nothing is skipped by it.

        A store that orders finer than a millisecond goes on at the exact start of the page's last trace. Elsewhere
        ever further steps are tried; within a millisecond that start will do too, with what it costs.
        """
        edge = stuck.edge()
        wide = edge[1] if edge is not None and edge[1] > self.cursor else None
        if wide is not None:
            yield wide, True
        if self._small_steps < MANY_SMALL_STEPS and self.cursor + MICROSECOND <= self.end:
            yield self.cursor + MICROSECOND, False
        if wide is not None:
            yield wide, False
        for step in _steps(endless=stuck.full):
            if self.cursor + step > self.end:
                return
            yield self.cursor + step, False


def _lost_between(stuck: Facts, facts: Facts, reached: datetime) -> int | None:
    """How many traces lie between a stuck page and where it went on, beyond those that it held.

    Long ones among these are counted by both totals: they come again with what they still do.
    """
    if stuck.total is None or facts.total is None:
        return None
    return max(0, stuck.total - facts.total - stuck.left_behind(reached, set(facts.ids)))


def _steps(*, endless: bool) -> Iterator[timedelta]:
    """A unit of each coarser resolution that stores have; when ``endless``, growing from there."""
    yield from (MILLISECOND, SECOND)
    step = SECOND
    while endless:
        step *= 2
        yield step
