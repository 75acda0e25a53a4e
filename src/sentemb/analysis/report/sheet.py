"""The style sheet that the report and the comparison of two rankings share."""

from sentemb.system import html_pages


def style() -> str:
    """The CSS as text."""
    return html_pages.style("sentemb.analysis.report", "report.css")
