"""Measured child processes: the job, and what it is compared with."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _platform import ENVIRONMENT, SDK

JOB = SDK.parents[1] / "main.py"
HERE = Path(__file__).resolve().parent

RULES: list[dict[str, Any]] = [
    {"identifier": "latency_performance", "displayName": "Latency", "config": {}},
    {"identifier": "token_efficiency", "displayName": "Tokens", "config": {}},
    {"identifier": "iteration_efficiency", "displayName": "Iterations", "config": {}},
    {"identifier": "length_compliance", "displayName": "Length", "config": {}},
    {
        "identifier": "content_safety",
        "displayName": "Safety",
        "config": {"prohibited_strings": ["password", "credit card"]},
    },
    {"identifier": "tool_coverage", "displayName": "Coverage", "config": {"required_tools": ["search"]}},
    {"identifier": "step_success_rate", "displayName": "Steps", "config": {}},
]
JUDGES: list[dict[str, Any]] = [
    {"identifier": "helpfulness", "displayName": "Helpfulness", "config": {}},
    {"identifier": "clarity", "displayName": "Clarity", "config": {}},
]
RULE: list[dict[str, Any]] = RULES[3:4]
CODE: list[dict[str, Any]] = [
    {
        "identifier": "length",
        "displayName": "Length",
        "type": "code",
        "level": "trace",
        "source": "def length(trace: Trace) -> float:\n    return float(1 <= len(trace.output) <= 10000)\n",
        "config": {},
    }
]


@dataclass(frozen=True)
class Cost:
    """What a process took: seconds, and MiB at its peak."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    exit: int


def run(command: Sequence[str], environment: dict[str, str]) -> Cost:
    """Run a command to its end. SystemExit with its last words when it fails."""
    with tempfile.NamedTemporaryFile() as log:
        starter = [sys.executable, "-S", "-E", str(HERE / "_child.py"), log.name, *command]
        done = subprocess.run(starter, env=environment, capture_output=True, text=True, check=True)
        cost = Cost(**json.loads(done.stdout))
        if cost.exit != 0:
            raise SystemExit(f"exit {cost.exit} of {' '.join(command)[:200]}\n{Path(log.name).read_text()[-3000:]}")
    return cost


def run_job(told: dict[str, Any], evaluators: list[dict[str, Any]], **variables: str) -> Cost:
    """Run `main.py` against a platform."""
    flags = [flag for flag in told["argv"] if not flag.startswith("--evaluators=")]
    command = [sys.executable, str(JOB), *flags, f"--evaluators={json.dumps(evaluators)}"]
    plain = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONPATH"}
    return run(command, {**plain, **told["env"], **variables})


def judge_variables(told: dict[str, Any]) -> dict[str, str]:
    """Judges reach the platform's model as the gateway."""
    return {"LLM_API_BASE": told["urls"]["model"], "LLM_API_KEY": "bench", "AMP_LLM_JUDGE_DEFAULT_MODEL": "openai/m"}


def json_cost(kind: str, traces: int, page_size: int = 10) -> dict[str, float]:
    """CPU seconds of `json.loads` over the same bytes, and how many they are."""
    command = [sys.executable, str(HERE / "_json_cost.py"), kind, str(traces), str(page_size)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found
