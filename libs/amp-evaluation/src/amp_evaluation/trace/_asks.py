"""What a walk through a window asks, and what it is told."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime

from amp_evaluation.trace._page_size import LEAST_PAGE

__all__ = ["Ask", "Asking", "Detour", "Facts", "Gap"]


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: traces from ``start`` on, at most ``limit``.

    ``least`` is the size down to which a smaller page is as useful. A probe is not retried: its failure is
    what is asked about. A hasty one isn't retried after a 500, of which the walk has met some that stay.
    """

    start: datetime
    limit: int
    least: int = LEAST_PAGE
    probe: bool = False
    hasty: bool = False


@dataclass(slots=True)
class Facts:
    """What came: ids and start times in the page's order, how many ids are new, the reply's total.

    ``limit`` is the size that was asked for in the end.
    """

    limit: int
    ids: list[str]
    starts: list[datetime | None]
    fresh: int
    total: int | None

    @property
    def full(self) -> bool:
        return len(self.ids) >= self.limit

    @property
    def complete(self) -> bool:
        """Short, and all that the service says there is."""
        return not self.full and (self.total is None or len(self.ids) >= self.total)

    def edge(self) -> tuple[str, datetime] | None:
        """Id and start of the last trace that has a readable start."""
        for trace_id, start in zip(reversed(self.ids), reversed(self.starts), strict=True):
            if start is not None:
                return trace_id, start
        return None

    def left_behind(self, moment: datetime, again: set[str]) -> int:
        """How many start before ``moment`` and aren't among those that came ``again``."""
        told = zip(self.ids, self.starts, strict=True)
        return sum(1 for name, start in told if start is not None and start < moment and name not in again)


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch [start, end) that can't be read to its end. ``lost`` is how many traces, when it is known.

    ``failing``: pages that touch it fail; else more traces share one time than a page can hold.
    """

    start: datetime
    end: datetime
    failing: bool
    lost: int | None = None


Asking = Generator[Ask, Facts | None, None]
Detour = Generator[Ask, Facts | None, bool]  # returns whether the walk ends with it, if not said otherwise
