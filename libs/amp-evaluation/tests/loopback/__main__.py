"""``python -m loopback``: the platform as a process of its own, until its standard input ends."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from loopback._store import StoredTrace
from loopback.bench_traces import benchmark, heavy
from loopback.platform import FAULT_NAMES, Platform
from loopback.traces import series

KINDS: dict[str, Callable[[int], Iterable[StoredTrace]]] = {
    "simple": lambda count: (StoredTrace.of(wire) for wire in series(count)),
    "gen_ai": lambda count: benchmark(count),
    "openinference": lambda count: benchmark(count, convention="openinference"),
    "heavy": lambda count: heavy(count),
}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="loopback", description=__doc__)
    parser.add_argument("--ports-file", type=Path, required=True, help="written when ready: URLs, flags, environment")
    parser.add_argument("--traces", type=int, default=100)
    parser.add_argument("--kind", choices=KINDS, default="gen_ai")
    parser.add_argument("--page-delay", type=float, default=0.0, help="seconds a page of traces")
    parser.add_argument("--judge-delay", type=float, default=0.0, help="seconds a completion")
    parser.add_argument("--fault", action="append", default=[], choices=FAULT_NAMES)
    options = parser.parse_args(argv)
    with Platform(KINDS[options.kind](options.traces)) as platform:
        platform.observer.page_delay_s = options.page_delay
        platform.model.delay_s = options.judge_delay
        platform.publisher.keep_scores = False
        for server in platform.servers.values():
            server.keep_requests = False
        for name in options.fault:
            platform.fault(name)
        platform.write_address(options.ports_file)
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
