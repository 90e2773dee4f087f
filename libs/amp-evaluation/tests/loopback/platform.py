"""The whole platform on loopback: identity provider, traces API, publisher and model, one port each."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loopback._faults import FAULTS, Fault
from loopback._idp import ABSENT, IdentityProvider
from loopback._model import Model
from loopback._observer import Observer
from loopback._publisher import Publisher
from loopback._server import Handler, Request, Response, Server
from loopback._store import Resolution, StoredTrace, TraceStore
from loopback.traces import Wire

MONITOR_ID = "3f0c1f0e-8d5a-4f6e-9b43-0c9f6a1d2e01"
RUN_ID = "7a9e4c52-1b1d-4c3a-8a5f-5d2f0b9c7e02"
ROLES = ("idp", "traces", "publisher", "model")


class Platform:
    """Start it with ``with Platform() as platform``; each role's state is an attribute, faults have names.

    Time is the machine's plus what ``sleep`` has added: a test gives ``platform.sleep`` to the job, which
    then never waits, while tokens expire and refusing listeners come back as if it had.
    """

    def __init__(
        self,
        traces: Iterable[Wire | StoredTrace] = (),
        *,
        resolution: Resolution = "ns",
        rounds: bool = False,
        both_sides: bool = True,
        order_ms: bool = True,
    ) -> None:
        self.naps: list[float] = []
        self._slept = 0.0
        self._faults: list[Fault] = []
        self._reopen: dict[str, float] = {}
        self._lock = threading.Lock()
        self.idp = IdentityProvider(self.now)
        self.store = TraceStore(resolution, rounds, both_sides, order_ms)
        self.observer = Observer(self.idp, self.store)
        self.publisher = Publisher(self.idp)
        self.model = Model()
        self.serve(traces)
        handlers = (self.idp.handle, self.observer.handle, self.publisher.handle, self.model.handle)
        self.servers = {
            role: Server(role, self._faulty(role, handler)) for role, handler in zip(ROLES, handlers, strict=True)
        }

    def __enter__(self) -> Platform:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for server in self.servers.values():
            server.close()

    # --- what is served -------------------------------------------------------------------------

    def serve(self, traces: Iterable[Wire | StoredTrace]) -> None:
        """Add traces: wire dicts, or stored ones of the generators."""
        self.store.add(item if isinstance(item, StoredTrace) else StoredTrace.of(item) for item in traces)

    def break_traces(self, *trace_ids: str) -> None:
        """From now on every page that would hold one of these answers 500."""
        for trace in self.store.traces:
            trace.broken = trace.broken or trace.trace_id in trace_ids

    def fault(self, name: str, *, times: int | None = None, after: int | None = None) -> None:
        """Switch a named fault on (``FAULT_NAMES``), for other times than its own when given."""
        if name in CONDITIONS:
            CONDITIONS[name](self)
            return
        fault = FAULTS[name]()
        fault.times = fault.times if times is None else times
        fault.after = fault.after if after is None else after
        self._faults.append(fault)

    def interfere(self, fault: Fault) -> None:
        """Switch on a fault made by the test itself."""
        self._faults.append(fault)

    def refuse(self, role: str, seconds: float) -> None:
        """No connection to this role for so long."""
        with self._lock:  # both at once: whoever sleeps through it must find it due
            self._reopen[role] = self.now() + seconds
            self.servers[role].close()
        threading.Timer(seconds, self._reopen_due).start()

    # --- time -----------------------------------------------------------------------------------

    def now(self) -> float:
        return time.time() + self._slept

    def clock(self) -> float:
        return time.monotonic() + self._slept

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self._slept += seconds
        self._reopen_due()

    def _reopen_due(self) -> None:
        with self._lock:
            due = [role for role, moment in self._reopen.items() if moment <= self.now() + 0.001]
            for role in due:
                del self._reopen[role]
                self.servers[role].open()

    # --- how to reach it ------------------------------------------------------------------------

    @property
    def token_url(self) -> str:
        return self.servers["idp"].url + "/oauth2/token"

    @property
    def traces_url(self) -> str:
        return self.servers["traces"].url

    @property
    def publisher_url(self) -> str:
        return self.servers["publisher"].url

    @property
    def model_url(self) -> str:
        return self.servers["model"].url + "/v1"

    def token(self) -> str:
        """A valid bearer token without a request, for clients that are tested alone."""
        response: dict[str, Any] = json.loads(self.idp.issue().body)
        return str(response["access_token"])

    def requests(self, role: str) -> list[Request]:
        return self.servers[role].requests

    @property
    def pages(self) -> list[Request]:
        """The export requests, in order."""
        return [request for request in self.requests("traces") if request.path.endswith("/export")]

    def argv(self, **over: Any) -> list[str]:
        """main.py's flags for a run over 2026-01-15; ``over`` replaces (``trace_end=…``), None leaves out."""
        flags: dict[str, Any] = {
            "monitor_name": "nightly",
            "organization": "acme",
            "project": "shop",
            "agent": "assistant",
            "environment": "production",
            "evaluators": [{"identifier": "latency_performance", "displayName": "Latency", "config": {}}],
            "trace_start": "2026-01-15T00:00:00Z",
            "trace_end": "2026-01-16T00:00:00Z",
            "traces_api_endpoint": self.traces_url,
            "monitor_id": MONITOR_ID,
            "run_id": RUN_ID,
            "publisher_endpoint": self.publisher_url,
        }
        flags.update(over)
        if not isinstance(flags["evaluators"], str | None):
            flags["evaluators"] = json.dumps(flags["evaluators"])
        return [f"--{name.replace('_', '-')}={value}" for name, value in flags.items() if value is not None]

    def env(self, **over: str | None) -> dict[str, str]:
        """The environment of the run; ``over`` replaces, None leaves out."""
        values: dict[str, str | None] = {
            "IDP_TOKEN_URL": self.token_url,
            "IDP_CLIENT_ID": self.idp.client_id,
            "IDP_CLIENT_SECRET": self.idp.client_secret,
        }
        return {name: value for name, value in (values | over).items() if value is not None}

    # --- faults ---------------------------------------------------------------------------------

    def _faulty(self, role: str, handler: Handler) -> Handler:
        def handle(request: Request) -> Response:
            if request.path == "/_state":
                return Response.of(200, self.state())
            act = self._next_fault(role) if request.path != "/health" else None
            if act is None:
                return handler(request)
            return act.act(self, request, lambda: handler(request))

        return handle

    def _next_fault(self, role: str) -> Fault | None:
        with self._lock:
            mine = [fault for fault in self._faults if fault.role == role and fault.times > 0]
            return next((fault for fault in mine if fault.hits()), None)

    def state(self) -> dict[str, Any]:
        """What a benchmark asks of a platform in another process."""
        return {
            "pages": self.observer.pages,
            "traces": len(self.store.traces),
            "posts": self.publisher.posts,
            "items": self.publisher.items,
            "refusals": self.publisher.refusals[:5],
            "max_in_flight": self.model.max_in_flight,
            "model_calls": len(self.model.calls),
            "urls": self.urls(),
        }

    def urls(self) -> dict[str, str]:
        return {
            "token": self.token_url,
            "traces": self.traces_url,
            "publisher": self.publisher_url,
            "model": self.model_url,
        }

    def write_address(self, path: Path) -> None:
        """Tell another process how to reach this one: URLs, credentials and flags as JSON."""
        told = {"urls": self.urls(), "argv": self.argv(), "env": self.env(), "at": datetime.now(UTC).isoformat()}
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(told))
        partial.replace(path)


def _secret(decodes: bool) -> Callable[[Platform], None]:
    def switch(platform: Platform) -> None:
        platform.idp.client_secret = "a+b%c:d/e f"
        platform.idp.decodes = decodes

    return switch


def _set(path: str, value: Any) -> Callable[[Platform], None]:
    """Sets ``role.attribute`` of the platform."""
    role, _, name = path.partition(".")
    return lambda platform: setattr(getattr(platform, role), name, value)


def _break_one(platform: Platform) -> None:
    middle = platform.store.traces[len(platform.store.traces) // 2]
    platform.break_traces(middle.trace_id)


def _poison_one(platform: Platform) -> None:
    platform.publisher.poison = platform.store.traces[len(platform.store.traces) // 2].trace_id


# Faults that aren't a number of bad replies but how a role is from the start.
CONDITIONS: dict[str, Callable[[Platform], None]] = {
    "token_no_expires": _set("idp.expires_in", ABSENT),
    "token_string_expires": _set("idp.expires_in", "3600"),
    "token_life_1s": _set("idp.life_s", 1.0),
    "token_secret_decoded": _secret(True),
    "token_secret_plain": _secret(False),
    "token_post_only": _set("idp.methods", frozenset({"post"})),
    "truncated": _set("observer.truncated", True),
    "page_500": _break_one,
    "publisher_413_64k": _set("publisher.max_body", 64 * 1024),
    "publisher_500_item": _poison_one,
}
FAULT_NAMES = (*FAULTS, *CONDITIONS)
