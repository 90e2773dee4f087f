"""What an expression in a template is, and which names it needs; asked of Python's own parser."""

from __future__ import annotations

import ast
import re
import symtable

from amp_evaluation.isolation._groups import is_balanced

_UNPARSEABLE = re.compile("[\0\ud800-\udfff]")


def _wrapped(expression: str) -> str:
    """In parentheses, so that an expression may span lines; the line break ends a comment."""
    return f"({_parseable(expression).strip()}\n)"


def _parseable(text: str) -> str:
    """The text without characters that Python's parser doesn't take, in strings neither."""
    return _UNPARSEABLE.sub("\ufffd", text)


def parse_expression(expression: str) -> ast.expr | None:
    """The expression's tree; None when it is none."""
    if not expression.strip() or expression.rstrip().endswith("\\"):  # it would continue on the line put after it
        return None
    try:
        tree = ast.parse(_wrapped(expression), "<template>", "eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    # `a) + (b` would close the parentheses that were put around it
    return tree if is_balanced(expression) else None


def is_constant(tree: ast.expr) -> bool:
    """A constant, a signed number, or several of them: what a set display would hold."""
    if isinstance(tree, ast.Tuple):
        return all(map(is_constant, tree.elts))
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub | ast.UAdd):
        return isinstance(tree.operand, ast.Constant)
    return isinstance(tree, ast.Constant)


def is_display(content: str) -> bool:
    """Empty, or a dict display whose first part alone is no expression (`{**defaults}`)."""
    if not content.strip():
        return True
    try:
        tree = ast.parse("{" + _parseable(content) + "\n}", "<template>", "eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return isinstance(tree, ast.Dict)


def free_names(expression: str) -> frozenset[str]:
    """Names that the expression expects to find, without those that it binds itself."""
    top = symtable.symtable(_wrapped(expression), "<template>", "eval")
    names: set[str] = set()
    tables = [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        names.update(
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and symbol.is_global() and not symbol.get_name().startswith(".")
        )
    bound = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned()}
    return frozenset(names - bound)
