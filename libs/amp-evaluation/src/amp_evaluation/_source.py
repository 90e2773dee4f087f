"""Where a run's traces come from: a fetcher, a loader, or any object with `fetch_traces` or `load_traces`."""

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from amp_evaluation.errors import PeerError, TraceSourceError, TransientError
from amp_evaluation.evaluators._outcome import error_text
from amp_evaluation.models import RunError
from amp_evaluation.trace._wire import OTELTrace
from amp_evaluation.trace.models import Trace

__all__ = ["AnyTrace", "LoadsTraces", "Moment", "TraceSource", "guarded", "open_source", "paced"]

# When a source is so slow that the calling thread mostly waits for it, its next page is asked for ahead even for rules.
# Otherwise a second thread costs more than it hides: HTTP and evaluation both want the interpreter.
SLOW_SOURCE_S = 0.25  # waited in total before anything is decided
SLOW_SOURCE_RATIO = 2.0  # waiting against working

AnyTrace = Trace | OTELTrace
Moment = datetime | str


@runtime_checkable
class TraceSource(Protocol):
    """All that is asked of a trace fetcher."""

    def fetch_traces(self, start_time: Any, end_time: Any) -> Iterable[AnyTrace]:
        """The traces that start in [start_time, end_time), ascending."""
        ...


@runtime_checkable
class LoadsTraces(Protocol):
    """All that is asked of a trace loader."""

    def load_traces(self, start_time: Any = None, end_time: Any = None) -> Iterable[AnyTrace]:
        """The traces that start in [start_time, end_time)."""
        ...


def open_source(
    source: TraceSource | LoadsTraces, start_time: Moment | None, end_time: Moment | None, options: dict[str, Any]
) -> Iterable[AnyTrace]:
    """Start reading. A loader that streams is read that way; `options` go to the source as they are."""
    read: Callable[..., Iterable[AnyTrace]]
    window = {"start_time": start_time, "end_time": end_time}
    for name in ("iter_traces", "fetch_traces", "load_traces"):
        found = getattr(source, name, None)
        if found is not None:
            read = found
            if name == "load_traces":  # a loader need not know of windows
                window = {key: moment for key, moment in window.items() if moment is not None}
            return read(**window, **options)
    raise TypeError(f"trace_fetcher={source!r}: an object with fetch_traces(start_time, end_time) is wanted")


def guarded(traces: Iterable[AnyTrace], errors: list[str]) -> Iterator[AnyTrace]:
    """The traces; when the source fails for good it ends there, and the failure is an error of the run.

    What was evaluated up to then stays. A wrong argument, and a file that can't be read, are raised when they come
    before the first trace: nothing is lost by it, and a person has to see to it.
    """
    iterator = iter(traces)
    begun = False
    while True:
        try:
            # No variable holds the trace: a page would stay in memory while the next one is read.
            yield next(iterator)
        except StopIteration:
            return
        except Exception as error:
            if not begun and isinstance(error, ValueError | TypeError | TraceSourceError):
                raise
            errors.append(_failure(error))
            return
        begun = True


def paced(
    traces: Iterable[AnyTrace], source: object, clock: Callable[[], float] = time.monotonic
) -> Iterator[AnyTrace]:
    """The traces; a source that can ask ahead is told to, once it proves to be slow."""
    if getattr(source, "prefetch", True):  # already on, or not to be had
        yield from traces
        return
    iterator = iter(traces)
    waited = worked = 0.0
    mark = clock()
    for trace in iterator:
        now = clock()
        waited += now - mark
        yield trace
        del trace  # else its page would stay in memory while the next one is read
        mark = clock()
        worked += mark - now
        if waited > SLOW_SOURCE_S and waited > SLOW_SOURCE_RATIO * worked:
            source.prefetch = True  # type: ignore[attr-defined]
            break
    yield from iterator


def _failure(error: Exception) -> RunError:
    own = isinstance(error, PeerError | TraceSourceError)
    text = str(error) if own else f"trace fetcher: {error_text(error)}"  # of somebody's own, perhaps
    stays = own and not isinstance(error, TransientError)
    return RunError(f"{text}; later traces were not read", repeat_may_help=not stays)
