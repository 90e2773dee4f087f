"""A trace on its way into the child: at first without its spans, which are most of it.

Many evaluators look at nothing but input and output. So the spans stay with the job until code in the child first reads
them; from then on they are sent along. What is sent is the parsed trace, pickled. Sending the undecoded wire record and
parsing it again in the child was measured too: moving it costs half as much, but parsing once more over twice of what
is saved.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from amp_evaluation.trace.models import Trace

__all__ = ["ArrivingTrace", "pack_spans", "pack_trace", "unpack_spans", "unpack_trace"]

# what the trace keeps for itself (views already built) can be built again, and would travel twice
_FIELDS = tuple(field.name for field in fields(Trace) if field.init and field.name != "spans")

_dict_of: Callable[[Trace], dict[str, Any]] = vars(Trace)["__dict__"].__get__
FetchSpans = Callable[[], list[Any]]


def pack_trace(trace: Trace, *, with_spans: bool = True) -> bytes:
    """The trace's own fields; only the job packs, so unpacking may trust them."""
    spans = trace.spans if with_spans else None
    return pickle.dumps((tuple(getattr(trace, name) for name in _FIELDS), spans), pickle.HIGHEST_PROTOCOL)


def unpack_trace(packed: bytes, fetch_spans: FetchSpans = list) -> Trace:
    """`fetch_spans` is asked for the spans of a trace that came without them, when they are first read."""
    values, spans = pickle.loads(packed)
    known = dict(zip(_FIELDS, values, strict=True))
    return Trace(spans=spans, **known) if spans is not None else ArrivingTrace._of(known, fetch_spans)


def pack_spans(trace: Trace) -> bytes:
    return pickle.dumps(trace.spans, pickle.HIGHEST_PROTOCOL)


def unpack_spans(packed: bytes) -> list[Any]:
    spans: list[Any] = pickle.loads(packed)
    return spans


class ArrivingTrace(Trace):
    """A trace whose spans come when they are first read; then it is a `Trace` like any other."""

    @classmethod
    def _of(cls, known: dict[str, Any], fetch_spans: FetchSpans) -> Trace:
        made = cls(spans=[], **known)
        held = _dict_of(made)
        del held["spans"]
        held["_fetch_spans"] = fetch_spans
        return made

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        _ = self.spans  # whoever looks at everything sees everything
        return _dict_of(self)

    def __getattr__(self, name: str) -> Any:
        # only reached for what the instance doesn't have
        if name != "spans":
            raise AttributeError(f"'Trace' object has no attribute {name!r}")
        held = _dict_of(self)
        fetch = held.get("_fetch_spans")
        if fetch is not None:  # another thread may have been faster: the spans that were there first stay
            held.setdefault("spans", fetch())
            held.pop("_fetch_spans", None)
            self.__class__ = Trace  # type: ignore[assignment]  # the same layout: one class derives from the other
        return held["spans"]

    def __eq__(self, other: object) -> bool:
        return bool(self.spans is not None and self == other)  # reading them has made it a Trace

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce_ex__(protocol) if self.spans is not None else None

    __hash__ = None  # type: ignore[assignment]  # as every Trace


ArrivingTrace.__name__ = ArrivingTrace.__qualname__ = "Trace"
