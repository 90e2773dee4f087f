"""Which addresses can be sent to."""

from __future__ import annotations

from urllib.parse import urlsplit

import requests

__all__ = ["is_http_url"]


def is_http_url(text: str) -> bool:
    """Whether it is an http:// or https:// URL with a host that a request can be made for.

    The HTTP library is asked too: it refuses hosts that ``urlsplit`` takes (``http://.example``, one with a blank), and
    would do so only when the first request is sent.
    """
    if any(mark.isspace() for mark in text):
        return False
    try:
        parts = urlsplit(text)
        requests.Request("GET", text).prepare()
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # all that both of them raise for a URL
        return False
