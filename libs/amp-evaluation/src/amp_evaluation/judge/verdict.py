"""Reading a judge's reply: for what it says, and never for more than that.

Models wrap the wanted JSON object in fences, prose and reasoning, quote it like Python, break lines inside strings and
write numbers as text; all of that is read at the first try. What holds no score, or a score that can't be one, is no
score: the caller gets the reason, in words that can be sent back to the model.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

__all__ = ["REFUSED", "JudgeOutput", "read_verdict"]

MAX_REPLY_CHARS = 60_000  # a reply beyond it is no verdict; what is read stands at its end
MAX_LITERAL_CHARS = 20_000  # Python's own parser is asked only about blocks of a sane size
MAX_OBJECTS = 50  # places where an object may start that are tried

REFUSED = "the judge's model refused to answer"

REASONING_TAGS = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad"
_REASONING = re.compile(rf"<({REASONING_TAGS})\b[^>]*>.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_REASONING_END = re.compile(rf"</(?:{REASONING_TAGS})\s*>", re.IGNORECASE)
_REASONING_START = re.compile(rf"\s*<(?:{REASONING_TAGS})\b[^>]*>", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\W*(sorry\b|i.?m (very |so )?sorry|i am sorry|i apologi[sz]e|i (can.?t|cannot|can not|won.?t|will not)\b"
    r"|i.?m (unable|not able)|i am (unable|not able)|as an ai\b)",
    re.IGNORECASE,
)
_EXPLANATION_KEYS = ("explanation", "reasoning", "reasons", "reason", "rationale", "justification", "analysis")
# an object whose explanation has quotes that nobody escaped; the score is looked for where nothing else can follow
_SCORE = r"""["']score["']\s*:\s*(?P<score>["']?[-+.\w]+["']?)"""
_SAID = r"""["'](?:explanation|reasoning|reason|rationale)["']\s*:\s*"(?P<said>.*)\""""
_UNESCAPED = tuple(
    re.compile(rf"\{{\s*{first}\s*,\s*{last}\s*,?\s*\}}", re.DOTALL | re.IGNORECASE)
    for first, last in ((_SAID, _SCORE), (_SCORE, _SAID))
)
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
_SCORE_KEY = re.compile(r"""\bscore["']?\s*:""", re.IGNORECASE)
_LONE_BACKSLASH = re.compile(r"""\\(?![\\'"abfnrtv0-7xuUN])""")  # Python warns of such, to stderr
_DECODER = json.JSONDecoder(strict=False)
_NAMES = {"true": True, "false": False, "null": None}


class JudgeOutput(BaseModel):
    """What a judge is asked for: an explanation first, then a score in [0, 1]."""

    model_config = ConfigDict(extra="ignore", defer_build=True)

    explanation: str = ""
    score: float = Field(ge=0.0, le=1.0, allow_inf_nan=False)

    @field_validator("score", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        """Numbers, also as text; true, null, lists and words are no numbers."""
        if isinstance(value, str):
            if not _NUMBER.fullmatch(value.strip()):  # float() would also take "0_1" and "nan"
                raise ValueError("is no number")
            return float(value.strip())
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("is no number")
        return value

    @field_validator("explanation", mode="before")
    @classmethod
    def _text(cls, value: object) -> str:
        """Lists of reasons become lines; anything else that isn't text becomes JSON."""
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return "\n".join(cls._text(part) for part in value)
        return json.dumps(value, ensure_ascii=False, default=str)


def read_verdict(content: str | None) -> tuple[JudgeOutput | None, str | None]:
    """The verdict in a reply, or None and what is wrong with the reply."""
    text = _unquoted(_without_reasoning((content or "")[-MAX_REPLY_CHARS:]).strip())
    if not text:
        return None, "the reply is empty"
    found = [verdict for verdict in map(_verdict_in, _objects(text)) if verdict is not None] or _unescaped(text)
    if not found:
        refused = _REFUSAL.match(text)
        return None, REFUSED if refused else "the reply holds no JSON object with a score"
    return _agreed([_validated(fields) for fields in found])


def _without_reasoning(text: str) -> str:
    """The reply after the model's thinking aloud, whose drafts are no verdicts."""
    text = _REASONING.sub("", text)
    text = _REASONING_END.split(text)[-1]  # some servers cut the opening tag away
    return "" if _REASONING_START.match(text) else text


def _unquoted(text: str) -> str:
    """A reply that was encoded twice is one JSON string with the object in it."""
    if not (text.startswith('"') and text.endswith('"')):
        return text
    try:
        value = _DECODER.decode(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else text


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every top-level object in the text, as JSON or as a Python literal."""
    position, tries = text.find("{"), 0
    while position >= 0 and tries < MAX_OBJECTS:
        value, end = _object_at(text, position)
        if value is not None:
            yield value
        position, tries = text.find("{", end), tries + 1


def _object_at(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    """The object that starts here, if one does, and where to look on."""
    try:
        value, end = _DECODER.raw_decode(text, start)
        return value, end
    except (ValueError, RecursionError):
        block = _balanced(text, start)
    value = _literal(block) if block else None
    return value, start + (len(block) if block and value is not None else 1)


def _balanced(text: str, start: int) -> str | None:
    """The text from an opening brace to the one that closes it; braces in quotes don't count."""
    depth, quote, escaped = 0, "", False
    for position in range(start, min(len(text), start + MAX_LITERAL_CHARS)):
        char = text[position]
        if quote:
            quote = "" if char == quote and not escaped else quote
            escaped = char == "\\" and not escaped
        elif char == '"' or (char == "'" and not text[position - 1].isalnum()):
            quote = char
        elif char in "{}":
            depth += 1 if char == "{" else -1
            if depth == 0:
                return text[start : position + 1]
    return None


def _literal(block: str) -> dict[str, Any] | None:
    """A dict as Python or JavaScript would write it: single quotes, bare keys, trailing commas, true, false, null."""
    try:
        tree = ast.parse(_LONE_BACKSLASH.sub(r"\\\\", " ".join(block.splitlines())), mode="eval")
        value = ast.literal_eval(_Constants().visit(tree))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class _Constants(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(_NAMES[node.id]) if node.id in _NAMES else node

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        node.keys = [ast.Constant(key.id) if isinstance(key, ast.Name) else key for key in node.keys]
        return self.generic_visit(node)


def _unescaped(text: str) -> list[dict[str, Any]]:
    """The fields of a verdict whose explanation quotes without escapes; none when it could hold a score of its own."""
    block = text[text.find("{") : text.rfind("}") + 1]
    if len(block) > MAX_LITERAL_CHARS or len(_SCORE_KEY.findall(block)) != 1:
        return []
    for pattern in _UNESCAPED:
        match = pattern.fullmatch(block)
        if match is not None:
            return [{"score": match["score"].strip("\"'"), "explanation": match["said"]}]
    return []


def _verdict_in(found: dict[Any, Any]) -> dict[str, Any] | None:
    """The fields of a verdict: of the object, or of the only verdict in an envelope around it."""
    fields = {str(key).strip().lower(): value for key, value in found.items()}
    if "score" in fields:
        explanation = next((fields[key] for key in _EXPLANATION_KEYS if fields.get(key)), None)
        return {"score": fields["score"], "explanation": explanation}
    inner = [value for value in fields.values() if isinstance(value, dict) and _has_score(value)]
    return _verdict_in(inner[0]) if len(inner) == 1 else None


def _has_score(value: dict[Any, Any]) -> bool:
    return any(str(key).strip().lower() == "score" for key in value)


def _validated(fields: dict[str, Any]) -> JudgeOutput | str:
    try:
        return JudgeOutput.model_validate(fields)
    except ValidationError:
        return f"the score must be a number from 0 to 1, not {_shown(fields['score'])}"


def _shown(value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, default=str)[:40]


def _agreed(outcomes: list[JudgeOutput | str]) -> tuple[JudgeOutput | None, str | None]:
    """The last verdict, when all verdicts of the reply say the same."""
    last = outcomes[-1]
    if len({outcome.score if isinstance(outcome, JudgeOutput) else outcome for outcome in outcomes}) > 1:
        return None, "the reply holds more than one score"
    return (None, last) if isinstance(last, str) else (last, None)
