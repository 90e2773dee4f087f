"""What a person at a terminal sees of a run: readable log lines, a progress bar, and a table of the results.

In a pod none of this is used: there the log is JSON lines. `NO_COLOR` is honoured by rich. Needs the extra `report`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from amp_evaluation._json_log import masker
from amp_evaluation._visible import visible
from amp_evaluation.models import EvaluatorSummary
from amp_evaluation.run_result import Progress as RunProgress
from amp_evaluation.run_result import RunResult

__all__ = ["TerminalView"]

BAR_CELLS = 20
NO_SCORE = "no score"
MIN_COLUMNS_FOR_BAR = 72
"""Narrower terminals need the room for names and numbers."""
LEVEL_STYLES = {"DEBUG": "dim", "INFO": "", "WARNING": "yellow", "ERROR": "bold red", "CRITICAL": "bold red"}
LEVEL_WORDS = {"WARNING": "WARN", "CRITICAL": "ERROR"}


class TerminalView(logging.Handler):
    """Shows a run on a terminal: install it as a log handler, feed it the run's progress, give it the result.

    Log lines appear above the progress bar, with `secrets` masked. `close` ends the bar and can be called twice.
    """

    def __init__(self, stream: TextIO, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._masked = masker(secrets)
        self._console = Console(file=stream, highlight=False, soft_wrap=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed} of {task.fields[sampled]} traces"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._task = self._bar.add_task("evaluating", total=None, sampled=0)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            level = LEVEL_WORDS.get(record.levelname, record.levelname)
            text = visible(self._masked(self.format(record)))
            line = Text.assemble((f"{level:5}", LEVEL_STYLES.get(record.levelname, "")), " ", text)
            self._console.print(line)  # in one go: the bar is drawn anew after each print
        except Exception:  # a log line must never end the run; logging's own way reports it on stderr
            self.handleError(record)

    def on_progress(self, progress: RunProgress) -> None:
        """Move the bar; the number of traces to come is only known at the end, so the bar pulses until then."""
        self._bar.start()
        self._bar.update(self._task, completed=progress.evaluated, sampled=progress.sampled)

    def close(self) -> None:
        self._bar.stop()
        super().close()

    def show_results(self, result: RunResult) -> None:
        """A row an evaluator, with a bar for its mean."""
        self.close()
        table = Table(
            title=f"{result.traces_evaluated} traces evaluated", title_justify="left", box=None, pad_edge=False
        )
        table.add_column("evaluator", overflow="fold")
        table.add_column("level", no_wrap=True, min_width=len("trace"))
        for name in ("scored", "passed", "skipped"):
            table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
        table.add_column("mean", justify="right", no_wrap=True, min_width=len(NO_SCORE))
        has_bar = self._console.width >= MIN_COLUMNS_FOR_BAR
        if has_bar:
            table.add_column("", min_width=BAR_CELLS, no_wrap=True)
        for name, summary in result.scores.items():
            row = _row(name, summary)
            table.add_row(*(row if has_bar else row[:-1]))
        # A Table wraps by itself; soft_wrap would cut nothing and overflow narrow terminals.
        self._console.print(table, soft_wrap=False)


def _row(name: str, summary: EvaluatorSummary) -> list[str]:
    mean = summary.mean
    return [
        escape(visible(name)),
        str(summary.level),
        str(summary.scored_count),
        str(summary.passed_count),
        str(summary.skipped_count),
        NO_SCORE if mean is None else f"{mean:.3f}",
        "" if mean is None else _bar(mean),
    ]


def _bar(mean: float) -> str:
    full = round(mean * BAR_CELLS)
    return "█" * full + "░" * (BAR_CELLS - full)
