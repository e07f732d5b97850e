"""The incident of an alert over HTTP: JSON, Markdown for a ticket, or a standalone page. Needs the role viewer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from monitor.access.audit import AuditEntry
from monitor.present.incident_text import as_html, as_markdown
from monitor.queries.incident import MAX_AUDITED, IncidentSource, read_incident
from monitor.web.responses import NO_STORE, error_response, json_response, language_of

RENDERERS = {"markdown": (as_markdown, "md"), "html": (as_html, "html")}
FORMATS = ("json", *RENDERERS)


def incident_routes(
    source: IncidentSource, audit: Callable[[int], Sequence[AuditEntry]] | None, timezone: str
) -> list[Route]:
    """Route of incidents; documents show times in the time zone."""

    def show(request: Request) -> Response:
        form = request.query_params.get("format", "json")
        try:
            lang = language_of(request)
        except ValueError as error:
            return error_response(error, HTTPStatus.BAD_REQUEST)
        if form not in FORMATS:
            return error_response(f"format is one of {', '.join(FORMATS)}", HTTPStatus.BAD_REQUEST)
        audited = audit(MAX_AUDITED) if audit is not None else ()
        found = read_incident(source, audited, request.path_params["fingerprint"], lang, time.time())
        if found is None:
            return error_response("there is no such alert on record", HTTPStatus.NOT_FOUND)
        if form == "json":
            return json_response(found)
        render, suffix = RENDERERS[form]
        disposition = {"Content-Disposition": f'attachment; filename="incident.{suffix}"'}
        content = render(found, lang, timezone)
        return Response(content, headers=NO_STORE | disposition, media_type=f"text/{form}; charset=utf-8")

    return [Route("/v1/incidents/{fingerprint}", show)]
