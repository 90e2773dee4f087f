"""Calls to the judges' models: one client a run, shared by all judges, used from many threads at once.

What is learnt on one call holds for all that follow: a parameter that a model refuses, a provider that asks for
patience, an endpoint that is down, a key that isn't accepted. Retries follow the one policy of all peers; while a call
waits between tries it gives its slot of the run to others.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from amp_evaluation._pool import released_slot
from amp_evaluation._retry import RetryPolicy
from amp_evaluation.errors import TransientError
from amp_evaluation.judge._habits import JudgeReply, ModelHabits, Request
from amp_evaluation.judge._health import Health, Throttle
from amp_evaluation.judge._loop import run_on_loop
from amp_evaluation.judge.faults import (
    BadReplyError,
    CallRefusedError,
    ContextTooLongError,
    JudgeStoppedError,
    ParameterRefusedError,
    no_answer,
    read_failure,
)
from amp_evaluation.judge.gateway import CONNECT_TIMEOUT_S, Access, Provider, Route, build_provider, resolve
from amp_evaluation.judge.usage import UsageMeter
from amp_evaluation.judge.verdict import REFUSED

__all__ = ["JudgeClient", "JudgeReply", "Request"]

log = logging.getLogger("amp_evaluation.judge")

CLOSE_TIMEOUT_S = 2.0
ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
NOT_INSTALLED = "the judge client is not installed: pip install 'amp-evaluation[any-llm]'"


class _Peer:
    """One provider over a run: its client, made once, and what is known of it."""

    def __init__(self, name: str, access: Access, policy: RetryPolicy) -> None:
        self.name = name
        self.health = Health(f"judge {name}", sum(policy.delays), policy.clock)
        self.throttle = Throttle(access.connections, policy.clock)
        self._access = access
        self._lock = threading.Lock()
        self._provider: Provider | None = None
        self._habits: dict[str, ModelHabits] = {}

    def habits(self, model: str) -> ModelHabits:
        with self._lock:
            return self._habits.setdefault(model, ModelHabits(self.name))

    def provider(self) -> Provider:
        """The client; what hinders its making is the end of all judges that use it."""
        with self._lock:
            if self._provider is None:
                self._provider = _built(self.name, self._access)
            return self._provider

    def close(self) -> None:
        with self._lock:
            made, self._provider = self._provider, None
        if made is not None:
            run_on_loop(_close(made))


class JudgeClient:
    """Asks models. `complete` is safe to call from several threads; `close` ends the connections."""

    def __init__(self, access: Access, policy: RetryPolicy | None = None) -> None:
        self._access = access
        self._policy = policy or RetryPolicy()
        self._lock = threading.Lock()
        self._peers: dict[str, _Peer] = {}
        self._routes: dict[str, Route] = {}
        self._in_flight = threading.BoundedSemaphore(access.connections)

    def complete(self, request: Request, meter: UsageMeter, *, again: bool = False) -> JudgeReply:
        """The model's reply; `again`: the same question has been asked before.

        Raises JudgeError by class (faults.py), and TransientError when the retries are used up.
        """
        route = self._route(request.model)
        peer = self._peer(route.provider)
        begin, attempt = self._policy.clock(), 0
        while True:
            peer.health.check(route.model)
            try:
                return self._ask(peer, route, request, meter, again=again)
            except ParameterRefusedError as refusal:
                log.debug("%s: %s", peer.health.role, refusal)
            except TransientError as error:
                self._pause(peer, error, attempt, self._policy.clock() - begin)
                attempt += 1
            except JudgeStoppedError as stop:
                known = peer.health.stop(stop, route.model)
                peer.throttle.wake()
                raise known from stop
            again = True

    def outage(self, model: str) -> JudgeStoppedError | None:
        """At the end of a run: the reason why this model gave nothing, if that is so."""
        route = self._route(model)
        health = self._peer(route.provider).health
        diagnosis = health.diagnosis(at_end=True)
        if diagnosis is not None and not health.is_stopped(route.model):
            health.stop(diagnosis, route.model)
        try:
            health.check(route.model)
        except JudgeStoppedError as stop:
            return stop
        return None

    def close(self) -> None:
        """Close what was opened; a later call opens it again."""
        for peer in list(self._peers.values()):
            peer.close()

    def _ask(self, peer: _Peer, route: Route, request: Request, meter: UsageMeter, *, again: bool) -> JudgeReply:
        """One try, and what it tells about the provider and the model."""
        provider, habits = peer.provider(), peer.habits(route.model)
        arguments, sent = habits.arguments(route.model, request)
        with peer.throttle.turn(lambda: peer.health.is_stopped(route.model)), self._in_flight:
            peer.health.check(route.model)
            meter.sent(again=again)
            try:
                completion = self._exchange(peer, provider, arguments, sent)
            except ParameterRefusedError as refusal:
                if not habits.learn(refusal, sent):
                    raise CallRefusedError(str(refusal)) from refusal
                raise
            except (CallRefusedError, BadReplyError, ContextTooLongError) as error:
                _note_refusal(peer.health, error)
                _give_up_if_due(peer)
                raise
        peer.health.answered()
        peer.throttle.answered()
        meter.answered(route.provider, route.model, *_tokens(completion))
        return _reply(completion)

    def _exchange(self, peer: _Peer, provider: Provider, arguments: dict[str, Any], sent: frozenset[str]) -> Any:
        """One request and its reply; every failure as one of our own classes."""
        limit, role, begin = self._access.timeout_s, peer.health.role, time.monotonic()
        try:
            return run_on_loop(_bounded(provider, arguments, limit + CONNECT_TIMEOUT_S))
        except TimeoutError:
            failure: Exception = no_answer(role, limit)
        except Exception as error:
            original = getattr(error, "original_exception", None) or error
            silent = isinstance(original, provider.no_answer)
            late = time.monotonic() - begin >= min(limit, CONNECT_TIMEOUT_S)
            failure = no_answer(role, limit if late else None) if silent else read_failure(error, role=role, sent=sent)
        # outside the handler: the provider's own error, with its texts, must not hang on as a context
        raise failure

    def _pause(self, peer: _Peer, error: TransientError, attempt: int, elapsed: float) -> None:
        """Wait for the next try, or give up: the call, or the provider."""
        peer.health.failed(error)
        delay = self._policy.next_delay(attempt, error, elapsed)
        if delay is None:
            peer.health.lost()
        _give_up_if_due(peer)
        if delay is None:
            raise error
        self._policy.log_retry(error, attempt, delay)
        if error.status == 429:
            peer.throttle.slow_down(delay)
        with released_slot():
            peer.health.given_up.wait(delay)

    def _route(self, model: str) -> Route:
        with self._lock:
            route = self._routes.get(model)
            if route is None:
                route = self._routes[model] = resolve(model, gateway=self._access.gateway)
                if route.warning:
                    log.warning("%s", route.warning)
            return route

    def _peer(self, name: str) -> _Peer:
        with self._lock:
            if name not in self._peers:
                self._peers[name] = _Peer(name, self._access, self._policy)
            return self._peers[name]


@contextmanager
def _without_collection() -> Iterator[None]:
    """Importing two thousand modules of data classes takes a sixth longer when each batch of them is searched."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _built(name: str, access: Access) -> Provider:
    try:
        with _without_collection():
            return build_provider(name, access)
    except ImportError as error:
        missing = str(error.name or "").partition(".")[0]
        reason = NOT_INSTALLED if missing == "any_llm" else f"the library of provider {name!r} is not installed"
    except Exception as error:
        variable = getattr(error, "env_var_name", None)
        reason = f"no key for provider {name!r}: set {variable}" if variable else _shown(name, error, access)
    raise JudgeStoppedError(reason, whole_provider=True)


def _shown(name: str, error: Exception, access: Access) -> str:
    text = ADDRESS.sub("(address)", str(error)).replace(access.key or "\0", "(key)").partition("\n")[0]
    return f"the client of provider {name!r} can't be made: {text[:200]}"


async def _bounded(provider: Provider, arguments: dict[str, Any], limit_s: float) -> Any:
    async with asyncio.timeout(limit_s):
        return await provider.complete(**arguments)


async def _close(provider: Provider) -> None:
    for closer in provider.closers:
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await closer()
        except Exception:
            log.debug("a judge client didn't close", exc_info=True)


def _give_up_if_due(peer: _Peer) -> None:
    """Raise when failures or refusals in a row say that the provider is of no use in this run."""
    diagnosis = peer.health.diagnosis()
    if diagnosis is not None:
        stop = peer.health.stop(diagnosis, "")
        peer.throttle.wake()
        raise stop


def _note_refusal(health: Health, error: Exception) -> None:
    """Refusals of what one text holds say nothing about the next; a refusal of every request does."""
    if isinstance(error, ContextTooLongError) or (isinstance(error, CallRefusedError) and error.blocked):
        health.answered()
    else:
        health.refused()


def _tokens(completion: Any) -> tuple[int | None, int | None]:
    usage = getattr(completion, "usage", None)
    counts = (getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens"))
    used_in, used_out = (count if isinstance(count, int) and count >= 0 else None for count in counts)
    return used_in, used_out


def _reply(completion: Any) -> JudgeReply:
    """The text of the first choice; BadReplyError when there is none."""
    choices = getattr(completion, "choices", None)
    if not choices:
        raise BadReplyError("the reply holds no choices")
    message, ended = choices[0].message, choices[0].finish_reason
    if ended == "content_filter":
        raise BadReplyError("the judge's reply was blocked by a content filter", final=True)
    if getattr(message, "refusal", None):
        raise BadReplyError(REFUSED)
    content = message.content if isinstance(message.content, str) else ""
    if not content and ended != "length":
        raise BadReplyError("the reply is empty")
    return JudgeReply(content, cut_off=ended == "length")
