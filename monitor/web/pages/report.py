"""The report on the last days, as a page: what was used, what was wasted, what went wrong."""

from __future__ import annotations

from starlette.responses import Response

from monitor.report.model import ReportAsked
from monitor.web.pages.render import PageRequest
from monitor.web.report_api import WEEK, known_by, stretch

SINCE = ("24h", "7d", "30d", "90d")
BY = ("user", "queue", "node")


class ReportPage:
    """The page at /report."""

    def __init__(self, asked: ReportAsked) -> None:
        self._asked = asked

    def show(self, visit: PageRequest) -> Response:
        """Show the report that is asked for; the one on the last week by user, if that makes no sense."""
        since, by = visit.query("since") or WEEK, visit.query("by") or "user"
        try:
            made = self._asked.report(stretch(since), known_by(by))
        except ValueError:
            since, by = WEEK, "user"
            made = self._asked.report(stretch(since), known_by(by))
        most = max((row.allocated_hours for row in made.rows), default=0.0)
        told = visit.part("report", report=made, most=most)
        return visit.answer("report.html", visit.t("nav.report"), since=since, by=by, told=told, sinces=SINCE, bys=BY)
