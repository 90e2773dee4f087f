"""Texts of others as they may be shown to a person."""

from __future__ import annotations

import re

__all__ = ["visible"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Control characters and direction marks spelled out: a trace must not steer the reader's terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)
