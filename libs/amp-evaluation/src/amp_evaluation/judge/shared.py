"""One client for all judges of a run: whoever needs it takes a share, the last one to give it back closes it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from amp_evaluation._retry import RetryPolicy
from amp_evaluation.errors import ConfigError
from amp_evaluation.judge.client import JudgeClient
from amp_evaluation.judge.gateway import Access

if TYPE_CHECKING:
    from amp_evaluation.config import Config

__all__ = ["access_from", "give_back", "take"]

_lock = threading.Lock()
_shares: dict[tuple[Access, RetryPolicy], list[JudgeClient]] = {}


def access_from(config: Config) -> Access:
    """How models are reached by these settings. ConfigError when only one of base URL and key is set."""
    judge = config.llm_judge
    if bool(judge.api_base) != bool(judge.api_key):
        missing, given = ("KEY", "BASE") if judge.api_base else ("BASE", "KEY")
        raise ConfigError(
            f"AMP_LLM_JUDGE_API_{given} is set without AMP_LLM_JUDGE_API_{missing}: "
            "set both to use a gateway, neither to call providers directly"
        )
    return Access(
        base=judge.api_base.rstrip("/") if judge.api_base else None,
        key=judge.api_key or None,
        timeout_s=judge.timeout_seconds,
        connections=config.monitor.max_concurrency,
        azure_openai_api_version=judge.azure_openai_api_version,
        azure_foundry_api_version=judge.azure_foundry_api_version,
    )


def take(config: Config, policy: RetryPolicy) -> JudgeClient:
    """The client that others with the same settings use too; a new one when there is none."""
    access = access_from(config)
    with _lock:
        holders = _shares.setdefault((access, policy), [])
        holders.append(holders[0] if holders else JudgeClient(access, policy))
        return holders[0]


def give_back(client: JudgeClient) -> None:
    """One share less; without any the client is closed, and what it learnt is forgotten."""
    with _lock:
        for key, holders in list(_shares.items()):
            if client in holders:
                holders.remove(client)
                if holders:
                    return
                del _shares[key]
    client.close()
