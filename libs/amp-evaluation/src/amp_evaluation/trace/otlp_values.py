"""OTLP's values as plain Python ones: attributes, typed values, ids, in every spelling that writers use."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import msgspec

JsonValue: TypeAlias = Any
"""Any JSON value as Python's `json` gives it."""

_HEX = re.compile(r"(?:[0-9a-fA-F]{16}|[0-9a-fA-F]{32})\Z")
_ID_BYTES_OF_BASE64: Final = {24: 16, 12: 8}
"""Length of the base64 text of an id → bytes of the id."""


def plain_attributes(raw: JsonValue) -> dict[str, JsonValue]:
    """A list of keys with typed values (as bytes or decoded; a dict is taken as it is) as a plain dict."""
    if isinstance(raw, dict):
        return raw
    return {
        key: plain_value(item.get("value"))
        for item in objects_in(plain_json(raw))
        if isinstance(key := item.get("key"), str)
    }


def plain_json(raw: JsonValue) -> JsonValue:
    """The JSON value of these bytes, None for none; a value that is decoded already passes through."""
    if not isinstance(raw, msgspec.Raw):
        return raw
    data = bytes(raw)
    if not data:
        return None
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return json.loads(data.decode("utf-8", "replace"))  # lone surrogates


def opened(value: JsonValue) -> JsonValue:
    """The object in a text that is JSON of one; anything else as it is."""
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def plain_value(value: JsonValue) -> JsonValue:
    """OTLP's AnyValue as a plain Python value; one that is none of its kinds passes through."""
    if not isinstance(value, dict):
        return value
    for kind, inner in value.items():
        convert = _KINDS.get(kind)
        if convert is not None:
            return convert(inner)
    return value or None


def _same(value: JsonValue) -> JsonValue:
    return value


def _integer(value: JsonValue) -> JsonValue:
    number = whole_number(value)
    return value if number is None else number


def _double(value: JsonValue) -> JsonValue:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def _array(value: JsonValue) -> list[JsonValue]:
    return [plain_value(item) for item in object_in(value).get("values") or ()]


def _key_list(value: JsonValue) -> dict[str, JsonValue]:
    return plain_attributes(object_in(value).get("values") or [])


_KINDS: dict[str, Callable[[JsonValue], JsonValue]] = {
    "stringValue": _same,
    "intValue": _integer,
    "doubleValue": _double,
    "boolValue": _same,
    "arrayValue": _array,
    "kvlistValue": _key_list,
    "bytesValue": _same,
    "string_value": _same,
    "int_value": _integer,
    "double_value": _double,
    "bool_value": _same,
    "array_value": _array,
    "kvlist_value": _key_list,
    "bytes_value": _same,
}


def hex_id(text: str | None) -> str:
    """A trace or span id as lower-case hex, whether it came as hex or as base64; "" for none or all zeros."""
    if not text:
        return ""
    if not _HEX.match(text):
        text = _from_base64(text)
    return text.lower() if text.strip("0") else ""


def _from_base64(text: str) -> str:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text
    return data.hex() if len(data) == _ID_BYTES_OF_BASE64.get(len(text)) else text


def object_in(value: JsonValue) -> dict[str, JsonValue]:
    """The object itself, {} for anything else."""
    return value if isinstance(value, dict) else {}


def objects_in(value: JsonValue) -> Iterator[dict[str, JsonValue]]:
    """The objects of a list; none of anything else."""
    return (item for item in (value if isinstance(value, list) else ()) if isinstance(item, dict))


def whole_number(value: JsonValue) -> int | None:
    """A whole number, also from text; None for anything else."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None
