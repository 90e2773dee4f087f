"""The platform's list of evaluators: JSON entries, each checked for its form before an evaluator is made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amp_evaluation.errors import ConfigError
from amp_evaluation.models import EvaluationLevel
from amp_evaluation.publish import MAX_NAME_CHARS, storable

__all__ = ["EvaluatorEntry", "parse_entry", "read_entries"]


@dataclass(frozen=True, kw_only=True)
class EvaluatorEntry:
    """One entry of the evaluators list. `kind` is None for a built-in, else "code" or "llm_judge"."""

    identifier: str
    display_name: str
    config: dict[str, Any]
    kind: str | None
    level: str | None
    source: str
    schema_keys: tuple[str, ...]


KEYS = "identifier, displayName, config, type, level, source, configSchema"
"""What an entry can have, for the person who misspelt one."""


def read_entries(text: str) -> list[Any]:
    """The JSON array, given in the flag itself or in a file (`@path`)."""
    given = f"--evaluators={text[:100]!r}"
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            raise ConfigError(f"{given} can't be read: {error}") from error
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        hint = f"; to read that file, write --evaluators=@{text}" if _is_file(text) else ""
        raise ConfigError(f"{given} is not JSON: {error}{hint}") from error
    if not isinstance(entries, list) or not entries:
        raise ConfigError(f"{given}: a JSON array with at least one evaluator is wanted")
    return entries


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # far too long for a path, or holding a NUL
        return False


def parse_entry(entry: Any) -> EvaluatorEntry:
    """One entry of the list, its form checked. Unknown keys are the platform's own and left alone."""
    if not isinstance(entry, dict):
        raise ConfigError(f"an object is wanted, not {entry!r:.100}")
    kind = entry.get("type") or None
    if kind not in (None, "code", "llm_judge"):
        raise ConfigError(f"type {kind!r:.100} is unknown: leave it out for a built-in, or give code or llm_judge")
    level = entry.get("level") or None
    if level is not None and level not in tuple(EvaluationLevel):
        raise ConfigError(f"level {level!r:.100} is unknown: trace, agent or llm is wanted")
    config = entry.get("config")
    if config is not None and not isinstance(config, dict):
        raise ConfigError(f"config must be an object, not {config!r:.100}")
    schema = entry.get("configSchema")
    keys = [field.get("key") for field in schema if isinstance(field, dict)] if isinstance(schema, list) else []
    return EvaluatorEntry(
        identifier=_name(entry, "identifier"),
        display_name=_name(entry, "displayName"),
        config=config or {},
        kind=kind,
        level=level,
        source=_source(entry, kind),
        schema_keys=tuple(key for key in keys if isinstance(key, str)),
    )


def _name(entry: Mapping[str, Any], key: str) -> str:
    """A name that the publisher can store as it is."""
    value = entry.get(key)
    name = storable(value) if isinstance(value, str) else ""
    if not name.strip():
        wrong = f"is {value!r:.100}" if key in entry else f"is missing (an entry has {KEYS})"
        raise ConfigError(f"{key} {wrong}: a text is wanted")
    if len(name) > MAX_NAME_CHARS:
        raise ConfigError(f"{key} has {len(name)} characters: at most {MAX_NAME_CHARS} can be stored")
    return name


def _source(entry: Mapping[str, Any], kind: str | None) -> str:
    source = entry.get("source")
    if kind is None:
        return ""
    if kind == "llm_judge" and source is None:
        return ""
    if not isinstance(source, str) or not source.strip():
        raise ConfigError(f"source is missing: type {kind} needs a text")
    return source
