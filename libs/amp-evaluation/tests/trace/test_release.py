"""A trace goes when its last user lets go of it: it holds its page, which can weigh 200 MB."""

import gc
from collections.abc import Iterator

import pytest
from loopback import benchmark

from amp_evaluation import builtin
from amp_evaluation.trace._wire import decode_page
from amp_evaluation.trace.parser import parse_trace_for_evaluation


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("convention", ["gen_ai", "openinference"])
def test_an_evaluated_trace_leaves_nothing_for_the_collector(convention: str) -> None:
    stored = next(benchmark(1, convention=convention)).whole
    assert isinstance(stored, bytes)
    evaluators = [builtin("step_success_rate"), builtin("latency_performance"), builtin("iteration_efficiency")]
    trace = parse_trace_for_evaluation(decode_page(b'{"traces":[' + stored + b"]}").traces[0])
    for evaluator in evaluators:
        assert evaluator.run(trace)[0].score is not None
    trace.format_spans()
    trace.get_agents()[0].input  # noqa: B018 - read on first use
    del trace
    assert gc.collect() == 0
