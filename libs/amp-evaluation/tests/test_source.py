"""Sources that are told to ask ahead: once they prove to be slow, measured by a clock that the test moves."""

from collections.abc import Iterator

import pytest

from amp_evaluation._source import paced
from amp_evaluation.trace import Trace


class Source:
    """Lets `waits` seconds pass before each trace, and knows from which trace on it was told to ask ahead."""

    def __init__(self, waits: float, prefetch: bool = False) -> None:
        self.now = 0.0
        self.waits = waits
        self.prefetch = prefetch
        self.ahead_from: int | None = None

    def traces(self, count: int) -> Iterator[Trace]:
        for number in range(count):
            if self.prefetch and self.ahead_from is None:
                self.ahead_from = number
            self.now += self.waits
            yield Trace(str(number))


def consume(source: Source, works: float, count: int = 40) -> list[str]:
    """The ids of all traces, with `works` seconds of evaluation for each."""
    seen = []
    for trace in paced(source.traces(count), source, lambda: source.now):
        seen.append(trace.trace_id)
        source.now += works
    return seen


@pytest.mark.parametrize(
    ("waits", "works", "ahead_from"),
    [
        pytest.param(0.125, 0.0, 3, id="waits alone: as soon as they come to more than a quarter of a second"),
        pytest.param(0.125, 0.06, 3, id="waits that are a little over twice the work"),
        pytest.param(0.125, 0.0625, None, id="waits that are just twice the work"),
        pytest.param(0.03, 0.05, None, id="more work than waits"),
        pytest.param(0.005, 0.0, None, id="hardly any waits at all"),
    ],
)
def test_a_source_is_told_to_ask_ahead_once_it_is_mostly_waited_for(
    waits: float, works: float, ahead_from: int | None
) -> None:
    source = Source(waits)
    assert consume(source, works) == [str(number) for number in range(40)]
    assert source.ahead_from == ahead_from


def test_a_source_that_asks_ahead_already_is_left_as_it_is() -> None:
    source = Source(0.125, prefetch=True)
    assert len(consume(source, 0.0)) == 40
    assert source.ahead_from == 0


def test_a_source_that_cannot_ask_ahead_is_read_as_it_is() -> None:
    assert len(list(paced(Source(0.125).traces(3), object()))) == 3
