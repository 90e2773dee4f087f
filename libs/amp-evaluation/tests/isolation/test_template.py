"""Templates: what is text, what is a placeholder, what is a defect."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from amp_evaluation.isolation.template import TemplateDefect, parse_template

TRACE = SimpleNamespace(output="a {braced} reply", input="asked", steps=[1, 2, 3])


def render(template: str, **config: object) -> str:
    names = {"trace": TRACE, "task": None, **config}
    return parse_template(template, level="trace", config_keys=config.keys()).render(names)


LITERAL = {
    "a JSON object": '{"score": 1}',
    "a nested JSON object": '{"a": {"b": {"c": [1, {}]}}}',
    "an object over several lines": '{\n  "score": <number>,\n  "why": "..."\n}',
    "an apostrophe inside of an object": '{"score": <the judge\'s number>}',
    "an empty group": "{}",
    "a blank group": "{ }",
    "a number": "{0}",
    "a negative number": "{-1}",
    "a quantifier": "{1,3}",
    "a quoted word": "{'word'}",
    "an ellipsis": "{...}",
    "a keyword constant": "{None}",
    "an unpacked dict": "{**defaults}",
    "a brace that closes nothing": "a } b",
    "a brace after an object": '{"score": 1}}',
    "a quote at the end": 'say "yes"',
    "a backslash and an n": r"first\nsecond \\",
    "three quotes": '"""text"""',
    "a percent sign and a dollar": "100 % $x",
    "no text at all": "",
    "unknown names in an object": '{"score": {score}, "why": "{why}"}',
}


@pytest.mark.parametrize("template", LITERAL.values(), ids=LITERAL.keys())
def test_literal_text_stays_verbatim(template: str) -> None:
    assert render(template) == template


PLACEHOLDERS = {
    "an attribute": ("{trace.output}", "a {braced} reply"),
    "a length": ("{len(trace.steps)}", "3"),
    "an alternative": ("{task or 'x'}", "x"),
    "a conditional": ("{'a' if trace.output else 'b'}", "a"),
    "a conditional on the task": ("{task.name if task else 'no task'}", "no task"),
    "a join": ("{', '.join(str(s) for s in trace.steps)}", "1, 2, 3"),
    "a backslash in a string of the expression": (r"{'\n'.join(['a', trace.input])}", "a\nasked"),
    "arithmetic without names": ("{1 + 1}", "2"),
    "a list display": ("{[1, 2]}", "[1, 2]"),
    "a conversion": ("{trace.input!r}", "'asked'"),
    "an ASCII conversion": ("{'é' + trace.input!a}", "'\\xe9asked'"),
    "a format": ("{trace.input:>8}", "   asked"),
    "a conversion and a format": ("{trace.input!r:>10}", "   'asked'"),
    "a nested format": ("{trace.input:>{len(trace.steps) + 4}}", "  asked"),
    "a nested conversion in a format": ("{trace.input:{'>'!s}7}", "  asked"),
    "self-documentation": ("{trace.input=}", "trace.input='asked'"),
    "self-documentation with blanks": ("{trace.input = !s}", "trace.input = asked"),
    "self-documentation with a format": ("{trace.input=:>7}", "trace.input=  asked"),
    "an inequality": ("{trace.input != 'x'}", "True"),
    "an inequality without blanks": ("{trace.input!='x'}", "True"),
    "an equality": ("{trace.input == 'asked'}", "True"),
    "braces in a string": ("{'{}!'.format(trace.input)}", "asked!"),
    "a closing brace in a string": ("{trace.input + '}'}", "asked}"),
    "a dict display inside": ("{dict(a={'b': trace.input})['a']['b']}", "asked"),
    "an f-string inside": ('{f"<{trace.input}>"}', "<asked>"),
    "a triple-quoted string inside": ("{'''it's ''' + trace.input}", "it's asked"),
    "a lambda with its variable": ("{(lambda a: a * 2)(trace.input)}", "askedasked"),
    "a comprehension with its variable": ("{[x for x in trace.steps if x > 1]}", "[2, 3]"),
    "nested comprehensions": ("{[[y + x for y in trace.steps] for x in [1]]}", "[[2, 3, 4]]"),
    "a walrus": ("{(n := 3) + n}", "6"),
    "a colon in brackets": ("{trace.steps[1:]}", "[2, 3]"),
    "an expression over lines": ("{trace.input +\n  '!'}", "asked!"),
    "a comment": ("{trace.input  # what was asked\n}", "asked"),
    "a builtin by its dunder": ("{__import__('json').dumps(trace.steps)}", "[1, 2, 3]"),
    "an empty format": ("{trace.input:}", "asked"),
    "doubled braces": ("{{trace.input}}", "{trace.input}"),
    "a placeholder in doubled braces": ("{{{trace.input}}}", "{asked}"),
    "a placeholder and a stray brace": ("{trace.input}}", "asked}"),
    "a placeholder in an object": (
        '{"asked": "{trace.input}", "score": {score}}',
        '{"asked": "asked", "score": {score}}',
    ),
    "text on both sides": ("<{trace.input}>", "<asked>"),
}


@pytest.mark.parametrize(("template", "wanted"), PLACEHOLDERS.values(), ids=PLACEHOLDERS.keys())
def test_placeholders_are_evaluated(template: str, wanted: str) -> None:
    assert render(template) == wanted


def test_config_values_are_names_also_where_they_shadow_a_builtin() -> None:
    assert render("{threshold:.1f} {input}", threshold=0.25, input="mine") == "0.2 mine"


DEFECTS = {
    "an unknown name": ("{contxt}", "'contxt', which doesn't exist; the names that exist: task, threshold, trace"),
    "a slip": ("{trase.output}", "did you mean 'trace'?"),
    "another level's subject": ("{agent_trace.steps}", "'agent_trace'"),
    "an unknown name in a comprehension": ("{[x for x in things]}", "'things'"),
    "a loop variable outside of its loop": ("{[x for x in trace.steps] + x}", "'x'"),
    "an unknown name in a format": ("{trace.input:>{width}}", "'width'"),
    "a syntax error": ("{trace.output and}", "invalid syntax"),
    "an escaped brace": (r"{trace.input\}", "no Python expression"),
    "an assignment": ("{x = 5}", "it is a statement"),
    "an import": ("{import os}", "it is a statement"),
    "prose": ("{see what is below}", "no Python expression"),
    "an unknown conversion": ("{trace.input!x}", "!r, !s or !a, not !x"),
    "a conversion without a letter": ("{trace.input!}", "!r, !s or !a"),
    "parentheses that close too much": ("{trace.input) + (trace.output}", "unmatched"),
    "a brace that nothing closes": ("line\n  {trace.output", "line 2, column 3"),
    "a brace in a format that nothing closes": ("{trace.input:'{'}", "never closed"),
    "no expression in a format": ("{trace.input:{}}", "no Python expression"),
    "a starred name": ("{*trace.steps}", "no Python expression"),
    "yield": ("{(yield trace)}", "can't be compiled"),
    "a function of Python": ("{input}", "is a function of Python"),
    "braces without end": ('{"a":' * 60 + "1" + "}" * 60, "nested more than"),
    "formats without end": ("{trace.input:" * 60 + "}" * 60, "nested more than"),
}


@pytest.mark.parametrize(("template", "wanted"), DEFECTS.values(), ids=DEFECTS.keys())
def test_defects_say_what_is_wrong_and_where(template: str, wanted: str) -> None:
    with pytest.raises(TemplateDefect) as caught:
        parse_template("{threshold}" + template, level="trace", config_keys=["threshold"])
    assert wanted in str(caught.value)


def test_a_group_left_as_text_inside_of_an_object_is_reported() -> None:
    assert parse_template('{"score": {score}}', level="trace").left_as_text == ("{score}",)
    assert parse_template('{"score": {1 +}}', level="trace").left_as_text == ("{1 +}",)


@pytest.mark.parametrize(("level", "subject"), [("trace", "trace"), ("agent", "agent_trace"), ("llm", "llm_span")])
def test_each_level_has_its_subject(level: str, subject: str) -> None:
    template = parse_template(f"{{{subject}.output}}", level=level)
    assert template.render({subject: TRACE, "task": None}) == TRACE.output


def fenced(value: object, spec: str) -> str:
    return f"[{format(value, spec)}]"


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        pytest.param("{trace.input}", "[asked]", id="what comes from the trace is material"),
        pytest.param("{trace.input!r:>9}", "[  'asked']", id="also converted and formatted"),
        pytest.param("{eval('trace.input')}", "[asked]", id="also where it is reached without its name"),
        pytest.param("{threshold}", "0.5", id="a config value is the author's"),
        pytest.param("{'long' if trace.input else 'short'}", "long", id="a text of the expression is the author's"),
        pytest.param("{trace.input=}", "trace.input=['asked']", id="the label is the author's"),
    ],
)
def test_only_values_of_the_subject_are_inserted_as_material(template: str, wanted: str) -> None:
    parsed = parse_template(template, level="trace", config_keys=["threshold"])
    assert parsed.render({"trace": TRACE, "task": None, "threshold": 0.5}, fenced) == wanted


@given(st.text())
@example("{")
@example("\\{{}}\n'\"")
def test_doubled_braces_make_any_text_literal(text: str) -> None:
    template = text.replace("{", "{{").replace("}", "}}")
    assert parse_template(template, level="trace").render({}) == text


@given(st.text(st.characters(exclude_characters="{}")), st.text(st.characters(exclude_characters="{}")))
def test_text_around_a_placeholder_stays_verbatim(before: str, after: str) -> None:
    assert render(before + "{trace.input}" + after) == before + "asked" + after


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_characters="{}")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_characters="{}")), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(exclude_characters="{}")), JSON))
def test_json_objects_are_literal_text(value: dict[str, object]) -> None:
    template = json.dumps(value, ensure_ascii=False)
    assert parse_template(template, level="trace").render({}) == template


@given(st.text("{}ab'\"\\:!=()[]x, \n", max_size=40))
def test_any_text_is_a_template_or_a_defect_that_says_why(text: str) -> None:
    try:
        template = parse_template(text, level="trace", config_keys=["ab"])
    except TemplateDefect as defect:
        assert str(defect)
    else:
        assert all(part for part in template.parts)


@given(st.text("trace.input ab'\"+()[]", max_size=30))
def test_a_single_placeholder_means_what_python_says(expression: str) -> None:
    """Held against an f-string, wherever Python accepts one."""
    try:
        wanted = eval("f'''{" + expression + "}'''", {"trace": TRACE, "ab": "ab"})
        parsed = parse_template("{" + expression + "}", level="trace", config_keys=["ab"])
    except Exception:
        return
    if parsed.placeholders:
        assert parsed.render({"trace": TRACE, "ab": "ab"}) == wanted
