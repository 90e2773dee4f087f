"""Which spans stay in sight: frameworks wrap each call in layers that say nothing of what the agent did."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from amp_evaluation.trace._nodes import Node, build_nodes
from amp_evaluation.trace._otel import OTELSpan, OTELTrace, wire_trace

SEMANTIC_KINDS = frozenset({"llm", "tool", "agent", "retriever", "embedding"})
INFRASTRUCTURE_KINDS = frozenset({"chain", "unknown", "task", "crewaitask", "rerank"})

K = TypeVar("K", bound=Hashable)


def kept_spans(order: Iterable[K], parents: Mapping[K, K | None], semantic: Iterable[K]) -> dict[K, K | None]:
    """The kept ones of a forest and the parent each has among them.

    Semantic spans and roots are kept, and infrastructure with two or more branches that lead to semantic spans; what
    is between hands its children to the nearest kept ancestor. `order` has each span after its parent or before it;
    `parents` has no cycle.
    """
    wanted = set(semantic)
    branches: dict[K, set[K]] = {}
    for item in wanted:
        child, parent = item, parents[item]
        while parent is not None:
            known = branches.setdefault(parent, set())
            if child in known:
                break
            known.add(child)
            child, parent = parent, parents[parent]
    items = list(order)
    keep = {i for i in items if i in wanted or parents[i] is None or len(branches.get(i, ())) > 1}
    nearest: dict[K, K | None] = {}
    return {item: _nearest(item, parents, keep, nearest) for item in items if item in keep}


def _nearest(item: K, parents: Mapping[K, K | None], keep: set[K], known: dict[K, K | None]) -> K | None:
    path = []
    above = parents[item]
    while above is not None and above not in keep and above not in known:
        path.append(above)
        above = parents[above]
    found = known[above] if above in known and above not in keep else above
    for step in path:
        known[step] = found
    return found


def kept_nodes(nodes: list[Node]) -> dict[Node, Node | None]:
    """The same for the nodes of a trace."""
    parents = {node: node.parent for node in nodes}
    if all(node.kind in SEMANTIC_KINDS or parents[node] is None for node in nodes):
        return parents
    return kept_spans(nodes, parents, [node for node in nodes if node.kind in SEMANTIC_KINDS])


def filter_infrastructure_spans(spans: list[OTELSpan]) -> list[OTELSpan]:
    """The spans that are kept, by start time, as copies whose parents are kept too; the given ones stay as they are."""
    wire = wire_trace(OTELTrace(spans=list(spans)))
    nodes, _ = build_nodes(wire.spans or (), None)
    given = {id(record): span for record, span in zip(wire.spans or (), spans, strict=True)}
    kept = kept_nodes(nodes)
    return [
        replace(given[id(node.wire)], parentSpanId=parent.id if parent is not None else None)
        for node, parent in kept.items()
    ]
