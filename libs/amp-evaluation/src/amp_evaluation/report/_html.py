"""The page of a report."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from amp_evaluation.report._figures import BINS, ReportFigures

__all__ = ["render_html"]


def render_html(figures: ReportFigures) -> str:
    """The figures as one HTML document; every text in it is escaped."""
    environment = Environment(
        loader=PackageLoader("amp_evaluation.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(score=_score, percent=_percent, usd=_usd)
    return environment.get_template("report.html.j2").render(report=figures, bins=BINS)


def _score(value: float | None) -> str:
    return "no score" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "no score" if value is None else f"{value:.0%}"


def _usd(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f} USD"
