"""Trace files on disk: which there are, and the JSON documents in them with the place each stands at."""

from __future__ import annotations

import glob
import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Final

import msgspec

from amp_evaluation.errors import TraceSourceError

_PROTOBUF: Final = frozenset({".pb", ".binpb"})
_JSON: Final = frozenset({".json", ".jsonl", ".ndjson"})
_GZIP: Final = ".gz"
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON document of a file: all of it, or one line."""

    path: Path
    data: bytes
    line: int
    """Number of its first line, from 1."""
    offset: int | None
    """Where it starts in the file, in bytes; None where the file is compressed and can't be entered there."""

    def is_broken(self) -> bool:
        """Whether it is no JSON at all (which one nested too deeply for Python still is)."""
        return _syntax_error(self.data) is not None

    def fault(self, error: Exception) -> TraceSourceError:
        """The error of a document that can't be read, with file, line and, where the JSON itself is wrong, column."""
        wrong = _syntax_error(self.data)
        if wrong is None:
            return TraceSourceError(f"{self.path}, line {self.line}: {error}")
        line = self.line + wrong.lineno - 1
        return TraceSourceError(f"{self.path}, line {line}, column {wrong.colno}: not JSON: {wrong.msg}")


# --- which files ------------------------------------------------------------------------------------------------------


def find_files(place: str) -> list[Path]:
    """The file; or all trace files below a folder; or what a glob pattern matches, sorted by path.

    TraceSourceError when there is none.
    """
    path = Path(place)
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.is_file() and _is_trace_file(p.relative_to(path)))
        if found:
            return found
        raise TraceSourceError(f"{place}: no trace file below it (.json .jsonl .ndjson .pb .binpb, or these with .gz)")
    if path.exists():
        return [path]
    if glob.has_magic(place):
        matches = glob.glob(place, recursive=True)  # noqa: PTH207  # Path.glob takes no absolute pattern
        found = sorted(p for p in map(Path, matches) if p.is_file())
        if found:
            return found
        raise TraceSourceError(f"{place}: no file matches this pattern")
    raise TraceSourceError(f"{place}: no such file or folder")


def _is_trace_file(path: Path) -> bool:
    return not any(part.startswith(".") for part in path.parts) and _format(path) in _PROTOBUF | _JSON


def _format(path: Path) -> str:
    """The suffix that tells the format; a `.gz` behind it is left off."""
    return Path(path.name.lower().removesuffix(_GZIP)).suffix


def is_protobuf(path: Path) -> bool:
    """Whether the file's name says protobuf; content can't say it: 0x0a, its first byte, is white space in JSON."""
    return _format(path) in _PROTOBUF


# --- what is in them --------------------------------------------------------------------------------------------------


def read_bytes(path: Path) -> bytes:
    """The whole file, unpacked. TraceSourceError when it can't be read."""
    with _opened(path) as (file, _):
        return file.read()


def read_slice(path: Path, offset: int, length: int) -> bytes:
    """Part of a plain file. TraceSourceError when it can't be read."""
    with _opened(path) as (file, _):
        file.seek(offset)
        return file.read(length)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], bool]]:
    """The file, unpacked when it is gzip, and whether offsets in it can be gone back to."""
    try:
        with path.open("rb") as raw:
            magic = raw.read(len(_ZSTD_MAGIC))
            raw.seek(0)
            if magic == _ZSTD_MAGIC:
                raise TraceSourceError(f"{path}: compressed with zstd, which can't be read here: unpack it first")
            if magic.startswith(_GZIP_MAGIC):
                with gzip.open(raw) as unpacked:
                    yield unpacked, False  # type: ignore[misc]  # GzipFile is no IO[bytes] by name
            else:
                yield raw, True
    except (OSError, EOFError, zlib.error) as error:
        raise TraceSourceError(f"{path}: can't be read: {error}") from error


def read_documents(path: Path) -> Iterator[Document]:
    """The JSON documents of a file: its lines where the first is one by itself, else the file as one."""
    with _opened(path) as (file, seekable):
        number, offset, first = _first_text(file)
        if _is_json(first):
            lines: Iterator[bytes] = chain([first], file)
        else:
            rest = file.read()
            if not first.strip() or not _broken_first_line(first, rest):
                if first.strip():
                    yield Document(path, first + rest, number, offset if seekable else None)
                return
            lines = chain([first], rest.splitlines(keepends=True))
        for line in lines:
            if line.strip():
                # without its end, so that the place of an error is never on the next line
                yield Document(path, line.rstrip(b"\r\n"), number, offset if seekable else None)
            number, offset = number + 1, offset + len(line)


def _first_text(file: IO[bytes]) -> tuple[int, int, bytes]:
    """Number, offset and text of the first line that isn't blank; the text is empty when there is none."""
    offset = 0
    for number, line in enumerate(file, 1):
        text = line.removeprefix(_BOM) if number == 1 else line
        offset += len(line) - len(text)
        if text.strip():
            return number, offset, text
        offset += len(text)
    return 1, offset, b""


def _broken_first_line(first: bytes, rest: bytes) -> bool:
    """Whether this is a file of lines of which the first is broken, rather than one broken document."""
    second = next((line for line in rest.splitlines() if line.strip()), b"")
    return second[:1] in (b"{", b"[") and _is_json(second) and not _is_json(first + rest)


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.MsgspecError, RecursionError):
        return _syntax_error(data) is None  # NaN, lone surrogates, bad UTF-8, deep nesting
    return True


def _syntax_error(data: bytes) -> json.JSONDecodeError | None:
    try:
        json.loads(data.decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        return error
    except RecursionError:
        pass
    return None
