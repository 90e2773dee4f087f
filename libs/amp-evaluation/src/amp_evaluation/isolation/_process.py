"""One child process: started fresh, spoken to with a deadline, killed when it doesn't answer.

A call polls three things in one place: room to send, the reply, and what user code printed. So no thread is needed, a
signal handler's exception leaves at once, and printed lines appear in the log between the items they belong to.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from amp_evaluation.isolation.confine import child_environment
from amp_evaluation.isolation.protocol import LENGTH, MAX_REPLY_BYTES, Reply, decode_reply

log = logging.getLogger(__name__)
printed = logging.getLogger("amp_evaluation.custom")

MAX_PRINTED_LINES = 10_000  # of one child: a loop that prints must not fill the job's log
MAX_PRINTED_CHARACTERS = 2_000  # of one line
REAP_SECONDS = 2.0  # a killed process is gone within milliseconds; one stuck in the kernel is left to init
MEMORY_CHECK_SECONDS = 0.1
_READ_BYTES = 1 << 18
_PAGE_BYTES = resource.getpagesize()

_BOOT = "import sys; sys.path.extend(sys.argv[4:]); from amp_evaluation.isolation.child import main; main(sys.argv)"


class ChildLost(Exception):
    """The child hung, died or talked nonsense; the text says which. It has been killed."""


class ChildHung(ChildLost):
    """It went beyond the bounds of one item, of time or of questions: whose item it was is certain."""


class ChildProcess:
    """A fresh interpreter: nothing of the parent's memory, environment or descriptors but its end of a socket."""

    def __init__(self, memory_mb: int) -> None:
        channel, theirs = socket.socketpair()
        output, their_output = os.pipe()
        try:
            self._process = _start(theirs.fileno(), their_output, memory_mb)
        except BaseException:
            channel.close()
            os.close(output)
            raise
        finally:
            theirs.close()
            os.close(their_output)
        channel.setblocking(False)
        os.set_blocking(output, False)
        self._channel = channel
        self._output = _PrintedLines(output)
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)
        self._poll.register(output, select.POLLIN)
        self._received = bytearray()
        self._resident_limit = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def resident_bytes(self) -> int:
        """Memory that is in use now, what is shared with other processes included; 0 when it has ended."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_bytes().split()[1]) * _PAGE_BYTES
        except OSError:
            return 0

    def call(self, body: bytes, *, limit_s: float, resident_limit: int) -> Reply:
        """Send one request and wait for its reply. Raises ChildLost, and kills the child for whatever is raised.

        `resident_limit` (bytes) is for memory that no limit of the kernel's counts, such as shared maps; it is looked
        at only while an answer takes long.
        """
        self._resident_limit = resident_limit
        try:
            return decode_reply(self._exchange(body, limit_s))
        except ValueError as error:
            self.kill()
            raise ChildLost("it sent what is no reply") from error
        except BaseException:
            self.kill()
            raise

    def wait_for_greeting(self, *, limit_s: float, resident_limit: int) -> Reply:
        return self.call(b"", limit_s=limit_s, resident_limit=resident_limit)

    def kill(self) -> None:
        """End it and whatever it started, at once. May be called again."""
        if self._process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)  # its own session: user code may have forked
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(REAP_SECONDS)
        self._output.close()
        self._channel.close()

    def _exchange(self, body: bytes, limit_s: float) -> bytes:
        deadline = time.monotonic() + limit_s
        if body and self._has_spoken():  # its word would be taken for the answer to this request
            raise ChildLost("it spoke without being asked")
        pending = self._send_some(memoryview(LENGTH.pack(len(body)) + body if body else b""))
        while True:
            self._poll.modify(self._channel, select.POLLIN | (select.POLLOUT if pending else 0))
            for descriptor, event in self._events(deadline, limit_s):
                if descriptor == self._output.descriptor:
                    self._read_output()
                    continue
                if event & select.POLLOUT:
                    pending = self._send_some(pending)
                if event & ~select.POLLOUT and (reply := self._receive_some()) is not None:
                    self._read_output()
                    return reply

    def _events(self, deadline: float, limit_s: float) -> list[tuple[int, int]]:
        """What happened on the descriptors, which may be nothing. Raises ChildLost beyond the time or the memory."""
        remaining = deadline - time.monotonic()
        if remaining <= 0:  # also for a child that keeps printing
            raise ChildHung(f"it took longer than {limit_s:g} s")
        events = self._poll.poll(min(remaining, MEMORY_CHECK_SECONDS) * 1000)
        if not events and self.resident_bytes > self._resident_limit:
            raise ChildLost("it took more memory than AMP_CODE_EVALUATOR_MEMORY_MB allows")
        return events

    def _has_spoken(self) -> bool:
        return bool(self._received) or any(descriptor == self._channel.fileno() for descriptor, _ in self._poll.poll(0))

    def _read_output(self) -> None:
        if not self._output.closed:
            self._output.read()
            if self._output.closed:  # user code closed it
                self._poll.unregister(self._output.descriptor)

    def _send_some(self, pending: memoryview) -> memoryview:
        try:
            return pending[self._channel.send(pending) :] if pending else pending
        except BlockingIOError:
            return pending
        except OSError as error:
            raise self._gone() from error

    def _receive_some(self) -> bytes | None:
        """The reply, once it is whole."""
        try:
            piece = self._channel.recv(_READ_BYTES)
        except BlockingIOError:
            return None
        except OSError as error:
            raise self._gone() from error
        if not piece:
            raise self._gone()
        self._received += piece
        if len(self._received) < LENGTH.size:
            return None
        size = LENGTH.unpack_from(self._received)[0]
        if size > MAX_REPLY_BYTES:
            raise ChildLost(f"its reply is larger than {MAX_REPLY_BYTES >> 20} MB")
        if len(self._received) < LENGTH.size + size:
            return None
        reply = bytes(self._received[LENGTH.size : LENGTH.size + size])
        del self._received[: LENGTH.size + size]
        return reply

    def _gone(self) -> ChildLost:
        """The channel is closed: say how the process ended."""
        self._read_output()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(REAP_SECONDS)
        code = self._process.returncode
        if code is None:
            return ChildLost("it closed its channel")
        if code < 0:
            return ChildLost(f"it was killed by {signal.Signals(-code).name}")
        return ChildLost(f"it ended with exit code {code}")


class _PrintedLines:
    """What user code wrote to its standard output and error, line by line into the log, at level DEBUG."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.closed = False
        self._rest = b""
        self._lines = 0

    def read(self) -> None:
        while not self.closed:
            try:
                piece = os.read(self.descriptor, _READ_BYTES)
            except BlockingIOError:
                return
            if not piece:
                self.close()
                return
            *lines, self._rest = (self._rest + piece).split(b"\n")
            self._log(lines)
            if len(self._rest) > MAX_PRINTED_CHARACTERS:
                self._log([self._rest])
                self._rest = b""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            os.close(self.descriptor)
            if self._rest:
                self._log([self._rest])

    def _log(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self._lines += 1
            if self._lines == MAX_PRINTED_LINES + 1:
                printed.debug("more than %d lines were printed: the rest is left out", MAX_PRINTED_LINES)
            if self._lines > MAX_PRINTED_LINES:
                return
            text = line.decode("utf-8", "replace").rstrip("\r")
            printed.debug("%s", text if len(text) <= MAX_PRINTED_CHARACTERS else text[:MAX_PRINTED_CHARACTERS] + "…")


def _start(channel: int, output: int, memory_mb: int) -> subprocess.Popen[bytes]:
    arguments = [str(channel), str(os.getpid()), str(memory_mb), *_package_paths()]
    return subprocess.Popen(
        [sys.executable, "-I", "-B", "-X", "utf8", "-c", _BOOT, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=(channel,),
        env=child_environment(os.environ),
        cwd="/",
        start_new_session=True,
    )


def _package_paths() -> list[str]:
    """Places of installed packages that an isolated interpreter wouldn't look at (PYTHONPATH, the user's own site).

    A directory counts when it holds installed distributions, or this package: the directory of the job's script, where
    anything may lie, does not.
    """
    own = importlib.util.find_spec("amp_evaluation")
    roots = [str(Path(own.origin).parent.parent)] if own is not None and own.origin else []
    installed = [entry for entry in sys.path if entry and any(Path(entry).glob("*.dist-info"))]
    return list(dict.fromkeys(installed + roots))
