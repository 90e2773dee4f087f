"""Settings of a run: every `AMP_*` variable, read from the environment and from a `.env` file in the working directory.

Nothing is read when this module is imported. `Config()` reads the variables once; `get_config()` does it on first use
and hands out one shared object from then on. An empty variable counts as unset. A value that can't be used is a
`ConfigError` that names the variable, the value and the rule; all faults are reported together.

What is passed by keyword wins over the environment, which wins over `.env`:

    Config(agent=AgentConfig(organization="acme"), monitor=MonitorConfig(max_concurrency=4))

The classes are loaded when they are first used (PEP 562): the settings library is a tenth of a program's start.
"""

import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amp_evaluation._settings import (
        AgentConfig,
        CodeEvaluatorConfig,
        Config,
        LLMJudgeConfig,
        MonitorConfig,
        Secret,
        TraceConfig,
    )

__all__ = [
    "AgentConfig",
    "CodeEvaluatorConfig",
    "Config",
    "LLMJudgeConfig",
    "MonitorConfig",
    "Secret",
    "TraceConfig",
    "get_config",
    "reload_config",
]

_HOME = "amp_evaluation._settings"
_LAZY = frozenset(__all__) - {"get_config", "reload_config"}
_lock = threading.Lock()
_shared: "Config | None" = None


def get_config() -> "Config":
    """The one shared Config, made on first use. Raises ConfigError when a variable can't be used."""
    global _shared
    with _lock:
        if _shared is None:
            _shared = _new()
        return _shared


def reload_config() -> "Config":
    """Read the environment and `.env` anew; what it returns is the shared Config from now on."""
    global _shared
    config = _new()
    with _lock:
        _shared = config
    return config


def _new() -> "Config":
    made: Config = __getattr__("Config")()
    return made


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
