"""Where a `{…}` group of a template ends, and what its parts are. Looks at brackets and quotes only."""

from __future__ import annotations

from typing import NamedTuple

_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Group(NamedTuple):
    """`text[start]` is the opening brace, `text[end - 1]` the closing one."""

    start: int
    end: int


class Parts(NamedTuple):
    """`{expression=!conversion:spec}`; a spec may be empty, so None is the absent one."""

    expression: str
    debug: str
    """The text that `=` shows: expression and equals sign with the blanks around it; empty without one."""
    conversion: str
    spec: str | None


def find_group(text: str, start: int, end: int) -> Group | None:
    """The group that opens at `start`; None when nothing closes it before `end`."""
    stack: list[str] = []
    position = start
    while position < end:
        character = text[position]
        if character in "\"'":
            position = _after_string(text, position, end)
            continue
        if character in _CLOSING:
            stack.append(_CLOSING[character])
        elif character in ")]}":
            # prose has brackets that don't match: a brace closes what was left open before it
            while stack and stack[-1] != character and character == "}":
                stack.pop()
            if stack and stack[-1] == character:
                stack.pop()
            if not stack:
                return Group(start, position + 1)
        position += 1
    return None


def split_group(content: str) -> Parts:
    """What a group holds, split where an f-string would split it: at the first `!x` or `:` outside of all brackets."""
    stop = _first_outside(content)
    expression, rest = content[:stop], content[stop:]
    conversion, spec = "", None
    if rest.startswith("!"):
        conversion, colon, spec_text = rest[1:].partition(":")
        conversion = conversion.strip() or "!"  # a lone mark is no conversion either
        spec = spec_text if colon else None
    elif rest:
        spec = rest[1:]
    debug = ""
    stripped = expression.rstrip()
    if stripped.endswith("=") and stripped[-2:-1] not in ("", "=", "!", "<", ">", ":"):
        debug, expression = expression, stripped[:-1]
    return Parts(expression, debug, conversion, spec)


def is_balanced(content: str) -> bool:
    """Every closing bracket outside of strings has an opening one before it."""
    depth = position = 0
    while position < len(content):
        character = content[position]
        if character in "\"'":
            position = _after_string(content, position, len(content))
            continue
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return False
        position += 1
    return True


def _first_outside(content: str) -> int:
    """The place of the first `:` or `!` (that isn't `!=`) outside of brackets and strings; the length without one."""
    depth = 0
    position = 0
    while position < len(content):
        character = content[position]
        if character in "\"'":
            position = _after_string(content, position, len(content))
            continue
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif depth == 0 and (character == ":" or (character == "!" and content[position + 1 : position + 2] != "=")):
            return position
        position += 1
    return len(content)


def _after_string(text: str, start: int, end: int) -> int:
    """The place after the string literal that opens at `start`.

    A quote that nothing closes (on its line, unless it is a triple one) is an apostrophe: one character.
    """
    quote = text[start : start + 3] if text[start : start + 3] in ("'''", '"""') else text[start]
    position = start + len(quote)
    while position < end:
        if text[position] == "\\":
            position += 2
            continue
        if text.startswith(quote, position) and position + len(quote) <= end:
            return position + len(quote)
        if text[position] == "\n" and len(quote) == 1:
            break
        position += 1
    return start + 1
