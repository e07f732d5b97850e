"""How pages are made: sections out of templates, and the answer: a whole page, or the sections that have changed."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import quote, urlencode

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from monitor.base.logs import printable
from monitor.base.units import format_size
from monitor.i18n import CATALOGS, LANGUAGES, Value, say
from monitor.i18n.figures import duration, number, percent
from monitor.web.context import LANG, YEAR, PageDeps, language_of, person_of, theme_of
from monitor.web.responses import NO_STORE

TEMPLATES = Path(__file__).parents[1] / "templates"
STATIC = Path(__file__).parents[1] / "static"
SEEN = "v"  # what a page says it has: section.version, section.version, ...
UNKNOWN = "?"
# What the script says by itself.
SCRIPT = ("s", "min", "h", "d", "soon", "asking", "doing", "done", "refused", "failed", "nothing", "restore")


@dataclass(frozen=True)
class PageSection:
    """A part of a page that is renewed as a whole. `polite`: what changes in it is read out to who cannot see it."""

    own: str
    html: Markup
    polite: bool = False
    css: str = ""

    @cached_property
    def version(self) -> str:
        """Return what changes when it does."""
        return hashlib.blake2b(self.html.encode(), digest_size=4).hexdigest()

    def shown(self, *, again: bool = False) -> Markup:
        """Return it as HTML; `again` puts it in the place of the one that is there."""
        more = Markup(' aria-live="polite"') if self.polite else ""
        more += Markup(' hx-swap-oob="true"') if again else ""
        more += Markup(' class="{}"').format(self.css) if self.css else ""
        frame = Markup('<section id="{}" data-v="{}"{}>{}</section>')
        return frame.format(self.own, self.version, more, self.html)


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """Return where templates are kept, and what all of them may use."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(link=link, since=since, moment=moment, bar=bar, assets=assets(), with_query=with_query)
    made.filters.update(size=_size, ratio=_ratio, figure=_figure, plain=_plain)
    return made


class PageRequest:
    """One request for a page."""

    def __init__(self, request: Request, sources: PageDeps) -> None:
        self.request = request
        self.sources = sources
        self.lang = language_of(request)
        self.person = person_of(request)
        self.now = time.time()

    def t(self, key: str, **values: Value) -> str:
        """Return a sentence of the pages, in the visitor's language."""
        key = f"page.{key}"
        return say(self.lang, key, values) if values else CATALOGS[self.lang][key]

    def said(self, key: str, fallback: str) -> str:
        """Return a sentence of the pages, or something else where there is none: names may come from anywhere."""
        try:
            return self.t(key)
        except KeyError:
            return fallback

    def rule(self, rule: str) -> str:
        """Return the name of a rule."""
        try:
            return say(self.lang, f"rule.{rule}", {})
        except KeyError:
            return rule

    def query(self, name: str) -> str:
        """Return what was asked for by this name, without what nobody means to ask for."""
        return printable(self.request.query_params.get(name, "")).strip()[:200]

    def part(self, template: str, **values: object) -> Markup:
        """Return a template of parts/, filled in."""
        return Markup(self._fill(f"parts/{template}.html", values))  # noqa: S704  # it was escaped on the way

    def section(self, own: str, template: str, *, polite: bool = False, css: str = "", **values: object) -> PageSection:
        """Return a section that is made of a template."""
        return PageSection(own, self.part(template, **values), polite, css)

    def answer(self, layout: str, title: str, *sections: PageSection, status: int = 200, **values: object) -> Response:
        """Return a page; or, if it is there already, what of it has changed."""
        lease = self._lease()
        seen = self.request.query_params.get(SEEN)
        if seen is not None:
            return _renewed(seen, (*sections, *lease))
        shown = {section.own: section.shown() for section in sections}
        leads = [section.shown() for section in lease]
        page = self._fill(layout, {"title": title, "s": shown, "leads": leads, **values})
        response = HTMLResponse(page, status, headers=NO_STORE)
        wanted = self.request.query_params.get(LANG)
        if wanted in LANGUAGES:
            response.set_cookie(LANG, wanted, max_age=YEAR, samesite="lax")
        return response

    def fragment(self, template: str, **values: object) -> Response:
        """Return a part alone, for a dialog."""
        return HTMLResponse(self.part(template, **values), headers=NO_STORE)

    def missing(self, what: str) -> Response:
        """Say that there is no such thing (any more)."""
        gone = self.section("gone", "gone", what=what)
        return self.answer("one.html", what, gone, status=404)

    def _lease(self) -> tuple[PageSection, ...]:
        """Return the line that says which replica acts, where there may be several."""
        if self.sources.parts.lease is None:
            return ()
        return (self.section("lease", "lease", polite=True, lease=self.sources.parts.lease()),)

    def _fill(self, template: str, values: Mapping[str, object]) -> str:
        given: dict[str, object] = {
            "t": self.t,
            "said": self.said,
            "rule": self.rule,
            "lang": self.lang,
            "person": self.person,
            "admin": self.person.may("admin"),
            "acts": self.person.may("user"),
            "owns": self.person.owns,
            "duration": lambda seconds: duration(seconds, self.lang),
        }
        if "/" not in template:  # a whole page
            given |= {
                "theme": theme_of(self.request),
                "request": self.request,
                "sources": self.sources,
                "menu": _menu(self),
                "words": json.dumps({word: self.t(f"script.{word}") for word in SCRIPT}, ensure_ascii=False),
            }
        return environment().get_template(template).render(given | dict(values))


def _menu(visit: PageRequest) -> list[tuple[str, str]]:
    """Return the pages of the menu: those there is something for, and that the visitor may see."""
    sources = visit.sources
    there = {
        "alerts": sources.alerts is not None,
        "cleanup": sources.cleanup is not None,
        "report": sources.reports is not None,
        "audit": sources.audit is not None and visit.person.may("admin"),
    }
    pages = ("nodes", "pods", "users", "queues", "alerts", "cleanup", "report", "audit")
    return [("/", "overview"), *((f"/{page}", page) for page in pages if there.get(page, True))]


def _renewed(seen: str, sections: tuple[PageSection, ...]) -> Response:
    """Given what a page has, return the sections that it lacks. Have it begin anew if it has others altogether."""
    has = dict(pair.split(".", 1) for pair in seen.split(",") if "." in pair)
    if has.keys() != {section.own for section in sections}:
        return Response(status_code=200, headers=NO_STORE | {"HX-Refresh": "true"})
    changed = [section for section in sections if has[section.own] != section.version]
    if not changed:
        return Response(status_code=204, headers=NO_STORE)
    return HTMLResponse("".join(section.shown(again=True) for section in changed), headers=NO_STORE)


@lru_cache(maxsize=1)
def assets() -> dict[str, str]:
    """Return the addresses of styles and scripts; they change with the files, so that browsers may keep them."""
    found = {}
    for name in ("page.css", "page.js", "htmx.min.js"):
        version = hashlib.blake2b((STATIC / name).read_bytes(), digest_size=6).hexdigest()
        found[name.removesuffix(".min.js").replace(".", "_")] = f"/static/{name}?{version}"
    return found


def link(*words: str | int) -> str:
    """Given the words of a path, return it."""
    return "".join(f"/{quote(str(word), safe='')}" for word in words)


def with_query(path: str, **values: object) -> str:
    """Given a path and what to ask for, return both as one address; what is empty is left out."""
    asked = urlencode({name: str(value) for name, value in values.items() if value not in (None, "")})
    return f"{path}?{asked}" if asked else path


def since(at: float | None) -> Markup:
    """Return a moment that the browser shows as how long ago it was. Here it stays the same as time passes."""
    return _time(at, "data-s")


def moment(at: float | None) -> Markup:
    """Return a moment that the browser shows as date and time of where it is."""
    return _time(at, "data-m")


def _time(at: float | None, how: str) -> Markup:
    if at is None:
        return Markup("?")
    text = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))
    return Markup("<time {}={}>{}</time>").format(Markup(how), int(at), text)  # noqa: S704  # one of two words


def bar(ratio: float | None, css: str = "") -> Markup:
    """Given a share, return a bar of that length; nothing if it is not known."""
    if ratio is None:
        return Markup("")
    wide = round(100 * min(1.0, max(0.0, ratio)))
    frame = Markup(
        '<svg class="bar {}" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="all" width="100" height="6"/><rect class="part" width="{}" height="6"/></svg>'
    )
    return frame.format(css, wide)


def _size(amount: float | None) -> str:
    return UNKNOWN if amount is None else format_size(int(amount))


def _ratio(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else percent(ratio)


def _figure(value: float | None) -> str:
    return UNKNOWN if value is None else number(round(value, 1))


def _plain(text: str | None) -> str:
    return UNKNOWN if text is None else printable(text)
