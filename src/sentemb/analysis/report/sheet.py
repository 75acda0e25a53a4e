"""The style sheet that the report and the comparison of two rankings share."""

from sentemb.system.html_pages import resource


def style() -> str:
    """The CSS as text."""
    return resource("sentemb.analysis.report", "report.css")
