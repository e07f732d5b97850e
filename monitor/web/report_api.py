"""The report by HTTP: as JSON, as CSV for spreadsheets, or as a page to keep. Everybody who may read may have it."""

from __future__ import annotations

from http import HTTPStatus
from typing import get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from monitor.base.units import parse_duration
from monitor.i18n import LANGUAGES
from monitor.report.buckets import DAY, KEEP_DAYS, By
from monitor.report.model import ReportAsked
from monitor.report.render import as_csv, as_html
from monitor.web.responses import NO_STORE, json_response

WEEK = "7d"
BOM = "\N{BYTE ORDER MARK}"  # without it a spreadsheet takes the names for another encoding


def report_routes(asked: ReportAsked) -> list[Route]:
    """Given whom to ask, return the routes."""

    def report(request: Request) -> Response:
        try:
            return _answer(asked, request)
        except ValueError as error:
            return json_response({"error": str(error)}, HTTPStatus.BAD_REQUEST)

    return [Route("/v1/report", report)]


def _answer(asked: ReportAsked, request: Request) -> Response:
    """Return what is asked for. Raise ValueError in plain words."""
    query = request.query_params
    seconds, by = stretch(query.get("since", WEEK)), known_by(query.get("by", "user"))
    form, lang = query.get("format", "json"), query.get("lang", "en")
    if form not in ("json", "csv", "html"):
        raise ValueError("format is json, csv or html")
    if lang not in LANGUAGES:
        raise ValueError("lang is en or zh")
    made = asked.report(seconds, by)
    if form == "json":
        return json_response(made)
    text = BOM + as_csv(made) if form == "csv" else as_html(made, lang)
    named = {"Content-Disposition": f'attachment; filename="gpuwarden-report.{form}"'}
    return Response(text, headers=NO_STORE | named, media_type=f"text/{form}; charset=utf-8")


def stretch(text: str) -> float:
    """Given `7d`, return seconds. Raise ValueError if that is nothing, or longer than anything is remembered."""
    seconds = parse_duration(text)
    if not 0 < seconds <= KEEP_DAYS * DAY:
        raise ValueError(f"since is more than nothing, and at most {KEEP_DAYS}d")
    return seconds


def known_by(text: str) -> By:
    """Given what a report is by, return it. Raise ValueError."""
    for by in get_args(By):
        if text == by:
            known: By = by
            return known
    raise ValueError("by is user, queue or node")
