"""The files of a run beside its scores: the report, and the few figures that a workflow engine takes as parameters."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

from amp_evaluation.models import RunError
from amp_evaluation.run_result import RunResult

__all__ = ["write_files", "write_outputs"]


def write_files(
    result: RunResult, *, report: Path | None, outputs: Path | None, title: str, stored: int, total: int
) -> list[RunError]:
    """Write the page and the small files that are asked for; what can't be written is an error of the run."""
    errors = []
    try:
        if outputs is not None:
            write_outputs(outputs, result, stored=stored)
    except OSError as error:
        errors.append(RunError(f"--outputs can't be written: {error}", repeat_may_help=True))
    try:
        if report is not None:
            # its library is imported only where a page is wanted
            write_report = importlib.import_module("amp_evaluation.report").write_report
            write_report(report, result, title=title, stored=f"{stored:,} of {total:,} stored")
    except OSError as error:
        errors.append(RunError(f"--report can't be written: {error}", repeat_may_help=True))
    return errors


def write_outputs(folder: str | Path, result: RunResult, *, stored: int) -> None:
    """Write `traces-evaluated`, `scores-stored` and `means.json` (evaluator → mean, null where nothing was scored).

    Raises OSError when the folder can't be written to.
    """
    place = Path(folder)
    (place / "traces-evaluated").write_text(str(result.traces_evaluated))
    (place / "scores-stored").write_text(str(stored))
    means = {name: summary.mean for name, summary in result.scores.items()}
    (place / "means.json").write_text(json.dumps(means))
