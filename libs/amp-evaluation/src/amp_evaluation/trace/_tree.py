"""Parents and children among a trace's spans. No recursion: traces may be thousands of spans deep, or hold cycles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from amp_evaluation.trace._spans import Span, ToolSpan

Children = dict[str | None, list[Span]]


def children_of(spans: Sequence[Span]) -> Children:
    """Children by parent id, in the order of `spans`; a span whose parent isn't among them stands under None."""
    known = {span.span_id for span in spans}
    found: Children = {}
    for span in spans:
        parent = span.parent_span_id
        found.setdefault(parent if parent in known and parent != span.span_id else None, []).append(span)
    return found


def walk(children: Children, start: str | None) -> Iterator[tuple[int, Span]]:
    """(depth, span) of everything below `start`, parents first; each span once, whatever its parents say."""
    stack = [(0, span) for span in reversed(children.get(start, ()))]
    seen: set[int] = set()
    while stack:
        depth, span = stack.pop()
        if id(span) in seen:
            continue
        seen.add(id(span))
        yield depth, span
        stack.extend((depth + 1, child) for child in reversed(children.get(span.span_id, ())))


def subtree(spans: Sequence[Span], top_id: str) -> list[Span]:
    """The span with that id and everything below it, in the order of `spans`."""
    inside = {id(span) for _, span in walk(children_of(spans), top_id)}
    return [span for span in spans if id(span) in inside or span.span_id == top_id]


def own_spans(
    spans: Sequence[Span],
    top_id: str | None,
    *,
    stop: tuple[type, ...] = (ToolSpan,),
    children: Children | None = None,
) -> list[Span]:
    """What stands below `top_id` (None: everything) without what runs inside a span of the `stop` classes.

    `children` is what `children_of(spans)` gives, when the caller has it already.
    """
    if children is None:
        children = children_of(spans)
    kept: set[int] = set()
    stack = list(children.get(top_id, ()))
    while stack:
        span = stack.pop()
        if id(span) in kept:
            continue
        kept.add(id(span))
        below = children.get(span.span_id)
        if below and not isinstance(span, stop):
            stack += below
    return [span for span in spans if id(span) in kept]
