"""What every request goes through before anything else: who makes it, and whether it may be made at all."""

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
from monitor.web.authorization import CLOSED, PERSON, at_this_machine
from monitor.web.forms import FORM, MAX_FORM_BYTES, content_type, first, parse_form, read_body
from monitor.web.responses import NO_STORE, json_response

API = "/v1/"
CALLBACK = "/v1/alertmanager"  # an Alertmanager has a token of its own, which is looked at there
OPEN = ("/healthz", "/login", CALLBACK)
STATIC = "/static/"
METRICS = "/metrics"
SAFE = ("GET", "HEAD", "OPTIONS")
HEADER, FIELD = "x-csrf-token", "csrf"


class AuthMiddleware:
    """Lets requests through to an application, with who makes them in `request.state.person`."""

    def __init__(self, app: ASGIApp, doorkeeper: Authenticator) -> None:
        self._app = app
        self._doorkeeper = doorkeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        state = scope.setdefault("state", {})
        state[CLOSED] = self._doorkeeper.settings.closed
        try:
            state[PERSON] = person = self._person(request)
            if not _is_open(request) and person.role is Role.NONE:
                at_this_machine(request, "daemon.access")
                raise RequestRejectedError(HTTPStatus.UNAUTHORIZED, "sign in to see that")
            if request.method not in SAFE and request.url.path != "/login":
                receive = await _meant(request, person, receive)
        except RequestRejectedError as refused:
            await refusal(request, refused)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _person(self, request: Request) -> Principal:
        if request.url.path == CALLBACK:
            return self._doorkeeper.by_known_token(request) or self._doorkeeper.anonymous(request)
        if request.url.path.startswith(STATIC) or request.url.path == "/healthz":
            return self._doorkeeper.anonymous(request)
        return self._doorkeeper.person(request)


async def _meant(request: Request, person: Principal, receive: Receive) -> Receive:
    """Given a request to change something, return how its body is read. Raise RefusedError if a page forged it.

    A browser adds cookies, and a proxy its header, to whatever any page has it send. It cannot know the secret that is
    in our own pages.
    """
    if person.how in (AuthMethod.TOKEN, AuthMethod.MACHINE):
        return receive
    if person.how is AuthMethod.ANONYMOUS:
        if not request.url.path.startswith(API):  # there each endpoint looks who may
            raise RequestRejectedError(HTTPStatus.UNAUTHORIZED, "sign in to do that")
        return receive
    given = request.headers.get(HEADER, "")
    if not given and content_type(request) == FORM:
        body = await read_body(request, MAX_FORM_BYTES)
        given, receive = first(parse_form(body), FIELD), _again(body, receive)
    if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), (person.csrf or "-").encode()):
        raise RequestRejectedError(HTTPStatus.FORBIDDEN, "this was not sent by a page of this site; load the page again")
    return receive


def _again(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body again that was read already."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def refusal(request: Request, refused: RequestRejectedError) -> Response:
    """Given why a request is refused, return the answer: for programs in JSON, for people where to sign in."""
    headers = dict(NO_STORE)
    if refused.retry_after is not None:
        headers["Retry-After"] = str(int(refused.retry_after) + 1)
    path, sign_in = request.url.path, refused.status is HTTPStatus.UNAUTHORIZED
    if path.startswith(API) or path == METRICS:  # Prometheus would follow to where people sign in, and parse that
        answer = json_response({"error": str(refused)}, refused.status)
        answer.headers.update(headers | ({"WWW-Authenticate": "Bearer"} if sign_in else {}))
        return answer
    if sign_in and "hx-request" in request.headers:
        return Response(status_code=refused.status, headers=headers | {"HX-Redirect": "/login"})
    if sign_in and request.method in SAFE:
        query = f"?{request.url.query}" if request.url.query else ""
        wanted = quote(path + query, safe="/")
        return RedirectResponse(f"/login?next={wanted}", HTTPStatus.SEE_OTHER, headers)
    return PlainTextResponse(f"{refused}\n", refused.status, headers)


def _is_open(request: Request) -> bool:
    return request.url.path in OPEN or request.url.path.startswith(STATIC)
