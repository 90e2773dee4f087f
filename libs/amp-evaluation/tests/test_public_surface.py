"""What `amp_evaluation` offers, and what importing it costs."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import amp_evaluation


def test_every_public_name_can_be_had() -> None:
    missing = [name for name in amp_evaluation.__all__ if not hasattr(amp_evaluation, name)]
    assert missing == []
    assert set(amp_evaluation.__all__) <= set(dir(amp_evaluation))


def test_type_checkers_see_the_same_names_in_the_same_modules() -> None:
    """The names are written down twice, for readers of types and for loading them."""
    tree = ast.parse(Path(amp_evaluation.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == amp_evaluation._HOME_OF
    assert sorted([*typed, "__version__"]) == sorted(amp_evaluation.__all__)


def test_modules_are_attributes_too() -> None:
    assert amp_evaluation.runner.Monitor is amp_evaluation.Monitor
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = amp_evaluation.nothing


def test_the_names_of_parameters_can_be_had_where_they_are_declared() -> None:
    params = importlib.import_module("amp_evaluation.evaluators.params")
    assert params.EvaluationLevel is amp_evaluation.EvaluationLevel
    assert params.EvalMode is amp_evaluation.EvalMode


HEAVY = ["requests", "any_llm", "openai", "anthropic", "numpy", "pandas", "opentelemetry", "httpx", "genai_prices"]


def loaded_by(code: str) -> set[str]:
    shown = f"import sys\n{code}\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    environment = {**os.environ, "AMP_MONITOR_MAX_CONCURRENCY": "not read"}
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True, env=environment)
    return set(done.stdout.split())


def test_importing_loads_nothing_heavy_and_reads_no_environment() -> None:
    assert loaded_by("import amp_evaluation") == set()
    assert loaded_by("from amp_evaluation import Monitor, builtin, evaluator, EvalResult, Task") <= {"requests"}
    assert loaded_by("from amp_evaluation import *") <= {"opentelemetry", "requests"}


def test_reading_traces_and_running_custom_code_load_no_http() -> None:
    assert loaded_by("import amp_evaluation.isolation.child; from amp_evaluation.trace import Trace") == set()
    assert loaded_by("from amp_evaluation.trace import TraceFetcher, sample_traces") == {"requests"}


def test_what_a_trace_comes_from_can_be_had_where_traces_are() -> None:
    trace = amp_evaluation.trace
    assert set(trace.__all__) <= set(dir(trace)) and all(getattr(trace, name) for name in trace.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = trace.nothing


def test_the_settings_library_waits_until_settings_are_read() -> None:
    """It is a tenth of the job's start; annotations alone must not bring it in."""
    modules = "runner, evaluators.builtin, evaluators.code, isolation, trace.fetcher, trace.loader, _peer_check"
    code = "\n".join(f"import amp_evaluation.{name}" for name in modules.split(", "))
    shown = f"import sys\n{code}\nprint('pydantic_settings' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True).stdout == "False\n"
