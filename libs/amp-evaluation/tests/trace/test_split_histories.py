"""An agent's steps where the history repeats its replies in another form: each of them is one step."""

from __future__ import annotations

import pytest

from amp_evaluation.trace import (
    AgentTrace,
    AssistantMessage,
    LLMReasoningStep,
    LLMSpan,
    Message,
    ToolCall,
    ToolExecutionStep,
    ToolMessage,
    ToolSpan,
    Trace,
    UserInputStep,
    UserMessage,
)
from amp_evaluation.trace._steps import build_agent_trace

BARI, SPLIT = ToolCall("c1", "fare", {"to": "Bari"}), ToolCall("c2", "fare", {"to": "Split"})
ANSWERS: list[Message] = [ToolMessage("59", "c1"), ToolMessage("61", "c2")]


def view(history: list[Message], *, with_tools: bool = True, call_ids: tuple[str, str] = ("c1", "c2")) -> AgentTrace:
    user = UserMessage("Fares?")
    first = LLMSpan("l1", input=[user], output="I look.", _tool_calls=[BARI, SPLIT])
    tools = [
        ToolSpan(f"t{n}", None, None, "fare", call.arguments, result, tool_call_id=call_id)
        for n, (call, result, call_id) in enumerate(zip((BARI, SPLIT), ("59", "61"), call_ids, strict=True))
    ]
    second = LLMSpan("l2", input=[user, *history], output="59 and 61.")
    return build_agent_trace(Trace("t", spans=[first, *(tools if with_tools else []), second]), "t")


def told(agent: AgentTrace) -> list[str]:
    found = []
    for step in agent.steps:
        if isinstance(step, ToolExecutionStep):
            found.append(f"{step.tool_name}: {step.content}")
        elif isinstance(step, LLMReasoningStep):
            found.append(f"{step.content} +{len(step.tool_calls)}")
        elif isinstance(step, UserInputStep):
            found.append(step.content)
    return found


def said(text: str, *calls: ToolCall) -> AssistantMessage:
    return AssistantMessage(text, list(calls))


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param([said("I look.", BARI, SPLIT)], id="as it was"),
        pytest.param([said("I look."), said("", BARI, SPLIT)], id="text and calls apart"),
        pytest.param([said("I look."), said("", BARI), said("", SPLIT)], id="each call apart"),
        pytest.param(
            [said("I look.", ToolCall("f1", "fare", {"to": "Bari"}), ToolCall("f2", "fare", {"to": "Split"}))],
            id="with other ids",
        ),
    ],
)
def test_a_reply_repeated_in_another_form_is_one_step(reply: list[Message]) -> None:
    assert told(view([*reply, *ANSWERS])) == ["Fares?", "I look. +2", "fare: 59", "fare: 61", "59 and 61. +0"]


def test_a_reply_that_only_the_history_tells_is_a_step_of_its_own() -> None:
    steps = told(view([said("I look.", BARI, SPLIT), *ANSWERS, said("Wait."), said("Still here.")]))
    assert steps[-3:] == ["Wait. +0", "Still here. +0", "59 and 61. +0"]


def test_answers_with_ids_that_no_call_has_come_in_the_order_of_the_calls() -> None:
    answers: list[Message] = [ToolMessage("59", "x1"), ToolMessage("61", "x2")]
    steps = told(view([said("I look.", BARI, SPLIT), *answers]))
    assert steps == ["Fares?", "I look. +2", "fare: 59", "fare: 61", "59 and 61. +0"]


def test_a_transfer_is_no_tool_step() -> None:
    over = ToolCall("c9", "transfer_to_billing", {})
    call = LLMSpan("l1", input=[UserMessage("Pay."), said("", over), ToolMessage("ok", "c9")], output="Paid.")
    assert told(build_agent_trace(Trace("t", spans=[call]), "t")) == ["Pay.", " +1", "Paid. +0"]


def test_a_tool_that_ran_when_a_paused_run_went_on_stands_where_the_history_has_it() -> None:
    tool = ToolSpan("t1", None, None, "fare", {"to": "Bari"}, "59", tool_call_id="c1")
    other = ToolSpan("t2", None, None, "log", {}, "done", tool_call_id="c7")
    call = LLMSpan("l1", input=[UserMessage("Fare?"), said("", BARI), ToolMessage("59", "c1")], output="59.")
    steps = told(build_agent_trace(Trace("t", spans=[tool, other, call]), "t"))
    assert steps == ["log: done", "Fare?", " +1", "fare: 59", "59. +0"]


def test_no_tool_is_lost_where_the_history_has_it_in_an_earlier_turn() -> None:
    tool = ToolSpan("t1", None, None, "fare", {"to": "Bari"}, "59", tool_call_id="c1")
    sent: list[Message] = [said("", BARI), ToolMessage("59", "c1"), UserMessage("Thanks.")]
    steps = told(build_agent_trace(Trace("t", spans=[tool, LLMSpan("l1", input=sent, output="Bye.")]), "t"))
    assert steps == [" +1", "fare: 59", "Thanks.", "Bye. +0"]
