"""The job's log: one JSON object a line, whatever is logged, with known secrets masked."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import BinaryIO

__all__ = ["LOG_LEVELS", "JsonLines", "masker", "secrets_of"]

LOG_LEVELS = {"DEBUG": 10, "INFO": 20, "WARN": 30, "WARNING": 30, "ERROR": 40}
LEVEL_NAMES = {10: "DEBUG", 20: "INFO", 30: "WARN", 40: "ERROR", 50: "ERROR"}

MIN_SECRET_CHARS = 4
"""Shorter ones are no secrets but placeholders; masking each "x" would only spoil the log."""

SECRET_NAMES = re.compile("KEY|SECRET|TOKEN$|PASSWORD")


def secrets_of(env: Mapping[str, str]) -> list[str]:
    """Values of the variables whose names say that they are secret."""
    return [value for name, value in env.items() if SECRET_NAMES.search(name)]


def masker(secrets: Iterable[str]) -> Callable[[str], str]:
    """A function that takes known secrets out of a text, whoever wrote it."""
    known = [secret for secret in secrets if len(secret) >= MIN_SECRET_CHARS]

    def masked(text: str) -> str:
        for secret in known:
            text = text.replace(secret, "***")
        return text

    return masked


class JsonLines(logging.Handler):
    """One JSON object a line. Known secrets are masked, whoever logs them: the platform's customers read this log.

    Writes to an unbuffered stream: a signal handler may log in the middle of a line that is being logged.
    """

    def __init__(self, stream: BinaryIO, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._stream = stream
        self._masked = masker(secrets)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._stream.write(self._line(record))
        except Exception:  # a log that can't be written must not end the run
            self.handleError(record)

    def _line(self, record: logging.LogRecord) -> bytes:
        moment = datetime.fromtimestamp(record.created, UTC)
        entry = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": LEVEL_NAMES.get(record.levelno, record.levelname),
            "msg": self._masked(record.getMessage()),
            "logger": record.name,
        }
        if record.exc_info:
            entry["stack"] = self._masked(logging.Formatter().formatException(record.exc_info))
        # ASCII only: any text can be written so, lone surrogates too.
        return json.dumps(entry).encode("ascii") + b"\n"
