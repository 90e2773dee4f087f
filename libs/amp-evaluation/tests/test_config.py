"""Settings: where values come from, which are refused, and what is never shown."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import amp_evaluation.config as config_module
from amp_evaluation.config import (
    AgentConfig,
    CodeEvaluatorConfig,
    Config,
    LLMJudgeConfig,
    MonitorConfig,
    TraceConfig,
    get_config,
    reload_config,
)
from amp_evaluation.errors import ConfigError


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No AMP_* variable and no .env of the machine."""
    for name in [name for name in os.environ if name.upper().startswith("AMP_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    yield
    for name in [name for name in os.environ if name.startswith("AMP_")]:
        monkeypatch.delenv(name)
    reload_config()


def test_defaults_hold_without_any_variable() -> None:
    config = Config()
    assert config.agent == AgentConfig(organization="", project="", agent="", environment="")
    assert (config.trace.file_path, config.trace.mapping_path, config.trace.window_margin_seconds) == (None, None, 60)
    assert config.llm_judge.default_model == "gpt-4o-mini"
    assert (config.llm_judge.api_base, config.llm_judge.api_key) == (None, None)
    assert config.llm_judge.azure_openai_api_version == "2024-10-21"
    assert config.llm_judge.azure_foundry_api_version is None
    assert config.llm_judge.timeout_seconds == 60
    assert (config.monitor.max_concurrency, config.monitor.evaluate_failed) == (16, False)
    assert (config.code_evaluator.timeout_seconds, config.code_evaluator.memory_mb) == (30, 256)


VARIABLES = [
    ("AMP_ORGANIZATION", "acme", lambda c: c.agent.organization, "acme"),
    ("AMP_PROJECT", "shop", lambda c: c.agent.project, "shop"),
    ("AMP_AGENT", "clerk", lambda c: c.agent.agent, "clerk"),
    ("AMP_ENVIRONMENT", "prod", lambda c: c.agent.environment, "prod"),
    ("AMP_TRACE_FILE_PATH", "t.json", lambda c: c.trace.file_path, "t.json"),
    ("AMP_TRACE_MAPPING_PATH", "m.json", lambda c: c.trace.mapping_path, "m.json"),
    ("AMP_TRACE_WINDOW_MARGIN_SECONDS", "0", lambda c: c.trace.window_margin_seconds, 0),
    ("AMP_LLM_JUDGE_DEFAULT_MODEL", "anthropic/c", lambda c: c.llm_judge.default_model, "anthropic/c"),
    ("AMP_LLM_JUDGE_API_BASE", "http://g", lambda c: c.llm_judge.api_base, "http://g"),
    ("AMP_LLM_JUDGE_API_KEY", "k", lambda c: c.llm_judge.api_key, "k"),
    ("AMP_LLM_JUDGE_AZURE_OPENAI_API_VERSION", "1", lambda c: c.llm_judge.azure_openai_api_version, "1"),
    ("AMP_LLM_JUDGE_AZURE_FOUNDRY_API_VERSION", "2", lambda c: c.llm_judge.azure_foundry_api_version, "2"),
    ("AMP_LLM_JUDGE_TIMEOUT_SECONDS", "1.5", lambda c: c.llm_judge.timeout_seconds, 1.5),
    ("AMP_MONITOR_MAX_CONCURRENCY", "4", lambda c: c.monitor.max_concurrency, 4),
    ("AMP_MONITOR_EVALUATE_FAILED", "true", lambda c: c.monitor.evaluate_failed, True),
    ("AMP_CODE_EVALUATOR_TIMEOUT_SECONDS", "5", lambda c: c.code_evaluator.timeout_seconds, 5),
    ("AMP_CODE_EVALUATOR_MEMORY_MB", "64", lambda c: c.code_evaluator.memory_mb, 64),
]


@pytest.mark.parametrize(("name", "text", "read", "value"), VARIABLES, ids=[row[0] for row in VARIABLES])
def test_each_variable_is_read_and_empty_means_unset(name, text, read, value, monkeypatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    unset = read(Config())
    monkeypatch.setenv(name, "")
    assert read(Config()) == unset
    monkeypatch.setenv(name, text)
    assert read(Config()) == value
    monkeypatch.delenv(name)
    (tmp_path / ".env").write_text(f"{name}={text}\nOTHER=1\n")
    assert read(Config()) == value


def test_keyword_beats_environment_beats_env_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("AMP_ORGANIZATION=file\nAMP_PROJECT=file\nAMP_AGENT=file\n")
    monkeypatch.setenv("AMP_ORGANIZATION", "env")
    monkeypatch.setenv("AMP_PROJECT", "env")
    agent = Config(agent=AgentConfig(organization="keyword")).agent
    assert (agent.organization, agent.project, agent.agent) == ("keyword", "env", "file")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AMP_MONITOR_MAX_CONCURRENCY", "0"),
        ("AMP_MONITOR_MAX_CONCURRENCY", "abc"),
        ("AMP_MONITOR_MAX_CONCURRENCY", "1001"),
        ("AMP_MONITOR_EVALUATE_FAILED", "perhaps"),
        ("AMP_TRACE_WINDOW_MARGIN_SECONDS", "-1"),
        ("AMP_TRACE_WINDOW_MARGIN_SECONDS", "nan"),
        ("AMP_LLM_JUDGE_TIMEOUT_SECONDS", "0"),
        ("AMP_LLM_JUDGE_TIMEOUT_SECONDS", "inf"),
        ("AMP_CODE_EVALUATOR_TIMEOUT_SECONDS", "-2"),
        ("AMP_CODE_EVALUATOR_MEMORY_MB", "1.5"),
    ],
)
def test_a_value_out_of_range_is_refused_with_its_name_and_value(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"{name}={value!r}: Input should be"):
        Config()


def test_all_faults_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMP_MONITOR_MAX_CONCURRENCY", "0")
    monkeypatch.setenv("AMP_CODE_EVALUATOR_MEMORY_MB", "x")
    monkeypatch.setenv("AMP_CODE_EVALUATOR_TIMEOUT_SECONDS", "y")
    with pytest.raises(ConfigError) as caught:
        Config()
    assert str(caught.value).count("AMP_") == 3


def test_a_section_made_by_hand_is_checked_too() -> None:
    with pytest.raises(ConfigError, match="AMP_MONITOR_MAX_CONCURRENCY=0"):
        MonitorConfig(max_concurrency=0)
    assert CodeEvaluatorConfig(memory_mb=32).memory_mb == 32
    assert TraceConfig(file_path="").file_path is None


def test_a_secret_is_usable_but_never_shown() -> None:
    section = LLMJudgeConfig(api_key="s3cret")
    config = Config(llm_judge=section)
    assert f"{section.api_key}" == "s3cret"
    assert section.api_key == "s3cret"
    shown = [repr(section.api_key), repr(section), repr(config), str(config), config.model_dump_json()]
    shown.append(str(config.model_dump()))
    assert all("s3cret" not in text for text in shown)
    assert LLMJudgeConfig(api_key="").api_key is None
    assert LLMJudgeConfig().model_dump()["api_key"] is None


def test_the_shared_config_is_one_object_until_it_is_reloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    first = reload_config()
    assert get_config() is first
    monkeypatch.setenv("AMP_AGENT", "later")
    assert get_config().agent.agent == ""
    second = reload_config()
    assert second is get_config()
    assert second.agent.agent == "later"


LATE = """
import sys
import amp_evaluation.config as config
print("pydantic_settings" in sys.modules)
try:
    config.get_config()
except ValueError:
    print("late")
"""


def test_importing_reads_no_variable_and_loads_no_settings_library() -> None:
    environment = {**os.environ, "AMP_MONITOR_MAX_CONCURRENCY": "abc"}
    done = subprocess.run([sys.executable, "-c", LATE], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "late"]


def test_the_module_has_its_classes_and_nothing_else() -> None:
    names = dir(config_module)
    assert {"Config", "LLMJudgeConfig", "get_config"} <= set(names)
    assert all(hasattr(config_module, name) for name in config_module.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Confg'"):
        _ = config_module.Confg


def test_settings_can_come_from_a_mapping_with_given_values_on_top() -> None:
    env = {"AMP_ORGANIZATION": "acme", "AMP_AGENT": "", "AMP_MONITOR_MAX_CONCURRENCY": "3", "PATH": "/"}
    config = Config.from_env(env, agent={"project": "shop"}, monitor={"max_concurrency": 5})
    assert config.agent == AgentConfig(organization="acme", project="shop")
    assert config.monitor.max_concurrency == 5
    with pytest.raises(ConfigError, match="AMP_MONITOR_MAX_CONCURRENCY='0'"):
        Config.from_env({"AMP_MONITOR_MAX_CONCURRENCY": "0"})
