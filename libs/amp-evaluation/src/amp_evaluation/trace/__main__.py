"""Shows what evaluators see of traces in a file.

usage: python -m amp_evaluation.trace FILE [TRACE_ID] [--json | --atif] [--mapping FILE]

FILE is an export, OTLP, a folder or a glob pattern; TRACE_ID may be the start of one. Prints text for people; with
--json the same as data, with --atif trajectories, one JSON object a line.

Exit 0: all shown. 1: a trace can't be parsed (which is said where it would stand). 2: nothing to show: no such file or
trace, a broken file, a wrong mapping.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from amp_evaluation.errors import ConfigError, TraceParseError, TraceSourceError
from amp_evaluation.trace._describe import Json, describe, render
from amp_evaluation.trace._otel import OTELTrace
from amp_evaluation.trace.loader import TraceLoader
from amp_evaluation.trace.mapping import TraceMapping, load_mapping
from amp_evaluation.trace.models import Trace
from amp_evaluation.trace.parser import parse_trace_for_evaluation

EXIT_OK, EXIT_UNPARSED, EXIT_NOTHING = 0, 1, 2


def _as_json(found: Json) -> str:
    return json.dumps(found, ensure_ascii=True, default=str) + "\n"


@dataclass(frozen=True, slots=True)
class _Form:
    """One way to show a trace, and one that can't be parsed."""

    trace: Callable[[Trace], str]
    defect: Callable[[Json], str]


def _sentence(found: Json) -> str:
    return f"trace {found['trace_id'] or '(no id)'}\n  ! can't be parsed: {found['defect']}\n"


_FORMS: Final = {
    "text": _Form(lambda trace: render(describe(trace)) + "\n", lambda found: _sentence(found) + "\n"),
    "json": _Form(lambda trace: _as_json(describe(trace)), _as_json),
    "atif": _Form(lambda trace: _as_json(trace.to_atif()), _as_json),
}


def main(argv: Sequence[str] | None = None, out: TextIO | None = None, err: TextIO | None = None) -> int:
    """The command. Returns its exit code."""
    out, err = out or sys.stdout, err or sys.stderr
    args = _parser().parse_args(argv)
    try:
        mapping = load_mapping(args.mapping) if args.mapping else None
        return _show(_chosen(args.file, args.trace_id), mapping, _FORMS[args.form], out)
    except (ConfigError, TraceSourceError) as error:
        err.write(f"error: {error}\n")
        return EXIT_NOTHING


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m amp_evaluation.trace", description="Shows what evaluators see of traces in a file."
    )
    parser.add_argument("file", metavar="FILE", help="an export or OTLP file, a folder, or a glob pattern")
    parser.add_argument("trace_id", metavar="TRACE_ID", nargs="?", default="", help="a trace's id, or its start")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", dest="form", action="store_const", const="json", help="as data, an object a line")
    form.add_argument(
        "--atif", dest="form", action="store_const", const="atif", help="as ATIF trajectories, one a line"
    )
    parser.add_argument(
        "--mapping",
        metavar="FILE",
        default=os.environ.get("AMP_TRACE_MAPPING_PATH"),
        help="mapping.json for attributes of one's own (default: AMP_TRACE_MAPPING_PATH)",
    )
    parser.set_defaults(form="text")
    return parser


def _chosen(file: str, trace_id: str) -> Iterator[OTELTrace]:
    """The traces whose id starts so. TraceSourceError when there is none."""
    found = False
    for trace in TraceLoader(file).iter_traces():
        if trace.traceId.startswith(trace_id.lower()):
            found = True
            yield trace
    if not found:
        what = f"no trace whose id starts with {trace_id!r}" if trace_id else "no trace"
        raise TraceSourceError(f"{file}: {what}")


def _show(traces: Iterator[OTELTrace], mapping: TraceMapping | None, form: _Form, out: TextIO) -> int:
    code = EXIT_OK
    for otel in traces:
        try:
            out.write(form.trace(parse_trace_for_evaluation(otel, mapping=mapping)))
        except TraceParseError as error:
            out.write(form.defect({"trace_id": otel.traceId, "defect": str(error)}))
            code = EXIT_UNPARSED
    return code


if __name__ == "__main__":
    sys.exit(main())
