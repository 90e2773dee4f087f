"""The direction of imports: a module imports only from layers below its own, and within a layer there is no circle."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import amp_evaluation

ROOT = Path(amp_evaluation.__file__).parent
PACKAGE = amp_evaluation.__name__

# Layer → modules. The longest name that fits counts; a package stands for all in it. What isn't named here runs things:
# it may import from everywhere, and nothing below may import it.
LAYERS = {
    # The package's front door names its modules without importing them, so it can stand at the bottom.
    0: "__init__ errors _time _visible _version _retry _adapter _oauth _json_log _pool _url http",
    1: (
        "_info _reports models publish config aggregators dataset evaluators._hints evaluators.params "
        "trace._lazy trace._spans trace._records trace._otel trace._wire"
    ),
    2: "trace judge isolation evaluators._signature evaluators._items evaluators._outcome evaluators._entries",
    3: "evaluators registry",
    4: "evaluators.builtin isolation.candidates isolation.loading isolation.child",
}
TOP = 5
LAYER_OF = {name: layer for layer, names in LAYERS.items() for name in names.split()}


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(file): file for file in ROOT.rglob("*.py")}


def layer_of(module: str) -> int:
    """The layer of the longest known name that the module's begins with."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        layer = LAYER_OF.get(".".join(parts[:length]))
        if layer is not None:
            return layer
    return TOP


def is_for_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def import_statements(node: ast.AST, inside: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Every import that can run, and whether it stands inside a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, inside
        elif not is_for_checkers(child):
            yield from import_statements(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))


def imported(statement: ast.Import | ast.ImportFrom) -> set[str]:
    """The modules of this package that a statement imports, by their names in the package."""
    if isinstance(statement, ast.Import):
        full = {alias.name for alias in statement.names}
    else:
        assert statement.level == 0, "imports are written out in full"
        origin = statement.module or ""
        own = {f"{origin}.{alias.name}" for alias in statement.names}
        full = {name if name.removeprefix(f"{PACKAGE}.") in MODULES else origin for name in own}
    return {
        "__init__" if name == PACKAGE else name.removeprefix(f"{PACKAGE}.")
        for name in full
        if name == PACKAGE or name.startswith(f"{PACKAGE}.")
    }


STATEMENTS = {
    module: list(import_statements(ast.parse(file.read_text(encoding="utf-8")))) for module, file in MODULES.items()
}
IMPORTS = {
    module: set().union(*(imported(statement) for statement, _ in statements), set())
    for module, statements in STATEMENTS.items()
}


def test_the_walk_sees_the_package() -> None:
    assert "errors" in MODULES
    assert "evaluators._base" in IMPORTS["evaluators._function"]
    assert len(MODULES) > 50


@pytest.mark.parametrize("module", sorted(MODULES))
def test_it_imports_from_no_layer_above_its_own(module: str) -> None:
    layer = layer_of(module)
    above = {name: layer_of(name) for name in IMPORTS[module] if layer_of(name) > layer}
    assert not above, f"{module} (layer {layer}) imports from above: {above}"


def circle_from(start: str) -> list[str]:
    """The modules of a circle that `start` is on, if it is on one."""
    path, seen = [(start, iter(sorted(IMPORTS[start])))], {start}
    while path:
        found = next(path[-1][1], None)
        if found is None:
            path.pop()
        elif found == start:
            return [name for name, _ in path]
        elif found in IMPORTS and found not in seen:
            seen.add(found)
            path.append((found, iter(sorted(IMPORTS[found]))))
    return []


@pytest.mark.parametrize("module", sorted(MODULES))
def test_it_is_on_no_circle_of_imports(module: str) -> None:
    assert circle_from(module) == []


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_stand_at_the_top_but_for_optional_extras(module: str) -> None:
    """What is left inside functions is third-party and optional: the judges' client, OpenTelemetry."""
    own = [imported(statement) for statement, inside in STATEMENTS[module] if inside]
    assert not any(own), f"{module} imports its own package inside a function: {own}"


@pytest.mark.parametrize("name", LAYER_OF)
def test_the_table_names_what_exists(name: str) -> None:
    assert name == "__init__" or name in MODULES
