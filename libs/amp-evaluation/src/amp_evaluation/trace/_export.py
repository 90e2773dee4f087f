"""Pages of traces from the traces API's export call."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from amp_evaluation._time import format_rfc3339
from amp_evaluation.errors import BodyCutError, PeerError, PeerTimeoutError, RefusedError, TransientError
from amp_evaluation.http import BodyTooLargeError, HttpClient, Reply, TokenProvider
from amp_evaluation.trace._asks import Ask
from amp_evaluation.trace._fetch_report import FetchReport
from amp_evaluation.trace._page_size import HEAVY_REPLY_BYTES, LEAST_PAGE, PageSizer
from amp_evaluation.trace._windows import Window
from amp_evaluation.trace._wire import Page, decode_page

__all__ = ["Answer", "Export", "UnreadableReplyError"]

log = logging.getLogger("amp_evaluation.trace.fetcher")

EXPORT_PATH = "/api/v1/traces/export"
GAVE_UP_WAITING = (408, 504)  # a timeout that somebody between here and there saw first
STORE_ERROR = 500  # what a page that holds a trace which can't be assembled answers, each time


class UnreadableReplyError(BodyCutError):
    """Status 200 with something that is no reply of the traces API, such as a gateway's sign-in page."""


@dataclass(slots=True)
class Answer:
    """A page as it came: ``limit`` is what was asked for in the end, ``size`` its bytes."""

    page: Page
    limit: int
    size: int


class Export:
    """The export call for one window, with the retry policy, and the size of its pages."""

    def __init__(
        self,
        client: HttpClient,
        token: TokenProvider,
        monitored: Mapping[str, str],
        window: Window,
        sizer: PageSizer,
        report: FetchReport,
    ) -> None:
        self._client = client
        self._token = token
        self.sizer = sizer
        self._report = report
        self._query = urlencode({**monitored, "endTime": format_rfc3339(window.asked_to), "sortOrder": "asc"})
        self.last_failure: TransientError | None = None

    def fetch(self, ask: Ask) -> Answer | None:
        """The page, or None when it fails for good in the way that a trace which can't be assembled causes.

        Any other failure is raised: TransientError after its retries, RefusedError at once.
        """
        attempt = _Attempt(self, ask)
        try:
            answer = self._client.retry.run(attempt, role=self._client.role)
        except UnreadableReplyError as error:
            raise RefusedError(error.role, error.detail, status=200, hint="check the endpoint") from error
        except TransientError as error:
            if not self.blames_page(error):
                raise
            self.last_failure = error
            return None
        if answer is not None:
            self.sizer.came(len(answer.page.traces), answer.size)
        return answer

    def is_mine(self, error: PeerError) -> bool:
        """Whether the traces API itself failed: a page's call asks the identity provider too."""
        return error.role == self._client.role

    def blames_page(self, error: TransientError) -> bool:
        """Whether it may be what is in the page that the service can't give out, rather than an outage."""
        return self.is_mine(error) and (error.status == STORE_ERROR or isinstance(error, BodyCutError))

    def request(self, ask: Ask, limit: int, max_bytes: int | None) -> Answer:
        self._report.requests += 1
        query = f"?startTime={_quoted(format_rfc3339(ask.start))}&limit={limit}&{self._query}"
        reply = self._client.get(EXPORT_PATH + query, token=self._token, retry=False, max_bytes=max_bytes)
        return Answer(self._decode(reply), limit, len(reply.body))

    def _decode(self, reply: Reply) -> Page:
        try:
            return decode_page(reply.body)
        except ValueError as error:
            body = reply.body.strip()
            if body.startswith(b"{") and not body.endswith(b"}"):
                raise BodyCutError(self._client.role, "the reply ended early", status=200) from error
            raise UnreadableReplyError(
                self._client.role, "HTTP 200 with something else than traces", status=200
            ) from error


class _Attempt:
    """One try of one page, again and again: it asks for less after a page that was too slow, cut, or too heavy."""

    def __init__(self, export: Export, ask: Ask) -> None:
        self._export = export
        self._ask = ask
        self._limit = ask.limit

    def __call__(self) -> Answer | None:
        try:
            return self._within_reach()
        except UnreadableReplyError:
            raise
        except TransientError as error:
            if self._tells_enough(error):
                self._export.last_failure = error
                return None
            if self._export.is_mine(error) and _came_short(error):
                self._shrink()
            raise

    def _tells_enough(self, error: TransientError) -> bool:
        ask = self._ask
        known = ask.probe or (ask.hasty and error.status == STORE_ERROR)
        return known and self._export.blames_page(error)

    def _within_reach(self) -> Answer:
        """The page, made smaller until it is one that can be held."""
        while True:
            can_shrink = self._limit > max(self._ask.least, LEAST_PAGE)
            try:
                return self._export.request(self._ask, self._limit, HEAVY_REPLY_BYTES if can_shrink else None)
            except BodyTooLargeError as error:
                sizer = self._export.sizer
                sizer.too_heavy(self._limit, error.size)
                self._limit = max(self._ask.least, min(sizer.limit(), self._limit - 1))
                log.debug("%s, asking for %d traces at once", error, self._limit)

    def _shrink(self) -> None:
        """The service cuts a reply after 30 s: a smaller page may be in time."""
        if self._limit > self._ask.least:
            self._export.sizer.halve(self._limit)
            self._limit = max(self._ask.least, self._limit // 2)


def _came_short(error: TransientError) -> bool:
    """No reply in time or not all of it, told by the service itself or by a gateway before it."""
    return isinstance(error, BodyCutError | PeerTimeoutError) or error.status in GAVE_UP_WAITING


def _quoted(moment: str) -> str:
    return moment.replace(":", "%3A")
