"""What a run learns about a model and its provider, and what hinders a client from being made."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from amp_evaluation._retry import RetryPolicy
from amp_evaluation.errors import PeerTimeoutError, TransientError
from amp_evaluation.judge import prices
from amp_evaluation.judge._habits import ModelHabits
from amp_evaluation.judge._health import Health, Throttle
from amp_evaluation.judge._loop import run_on_loop
from amp_evaluation.judge.client import JudgeClient, Request
from amp_evaluation.judge.faults import JudgeStoppedError, ParameterRefusedError
from amp_evaluation.judge.gateway import Access, Provider
from amp_evaluation.judge.usage import UsageMeter


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class TestHabits:
    def test_a_refusal_of_what_was_not_sent_teaches_nothing(self) -> None:
        habits = ModelHabits("bedrock")
        _, sent = habits.arguments("m", Request(model="m", prompt="p"))
        assert sent == {"temperature", "max_tokens"}
        assert not habits.learn(ParameterRefusedError("response_format", None), sent)

    def test_what_another_call_has_learnt_meanwhile_holds(self) -> None:
        habits = ModelHabits("openai")
        _, sent = habits.arguments("m", Request(model="m", prompt="p"))
        assert habits.learn(ParameterRefusedError("max_tokens", None), sent)
        assert habits.learn(ParameterRefusedError("max_tokens", None), sent)
        arguments, _ = habits.arguments("m", Request(model="m", prompt="p", max_tokens=9))
        assert arguments["extra_body"] == {"max_tokens": 9}

    def test_the_name_that_the_model_asks_for_is_taken_even_if_it_was_sent(self) -> None:
        habits = ModelHabits("openai")
        refusal = ParameterRefusedError("max_tokens", "max_completion_tokens")
        for _ in range(2):
            arguments, sent = habits.arguments("m", Request(model="m", prompt="p"))
            assert arguments["max_tokens"] == 1024  # any-llm's name; it goes out as max_completion_tokens
            assert habits.learn(refusal, sent)
        habits.learn(refusal, sent)
        arguments, later = habits.arguments("m", Request(model="m", prompt="p"))
        assert "max_tokens" not in arguments
        assert habits.learn(refusal, sent)
        assert not habits.learn(refusal, later)

    def test_a_provider_without_a_row_is_asked_like_most(self) -> None:
        arguments, sent = ModelHabits("elsewhere").arguments("m", Request(model="m", prompt="p", max_tokens=5))
        assert arguments["max_tokens"] == 5
        assert sent == {"temperature", "max_tokens", "response_format"}

    @pytest.mark.parametrize(
        ("provider", "expected"),
        [
            pytest.param("groq", {"max_completion_tokens": 5}, id="groq"),
            pytest.param("azure", {"model_extras": {"max_completion_tokens": 5}}, id="azure"),
        ],
    )
    def test_other_names_of_the_limit(self, provider: str, expected: dict[str, Any]) -> None:
        habits = ModelHabits(provider)
        _, sent = habits.arguments("m", Request(model="m", prompt="p"))
        habits.learn(ParameterRefusedError("max_tokens", "max_completion_tokens"), sent)
        arguments, _ = habits.arguments("m", Request(model="m", prompt="p", max_tokens=5))
        assert expected.items() <= arguments.items()


class TestThrottle:
    def turns(self, throttle: Throttle, wanted: int, expected: int) -> int:
        """How many of the `wanted` calls get a turn at once; what is `expected` is waited for, more only shortly."""
        inside, done, entered = [], threading.Event(), threading.Semaphore(0)

        def call() -> None:
            with throttle.turn(lambda: done.is_set()):
                inside.append(1)
                entered.release()
                done.wait()

        threads = [threading.Thread(target=call, daemon=True) for _ in range(wanted)]
        for thread in threads:
            thread.start()
        while entered.acquire(timeout=5 if len(inside) < expected else 0.1):
            pass
        count = len(inside)
        done.set()
        throttle.wake()
        for thread in threads:
            thread.join(timeout=5)
        return count

    def test_its_limit_holds(self) -> None:
        assert self.turns(Throttle(4), 8, expected=4) == 4

    def test_a_429_halves_it_once_for_all_calls_under_way_and_answers_raise_it_again(self) -> None:
        clock = Clock()
        throttle = Throttle(8, clock)
        for _ in range(5):
            throttle.slow_down(2.0)
        clock.now += 2
        assert self.turns(throttle, 10, expected=4) == 4
        for _ in range(60):
            throttle.answered()
        assert self.turns(throttle, 10, expected=8) == 8

    def test_nothing_is_sent_during_the_pause(self) -> None:
        throttle = Throttle(2)
        begin = time.monotonic()
        throttle.slow_down(0.2)
        with throttle.turn(lambda: False):
            assert time.monotonic() - begin >= 0.2

    def test_who_waits_is_let_go_when_the_provider_is_given_up(self) -> None:
        throttle = Throttle(2)
        throttle.slow_down(60)
        begin = time.monotonic()
        with throttle.turn(lambda: True):
            assert time.monotonic() - begin < 30


class TestHealth:
    def health(self) -> tuple[Health, Clock]:
        clock = Clock()
        return Health("judge x", 14.0, clock), clock

    def test_twenty_failures_count_once_they_last(self) -> None:
        health, clock = self.health()
        for _ in range(40):
            health.failed(TransientError("judge x", "HTTP 502", status=502))
        assert health.diagnosis() is None
        clock.now += 14
        stop = health.diagnosis()
        assert stop is not None
        assert stop.repeat_may_help
        assert "HTTP 502" in str(stop)

    def test_an_answer_between_starts_the_count_anew(self) -> None:
        health, clock = self.health()
        for _ in range(19):
            health.failed(TransientError("judge x", "HTTP 502", status=502))
        clock.now += 100
        health.answered()
        for _ in range(19):
            health.failed(TransientError("judge x", "HTTP 502", status=502))
        clock.now += 100
        assert health.diagnosis() is None

    def test_429s_alone_are_no_outage_until_twenty_calls_are_lost(self) -> None:
        health, clock = self.health()
        for _ in range(100):
            health.failed(TransientError("judge x", "HTTP 429", status=429))
        clock.now += 100
        assert health.diagnosis() is None
        for _ in range(20):
            health.lost()
        assert health.diagnosis() is not None

    def test_at_the_end_a_provider_that_never_answered_is_down(self) -> None:
        health, _ = self.health()
        health.lost()
        assert health.diagnosis() is None
        assert health.diagnosis(at_end=True) is not None
        health.answered()
        health.lost()
        assert health.diagnosis(at_end=True) is None

    def test_each_item_gets_an_exception_of_its_own(self) -> None:
        health, _ = self.health()
        health.stop(JudgeStoppedError("gone", whole_provider=True), "m")
        raised = []
        for _ in range(3):
            with pytest.raises(JudgeStoppedError) as caught:
                health.check("other")
            raised.append(caught.value)
        assert len({id(error) for error in raised}) == 3

    def test_a_stopped_model_wakes_nobody_who_waits_for_another(self) -> None:
        health, _ = self.health()
        health.stop(JudgeStoppedError("unknown model"), "m")
        assert not health.given_up.is_set()
        health.stop(JudgeStoppedError("down", whole_provider=True), "m")
        assert health.given_up.is_set()


@pytest.fixture
def no_client_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "any_llm", None)
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    prices._library.cache_clear()
    yield
    prices._library.cache_clear()


def ask(client: JudgeClient, model: str) -> None:
    client.complete(Request(model=model, prompt="p"), UsageMeter())


@pytest.mark.usefixtures("no_client_library")
class TestNotInstalled:
    def test_the_judge_says_how_to_install_it(self) -> None:
        with pytest.raises(JudgeStoppedError, match=r"amp-evaluation\[any-llm\]"):
            ask(JudgeClient(Access()), "openai/m")
        assert gc.isenabled()

    def test_prices_are_unknown(self) -> None:
        assert prices.price_of("openai", "gpt-4o-mini", 1, 1) is None


def test_a_providers_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(JudgeStoppedError, match="library of provider 'bedrock' is not installed"):
        ask(JudgeClient(Access(base="http://127.0.0.1:9", key="k")), "bedrock/m")


def test_an_address_or_a_key_is_not_repeated_in_what_hinders_a_client() -> None:
    with pytest.raises(JudgeStoppedError, match="can't be made") as caught:
        ask(JudgeClient(Access(base="no-address-k-secret", key="k-secret")), "bedrock/m")
    assert "k-secret" not in str(caught.value)


def test_a_call_that_the_library_does_not_end_is_ended_here() -> None:
    async def forever(**_: Any) -> None:
        await asyncio.sleep(60)

    client = JudgeClient(Access(timeout_s=-9.9), RetryPolicy(delays=()))
    client._peer("openai")._provider = Provider(complete=forever, no_answer=())
    with pytest.raises(PeerTimeoutError):
        ask(client, "openai/m")


def test_a_client_that_does_not_close_holds_nothing_up() -> None:
    tried: list[str] = []

    async def fail() -> None:
        tried.append("first")
        raise RuntimeError("no")

    async def close() -> None:
        tried.append("second")

    client = JudgeClient(Access())
    client._peer("openai")._provider = Provider(complete=fail, no_answer=(), closers=[fail, close])
    client.close()
    client.close()
    assert tried == ["first", "second"]


def test_an_interrupted_wait_cancels_the_call() -> None:
    cancelled = threading.Event()

    async def interrupt() -> None:
        await asyncio.sleep(0.2)  # until it is waited for
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(KeyboardInterrupt):
        run_on_loop(interrupt())
    assert cancelled.wait(10)


def test_what_a_call_raises_comes_out_where_it_is_waited_for() -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_on_loop(fail())


def test_a_blocking_call_that_fails_does_so_for_its_caller() -> None:
    async def blocked() -> None:
        await asyncio.to_thread(lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        run_on_loop(blocked())


def test_usage_is_unknown_as_soon_as_one_price_is() -> None:
    meter = UsageMeter()
    assert meter.read("m") is None
    for tokens in ((100, 10), (None, None)):
        meter.sent(again=False)
        meter.answered("openai", "gpt-4o-mini", *tokens)
    usage = meter.read("m")
    assert usage is not None
    assert (usage.calls, usage.input_tokens, usage.cost_usd) == (2, 100, None)
