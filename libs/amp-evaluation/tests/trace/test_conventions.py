"""One table a convention: attributes in, facts out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from loopback.otel import parts, said

from amp_evaluation.trace._records import WireSpan
from amp_evaluation.trace._spans import (
    AssistantMessage,
    RetrievedDoc,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolDefinition,
    ToolMessage,
    UserMessage,
)
from amp_evaluation.trace.conventions import Attrs, kind_of, read, readers_for
from amp_evaluation.trace.conventions._facts import documents_of, tool_definitions
from amp_evaluation.trace.conventions._values import printed


def attrs(attributes: dict[str, Any], name: str = "", events: list[Any] | None = None) -> Attrs:
    return Attrs(WireSpan(name=name, attributes=attributes, events=events or []))  # type: ignore[arg-type]


def facts(attributes: dict[str, Any], *wanted: str, name: str = "", events: list[Any] | None = None) -> Any:
    a = attrs(attributes, name, events)
    found = [read(readers_for(a, bool(events)), fact, a) for fact in wanted]
    return found[0] if len(found) == 1 else found


KINDS = [
    ({"gen_ai.operation.name": "chat"}, "llm"),
    ({"gen_ai.operation.name": "text_completion"}, "llm"),
    ({"gen_ai.operation.name": "generate_content"}, "llm"),
    ({"gen_ai.operation.name": "embeddings"}, "embedding"),
    ({"gen_ai.operation.name": "execute_tool"}, "tool"),
    ({"gen_ai.operation.name": "invoke_agent", "gen_ai.response.finish_reasons": ["stop"]}, "agent"),
    ({"gen_ai.operation.name": "agent_handoff"}, "chain"),
    ({"gen_ai.operation.name": "execute_event_loop_cycle"}, "chain"),
    ({"gen_ai.operation.name": 5}, "chain"),
    ({"gen_ai.operation.name": "unknown", "openinference.span.kind": "LLM"}, "llm"),
    ({"openinference.span.kind": "AGENT"}, "agent"),
    ({"openinference.span.kind": "llm"}, "llm"),
    ({"openinference.span.kind": "RETRIEVER"}, "retriever"),
    ({"openinference.span.kind": "RERANKER"}, "rerank"),
    ({"openinference.span.kind": "GUARDRAIL"}, "chain"),
    ({"openinference.span.kind": "CHAIN", "gen_ai.operation.name": "chat"}, "llm"),
    ({"openinference.span.kind": ["LLM"]}, "chain"),
    ({"traceloop.span.kind": "tool"}, "tool"),
    ({"traceloop.span.kind": "workflow"}, "chain"),
    ({"traceloop.span.kind": "task", "gen_ai.operation.name": "chat"}, "llm"),
    ({"traceloop.span.kind": "task", "tool.name": "f", "tool.arguments": "{}"}, "tool"),
    ({"llm.request.type": "chat"}, "llm"),
    ({"llm.request.type": "embedding"}, "embedding"),
    ({"crewai.agent.role": "Writer"}, "agent"),
    ({"crewai.task.description": "d", "gen_ai.operation.name": "invoke_agent"}, "chain"),
    ({"pydantic_ai.all_messages": "[]"}, "agent"),
    ({"tool_arguments": "{}"}, "tool"),
    ({"ai.operationId": "ai.generateText.doGenerate"}, "llm"),
    ({"ai.operationId": "ai.toolCall"}, "tool"),
    ({"mlflow.spanType": "CHAT_MODEL"}, "llm"),
    ({"langfuse.observation.type": "generation"}, "llm"),
    ({"haystack.component.type": "InMemoryBM25Retriever"}, "retriever"),
    ({"haystack.component.type": "OpenAIChatGenerator"}, "llm"),
    ({"haystack.component.type": "PromptBuilder"}, "chain"),
    ({"deployment.region": "eu"}, "chain"),
]


@pytest.mark.parametrize(("attributes", "right"), KINDS, ids=lambda value: str(value)[:60])
def test_kinds(attributes: dict[str, Any], right: str) -> None:
    a = attrs(attributes)
    assert kind_of(readers_for(a, False), a).name == right


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("chat gpt-x", "llm"),
        ("execute_tool f", "tool"),
        ("invoke_agent bot", "agent"),
        ("chat", "chain"),
        ("x y", "chain"),
    ],
)
def test_a_name_decides_where_nothing_else_does(name: str, right: str) -> None:
    a = attrs({}, name)
    assert kind_of(readers_for(a, False), a).name == right
    named_agent = attrs({"openinference.span.kind": "AGENT"}, name)
    assert kind_of(readers_for(named_agent, False), named_agent).name == "agent"


CALL = {"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}}
CONVERSATION = [
    SystemMessage("S"),
    UserMessage("Q"),
    AssistantMessage("", [ToolCall("c1", "f", {"a": 1})]),
    ToolMessage("R", "c1"),
]
SENT = {
    "GenAI parts": {
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "S"}]),
        "gen_ai.input.messages": json.dumps(
            [
                parts("user", "Q"),
                parts("assistant", CALL),
                parts("tool", {"type": "tool_call_response", "id": "c1", "response": "R"}),
            ]
        ),
    },
    "GenAI parts encoded twice": {
        "gen_ai.input.messages": json.dumps(
            json.dumps(
                [
                    parts("system", "S"),
                    parts("user", {"type": "reasoning", "content": "hm"}, "Q"),
                    parts("assistant", CALL),
                    parts("tool", {"type": "tool_call_response", "id": "c1", "result": "R"}),
                ]
            )
        ),
    },
    "OpenInference rows": {
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.contents.0.message_content.type": "text",
        "llm.input_messages.0.message.contents.0.message_content.text": "S",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": "Q",
        "llm.input_messages.10.message.role": "tool",
        "llm.input_messages.10.message.content": "R",
        "llm.input_messages.10.message.tool_call_id": "c1",
        "llm.input_messages.2.message.role": "assistant",
        "llm.input_messages.2.message.tool_calls.0.tool_call.id": "c1",
        "llm.input_messages.2.message.tool_calls.0.tool_call.function.name": "f",
        "llm.input_messages.2.message.tool_calls.0.tool_call.function.arguments": '{"a": 1}',
    },
    "flat legacy rows": {
        "gen_ai.prompt.0.role": "system",
        "gen_ai.prompt.0.content": "S",
        "gen_ai.prompt.1.role": "user",
        "gen_ai.prompt.1.content": "Q",
        "gen_ai.prompt.2.role": "assistant",
        "gen_ai.prompt.2.content": '""',
        "gen_ai.prompt.2.tool_calls.0.id": "c1",
        "gen_ai.prompt.2.tool_calls.0.name": "f",
        "gen_ai.prompt.2.tool_calls.0.arguments": '{"a": 1}',
        "gen_ai.prompt.3.role": "tool",
        "gen_ai.prompt.3.content": "R",
        "gen_ai.prompt.3.tool_call_id": "c1",
    },
    "ADK's request": {
        "gcp.vertex.agent.llm_request": json.dumps(
            {
                "config": {"system_instruction": "S"},
                "contents": [
                    {"role": "user", "parts": [{"text": "Q"}]},
                    {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "f", "args": {"a": 1}}}]},
                    {"role": "user", "parts": [{"function_response": {"id": "c1", "name": "f", "response": "R"}}]},
                ],
            }
        )
    },
    "Vercel's prompt": {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.prompt.messages": json.dumps(
            [
                said("system", "S"),
                said("user", [{"type": "text", "text": "Q"}]),
                said("assistant", [{"type": "tool-call", "toolCallId": "c1", "toolName": "f", "input": {"a": 1}}]),
                said("tool", [{"type": "tool-result", "toolCallId": "c1", "toolName": "f", "output": "R"}]),
            ]
        ),
    },
}


@pytest.mark.parametrize("shape", SENT)
def test_what_a_call_sent_reads_the_same_in_every_convention(shape: str) -> None:
    assert facts(SENT[shape], "messages") == CONVERSATION


def test_messages_in_events_read_the_same() -> None:
    one_each = [
        {"name": "gen_ai.system.message", "attributes": {"content": "S"}},
        {"name": "gen_ai.user.message", "attributes": {"content": '[{"text": "Q"}]'}},
        {
            "name": "gen_ai.assistant.message",
            "attributes": {"tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": '{"a": 1}'}}]},
        },
        {"name": "gen_ai.tool.message", "attributes": {"content": "R", "id": "c1"}},
        {"name": "gen_ai.choice", "attributes": {"message": {"role": "assistant", "content": "A"}}},
    ]
    assert facts({}, "messages", "reply", events=one_each) == [CONVERSATION, [AssistantMessage("A")]]
    details = {
        "gen_ai.system_instructions": [{"type": "text", "content": "S"}],
        "gen_ai.input.messages": json.dumps([parts("user", "Q")]),
        "gen_ai.output.messages": json.dumps([parts("assistant", "A")]),
    }
    at_once = [{"name": "gen_ai.client.inference.operation.details", "attributes": details}]
    assert facts({}, "messages", "reply", events=at_once) == [CONVERSATION[:2], [AssistantMessage("A")]]


def test_strands_tool_events_hold_arguments_and_result() -> None:
    events = [
        {"name": "gen_ai.tool.message", "attributes": {"role": "tool", "content": '{"city": "Oslo"}', "id": "c1"}},
        {"name": "gen_ai.choice", "attributes": {"message": '[{"text": "21 C"}]', "id": "c1"}},
    ]
    found = facts({"gen_ai.operation.name": "execute_tool"}, "arguments", "result", "tool_id", events=events)
    assert found == [{"city": "Oslo"}, [{"text": "21 C"}], "c1"]


def test_semantic_kernels_content_events() -> None:
    events = [
        {"name": "gen_ai.content.prompt", "attributes": {"gen_ai.prompt": json.dumps([said("user", "Q")])}},
        {
            "name": "gen_ai.content.completion",
            "attributes": {"gen_ai.completion": json.dumps([said("assistant", "A")])},
        },
        {"name": "gen_ai.content.completion", "attributes": {"gen_ai.completion": "plain"}},
        {"name": 5},
        "x",
    ]
    assert facts({}, "messages", "reply", events=events) == [
        [UserMessage("Q")],
        [AssistantMessage("A"), AssistantMessage("plain")],
    ]


def test_a_vector_stores_events_are_documents() -> None:
    events = [
        {"name": "db.query.result", "attributes": {"db.query.result.document": "text", "db.query.result.id": "7"}}
    ]
    assert documents_of(facts({}, "documents", events=events)) == [RetrievedDoc("7", "text")]


REPLY = AssistantMessage("A", [ToolCall("c1", "f", {"a": 1})])
GOT = {
    "GenAI": {"gen_ai.output.messages": json.dumps([parts("assistant", "A", CALL)])},
    "OpenInference": {
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "A",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "f",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"a": 1}',
    },
    "flat legacy": {
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "A",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "f",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"a": 1}',
    },
    "a printed message": {
        "gen_ai.output.messages": json.dumps(
            [
                parts(
                    "assistant",
                    "{'content': 'A', 'role': 'assistant', 'tool_calls': "
                    "[{'id': 'c1', 'function': {'arguments': '{\"a\": 1}', 'name': 'f'}, 'type': 'function'}]}",
                )
            ]
        )
    },
    "ADK": {
        "gcp.vertex.agent.llm_request": "{}",
        "gcp.vertex.agent.llm_response": json.dumps(
            {
                "content": {
                    "role": "model",
                    "parts": [{"text": "A"}, {"function_call": {"id": "c1", "name": "f", "args": {"a": 1}}}],
                }
            }
        ),
    },
    "Vercel": {
        "ai.response.text": "A",
        "ai.response.toolCalls": json.dumps([{"toolCallId": "c1", "toolName": "f", "args": '{"a": 1}'}]),
    },
    "a chat completion that MLflow recorded": {
        "mlflow.spanOutputs": json.dumps(
            {
                "choices": [
                    {
                        "message": {
                            "role": "assistant",
                            "content": "A",
                            "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": '{"a": 1}'}}],
                        }
                    }
                ]
            }
        )
    },
}


@pytest.mark.parametrize("shape", GOT)
def test_what_a_call_got_reads_the_same_in_every_convention(shape: str) -> None:
    assert facts(GOT[shape], "reply") == [REPLY]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        pytest.param(
            "ResponseFunctionToolCall(arguments='{\"a\": 1}', call_id='c1', name='f', type='function_call')",
            [AssistantMessage("", [ToolCall("c1", "f", {"a": 1})])],
            id="a printed call",
        ),
        pytest.param(
            "{'id': 'r', 'output': [{'type': 'message', 'role': 'assistant', 'content': [{'type': 'output_text', "
            "'text': 'A'}]}]}",
            [AssistantMessage("A")],
            id="a printed response",
        ),
        pytest.param(
            "ResponseFunctionToolCall(arguments='{\"a\": 1}', call_id='c1', na", [], id="a cut one is no answer"
        ),
        pytest.param("{'id': 'r', 'output': [{'ty", [], id="a cut dict is no answer"),
        pytest.param("f(x) = 2", [AssistantMessage("f(x) = 2")], id="a text that only looks like one"),
        pytest.param("{'a': 1}", [AssistantMessage("{'a': 1}")], id="a printed dict that is no message"),
    ],
)
def test_printed_replies(text: str, right: list[Any]) -> None:
    assert (facts({"gen_ai.output.messages": json.dumps([parts("assistant", text)])}, "reply") or []) == right


USAGE = [
    ({"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}, TokenUsage(10, 2, 12)),
    ({"gen_ai.usage.prompt_tokens": "10", "gen_ai.usage.completion_tokens": "2"}, TokenUsage(10, 2, 12)),
    (
        {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2, "gen_ai.usage.cache_read.input_tokens": 4},
        TokenUsage(10, 2, 12, 4),
    ),
    (
        {"llm.token_count.prompt": 10, "llm.token_count.completion": 2, "llm.token_count.total": 13},
        TokenUsage(10, 2, 13),
    ),
    ({"llm.token_count.prompt": 10, "llm.token_count.prompt_details.cache_read": 3}, TokenUsage(10, 0, 10, 3)),
    ({"openinference.span.kind": "LLM", "llm.token_count.total": 9}, TokenUsage(9, 0, 9)),
    ({"gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0}, None),
    ({"gen_ai.usage.input_tokens": "many", "gen_ai.usage.output_tokens": None}, None),
    ({"gen_ai.usage.input_tokens": -5, "gen_ai.usage.output_tokens": 2}, TokenUsage(0, 2, 2)),
    ({"gen_ai.aggregated_usage.input_tokens": 10, "gen_ai.agent.name": "x"}, None),
    ({"crewai.crew.token_usage": "total_tokens=9", "crewai.crew.id": "x"}, None),
    ({"ai.usage.promptTokens": 10, "ai.usage.completionTokens": 2}, TokenUsage(10, 2, 12)),
    (
        {
            "gcp.vertex.agent.llm_request": "{}",
            "gcp.vertex.agent.llm_response": json.dumps(
                {"usage_metadata": {"prompt_token_count": 10, "candidates_token_count": 2}}
            ),
        },
        TokenUsage(10, 2, 12),
    ),
]


@pytest.mark.parametrize(("attributes", "right"), USAGE, ids=lambda value: str(value)[:70])
def test_usage(attributes: dict[str, Any], right: TokenUsage | None) -> None:
    assert facts(attributes, "usage") == right


TOOLS = {
    "GenAI": {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "f",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"a": 1}',
        "gen_ai.tool.call.result": "R",
    },
    "OpenInference": {
        "openinference.span.kind": "TOOL",
        "tool.name": "f",
        "tool_call.id": "c1",
        "input.value": '{"a": 1}',
        "output.value": "R",
    },
    "pydantic-ai": {
        "gen_ai.tool.name": "f",
        "gen_ai.tool.call.id": "c1",
        "tool_arguments": '{"a": 1}',
        "tool_response": "R",
    },
    "Vercel": {
        "ai.toolCall.name": "f",
        "ai.toolCall.id": "c1",
        "ai.toolCall.args": '{"a": 1}',
        "ai.toolCall.result": "R",
    },
}


@pytest.mark.parametrize("shape", TOOLS)
def test_tool_executions_read_the_same_in_every_convention(shape: str) -> None:
    assert facts(TOOLS[shape], "tool_name", "tool_id", "arguments", "result") == ["f", "c1", {"a": 1}, "R"]


def test_llamaindex_tools_through_traceloop() -> None:
    attributes = {
        "traceloop.span.kind": "task",
        "traceloop.entity.name": "Workflow.task",
        "tool.name": "f",
        "tool.arguments": '{"a": 1}',
        "traceloop.entity.output": json.dumps(
            {"tool_name": "f", "tool_id": "c1", "tool_output": {"raw_output": "R", "blocks": []}}
        ),
    }
    name, call_id, arguments = facts(attributes, "tool_name", "tool_id", "arguments")
    assert (name, call_id, arguments) == ("f", "c1", {"a": 1})


DOCUMENTS = [
    pytest.param(
        {
            "openinference.span.kind": "RETRIEVER",
            "input.value": "q",
            "retrieval.documents.0.document.id": "1",
            "retrieval.documents.0.document.content": "text",
            "retrieval.documents.0.document.score": "0.5",
            "retrieval.documents.0.document.metadata": '{"page": 3}',
        },
        id="OpenInference",
    ),
    pytest.param(
        {
            "traceloop.span.kind": "retriever",
            "traceloop.entity.input": '{"inputs": {"query": "q"}}',
            "traceloop.entity.output": json.dumps(
                {"documents": [{"id": "1", "page_content": "text", "score": 0.5, "metadata": {"page": 3}}]}
            ),
        },
        id="Traceloop",
    ),
    pytest.param(
        {
            "mlflow.spanType": "RETRIEVER",
            "mlflow.spanInputs": '{"query": "q"}',
            "mlflow.spanOutputs": json.dumps(
                [{"node": {"id_": "1", "text": "text", "metadata": {"page": 3}}, "score": 0.5}, ""]
            ),
        },
        id="nodes with scores",
    ),
]


@pytest.mark.parametrize("attributes", DOCUMENTS)
def test_retrievals(attributes: dict[str, Any]) -> None:
    query, found = facts(attributes, "query", "documents")
    assert query == "q"
    assert documents_of(found) == [RetrievedDoc("1", "text", 0.5, {"page": 3})]


@pytest.mark.parametrize(
    ("value", "right"),
    [
        (["a", "", {"x": 1}, 5], [RetrievedDoc(content="a")]),
        ([[{"text": "a"}], [{"text": "b"}]], [RetrievedDoc(content="a"), RetrievedDoc(content="b")]),
        ('[{"kwargs": {"page_content": "a"}}]', [RetrievedDoc(content="a")]),
        ("nothing", []),
        (None, []),
    ],
)
def test_documents_of(value: Any, right: list[RetrievedDoc]) -> None:
    assert documents_of(value) == right


@pytest.mark.parametrize(
    ("value", "right"),
    [
        (
            '[{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"x": 1}}}]',
            ("f", "d", {"x": 1}),
        ),
        ([{"name": "f", "description": "d", "parameters": '{"x": 1}'}], ("f", "d", {"x": 1})),
        ([{"toolSpec": {"name": "f", "description": "d", "inputSchema": {"x": 1}}}], ("f", "d", {"x": 1})),
        (
            [{"function_declarations": [{"name": "f", "description": "d", "parameters": {"x": 1}}]}],
            ("f", "d", {"x": 1}),
        ),
        ({"f": {"name": "f", "description": "d", "input_schema": {"x": 1}}}, ("f", "d", {"x": 1})),
        (["f"], ("f", "", None)),
    ],
)
def test_tool_definitions(value: Any, right: tuple[Any, ...]) -> None:
    assert tool_definitions(value) == [ToolDefinition(*right)]
    assert tool_definitions([{"description": "nameless"}, 5]) == []


def test_tools_of_each_convention() -> None:
    right = [ToolDefinition("f", "d", {"x": 1})]
    rows = {"llm.request.functions.0.name": "f", "llm.request.functions.0.description": "d"}
    assert facts({**rows, "llm.request.functions.0.parameters": '{"x": 1}'}, "tools") == right
    schema = json.dumps({"type": "function", "function": {"name": "f", "description": "d", "parameters": {"x": 1}}})
    assert facts({"openinference.span.kind": "LLM", "llm.tools.0.tool.json_schema": schema}, "tools") == right
    named = {
        "llm.tools.0.tool.name": "f",
        "llm.tools.0.tool.description": "d",
        "llm.tools.0.tool.json_schema": '{"x": 1}',
    }
    assert facts({"openinference.span.kind": "LLM", **named}, "tools") == right
    declared = json.dumps({"function_tools": [{"name": "f", "description": "d", "parameters_json_schema": {"x": 1}}]})
    assert facts({"model_request_parameters": declared}, "tools") == right
    crew = "[{'name': 'f', 'description': 'd', 'parameters': {'x': 1}}]"
    assert facts({"crewai.agent.role": "w", "crewai.agent.tools": crew}, "tools") == right


def test_crewai_agents_and_tasks() -> None:
    agent = {
        "crewai.agent.role": "Writer\n",
        "crewai.agent.goal": "write",
        "crewai.agent.backstory": "old",
        "crewai.agent.max_iter": "25",
    }
    assert facts(agent, "agent_name", "framework", "system_prompt", "max_iterations") == [
        "Writer",
        "crewai",
        "role: Writer\ngoal: write\nbackstory: old",
        "25",
    ]
    assert facts({"crewai.task.description": "Do it", "crewai.task.id": "1"}, "input") == "Do it"


def test_models_and_vendors() -> None:
    genai = {
        "gen_ai.request.model": "m",
        "gen_ai.response.model": "m-2026",
        "gen_ai.provider.name": "p",
        "gen_ai.system": "s",
    }
    assert facts(genai, "model", "vendor") == ["m-2026", "p"]
    assert facts({"llm.model_name": "m", "llm.system": "s", "llm.provider": "p"}, "model", "vendor") == ["m", "p"]
    held = {"openinference.span.kind": "LLM", "llm.invocation_parameters": '{"temperature": 0}'}
    assert facts(held, "temperature") == 0


def test_plain_text_values_are_not_opened_where_the_writer_says_so() -> None:
    value = {"openinference.span.kind": "CHAIN", "input.value": '{"a": 1}'}
    assert facts(value, "input") == {"a": 1}
    assert facts({**value, "input.mime_type": "text/plain"}, "input") == '{"a": 1}'


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("Name(a=1, b=[True, None], c=Inner('x'))", {"a": 1, "b": [True, None], "c": {"args": ["x"]}}),
        ("{'a': -1.5, 'b': (1, 2), **rest}", {"a": -1.5, "b": [1, 2]}),
        ("Message(role=<Role.USER: 'user'>, kind=Kind.PLAIN)", {"role": "user", "kind": "Kind.PLAIN"}),
        ("Name(a=1", None),
        ("Name(a=1 + 2)", None),
        ("just text", None),
        ("f(" * 5000 + ")" * 5000, None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_printed_objects_are_read_and_never_evaluated(text: str, right: Any) -> None:
    assert printed(text) == right


def test_events_with_a_body_or_json_content() -> None:
    events = [
        {"name": "gen_ai.user.message", "attributes": {"body": {"content": "Q"}}},
        {"name": "gen_ai.user.message", "attributes": {"content": ""}},
        {"name": "gen_ai.choice", "attributes": {"message": "A", "finish_reason": "stop"}},
        {"name": "gen_ai.choice", "attributes": {"event.content": {"message": {"content": "B"}}}},
    ]
    sent, got = facts({}, "messages", "reply", events=events)
    assert sent == [UserMessage("Q")]
    assert got[0] == AssistantMessage("A")


def test_a_tools_arguments_and_result_in_message_events() -> None:
    details = {
        "gen_ai.input.messages": json.dumps([parts("assistant", CALL)]),
        "gen_ai.output.messages": json.dumps(
            [parts("tool", {"type": "tool_call_response", "id": "c1", "response": "R"})]
        ),
    }
    events = [{"name": "gen_ai.client.inference.operation.details", "attributes": details}]
    assert facts({}, "arguments", "result", events=events) == [{"a": 1}, "R"]
    assert facts({}, "arguments", "result", "tool_id", events=[{"name": "exception"}]) == [None, None, None]


def test_older_pydantic_ai_calls_hold_their_messages_as_events() -> None:
    held = [
        {"event.name": "gen_ai.system.message", "role": "system", "content": "S"},
        {"event.name": "gen_ai.user.message", "role": "user", "content": "Q"},
        {"event.name": "gen_ai.choice", "message": {"role": "assistant", "content": "A"}},
        "x",
    ]
    sent, got = facts({"events": json.dumps(held), "gen_ai.operation.name": "chat"}, "messages", "reply")
    assert (sent, got) == ([SystemMessage("S"), UserMessage("Q")], [AssistantMessage("A")])


def test_pydantic_ai_runs_on_from_a_history() -> None:
    history = [parts("user", "P"), parts("assistant", "A"), parts("user", "Q"), parts("assistant", "B")]
    attributes = {"pydantic_ai.all_messages": json.dumps(history), "pydantic_ai.new_message_index": 2}
    assert facts(attributes, "input") == history[2:]
    assert facts({**attributes, "pydantic_ai.new_message_index": 99}, "input") == history
    assert facts({"pydantic_ai.all_messages": "[]", "all_messages_events": "x"}, "input") is None


@pytest.mark.parametrize(
    ("attributes", "right"),
    [
        ({"gen_ai.output.messages": json.dumps(parts("assistant", "A"))}, [AssistantMessage("A")]),
        ({"gen_ai.output.messages": "A"}, [AssistantMessage("A")]),
        ({"llm.choices.0.completion.text": "A", "openinference.span.kind": "LLM"}, [AssistantMessage("A")]),
        ({"llm.completions.0.content": "A"}, [AssistantMessage("A")]),
        ({"ai.response.object": '{"x": 1}'}, [AssistantMessage('{"x": 1}')]),
        ({"langfuse.observation.output": '{"role": "assistant", "content": "A"}'}, [AssistantMessage("A")]),
        ({"langfuse.observation.output": '[{"role": "assistant", "content": "A"}]'}, [AssistantMessage("A")]),
        ({"langfuse.observation.output": "A"}, [AssistantMessage("A")]),
    ],
)
def test_replies_in_rarer_shapes(attributes: dict[str, Any], right: list[Any]) -> None:
    assert facts(attributes, "reply") == right


@pytest.mark.parametrize(
    ("attributes", "right"),
    [
        ({"llm.prompts.0.prompt.text": "Q", "openinference.span.kind": "LLM"}, [UserMessage("Q")]),
        ({"llm.prompts.0.content": "Q"}, [UserMessage("Q")]),
        ({"ai.prompt": '{"system": "S", "prompt": "Q"}'}, [SystemMessage("S"), UserMessage("Q")]),
        ({"mlflow.spanInputs": '{"messages": [{"role": "user", "content": "Q"}]}'}, [UserMessage("Q")]),
        ({"langfuse.observation.input": "Q"}, [UserMessage("Q")]),
        (
            {"openinference.span.kind": "LLM", "input.value": '{"messages": [{"role": "user", "content": "Q"}]}'},
            [UserMessage("Q")],
        ),
        (
            {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.function_call.name": "f"},
            [AssistantMessage("", [ToolCall("", "f")])],
        ),
    ],
)
def test_messages_in_rarer_shapes(attributes: dict[str, Any], right: list[Any]) -> None:
    assert facts(attributes, "messages") == right


def test_queries_in_rarer_shapes() -> None:
    assert facts({"traceloop.span.kind": "retriever", "traceloop.entity.input": '{"query": "q"}'}, "query") == "q"
    assert facts({"traceloop.span.kind": "retriever", "traceloop.entity.input": "q"}, "query") == "q"
    assert facts({"mlflow.spanType": "RETRIEVER", "mlflow.spanInputs": '{"x": 1}'}, "query") == '{"x": 1}'
    assert facts({"openinference.span.kind": "RETRIEVER", "input.value": '{"query": "q"}'}, "query") == "q"


def test_tools_that_adk_declares() -> None:
    declared = {"config": {"tools": [{"function_declarations": [{"name": "f", "description": "d"}]}]}}
    assert facts({"gcp.vertex.agent.llm_request": json.dumps(declared)}, "tools") == [ToolDefinition("f", "d")]
    assert facts({"gcp.vertex.agent.llm_request": "{}", "gcp.vertex.agent.llm_response": "{}"}, "tools", "usage") == [
        None,
        None,
    ]


def test_several_printed_replies_in_one_text() -> None:
    text = (
        "ResponseOutputMessage(id='1', content=[ResponseOutputText(text='A', type='output_text')], role='assistant')\n"
        "ResponseFunctionToolCall(arguments='{}', call_id='c1', name='f')"
    )
    found = facts({"gen_ai.output.messages": json.dumps([parts("assistant", text)])}, "reply")
    assert [(message.content, [call.name for call in message.tool_calls]) for message in found] == [
        ("A", []),
        ("", ["f"]),
    ]
