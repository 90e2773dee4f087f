"""The platform's list of evaluators: which entries are taken, and what is said of the others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from amp_evaluation.errors import ConfigError
from amp_evaluation.evaluators._entries import parse_entry, read_entries

PLAIN = {"identifier": "latency_performance", "displayName": "Latency"}


@pytest.mark.parametrize(
    ("text", "told"),
    [("", "not JSON"), ("{}", "array"), ("[]", "at least one"), ("[" * 100_000, "not JSON"), ("@no/file", "no/file")],
)
def test_a_list_that_is_none_is_refused(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_entries(text)


def test_a_path_without_its_at_sign_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps([PLAIN]), encoding="utf-8")
    with pytest.raises(ConfigError, match=f"write --evaluators=@{re.escape(str(path))}$"):
        read_entries(str(path))


def test_a_file_that_is_not_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("def f(trace): ...", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"list\.json' is not JSON"):
        read_entries(f"@{tmp_path / 'list.json'}")


def test_who_misspells_a_key_is_told_the_keys_that_exist() -> None:
    with pytest.raises(ConfigError, match="an entry has identifier, displayName, config, type"):
        parse_entry({"name": "latency_performance", "display_name": "L"})


def test_a_list_comes_from_a_file_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    for mark in ("", "\ufeff"):
        (tmp_path / "list.json").write_text(mark + json.dumps([PLAIN]), encoding="utf-8")
        assert read_entries(f"@{tmp_path / 'list.json'}") == [PLAIN]


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="can't be read"):
        read_entries(f"@{tmp_path / 'list.json'}")


def test_what_the_platform_leaves_empty_counts_as_absent() -> None:
    entry = parse_entry(PLAIN | {"config": None, "type": "", "level": None, "configSchema": None, "icon": "x"})
    assert (entry.config, entry.kind, entry.level, entry.source, entry.schema_keys) == ({}, None, None, "", ())


def test_the_schemas_keys_are_the_names_a_template_may_use() -> None:
    judge = PLAIN | {"type": "llm_judge", "source": "{tone}", "configSchema": [{"key": "tone"}, {"key": 3}, "odd", {}]}
    assert parse_entry(judge).schema_keys == ("tone",)


def test_a_judge_may_come_without_a_source_and_code_may_not() -> None:
    assert parse_entry(PLAIN | {"type": "llm_judge"}).source == ""
    with pytest.raises(ConfigError, match="source is missing"):
        parse_entry(PLAIN | {"type": "code", "source": " "})


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        pytest.param("latency", "an object is wanted", id="a text"),
        pytest.param({"displayName": "L"}, "identifier is missing", id="no identifier"),
        pytest.param(PLAIN | {"displayName": 3}, "displayName is 3: a text is wanted", id="a number for a name"),
        pytest.param(
            PLAIN | {"displayName": "\x00 "}, "displayName is '.x00 ': a text", id="a name of nothing storable"
        ),
        pytest.param(PLAIN | {"displayName": "n" * 256}, "256 characters", id="a name that is too long"),
        pytest.param(PLAIN | {"config": []}, "config must be an object", id="a list for config"),
        pytest.param(PLAIN | {"type": "python"}, "type 'python'", id="an unknown type"),
        pytest.param(PLAIN | {"type": ["code"]}, "type", id="a list for the type"),
        pytest.param(PLAIN | {"level": "Trace"}, "level 'Trace'", id="an unknown level"),
        pytest.param(PLAIN | {"level": {}, "type": {"a": 1}}, "type", id="an object for the type"),
        pytest.param(PLAIN | {"type": "llm_judge", "source": 5}, "source is missing", id="a number for a source"),
    ],
)
def test_a_wrong_entry_says_what_is_wanted(entry: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_entry(entry)


def test_names_lose_what_the_publisher_can_not_store() -> None:
    assert parse_entry(PLAIN | {"displayName": "La\x00ten\ud83dcy"}).display_name == "Latency"
