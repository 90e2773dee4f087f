"""What a dry run shows: which trace it takes as the example, and that its texts are safe to show."""

from __future__ import annotations

from amp_evaluation import llm_judge
from amp_evaluation._preview import evaluator_lines, example_trace, prompt_lines
from amp_evaluation.trace import Trace
from amp_evaluation.trace.fetcher import OTELTrace


@llm_judge(name="Kind\x1b[2J", model="openai/m-1")
def kind(trace: Trace) -> str:
    """Is it kind?"""
    return f"Judge {trace.output}"


def test_a_prompt_is_shown_with_control_characters_spelled_out() -> None:
    shown = "\n".join([*evaluator_lines([kind]), *prompt_lines([kind], Trace("t1", "Q", "one\ntwo \x1b]0;owned\x07"))])
    assert "one\ntwo \\x1b]0;owned\\x07" in shown
    assert "\x1b" not in shown


def test_without_a_trace_that_can_be_parsed_there_is_no_example() -> None:
    broken = OTELTrace(traceId="t1")
    broken.defect = "not valid"
    assert example_trace([broken], None) is None
