"""The report as a page."""

from __future__ import annotations

from markupsafe import Markup
from starlette.responses import Response

from monitor.alert.message.formats.charts import charts_html
from monitor.i18n import say
from monitor.present.rows import MAX_ROWS
from monitor.report.charts import report_charts
from monitor.report.cost_text import cost_cell, unpriced_texts
from monitor.report.model import ReportSource
from monitor.web.pages.render import PageRequest
from monitor.web.report_api import DEFAULT_SINCE, parse_by, parse_since

SINCE_CHOICES = ("24h", "7d", "30d", "90d")
BY_CHOICES = ("user", "queue", "node")


class ReportPage:
    """The page at /report."""

    def __init__(self, reports: ReportSource) -> None:
        self._reports = reports

    def show(self, page: PageRequest) -> Response:
        """The requested report; that of the last week by user if the parameters are invalid."""
        since, by = page.query("since") or DEFAULT_SINCE, page.query("by") or "user"
        try:
            report = self._reports.report(parse_since(since), parse_by(by))
        except ValueError:
            since, by = DEFAULT_SINCE, "user"
            report = self._reports.report(parse_since(since), parse_by(by))
        most = max((row.allocated_hours for row in report.rows), default=0.0)
        charts = Markup(charts_html(report_charts(report, page.deps.data.timezone), page.lang, "h2"))  # noqa: S704  # escaped
        content = page.part(
            "report",
            report=report,
            most=most,
            charts=charts,
            max_rows=MAX_ROWS,
            cost_cell=cost_cell,
            unpriced=[say(page.lang, text.key, text.values) for text in unpriced_texts(report)],
        )
        return page.respond(
            "report.html", page.t("nav.report"), since=since, by=by, told=content, sinces=SINCE_CHOICES, bys=BY_CHOICES
        )
