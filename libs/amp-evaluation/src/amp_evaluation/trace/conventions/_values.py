"""Reading values that instrumentations wrote as text: JSON (at times encoded twice), printed Python objects, parts.

Nothing here evaluates anything, and nothing raises: what can't be read stays as it is.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import msgspec

from amp_evaluation.trace._records import UNREADABLE

MAX_PRINTED = 1_000_000
"""Characters of a printed Python object that are still parsed: `ast` takes about 1 µs a character."""

_decode = msgspec.json.Decoder().decode
_OPENINGS = frozenset('{["')


def from_json(text: str) -> Any:
    """The JSON value that a text holds, opened again where it was encoded twice; the text itself when it is none."""
    value: Any = text
    for _ in range(3):
        if not isinstance(value, str):
            return value
        stripped = value.strip()
        if stripped[:1] not in _OPENINGS:
            return value
        try:
            value = _decode(stripped)
        except UNREADABLE:
            try:
                value = json.loads(stripped, strict=False)
            except (ValueError, RecursionError):
                return value
    return value


def structured(value: Any) -> Any:
    """Objects and lists as they are, JSON text opened, any other text as it is."""
    return from_json(value) if isinstance(value, str) else value


_ENVELOPE = re.compile(
    r'\s*(?:\[\s*)*\{\s*"(?:messages|input_messages|output_messages|inputs|outputs|input|output|role|parts|type|lc|args'
    r'|kwargs|generations|choices|candidates|raw|blocks|init_state|graph|data|id|response|message|memory_step|ctx|ev|goto)"\s*:'
)
_whole = json.JSONDecoder(strict=False)


def is_cut_envelope(text: str) -> bool:
    """JSON that was cut at a length limit inside what frameworks put around a text: it says nothing that was said.

    Other JSON that was cut may be what a model wrote before it ran out of tokens.
    """
    if _ENVELOPE.match(text) is None:
        return False
    try:
        _whole.raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return True
    return False


_ENUM = re.compile(r"<[\w.]+: ('[^'\\]*'|\"[^\"\\]*\"|-?\d+)>")
_PRINTED = re.compile(r"\s*(?:[A-Za-z_][\w.]*\(|[\[(]?\s*\{\s*['\"]|\[\s*[A-Za-z_][\w.]*\()")


def looks_printed(text: str) -> bool:
    """The text starts like a printed Python object: `Name(…`, `{'…`, `[Name(…`."""
    return _PRINTED.match(text) is not None


def printed(text: str) -> Any:
    """A whole printed Python object as plain data; None when it isn't one, or was cut.

    `Name(a=1)` becomes `{"a": 1}`; positional arguments stand under "args".
    """
    if len(text) > MAX_PRINTED or not looks_printed(text):
        return None
    try:
        return _literal(ast.parse(_ENUM.sub(r"\1", text.strip()), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


_MEMBER = re.compile(
    r"(?P<name> [A-Za-z_]\w*=)|(?P<open>[(\[{])|(?P<close>[)\]}])|(['\"])(?:\\.|(?!\4).)*\4", re.DOTALL
)


def printed_members(text: str) -> Any:
    """Members printed without a name around them, as pydantic does: `id=1 source="user"`; None for anything else."""
    if len(text) > MAX_PRINTED or not re.match(r"[A-Za-z_]\w*=", text):
        return None
    depth, parts, start = 0, [], 0
    for mark in _MEMBER.finditer(text):
        depth += (mark["open"] is not None) - (mark["close"] is not None)
        if mark["name"] and depth == 0:
            parts.append(text[start : mark.start()])
            start = mark.start() + 1
    return printed(f"Members({', '.join([*parts, text[start:]])})")


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str | int | float | bool | None) else str(node.value)
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(_literal(key)): _literal(value) for key, value in pairs if key is not None}
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_literal(item) for item in node.elts]
    if isinstance(node, ast.Call):
        made = {word.arg: _literal(word.value) for word in node.keywords if word.arg}
        if node.args:
            made["args"] = [_literal(item) for item in node.args]
        return made
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _literal(node.operand)
        return -value if isinstance(value, int | float) else None
    if isinstance(node, ast.Name | ast.Attribute):
        return ast.unparse(node)
    raise ValueError("no literal")


_TEXT_TYPES = frozenset({"text", "input_text", "output_text", "text_delta", "refusal"})
_QUIET_TYPES = frozenset(
    {"reasoning", "thinking", "redacted_thinking", "tool_call", "tool_use", "function_call", "tool-call", "toolUse"}
    | {
        "tool_call_response",
        "tool_result",
        "function_call_output",
        "tool-return",
        "tool-result",
        "tool_response",
        "reasoning_content",
    }
)
_QUIET_KEYS = ("toolUse", "toolResult", "function_call", "functionCall", "function_response", "functionResponse")
_MEDIA = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "image_file": "image",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
    "document": "document",
    "file": "file",
    "input_file": "file",
    "blob": "file",
    "uri": "file",
    "file_data": "file",
    "inline_data": "file",
}
_DATA_URL = re.compile(r"data:([\w.+/-]{0,100});base64,[A-Za-z0-9+/=_\r\n-]{64,}")


def shorten(text: str) -> str:
    """Data URLs in a text become a short placeholder; a content that is just two quote characters is empty."""
    if text in ('""', "''"):
        return ""
    if ";base64," in text:
        return _DATA_URL.sub(lambda match: f"[{match.group(1) or 'data'}]", text)
    return text


def content_text(content: Any) -> str:
    """A message's content as text: text parts joined by newlines, media a placeholder, calls and thoughts left out."""
    if isinstance(content, str):
        return shorten(_open_parts(content))
    if content is None:
        return ""
    if isinstance(content, list):
        return "\n".join(text for part in content if (text := part_text(part)))
    if isinstance(content, dict):
        found = part_text(content)
        return found if found is not None else json_text(content)
    return json_text(content)


def _open_parts(text: str) -> str:
    """Some write the parts of a content as JSON text in its place: a list of objects that are all parts."""
    if text.startswith("{'"):
        return _of_printed_part(shorten(text))
    if not text.startswith(('[{"', "[{'")) or text[2] + "t" not in text:
        return text
    parts = from_json(text) if text[2] == '"' else printed(shorten(text))
    if isinstance(parts, list) and all(isinstance(part, dict) and _is_part(part) for part in parts):
        return content_text(parts)
    return text


def _is_part(part: dict[str, Any]) -> bool:
    kind = part.get("type")
    if kind is None:
        return set(part) == {"text"}
    return isinstance(kind, str) and ((kind in _TEXT_TYPES and "text" in part) or kind in _MEDIA)


def part_text(part: Any) -> str | None:
    """The text of one part: "" for what is no text of the message, None for an object that is no part at all."""
    if isinstance(part, str):
        return _of_printed_part(shorten(part))
    if isinstance(part, list):
        return content_text(part)
    if not isinstance(part, dict):
        return None if part is None else json_text(part)
    kind = part.get("type") or part.get("block_type") or part.get("part_kind") or part.get("kind")
    if isinstance(kind, str):
        if kind in _QUIET_TYPES:
            return ""
        if kind in _MEDIA:
            return f"[{_media(part, _MEDIA[kind])}]"
    if any(key in part for key in _QUIET_KEYS):
        return ""
    for key in ("text", "content", "value"):
        if isinstance(part.get(key), str):
            return _of_printed_part(shorten(part[key]))
    if isinstance(part.get("text"), dict):
        return part_text(part["text"])
    if isinstance(part.get("content"), list):
        return content_text(part["content"])
    named = next(
        (key for key in ("image", "document", "video", "inline_data", "inlineData", "file_data") if key in part), None
    )
    if named:
        return f"[{_MEDIA.get(named, 'file')}]"
    return "" if isinstance(kind, str) and kind else None


def _of_printed_part(text: str) -> str:
    """The text of a part that was printed where its text should stand; any other text as it is."""
    held = printed(text) if text.startswith("{'") and "'type': " in text else None
    return part_text(held) or "" if isinstance(held, dict) and _is_part(held) else text


def _media(part: dict[str, Any], kind: str) -> str:
    modality = part.get("modality")
    return modality if isinstance(modality, str) and modality in ("image", "audio", "video", "document") else kind


def json_text(value: Any) -> str:
    """Text as it is; anything else as JSON text, never as a Python repr."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError, TypeError):
        return ""
