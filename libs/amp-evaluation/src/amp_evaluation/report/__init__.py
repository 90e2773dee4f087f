"""A run as one self-contained HTML page, and the same figures as JSON.

The page has no script and nothing from outside; all that comes from traces, evaluators and models is escaped. Needs
the extra `report` (jinja2).
"""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from amp_evaluation.report._figures import EvaluatorFigures, Interval, ReportFigures, mean_interval, report_figures
from amp_evaluation.report._html import render_html
from amp_evaluation.run_result import RunResult

__all__ = ["EvaluatorFigures", "Interval", "ReportFigures", "mean_interval", "report_figures", "write_report"]

log = logging.getLogger(__name__)


def write_report(path: str | Path, result: RunResult, *, title: str, stored: str = "") -> tuple[Path, Path]:
    """Write the page to `path` and the figures beside it with the suffix .json; both paths are returned.

    `stored` says in words what became of the scores. Raises OSError when a file can't be written, ValueError when
    `path` itself ends in .json, where the page and the figures would be one file.
    """
    page = Path(path)
    if page.suffix == ".json":
        raise ValueError(f"report path {str(path)!r}: name the page (.html), the figures stand beside it as .json")
    figures = report_figures(result, title=title, stored=stored)
    data = page.with_suffix(".json")
    # A lone surrogate in a text of a trace must not cost the report.
    page.write_text(render_html(figures), encoding="utf-8", errors="replace")
    data.write_bytes(_encode(figures))
    log.info("report: %s, its figures: %s", page, data)
    return page, data


def _encode(figures: ReportFigures) -> bytes:
    return msgspec.json.format(msgspec.json.encode(_clean(msgspec.to_builtins(figures))), indent=1) + b"\n"


def _clean(value: object) -> object:
    """Texts without lone surrogates, which JSON's UTF-8 can't hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
