"""Tries the peers of a run, each once, and says what to do where one fails. Nothing is evaluated or stored."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amp_evaluation._oauth import IDENTITY_PROVIDER
from amp_evaluation._publisher import PUBLISHER
from amp_evaluation.errors import AmpEvaluationError, PeerError, RefusedError, TransientError
from amp_evaluation.evaluators._base import BaseEvaluator
from amp_evaluation.evaluators._llm_judge import LLMAsJudgeEvaluator
from amp_evaluation.http import HttpClient, RetryPolicy, TokenProvider
from amp_evaluation.judge._habits import Request
from amp_evaluation.judge.usage import UsageMeter
from amp_evaluation.trace._export import EXPORT_PATH
from amp_evaluation.trace._wire import decode_page
from amp_evaluation.trace.fetcher import ROLE as TRACES_API

if TYPE_CHECKING:
    from amp_evaluation.config import Config

__all__ = ["PeerCheck", "check_judges", "check_services", "table_lines"]

ONE_TRY = RetryPolicy(delays=())
EMPTY_BODY = b'{"individualScores":[],"aggregatedScores":[]}'
"""A publisher refuses it with 400 after it has accepted the token: reached, and nothing is stored."""

QUESTION = "Reply with the word yes."
ANSWER_TOKENS = 16

ADVICE: dict[int | None, str] = {
    None: "check the address, the network policy and the proxy settings",
    400: "check the flags that name the monitored agent",
    401: "check IDP_CLIENT_ID, IDP_CLIENT_SECRET and which audience the token is for",
    403: "the client lacks the rights for this: ask the platform's operator",
    404: "the address is there, what it was asked for isn't",
    429: "it asks for patience: try again later",
}
MEND_FIRST = f"mend the {IDENTITY_PROVIDER} first"
TRY_LATER = "its own fault, or a proxy's: try again later, then ask its operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerCheck:
    """What one try at one peer gave; `advice` is empty when it passed."""

    peer: str
    passed: bool
    detail: str
    advice: str = ""


def check_services(
    tokens: TokenProvider,
    *,
    traces_url: str | None,
    query: Mapping[str, str],
    publisher_url: str | None,
    scores_path: str,
    retry: RetryPolicy,
) -> Iterator[PeerCheck]:
    """The identity provider, then the services that there is a URL of; without a token they aren't asked."""
    token = check_token(tokens)
    yield token
    asked: list[tuple[str, str | None, Callable[[HttpClient], PeerCheck]]] = [
        (TRACES_API, traces_url, lambda client: check_traces(client, query, tokens)),
        (PUBLISHER, publisher_url, lambda client: check_publisher(client, scores_path, tokens)),
    ]
    for role, url, check in asked:
        if url is not None and not token.passed:
            yield untried(role)
        elif url is not None:
            with closing(HttpClient(role, url, retry=retry)) as client:
                yield check(client)


def check_token(tokens: TokenProvider) -> PeerCheck:
    """One access token from the identity provider."""
    return _tried(IDENTITY_PROVIDER, lambda: (tokens(), "a token was given")[1], "check IDP_TOKEN_URL")


def check_traces(client: HttpClient, query: Mapping[str, str], tokens: TokenProvider) -> PeerCheck:
    """One page of one trace; `query` names the monitored agent and the window."""

    def fetch() -> str:
        asked = {**query, "limit": "1", "sortOrder": "asc"}
        reply = client.get(EXPORT_PATH, params=asked, token=tokens, retry=False)
        try:
            found = decode_page(reply.body).traces
        except ValueError:
            raise RefusedError(client.role, "a reply that holds no traces") from None
        return "a trace of the window was read" if found else "it answers; the window holds no trace"

    return _tried(client.role, fetch, "check --traces-api-endpoint")


def check_publisher(client: HttpClient, path: str, tokens: TokenProvider) -> PeerCheck:
    """A body without scores, which the publisher has to refuse with 400 once it knows who asks."""

    def post() -> str:
        try:
            client.post(path, body=EMPTY_BODY, content_type="application/json", token=tokens, retry=False)
        except RefusedError as refusal:
            if refusal.status != 400:
                raise
        return "it answers and accepts the token; nothing was stored"

    return _tried(client.role, post, "check --publisher-endpoint, --monitor-id and --run-id")


def check_judges(evaluators: Iterable[BaseEvaluator], config: Config) -> Iterator[PeerCheck]:
    """One tiny question to each model that a run would ask; a judge whose template is broken asks none."""
    judges = [e for e in evaluators if isinstance(e, LLMAsJudgeEvaluator) and not getattr(e, "defect", None)]
    key = "LLM_API_BASE and LLM_API_KEY" if config.llm_judge.api_base else "its provider's key"
    for model in sorted({judge.model for judge in judges}):
        yield _tried(f"judge {model}", _Question(model, config), f"check the model's name, and {key}")


def untried(role: str) -> PeerCheck:
    """A peer that is asked with a token, where there is none: the identity provider isn't asked again for it."""
    return PeerCheck(peer=role, passed=False, detail="not tried without a token", advice=MEND_FIRST)


@dataclass(frozen=True, slots=True)
class _Question:
    """Asks one model; the judge client is imported only when there is one to ask."""

    model: str
    config: Config

    def __call__(self) -> str:
        shared = importlib.import_module("amp_evaluation.judge.shared")
        client = shared.take(self.config, ONE_TRY)
        try:
            client.complete(Request(model=self.model, prompt=QUESTION, max_tokens=ANSWER_TOKENS), UsageMeter())
        finally:
            shared.give_back(client)
        return "it answered"


def _tried(peer: str, call: Callable[[], str], where: str) -> PeerCheck:
    try:
        return PeerCheck(peer=peer, passed=True, detail=call())
    except PeerError as error:
        lent = error.role == IDENTITY_PROVIDER != peer  # the token was refused, and then a new one wasn't given
        advice = MEND_FIRST if lent else _advice(error, where)
        return PeerCheck(peer=peer, passed=False, detail=str(error), advice=advice)
    except AmpEvaluationError as error:
        return PeerCheck(peer=peer, passed=False, detail=str(error), advice=where)


def _advice(error: PeerError, where: str) -> str:
    if isinstance(error, TransientError) and error.status is not None and error.status != 429:
        return TRY_LATER
    general = ADVICE.get(error.status, "")
    return f"{where}; {general}" if general else where


def table_lines(checks: Iterable[PeerCheck]) -> Iterator[str]:
    """Peer, pass or FAIL, what was seen, what to do."""
    rows = list(checks)
    if not rows:
        yield "no peer to try: traces and scores are files, and no evaluator asks a model"
    width = max((len(row.peer) for row in rows), default=0)
    for row in rows:
        yield f"{row.peer:{width}}  {'pass' if row.passed else 'FAIL'}  {row.detail}"
        if row.advice:
            yield f"{'':{width}}        → {row.advice}"
