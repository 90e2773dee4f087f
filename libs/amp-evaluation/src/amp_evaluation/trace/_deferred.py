"""A trace whose facts are known before its spans are built, which happens when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from threading import Lock
from typing import Any

from amp_evaluation.trace._agents import AgentTrace
from amp_evaluation.trace._brief import Brief
from amp_evaluation.trace._lazy import lazily
from amp_evaluation.trace.models import Trace

_AGENT_FIELDS = tuple(field.name for field in fields(AgentTrace))


class _Whole:
    """The trace as the general way gives it, made once; several threads get the same one.

    Only what is made from it refers to it, never the other way round: a trace leaves no reference cycle behind.
    """

    __slots__ = ("_lock", "_made", "_make")

    def __init__(self, make: Callable[[], Trace]) -> None:
        self._lock = Lock()
        self._make: Callable[[], Trace] = make
        self._made: Trace | None = None

    def trace(self) -> Trace:
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    def agent(self, agent_id: str) -> dict[str, Any]:
        view = self.trace().create_agent_trace(agent_id)
        return {name: getattr(view, name) for name in _AGENT_FIELDS}


def deferred_trace(brief: Brief, trace_id: str, cut: bool, make: Callable[[], Trace]) -> Trace:
    """The trace with what is known of it; `make` gives the whole of it."""
    whole, agent_id = _Whole(make), brief.agent_id
    agent = lazily(
        AgentTrace,
        lambda: whole.agent(agent_id),
        agent_id=agent_id,
        agent_name=brief.agent_name,
        model=brief.model,
        _tools=brief.tools,
        _calls=brief.calls,
    )
    return lazily(
        Trace,
        lambda: {"spans": whole.trace().spans},
        trace_id=trace_id,
        input=brief.input,
        output=brief.output,
        metrics=brief.metrics,
        timestamp=brief.start,
        failed=False,
        failure_reason="",
        initialization_only=False,
        content_captured=True,
        root_missing=False,
        notes=[],
        cut=cut,
        _views={},
        _views_of=(0, 0),
        _agent=agent,
    )
