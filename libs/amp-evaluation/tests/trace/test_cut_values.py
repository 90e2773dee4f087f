"""JSON that was cut at a length limit: what stands around a text is no text, wherever it is read."""

from __future__ import annotations

from typing import Any

import pytest

from amp_evaluation.trace import parse_trace_for_evaluation
from amp_evaluation.trace._otel import AmpAttributes, OTELSpan, OTELTrace
from amp_evaluation.trace.conventions._values import is_cut_envelope

CUT = '[{"role": "assistant", "parts": [{"type": "text", "cont'


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        pytest.param('{"messages": [{"type": "hu', True, id="messages"),
        pytest.param('[["x", {"lc": 1', False, id="no object first"),
        pytest.param('[[{"lc": 1', True, id="lists around it"),
        pytest.param('{"messages": []}', False, id="whole"),
        pytest.param('{"messages": []} is what you send.', False, id="prose behind it"),
        pytest.param('{"port": "Ba', False, id="what a model wrote before it ran out of tokens"),
        pytest.param("At 22:30.", False, id="text"),
    ],
)
def test_cut_envelopes(text: str, cut: bool) -> None:
    assert is_cut_envelope(text) is cut


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param({"gen_ai.output.messages": CUT}, id="GenAI"),
        pytest.param({"output.value": CUT}, id="OpenInference"),
        pytest.param({"langfuse.observation.output": CUT}, id="Langfuse"),
        pytest.param({}, id="the platform"),
    ],
)
def test_a_cut_reply_is_no_reply(attributes: dict[str, Any]) -> None:
    call = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 3, **attributes}
    amp = AmpAttributes(kind="llm", output=CUT)
    span = OTELSpan("t", "l", None, "chat", attributes=call, ampAttributes=amp)
    trace = parse_trace_for_evaluation(OTELTrace("t", "l", spans=[span]))
    assert [found.output for found in trace.get_llm_calls()] == [""]
    assert trace.output == ""


def test_an_agents_cut_output_leaves_it_to_the_model() -> None:
    agent = {"openinference.span.kind": "AGENT", "input.value": '{"messages": [{"ro', "output.value": CUT}
    model = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Next ferry?",
        "llm.output_messages.0.message.content": "At 22:30.",
    }
    spans = [OTELSpan("t", "a", None, "a", attributes=agent), OTELSpan("t", "l", "a", "l", attributes=model)]
    trace = parse_trace_for_evaluation(OTELTrace("t", "a", spans=spans))
    assert (trace.input, trace.output) == ("Next ferry?", "At 22:30.")
