"""The page behind the links of notices: an owner keeps an item for a while, or releases it, without an account.

The signed link in the path is the permission. Opening it changes nothing: programs that follow every link do no harm.
Who may release although the link does not permit it signs in.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Protocol

import jinja2
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from monitor.access.audit import AuditWriter
from monitor.access.errors import RequestRejectedError
from monitor.access.lockout import Lockout
from monitor.access.owner_links import LinkExpiredError, LinkInvalidError, OwnerLink
from monitor.access.principal import AuthMethod, Principal, Role
from monitor.base.localtime import local_minute
from monitor.cleanup.journal_records import JournalEntry
from monitor.cleanup.owner_answers import (
    MAX_REASON_CHARS,
    AlreadyAnsweredError,
    MayNotReleaseError,
    NotDueError,
    NotReleasedError,
    OwnerQuestion,
)
from monitor.cleanup.plan.keeps import AnswerKind, Keep
from monitor.i18n import say
from monitor.web.authorization import peer_of
from monitor.web.context import language_of, principal_of, theme_of
from monitor.web.forms import Form, first, read_form
from monitor.web.owner_view import KeepLimits, OwnerView, answer_view, login_view, refused_view
from monitor.web.pages.cached import TimedCache
from monitor.web.pages.environment import TEMPLATES, assets
from monitor.web.responses import NO_STORE

TEXTS = (
    "title", "for", "until", "reason", "button", "once", "or-release", "release-button", "release-sure",
)  # fmt: skip  # of the template
DO, CSRF, SURE = "do", "csrf", "sure"  # fields of the forms


class OwnerAnswersBackend(Protocol):
    """What the page asks, records and does."""

    max_keep_seconds: float

    @property
    def now(self) -> Callable[[], float]: ...

    def check(self, text: str, /) -> OwnerLink:
        """The link itself. Raise LinkInvalidError or LinkExpiredError."""
        ...

    def may_answer(self, link: OwnerLink, principal: Principal, /) -> bool:
        """Whether the link is enough, or its owner or an administrator is signed in."""
        ...

    def question(self, text: str, /) -> OwnerQuestion:
        """What a link asks. Raise LinkInvalidError or LinkExpiredError."""
        ...

    def keep(self, text: str, seconds: float, reason: str, /) -> Keep:
        """Keep the item of a link. Raise the same, AlreadyAnsweredError, NotDueError or ValueError."""
        ...

    def release(
        self, text: str, principal: Principal, by: str, on_begin: Callable[[], None], /
    ) -> tuple[JournalEntry, ...]:
        """Release the item of a link. Raise the same without ValueError, MayNotReleaseError or NotReleasedError."""
        ...


def owner_routes(
    answers: OwnerAnswersBackend,
    audit: AuditWriter | None,
    timezone: str,
    peer: Callable[[Request], str] = peer_of,
) -> list[Route]:
    """Routes of the page. Attempts are counted by `peer`."""
    page = _OwnerPage(answers, audit, timezone, peer)
    return [
        Route("/keep/{link}", page.show, methods=["GET"]),
        Route("/keep/{link}", page.answer, methods=["POST"]),
    ]


class _OwnerPage:
    def __init__(
        self,
        answers: OwnerAnswersBackend,
        audit: AuditWriter | None,
        timezone: str,
        peer: Callable[[Request], str],
    ) -> None:
        self._answers = answers
        self._audit = audit
        self._timezone = timezone
        self._peer = peer
        self._attempts = Lockout()
        self._questions = TimedCache[OwnerQuestion]()  # a plan is expensive in a large cluster
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._template = environment.get_template("keep.html")

    def show(self, request: Request) -> Response:
        text = request.path_params["link"]
        try:
            link = self._answers.check(text)
            if not self._answers.may_answer(link, principal_of(request)):
                return self._respond(request, login_view(language_of(request)), HTTPStatus.FORBIDDEN)
            question = self._questions.get((text,), lambda: self._answers.question(text))
        except (LinkInvalidError, LinkExpiredError) as error:
            return self._refuse(request, error)
        return self._page(request, question)

    async def answer(self, request: Request) -> Response:
        form = await read_form(request)
        return await run_in_threadpool(self._limited_answer, request, form)

    def _limited_answer(self, request: Request, form: Form) -> Response:
        """Attempts without success are limited: by link, and by client."""
        text = request.path_params["link"]
        try:
            link = self._answers.check(text)
        except (LinkInvalidError, LinkExpiredError) as error:
            link, refused = None, error
        peer, name = self._peer(request), link.id if link is not None else None
        delay = self._attempts.begin(name, peer, time.monotonic())
        if delay > 0:
            problem = say(language_of(request), "access.login.locked", {"seconds": round(delay)})
            view = OwnerView(say(language_of(request), "keep.title", {}), [], problem=problem)
            return self._respond(request, view, HTTPStatus.TOO_MANY_REQUESTS, {"Retry-After": str(int(delay) + 1)})
        if link is None:
            return self._refuse(request, refused)
        response = self._answer(request, form, link)
        if response.status_code == HTTPStatus.SEE_OTHER:
            self._attempts.succeeded(name, peer)
        return response

    def _answer(self, request: Request, form: Form, link: OwnerLink) -> Response:
        principal = principal_of(request)
        if not self._answers.may_answer(link, principal):
            return self._respond(request, login_view(language_of(request)), HTTPStatus.FORBIDDEN)
        kind = AnswerKind.RELEASE if first(form, DO) == AnswerKind.RELEASE else AnswerKind.KEEP
        try:
            if kind is AnswerKind.RELEASE:
                detail = self._release(request, form, link, principal)
            else:
                detail = self._keep(request, form, link, principal)
        except AlreadyAnsweredError:
            return self._refused(request, link, kind, "answered", HTTPStatus.CONFLICT)
        except NotDueError:
            return self._refused(request, link, kind, "not due", HTTPStatus.CONFLICT)
        except MayNotReleaseError:
            return self._refused(request, link, kind, "not permitted", HTTPStatus.FORBIDDEN, "may-not-release")
        except NotReleasedError as error:
            return self._refused(request, link, kind, error.why, HTTPStatus.CONFLICT, "not-released")
        except ValueError as error:
            return self._refused(request, link, kind, str(error), HTTPStatus.BAD_REQUEST, "wrong-choice")
        self._record(request, link, kind, "done", detail)
        self._questions = TimedCache()
        return RedirectResponse(request.url.path, HTTPStatus.SEE_OTHER, NO_STORE)

    def _keep(self, request: Request, form: Form, link: OwnerLink, principal: Principal) -> str:
        if not self._answers.may_answer(link, Principal("", Role.NONE)):
            _check_csrf(form, principal)
        seconds = self._limits().seconds(first(form, "for"), first(form, "until"))
        keep = self._answers.keep(request.path_params["link"], seconds, first(form, "reason")[:MAX_REASON_CHARS])
        return f"{local_minute(keep.until, self._timezone)} {keep.reason}".strip()

    def _release(self, request: Request, form: Form, link: OwnerLink, principal: Principal) -> str:
        if first(form, SURE) != "yes":
            raise ValueError("not confirmed")
        if not link.may_release:
            _check_csrf(form, principal)
        by = f"{self._answering(request, link, AnswerKind.RELEASE).name}@{peer_of(request)}"
        entries = self._answers.release(
            request.path_params["link"], principal, by, lambda: self._record(request, link, AnswerKind.RELEASE, "begun")
        )
        return " ".join(entry.outcome or entry.state for entry in entries)

    def _limits(self) -> KeepLimits:
        return KeepLimits(self._answers.now(), self._answers.max_keep_seconds, self._timezone)

    def _answering(self, request: Request, link: OwnerLink, kind: AnswerKind) -> Principal:
        """Who is on record for an answer: the link's owner, unless only a role permits it."""
        principal = principal_of(request)
        by_link = self._answers.may_answer(link, Principal("", Role.NONE))
        if by_link and (link.may_release or kind is AnswerKind.KEEP or not principal.authenticated):
            return Principal(link.owner, Role.NONE, link.owner, method=AuthMethod.LINK)
        return principal

    def _record(self, request: Request, link: OwnerLink, kind: AnswerKind, result: str, detail: str = "") -> None:
        """Write to the audit log. The link itself is a secret until it is used."""
        if self._audit is not None:
            by = self._answering(request, link, kind)
            self._audit.write(by, peer_of(request), kind, f"{link.policy} {link.item}", result, detail)

    def _refused(
        self, request: Request, link: OwnerLink, kind: AnswerKind, why: str, status: HTTPStatus, problem: str = ""
    ) -> Response:
        """The page again, with what was wrong."""
        self._record(request, link, kind, "refused", why)
        text = say(language_of(request), f"keep.{problem}", {"why": why}) if problem else ""
        return self._page(request, self._answers.question(request.path_params["link"]), status, text)

    def _page(
        self, request: Request, question: OwnerQuestion, status: HTTPStatus = HTTPStatus.OK, problem: str = ""
    ) -> Response:
        lang, principal = language_of(request), principal_of(request)
        return self._respond(request, answer_view(question, principal, self._limits(), lang, problem), status)

    def _respond(
        self,
        request: Request,
        view: OwnerView,
        status: HTTPStatus = HTTPStatus.OK,
        headers: dict[str, str] | None = None,
    ) -> Response:
        lang = language_of(request)
        content = self._template.render(
            lang=lang, theme=theme_of(request), assets=assets(), max_reason=MAX_REASON_CHARS, view=view,
            csrf=principal_of(request).csrf or "", path=request.url.path,
            words={key: say(lang, f"keep.{key}", {}) for key in TEXTS},
        )  # fmt: skip
        return HTMLResponse(content, status, NO_STORE | dict(headers or {}))

    def _refuse(self, request: Request, error: LinkInvalidError | LinkExpiredError) -> Response:
        expired = isinstance(error, LinkExpiredError)
        status = HTTPStatus.GONE if expired else HTTPStatus.NOT_FOUND
        return self._respond(request, refused_view(language_of(request), expired=expired), status)


def _check_csrf(form: Form, principal: Principal) -> None:
    """Check that a page of this site sent a form that needs a login. Raise RequestRejectedError.

    Browsers add cookies, and proxies their header, to requests of any site that knows the link.
    """
    if principal.csrf is not None and not hmac.compare_digest(first(form, CSRF).encode(), principal.csrf.encode()):
        raise RequestRejectedError(HTTPStatus.FORBIDDEN, "missing or wrong CSRF token; reload the page")
