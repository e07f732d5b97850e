"""Rendering of pages: sections from templates, and the response, a whole page or the sections that have changed."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from monitor.base.localtime import local_minute
from monitor.base.logs import printable
from monitor.facts.agents import AgentFact
from monitor.facts.node import NodeSnapshot
from monitor.history.model import HistoryMetric, HistorySubject, HistoryUnit
from monitor.i18n import LANGUAGES, Value, code, say
from monitor.i18n.figures import duration
from monitor.present import disks
from monitor.present.guide import guide_text
from monitor.present.rows import MAX_ROWS, page_text
from monitor.web.context import (
    COOKIE_LIFETIME_SECONDS,
    GUIDE,
    GUIDE_OFF,
    LANG,
    PageDeps,
    language_of,
    principal_of,
    theme_of,
)
from monitor.web.pages.environment import environment
from monitor.web.pages.menu import menu
from monitor.web.responses import NO_STORE

VERSIONS = "v"  # query parameter of an open page: section.version,section.version,...
MAX_QUERY_CHARS = 200
HASHED_BYTES = 2047  # at a time
# Texts of page.js.
SCRIPT_TEXTS = ("s", "min", "h", "d", "soon", "asking", "doing", "done", "refused", "failed", "nothing", "restore")


PLOT_SPANS = ("1h", "6h", "24h", "7d")
HEAT_SPAN = "24h"  # at first
# Texts of heatmap.js.
HEAT_TEXTS = (
    "heat.unknown", "heat.hint", "heat.group", "heat.summary", "heat.open", "heat.open-node", "heat.empty",
    "plot.failed",
)  # fmt: skip
# Texts of chart.js.
PLOT_TEXTS = (
    *(f"metric.{metric}" for metric in HistoryMetric), *(f"unit.{unit}" for unit in HistoryUnit),
    "time", "max", "empty", "failed", "alerts", "fired", "resolved", "was",
    "forecast", "forecast-range", "forecast-later",
)  # fmt: skip


@dataclass(frozen=True)
class PageSection:
    """A part of a page that is updated as a whole. Screen readers announce changes of a `polite` one."""

    id: str
    html: Markup
    polite: bool = False
    css: str = ""

    @cached_property
    def version(self) -> str:
        """Hash of the content, in pieces: for larger ones hashlib gives the interpreter to other threads."""
        content, digest = self.html.encode(), hashlib.blake2b(digest_size=4)
        for start in range(0, len(content), HASHED_BYTES):
            digest.update(content[start : start + HASHED_BYTES])
        return digest.hexdigest()

    def render(self, *, update: bool = False) -> Markup:
        """The section as HTML; with `update` it replaces the one on an open page."""
        attributes = ' aria-live="polite"' if self.polite else ""
        attributes += ' hx-swap-oob="true"' if update else ""
        attributes += f' class="{escape(self.css)}"' if self.css else ""
        head = f'<section id="{escape(self.id)}" data-v="{self.version}"{attributes}>'
        return Markup(f"{head}{self.html}</section>")  # noqa: S704  # the rest is escaped


class PageRequest:
    """A request for a page."""

    def __init__(self, request: Request, deps: PageDeps) -> None:
        self.request = request
        self.deps = deps
        self.lang = language_of(request)
        self.principal = principal_of(request)
        self.now = time.time()

    def t(self, key: str, **values: Value) -> str:
        """A text of the pages."""
        return page_text(self.lang, key, **values)

    def t_or(self, key: str, fallback: str) -> str:
        """A text of the pages; the fallback if there is none, because keys may contain names from the cluster."""
        try:
            return self.t(key)
        except KeyError:
            return fallback

    def minute(self, at: float) -> str:
        """A time with its zone."""
        return local_minute(at, self.deps.data.timezone)

    def rule(self, rule: str) -> str:
        """The title of a rule."""
        try:
            return say(self.lang, f"rule.{rule}", {})
        except KeyError:
            return rule

    def query(self, name: str) -> str:
        """A query parameter, trimmed and printable; empty if it is missing."""
        return printable(self.request.query_params.get(name, "")).strip()[:MAX_QUERY_CHARS]

    def agent_of(self, node: str) -> AgentFact | None:
        return next((agent for agent in self.deps.data.agents() if agent.node == node), None)

    def snapshot_of(self, node: str) -> NodeSnapshot | None:
        agent = self.agent_of(node)
        return agent.snapshot if agent is not None else None

    def history(self, subject: HistorySubject, name: str) -> PageSection:
        """The charts of an entity. The section never changes: chart.js draws what it requests."""
        texts = {key: self.t(f"plot.{key}") for key in PLOT_TEXTS}
        if subject is HistorySubject.GPU:
            texts["metric.memory"] = self.t("plot.metric.memory-gpu")
        return self.section(
            "charts", "chart", subject=subject.value, name=name, spans=PLOT_SPANS,
            texts=json.dumps(texts, ensure_ascii=False),
        )  # fmt: skip

    def heat_map(self) -> PageSection:
        """The heat map of all nodes. The section never changes: heatmap.js draws what it requests."""
        texts = json.dumps({key: self.t(key) for key in HEAT_TEXTS}, ensure_ascii=False)
        return self.section("heat", "heatmap", spans=PLOT_SPANS, first_span=HEAT_SPAN, texts=texts)

    def with_forecasts(self, rows: Sequence[disks.DiskRow]) -> list[disks.DiskRow]:
        """Disks with the time until they are full."""
        known = disks.forecasts(self.deps.data.findings())
        return disks.with_forecasts(rows, known, self.deps.forecast, self.now)

    @staticmethod
    def limited(rows: Sequence[object], limit: int = MAX_ROWS) -> dict[str, Any]:
        """Template values `rows` and `more`: the first rows, and the number of further ones."""
        return {"rows": rows[:limit], "more": max(0, len(rows) - limit)}

    def part(self, template: str, **values: object) -> Markup:
        """A rendered template of parts/."""
        return Markup(self._render(f"parts/{template}.html", values))  # noqa: S704  # escaped by the template

    def section(
        self, section_id: str, template: str, *, polite: bool = False, css: str = "", **values: object
    ) -> PageSection:
        """A section rendered from a template of parts/."""
        return PageSection(section_id, self.part(template, **values), polite, css)

    def respond(self, layout: str, title: str, *sections: PageSection, status: int = 200, **values: object) -> Response:
        """The page, or the changed sections if it is already open."""
        lease, guide = self._lease_sections(), self._guide_sections()
        versions = self.request.query_params.get(VERSIONS)
        if versions is not None:
            return _changed_sections(versions, (*sections, *lease, *guide))
        rendered = {section.id: section.render() for section in sections}
        leads = [section.render() for section in lease]
        frame = {"title": title, "s": rendered, "leads": leads, "guides": [section.render() for section in guide]}
        page = self._render(layout, frame | values)
        response = HTMLResponse(page, status, headers=NO_STORE)
        wanted = self.request.query_params.get(LANG)
        if wanted in LANGUAGES:
            response.set_cookie(LANG, wanted, max_age=COOKIE_LIFETIME_SECONDS, samesite="lax")
        return response

    def fragment(self, template: str, **values: object) -> Response:
        """A rendered part on its own, for a dialog."""
        return HTMLResponse(self.part(template, **values), headers=NO_STORE)

    def not_found(self, what: str) -> Response:
        """The response for something that does not exist."""
        gone = self.section("gone", "gone", what=what)
        return self.respond("one.html", what, gone, status=404)

    def _lease_sections(self) -> tuple[PageSection, ...]:
        """The line that names the leader, if there are several replicas."""
        if self.deps.data.lease is None:
            return ()
        return (self.section("lease", "lease", polite=True, lease=self.deps.data.lease()),)

    def _guide_sections(self) -> tuple[PageSection, ...]:
        """The strip that explains the current scene of the demo."""
        source = self.deps.data.extras.guide
        if source is None:
            return ()
        guide = source()
        return (self.section(GUIDE, "guide", guide=guide, text=guide_text(guide, self.lang)),)

    def _render(self, template: str, values: Mapping[str, object]) -> str:
        context: dict[str, object] = {
            "t": self.t,
            "t_or": self.t_or,
            "rule": self.rule,
            "minute": self.minute,
            "code": lambda word: code(self.lang, word),
            "lang": self.lang,
            "principal": self.principal,
            "admin": self.principal.has_role("admin"),
            "acts": self.principal.has_role("user"),
            "owns": self.principal.may_act_on,
            "duration": lambda seconds: duration(seconds, self.lang),
            "timezone": self.deps.data.timezone,
        }
        if "/" not in template:  # a whole page
            context |= {
                "theme": theme_of(self.request),
                "request": self.request,
                "links": self.deps.data.extras.links,
                "guide_off": self.request.cookies.get(GUIDE) == GUIDE_OFF,
                "menu": menu(self.request.url.path, self.deps, self.principal),
                "words": json.dumps({key: self.t(f"script.{key}") for key in SCRIPT_TEXTS}, ensure_ascii=False),
            }
        return environment().get_template(template).render(context | dict(values))


def _changed_sections(versions: str, sections: tuple[PageSection, ...]) -> Response:
    """The sections whose versions differ; a reload if the open page has other sections."""
    known = dict(pair.split(".", 1) for pair in versions.split(",") if "." in pair)
    if known.keys() != {section.id for section in sections}:
        return Response(status_code=200, headers=NO_STORE | {"HX-Refresh": "true"})
    changed = [section for section in sections if known[section.id] != section.version]
    if not changed:
        return Response(status_code=204, headers=NO_STORE)
    return HTMLResponse("".join(section.render(update=True) for section in changed), headers=NO_STORE)
