"""Traces of a window from the traces API: lazily, in order, each once, none lost in silence.

Which page follows which is decided in ``_paging``; ``_export`` gets a page, ``_window_fetch`` makes traces of it.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from amp_evaluation.errors import ConfigError, PeerError
from amp_evaluation.http import READ_TIMEOUT_S, HttpClient, RetryPolicy, TokenProvider
from amp_evaluation.trace._export import Export
from amp_evaluation.trace._fetch_report import FetchReport
from amp_evaluation.trace._page_size import PageSizer
from amp_evaluation.trace._window_fetch import WindowFetch
from amp_evaluation.trace._windows import LONGEST_REQUEST, Window, moment, windows
from amp_evaluation.trace._wire import (
    AmpAttributes,
    AmpSpanData,
    AmpSpanStatus,
    OTELSpan,
    OTELTokenUsage,
    OTELTrace,
    OTELTraceStatus,
)

__all__ = [
    "AmpAttributes",
    "AmpSpanData",
    "AmpSpanStatus",
    "FetchReport",
    "OTELSpan",
    "OTELTokenUsage",
    "OTELTrace",
    "OTELTraceStatus",
    "TraceFetcher",
]

log = logging.getLogger("amp_evaluation.trace.fetcher")

ROLE = "traces API"
DEFAULT_PAGE_SIZE = 10
DEFAULT_MARGIN_S = 60.0
SEARCH_PAGE_SIZE = 100  # looking for one trace: most pages hold nothing of interest


def _now() -> datetime:
    return datetime.now(UTC)


class TraceFetcher:
    """Reads traces of one agent. ``report`` is of the running, or else the last, fetch.

    ``token_provider`` is called before each request; see ``http.TokenProvider``. ``timeout`` is the wait for a
    reply in seconds. ``window_margin_s`` is asked for on both sides of a window, so that a run which crosses
    its border comes whole. With ``prefetch`` set, the next page is asked for while the traces of this one are
    in the caller's hands: worth it when the caller waits for something else, such as judges.
    """

    def __init__(
        self,
        base_url: str,
        organization: str,
        project: str,
        agent: str,
        environment: str,
        token_provider: TokenProvider,
        timeout: float = READ_TIMEOUT_S,
        page_size: int = DEFAULT_PAGE_SIZE,
        *,
        window_margin_s: float = DEFAULT_MARGIN_S,
        retry: RetryPolicy | None = None,
        now: Callable[[], datetime] = _now,
    ) -> None:
        monitored = {"organization": organization, "project": project, "agent": agent, "environment": environment}
        for name, value in {"base_url": base_url, **monitored}.items():
            if not (isinstance(value, str) and value.strip()):
                raise ConfigError(f"{name}={value!r}: a text that isn't empty is required")
        if not callable(token_provider):
            raise ConfigError("token_provider: a callable that returns a bearer token is required")
        margin = timedelta(seconds=window_margin_s)
        if not timedelta(0) <= margin < LONGEST_REQUEST / 2:
            raise ConfigError(f"window_margin_s={window_margin_s!r}: from 0 to less than half of {LONGEST_REQUEST}")
        self.page_size = _checked_size("page_size", page_size)
        self.prefetch = False
        self.report = FetchReport()
        self._monitored = monitored
        self._token = token_provider
        self._margin = margin
        self._now = now
        self._client = HttpClient(ROLE, base_url, retry=retry, read_timeout_s=timeout)

    def fetch_traces(
        self,
        start_time: str | datetime,
        end_time: str | datetime,
        page_size: int | None = None,
        max_traces: int | None = None,
    ) -> Iterator[OTELTrace]:
        """The traces that start in [start_time, end_time), ascending by start time, read as they are taken.

        Times are datetimes or ISO 8601 texts, UTC when they have no zone. ``page_size`` is the largest page that
        is asked for; heavy traces make pages smaller, traces that share one time larger. Raises ValueError
        for a wrong argument, at once, and PeerError when the walk can't go on; what can't be reached though it goes
        on is in ``report.errors``.
        """
        start, end = moment("start_time", start_time), moment("end_time", end_time)
        if start >= end:
            raise ConfigError(f"start_time {start_time!r} is not before end_time {end_time!r}")
        size = self.page_size if page_size is None else _checked_size("page_size", page_size)
        limit = None if max_traces is None else _checked_size("max_traces", max_traces)
        self.report = FetchReport()
        sizer = PageSizer(size)
        slices = windows(start, end, self._margin, self._now())
        return itertools.islice(self._fetch(slices, sizer, self.report), limit)

    def fetch_trace_by_id(
        self, trace_id: str, *, start_time: str | datetime | None = None, end_time: str | datetime | None = None
    ) -> OTELTrace | None:
        """The trace with this id, or None. Looks through the last 30 days, or the times given.

        The service finds traces by time only: this reads all of them up to the one that is wanted.
        """
        end = self._now() if end_time is None else moment("end_time", end_time)
        start = end - LONGEST_REQUEST + 2 * self._margin if start_time is None else moment("start_time", start_time)
        for trace in self.fetch_traces(start, end, page_size=max(SEARCH_PAGE_SIZE, self.page_size)):
            if trace.traceId == trace_id:
                return trace
        return None

    def health_check(self) -> bool:
        """Whether the service answers, asked once."""
        try:
            return self._client.get("/health", retry=False).status == 200
        except PeerError as error:
            log.debug("health check: %s", error)
            return False

    def _fetch(self, slices: Iterator[Window], sizer: PageSizer, report: FetchReport) -> Iterator[OTELTrace]:
        given: set[str] = set()  # ids of the whole run: a later slice may bring a fragment of a known trace
        for window in slices:
            export = Export(self._client, self._token, self._monitored, window, sizer, report)
            yield from WindowFetch(export, window, report, given, prefetches=lambda: self.prefetch).traces()


def _checked_size(name: str, size: int) -> int:
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ConfigError(f"{name}={size!r}: a whole number of at least 1 is wanted")
    return size
