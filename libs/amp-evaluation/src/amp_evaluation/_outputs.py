"""A run's few figures as one small file each: what a workflow engine takes as output parameters."""

from __future__ import annotations

import json
from pathlib import Path

from amp_evaluation.run_result import RunResult

__all__ = ["write_outputs"]


def write_outputs(folder: str | Path, result: RunResult, *, stored: int) -> None:
    """Write `traces-evaluated`, `scores-stored` and `means.json` (evaluator → mean, null where nothing was scored).

    Raises OSError when the folder can't be written to.
    """
    place = Path(folder)
    (place / "traces-evaluated").write_text(str(result.traces_evaluated))
    (place / "scores-stored").write_text(str(stored))
    means = {name: summary.mean for name, summary in result.scores.items()}
    (place / "means.json").write_text(json.dumps(means))
