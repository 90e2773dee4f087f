"""Parameters of evaluators: declared once with `Param`, checked whenever they are set.

On a class the annotation gives the type:

    class Latency(BaseEvaluator):
        max_latency_ms: float = Param(default=30_000.0, min=0, description="limit in milliseconds")

In a function the `Param` stands as the default value. No default means required. Errors name the parameter: TypeError
for a wrong type, ValueError for a value out of range or not in the enum.
"""

from __future__ import annotations

import copy
import difflib
import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from amp_evaluation._info import EvalMode, EvaluationLevel
from amp_evaluation.evaluators import _hints

__all__ = ["EvalMode", "EvaluationLevel", "EvaluatorConfigError", "Param"]

RESERVED: Final = frozenset({"func", "name"})
MAX_SHOWN = 100  # characters of a wrong value in an error text


class EvaluatorConfigError(TypeError, ValueError):
    """A parameter's name or an evaluator's level that can't be; wrong in type and value alike, so it is both errors."""


class _Missing(Enum):
    MISSING = "missing"

    def __repr__(self) -> str:
        return "<no default>"


MISSING: Final = _Missing.MISSING


class ParamSpec:
    """What `Param(...)` makes: a descriptor that checks values when they are set and copies mutable defaults.

    Read on the class it gives itself: name, type, default, description, required, min, max, enum, `to_schema()`.
    """

    def __init__(
        self,
        default: Any = MISSING,
        description: str = "",
        required: bool = False,
        min: float | None = None,
        max: float | None = None,
        enum: Iterable[Any] | None = None,
    ) -> None:
        self.name = ""
        self.description = description
        self.required = required or default is MISSING
        self.min = min
        self.max = max
        self.enum = None if enum is None else [item.value if isinstance(item, Enum) else item for item in enum]
        self.default = default
        self._hint: Any = Any
        self._names: Mapping[str, Any] = {}

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name
        self._hint = inspect.get_annotations(owner).get(name, Any)
        self._names = _names_around(owner)

    def bound(self, name: str, hint: Any, names: Mapping[str, Any]) -> ParamSpec:
        """A copy for a function's parameter; its declared default is taken as it is."""
        made = copy.copy(self)
        made.name, made._hint = name, _hints.resolve(hint, names)
        return made

    def with_default(self, default: Any) -> ParamSpec:
        """A copy whose default a subclass gave by a plain class attribute."""
        made = copy.copy(self)
        made.default, made.required = default, self.required and self.has_default
        return made

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING

    @property
    def type(self) -> Any:
        """The annotation, resolved where its names are known by now."""
        if isinstance(self._hint, str):
            self._hint = _hints.resolve(self._hint, self._names)
        return self._hint

    def check_default(self) -> None:
        """Hold the default against the type and the limits, and convert it; None is always fine."""
        if self.has_default and self.default is not None:
            self.default = self.validate(self.default)

    def validate(self, value: Any) -> Any:
        """The value as the parameter holds it; TypeError or ValueError with the parameter's name."""
        if value is None:
            if self.default is None or self.type in (Any, None) or _hints.is_optional(self.type):
                return None
            raise TypeError(self._fault(_hints.spell(self.type), value))
        try:
            value = _hints.convert(self.type, value)
        except TypeError as error:
            raise TypeError(self._fault(str(error), value)) from None
        except ValueError as error:
            raise ValueError(self._fault(str(error), value)) from None
        self._check_range(value)
        self._check_enum(value)
        return value

    def _check_range(self, value: Any) -> None:
        if not isinstance(value, int | float):
            return
        # written so that NaN is out of every range
        if self.min is not None and not value >= self.min:
            raise ValueError(self._fault(f"at least {self.min:g}", value))
        if self.max is not None and not value <= self.max:
            raise ValueError(self._fault(f"at most {self.max:g}", value))

    def _check_enum(self, value: Any) -> None:
        if self.enum is None:
            return
        for item in value if isinstance(value, list | tuple | set | frozenset) else (value,):
            plain = item.value if isinstance(item, Enum) else item
            if not any(plain == known and isinstance(plain, bool) == isinstance(known, bool) for known in self.enum):
                raise ValueError(self._fault(f"one of {self.enum}", item))

    def _fault(self, rule: str, value: Any) -> str:
        shown = repr(value)
        shown = shown if len(shown) <= MAX_SHOWN else shown[:MAX_SHOWN] + "…"
        return f"parameter {self.name!r} must be {rule}, not {shown} ({type(value).__name__})"

    def fresh_default(self) -> Any:
        """The default; a mutable one as a copy of its own."""
        if isinstance(self.default, str | int | float | bool | None | Enum):
            return self.default
        return copy.deepcopy(self.default)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        try:
            return instance.__dict__[self.name]
        except KeyError:
            if not self.has_default:
                raise AttributeError(f"required parameter {self.name!r} has not been set") from None
        value = instance.__dict__[self.name] = self.fresh_default()
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.name] = self.validate(value)

    def to_schema(self) -> dict[str, Any]:
        """One entry of `config_schema`; everything in it is JSON."""
        schema: dict[str, Any] = {
            "key": self.name,
            "type": _hints.schema_type(self.type, self.default),
            "required": self.required,
            "description": self.description,
        }
        allowed = self.enum if self.enum is not None else _hints.values_allowed(self.type)
        optional = {
            "default": None if self.default is MISSING else _as_json(self.default),
            "min": self.min,
            "max": self.max,
            "enum_values": allowed,
        }
        return schema | {key: value for key, value in optional.items() if value is not None}

    def __repr__(self) -> str:
        return f"Param({self.name or '?'}, default={self.default!r}, required={self.required})"


if TYPE_CHECKING:
    # what stands after `=` in a declaration has to fit every annotation

    def Param(
        default: Any = ...,
        description: str = "",
        required: bool = False,
        min: float | None = None,
        max: float | None = None,
        enum: Iterable[Any] | None = None,
    ) -> Any: ...

else:
    Param = ParamSpec


def _names_around(owner: type) -> Mapping[str, Any]:
    """The names that annotations in a class may use; code run from a string has no module to look them up in."""
    for member in vars(owner).values():
        if hasattr(member, "__globals__"):
            return _hints.namespace_of(member)
    return vars(sys.modules.get(owner.__module__, sys))


def _as_json(value: Any) -> Any:
    if isinstance(value, Enum):
        return _as_json(value.value)
    if isinstance(value, Mapping):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_as_json(item) for item in value), key=lambda item: (str(type(item)), item))
    return value


def collect_params(owner: type) -> dict[str, ParamSpec]:
    """All parameters of a class, those of its bases first."""
    found: dict[str, ParamSpec] = {}
    for base in reversed(owner.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, ParamSpec):
                found[name] = value
    return found


def refuse_reserved(names: Iterable[str], owner: str, reserved: Iterable[str] = RESERVED) -> None:
    """Raise when a parameter has the name of something that every evaluator has."""
    clash = sorted(set(names) & set(reserved))
    if clash:
        raise EvaluatorConfigError(f"{owner}: {', '.join(map(repr, clash))} can't be the name of a parameter: reserved")


def nearest_first(wanted: str, known: Iterable[str]) -> list[str]:
    """The known names, the ones that look like `wanted`, or that hold its words, first."""
    likeness = {name: _likeness(wanted.lower(), name.lower()) for name in known}
    return sorted(likeness, key=lambda name: (-likeness[name], name))


def _likeness(wanted: str, name: str) -> float:
    """1 for equal texts. "latency" is nearer to "latency_performance" than to "clarity", for its words."""
    words, parts = re.findall(r"[^\W_]+", wanted), re.findall(r"[^\W_]+", name)
    as_whole = _ratio(wanted, name)
    if not words or not parts:
        return as_whole
    by_words = sum(max(_ratio(word, part) for part in parts) for word in words) / len(words)
    return max(as_whole, 0.95 * by_words)


def _ratio(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()


def check_config(specs: Mapping[str, ParamSpec], given: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """The given values, checked and converted. TypeError for unknown keys and for required ones that are missing."""
    unknown = [key for key in given if key not in specs]
    if unknown:
        hint = ", ".join(nearest_first(unknown[0], specs)) or "none"
        raise TypeError(f"{owner}: unknown parameter {', '.join(map(repr, unknown))}; known: {hint}")
    missing = [name for name, spec in specs.items() if not spec.has_default and name not in given]
    if missing:
        raise TypeError(f"{owner}: required parameter {', '.join(map(repr, missing))} is missing")
    checked = {}
    for key, value in given.items():
        try:
            checked[key] = specs[key].validate(value)
        except TypeError as error:
            raise TypeError(f"{owner}: {error}") from None
        except ValueError as error:
            raise ValueError(f"{owner}: {error}") from None
    return checked
