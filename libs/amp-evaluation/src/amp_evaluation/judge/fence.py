"""Keeping judged text apart from the judge's instructions.

What an agent said, and what its tools and documents brought, is material to judge: it may hold instructions meant for
the judge. Each judged text stands between two marks that carry an id made from the text itself and checked not to
occur in it, so nothing inside can close the fence, and the same text always gives the same prompt.

`bound` keeps a prompt below a size by shortening the longest fenced texts in the middle, with a mark.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

__all__ = ["MAX_PROMPT_CHARS", "as_json", "bound", "clean", "fence", "insert", "parts_of", "sendable"]

MAX_PROMPT_CHARS = 100_000
MIN_PART_CHARS = 400  # a text is never shortened below this while longer ones are there to shorten
MARK_CHARS = 60  # room for the mark that stands where a text lost its middle
EMPTY = "(empty)"
LEFT_OUT = frozenset(
    {"span_id", "parent_span_id", "llm_span_id", "agent_id", "start_time", "duration_ms", "tool_call_id"}
)

_FENCED = re.compile(r"<untrusted id=([0-9a-f]{12})>(.*?)</untrusted id=\1>", re.DOTALL)
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?[\w;=.+-]*;base64,[A-Za-z0-9+/=_-]*", re.ASCII)
_BASE64_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{200,}={0,2}", re.ASCII)
_UNSENDABLE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """The text without what can't be sent as UTF-8 JSON: lone surrogates become U+FFFD, NULs go."""
    return _UNSENDABLE.sub("\ufffd", text).replace("\x00", "")


def sendable(prompt: str, limit: int = MAX_PROMPT_CHARS) -> str:
    """A prompt as it may leave the process: text that can be encoded, no encoded bytes, within the bound."""
    return bound(_without_binaries(clean(prompt)), limit)


def fence(text: str) -> str:
    """The text between marks that it can't close; "(empty)" for an empty one."""
    # shortened at once: several judges hold the text of a trace of many megabytes at the same time
    shown = _without_middle(_without_binaries(clean(str.__str__(text))), MAX_PROMPT_CHARS)
    if not shown.strip():
        return EMPTY
    mark = _mark(shown)
    edge = "\n" if "\n" in shown else ""
    return f"<untrusted id={mark}>{edge}{shown}{edge}</untrusted id={mark}>"


def insert(value: object, spec: str = "") -> str:
    """A value as it goes into a prompt: numbers and truth values as they are, everything else fenced."""
    if value is None or type(value) in (bool, int, float):
        return format(value, spec)
    if isinstance(value, str):
        return fence(format(str.__str__(value), spec))
    # a date takes a format of its own; of what can't be formatted, a list, the whole goes in
    return fence(format(value, spec) if spec and hasattr(value, "isoformat") else as_json(value))


def bound(prompt: str, limit: int = MAX_PROMPT_CHARS) -> str:
    """The prompt in at most `limit` characters: the longest judged texts lose their middle, then the longest others."""
    if len(prompt) <= limit:
        return prompt
    parts = parts_of(prompt)
    inside, outside = range(1, len(parts), 2), range(0, len(parts), 2)
    for places, floor in ((inside, MIN_PART_CHARS), (outside, MIN_PART_CHARS), (inside, 0), (outside, 0)):
        excess = sum(map(len, parts)) - limit
        if excess > 0:
            _shorten(places, parts, excess, floor)
    return "".join(parts)


def _mark(text: str) -> str:
    """Twelve hex digits that the text doesn't hold."""
    salt = 0
    while True:
        digest = hashlib.blake2b(text.encode(), digest_size=6, salt=salt.to_bytes(8, "big")).hexdigest()
        if digest not in text:
            return digest
        salt += 1


def _without_binaries(text: str) -> str:
    """Images and other encoded bytes as a short placeholder: no judge can read them."""
    if len(text) < 200 and "base64," not in text:
        return text
    text = _DATA_URL.sub(lambda found: f"[{found[1] or 'data'}, {len(found[0])} characters]", text)
    return _BASE64_RUN.sub(_run_placeholder, text)


def _run_placeholder(found: re.Match[str]) -> str:
    run = found[0]
    kinds = (any(map(kind, run)) for kind in (str.isdigit, str.islower, str.isupper))
    return f"[encoded data, {len(run)} characters]" if all(kinds) else run


def parts_of(prompt: str) -> list[str]:
    """Alternately what is outside and what is inside a fence; the marks stay outside."""
    parts, position = [], 0
    for found in _FENCED.finditer(prompt):
        parts += [prompt[position : found.start(2)], found[2]]
        position = found.end(2)
    return [*parts, prompt[position:]]


def _shorten(places: Iterable[int], parts: list[str], excess: int, floor: int) -> None:
    """Cut the longest parts to one common length, so that together they lose `excess` characters if they can."""
    lengths = sorted((len(parts[place]) for place in places), reverse=True)
    cap = 0
    for count in range(1, len(lengths) + 1):
        shorter = lengths[count] if count < len(lengths) else 0
        cap = (sum(lengths[:count]) - excess) // count
        if cap >= shorter:
            break
    for place in places:
        parts[place] = _without_middle(parts[place], max(cap, floor))


def _without_middle(text: str, length: int) -> str:
    """At most `length` characters of the text; a mark says how many are missing in between."""
    if len(text) <= length:
        return text
    kept = max(0, length - MARK_CHARS)
    mark = f"\n[… {len(text) - kept:,} characters left out here …]\n"
    if length < MARK_CHARS:
        return mark if length > MARK_CHARS // 2 else ""
    return text[: kept - kept // 2] + mark + text[len(text) - kept // 2 :]


def as_json(value: Any) -> str:
    """JSON text of whatever a builder inserts: data classes by their public fields, no Python repr of anything."""
    return json.dumps(_plain(value), ensure_ascii=False, default=_text_of)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return _without_middle(_without_binaries(str.__str__(value)), MAX_PROMPT_CHARS)
    if isinstance(value, dict):
        return {str.__str__(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset) or (
        isinstance(value, Iterable) and hasattr(value, "__next__")
    ):
        return [_plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"type": type(value).__name__} | _said(value)
    return value


def _said(value: Any) -> dict[str, Any]:
    """The fields of an object that say something to a judge: no ids, no times, nothing empty, errors but no figures."""
    said: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        found = getattr(value, field.name)
        if field.name == "metrics":
            failed = getattr(found, "error", False)
            said |= {"error": found.error_message or found.error_type or "Error"} if failed else {}
        elif not (field.name.startswith("_") or field.name in LEFT_OUT or found in (None, "", [], {})):
            said[field.name] = found
    if said.get("tool_output"):
        said.pop("content", None)  # the same once more, as text
    return {name: _plain(item) for name, item in said.items()}


def _text_of(value: object) -> str:
    """Dates and the like as text, other objects by their kind only."""
    return value.isoformat() if hasattr(value, "isoformat") else f"({type(value).__name__})"
