"""What the job and its child process say to each other: length-prefixed messages over one socket pair.

The two directions are not alike. The job is trusted, so what it sends is pickled, which is fast and takes every value a
trace can hold. The child runs user code, so what comes back is JSON that is decoded into the types below and nothing
else: bytes from the child are never unpickled.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

MAX_REPLY_BYTES = 16 << 20  # a prompt is bounded at 100,000 characters: what is larger is no honest reply
LENGTH = struct.Struct(">Q")

Level = Literal["trace", "agent", "llm"]
Kind = Literal["code", "template"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadRequest:
    """Make an evaluator of this source; answered by `Loaded` or `Refused`."""

    index: int
    kind: Kind
    name: str
    source: str
    config: dict[str, Any]
    level: Level | None
    schema_keys: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class AskRequest:
    """Score one item, or build the prompt for it; answered by `Scored`, `Prompted` or `Failed`."""

    index: int
    trace: bytes | None
    """The packed trace; None: the one sent last."""
    item: str | int | None
    """An agent span's id, the position of an LLM call, or None for the trace."""
    task: Any = None
    default_model: str = ""
    """What a judge asks that names no model of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadRequest:
    """Let a judge with a reader of its own read a model's reply; answered by `Scored`, `Unreadable` or `Failed`."""

    index: int
    content: str
    default_model: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelReplied:
    """What a model said to `Asking`."""

    content: str
    cut_off: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFailed:
    """Why `Asking` got no reply. `may_ask_again`: the model answered, but with nothing that can be used."""

    reason: str
    may_ask_again: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SpansSent:
    """The packed spans of the trace at hand; None and a reason where they can't be had."""

    packed: bytes | None
    reason: str = ""


Request = LoadRequest | AskRequest | ReadRequest | ModelReplied | ModelFailed | SpansSent


class JudgeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the job is to call the model for a judge whose prompt is built in the child."""

    model: str
    """Empty where neither the config nor the class names one."""
    temperature: float
    max_tokens: int
    max_retries: int
    reads_replies: bool
    """The judge has a reader of replies of its own."""


class AggregationSpec(msgspec.Struct, frozen=True):
    """An aggregation by its name, with its parameters."""

    name: str
    params: dict[str, float] = {}


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """The child has locked itself in."""

    landlock_abi: int
    """0: the kernel has no Landlock."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True, tag="loaded"):
    """What the job needs to know of an evaluator that lives in the child."""

    level: Level
    modes: list[Literal["monitor", "experiment"]]
    description: str = ""
    tags: list[str] = []
    version: str = "1.0"
    config_schema: list[dict[str, Any]] = []
    class_name: str = ""
    evaluates_failed_runs: bool = False
    aggregations: list[AggregationSpec] | None = None
    judge: JudgeSettings | None = None
    warnings: list[str] = []
    defect: str | None = None
    """Why none of its items can be scored, where that is known from the start."""


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """The source or its config is wrong."""

    reason: str


class Scored(msgspec.Struct, frozen=True, kw_only=True, tag="scored"):
    """A score, or a skip with its reason."""

    score: float | None = None
    passed: bool | None = None
    explanation: str | None = None
    skip_reason: str | None = None


class Prompted(msgspec.Struct, frozen=True, kw_only=True, tag="prompted"):
    """The prompt for one item; None when the builder gave none."""

    text: str | None


class Asking(msgspec.Struct, frozen=True, kw_only=True, tag="asking"):
    """User code wants a model's reply before it goes on; answered by `ModelReplied` or `ModelFailed`."""

    model: str
    """Empty: the default one."""
    prompt: str
    temperature: float
    max_tokens: int
    again: bool


class SpansWanted(msgspec.Struct, frozen=True, kw_only=True, tag="spans"):
    """User code reads the spans of a trace that came without them; answered by `SpansSent`."""


class Unreadable(msgspec.Struct, frozen=True, kw_only=True, tag="unreadable"):
    """The judge's own reader found no score in a model's reply."""

    reason: str


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """User code raised, or gave what is no result."""

    reason: str


class Broken(msgspec.Struct, frozen=True, kw_only=True, tag="broken"):
    """The child can't take a request in any more, whoever it is for: user code has changed what all of it needs."""

    reason: str


Reply = Ready | Loaded | Refused | Scored | Prompted | Asking | SpansWanted | Unreadable | Failed | Broken

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


def decode_reply(body: bytes) -> Reply:
    """Raises ValueError for anything but one of the replies."""
    return _decoder.decode(body)


def encode_reply(reply: Reply) -> bytes:
    """Text that UTF-8 can't hold (lone surrogates) is replaced by question marks."""
    try:
        return _encoder.encode(reply)
    except UnicodeEncodeError:
        return _encoder.encode(msgspec.convert(_utf8_only(msgspec.to_builtins(reply)), type(reply)))


def _utf8_only(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_utf8_only(entry) for entry in value]
    if isinstance(value, dict):
        return {_utf8_only(key): _utf8_only(entry) for key, entry in value.items()}
    return value


def receive(channel: socket.socket) -> bytes | None:
    """One whole message, waiting for it; None when the other side has gone."""
    head = _exactly(channel, LENGTH.size)
    return None if head is None else _exactly(channel, LENGTH.unpack(head)[0])


def send(channel: socket.socket, body: bytes) -> None:
    channel.sendall(LENGTH.pack(len(body)) + body)


def _exactly(channel: socket.socket, size: int) -> bytes | None:
    """`size` bytes; the whole of a usual message comes in one read."""
    first = channel.recv(size) if size else b""
    if len(first) == size:
        return first
    if not first:
        return None
    buffer = bytearray(first)
    while len(buffer) < size:
        piece = channel.recv(min(size - len(buffer), 1 << 20))
        if not piece:
            return None
        buffer += piece
    return bytes(buffer)
