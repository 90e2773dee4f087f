"""Where the facts of a span stand: one small decoder a convention, and the order in which they are asked.

A new framework is a new row here, or a new file beside the others: nothing else changes. Each fact goes through
`ORDER`; the first convention that is there and has something decides. `LATER` names facts for which a convention
should only be asked after the others.
"""

from __future__ import annotations

from typing import Any

from amp_evaluation.trace.conventions import (
    amp,
    crewai,
    events,
    genai,
    haystack,
    legacy,
    llamaindex,
    native,
    openinference,
    own,
    pydantic_ai,
    strands,
    traceloop,
)
from amp_evaluation.trace.conventions._attrs import Attrs, Memo
from amp_evaluation.trace.conventions._facts import FACTS, Convention, Kind, Reader

__all__ = ["ORDER", "Attrs", "Memo", "Readers", "kind_of", "read", "readers_for"]

ORDER: tuple[Convention, ...] = (
    own.CONVENTION,
    llamaindex.CONVENTION,
    crewai.CONVENTION,
    native.ADK_TOOLS,
    genai.CONVENTION,
    openinference.CONVENTION,
    pydantic_ai.CONVENTION,
    strands.CONVENTION,
    legacy.CONVENTION,
    traceloop.CONVENTION,
    haystack.CONVENTION,
    *native.CONVENTIONS,
    events.CONVENTION,
    amp.CONVENTION,
)
LATER: dict[str, frozenset[str]] = {
    # a span's own framework knows its agents' names better than the instrumentation around it
    "agent_name": frozenset({"crewai"}),
}
NEVER: dict[str, dict[str, frozenset[str]]] = {
    # for a crew the platform takes the outputs of its tasks for the input
    "input": {"amp": frozenset({"crewai"})},
}
"""Conventions that are not asked for a fact where another one is there."""
_BY_MARK: dict[str, list[str]] = {}
for _convention in ORDER:
    for _mark in _convention.marks:
        _BY_MARK.setdefault(_mark, []).append(_convention.name)
_MARKS = frozenset(_BY_MARK)
_ALWAYS = frozenset({"amp"})

Readers = dict[str, tuple[Reader, ...]]
_tables: dict[frozenset[str], Readers] = {}
_EVENTS, _OWN = "\0events", "\0own"
"""Stand for conventions that no key gives away."""


def readers_for(a: Attrs, has_events: bool) -> Readers:
    """The decoders of the conventions that this span uses, by fact, in order."""
    shape = a.shape
    if not has_events and not a.own and shape.readers is not None:
        found_before: Readers = shape.readers
        return found_before
    marks = _MARKS.intersection(a.raw)
    if has_events or a.own:
        marks |= {name for name, there in ((_EVENTS, has_events), (_OWN, bool(a.own))) if there}
    table = _tables.get(marks)
    if table is None:
        found = {name for mark in marks for name in _BY_MARK.get(mark, (mark[1:],))}
        table = _table(_ALWAYS.union(found))
        if len(_tables) < 10_000:
            _tables[marks] = table
    if not has_events and not a.own:
        shape.readers = table
    return table


def _table(present: frozenset[str]) -> Readers:
    table: Readers = {}
    for fact in FACTS:
        late = LATER.get(fact, frozenset())
        never = NEVER.get(fact, {})
        chosen = [c for c in ORDER if c.name in present and fact in c.readers]
        chosen = [c for c in chosen if never.get(c.name, frozenset()).isdisjoint(present)]
        chosen.sort(key=lambda c: c.name in late)
        if chosen:
            table[fact] = tuple(c.readers[fact] for c in chosen)
    return table


def read(readers: Readers, fact: str, a: Attrs) -> Any:
    """The fact from the first decoder that has it; None when none has."""
    for reader in readers.get(fact, ()):
        value = reader(a)
        if value or (value is not None and type(value) in _NUMBERS):
            return value
    return None


_NUMBERS = (int, float)

CHAIN = Kind("chain", False)


def kind_of(readers: Readers, a: Attrs) -> Kind:
    """What the span is: a strong word beats a weak one, and both beat what the platform or a name makes one guess."""
    weak: Kind | None = None
    for reader in readers["kind"]:
        if reader is _guess:
            break
        found = reader(a)
        if found is not None:
            strong: Kind = found
            if strong.strong:
                return strong
            weak = weak or found
    return weak or _guess(a) or _kind_by_name(a) or CHAIN


_guess = amp.kind


def _kind_by_name(a: Attrs) -> Kind | None:
    word, _, rest = a.name.partition(" ")
    if word == "agent_run" and rest.startswith("["):
        return Kind("agent", False)  # ADK's: `agent_run [NAME]`, a span without any attribute
    named = genai.OPERATIONS.get(word) if rest or word in ("execute_tool", "invoke_agent", "create_agent") else None
    return Kind(named, False) if named else None
