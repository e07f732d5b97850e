"""The report over HTTP: JSON, CSV for spreadsheets, or a self-contained page. Needs the role viewer."""

from __future__ import annotations

from http import HTTPStatus
from typing import get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from monitor.base.units import parse_duration
from monitor.report.buckets import DAY, KEEP_DAYS, By
from monitor.report.model import ReportSource
from monitor.report.render import as_csv, as_html
from monitor.web.responses import NO_STORE, error_response, json_response, language_of

DEFAULT_SINCE = "7d"
BOM = "\N{BYTE ORDER MARK}"  # spreadsheets recognise UTF-8 by it


def report_routes(reports: ReportSource, timezone: str = "UTC") -> list[Route]:
    """Route of the report; its page shows times in the time zone."""

    def report(request: Request) -> Response:
        try:
            return _report(reports, request, timezone)
        except ValueError as error:
            return error_response(error, HTTPStatus.BAD_REQUEST)

    return [Route("/v1/report", report)]


def _report(reports: ReportSource, request: Request, timezone: str) -> Response:
    """The requested report. Raise ValueError for invalid parameters."""
    query = request.query_params
    seconds, by = parse_since(query.get("since", DEFAULT_SINCE)), parse_by(query.get("by", "user"))
    form = query.get("format", "json")
    if form not in ("json", "csv", "html"):
        raise ValueError("format is json, csv or html")
    lang = language_of(request)
    report = reports.report(seconds, by)
    if form == "json":
        return json_response(report)
    text = BOM + as_csv(report) if form == "csv" else as_html(report, lang, timezone)
    disposition = {"Content-Disposition": f'attachment; filename="gpuwarden-report.{form}"'}
    return Response(text, headers=NO_STORE | disposition, media_type=f"text/{form}; charset=utf-8")


def parse_since(text: str) -> float:
    """Seconds of a duration such as `7d`. Raise ValueError if it is zero or exceeds the retention."""
    seconds = parse_duration(text)
    if not 0 < seconds <= KEEP_DAYS * DAY:
        raise ValueError(f"since is a duration of at most {KEEP_DAYS}d")
    return seconds


def parse_by(text: str) -> By:
    """The dimension of a report. Raise ValueError if it is unknown."""
    for by in get_args(By):
        if text == by:
            dimension: By = by
            return dimension
    raise ValueError("by is user, queue or node")
