"""The platform of the tests as a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SDK = Path(__file__).resolve().parents[1]
READY_WITHIN_S = 300.0
ENVIRONMENT = {
    **{name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TZ") if name in os.environ},
    "PYTHONPATH": str(SDK / "tests"),
    "PYTHONDONTWRITEBYTECODE": "",
}


@contextmanager
def platform(kind: str, traces: int, *, page_delay: float = 0.0, judge_delay: float = 0.0) -> Iterator[dict[str, Any]]:
    """Start the platform over so many traces; gives its URLs, the job's flags and environment."""
    with tempfile.TemporaryDirectory() as folder:
        address = Path(folder) / "address.json"
        command = [sys.executable, "-m", "loopback", "--ports-file", str(address), "--traces", str(traces)]
        command += ["--kind", kind, "--page-delay", str(page_delay), "--judge-delay", str(judge_delay)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env=ENVIRONMENT)
        try:
            yield _wait_for(address, process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(30)


def state(told: dict[str, Any]) -> dict[str, Any]:
    """What the platform has seen so far."""
    with urllib.request.urlopen(told["urls"]["publisher"] + "/_state", timeout=10) as reply:
        found: dict[str, Any] = json.load(reply)
    return found


def _wait_for(address: Path, process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    end = time.monotonic() + READY_WITHIN_S
    while not address.exists():
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit("the platform on loopback did not start")
        time.sleep(0.05)
    found: dict[str, Any] = json.loads(address.read_text())
    return found
