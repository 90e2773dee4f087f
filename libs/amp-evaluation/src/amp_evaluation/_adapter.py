"""How ``requests`` reaches the one base URL of a client: what is the same for every call is done once.

The adapter's own way looks the pool up by the URL's parts, checks the certificates' paths and builds a response with
cookies and history on every call; that is half of what a page of traces costs beside its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import requests
import urllib3
from requests.adapters import HTTPAdapter

__all__ = ["OneHostAdapter", "Received"]


class Received:
    """A reply whose body is still to be read from ``raw``."""

    __slots__ = ("headers", "raw", "status_code")

    def __init__(self, raw: urllib3.BaseHTTPResponse) -> None:
        self.status_code = raw.status
        self.headers: Mapping[str, str] = raw.headers
        self.raw = raw

    def close(self) -> None:
        """Give the connection back when the body was read to its end, and close it else."""
        self.raw.close()
        self.raw.release_conn()


class OneHostAdapter(HTTPAdapter):
    """For one base URL with one set of proxies and certificates; errors are mapped as ``requests`` maps them."""

    _pool: Any = None

    def fetch(self, request: requests.PreparedRequest, **settings: Any) -> Received:
        received: Any = self.send(request, stream=True, **settings)
        return cast(Received, received)

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        if self._pool is None:
            self._pool = super().get_connection_with_tls_context(*args, **kwargs)
            self._is_checked = False
        return self._pool

    def cert_verify(self, *args: Any, **kwargs: Any) -> None:
        if not self._is_checked:
            super().cert_verify(*args, **kwargs)  # type: ignore[no-untyped-call]
            self._is_checked = True

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> Any:
        return Received(resp)

    def close(self) -> None:
        """Close the connections. A later call opens new ones."""
        self._pool = None
        super().close()
