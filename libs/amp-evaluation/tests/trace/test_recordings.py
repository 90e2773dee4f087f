"""True facts from real frameworks' spans: what the parser finds equals what the model server's log says.

The recordings are explained in `recordings/README.md`. A null in `facts.json` is a fact that the spans don't hold.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from amp_evaluation import EvalResult, evaluator
from amp_evaluation.trace import Trace, TraceLoader, parse_trace_for_evaluation

FOLDER = Path(__file__).parent.parent / "recordings" / "otlp"
FACTS: dict[str, dict[str, Any]] = json.loads((FOLDER.parent / "facts.json").read_text("utf-8"))
NAMES = sorted(FACTS)


@cache
def recorded(name: str) -> list[Trace]:
    """The traces of a recording that ran something: frameworks also trace the making of an agent."""
    traces = [parse_trace_for_evaluation(otel) for otel in TraceLoader(FOLDER / f"{name}.json").iter_traces()]
    return [trace for trace in traces if not trace.initialization_only]


def facts(key: str) -> list[Any]:
    return [pytest.param(name, FACTS[name][key], id=name) for name in NAMES if FACTS[name][key] is not None]


@pytest.mark.parametrize(("name", "wanted"), facts("input"))
def test_the_input_is_what_the_user_wrote(name: str, wanted: str) -> None:
    assert [trace.input for trace in recorded(name)] == [wanted]


@pytest.mark.parametrize(("name", "wanted"), facts("output"))
def test_the_output_is_the_final_answer(name: str, wanted: str) -> None:
    assert [trace.output for trace in recorded(name)] == [wanted]


@pytest.mark.parametrize(("name", "wanted"), facts("tools"))
def test_the_tools_are_those_that_ran(name: str, wanted: list[dict[str, Any]]) -> None:
    calls = [call for trace in recorded(name) for call in trace.get_tool_calls()]
    assert [call.name for call in calls] == [tool["name"] for tool in wanted]
    for call, tool in zip(calls, wanted, strict=True):
        assert tool["arguments"] is None or call.arguments == tool["arguments"]
        assert tool["failed"] is None or call.metrics.error is tool["failed"]
        assert tool["result"] is None or call.result == tool["result"]


@pytest.mark.parametrize(("name", "wanted"), facts("retrieval"))
def test_the_retrieval_has_its_query_and_documents(name: str, wanted: dict[str, Any]) -> None:
    [retrieval] = [found for trace in recorded(name) for found in trace.get_retrievals()]
    assert retrieval.query == wanted["query"]
    assert [document.content for document in retrieval.documents] == wanted["documents"]


@pytest.mark.parametrize(("name", "wanted"), facts("tokens"))
def test_the_tokens_are_those_that_the_model_server_counted(name: str, wanted: list[int]) -> None:
    usages = [trace.metrics.token_usage for trace in recorded(name)]
    assert [sum(u.input_tokens for u in usages), sum(u.output_tokens for u in usages)] == wanted


@pytest.mark.parametrize(("name", "wanted"), facts("llm_calls"))
def test_the_model_calls_are_those_that_the_model_server_got(name: str, wanted: int) -> None:
    assert sum(len(trace.get_llm_calls()) for trace in recorded(name)) == wanted


@evaluator("probe")
def probe(trace: Trace) -> EvalResult:
    return EvalResult(1.0)


@pytest.mark.parametrize(("name", "failed"), facts("failed"))
def test_a_failed_run_is_not_scored_and_a_good_one_is(name: str, failed: bool) -> None:
    assert [score.is_skipped for trace in recorded(name) for score in probe.run(trace)] == [failed]


def test_each_recording_has_its_facts_and_is_small() -> None:
    files = list(FOLDER.glob("*.json"))
    assert {path.stem for path in files} == set(FACTS)
    assert max(path.stat().st_size for path in files) < 60_000
