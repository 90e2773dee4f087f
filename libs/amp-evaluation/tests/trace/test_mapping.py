"""mapping.json: what it finds, and how its faults are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation.errors import ConfigError
from amp_evaluation.trace import parse_trace_for_evaluation
from amp_evaluation.trace._otel import OTELSpan, OTELTrace
from amp_evaluation.trace.mapping import FIELDS, load_mapping, parse_mapping
from amp_evaluation.trace.models import AgentSpan, LLMSpan, RetrieverSpan, TokenUsage, ToolSpan

CALL = json.dumps({"reply": [{"text": "one"}, {"text": "two"}], "usage": {"in": "7", "out": 3.0}, "odd.name": "x"})


@pytest.mark.parametrize(
    ("entries", "attributes", "facts"),
    [
        pytest.param({"input": "a.b"}, {"a.b": "hi"}, {"input": "hi"}, id="a key"),
        pytest.param({"input": "a.b"}, {"a.c": "hi"}, {}, id="a key that isn't there"),
        pytest.param({"input": ["x", "y"]}, {"y": "hi"}, {"input": "hi"}, id="the first key that is there"),
        pytest.param(
            {"output": {"key": "c", "path": "$.reply[0].text"}},
            {"c": CALL},
            {"output": "one"},
            id="a path into text",
        ),
        pytest.param(
            {"output": {"key": "c", "path": "$.reply[-1].text"}},
            {"c": CALL},
            {"output": "two"},
            id="a list's last",
        ),
        pytest.param(
            {"output": {"key": "c", "path": "$['odd.name']"}}, {"c": CALL}, {"output": "x"}, id="a name in quotes"
        ),
        pytest.param(
            {"output": {"key": "c", "path": "$.reply[0].text"}},
            {"c": json.loads(CALL)},
            {"output": "one"},
            id="a structured value",
        ),
        pytest.param(
            {"output": {"key": "c", "path": "$.inner.text"}},
            {"c": json.dumps({"inner": json.dumps({"text": "deep"})})},
            {"output": "deep"},
            id="JSON text inside JSON text",
        ),
        pytest.param({"output": {"key": "c", "path": "$.reply[9]"}}, {"c": CALL}, {}, id="a place beyond the list"),
        pytest.param({"output": {"key": "c", "path": "$.a.b"}}, {"c": "no JSON"}, {}, id="a path into plain text"),
        pytest.param({"output": {"key": "c", "path": "$[0]"}}, {"c": CALL}, {}, id="a place in an object"),
        pytest.param({"output": {"key": "c", "path": "$.x"}}, {"c": "[1]"}, {}, id="a name in a list"),
        pytest.param(
            {
                "input_tokens": {"key": "c", "path": "$.usage.in"},
                "output_tokens": {"key": "c", "path": "$.usage.out"},
                "cache_read_tokens": "n",
            },
            {"c": CALL, "n": -4},
            {"input_tokens": 7, "output_tokens": 3},
            id="counts are whole numbers from 0 on",
        ),
        pytest.param({"input_tokens": "n"}, {"n": "many"}, {}, id="a count that is a word"),
        pytest.param({"input_tokens": "n"}, {"n": True}, {}, id="a count that is a flag"),
        pytest.param(
            {"kind": {"key": "k", "values": {"ask": "llm"}}}, {"k": "ask"}, {"kind": "llm"}, id="a kind by an own word"
        ),
        pytest.param({"kind": "k"}, {"k": "TOOL"}, {"kind": "tool"}, id="a kind by its own name"),
        pytest.param({"kind": "k"}, {"k": "other"}, {}, id="a kind nobody knows"),
        pytest.param({"tool_name": "t"}, {"t": ["no", "name"]}, {}, id="a name that is a list"),
        pytest.param({"agent_name": "t"}, {"t": 7}, {"agent_name": "7"}, id="a name that is a number"),
        pytest.param({"agent_name": ["t", "u"]}, {"t": "", "u": "front"}, {"agent_name": "front"}, id="an empty name"),
        pytest.param(
            {"tool_arguments": "a", "tool_result": "r"},
            {"a": {"x": 1}, "r": [2]},
            {"tool_arguments": {"x": 1}, "tool_result": [2]},
            id="arguments and results as they are",
        ),
    ],
)
def test_what_a_mapping_finds(entries: dict[str, Any], attributes: dict[str, Any], facts: dict[str, Any]) -> None:
    assert parse_mapping(entries).facts(attributes) == facts


def test_the_keys_a_mapping_reads() -> None:
    mapping = parse_mapping({"input": ["a", "b"], "output": {"key": "c", "path": "$.d"}, "kind": {"key": "k"}})
    assert mapping.keys == {"a", "b", "c", "k"}


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        pytest.param([], r"an object is wanted.*not \[\]", id="a list"),
        pytest.param({"inputs": "a"}, "entry 'inputs' is not known; entries are kind, input", id="an unknown entry"),
        pytest.param({"input": 5}, "entry 'input' is 5", id="a number"),
        pytest.param({"input": ""}, "entry 'input' is ''", id="an empty name"),
        pytest.param({"input": []}, "entry 'input' is an empty list", id="an empty list"),
        pytest.param({"input": {"path": "$.a"}}, "entry 'input' is .*'path'", id="a path without a key"),
        pytest.param({"input": {"key": "a", "paht": "$"}}, "entry 'input' has 'paht'", id="a misspelt part"),
        pytest.param({"input": {"key": "a", "values": {}}}, "entry 'input' has 'values'", id="values not of a kind"),
        pytest.param({"output": {"key": "a", "path": "a.b"}}, r"entry 'output' has path 'a.b'", id="a path without $"),
        pytest.param({"output": {"key": "a", "path": 3}}, "entry 'output' has path 3", id="a path that is a number"),
        pytest.param(
            {"output": {"key": "a", "path": "$.a[*].b"}}, r"unreadable from '\[\*\].b' on", id="a path with a wildcard"
        ),
        pytest.param({"kind": {"key": "k", "values": {"a": "robot"}}}, "maps 'a' to 'robot'", id="an unknown kind"),
        pytest.param({"kind": {"key": "k", "values": ["a"]}}, r"has values \['a'\]", id="values that are a list"),
    ],
)
def test_faults_name_the_entry(tmp_path: Path, entries: Any, said: str) -> None:
    path = tmp_path / "mapping.json"
    path.write_text(json.dumps(entries))
    with pytest.raises(ConfigError, match=said) as error:
        load_mapping(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(None, "can't be read: No such file", id="no file"),
        pytest.param("{", "is not JSON", id="no JSON"),
        pytest.param("[" * 100_000, "is not JSON", id="deep nesting"),
    ],
)
def test_an_unreadable_file_is_named(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "mapping.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=said) as error:
        load_mapping(path)
    assert str(path) in str(error.value)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.recursive(st.none() | st.text() | st.integers(), st.lists)))
def test_facts_never_raise_and_hold_only_what_was_asked_for(attributes: dict[str, Any]) -> None:
    entries = {name: [{"key": "a", "path": "$[0].x"}, "b", "c"] for name in FIELDS}
    assert parse_mapping(entries).facts(attributes).keys() <= set(FIELDS)


# --- in the parser ----------------------------------------------------------------------------------------------------


def test_a_mapping_tells_the_parser_what_it_can_not_know() -> None:
    mapping = parse_mapping(
        {
            "kind": {"key": "acme.step", "values": {"ask": "llm", "act": "tool", "run": "agent", "find": "retriever"}},
            "input": "acme.in",
            "output": "acme.out",
            "tool_name": "acme.function",
            "tool_arguments": "acme.args",
            "tool_result": "acme.returned",
            "input_tokens": {"key": "acme.cost", "path": "$.in"},
            "output_tokens": {"key": "acme.cost", "path": "$.out"},
            "agent_name": "acme.agent",
            "model": "acme.model",
        }
    )
    steps = [
        {"acme.step": "run", "acme.agent": "clerk", "acme.in": "Next ferry?", "acme.out": "At 22:30."},
        {"acme.step": "ask", "acme.in": "Next ferry?", "acme.out": "At 22:30.", "acme.cost": '{"in": 12, "out": 3}'},
        {"acme.step": "act", "acme.function": "fare", "acme.args": '{"to": "Bari"}', "acme.returned": "59 EUR"},
        {"acme.step": "find", "acme.in": "ports", "acme.out": '["Bari is a port."]'},
    ]
    steps[1] |= {"acme.model": "own-1", "gen_ai.request.model": "gpt-4o-mini"}
    spans = [
        OTELSpan("t", f"s{n}", "s0" if n else None, "step", startTime=f"2026-01-15T10:00:0{n}Z", attributes=step)
        for n, step in enumerate(steps)
    ]
    trace = parse_trace_for_evaluation(OTELTrace("t", "s0", spans=spans), mapping=mapping)
    agent, call, tool, retrieval = trace.spans
    assert (trace.input, trace.output) == ("Next ferry?", "At 22:30.")
    assert trace.metrics.token_usage == TokenUsage(12, 3, 15)
    assert isinstance(agent, AgentSpan) and agent.name == "clerk"
    assert isinstance(call, LLMSpan) and (call.model, call.output) == ("own-1", "At 22:30.")
    assert [message.content for message in call.input] == ["Next ferry?"]
    assert isinstance(tool, ToolSpan) and (tool.name, tool.arguments, tool.result) == ("fare", {"to": "Bari"}, "59 EUR")
    assert isinstance(retrieval, RetrieverSpan) and retrieval.query == "ports"
    assert [document.content for document in retrieval.documents] == ["Bari is a port."]


def test_what_a_mapping_does_not_find_is_left_to_the_conventions() -> None:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o-mini",
        "acme.reply": '[{"role": "assistant", "content": "Hi"}]',
    }
    span = OTELSpan("t", "s", None, "step", startTime="2026-01-15T10:00:00Z", attributes=attributes)
    mapping = parse_mapping({"kind": "acme.kind", "model": "acme.model", "output": "acme.reply"})
    trace = parse_trace_for_evaluation(OTELTrace("t", "s", spans=[span]), mapping=mapping)
    [call] = trace.get_llm_calls()
    assert (call.model, call.output) == ("gpt-4o-mini", "Hi")
