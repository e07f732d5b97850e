"""Responses to unknown paths and methods: a page for people, JSON for users of the API, text for everything else."""

from __future__ import annotations

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from monitor.web.context import PageDeps
from monitor.web.middleware import API, SAFE_METHODS, STATIC
from monitor.web.pages.render import PageRequest
from monitor.web.responses import error_response


def http_error(deps: PageDeps, request: Request, error: Exception) -> Response:
    """Response to an HTTP error of the router."""
    if not isinstance(error, HTTPException):
        raise error
    if request.url.path.startswith(API):
        response = error_response(error.detail, error.status_code)
        response.headers.update(error.headers or {})
        return response
    if error.status_code == HTTPStatus.NOT_FOUND and _is_for_people(request):
        page = PageRequest(request, deps)
        return page.respond(
            "one.html", page.t("gone.title"), page.section("gone", "no_page"), status=HTTPStatus.NOT_FOUND
        )
    return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)


def _is_for_people(request: Request) -> bool:
    """Whether a browser asks for a page; its updates ask for any kind of content."""
    accepted = request.headers.get("accept", "")
    is_page = "text/html" in accepted or "hx-request" in request.headers
    return is_page and request.method in SAFE_METHODS and not request.url.path.startswith(STATIC)
