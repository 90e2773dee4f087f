"""Imports point one way: a module imports from lower layers, or from its own without going in a circle."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import amp_evaluation

ROOT = Path(amp_evaluation.__file__).parent

# The longest prefix decides. What isn't named here stands alone: it is only held to go in no circle.
LAYERS = {
    "errors": 0,
    "_time": 0,
    "_version": 0,
    "_reports": 0,
    "_pool": 0,
    "http": 0,
    "models": 1,
    "config": 1,
    "aggregators": 1,
    "dataset": 1,
    "trace._spans": 1,
    "trace._wire": 1,
    "trace._otel": 1,
    "trace._records": 1,
    "evaluators._hints": 1,
    "evaluators.params": 1,
    "trace": 2,
    "judge": 2,
    "evaluators": 3,
    "evaluators.builtin": 4,
    "_summaries": 5,
    "_scoring": 5,
    "_source": 5,
    "_trace_run": 5,
    "_base_runner": 5,
    "experiment": 5,
    "runner": 5,
}


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imported_at_start(name: str) -> Iterator[str]:
    """What a module imports when it is imported itself: not in functions, not for type checkers alone."""
    for node in ast.parse(MODULES[name].read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "amp_evaluation":
            home = (node.module or "").removeprefix("amp_evaluation").removeprefix(".")
            for alias in node.names:
                inner = f"{home}.{alias.name}".removeprefix(".")
                yield inner if inner in MODULES else home


def layer(name: str) -> int | None:
    prefixes = [prefix for prefix in LAYERS if name == prefix or name.startswith(f"{prefix}.")]
    return LAYERS[max(prefixes, key=len)] if prefixes else None


GRAPH = {name: sorted(set(imported_at_start(name)) - {name, ""}) for name in MODULES}


def test_no_module_imports_itself_by_way_of_others() -> None:
    try:
        list(TopologicalSorter(GRAPH).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("name", [name for name in GRAPH if layer(name) is not None])
def test_a_module_imports_nothing_from_above(name: str) -> None:
    above = [other for other in GRAPH[name] if (layer(other) or 0) > (layer(name) or 0)]
    assert above == []


def test_the_package_itself_imports_only_its_version() -> None:
    assert set(imported_at_start("")) == {"_version"}
