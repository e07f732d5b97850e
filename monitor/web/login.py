"""The page to sign in, and signing out."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import jinja2
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from monitor.access.errors import RequestRejectedError
from monitor.access.principal import Principal, Role
from monitor.facts.base import Fact
from monitor.i18n import LANGUAGES, say
from monitor.web.authenticator import Authenticator, LockedOutError, behind_tls, cookie_name
from monitor.web.authorization import check_role, peer_of
from monitor.web.forms import Form, first, own_page, read_form
from monitor.web.responses import NO_STORE, json_response

TEMPLATES = Path(__file__).parent / "templates"
WORDS = ("title", "name", "password", "code", "button", "how", "how-code")


class CurrentUser(Fact, frozen=True, kw_only=True):
    """Who asks. A change has to carry `csrf` in the header X-CSRF-Token, if there is one."""

    name: str
    role: str
    cluster_user: str | None = None
    csrf: str | None = None


class Recorder(Protocol):
    """Who writes down what people do."""

    def write(self, person: Principal, peer: str, what: str, on: str, result: str, detail: str = "") -> None: ...


def login_routes(doorkeeper: Authenticator, recorder: Recorder | None = None) -> list[Route]:
    """Given who knows everybody and who writes down what they do, if anybody does, return the routes."""
    views = _LoginRoutes(doorkeeper, recorder)
    return [
        Route("/login", views.page, methods=["GET"]),
        Route("/login", views.sign_in, methods=["POST"]),
        Route("/logout", views.sign_out, methods=["POST"]),
        Route("/v1/login-link", views.link, methods=["POST"]),
        Route("/v1/me", views.me),
    ]


class _LoginRoutes:
    """The endpoints."""

    def __init__(self, doorkeeper: Authenticator, recorder: Recorder | None) -> None:
        self._doorkeeper = doorkeeper
        self._recorder = recorder
        loader = jinja2.FileSystemLoader(TEMPLATES)
        environment = jinja2.Environment(
            loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self._template = environment.get_template("login.html")

    def page(self, request: Request) -> Response:
        return self._page(request, request.query_params.get("next", "/"))

    async def sign_in(self, request: Request) -> Response:
        _check_origin(request)
        form = await read_form(request)
        return await run_in_threadpool(self._sign_in, request, form)

    def sign_out(self, request: Request) -> Response:
        name = cookie_name(request)
        self._doorkeeper.sessions.end(request.cookies.get(name, ""))
        answer = RedirectResponse("/", HTTPStatus.SEE_OTHER, NO_STORE)
        answer.delete_cookie(name, path="/", httponly=True, samesite="strict", secure=behind_tls(request))
        self._note(request, request.state.person, "sign-out", "done")
        return answer

    def me(self, request: Request) -> Response:
        """Say who is asking, and what each of their changes has to carry."""
        person: Principal = request.state.person
        me = CurrentUser(name=person.name, role=person.role, cluster_user=person.cluster_user, csrf=person.csrf)
        return json_response(me)

    def link(self, request: Request) -> Response:
        """Give an admin, or who sits at this machine, a link by which a browser is signed in as admin, once."""
        check_role(request, Role.ADMIN)
        return json_response({"path": self._doorkeeper.link()}, HTTPStatus.CREATED)

    def _sign_in(self, request: Request, form: Form) -> Response:
        name, code = first(form, "name"), first(form, "code").strip()
        by_code = bool(code) and not name
        try:
            if by_code:
                own, person = self._doorkeeper.sign_in_by_code(code, request)
            else:
                own, person = self._doorkeeper.sign_in(name, first(form, "password"), request)
        except LockedOutError as locked:
            return self._page(request, first(form, "next"), locked, "locked")
        except RequestRejectedError as refused:
            self._note(request, Principal(name or "link", Role.NONE), "sign-in", "refused")
            return self._page(request, first(form, "next"), refused, "code-wrong" if by_code else "wrong")
        self._doorkeeper.sessions.end(request.cookies.get(cookie_name(request), ""))
        self._note(request, person, "sign-in", "done")
        answer = RedirectResponse(own_page(first(form, "next")), HTTPStatus.SEE_OTHER, NO_STORE)
        answer.set_cookie(
            cookie_name(request),
            own,
            max_age=int(self._doorkeeper.sessions.lifetime),
            path="/",
            secure=behind_tls(request),
            httponly=True,
            samesite="strict",
        )
        return answer

    def _note(self, request: Request, person: Principal, what: str, result: str) -> None:
        if self._recorder is not None:
            self._recorder.write(person, peer_of(request), what, "", result)

    def _page(self, request: Request, wanted: str, refused: RequestRejectedError | None = None, problem: str = "") -> Response:
        lang = _language(request)
        words = {word.replace("-", "_"): say(lang, f"access.login.{word}", {}) for word in WORDS}
        seconds = getattr(refused, "seconds", 0.0)
        said = say(lang, f"access.login.{problem}", {"seconds": round(seconds)}) if problem else None
        page = self._template.render(
            lang=lang,
            words=words,
            problem=said,
            next=own_page(wanted),
            accounts=bool(self._doorkeeper.settings.accounts),
        )
        headers = dict(NO_STORE)
        if refused is not None and refused.retry_after is not None:
            headers["Retry-After"] = str(int(refused.retry_after) + 1)
        return HTMLResponse(page, refused.status if refused is not None else HTTPStatus.OK, headers)


def _check_origin(request: Request) -> None:
    """Raise RefusedError if another site has somebody sign in here: they would work under a name that is not theirs."""
    origin = request.headers.get("origin")
    named = {request.headers.get("host"), request.headers.get("x-forwarded-host")}
    if origin is not None and urlsplit(origin).netloc not in named - {None}:
        raise RequestRejectedError(HTTPStatus.FORBIDDEN, "sign in on the page of this site")


def _language(request: Request) -> str:
    for wanted in (request.query_params.get("lang"), request.cookies.get("lang")):
        if wanted in LANGUAGES:
            return str(wanted)
    return "zh" if request.headers.get("accept-language", "").lower().startswith("zh") else "en"
