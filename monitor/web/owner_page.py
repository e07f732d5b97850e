"""The page behind the links of notices: an owner keeps an item for a while, without an account.

The signed link in the path is the permission. Opening it changes nothing: programs that follow every link do no harm.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Protocol

import jinja2
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from monitor.access.audit import AuditWriter
from monitor.access.owner_links import LinkExpiredError, LinkInvalidError, OwnerLink
from monitor.access.principal import AuthMethod, Principal, Role
from monitor.base.localtime import local_minute
from monitor.cleanup.owner_answers import MAX_REASON_CHARS, AlreadyAnsweredError, NotDueError, OwnerQuestion
from monitor.cleanup.plan.keeps import Keep
from monitor.i18n import Value, say
from monitor.i18n.figures import duration
from monitor.i18n.notes import sentence
from monitor.web.authorization import peer_of
from monitor.web.context import language_of, theme_of
from monitor.web.forms import first, read_form
from monitor.web.pages.cached import TimedCache
from monitor.web.pages.environment import TEMPLATES, assets
from monitor.web.responses import NO_STORE

HOUR_SECONDS, DAY_SECONDS = 3600.0, 86400.0
CHOICES_SECONDS = (4 * HOUR_SECONDS, DAY_SECONDS, 3 * DAY_SECONDS)
KEEP_ACTION = "keep"
TEXTS = ("title", "for", "reason", "button", "once", "sign-in")  # of the template


class OwnerAnswersBackend(Protocol):
    """What the page asks and records."""

    max_keep_seconds: float

    def question(self, text: str, /) -> OwnerQuestion:
        """What a link asks. Raise LinkInvalidError or LinkExpiredError."""
        ...

    def keep(self, text: str, seconds: float, reason: str, /) -> Keep:
        """Keep the item of a link. Raise the same, AlreadyAnsweredError, NotDueError or ValueError."""
        ...


def owner_routes(answers: OwnerAnswersBackend, audit: AuditWriter | None, timezone: str) -> list[Route]:
    """Routes of the page."""
    page = _OwnerPage(answers, audit, timezone)
    return [
        Route("/keep/{link}", page.show, methods=["GET"]),
        Route("/keep/{link}", page.keep, methods=["POST"]),
    ]


class _OwnerPage:
    def __init__(self, answers: OwnerAnswersBackend, audit: AuditWriter | None, timezone: str) -> None:
        self._answers = answers
        self._audit = audit
        self._timezone = timezone
        self._questions = TimedCache[OwnerQuestion]()  # a plan is expensive in a large cluster
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._template = environment.get_template("keep.html")

    def show(self, request: Request) -> Response:
        text = request.path_params["link"]
        try:
            question = self._questions.get((text,), lambda: self._answers.question(text))
        except (LinkInvalidError, LinkExpiredError) as error:
            return self._refuse(request, error)
        return self._page(request, question)

    async def keep(self, request: Request) -> Response:
        form = await read_form(request)
        return await run_in_threadpool(self._keep, request, first(form, "for"), first(form, "reason"))

    def _keep(self, request: Request, seconds: str, reason: str) -> Response:
        text = request.path_params["link"]
        try:
            question = self._answers.question(text)
            if not seconds.isascii() or not seconds.isdecimal() or float(seconds) not in self._choices():
                raise ValueError("not one of the choices")
            keep = self._answers.keep(text, float(seconds), reason[:MAX_REASON_CHARS])
        except (LinkInvalidError, LinkExpiredError) as error:
            return self._refuse(request, error)
        except AlreadyAnsweredError:
            self._record(request, question.link, "refused", "answered")
            return self._page(request, self._answers.question(text), HTTPStatus.CONFLICT)
        except NotDueError:
            self._record(request, question.link, "refused", "not due")
            return self._page(request, question, HTTPStatus.CONFLICT)
        except ValueError as error:
            self._record(request, question.link, "refused", str(error))
            return self._page(request, question, HTTPStatus.BAD_REQUEST)
        until = local_minute(keep.until, self._timezone)
        self._record(request, question.link, "done", f"{until} {keep.reason}".strip())
        self._questions = TimedCache()
        return RedirectResponse(request.url.path, HTTPStatus.SEE_OTHER, NO_STORE)

    def _choices(self) -> tuple[float, ...]:
        most = self._answers.max_keep_seconds
        return (*(seconds for seconds in CHOICES_SECONDS if seconds < most), most)

    def _record(self, request: Request, link: OwnerLink, result: str, detail: str) -> None:
        """Write to the audit log. The link itself is a secret until it is used."""
        if self._audit is not None:
            owner = Principal(link.owner, Role.NONE, link.owner, method=AuthMethod.LINK)
            self._audit.write(owner, peer_of(request), KEEP_ACTION, f"{link.policy} {link.item}", result, detail)

    def _page(self, request: Request, question: OwnerQuestion, status: HTTPStatus = HTTPStatus.OK) -> Response:
        lang, item, keep = language_of(request), question.item, question.keep

        def t(key: str, **values: Value) -> str:
            return say(lang, f"keep.{key}", values)

        facts = [] if item is None else [sentence(item.why, lang)]
        if keep is not None:
            values: dict[str, Value] = {"until": local_minute(keep.until, self._timezone), "name": keep.owner}
            facts.append(t("kept-because", reason=keep.reason, **values) if keep.reason else t("kept", **values))
        elif item is not None and item.not_before is not None:
            facts.append(t("due", moment=local_minute(item.not_before, self._timezone)))
        elif item is None:
            facts.append(t("not-due", name=question.name))
        if question.answered:
            facts.append(t("answered"))
        choices = [] if question.answered or (item is None and keep is None) else self._labels(lang)
        title = t("question", name=question.name) if choices else question.name
        if item is None and keep is None:
            title = t("nothing")
        about = t("owner", name=question.link.owner)
        return self._respond(request, status, title=title, facts=facts, about=about, choices=choices)

    def _respond(self, request: Request, status: HTTPStatus, **values: object) -> Response:
        lang = language_of(request)
        content = self._template.render(
            lang=lang, theme=theme_of(request), assets=assets(), max_reason=MAX_REASON_CHARS,
            words={key: say(lang, f"keep.{key}", {}) for key in TEXTS}, **values,
        )  # fmt: skip
        return HTMLResponse(content, status, NO_STORE)

    def _labels(self, lang: str) -> list[tuple[int, str]]:
        return [(int(seconds), duration(seconds, lang)) for seconds in self._choices()]

    def _refuse(self, request: Request, error: LinkInvalidError | LinkExpiredError) -> Response:
        lang, expired = language_of(request), isinstance(error, LinkExpiredError)
        title, ask = (say(lang, f"keep.{key}", {}) for key in ("expired" if expired else "invalid", "ask"))
        status = HTTPStatus.GONE if expired else HTTPStatus.NOT_FOUND
        return self._respond(request, status, title=title, facts=[ask], about="", choices=[])
