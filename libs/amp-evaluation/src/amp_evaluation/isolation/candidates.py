"""Which object of a custom source is the evaluator.

Only what the source defines counts, never what it imports. In this order: an `@evaluator` (or `@llm_judge`) object, a
function whose return hint is a result, the most derived evaluator class, a function whose first parameter is hinted
with a level, the last function. Among equals the last defined wins, with a warning that names the others.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from amp_evaluation.evaluators import _hints
from amp_evaluation.evaluators._base import BaseEvaluator
from amp_evaluation.evaluators._signature import read_signature
from amp_evaluation.models import EvalResult

__all__ = ["Candidate", "choose", "compile_source", "run_source"]

Candidate = BaseEvaluator | type[BaseEvaluator] | Callable[..., Any]

_RESULT_HINTS = (EvalResult, float, int, bool, dict)
_SPELLED_RESULTS = frozenset({"EvalResult", "float", "int", "bool", "dict", "Dict", "Mapping"})


def compile_source(source: str, module_name: str) -> tuple[types.CodeType, ast.Module]:
    """The code and its tree. Raises SyntaxError, or ValueError for text that is no source."""
    tree = ast.parse(source, _filename(module_name))
    return compile(tree, _filename(module_name), "exec"), tree


def run_source(code: types.CodeType, source: str, module_name: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """Execute a source as a module of its own that has `names` from the start; give what it holds then."""
    module = types.ModuleType(module_name)
    module.__dict__.update(names)
    # dataclasses and type hints look their module up; tracebacks and inspect show its lines
    sys.modules[module_name] = module
    filename = _filename(module_name)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(code, module.__dict__)
    return module.__dict__


def _filename(module_name: str) -> str:
    return f"<{module_name}>"


def choose(names: Mapping[str, Any], tree: ast.Module, module_name: str) -> tuple[Candidate, list[str]]:
    """The evaluator of a source that has been run, and warnings. Raises TypeError when it defines none."""
    defined = _defined(names, tree, module_name)
    for rank in (_is_decorated, _returns_result, None, _is_hinted, _is_function):
        found = _leaves(defined) if rank is None else {key: value for key, value in defined.items() if rank(value)}
        if found:
            *others, chosen = found
            return found[chosen], [_warning(chosen, others)] if others else []
    raise TypeError(
        "it defines no evaluator: write a function whose first parameter is hinted Trace, AgentTrace or LLMSpan, "
        "an @evaluator function, or a subclass of BaseEvaluator"
    )


def _warning(chosen: str, others: list[str]) -> str:
    named = ", ".join(map(repr, others))
    return f"the source defines several evaluators: {chosen!r}, the last one, is used; not used: {named}"


def _defined(names: Mapping[str, Any], tree: ast.Module, module_name: str) -> dict[str, Any]:
    """Evaluators and functions that the source itself makes, by name, in the order in which the names were bound last.

    An object with two names counts once, under its own or its first one.
    """
    lines = dict(_bindings(tree.body))
    found: dict[int, str] = {}
    for name in sorted(lines, key=lambda name: lines[name]):
        value = names.get(name)
        if _origin(value) == module_name:
            found.setdefault(id(value), name)
    return {name: names[name] for name in found.values()}


def _origin(value: object) -> str | None:
    """The module that an evaluator or a function was written in; None for anything else."""
    if _is_decorated(value):
        return _origin(vars(value)["func"])
    if isinstance(value, type):
        is_usable = issubclass(value, BaseEvaluator) and not inspect.isabstract(value)
        return value.__module__ if is_usable else None
    if isinstance(value, types.FunctionType):
        return value.__module__
    return None


def _bindings(body: list[ast.stmt]) -> Iterator[tuple[str, int]]:
    """Every name that statements at module level bind otherwise than by an import, with its line."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name, statement.lineno
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                yield from ((node.id, statement.lineno) for node in ast.walk(target) if isinstance(node, ast.Name))
        else:
            for field in ("body", "orelse", "finalbody"):
                yield from _bindings(getattr(statement, field, []))
            for handler in getattr(statement, "handlers", []):
                yield from _bindings(handler.body)


def _is_decorated(value: object) -> bool:
    """What `@evaluator` and `@llm_judge` make of a function keeps it as `func`."""
    return isinstance(value, BaseEvaluator) and "func" in vars(value)


def _is_function(value: object) -> bool:
    return isinstance(value, types.FunctionType) and bool(_parameters(value))


def _is_hinted(value: object) -> bool:
    return _is_function(value) and read_signature(value, "").level is not None  # type: ignore[arg-type]


def _returns_result(value: object) -> bool:
    """A function with a result's return hint; one whose first parameter is hinted otherwise is a helper."""
    if not isinstance(value, types.FunctionType) or not _is_function(value):
        return False
    signature = read_signature(value, "")
    if signature.level is None and not signature.unhinted:
        return False
    hint = _hints.resolve(value.__annotations__.get("return"), _hints.namespace_of(value))
    if isinstance(hint, str):
        return hint.strip("\"' ").partition("[")[0].rpartition(".")[2] in _SPELLED_RESULTS
    return any(_result_like(arm) for arm in getattr(hint, "__args__", None) or (hint,)) or _result_like(hint)


def _result_like(hint: Any) -> bool:
    hint = getattr(hint, "__origin__", hint)
    return isinstance(hint, type) and issubclass(hint, _RESULT_HINTS)


def _parameters(function: types.FunctionType) -> list[inspect.Parameter]:
    return [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]


def _leaves(defined: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluator classes that no other of them derives from."""
    classes = {name: value for name, value in defined.items() if isinstance(value, type)}
    return {
        name: value
        for name, value in classes.items()
        if not any(other is not value and issubclass(other, value) for other in classes.values())
    }
