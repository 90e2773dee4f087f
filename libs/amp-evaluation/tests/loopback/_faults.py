"""Faults by name: what each does to which role, and how often before things are well again.

A fault is a function around the role's own answer: it may answer instead, or spoil what was answered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loopback._server import Request, Response

if TYPE_CHECKING:
    from loopback.platform import Platform

Answer = Callable[[], Response]
Act = Callable[["Platform", Request, Answer], Response]


@dataclass
class Fault:
    """``times``: how many requests it hits; ``after``: how many pass before the first."""

    role: str
    act: Act
    times: int = 1
    after: int = 0

    def hits(self) -> bool:
        if self.after > 0:
            self.after -= 1
            return False
        self.times -= 1
        return self.times >= 0


def status(code: int, **headers: str) -> Act:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda platform, request, answer: Response.of(code, {"error": "fault"}, **named)


def broken(how: str) -> Act:
    """The role answers (and stores), but the reply is cut, reset or lost."""
    return lambda platform, request, answer: replace(answer(), breakage=how)


def _html(platform: Platform, request: Request, answer: Answer) -> Response:
    return Response(200, b"<html><body>Sign in</body></html>", {"Content-Type": "text/html"})


def _revoked(platform: Platform, request: Request, answer: Answer) -> Response:
    platform.idp.revoke_all()
    return answer()


def _refused(seconds: float) -> Act:
    def act(platform: Platform, request: Request, answer: Answer) -> Response:
        platform.refuse("publisher", seconds)
        return Response(breakage="reset")

    return act


FOREVER = 1 << 30

FAULTS: dict[str, Callable[[], Fault]] = {
    "token_503": lambda: Fault("idp", status(503)),
    "token_429": lambda: Fault("idp", status(429, Retry_After="1")),
    "token_reset": lambda: Fault("idp", broken("reset")),
    "token_401": lambda: Fault("idp", status(401), FOREVER),
    "export_503": lambda: Fault("traces", status(503), after=1),
    "export_429": lambda: Fault("traces", status(429, Retry_After="2"), after=1),
    "export_401": lambda: Fault("traces", _revoked, after=1),
    "export_cut": lambda: Fault("traces", broken("cut"), after=1),
    "export_reset": lambda: Fault("traces", broken("reset"), after=1),
    "export_html": lambda: Fault("traces", _html, after=1),
    "export_403": lambda: Fault("traces", status(403), FOREVER),
    "export_404": lambda: Fault("traces", status(404), FOREVER),
    "export_503_forever": lambda: Fault("traces", status(503), FOREVER, after=1),
    "export_html_forever": lambda: Fault("traces", _html, FOREVER),
    "publisher_503_twice": lambda: Fault("publisher", status(503), 2),
    "publisher_429": lambda: Fault("publisher", status(429, Retry_After="2")),
    "publisher_401": lambda: Fault("publisher", _revoked),
    "publisher_reply_lost": lambda: Fault("publisher", broken("reset")),
    "publisher_cut": lambda: Fault("publisher", broken("cut")),
    "publisher_403": lambda: Fault("publisher", status(403), FOREVER),
    "publisher_404": lambda: Fault("publisher", status(404), FOREVER),
    "publisher_503_forever": lambda: Fault("publisher", status(503), FOREVER),
    "publisher_refused_5s": lambda: Fault("publisher", _refused(5.0)),
    "publisher_redirect": lambda: Fault("publisher", status(302, Location="https://elsewhere.invalid/"), FOREVER),
    "model_503": lambda: Fault("model", status(503)),
    "model_429": lambda: Fault("model", status(429, Retry_After="1")),
    "model_502_forever": lambda: Fault("model", status(502), FOREVER),
    "model_401_forever": lambda: Fault("model", status(401), FOREVER),
}
