"""The traces of one window: pages by the walk's orders, their new traces out, faults into the report.

At most two pages are held: the one whose traces are being given out and, when asked to, the one after it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from amp_evaluation._reports import RunError
from amp_evaluation._time import format_rfc3339, parse_rfc3339
from amp_evaluation.errors import TransientError
from amp_evaluation.trace._asks import Ask, Asking, Facts, Gap
from amp_evaluation.trace._export import Answer, Export
from amp_evaluation.trace._fetch_report import FetchReport
from amp_evaluation.trace._otel import wire_trace
from amp_evaluation.trace._page_size import PAGE_BYTES
from amp_evaluation.trace._paging import Walk
from amp_evaluation.trace._prefetch import Ahead
from amp_evaluation.trace._windows import Window
from amp_evaluation.trace._wire import OTELTrace

__all__ = ["WindowFetch"]

log = logging.getLogger("amp_evaluation.trace.fetcher")

MAX_TOLD_GAPS = 10  # a trace that can't be assembled leaves one at each of its spans
ORDER_SLACK = timedelta(seconds=2)  # stores that keep full seconds sort no finer than that


class WindowFetch:
    """``given`` holds the ids that the whole run has given out, ``prefetches`` says whether to ask ahead."""

    def __init__(
        self,
        export: Export,
        window: Window,
        report: FetchReport,
        given: set[str],
        *,
        prefetches: Callable[[], bool],
    ) -> None:
        self._export = export
        self._window = window
        self._report = report
        self._given = given
        self._prefetches = prefetches
        self._seen: set[str] = set()  # of this window, with its margins
        self._after_gap = False
        self._gaps = self._torn = 0
        self._walk = Walk(
            start=window.asked_from,
            end=window.asked_to,
            page_limit=export.sizer.limit,
            enough=window.end + ORDER_SLACK,
        )

    def traces(self) -> Iterator[OTELTrace]:
        """The new traces of the window, page by page."""
        orders = self._walk.asks()
        ask: Ask | None = next(orders)
        ahead: Ahead[Answer | None] | None = None
        while ask is not None:
            answer = self._export.fetch(ask) if ahead is None else ahead.result()
            light = answer is not None and answer.size <= PAGE_BYTES
            ask, traces = self._digest(orders, answer)
            del answer
            ahead = self._ask_ahead(ask) if light and traces else None
            while traces:
                yield traces.pop()  # no variable holds it: a heavy page must go before the next one comes
        self._conclude()

    def _ask_ahead(self, ask: Ask | None) -> Ahead[Answer | None] | None:
        if ask is None or not self._prefetches():
            return None
        wanted = ask
        return Ahead(lambda: self._export.fetch(wanted))

    def _digest(self, orders: Asking, answer: Answer | None) -> tuple[Ask | None, list[OTELTrace]]:
        """Tell the walk what came. Its next order, and the traces to give out, the last one first."""
        if answer is None:
            return self._next(orders, None), []
        traces = answer.page.traces
        ids = [_identity(trace) for trace in traces]
        fresh = sum(1 for name in ids if name not in self._seen)
        starts = [trace.start for trace in traces]
        ask = self._next(orders, Facts(answer.limit, ids, starts, fresh, answer.page.total_count))
        if self._walk.discarded:
            return ask, []
        if answer.page.truncated:
            self._note_truncated()
        told = zip(traces, ids, starts, strict=True)
        new = [trace for trace, name, start in told if self._takes(trace, name, start)]
        new.reverse()
        return ask, new

    def _next(self, orders: Asking, facts: Facts | None) -> Ask | None:
        self._walk.discarded = False
        try:
            return orders.send(facts)
        except StopIteration:
            return None
        finally:
            self._note_gaps()

    def _takes(self, trace: OTELTrace, name: str, start: datetime | None) -> bool:
        """Whether this is the first copy of a trace that starts in the window; the first copy wins for good."""
        if name in self._seen:
            return False
        self._seen.add(name)
        if start is not None and not self._window.holds(start):
            self._report.outside += 1
            return False
        if name in self._given:
            return False
        self._given.add(name)
        self._report.found += 1
        if _has_root(trace):
            return True
        if self._crosses_end(trace):
            self._report.cut += 1
            trace.cut = True
        elif (
            self._after_gap or self._walk.short_of_total
        ):  # it began in there: what came is the rest of it, and would be scored as if it were all
            self._torn += 1
            return False
        return True

    def _crosses_end(self, trace: OTELTrace) -> bool:
        """Whether the trace runs out of the window: then its root, which ends last, was left out for it."""
        ends = (parse_rfc3339(span.endTime) for span in wire_trace(trace).spans or () if isinstance(span.endTime, str))
        return any(end is not None and end > self._window.end for end in ends)

    # --- faults -----------------------------------------------------------------------------------------

    def _note_truncated(self) -> None:
        self._report.truncated += 1
        if self._report.truncated == 1:
            self._warn("traces API: some traces came shortened: they have more spans than the service sends")

    def _note_gaps(self) -> None:
        gaps, self._walk.gaps = self._walk.gaps, []
        self._after_gap = self._after_gap or bool(gaps)
        for gap in gaps:
            if self._window.touches(gap.start, gap.end):
                self._gaps += 1
                if self._gaps <= MAX_TOLD_GAPS:
                    self._note_error(_gap_text(gap))

    def _conclude(self) -> None:
        if self._gaps > MAX_TOLD_GAPS:
            self._note_error(f"traces API: {self._gaps - MAX_TOLD_GAPS} more such stretches that can't be read")
        if self._torn:
            self._note_error(
                f"traces API: {self._torn} traces start where pages can't be read: what came of them isn't all"
            )
        if self._walk.short_of_total:
            self._warn("traces API: it counts more traces than it gives: the rest, if there is any, is out of reach")
        failure = self._export.last_failure
        if self._walk.dead and failure is not None and self._walk.cursor < self._window.end:
            detail = f"{failure.detail} for every page from {format_rfc3339(self._walk.cursor)} on"
            raise TransientError(failure.role, detail, status=failure.status) from failure

    def _note_error(self, text: str) -> None:
        self._report.errors.append(RunError(text, repeat_may_help=False))

    def _warn(self, text: str) -> None:
        log.warning("%s", text)
        self._report.warnings.append(text)


def _identity(trace: OTELTrace) -> str:
    """The trace's id; for one without, something that is the same whenever it comes again."""
    return trace.traceId or f"no id: {trace.startTime} {trace.rootSpanId} {trace.size}"


def _has_root(trace: OTELTrace) -> bool:
    """Also for a trace without spans: nothing says that one is missing."""
    spans = wire_trace(trace).spans or ()
    return not spans or any(span.spanId == trace.rootSpanId or not span.parentSpanId for span in spans)


def _gap_text(gap: Gap) -> str:
    start, end = format_rfc3339(gap.start), format_rfc3339(gap.end)
    if gap.failing:
        return (
            f"traces API: pages with traces that start from {start} to before {end} always fail, so these traces are "
            "not evaluated: one of them has no root or over 1,000 spans, or the service can't read it"
        )
    count = "an unknown number of" if gap.lost is None else f"{gap.lost}"
    return (
        f"traces API: {count} traces that start from {start} to before {end} are out of reach and not evaluated: "
        "more share one time than a page can hold"
    )
