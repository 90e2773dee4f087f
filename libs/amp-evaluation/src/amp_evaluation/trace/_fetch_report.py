"""What a source of traces has to say beside the traces."""

from __future__ import annotations

from dataclasses import dataclass, field

from amp_evaluation._reports import RunError

__all__ = ["FetchReport"]


@dataclass(slots=True)
class FetchReport:
    """Counts and faults of one fetch; complete once its traces are.

    ``found``: traces that start in the window; ``outside``: those that came with the margin and don't;
    ``truncated``: replies of which the service says that a trace in it was shortened; ``cut``: traces
    that run so far past the window that their root isn't there; ``requests``: calls of the service.
    """

    found: int = 0
    outside: int = 0
    truncated: int = 0
    cut: int = 0
    requests: int = 0
    errors: list[RunError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
