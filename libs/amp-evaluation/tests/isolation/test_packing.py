"""Spans of a trace stay with the job until code in the child reads them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import socket
from collections.abc import Callable
from typing import Any

import pytest

from amp_evaluation.isolation import Remote, Sandbox, child
from amp_evaluation.isolation.line import JobLine
from amp_evaluation.isolation.packing import ArrivingTrace, pack_spans, pack_trace, unpack_spans, unpack_trace
from amp_evaluation.isolation.protocol import AskRequest, Failed, LoadRequest, Scored
from amp_evaluation.trace.models import AgentSpan, LLMSpan, ToolSpan, Trace, UserMessage

SPANS = [AgentSpan("a"), LLMSpan("l", "a", None, [UserMessage("hello")], "x"), ToolSpan("t", "a", name="find")]
TRACE = Trace("t", input="in", output="out", spans=list(SPANS))


def arriving(fetched: list[str] | None = None) -> Trace:
    def fetch() -> list[Any]:
        if fetched is not None:
            fetched.append("once")
        return unpack_spans(pack_spans(TRACE))

    return unpack_trace(pack_trace(TRACE, with_spans=False), fetch)


def test_what_else_a_trace_says_is_there_without_its_spans() -> None:
    fetched: list[str] = []
    trace = arriving(fetched)
    assert (trace.input, trace.output, trace.trace_id, trace.failed, fetched) == ("in", "out", "t", False, [])
    assert isinstance(trace, Trace) and type(trace).__name__ == "Trace"
    with pytest.raises(AttributeError, match="'Trace' object has no attribute 'nothing'"):
        _ = trace.nothing  # type: ignore[attr-defined]


USES: dict[str, Callable[[Trace], object]] = {
    "compared": lambda trace: trace == TRACE,
    "compared from the other side": lambda trace: trace == TRACE,
    "pickled": lambda trace: pickle.loads(pickle.dumps(trace)) == TRACE,
    "copied": lambda trace: copy.copy(trace) == TRACE,
    "copied deeply": lambda trace: copy.deepcopy(trace) == TRACE,
    "replaced": lambda trace: dataclasses.replace(trace, output="out") == TRACE,
    "taken apart": lambda trace: dataclasses.asdict(trace) == dataclasses.asdict(TRACE),
    "looked through": lambda trace: vars(trace)["spans"] == TRACE.spans and vars(trace).keys() == vars(TRACE).keys(),
    "shown": lambda trace: repr(trace) == repr(TRACE),
    "asked for its calls": lambda trace: trace.get_llm_calls() == TRACE.get_llm_calls(),
    "asked for an agent": lambda trace: trace.create_agent_trace("a") == TRACE.create_agent_trace("a"),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_however_it_is_used_it_is_the_same_trace(use: Callable[[Trace], object]) -> None:
    fetched: list[str] = []
    trace = arriving(fetched)
    assert use(trace)
    assert fetched == ["once"] and type(trace) is Trace and trace.spans is trace.spans


def test_spans_that_are_set_are_not_fetched() -> None:
    fetched: list[str] = []
    trace = arriving(fetched)
    trace.spans = []
    assert (trace.spans, fetched) == ([], [])


class NoLimits:
    def for_loading(self) -> None: ...

    def for_evaluating(self) -> None: ...


def load(sandbox: Sandbox, source: str) -> Remote:
    return sandbox.load("code", source, name="custom", config={}, level=None)


def score(remote: Remote, trace: Trace) -> float | None:
    answer = remote.ask(trace, trace)
    assert isinstance(answer, Scored), answer
    return answer.score


def test_the_child_asks_for_spans_once_and_gets_them_along_then() -> None:
    source = (
        "came = []\ndef f(trace: Trace):\n    came.append(type(trace) is Trace)\n"
        "    return {'score': len(trace.spans) / 10, 'explanation': repr(came)}"
    )
    with Sandbox() as sandbox:
        remote = load(sandbox, source)
        answers = [remote.ask(trace, trace) for trace in (Trace(str(n), spans=list(SPANS)) for n in range(3))]
    assert [answer.score for answer in answers if isinstance(answer, Scored)] == [0.3] * 3
    assert isinstance(answers[-1], Scored) and answers[-1].explanation == "[False, True, True]"


KEEPERS = {
    "in a list": (
        "kept = []\ndef f(t: Trace):\n    kept.append(t)\n    return len(kept[0].spans) / 10 if kept[1:] else 0"
    ),
    "and raises": (
        "kept = []\ndef f(t: Trace):\n    kept.append(t)\n    if not kept[1:]: raise ValueError('x')\n"
        "    return len(kept[0].spans) / 10"
    ),
}


@pytest.mark.parametrize("source", KEEPERS.values(), ids=KEEPERS)
def test_a_trace_that_is_kept_keeps_its_spans(source: str) -> None:
    with Sandbox() as sandbox:
        remote = load(sandbox, source)
        first, second = Trace("1", spans=list(SPANS)), Trace("2", spans=SPANS[:1])
        remote.ask(first, first)
        del first
        assert score(remote, second) == 0.3


def test_spans_of_a_trace_that_has_gone_are_never_those_of_another() -> None:
    asked = (AskRequest(index=0, trace=pack_trace(trace, with_spans=False), item=None) for trace in (TRACE, TRACE))
    evaluators = child.Evaluators(NoLimits())
    source = "def f(t: Trace): return 1"
    load_it = LoadRequest(index=0, kind="code", name="n", source=source, config={}, level=None)
    mine, theirs = socket.socketpair()
    with mine, theirs:
        line = JobLine(mine)
        evaluators.answer(pickle.dumps(load_it), line)
        evaluators.answer(pickle.dumps(next(asked)), line)
        first = evaluators._trace
        evaluators.answer(pickle.dumps(next(asked)), line)
        assert first is not None
        with pytest.raises(RuntimeError, match="only while it is evaluated"):
            _ = first.spans


def test_spans_that_can_not_be_sent_cost_their_item() -> None:
    nested: Any = "x"
    for _ in range(5_000):
        nested = [nested]
    trace = Trace("t", spans=[LLMSpan("l"), ToolSpan("s", result=nested)])
    with Sandbox() as sandbox:
        readers, plain = (
            load(sandbox, "def f(t: Trace): return len(t.spans)"),
            load(sandbox, "def f(t: Trace): return 1"),
        )
        lost = readers.ask(trace, trace)
        assert isinstance(lost, Failed) and "RuntimeError: the trace holds data nested too deep" in lost.reason
        calls = load(sandbox, "def f(t: LLMSpan): return 1")
        other = Trace("v", spans=list(trace.spans))
        lost = calls.ask(other, other.get_llm_calls()[0])
        assert lost == Failed(reason="the trace holds data nested too deep to be handed to custom code")
        whole = Trace("u", spans=list(SPANS[:1]))
        assert (score(readers, whole), score(plain, whole)) == (1.0, 1.0)


def test_nothing_of_it_shows_in_a_name() -> None:
    assert ArrivingTrace.__name__ == "Trace"
