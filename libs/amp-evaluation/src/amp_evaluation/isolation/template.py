"""Prompt templates: text with Python expressions in `{…}`.

Literal text stays verbatim: quotes, backslashes, single braces that close nothing. `{{` and `}}` stand for one brace.
What a group is:

- a placeholder, when what stands before an optional `=`, `!r` and `:spec` is an expression that mentions a name, or at
  least computes something (`{1 + 1}`, `{'a' if trace.output else 'b'}`, `{trace.output!r:.200}`);
- literal text, when it is a bare constant or a dict or set display: `{"score": 1}`, `{0}`, `{1, 2}`, `{}`. A group
  inside of literal text is a placeholder when it mentions a name of the template's own and no unknown one, else literal
  too: `{"answer": {trace.output}, "score": {score}}` inserts the answer and leaves `{score}`;
- a defect otherwise: a syntax error, a statement, a name that doesn't exist, a brace that nothing closes.

Names are the subject of the level (`trace`, `agent_trace` or `llm_span`), `task`, the keys of the evaluator's config,
and Python's builtins; an expression's own variables (loops, lambdas, walrus) are no names.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from amp_evaluation.isolation._expressions import free_names, is_constant, is_display, parse_expression
from amp_evaluation.isolation._groups import Group, find_group, split_group

__all__ = ["Placeholder", "Template", "TemplateDefect", "parse_template"]

SUBJECTS = {"trace": "trace", "agent": "agent_trace", "llm": "llm_span"}
MAX_NESTING = 50  # of groups in groups; deeper is an attack, not a prompt
_BUILTINS = frozenset(vars(builtins))
_REACH_EVERYTHING = frozenset({"eval", "exec", "globals", "locals", "vars"})  # the subject too, without naming it
_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {"": lambda value: value, "r": repr, "s": str, "a": ascii}
Insert = Callable[[object, str], str]


class TemplateDefect(ValueError):
    """A template that can't be rendered; the text says where, why, and which names exist."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placeholder:
    """One compiled expression."""

    source: str
    code: CodeType
    prefix: str
    """What `{x=}` shows before the value."""
    conversion: str
    spec: tuple[str | Placeholder, ...]
    is_data: bool
    """It mentions the subject: what it inserts is material to judge."""
    constants: frozenset[str]
    """Texts that the expression itself holds: inserted, they are the author's words."""

    def render(self, names: Mapping[str, Any], insert: Insert) -> str:
        # one dict for globals and locals, or loops and lambdas couldn't see the names
        value = eval(self.code, {"__builtins__": builtins, **names})
        value = _CONVERSIONS[self.conversion](value)
        spec = "".join(part if isinstance(part, str) else part.render(names, format) for part in self.spec)
        is_data = self.is_data and not (isinstance(value, str) and value in self.constants)
        return self.prefix + (insert(value, spec) if is_data else format(value, spec))


@dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """Literal text and placeholders, in order."""

    parts: tuple[str | Placeholder, ...]
    subject: str
    left_as_text: tuple[str, ...]
    """Groups inside of literal text whose names don't exist: text, but perhaps a slip."""

    def render(self, names: Mapping[str, Any], insert: Insert = format) -> str:
        """The prompt. `names` holds the subject, the task and the config; `insert` formats material to judge."""
        return "".join(part if isinstance(part, str) else part.render(names, insert) for part in self.parts)

    @property
    def placeholders(self) -> list[Placeholder]:
        return [part for part in self.parts if isinstance(part, Placeholder)]


def parse_template(text: str, *, level: str, config_keys: Collection[str] = ()) -> Template:
    """Split and compile a template. Raises TemplateDefect."""
    subject = SUBJECTS[level]
    parser = _Parser(subject, frozenset({subject, "task", *config_keys}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # `{"a"["b"]}` and the like: the author's text, not our code
        parts = _joined(parser.text(text, 0, len(text), inside=False, depth=0))
    return Template(parts=tuple(parts), subject=subject, left_as_text=tuple(parser.left_as_text))


class _Parser:
    def __init__(self, subject: str, own_names: frozenset[str]) -> None:
        self.subject = subject
        self.own_names = own_names
        self.left_as_text: list[str] = []

    def text(self, text: str, start: int, end: int, *, inside: bool, depth: int) -> Iterator[str | Placeholder]:
        """The parts of `text[start:end]`; `inside`: it stands within a literal group."""
        if depth > MAX_NESTING:
            raise TemplateDefect(f"braces are nested more than {MAX_NESTING} deep")
        position = start
        while position < end:
            brace = _next_brace(text, position, end)
            yield text[position:brace]
            if brace == end:
                return
            if text.startswith(text[brace] * 2, brace) and brace + 2 <= end and not inside:
                yield text[brace]
                position = brace + 2
            elif text[brace] == "}":
                yield "}"
                position = brace + 1
            else:
                group = find_group(text, brace, end)
                if group is None:
                    raise TemplateDefect(f"the brace at {_place(text, brace)} is never closed; write {{{{ for a brace")
                yield from self.group(text, group, inside=inside, depth=depth)
                position = group.end

    def group(self, text: str, group: Group, *, inside: bool, depth: int) -> Iterator[str | Placeholder]:
        content = text[group.start + 1 : group.end - 1]
        expression, debug, conversion, spec = split_group(content)
        tree = parse_expression(expression)
        if (tree is None and is_display(content)) or (tree is not None and is_constant(tree)):
            yield "{"
            yield from self.text(text, group.start + 1, group.end - 1, inside=True, depth=depth + 1)
            yield "}"
            return
        if inside and not self._is_meant(tree, expression):
            self.left_as_text.append("{" + content + "}")
            yield "{" + content + "}"
            return
        place = _place(text, group.start)
        if tree is None or conversion not in _CONVERSIONS:
            raise TemplateDefect(f"{_shown(content)} at {place} is no Python expression{_why(expression, conversion)}")
        yield self._placeholder(expression, tree, debug, conversion, spec, place, depth)

    def _placeholder(
        self,
        expression: str,
        tree: ast.expr,
        debug: str,
        conversion: str,
        spec: str | None,
        place: str,
        depth: int,
    ) -> Placeholder:
        names = free_names(expression)
        self._check(names, expression, place)
        if isinstance(tree, ast.Name) and callable(getattr(builtins, tree.id, None)) and tree.id not in self.own_names:
            raise TemplateDefect(f"{_shown(expression)} at {place} is a function of Python, no value; {self._known()}")
        nested = () if spec is None else tuple(_joined(self.spec(spec, depth + 1)))
        if debug and not conversion and spec is None:
            conversion = "r"  # as in an f-string
        return Placeholder(
            source=expression,
            code=_compiled(tree, expression, place),
            prefix=debug,
            conversion=conversion,
            spec=nested,
            is_data=not names.isdisjoint({self.subject, *_REACH_EVERYTHING}),
            constants=frozenset(
                node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
            ),
        )

    def spec(self, spec: str, depth: int) -> Iterator[str | Placeholder]:
        """A format specification: literal text with placeholders, where every group is one."""
        if depth > MAX_NESTING:
            raise TemplateDefect(f"braces are nested more than {MAX_NESTING} deep")
        position = 0
        while (brace := spec.find("{", position)) >= 0:
            yield spec[position:brace]
            group = find_group(spec, brace, len(spec))
            if group is None:
                raise TemplateDefect(f"a brace in the format {_shown(spec)} is never closed")
            expression, debug, conversion, inner = split_group(spec[brace + 1 : group.end - 1])
            tree = parse_expression(expression)
            if tree is None or conversion not in _CONVERSIONS:
                raise TemplateDefect(f"{_shown(expression)} in the format {_shown(spec)} is no Python expression")
            yield self._placeholder(expression, tree, debug, conversion, inner, f"the format {_shown(spec)}", depth)
            position = group.end
        yield spec[position:]

    def _is_meant(self, tree: ast.expr | None, expression: str) -> bool:
        """A group inside of literal text is a placeholder only when nothing speaks against it."""
        if tree is None:
            return False
        names = free_names(expression)
        return bool(names & self.own_names) and names <= self.own_names | _BUILTINS

    def _check(self, names: frozenset[str], expression: str, place: str) -> None:
        unknown = sorted(names - self.own_names - _BUILTINS)
        if unknown:
            near = difflib.get_close_matches(unknown[0], self.own_names, 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise TemplateDefect(
                f"{_shown(expression)} at {place} names {', '.join(map(repr, unknown))}, which doesn't exist{hint}; "
                f"{self._known()}"
            )

    def _known(self) -> str:
        return f"the names that exist: {', '.join(sorted(self.own_names))}, and Python's builtins"


def _next_brace(text: str, start: int, end: int) -> int:
    found = [place for place in (text.find("{", start, end), text.find("}", start, end)) if place >= 0]
    return min(found, default=end)


def _joined(parts: Iterator[str | Placeholder]) -> Iterator[str | Placeholder]:
    """The same parts with neighbouring texts made one and empty ones left out."""
    gathered: list[str] = []
    for part in parts:
        if isinstance(part, str):
            gathered.append(part)
            continue
        if joined := "".join(gathered):
            yield joined
        gathered.clear()
        yield part
    if joined := "".join(gathered):
        yield joined


def _compiled(tree: ast.expr, expression: str, place: str) -> CodeType:
    try:
        return compile(ast.Expression(tree), "<template>", "eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise TemplateDefect(f"{_shown(expression)} at {place} can't be compiled: {error}") from error


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return f"line {line}, column {column}"


def _shown(content: str) -> str:
    content = " ".join(content.split())
    return "{" + (content if len(content) <= 80 else content[:79] + "…") + "}"


def _why(expression: str, conversion: str) -> str:
    if conversion not in _CONVERSIONS:
        return f": the conversion is !r, !s or !a, not !{conversion}"
    try:
        ast.parse(expression.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f": {error.msg}" if isinstance(error, SyntaxError) else ""
    return ": it is a statement"
