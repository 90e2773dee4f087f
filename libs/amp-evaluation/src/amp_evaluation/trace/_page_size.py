"""How many traces to ask for at once, so that a page stays small enough to be held twice."""

from __future__ import annotations

__all__ = ["LEAST_PAGE", "MAX_PAGE", "PAGE_BYTES", "PageSizer"]

LEAST_PAGE = 2  # the cursor is inclusive: a page of one never moves
MAX_PAGE = 1000  # the service's own limit
PAGE_BYTES = 16 * 1024 * 1024  # what a page should weigh at most; agent runs export up to 20 MB a trace
HEAVY_REPLY_BYTES = 2 * PAGE_BYTES  # a reply above this is not read to its end when a smaller page can be had
PAGES_TO_RECOVER = 8  # good pages until a size that was halved after a timeout is doubled again


class PageSizer:
    """Watches what traces weigh, and which pages came too late or were cut."""

    def __init__(self, page_size: int) -> None:
        self._most = min(MAX_PAGE, max(LEAST_PAGE, page_size))
        self._ceiling = self._most
        self._weight = 0.0  # bytes a trace: follows heavier pages at once, lighter ones slowly
        self._good_pages = 0

    def limit(self) -> int:
        """The size to ask for next."""
        fits = int(PAGE_BYTES / self._weight) if self._weight else self._most
        return max(LEAST_PAGE, min(self._ceiling, fits))

    def came(self, traces: int, size: int) -> None:
        """A page came: ``size`` bytes with so many traces."""
        self._weigh(size / max(1, traces))
        self._good_pages += 1
        if self._good_pages >= PAGES_TO_RECOVER:
            self._good_pages = 0
            self._ceiling = min(self._most, self._ceiling * 2)

    def too_heavy(self, limit: int, size: int) -> None:
        """A page of ``limit`` was left unread: it has ``size`` bytes or more."""
        self._weigh(size / limit)
        self._ceiling = max(LEAST_PAGE, min(self._ceiling, limit // 2))

    def halve(self, limit: int) -> None:
        """A page of ``limit`` didn't come in time, or not to its end."""
        self._ceiling = max(LEAST_PAGE, min(self._ceiling, limit // 2))
        self._good_pages = 0

    def _weigh(self, weight: float) -> None:
        self._weight = max(weight, 0.75 * self._weight + 0.25 * weight)
