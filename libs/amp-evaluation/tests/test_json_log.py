"""The job's log lines: JSON whatever is logged, and secrets masked."""

from __future__ import annotations

import io
import json
import logging

import pytest

from amp_evaluation._json_log import JsonLines, masker, secrets_of


def logged(level: int, message: str, *args: object, secrets: tuple[str, ...] = (), **more: object) -> dict[str, str]:
    stream = io.BytesIO()
    logger = logging.Logger("some.name", logging.DEBUG)
    logger.addHandler(JsonLines(stream, secrets))
    logger.log(level, message, *args, **more)  # type: ignore[arg-type]
    (line,) = stream.getvalue().splitlines()
    entry: dict[str, str] = json.loads(line)
    return entry


@pytest.mark.parametrize(
    ("level", "name"),
    [(logging.DEBUG, "DEBUG"), (logging.INFO, "INFO"), (logging.WARNING, "WARN"), (logging.CRITICAL, "ERROR")],
)
def test_levels_have_four_names(level: int, name: str) -> None:
    assert logged(level, "x")["level"] == name


@pytest.mark.parametrize("text", ["two\nlines", 'quote " and \\', "🏁", "lone \ud83d", "nul \x00", "\u2028"])
def test_any_text_is_one_line(text: str) -> None:
    entry = logged(logging.INFO, "%s", text)
    assert entry["msg"] == text
    assert entry["logger"] == "some.name"
    assert entry["time"].endswith("Z")


def test_a_stack_trace_stays_inside_its_line() -> None:
    try:
        raise RuntimeError("hidden-value")
    except RuntimeError:
        entry = logged(logging.ERROR, "it failed", exc_info=True, secrets=("hidden-value",))
    assert "RuntimeError: ***" in entry["stack"]


def test_a_stream_that_is_gone_does_not_raise(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.BytesIO()
    stream.close()
    logger = logging.Logger("x")
    logger.addHandler(JsonLines(stream))
    logger.error("lost")
    assert "lost" in capsys.readouterr().err


def test_secrets_are_found_by_the_names_of_their_variables() -> None:
    env = {"IDP_CLIENT_SECRET": "a", "OPENAI_API_KEY": "b", "IDP_TOKEN_URL": "c", "HF_TOKEN": "d", "PGPASSWORD": "e"}
    assert secrets_of(env) == ["a", "b", "d", "e"]


def test_short_placeholders_are_not_masked() -> None:
    assert masker(["x", "abcd"])("x is no abcd") == "x is no ***"
