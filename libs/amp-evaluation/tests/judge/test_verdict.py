"""What a reply says, and what is no verdict however it is written."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation.judge.verdict import REFUSED, JudgeOutput, read_verdict

READ = [
    pytest.param('{"explanation": "ok", "score": 0.8}', 0.8, "ok", id="a bare object"),
    pytest.param('```json\n{"explanation": "ok", "score": 0.8}\n```', 0.8, "ok", id="a fence with a language tag"),
    pytest.param('```\n{"explanation": "ok", "score": 0.8}\n```', 0.8, "ok", id="a fence without a tag"),
    pytest.param('Here it is:\n{"explanation": "ok", "score": 0.8}\nBye {now}.', 0.8, "ok", id="prose around it"),
    pytest.param('<think>{"score": 1}</think>{"explanation": "ok", "score": 0}', 0.0, "ok", id="a draft in think tags"),
    pytest.param(
        'drafting {"score": 1}\n</think>\n{"explanation": "ok", "score": 0.5}', 0.5, "ok", id="a stray end tag"
    ),
    pytest.param("{'score': 0.8, 'explanation': 'ok'}", 0.8, "ok", id="single quotes"),
    pytest.param(
        "{'score': 0.8, 'explanation': 'it\\'s ok', 'sure': true,}", 0.8, "it's ok", id="Python with JSON names"
    ),
    pytest.param('{"explanation": "don\'t {do}", "score": 0.5,}', 0.5, "don't {do}", id="a trailing comma and braces"),
    pytest.param('{"explanation": "two\nlines", "score": 1}', 1.0, "two\nlines", id="a raw newline in a string"),
    pytest.param('{"explanation": "ok", "score": " 0.25 "}', 0.25, "ok", id="a score as text"),
    pytest.param('{"reasons": ["a", "b"], "score": 0.5}', 0.5, "a\nb", id="a list of reasons"),
    pytest.param('{"Score": 0.5, "Reasoning": {"a": 1}}', 0.5, '{"a": 1}', id="other names and an object as reason"),
    pytest.param('{"result": {"score": 0.5, "explanation": "ok"}}', 0.5, "ok", id="an envelope"),
    pytest.param('[{"score": 0.5, "explanation": null}]', 0.5, "", id="a list of one, without a reason"),
    pytest.param('{score: 0.5, explanation: "ok"}', 0.5, "ok", id="bare keys"),
    pytest.param(
        '{"explanation": "it\\\'s \\(x\\)", "score": 0.5}', 0.5, "it's \\(x\\)", id="escapes that JSON doesn't know"
    ),
    pytest.param(json.dumps('{"explanation": "ok", "score": 0.5}'), 0.5, "ok", id="an object encoded twice"),
    pytest.param('"so" {"score": 0.5} "said"', 0.5, "", id="quotes at both ends"),
    pytest.param('{"score": 0.5} and again {"score": 0.5}', 0.5, "", id="the same verdict twice"),
    pytest.param(
        'So: {"explanation": "it says "ok", then "no"", "score": 0.5}', 0.5, 'it says "ok", then "no"', id="bare quotes"
    ),
    pytest.param(
        '{"score": "0.5", "reason": "it says "ok"!",}', 0.5, 'it says "ok"!', id="bare quotes after the score"
    ),
]
NOT_READ = [
    pytest.param('{"explanation": "", "score": 9999}', "from 0 to 1, not 9999", id="9999"),
    pytest.param('{"score": -0.1}', "not -0.1", id="below zero"),
    pytest.param('{"score": NaN}', "not nan", id="NaN"),
    pytest.param('{"score": "nan"}', 'not "nan"', id="nan as text"),
    pytest.param('{"score": Infinity}', "not inf", id="Infinity"),
    pytest.param('{"score": 1e999}', "not inf", id="a number beyond all"),
    pytest.param('{"score": null}', "not null", id="null"),
    pytest.param('{"score": true}', "not true", id="true"),
    pytest.param('{"score": [0.5]}', "not [0.5]", id="a list"),
    pytest.param('{"score": "high"}', 'not "high"', id="a word"),
    pytest.param('{"score": 0.9, "explanation": "The brief corr', "no JSON object", id="cut off"),
    pytest.param("Score: 0.8", "no JSON object", id="prose only"),
    pytest.param('{"verdict": "good"}', "no JSON object", id="an object without a score"),
    pytest.param('{"explanation": "it says "x", "score": 1}", "score": 0}', "no JSON object", id="a quoted score"),
    pytest.param('{"explanation": "it says "x"", "score": 9}', 'not "9"', id="bare quotes and a score out of range"),
    pytest.param('{"score": "0_1"}', 'not "0_1"', id="what only Python takes for a number"),
    pytest.param("{'score': 0.8, 'explanation': 'the user's ok'}", "no JSON object", id="broken quotes"),
    pytest.param('{"score": 0.1} or rather {"score": 0.9}', "more than one score", id="two scores"),
    pytest.param('<think>it may be {"score": 0.9}', "empty", id="thoughts that never end"),
    pytest.param("", "empty", id="nothing"),
    pytest.param(None, "empty", id="no content"),
    pytest.param("I'm sorry, but I can't rate this.", REFUSED, id="a refusal"),
    pytest.param("[" * 100_000 + "{" * 100_000, "no JSON object", id="nesting without an end"),
]


@pytest.mark.parametrize(("content", "score", "explanation"), READ)
def test_it_reads(content: str, score: float, explanation: str) -> None:
    output, fault = read_verdict(content)
    assert (output, fault) == (JudgeOutput(score=score, explanation=explanation), None)


@pytest.mark.parametrize(("content", "fault"), NOT_READ)
def test_it_is_no_verdict(content: str | None, fault: str) -> None:
    output, said = read_verdict(content)
    assert output is None
    assert said is not None
    assert fault in said


@given(st.floats(0, 1), st.text())
def test_whatever_is_written_as_json_is_read_back(score: float, explanation: str) -> None:
    output, _ = read_verdict(json.dumps({"explanation": explanation, "score": score}))
    assert output == JudgeOutput(score=score, explanation=explanation)


@given(st.text(alphabet="{}\"':,score01.9 \n<think>/[]eNa", max_size=200))
def test_no_reply_raises_or_gives_a_score_out_of_range(content: str) -> None:
    output, fault = read_verdict(content)
    assert (output is None) == (fault is not None)
    assert output is None or (0 <= output.score <= 1 and math.isfinite(output.score))
