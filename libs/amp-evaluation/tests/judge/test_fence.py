"""Judged text stays between marks that it can't close, is bounded, and holds nothing that a judge can't read."""

from __future__ import annotations

import dataclasses
import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation.judge.fence import MAX_PROMPT_CHARS, bound, clean, fence, insert, sendable
from amp_evaluation.judge.frame import framed, with_correction
from amp_evaluation.judge.views import view
from amp_evaluation.trace.models import (
    AgentTrace,
    LLMSpan,
    RetrievedDoc,
    RetrieverSpan,
    ToolExecutionStep,
    ToolMetrics,
    ToolSpan,
    Trace,
    UserInputStep,
    UserMessage,
)

MARK = re.compile(r"<untrusted id=([0-9a-f]{12})>(.*?)</untrusted id=\1>", re.DOTALL)
IMAGE = "data:image/png;base64," + "iVBORw0KGgo" * 200_000


def inside(prompt: str) -> list[str]:
    return [found[2].strip("\n") for found in MARK.finditer(prompt)]


def trace() -> Trace:
    spans = [
        ToolSpan("t1", name="search", arguments={"q": "x"}, result={"hits": ["a"]}),
        ToolSpan("t2", name="book", metrics=ToolMetrics(error=True, error_message="sold out")),
        RetrieverSpan("r1", query="q", documents=[RetrievedDoc(id="d", content="doc", score=0.5)]),
    ]
    made = Trace("trace-1", input="What?", output="That.", timestamp=datetime(2026, 1, 1, tzinfo=UTC))
    made.spans = list(spans)
    return made


@given(st.text(), st.text())
def test_nothing_inside_closes_the_fence(text: str, more: str) -> None:
    fenced = fence(text)
    again = fence(f"{text}{fenced}{more}")
    assert len(inside(again)) <= 1
    assert clean(again).count("</untrusted id=" + again[14:26] + ">") == (again != "(empty)")


def test_a_text_that_quotes_its_own_first_fence_gets_another_mark() -> None:
    first = fence("give 1")
    second = fence(first)
    assert inside(second) == [first]


def test_the_same_text_gives_the_same_fence() -> None:
    assert fence("a") == fence("a") != fence("b")


@pytest.mark.parametrize("text", ["", " \n"], ids=["nothing", "blanks"])
def test_an_empty_text_is_shown_as_empty(text: str) -> None:
    assert fence(text) == "(empty)"


@pytest.mark.parametrize(
    ("value", "spec", "shown"),
    [
        pytest.param(3, "", "3", id="a number stands as it is"),
        pytest.param(0.5, ".2f", "0.50", id="with its format"),
        pytest.param(True, "", "True", id="a truth value"),
        pytest.param(None, "", "None", id="nothing"),
    ],
)
def test_what_is_no_text_needs_no_fence(value: object, spec: str, shown: str) -> None:
    assert insert(value, spec) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param("a", "a", id="text"),
        pytest.param({"a": ["b"]}, '{"a": ["b"]}', id="a dict is JSON"),
        pytest.param({"é": {1}}, '{"é": [1]}', id="a set too, letters as they are"),
        pytest.param([datetime(2026, 1, 1)], '["2026-01-01T00:00:00"]', id="a date"),
        pytest.param([object()], '["(object)"]', id="any object, without its repr"),
        pytest.param((word for word in ["a", "b"]), '["a", "b"]', id="a generator"),
        pytest.param(UserMessage("hi"), '{"type": "UserMessage", "content": "hi"}', id="a message"),
    ],
)
def test_everything_else_is_fenced(value: object, shown: str) -> None:
    assert inside(insert(value)) == [shown]


def test_images_and_encoded_bytes_become_placeholders() -> None:
    shown = fence(f"see {IMAGE} and {'aB3' * 300} but not {'a' * 300}")
    assert "iVBOR" not in shown
    assert "[image/png, 2200022 characters]" in shown
    assert "[encoded data, 900 characters]" in shown
    assert "a" * 300 in shown


def test_lone_surrogates_and_nuls_are_replaced() -> None:
    assert clean("a\ud83db\x00c") == "a\ufffdbc"
    json.dumps(fence("\udc00"), ensure_ascii=False).encode()


class TestView:
    def test_texts_fence_themselves_however_they_are_put_in(self) -> None:
        seen = view(trace())
        for prompt in (
            f"{seen.output}",
            f"{seen.output!s}",
            f"{seen.output!r}",
            f"{seen.output:>10}",
            f"{seen.output[:5]}",
            f"{seen.output.strip().upper().lower().replace('t', 'T')}",
            f"{seen.input or 'nothing'}",
            "Q: " + seen.output,
            seen.output + " end",
            "{}".format(seen.output),  # noqa: UP032
        ):
            assert len(inside(prompt)) == 1, prompt

    def test_compared_measured_and_searched_they_are_the_text(self) -> None:
        seen = view(trace())
        assert seen.output == "That." == str(seen.output)
        assert len(seen.output) == 5
        assert "Tha" in seen.output
        assert {seen.output: 1}["That."] == 1
        assert json.dumps({"a": seen.output}) == '{"a": "That."}'

    def test_ids_numbers_and_times_stand_as_they_are(self) -> None:
        seen = view(trace())
        assert f"{seen.trace_id} {len(seen.spans)} {seen.timestamp:%Y}" == "trace-1 3 2026"

    def test_objects_below_are_views_of_their_own_kind(self) -> None:
        seen = view(trace())
        tool, failed, found = seen.spans
        assert isinstance(seen, Trace)
        assert isinstance(tool, ToolSpan)
        assert inside(f"{tool.name} {tool.arguments['q']} {found.documents[0].content}") == ["search", "x", "doc"]
        assert inside(f"{failed.metrics.error_message}") == ["sold out"]
        match tool:
            case ToolSpan(name=name):
                assert name == "search"

    def test_methods_give_views_too(self) -> None:
        seen = view(trace())
        assert inside(f"{seen.format_spans()}")
        assert inside(f"{seen.get_tool_calls()[0].name}") == ["search"]
        assert isinstance(seen.create_agent_trace("x"), AgentTrace)

    def test_whole_objects_are_json_without_ids_and_figures(self) -> None:
        seen = view(trace())
        assert inside(f"{seen.get_tool_calls()}") == [
            '[{"type": "ToolSpan", "name": "search", "arguments": {"q": "x"}, "result": {"hits": ["a"]}}, '
            '{"type": "ToolSpan", "name": "book", "error": "sold out"}]'
        ]
        assert f"{seen.spans[0]}" == repr(seen.spans[0]) == str(seen.spans[0]) == insert(trace().spans[0])
        assert inside(f"{seen.spans[0].arguments}") == ['{"q": "x"}'] == inside(str(seen.spans[0].arguments))
        assert str(seen.spans) == repr(seen.spans)

    def test_a_tools_output_is_said_once(self) -> None:
        step = ToolExecutionStep("search", tool_output={"a": 1}, content='{"a": 1}')
        assert inside(f"{view(step)}") == [
            '{"type": "ToolExecutionStep", "tool_name": "search", "tool_output": {"a": 1}}'
        ]

    def test_tuples_keep_their_kind(self) -> None:
        seen = view((UserInputStep("a"), 1))
        assert inside(f"{seen[0].content} {seen[1]}") == ["a"]
        assert isinstance(seen, tuple)

    def test_copies_of_a_view_are_plain_objects(self) -> None:
        copied = dataclasses.replace(view(trace()), input="other")
        assert copied.input == "other"
        assert dataclasses.asdict(view(LLMSpan("l", output="o")))["output"] == "o"

    def test_the_real_object_is_unchanged(self) -> None:
        real = trace()
        seen = view(real)
        seen.spans.clear()
        assert real == trace()
        assert type(real.output) is str


class TestBound:
    def test_a_short_prompt_is_left_alone(self) -> None:
        prompt = "rules " + fence("text")
        assert bound(prompt) is prompt

    def test_the_longest_judged_text_loses_its_middle(self) -> None:
        prompt = f"rules {fence('x y' * 100_000)} {fence('short')} end"
        shown = bound(prompt)
        assert len(shown) <= MAX_PROMPT_CHARS
        assert "characters left out here" in shown
        assert inside(shown)[1] == "short"
        assert shown.startswith("rules ")
        assert shown.endswith(" end")

    def test_several_long_texts_share_the_room(self) -> None:
        parts = [len(text) for text in inside(bound(" ".join(fence(word * 40_000) for word in ("a b", "c d", "e f"))))]
        assert max(parts) - min(parts) < 100

    def test_instructions_are_cut_last(self) -> None:
        shown = bound("r u" * 60_000 + fence("t x" * 1000))
        assert len(shown) <= MAX_PROMPT_CHARS
        assert len(inside(shown)[0]) >= 300

    def test_the_mark_says_how_much_is_missing(self) -> None:
        text = "a b" * 1000
        shown = bound(text, 1000)
        missing = int(re.search(r"… ([\d,]+) characters", shown)[1].replace(",", ""))  # type: ignore[index]
        assert len(shown) - len(f"\n[… {missing:,} characters left out here …]\n") + missing == len(text)

    @given(st.lists(st.integers(0, 5000), max_size=30), st.integers(3000, 20_000))
    def test_the_bound_holds_and_fences_stay_whole(self, lengths: list[int], limit: int) -> None:
        prompt = "rules " + " ".join(fence("w " * length) for length in lengths)
        shown = bound(prompt, limit)
        marks = sum(1 for length in lengths if length)
        assert len(shown) <= max(limit, 120 * marks + 200)
        assert len(inside(shown)) == marks

    def test_a_frame_fits_around_the_longest_prompt(self) -> None:
        sent = framed("x y" * 100_000)
        assert len(sent) <= MAX_PROMPT_CHARS
        assert sent.endswith("or the score.")

    def test_what_is_sent_holds_no_encoded_bytes_outside_fences_either(self) -> None:
        assert "iVBOR" not in sendable("plain " + IMAGE)

    def test_a_correction_names_the_fault_and_keeps_the_question(self) -> None:
        assert with_correction("question {x}", "no {score}").startswith("question {x}")
        assert "no {score}" in with_correction("question", "no {score}")
