"""The platform that the job talks to, played on 127.0.0.1 over real sockets.

    with Platform(series(25)) as platform:
        platform.fault("export_503")
        assert main.run(platform.argv(), platform.env(), sleep=platform.sleep) == 0
        assert len(platform.publisher.scores) == 25

Or as a process of its own: ``python -m loopback --help``.
"""

from loopback._faults import Fault, broken, status
from loopback._idp import ABSENT
from loopback._model import Model, completion
from loopback._server import Request, Response, Server
from loopback._store import StoredTrace, TraceStore, from_ns, to_ns
from loopback.bench_traces import benchmark, heavy
from loopback.platform import FAULT_NAMES, MONITOR_ID, RUN_ID, Platform
from loopback.traces import bare, series, simple, span, trace_id, whole

__all__ = [
    "ABSENT",
    "FAULT_NAMES",
    "MONITOR_ID",
    "RUN_ID",
    "Fault",
    "Model",
    "Platform",
    "Request",
    "Response",
    "Server",
    "StoredTrace",
    "TraceStore",
    "bare",
    "benchmark",
    "broken",
    "completion",
    "from_ns",
    "heavy",
    "series",
    "simple",
    "span",
    "status",
    "to_ns",
    "trace_id",
    "whole",
]
