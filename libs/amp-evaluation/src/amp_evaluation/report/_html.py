"""The page of a report."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from amp_evaluation.report._figures import BINS, ReportFigures

__all__ = ["render_html"]

MAX_TEXT_CHARS = 1_000


def render_html(figures: ReportFigures) -> str:
    """The figures as one HTML document; every text in it is escaped."""
    environment = Environment(
        loader=PackageLoader("amp_evaluation.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(score=_score, percent=_percent, usd=_usd, brief=_brief)
    return environment.get_template("report.html.j2").render(report=figures, bins=BINS)


def _brief(text: str) -> str:
    """A text that may be as long as a model likes; the JSON file has all of it."""
    left_out = len(text) - MAX_TEXT_CHARS
    return text if left_out <= 0 else f"{text[:MAX_TEXT_CHARS]} … ({left_out:,} more characters in the JSON file)"


def _score(value: float | None) -> str:
    return "no score" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "no score" if value is None else f"{value:.0%}"


def _usd(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f} USD"
