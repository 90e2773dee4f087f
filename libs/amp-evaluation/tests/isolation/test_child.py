"""The child's side, request by request, in this process: what it answers, and that nothing makes it stop answering."""

from __future__ import annotations

import os
import pickle
import socket
import threading
from typing import Any

import pytest

from amp_evaluation.isolation import protocol
from amp_evaluation.isolation.child import Evaluators, serve
from amp_evaluation.isolation.packing import pack_trace, unpack_trace
from amp_evaluation.isolation.protocol import (
    AskRequest,
    Broken,
    Failed,
    Loaded,
    LoadRequest,
    Prompted,
    ReadRequest,
    Refused,
    Scored,
    Unreadable,
)
from amp_evaluation.trace.models import AgentSpan, LLMSpan, Trace, UserMessage

TRACE = Trace("t", output="out", spans=[AgentSpan("a"), LLMSpan("l", "a", None, [UserMessage("hello")], "x")])


class NoLimits:
    def __init__(self) -> None:
        self.said: list[str] = []

    def for_loading(self) -> None:
        self.said.append("loading")

    def for_evaluating(self) -> None:
        self.said.append("evaluating")


def request(
    source: str, kind: Any = "code", level: Any = None, keys: tuple[str, ...] = (), **config: Any
) -> LoadRequest:
    return LoadRequest(index=0, kind=kind, name="mine", source=source, config=config, level=level, schema_keys=keys)


def answers(*requests: protocol.Request) -> list[protocol.Reply]:
    evaluators = Evaluators(NoLimits())
    return [evaluators.answer(pickle.dumps(each)) for each in requests]


def asked(source: str, item: str | int | None = None, **more: Any) -> protocol.Reply:
    return answers(request(source, **more), AskRequest(index=0, trace=pack_trace(TRACE), item=item))[-1]


def test_limits_are_wide_for_loading_and_tight_for_evaluating() -> None:
    limits = NoLimits()
    Evaluators(limits).answer(pickle.dumps(request("def f(t: Trace): return 1")))
    assert limits.said == ["loading", "evaluating"]


def test_a_trace_is_unpacked_as_it_was_packed() -> None:
    TRACE.create_agent_trace("a")
    assert unpack_trace(pack_trace(TRACE)) == TRACE


@pytest.mark.parametrize(
    ("source", "item", "wanted"),
    [
        ("def f(t: Trace): return EvalResult(1, t.output)", None, Scored(score=1.0, passed=True, explanation="out")),
        ("def f(a: AgentTrace): return EvalResult(0, 'a')", "a", Scored(score=0.0, passed=False, explanation="a")),
        ("def f(s: LLMSpan): return len(s.input[0].content) / 10", 0, Scored(score=0.5, passed=True)),
        ("def f(t: Trace): return EvalResult.skip('why')", None, Scored(skip_reason="why")),
        ("import sys\ndef f(t: Trace): sys.exit(2)", None, Failed(reason="SystemExit: it called exit()")),
        ("def f(t: Trace): raise KeyboardInterrupt", None, Failed(reason="KeyboardInterrupt")),
        ("def f(t: Trace): raise MemoryError", None, Failed(reason="MemoryError: it needs more memory than "
                                                           "AMP_CODE_EVALUATOR_MEMORY_MB allows")),
        ("def f(t: Trace): return 7", None, Failed(reason="ValueError: score must be in [0, 1], not 7.0")),
    ],
)  # fmt: skip
def test_an_item_is_answered(source: str, item: str | int | None, wanted: protocol.Reply) -> None:
    assert asked(source, item) == wanted


def test_an_item_without_a_trace_or_an_evaluator_is_answered_too() -> None:
    (loaded, no_trace, no_evaluator) = answers(
        request("def f(t: Trace): return 1"),
        AskRequest(index=0, trace=None, item=None),
        AskRequest(index=5, trace=pack_trace(TRACE), item=None),
    )
    assert isinstance(loaded, Loaded)
    assert no_trace == Failed(reason="the trace did not reach the evaluator's process")
    assert isinstance(no_evaluator, Failed)


def test_bytes_that_are_no_request_are_answered() -> None:
    assert isinstance(Evaluators(NoLimits()).answer(b"x"), Broken)


CLASS = "class E(BaseEvaluator):\n    {}\n    def evaluate(self, t: Trace): ..."


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("raise SystemExit", "SystemExit"),
        ("raise MemoryError", "MemoryError"),
        ("def f(:", "does not compile"),
        ("x = '\0'", "does not compile"),
        (CLASS.format("def __new__(cls): return 3"), "no evaluator"),
        ("def f(t): ...", "or give the entry a level"),
        ("def f(t: Trace, a: int = Param()): ...", "'a' is missing in the config"),
        (CLASS.format("def __init__(self): raise MemoryError"), "much memory"),
        (CLASS.format("def __init__(self): raise KeyError('k')"), "KeyError"),
    ],
)  # fmt: skip
def test_a_source_that_makes_no_evaluator_is_refused(source: str, wanted: str) -> None:
    (answer,) = answers(request(source))
    assert isinstance(answer, Refused) and wanted in answer.reason


JUDGE = "class J(LLMAsJudgeEvaluator):\n    model = 'anthropic/c'\n    def build_prompt(self, t: Trace): "


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("return 'Fine?'", Prompted(text="Fine?")),
        ("return None", Prompted(text=None)),
        ("return EvalResult.skip('no')", Scored(skip_reason="no")),
        ("return 3", Failed(reason="TypeError: mine: its prompt builder returned int, not text")),
    ],
)
def test_a_judge_is_answered_with_its_prompt(body: str, wanted: protocol.Reply) -> None:
    assert asked(JUDGE + body) == wanted


def test_a_judges_settings_are_told() -> None:
    own = "\n    def _parse_and_validate(self, content): return (0.5, None) if content else (None, None)"
    loaded, read, unreadable = answers(
        request(JUDGE + "return 'x'" + own, max_tokens=5),
        ReadRequest(index=0, content="x"),
        ReadRequest(index=0, content=""),
    )
    assert isinstance(loaded, Loaded) and loaded.judge is not None
    assert (loaded.judge.model, loaded.judge.max_tokens, loaded.judge.reads_replies) == ("anthropic/c", 5, True)
    assert read == Scored(score=0.5, passed=True)
    assert unreadable == Unreadable(reason="it holds no score")


def test_a_judges_empty_response_needs_no_prompt() -> None:
    empty = AskRequest(index=0, trace=pack_trace(Trace("t")), item=None)
    assert answers(request(JUDGE + "return 'x'"), empty)[-1] == Scored(skip_reason="no response to judge")


@pytest.mark.parametrize("source", ["def f(t: Trace): return 1", "{trace.output}"])
def test_only_judges_with_a_reader_read_replies(source: str) -> None:
    kind = "template" if source.startswith("{") else "code"
    assert answers(request(source, kind), ReadRequest(index=0, content="x"))[-1] == Failed(reason="it reads no replies")


def test_a_template_is_answered_with_its_prompt_and_a_defect_with_its_reason() -> None:
    rendered = asked("{word} {tone}: {len(trace.output)}", kind="template", keys=("tone",), word="w")
    assert rendered == Prompted(text="w None: 3")
    broken = asked("{contxt}", kind="template")
    assert isinstance(broken, Failed) and "'contxt'" in broken.reason


def test_aggregations_are_told_by_name() -> None:
    source = "@evaluator('x', aggregations=['p90', len])\ndef f(t: Trace): return 1"
    (loaded,) = answers(request(source))
    assert isinstance(loaded, Loaded)
    assert loaded.aggregations == [protocol.AggregationSpec("p90")]
    assert loaded.warnings == ["aggregations that are functions are left out: custom code may name aggregations only"]


def test_requests_are_served_until_the_channel_closes() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        server = threading.Thread(target=serve, args=(theirs, Evaluators(NoLimits())))
        server.start()
        protocol.send(ours, pickle.dumps(request("import os\ndef f(t: Trace): return 1")))
        body = protocol.receive(ours)
        assert body is not None and isinstance(protocol.decode_reply(body), Loaded)
        ours.shutdown(socket.SHUT_RDWR)
        server.join(5)
        assert not server.is_alive()
    assert os.getpid() > 0
