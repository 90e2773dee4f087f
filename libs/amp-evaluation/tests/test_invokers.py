"""Calling an agent: over HTTP against a real server, and in the same process."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from amp_evaluation.http import RetryPolicy
from amp_evaluation.invokers import (
    AgentInvoker,
    HttpAgentInvoker,
    InvokeResult,
    TaskInput,
    baggage,
    current_baggage,
    format_baggage,
)


class AgentServer(ThreadingHTTPServer):
    """Answers with the replies it is given, the last one again and again, and records what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies: list[tuple[int, bytes]] = [(200, b'{"response": "hello"}')]
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: AgentServer
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server = self.server
        server.requests.append((self.command, self.path, dict(self.headers), body))
        status, reply = server.replies.pop(0) if len(server.replies) > 1 else server.replies[0]
        if status == 0:  # hang up
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    do_GET = do_POST = _answer

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[AgentServer]:
    with AgentServer() as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield running
        running.shutdown()


def make(server: AgentServer, **options: Any) -> HttpAgentInvoker:
    return HttpAgentInvoker(server.url, retry=RetryPolicy(sleep=lambda _: None), **options)


def test_a_text_goes_as_a_message_and_an_object_as_it_is(server: AgentServer) -> None:
    invoker = make(server, headers={"X-Team": "a"})
    assert invoker.invoke("Grüße") == InvokeResult("Grüße", "hello", metadata={"status_code": 200})
    invoker.invoke({"q": [1]})
    (method, path, headers, first), (*_, second) = server.requests
    assert (method, path, headers["X-Team"], headers["Content-Type"]) == ("POST", "/chat", "a", "application/json")
    assert (json.loads(first), json.loads(second)) == ({"message": "Grüße"}, {"q": [1]})


def test_a_payload_builder_makes_the_body_and_get_sends_it_as_a_query(server: AgentServer) -> None:
    make(server, endpoint="ask", payload_builder=lambda text: {"input": text}).invoke("a")
    make(server, endpoint="", method="get").invoke({"q": "a b"})
    assert [(request[1], request[3]) for request in server.requests] == [("/ask", b'{"input": "a"}'), ("/?q=a+b", b"")]


@pytest.mark.parametrize(
    ("reply", "output"),
    [
        (b"plain", "plain"),
        (b"\xff", "\ufffd"),
        (b'"text"', "text"),
        (b'{"message": {"content": "deep"}}', "deep"),
        (b'{"output": null, "answer": "second"}', "second"),
        (b'{"rows": [1]}', {"rows": [1]}),
        (b'{"output": [1]}', {"output": [1]}),
        (b'{"output": {"output": {"output": {"output": "x"}}}}', {"output": {"output": {"output": {"output": "x"}}}}),
        (b"[1]", [1]),
    ],
    ids=["plain text", "bad UTF-8", "JSON text", "nested", "null key", "no known key", "a list", "too deep", "list"],
)
def test_the_output_is_found_in_the_reply(server: AgentServer, reply: bytes, output: Any) -> None:
    server.replies = [(200, reply)]
    result = make(server).invoke("x")
    assert (result.output, result.success, result.has_trajectory) == (output, True, False)


def test_a_trajectory_in_the_reply_is_kept(server: AgentServer) -> None:
    server.replies = [(200, b'{"output": "x", "trajectory": [{"tool": "a"}]}'), (200, b'{"trajectory": "none"}')]
    first, second = make(server).invoke_batch(["x", "y"])
    assert (first.trajectory, first.has_trajectory) == ([{"tool": "a"}], True)
    assert second.trajectory is None


def test_an_agent_that_did_not_take_the_call_on_is_asked_again(server: AgentServer) -> None:
    server.replies = [(503, b""), (429, b""), (200, b"ok")]
    assert make(server).invoke("x").output == "ok"


@pytest.mark.parametrize(
    ("status", "error", "metadata"),
    [
        (500, "agent: HTTP 500", {"status_code": 500}),
        (404, "agent: HTTP 404 (check the endpoint and the ids)", {"status_code": 404}),
        (0, "agent: no connection", {}),
    ],
    ids=["it may have acted", "refused", "hung up"],
)
def test_any_other_failure_is_an_error_after_one_call(
    server: AgentServer, status: int, error: str, metadata: dict[str, Any]
) -> None:
    server.replies = [(status, b"secret")]
    result = make(server).invoke("x")
    assert result == InvokeResult("x", error=error, metadata=metadata)
    assert not result.success
    assert len(server.requests) == 1


def test_baggage_goes_as_a_header_beside_the_invokers_own(server: AgentServer) -> None:
    with baggage({"task.id": "t 1,é", "trial.id": "1"}):
        assert current_baggage() == {"task.id": "t 1,é", "trial.id": "1"}
        make(server, headers={"baggage": "team=a"}).invoke("x")
        make(server).invoke("x")
    make(server).invoke("x")
    sent = [request[2].get("baggage") for request in server.requests]
    assert sent == ["team=a,task.id=t%201%2C%C3%A9,trial.id=1", "task.id=t%201%2C%C3%A9,trial.id=1", None]
    assert format_baggage({}) == ""


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "localhost:8000"},
        {"base_url": "http://h", "method": "PUT"},
        {"base_url": "http://h", "timeout": 0},
        {"base_url": "http://h", "timeout": float("nan")},
        {"base_url": "http://h", "timeout": "5"},
    ],
    ids=str,
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{list(options)[-1]}="):
        HttpAgentInvoker(**options)


class Doubler(AgentInvoker):
    def invoke(self, task_input: TaskInput) -> InvokeResult:
        if task_input == "bad":
            raise KeyError("bad")
        return InvokeResult(task_input, output=f"{task_input}{task_input}")


def test_a_batch_goes_on_after_an_exception() -> None:
    results = Doubler().invoke_batch(["a", "bad", "b"])
    assert [(result.output, result.error) for result in results] == [
        ("aa", None),
        (None, "KeyError: 'bad'"),
        ("bb", None),
    ]
