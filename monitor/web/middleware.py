"""Middleware that authenticates every request and protects changes against CSRF."""

from __future__ import annotations

import hmac
from http import HTTPStatus
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor.access.errors import RequestRejectedError
from monitor.access.principal import AuthMethod, Principal, Role
from monitor.web.authenticator import Authenticator
from monitor.web.authorization import CLOSED, PRINCIPAL, no_access_error
from monitor.web.forms import FORM, MAX_FORM_BYTES, content_type, first, parse_form, read_body
from monitor.web.responses import NO_STORE, error_response

API = "/v1/"
CALLBACK = "/v1/alertmanager"  # may have its own token, which the endpoint checks
OPEN = ("/healthz", "/login", CALLBACK)
STATIC = "/static/"
OWNER_LINKS = "/keep/"  # the signed link in the path is the permission
METRICS = "/metrics"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
CSRF_HEADER, CSRF_FIELD = "x-csrf-token", "csrf"


class AuthMiddleware:
    """Passes authenticated requests to an application, with the principal in the request state."""

    def __init__(self, app: ASGIApp, authenticator: Authenticator) -> None:
        self._app = app
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        state = scope.setdefault("state", {})
        state[CLOSED] = self._authenticator.settings.closed
        try:
            state[PRINCIPAL] = principal = self._authenticate(request)
            if not _is_open(request) and principal.role is Role.NONE:
                raise no_access_error(request)
            if request.method not in SAFE_METHODS and not _has_own_protection(request):
                receive = await _check_csrf(request, principal, receive)
        except RequestRejectedError as error:
            await rejection(request, error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _authenticate(self, request: Request) -> Principal:
        if request.url.path == CALLBACK:
            return self._authenticator.by_known_token(request) or self._authenticator.anonymous(request)
        if request.url.path.startswith(STATIC) or request.url.path == "/healthz":
            return self._authenticator.anonymous(request)
        return self._authenticator.authenticate(request)


async def _check_csrf(request: Request, principal: Principal, receive: Receive) -> Receive:
    """Check that a change was sent by a page of this site, and return how to read its body. Raise RequestRejectedError.

    Browsers add cookies, and proxies their header, to requests of any site. Other sites cannot know the CSRF token.
    """
    if principal.method in (AuthMethod.TOKEN, AuthMethod.MACHINE):
        return receive
    if principal.method is AuthMethod.ANONYMOUS:
        if not request.url.path.startswith(API):  # API endpoints check the role themselves
            raise RequestRejectedError(HTTPStatus.UNAUTHORIZED, "sign in first")
        return receive
    given = request.headers.get(CSRF_HEADER, "")
    if not given and content_type(request) == FORM:
        body = await read_body(request, MAX_FORM_BYTES)
        given, receive = first(parse_form(body), CSRF_FIELD), _replay(body, receive)
    if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), (principal.csrf or "-").encode()):
        raise RequestRejectedError(HTTPStatus.FORBIDDEN, "missing or wrong CSRF token; reload the page")
    return receive


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns a body that has already been read."""
    replayed = False

    async def replay() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def rejection(request: Request, error: RequestRejectedError) -> Response:
    """Response to a rejected request: JSON for programs, a redirect to the login for browsers."""
    headers = dict(NO_STORE)
    if error.retry_after is not None:
        headers["Retry-After"] = str(int(error.retry_after) + 1)
    path, unauthorized = request.url.path, error.status is HTTPStatus.UNAUTHORIZED
    if path.startswith(API) or path == METRICS:  # Prometheus would follow the redirect and parse the login page
        response = error_response(error, error.status)
        response.headers.update(headers | ({"WWW-Authenticate": "Bearer"} if unauthorized else {}))
        return response
    if unauthorized and "hx-request" in request.headers:
        return Response(status_code=error.status, headers=headers | {"HX-Redirect": "/login"})
    if unauthorized and request.method in SAFE_METHODS:
        query = f"?{request.url.query}" if request.url.query else ""
        target = quote(path + query, safe="/")
        return RedirectResponse(f"/login?next={target}", HTTPStatus.SEE_OTHER, headers)
    return PlainTextResponse(f"{error}\n", error.status, headers)


def _is_open(request: Request) -> bool:
    return request.url.path in OPEN or request.url.path.startswith((STATIC, OWNER_LINKS))


def _has_own_protection(request: Request) -> bool:
    """Whether another site could not make a browser send this change: it knows no link, and a login is checked."""
    return request.url.path == "/login" or request.url.path.startswith(OWNER_LINKS)
