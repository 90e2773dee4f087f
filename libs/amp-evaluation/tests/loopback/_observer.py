"""The traces API: strict about the query, and able to do all that the real one does wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from loopback._idp import IdentityProvider
from loopback._server import Request, Response
from loopback._store import NS, Found, TraceStore, to_ns

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
REQUIRED = ("organization", "project", "agent", "environment")
MAX_WINDOW_NS = 30 * 24 * 3600 * NS
MAX_SPANS = 1000
DEFAULT_LIMIT = 100


@dataclass
class Observer:
    """``rootless``: what a page that holds a trace without its root is: sent ("fragment") or an error ("500").

    ``shorten`` maps the groups of a page to those that are sent, so that short pages can be played.
    ``monitored`` are the four names that must match, when given.
    """

    idp: IdentityProvider
    store: TraceStore = field(default_factory=TraceStore)
    rootless: str = "fragment"
    shorten: Callable[[list[Found]], list[Found]] | None = None
    truncated: bool = False
    page_delay_s: float = 0.0
    total_count: Callable[[int], int | None] = lambda total: total
    monitored: tuple[str, ...] = ()
    pages: int = 0

    def handle(self, request: Request) -> Response:
        if request.path == "/health":
            return Response.of(200, {"status": "ok"})
        if request.method != "GET" or request.path != "/api/v1/traces/export":
            return Response.of(404, {"error": "no such path"})
        if not self.idp.accepts(request):
            return Response.of(401, {"error": "bad token"})
        fault = self._fault_of(request.query)
        if fault:
            return Response.of(400, {"error": fault})
        return self._page(request.query)

    def _fault_of(self, query: dict[str, str]) -> str:
        missing = [name for name in REQUIRED if not query.get(name)]
        if missing:
            return f"{missing[0]} is required"
        if self.monitored and tuple(query[name] for name in REQUIRED) != self.monitored:
            return "another agent is asked for"
        if not all(RFC3339.fullmatch(query.get(name, "")) for name in ("startTime", "endTime")):
            return "startTime and endTime are RFC 3339 with a zone"
        if query.get("sortOrder", "desc") not in ("asc", "desc"):
            return "sortOrder is asc or desc"
        limit = query.get("limit", str(DEFAULT_LIMIT))
        if not (limit.isdigit() and 1 <= int(limit) <= 1000):
            return "limit is 1 to 1000"
        return "startTime is after endTime" if to_ns(query["startTime"]) > to_ns(query["endTime"]) else ""

    def _page(self, query: dict[str, str]) -> Response:
        start, end = to_ns(query["startTime"]), to_ns(query["endTime"])
        if end - start > MAX_WINDOW_NS:
            return self._error("the window is over 30 days")
        limit = int(query.get("limit", DEFAULT_LIMIT))
        ascending = query.get("sortOrder", "desc") == "asc"
        found, total = self.store.query(start, end, limit if ascending else len(self.store.traces))
        if not ascending:
            found = found[::-1][:limit]
        if any(self._unassemblable(group) for group in found):
            return self._error("a trace can't be assembled")
        if self.shorten is not None:
            found = self.shorten(found)
        self.pages += 1
        return Response(200, self._body(found, total), {"Content-Type": "application/json"}, delay_s=self.page_delay_s)

    def _error(self, why: str) -> Response:
        response = Response.of(500, {"error": why})
        response.delay_s = self.page_delay_s
        return response

    def _unassemblable(self, group: Found) -> bool:
        return group.trace.broken or len(group.trace.spans) > MAX_SPANS or (self.rootless == "500" and group.rootless)

    def _body(self, found: list[Found], total: int) -> bytes:
        told = self.total_count(total)
        tail = "" if told is None else f', "totalCount": {told}'
        flag = "true" if self.truncated else "false"
        return (
            b'{"traces": [' + b", ".join(group.body() for group in found) + f']{tail}, "truncated": {flag}}}'.encode()
        )
