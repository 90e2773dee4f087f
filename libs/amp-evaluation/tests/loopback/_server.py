"""A small HTTP/1.1 server on real sockets that can also misbehave: cut bodies, reset, lose replies.

Written by hand because a benchmark's peer must cost less than the job it measures, and because a
well-behaved server library can't be made to break the protocol.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

REASONS = {200: "OK", 201: "Created", 302: "Found", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}


@dataclass(slots=True)
class Request:
    """One request as it came; ``headers`` have lower-case names."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes = b""

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def bearer(self) -> str:
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token if scheme == "Bearer" else ""


@dataclass(slots=True)
class Response:
    """A reply. ``breakage``: "" · "cut" (half of the body) · "reset" (no byte, RST) · "close" (no byte, FIN) ·
    "raw" (the body is all that is sent, status line and headers included, ``drip_s`` seconds between two bytes)."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    breakage: str = ""
    delay_s: float = 0.0
    drip_s: float = 0.0

    @classmethod
    def of(cls, status: int, value: Any, **headers: str) -> Response:
        return cls(status, json.dumps(value).encode(), {"Content-Type": "application/json", **headers})


Handler = Callable[[Request], Response]


class Server:
    """Serves one role on 127.0.0.1. ``requests`` holds all that came, in order of arrival."""

    def __init__(self, role: str, handler: Handler) -> None:
        self.role = role
        self.requests: list[Request] = []
        self.keep_requests = True
        self.connections = 0
        self.close_after_reply = False
        self._handler = handler
        self._lock = threading.Lock()
        self._open_connections: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self.port = 0
        self.open()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def open(self) -> None:
        """Listen (again, on the same port)."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(128)
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True, name=f"loopback {self.role}").start()

    def close(self) -> None:
        """Refuse connections from now on and drop those that are open."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.drop_connections()

    def drop_connections(self) -> None:
        """What an idle limit of a gateway does: keep-alive connections die between two requests."""
        with self._lock:
            dropped, self._open_connections = self._open_connections, set()
        for connection in dropped:
            _quietly(connection.shutdown, socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open_connections.add(connection)
                self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as stream:
                while (request := _read_request(stream)) is not None:
                    if self.keep_requests:
                        self.requests.append(request)
                    if not self._answer(connection, request):
                        return
        except OSError:
            return
        finally:
            with self._lock:
                self._open_connections.discard(connection)

    def _answer(self, connection: socket.socket, request: Request) -> bool:
        began = time.monotonic()
        response = self._handler(request)
        if response.delay_s:  # a peer's latency is all of its time, the making of the reply included
            time.sleep(max(0.0, began + response.delay_s - time.monotonic()))
        if response.breakage in ("reset", "close"):
            if response.breakage == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if response.breakage == "raw":
            _drip(connection, response)
            return False
        body = response.body[: len(response.body) // 2] if response.breakage == "cut" else response.body
        connection.sendall(_head(response, self.close_after_reply) + body)
        return not (response.breakage or self.close_after_reply)


def _drip(connection: socket.socket, response: Response) -> None:
    head, _, body = response.body.partition(b"\r\n\r\n")
    connection.sendall(head + b"\r\n\r\n")
    for index in range(len(body) if response.drip_s else 0):
        connection.sendall(body[index : index + 1])
        time.sleep(response.drip_s)
    if not response.drip_s:
        connection.sendall(body)


def _head(response: Response, closing: bool) -> bytes:
    lines = [f"HTTP/1.1 {response.status} {REASONS.get(response.status, 'Status')}"]
    headers = {"Content-Length": str(len(response.body)), **response.headers}
    if closing:
        headers["Connection"] = "close"
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _read_request(stream: Any) -> Request | None:
    first = stream.readline()
    if not first:
        return None
    method, target, _ = first.decode("latin-1").split(" ", 2)
    headers = {}
    while (line := stream.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    body = stream.read(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    return Request(method, parts.path, dict(parse_qsl(parts.query, keep_blank_values=True)), headers, body)


def _quietly(call: Callable[..., object], *args: object) -> None:
    try:
        call(*args)
    except OSError:
        return
