"""Traces from files: exports of the traces API, one trace a line, and OTLP, in one file, a folder or a glob pattern.

Two passes: the first reads everything once and keeps of each trace its start and its place, the second gives the traces
in order of start. So a file of lines costs the memory of one trace; OTLP, where a trace may lie anywhere, that of the
files' bytes; an export reply, which is one document, that of the file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from pathlib import Path

from amp_evaluation._reports import RunError
from amp_evaluation._time import format_rfc3339, from_unix_nanos
from amp_evaluation.errors import ConfigError, TraceSourceError
from amp_evaluation.trace._fetch_report import FetchReport
from amp_evaluation.trace._files import Document, find_files, is_protobuf, read_bytes, read_documents, read_slice
from amp_evaluation.trace._windows import moment
from amp_evaluation.trace._wire import OTELTrace, decode_traces
from amp_evaluation.trace.otlp import decode_request, is_otlp
from amp_evaluation.trace.otlp_group import TraceGrouper
from amp_evaluation.trace.otlp_proto import decode_messages

_LOG = logging.getLogger("amp_evaluation.trace.loader")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class _Entry:
    """A trace found in the first pass. `start` is None where no time of it can be read."""

    start: datetime | None
    trace_id: str
    load: Callable[[], OTELTrace]

    def inside(self, start: datetime | None, end: datetime | None) -> bool:
        """Whether it starts in [start, end). Without a time it can't be said to be outside."""
        if self.start is None:
            return True
        return (start is None or self.start >= start) and (end is None or self.start < end)

    def order(self) -> tuple[bool, datetime, str]:
        return self.start is None, self.start or _EPOCH, self.trace_id


@dataclass(slots=True)
class _Index:
    """Everything found in the first pass. The first copy of a trace id wins."""

    entries: dict[str, _Entry] = field(default_factory=dict)
    nameless: list[_Entry] = field(default_factory=list)
    spans: TraceGrouper = field(default_factory=TraceGrouper)
    faults: list[str] = field(default_factory=list)

    def add(self, trace: OTELTrace, load: Callable[[], OTELTrace]) -> None:
        entry = _Entry(trace.start, trace.traceId or "", load)
        if entry.trace_id:
            self.entries.setdefault(entry.trace_id, entry)
        else:
            self.nameless.append(entry)

    def finish(self) -> list[_Entry]:
        self.spans.finish()
        for nanos, trace_id in self.spans.starts():
            start = from_unix_nanos(nanos)
            self.entries.setdefault(trace_id, _Entry(start, trace_id, partial(self.spans.build, trace_id)))
        return sorted([*self.entries.values(), *self.nameless], key=_Entry.order)


class TraceLoader:
    """Reads traces from a file, a folder (with its sub-folders) or a glob pattern.

    Taken as they are: export replies of the traces API, lists of its traces, one trace a line (JSONL), OTLP JSON (a
    request a file or a line; spans and log records) and OTLP protobuf (`.pb`, `.binpb`; needs the extra `otlp`), each
    also with gzip. A missing or broken file is a TraceSourceError that names the file and the place in it; a trace that
    is JSON but can't be parsed is still given, and is the parser's to refuse.

    `report` counts the running or last read, as a fetcher's does.
    """

    def __init__(self, file_path: str | PathLike[str]) -> None:
        if not str(file_path).strip():
            raise ValueError("file_path is empty: give the path of a trace file, a folder or a glob pattern")
        self.file_path = str(file_path)
        self.report = FetchReport()
        self._seen: set[str] = set()

    def iter_traces(
        self, start_time: str | datetime | None = None, end_time: str | datetime | None = None
    ) -> Iterator[OTELTrace]:
        """The traces that start in [start_time, end_time), by start time, each id once; lazily.

        Times are datetimes or ISO 8601 texts; without a zone they are UTC. Traces without any readable time come last.
        """
        start, end = _instant("start_time", start_time), _instant("end_time", end_time)
        report = self.report = FetchReport()
        index = _Index()
        for path in find_files(self.file_path):
            report.requests += 1
            _read(path, index)
        entries = index.finish()
        chosen = [entry for entry in entries if entry.inside(start, end)]
        report.found, report.outside = len(chosen), len(entries) - len(chosen)
        if entries and not chosen:
            report.warnings.append(self._all_outside(entries))
        index.entries.clear()
        entries.clear()
        for entry in _consumed(chosen):
            trace = entry.load()
            report.cut += trace.cut
            yield trace
        self._tell(index)

    def fetch_traces(
        self, start_time: str | datetime | None = None, end_time: str | datetime | None = None
    ) -> Iterator[OTELTrace]:
        """`iter_traces` by the name that a trace fetcher has."""
        return self.iter_traces(start_time, end_time)

    def load_traces(
        self, start_time: str | datetime | None = None, end_time: str | datetime | None = None
    ) -> list[OTELTrace]:
        """Like `iter_traces`, as a list, without what earlier calls gave: each call goes on where the last one ended.

        The file is read anew, so traces written to it since are found. `reset_checkpoint` starts over.
        """
        traces = [t for t in self.iter_traces(start_time, end_time) if not t.traceId or t.traceId not in self._seen]
        self._seen.update(t.traceId for t in traces if t.traceId)
        return traces

    def reset_checkpoint(self) -> None:
        """Makes the next `load_traces` give everything again."""
        self._seen.clear()

    def _all_outside(self, entries: list[_Entry]) -> str:
        """Where the window would have to be: a wrong window is likelier than a file of nothing."""
        starts = [format_rfc3339(start) for entry in (entries[0], entries[-1]) if (start := entry.start)]
        return (
            f"{self.file_path} holds {len(entries)} traces, all outside the window: "
            f"the first starts at {starts[0]}, the last at {starts[-1]}"
        )

    def _tell(self, index: _Index) -> None:
        spans = index.spans
        if not self.report.found + self.report.outside:
            self.report.warnings.append(f"{self.file_path} holds no trace")
        if spans.lost_logs:
            self.report.warnings.append(f"{spans.lost_logs} log records name no span in {self.file_path}: left out")
        if spans.nameless_spans:
            index.faults.append(f"{spans.nameless_spans} spans in {self.file_path} have no trace id")
        self.report.errors += [RunError(text, repeat_may_help=False) for text in index.faults]
        for text in self.report.warnings:
            _LOG.warning("%s", text)


def _consumed(entries: list[_Entry]) -> Iterator[_Entry]:
    """The entries in their order; each is let go of once it is passed on, and its trace with it."""
    entries.reverse()
    while entries:
        yield entries.pop()


# --- the first pass ---------------------------------------------------------------------------------------------------


def _read(path: Path, index: _Index) -> None:
    _LOG.debug("reading %s", path)
    if is_protobuf(path):
        _read_protobuf(path, index)
        return
    for document in read_documents(path):
        if is_otlp(document.data):
            _read_request(document, index)
        else:
            _read_export(document, index)


def _read_protobuf(path: Path, index: _Index) -> None:
    try:
        for batch in decode_messages(read_bytes(path)):
            index.spans.add(batch)
    except ConfigError:
        raise  # the extra isn't installed: the file may be fine
    except ValueError as error:
        raise TraceSourceError(f"{path}, {error}") from error


def _read_request(document: Document, index: _Index) -> None:
    try:
        batch = decode_request(document.data)
    except (ValueError, RecursionError) as error:
        raise document.fault(error) from error
    index.spans.add(batch)
    index.faults += [f"{document.path}, line {document.line}: {fault}" for fault in batch.faults]


def _read_export(document: Document, index: _Index) -> None:
    try:
        traces = decode_traces(document.data)
    except (ValueError, RecursionError) as error:
        raise document.fault(error) from error
    if any(trace.defect for trace in traces) and document.is_broken():
        raise document.fault(ValueError("not JSON"))
    for trace in traces:
        # A line that is one trace is read again when its turn comes, so that it need not be held until then.
        again = document.offset is not None and len(traces) == 1
        index.add(trace, _Line(document.path, document.offset or 0, len(document.data)) if again else _held(trace))


def _held(trace: OTELTrace) -> Callable[[], OTELTrace]:
    return lambda: trace


@dataclass(frozen=True, slots=True)
class _Line:
    """A trace that is read from its line when it is asked for."""

    path: Path
    offset: int
    length: int

    def __call__(self) -> OTELTrace:
        try:
            return decode_traces(read_slice(self.path, self.offset, self.length))[0]
        except (ValueError, IndexError) as error:
            raise TraceSourceError(f"{self.path}, byte {self.offset}: changed while it was read") from error


def _instant(name: str, value: str | datetime | None) -> datetime | None:
    return None if value is None or value == "" else moment(name, value)
