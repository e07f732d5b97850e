"""Login page, logout, login links, and the current user."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import jinja2
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from monitor.access.audit import AuditWriter
from monitor.access.errors import RequestRejectedError
from monitor.access.principal import Principal, Role
from monitor.facts.base import Fact
from monitor.i18n import say
from monitor.web.authenticator import Authenticator, LockedOutError, behind_tls, cookie_name
from monitor.web.authorization import check_role, peer_of
from monitor.web.context import language_of, principal_of, theme_of
from monitor.web.forms import Form, first, local_target, read_form
from monitor.web.pages.environment import assets
from monitor.web.responses import NO_STORE, json_response

TEMPLATES = Path(__file__).parent / "templates"
TEXTS = ("title", "name", "password", "code", "button", "how", "how-code", "how-only-code")


class CurrentUser(Fact, frozen=True, kw_only=True):
    """The principal of the request. If `csrf` is set, changes have to send it in the header X-CSRF-Token."""

    name: str
    role: str
    cluster_user: str | None = None
    csrf: str | None = None


def login_routes(authenticator: Authenticator, audit: AuditWriter | None = None) -> list[Route]:
    """Routes of login and logout; `audit` is optional."""
    routes = _LoginRoutes(authenticator, audit)
    return [
        Route("/login", routes.page, methods=["GET"]),
        Route("/login", routes.sign_in, methods=["POST"]),
        Route("/logout", routes.sign_out, methods=["POST"]),
        Route("/v1/login-link", routes.link, methods=["POST"]),
        Route("/v1/me", routes.me),
    ]


class _LoginRoutes:
    """Endpoints of login and logout."""

    def __init__(self, authenticator: Authenticator, audit: AuditWriter | None) -> None:
        self._authenticator = authenticator
        self._audit = audit
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
        self._authenticator.sessions.end(request.cookies.get(name, ""))
        response = RedirectResponse("/", HTTPStatus.SEE_OTHER, NO_STORE)
        response.delete_cookie(name, path="/", httponly=True, samesite="strict", secure=behind_tls(request))
        self._record(request, principal_of(request), "sign-out", "done")
        return response

    def me(self, request: Request) -> Response:
        principal = principal_of(request)
        return json_response(
            CurrentUser(
                name=principal.name, role=principal.role, cluster_user=principal.cluster_user, csrf=principal.csrf
            )
        )

    def link(self, request: Request) -> Response:
        """Create a one-time link that signs a browser in as admin."""
        check_role(request, Role.ADMIN)
        return json_response({"path": self._authenticator.link()}, HTTPStatus.CREATED)

    def _sign_in(self, request: Request, form: Form) -> Response:
        name, code = first(form, "name"), first(form, "code").strip()
        by_code = bool(code) and not name
        try:
            if by_code:
                session_id, principal = self._authenticator.sign_in_by_code(code, request)
            else:
                session_id, principal = self._authenticator.sign_in(name, first(form, "password"), request)
        except LockedOutError as error:
            return self._page(request, first(form, "next"), error, "locked")
        except RequestRejectedError as error:
            self._record(request, Principal(name or "link", Role.NONE), "sign-in", "refused")
            return self._page(request, first(form, "next"), error, "code-wrong" if by_code else "wrong")
        self._authenticator.sessions.end(request.cookies.get(cookie_name(request), ""))
        self._record(request, principal, "sign-in", "done")
        response = RedirectResponse(local_target(first(form, "next")), HTTPStatus.SEE_OTHER, NO_STORE)
        response.set_cookie(
            cookie_name(request),
            session_id,
            max_age=int(self._authenticator.sessions.lifetime),
            path="/",
            secure=behind_tls(request),
            httponly=True,
            samesite="strict",
        )
        return response

    def _record(self, request: Request, principal: Principal, action: str, result: str) -> None:
        if self._audit is not None:
            self._audit.write(principal, peer_of(request), action, "", result)

    def _page(
        self, request: Request, target: str, error: RequestRejectedError | None = None, problem: str = ""
    ) -> Response:
        lang = language_of(request)
        texts = {key.replace("-", "_"): say(lang, f"access.login.{key}", {}) for key in TEXTS}
        seconds = getattr(error, "seconds", 0.0)
        message = say(lang, f"access.login.{problem}", {"seconds": round(seconds)}) if problem else None
        page = self._template.render(
            lang=lang,
            theme=theme_of(request),
            assets=assets(),
            words=texts,
            problem=message,
            next=local_target(target),
            accounts=bool(self._authenticator.settings.accounts),
        )
        headers = dict(NO_STORE)
        if error is not None and error.retry_after is not None:
            headers["Retry-After"] = str(int(error.retry_after) + 1)
        return HTMLResponse(page, error.status if error is not None else HTTPStatus.OK, headers)


def _check_origin(request: Request) -> None:
    """Reject the login form of another site, which could sign the user in to an account of the attacker."""
    origin = request.headers.get("origin")
    hosts = {request.headers.get("host"), request.headers.get("x-forwarded-host")}
    if origin is not None and urlsplit(origin).netloc not in hosts - {None}:
        raise RequestRejectedError(HTTPStatus.FORBIDDEN, "sign in on the login page of this site")
