"""Messages in every shape that frameworks write them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from loopback.otel import said

from amp_evaluation.trace._spans import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from amp_evaluation.trace._wire import AmpAttributes, AmpSpanData, OTELSpan, OTELTokenUsage, OTELTrace, decode_traces
from amp_evaluation.trace.conventions._messages import messages_of
from amp_evaluation.trace.conventions._roles import is_message, role_of
from amp_evaluation.trace.conventions._toolcalls import arguments_of, call_of, result_text
from amp_evaluation.trace.conventions._values import content_text, from_json, json_text
from amp_evaluation.trace.parser import parse_trace_for_evaluation

U, A, S, T = UserMessage, AssistantMessage, SystemMessage, ToolMessage
CALL = ToolCall("c1", "f", {"a": 1})


def lc(kind: str, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": kwargs}


SHAPES = [
    pytest.param([said("user", "hi")], [U("hi")], id="role and content"),
    pytest.param([said("developer", "x"), said("moderator", "y")], [S("x"), U("y")], id="other roles"),
    pytest.param([["user", "hi"], ("ai", "yo")], [U("hi"), A("yo")], id="pairs"),
    pytest.param(["user", "hi"], [U("hi")], id="one pair"),
    pytest.param([[said("user", "hi")]], [U("hi")], id="a batch of one"),
    pytest.param(
        [lc("SystemMessageChunk", content="s"), lc("HumanMessage", content="hi")], [S("s"), U("hi")], id="LangChain"
    ),
    pytest.param(
        [lc("AIMessage", content="", tool_calls=[{"id": "c1", "name": "f", "args": {"a": 1}, "type": "tool_call"}])],
        [A("", [CALL])],
        id="LangChain's calls",
    ),
    pytest.param(
        [{"type": "ai", "data": {"content": "yo"}}, {"type": "human", "content": "hi"}], [A("yo"), U("hi")], id="dumped"
    ),
    pytest.param(
        [
            {
                "role": "assistant",
                "blocks": [{"block_type": "text", "text": "yo"}],
                "additional_kwargs": {"tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": '{"a": 1}'}}]},
            }
        ],
        [A("yo", [CALL])],
        id="LlamaIndex's blocks",
    ),
    pytest.param(
        [said("assistant", [{"toolUse": {"toolUseId": "c1", "name": "f", "input": {"a": 1}}}, {"text": "yo"}])],
        [A("yo", [CALL])],
        id="Bedrock's use of a tool",
    ),
    pytest.param(
        [said("user", [{"toolResult": {"toolUseId": "c1", "content": [{"text": "r"}], "status": "error"}}])],
        [T("r", "c1")],
        id="Bedrock's result of a tool",
    ),
    pytest.param(
        [
            said(
                "user", [{"type": "tool_result", "tool_use_id": "c1", "content": "r"}, {"type": "text", "text": "and?"}]
            )
        ],
        [T("r", "c1"), U("and?")],
        id="a result and a question in one message",
    ),
    pytest.param(
        [
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "r"},
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yo"}]},
        ],
        [A("", [CALL]), T("r", "c1"), A("yo")],
        id="items of the responses API",
    ),
    pytest.param(
        [{"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}, {"text": "yo"}]}],
        [A("yo", [ToolCall("", "f", {"a": 1})])],
        id="Gemini",
    ),
    pytest.param(
        [{"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "f", "response": {"x": 1}}}]}],
        [T('{"x": 1}', "c1")],
        id="Gemini's result",
    ),
    pytest.param(
        [{"role": "tool-call", "content": "calling"}, {"role": "tool-response", "content": "got"}],
        [A("calling"), T("got")],
        id="smolagents' roles",
    ),
    pytest.param([{"message": said("assistant", "yo")}], [A("yo")], id="a message inside a choice"),
    pytest.param(['{"role": "assistant", "content": "yo"}'], [A("yo")], id="a message as JSON text"),
    pytest.param(
        ["ChatMessage(role=<MessageRole.USER: 'user'>, blocks=[TextBlock(block_type='text', text='hi')])"],
        [U("hi")],
        id="a printed message",
    ),
    pytest.param(["plain"], [U("plain")], id="a plain text"),
    pytest.param([said("tool", '{"x": 1}', tool_call_id="c1")], [T('{"x": 1}', "c1")], id="a result that is JSON"),
    pytest.param(
        [said("assistant", None, function_call={"name": "f", "arguments": '{"a": 1}'})],
        [A("", [ToolCall("", "f", {"a": 1})])],
        id="a function call",
    ),
    pytest.param([said("assistant", "''")], [A("")], id="two quote characters"),
    pytest.param([None, 5, ""], [], id="what is no message"),
    pytest.param(7, [], id="a number"),
    pytest.param({"a": 1}, [], id="another object"),
]


@pytest.mark.parametrize(("value", "right"), SHAPES)
def test_messages(value: Any, right: list[Any]) -> None:
    assert messages_of(value) == right


AS_WIRE = [shape for shape in SHAPES if isinstance(shape.values[0], list) and shape.values[0]]


@pytest.mark.parametrize(("value", "right"), AS_WIRE)
def test_messages_straight_from_bytes(value: Any, right: list[Any]) -> None:
    """The fast way, which decodes each message once a trace, gives the same."""
    raw = {"traceId": "t", "spans": [{"spanId": "a", "ampAttributes": {"kind": "llm", "input": value, "output": "x"}}]}
    (otel,) = decode_traces(json.dumps(raw).encode())
    assert parse_trace_for_evaluation(otel).get_llm_calls()[0].input == right


@pytest.mark.parametrize("space", ["", " "])
def test_inputs_that_begin_like_the_last_one_are_whole(space: str) -> None:
    def amp(*texts: str) -> dict[str, Any]:
        return {"kind": "llm", "input": [said("user", text) for text in texts], "output": [said("assistant", "x")]}

    inputs = [("a",), ("a", "b"), ("a", "b"), ("a", "c", "d"), (), ("a", "c", "d", "e"), ("ab",)]
    spans = [
        {"spanId": str(n), "startTime": f"2026-01-01T00:00:0{n}Z", "ampAttributes": amp(*texts)}
        for n, texts in enumerate(inputs)
    ]
    data = json.dumps({"traceId": "t", "spans": spans}, separators=("," + space, ":" + space)).encode()
    trace = parse_trace_for_evaluation(decode_traces(data)[0])
    assert [tuple(m.content for m in call.input) for call in trace.get_llm_calls()] == inputs


REPLIES = [
    pytest.param("yo", "yo", id="a text"),
    pytest.param(said("assistant", "yo"), "yo", id="a message"),
    pytest.param([said("assistant", "yo")], "yo", id="a list of one message"),
    pytest.param([{"content": "yo"}], "yo", id="a message without a role"),
    pytest.param(["a", "b"], "a\nb", id="texts"),
    pytest.param({"answer": 42}, '{"answer": 42}', id="an object"),
    pytest.param([said("user", "echo")], "echo", id="a message of another role"),
    pytest.param([], "", id="an empty list"),
    pytest.param("", "", id="an empty text"),
    pytest.param(None, "", id="nothing"),
    pytest.param({}, "", id="an empty object"),
]


@pytest.mark.parametrize(("value", "right"), REPLIES)
def test_replies_that_the_platform_recorded(value: Any, right: str) -> None:
    raw = {"traceId": "t", "spans": [{"spanId": "a", "ampAttributes": {"kind": "llm", "output": value}}]}
    (by_wire,) = decode_traces(json.dumps(raw).encode())
    by_hand = OTELTrace(spans=[OTELSpan(spanId="a", ampAttributes=AmpAttributes("llm", None, value))])
    for otel in (by_wire, by_hand):
        assert parse_trace_for_evaluation(otel).get_llm_calls()[0].output == right


@pytest.mark.parametrize("sent", ["What?", '"What?"', [said("user", "What?")], said("user", "What?")])
def test_inputs_that_the_platform_recorded(sent: Any) -> None:
    by_hand = OTELTrace(spans=[OTELSpan(spanId="a", ampAttributes=AmpAttributes("llm", sent, "x"))])
    assert parse_trace_for_evaluation(by_hand).get_llm_calls()[0].input == [U("What?")]


def test_facts_of_a_span_built_by_hand() -> None:
    data = AmpSpanData(
        model="m", vendor="v", temperature=0.0, tools=[{"name": "f"}], token_usage=OTELTokenUsage(3, 2, 5, 1)
    )
    trace = OTELTrace(spans=[OTELSpan(spanId="a", ampAttributes=AmpAttributes("llm", "q", "x", data))])
    (call,) = parse_trace_for_evaluation(trace).get_llm_calls()
    usage = call.metrics.token_usage
    assert (call.model, call.vendor, call.temperature, call.available_tools[0].name) == ("m", "v", 0.0, "f")
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.cache_read_tokens) == (3, 2, 5, 1)


@pytest.mark.parametrize(
    ("content", "right"),
    [
        (None, ""),
        (5, "5"),
        ({"text": "a"}, "a"),
        ({"x": 1}, '{"x": 1}'),
        (["a", None, {"text": "b"}, ["c"], 4], "a\nb\nc\n4"),
        ([{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "a"}], "a"),
        ([{"type": "image_url", "image_url": {"url": "x"}}, {"type": "input_audio"}], "[image]\n[audio]"),
        ([{"type": "blob", "modality": "video"}, {"type": "uri"}], "[video]\n[file]"),
        ([{"image": {"source": "x"}}, {"inline_data": {"data": "x"}}], "[image]\n[file]"),
        ([{"toolUse": {"name": "f"}}, {"type": "odd"}, {"type": "text", "text": {"value": "a"}}], "a"),
        ([{"type": "text", "content": [{"text": "a"}]}], "a"),
        ('[{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}]', "a\n[image]"),
        ('[{"text": "a", "type": 5}]', '[{"text": "a", "type": 5}]'),
        ('[{"title": "t"}]', '[{"title": "t"}]'),
        ('[{"t": ', '[{"t": '),
        ('""', ""),
    ],
    ids=lambda value: str(value)[:50],
)
def test_content_as_text(content: Any, right: str) -> None:
    assert content_text(content) == right


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ("  [1]", [1]),
        ('{"a": NaN}', None),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ('{"a": "\\ud800"}', {"a": "\ud800"}),
        ("{cut", "{cut"),
        ('"quoted"', "quoted"),
        ("[" * 100_000, "[" * 100_000),
        ("plain", "plain"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_json_in_texts(text: str, right: Any) -> None:
    found = from_json(text)
    assert found == right or (right is None and found["a"] != found["a"])


def test_json_text_is_never_a_repr() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert json_text({"a": None}) == '{"a": null}'
    assert json_text(endless) == ""
    assert json_text(None) == ""


@pytest.mark.parametrize(
    ("call", "right"),
    [
        ({"id": "c1", "name": "f", "arguments": '{"a": 1}'}, CALL),
        ({"id": "c1", "function": {"name": "f", "arguments": {"a": 1}}}, CALL),
        ({"toolCallId": "c1", "toolName": "f", "args": '{"a": 1}'}, CALL),
        ({"tool_id": "c1", "tool_name": "f", "tool_kwargs": {"a": 1}}, CALL),
        ({"tool_call": {"id": "c1", "name": "f", "parameters": {"a": 1}}}, CALL),
        ({"id": 7, "name": "f"}, ToolCall("7", "f", {})),
        ({"id": [], "name": None}, ToolCall("", "", {})),
    ],
)
def test_calls(call: dict[str, Any], right: ToolCall) -> None:
    assert call_of(call) == right


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("[1]", {"input": [1]}),
        ("5", {"input": "5"}),
        ("null", {"input": "null"}),
        ([], {}),
        (5, {"input": 5}),
        ("{}", {}),
    ],
)
def test_arguments(given: Any, right: dict[str, Any]) -> None:
    assert arguments_of(given) == right


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ([{"text": "a"}, "b"], "a\nb"),
        ({"content": [{"text": "a"}]}, "a"),
        ({"type": "text", "value": "a"}, "a"),
        ({"type": "json", "value": {"x": 1}}, '{"x": 1}'),
        ({"x": 1}, '{"x": 1}'),
        ([{"x": 1}], '[{"x": 1}]'),
        (5, "5"),
        (None, ""),
    ],
)
def test_results_as_text(value: Any, right: str) -> None:
    assert result_text(value) == right


def test_roles() -> None:
    assert [role_of(name) for name in ("MessageRole.USER", "HumanMessageChunk", "AI", 5, "nobody")] == [
        "user",
        "user",
        "assistant",
        None,
        None,
    ]
    assert is_message({"_role": "user", "_content": [{"text": "x"}]})
    assert not is_message({"role": "user"}) and not is_message("user")
