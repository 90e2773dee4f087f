"""Parameters: what a value may be, what errors say, and that nothing mutable is shared."""

import collections.abc as abc
import math
import pickle
from enum import Enum
from typing import Annotated, Any, Literal, Optional, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation.evaluators import BaseEvaluator, Param
from amp_evaluation.evaluators.params import EvaluatorConfigError, ParamSpec, nearest_first
from amp_evaluation.trace.models import Trace


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Size(Enum):
    SMALL = 1


class Sized(Protocol):
    def size(self) -> int: ...


def param(hint: Any, **declared: Any) -> ParamSpec:
    return ParamSpec(**declared).bound("p", hint, {"Colour": Colour, "Itself": "Itself"})


ACCEPTED = [
    pytest.param(float, 3000, 3000.0, id="an int for a float becomes a float"),
    pytest.param(float, 0.5, 0.5, id="a float for a float"),
    pytest.param(int, 3, 3, id="an int for an int"),
    pytest.param(bool, True, True, id="a bool for a bool"),
    pytest.param(str, "a", "a", id="a text for a text"),
    pytest.param(set[str], ["b", "a", "b"], {"a", "b"}, id="a list for a set"),
    pytest.param(set, ("a",), {"a"}, id="a tuple for a set"),
    pytest.param(frozenset[str], ["a"], frozenset({"a"}), id="a list for a frozenset"),
    pytest.param(list[str], {"b", "a"}, ["a", "b"], id="a set for a list comes in order"),
    pytest.param(list, {1, "a"}, ["a", 1], id="a set that can't be sorted comes in some fixed order"),
    pytest.param(list[float], [1, 2.5], [1.0, 2.5], id="numbers inside a list"),
    pytest.param(tuple[int, ...], [1, 2], (1, 2), id="a list for a tuple"),
    pytest.param(tuple[int, str], [1, "a"], (1, "a"), id="a list for a pair"),
    pytest.param(abc.Sequence[str], ("a",), ["a"], id="a sequence"),
    pytest.param(dict[str, float], {"a": 1}, {"a": 1.0}, id="numbers inside an object"),
    pytest.param(abc.Mapping, {"a": 1}, {"a": 1}, id="a mapping"),
    pytest.param(Colour, "red", Colour.RED, id="an enum's value"),
    pytest.param(Colour, "BLUE", Colour.BLUE, id="an enum's name"),
    pytest.param(Colour, Colour.RED, Colour.RED, id="an enum's member"),
    pytest.param(Size, 1, Size.SMALL, id="an enum's number"),
    pytest.param(Literal["a", 1], 1, 1, id="a literal"),
    pytest.param(int | str, "a", "a", id="the second of a union"),
    pytest.param(float | int, 3, 3, id="a union takes a value of its own type as it is"),
    pytest.param(Optional[int], None, None, id="nothing, for an optional"),  # noqa: UP045
    pytest.param(int | None, 3, 3, id="a value, for an optional"),
    pytest.param(Annotated[float, "ms"], 3, 3.0, id="an annotated hint"),
    pytest.param(Any, "anything", "anything", id="anything for Any"),
    pytest.param(Any, None, None, id="nothing for Any"),
    pytest.param("float", 3, 3.0, id="a hint as text"),
    pytest.param("Colour", "red", Colour.RED, id="a hint as text, of a name around it"),
    pytest.param("Optional[int]", None, None, id="a hint as text that uses typing"),
    pytest.param("Itself", object, object, id="a hint as text that names a text"),
    pytest.param("NotThere", object, object, id="a hint of names that aren't there checks nothing"),
    pytest.param(Sized, 3, 3, id="a protocol that can't be checked"),
    pytest.param(abc.Callable[[int], int], abs, abs, id="a function"),
]

REFUSED = [
    pytest.param(float, "3000", TypeError, "a number, not '3000'", id="a text for a number"),
    pytest.param(float, True, TypeError, "a number, not True", id="a bool for a float"),
    pytest.param(int, False, TypeError, "an integer", id="a bool for an int"),
    pytest.param(int, 3.0, TypeError, "an integer", id="a float for an int"),
    pytest.param(bool, 1, TypeError, "true or false", id="a number for a bool"),
    pytest.param(str, 1, TypeError, "a text", id="a number for a text"),
    pytest.param(str, None, TypeError, "a text, not None", id="nothing, where it isn't optional"),
    pytest.param(list[str], "abc", TypeError, "a list", id="a text for a list"),
    pytest.param(list[str], [1], TypeError, "a text", id="a number in a list of texts"),
    pytest.param(set[int], [True], TypeError, "an integer", id="a bool in a set of ints"),
    pytest.param(tuple[int, str], [1], ValueError, "a list of 2 items", id="a pair of one"),
    pytest.param(dict, [], TypeError, "an object", id="a list for an object"),
    pytest.param(dict[str, int], {"a": "b"}, TypeError, "an integer", id="a text in an object of ints"),
    pytest.param(Colour, "green", ValueError, r"\['red', 'blue'\]", id="a value that an enum doesn't have"),
    pytest.param(Colour, 2.5, TypeError, "one of", id="a type that an enum doesn't have"),
    pytest.param(Colour, True, TypeError, "one of", id="a bool for an enum"),
    pytest.param(Literal["a", "b"], "c", ValueError, "one of", id="a value that a literal doesn't have"),
    pytest.param(Literal[1, 2], True, ValueError, "one of", id="a bool for a literal 1"),
    pytest.param(Literal["a"], 1.5, TypeError, "one of", id="a type that a literal doesn't have"),
    pytest.param(int | str, 1.5, TypeError, "an integer or a text", id="none of a union"),
    pytest.param(int | Literal["a"], "b", ValueError, "one of", id="the right type for one of a union"),
    pytest.param(int | None, "a", TypeError, "an integer or null", id="a wrong type for an optional"),
    pytest.param(list[str] | dict[str, str], 1, TypeError, "a list or an object", id="containers, in words"),
    pytest.param(Trace, "t", TypeError, "a Trace", id="a class of one's own"),
]


@pytest.mark.parametrize(("hint", "value", "held"), ACCEPTED)
def test_accepted(hint: Any, value: Any, held: Any) -> None:
    found = param(hint).validate(value)
    assert found == held
    assert type(found) is type(held)


@pytest.mark.parametrize(("hint", "value", "error", "text"), REFUSED)
def test_refused_with_the_parameters_name(hint: Any, value: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=f"parameter 'p' must be .*{text}"):
        param(hint).validate(value)


@given(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.lists(st.integers()))
def test_what_a_float_parameter_accepts_is_a_float_in_range(value: Any) -> None:
    spec = param(float, min=0, max=10)
    try:
        held = spec.validate(value)
    except (TypeError, ValueError):
        return
    assert type(held) is float
    assert 0 <= held <= 10
    assert not isinstance(value, bool)


@pytest.mark.parametrize(
    ("value", "text"),
    [(-1, "at least 0, not -1"), (11, "at most 10"), (math.nan, "at least 0, not nan"), (math.inf, "at most 10")],
)
def test_out_of_range_is_a_value_error(value: float, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        param(float, min=0, max=10).validate(value)


def test_an_upper_limit_alone_refuses_nan_too() -> None:
    with pytest.raises(ValueError, match="at most 1"):
        param(float, max=1).validate(math.nan)


@pytest.mark.parametrize(
    ("hint", "enum", "good", "bad"),
    [
        pytest.param(str, ["a", "b"], "a", "c", id="a text"),
        pytest.param(list[str], ["a", "b"], ["a"], ["a", "c"], id="each item of a list"),
        pytest.param(Colour, Colour, "red", "green", id="an enum class as the enum"),
        pytest.param(Any, [1, 2], 1, True, id="1 isn't true"),
    ],
)
def test_the_enum_closes_the_set(hint: Any, enum: Any, good: Any, bad: Any) -> None:
    spec = param(hint, enum=enum)
    spec.validate(good)
    with pytest.raises(ValueError, match="one of"):
        spec.validate(bad)


def test_a_long_wrong_value_is_cut_in_the_error() -> None:
    with pytest.raises(TypeError) as caught:
        param(int).validate("x" * 10_000)
    assert len(str(caught.value)) < 250


class Plain(BaseEvaluator):
    limit: float = Param(default=3, min=0, max=10, description="How much.")
    words: list[str] = Param(default=["a"])
    colour: Colour = Param(default="red")
    need: str = Param(description="Something.")
    note: str = Param(default=None)

    def evaluate(self, trace: Trace) -> float:
        return self.limit / 10


class TestOnAClass:
    def test_the_class_gives_the_descriptor(self) -> None:
        spec: Any = Plain.limit
        assert isinstance(spec, Param)  # type: ignore[arg-type]
        assert (spec.name, spec.default, spec.type, spec.min, spec.max) == ("limit", 3.0, float, 0, 10)
        assert (spec.description, spec.required, spec.enum) == ("How much.", False, None)
        assert Plain.need.required is True  # type: ignore[attr-defined]
        assert "limit" in repr(spec)

    def test_defaults_are_converted_like_values(self) -> None:
        made = Plain(need="x")
        assert made.limit == 3.0
        assert type(made.limit) is float
        assert made.colour is Colour.RED

    def test_values_are_checked_at_construction_and_whenever_they_are_set(self) -> None:
        made = Plain(need="x", limit=4)
        assert made.limit == 4.0
        made.limit = 5
        assert made.limit == 5.0
        with pytest.raises(ValueError, match="Plain: parameter 'limit'"):
            Plain(need="x", limit=11)
        with pytest.raises(TypeError, match="parameter 'limit'"):
            made.limit = "5"  # type: ignore[assignment]
        assert made.limit == 5.0

    def test_a_none_default_makes_none_a_value(self) -> None:
        made = Plain(need="x", note=None)
        assert made.note is None
        made.note = "n"
        assert made.note == "n"

    def test_mutable_defaults_are_never_shared(self) -> None:
        one, other = Plain(need="x"), Plain(need="x")
        one.words.append("b")
        assert one.words == ["a", "b"]
        assert other.words == ["a"]
        assert Plain.words.default == ["a"]  # type: ignore[attr-defined]

    def test_an_unknown_one_is_a_type_error_with_the_nearest_first(self) -> None:
        with pytest.raises(TypeError, match="Plain: unknown parameter 'limitt'; known: limit, "):
            Plain(need="x", limitt=1)

    def test_missing_required_ones_are_named(self) -> None:
        with pytest.raises(TypeError, match="required parameter 'need' is missing"):
            Plain()

    def test_a_required_one_that_was_never_set_says_so(self) -> None:
        class Careless(Plain):
            def __init__(self) -> None:
                """Without the base's."""

        assert Careless().limit == 3.0
        with pytest.raises(AttributeError, match="'need' has not been set"):
            _ = Careless().need

    def test_evaluators_pickle_with_their_values(self) -> None:
        made = pickle.loads(pickle.dumps(Plain(need="x", limit=7)))
        assert (made.limit, made.need, made.name) == (7.0, "x", "Plain")

    def test_a_subclass_changes_a_default_by_a_plain_attribute(self) -> None:
        class Stricter(Plain):
            limit = 1
            need = "given"

        assert Stricter().limit == 1.0
        assert Stricter(limit=2).limit == 2.0
        assert Plain(need="x").limit == 3.0
        assert [entry["required"] for entry in Stricter().info.config_schema] == [False] * 5

    def test_a_subclass_may_replace_a_parameter_by_a_property(self) -> None:
        class Fixed(Plain):
            limit = property(lambda self: 9.0)  # type: ignore[assignment]

        assert Fixed(need="x").limit == 9.0

    @pytest.mark.parametrize(
        ("hint", "default", "error"),
        [(int, "a", TypeError), (int, True, TypeError), (Colour, "green", ValueError), ("int", 1.5, TypeError)],
    )
    def test_a_wrong_default_is_refused_with_the_class(self, hint: Any, default: Any, error: type[Exception]) -> None:
        with pytest.raises(error, match="'p'"):
            type("Wrong", (Plain,), {"__annotations__": {"p": hint}, "p": Param(default=default)})

    @pytest.mark.parametrize("name", ["func", "name", "level"])
    def test_a_reserved_name_is_refused_with_the_class(self, name: str) -> None:
        for error in (TypeError, ValueError, EvaluatorConfigError):
            with pytest.raises(error, match=f"Wrong: '{name}'"):
                type("Wrong", (Plain,), {name: Param(default="x")})

    def test_text_hints_are_resolved_in_code_that_belongs_to_no_module(self) -> None:
        source = """
from __future__ import annotations
from typing import Optional
from amp_evaluation.evaluators import BaseEvaluator, Param

class Sent(BaseEvaluator):
    words: Optional[set[str]] = Param(default=["a"])

    def evaluate(self, trace: Trace): ...
"""
        space: dict[str, Any] = {"__name__": "sent", "Trace": Trace}
        exec(source, space)
        assert space["Sent"](words=["b", "b"]).words == {"b"}
        assert space["Sent"].words.default == {"a"}

    def test_a_hint_that_cannot_be_resolved_leaves_the_default_as_it_is(self) -> None:
        class Later(BaseEvaluator):
            p: "Undefined" = Param(default=3)  # type: ignore[name-defined]  # noqa: F821

            def evaluate(self, trace: Trace) -> float:
                return 1.0

        assert Later().p == 3


SCHEMAS = [
    pytest.param(str, {"default": "a"}, {"type": "string", "default": "a"}, id="string"),
    pytest.param(int, {"default": 1, "min": 0}, {"type": "integer", "default": 1, "min": 0}, id="integer"),
    pytest.param(float, {"default": 1.0, "max": 2}, {"type": "float", "default": 1.0, "max": 2}, id="float"),
    pytest.param(bool, {"default": False}, {"type": "boolean", "default": False}, id="boolean"),
    pytest.param(set[str], {"default": {"b", "a"}}, {"type": "array", "default": ["a", "b"]}, id="a set is an array"),
    pytest.param(tuple[int, ...], {"default": (1,)}, {"type": "array", "default": [1]}, id="a tuple is an array"),
    pytest.param(dict[str, Any], {"default": {"a": {1}}}, {"type": "object", "default": {"a": [1]}}, id="object"),
    pytest.param(
        Colour, {"default": Colour.RED}, {"type": "string", "default": "red", "enum_values": ["red", "blue"]}, id="enum"
    ),
    pytest.param(
        Literal["a", "b"] | None,
        {"default": "a"},
        {"type": "string", "default": "a", "enum_values": ["a", "b"]},
        id="literal",
    ),
    pytest.param(Size, {"default": 1}, {"type": "integer", "default": 1, "enum_values": [1]}, id="an enum of numbers"),
    pytest.param(int | float, {"default": 1}, {"type": "float", "default": 1}, id="int or float is a float"),
    pytest.param(int | None, {"default": None}, {"type": "integer"}, id="no default to show"),
    pytest.param(Any, {"default": 0.5}, {"type": "float", "default": 0.5}, id="by the default, without a hint"),
    pytest.param(abc.Callable[[], int], {}, {"type": "string", "required": True}, id="else a string"),
    pytest.param(
        str, {"enum": ["a"], "default": "a"}, {"type": "string", "default": "a", "enum_values": ["a"]}, id="own"
    ),
    pytest.param(
        str, {"default": "", "required": True}, {"type": "string", "default": "", "required": True}, id="both"
    ),
    pytest.param(str, {}, {"type": "string", "required": True}, id="required"),
]


@pytest.mark.parametrize(("hint", "declared", "schema"), SCHEMAS)
def test_the_schema(hint: Any, declared: dict[str, Any], schema: dict[str, Any]) -> None:
    found = param(hint, description="What.", **declared).to_schema()
    assert found == {"key": "p", "required": False, "description": "What."} | schema


def test_a_missing_default_says_so() -> None:
    assert "no default" in repr(param(str))


def test_the_nearest_names_come_first() -> None:
    known = ["token_efficiency", "latency_performance", "safety", "clarity"]
    assert nearest_first("latency", known)[0] == "latency_performance"
    assert nearest_first("Safty", known)[0] == "safety"
    assert nearest_first("Token Count", known)[0] == "token_efficiency"
    assert sorted(nearest_first("x", known)) == sorted(known) == sorted(nearest_first("", known))
