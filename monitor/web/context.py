"""What pages are given: whom to ask, who is visiting, and in which language."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request

from monitor.access.audit import Deed
from monitor.access.principal import Person, Role
from monitor.alert.mute import AlertView
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView
from monitor.facts.findings import Finding
from monitor.i18n import LANGUAGES
from monitor.leader.elector import LeaseState
from monitor.present.findings import SaidFinding
from monitor.queries.cluster import Why
from monitor.report.history import Kind, Point, What
from monitor.report.model import ReportAsked
from monitor.web.alerts_api import AlertsAsked
from monitor.web.cleanup_api import CleanupAsked

THEMES = ("light", "dark")
LANG, THEME = "lang", "theme"  # what is asked for in an address, and the cookies that remember it
YEAR = 365 * 86400


class Asked(Protocol):
    """What the pages ask of the cluster."""

    def view(self) -> ClusterView:
        """Return the cluster as it is now."""
        ...

    def findings(self, lang: str) -> tuple[SaidFinding, ...] | None:
        """Return what is wrong, in words; None while nobody has looked."""
        ...

    def why(self, name: str, namespace: str | None, lang: str) -> Why:
        """Return why a pod or job is as it is."""
        ...


class Remembering(Protocol):
    """Who remembers how a value was over the last days."""

    def series(self, kind: Kind, name: str = ..., what: What = ...) -> tuple[Point, ...]: ...


@dataclass(frozen=True)
class Link:
    """A link in the header of every page."""

    name: str
    url: str


@dataclass(frozen=True)
class Parts:
    """What pages show beside what the API tells. All of it may be missing: then a page does without."""

    agents: Callable[[], Sequence[AgentFact]] = tuple
    found: Callable[[], tuple[Finding, ...] | None] = lambda: None
    record: Remembering | None = None
    shown: Callable[[], Sequence[AlertView]] | None = None  # alerts before they are put into words
    links: tuple[Link, ...] = ()
    lease: Callable[[], LeaseState] | None = None  # where there may be several replicas


@dataclass(frozen=True)
class Sources:
    """Everything that pages ask."""

    asked: Asked
    parts: Parts = Parts()
    alerts: AlertsAsked | None = None
    cleanup: CleanupAsked | None = None
    reports: ReportAsked | None = None
    audit: Callable[[int], Sequence[Deed]] | None = None

    def series(self, kind: Kind, name: str, what: What) -> tuple[Point, ...]:
        """Return how a value was over the last days; nothing where nobody remembers."""
        return () if self.parts.record is None else self.parts.record.series(kind, name, what)


def person_of(request: Request) -> Person:
    """Return who visits: whom the guard of the pages has let in, else an anonymous viewer."""
    person: Person | None = getattr(request.state, "person", None)
    return Person("", Role.VIEWER) if person is None else person


def language_of(request: Request) -> str:
    """Return the language of a page: the one asked for, the one chosen before, or the first that the browser takes."""
    for wanted in (request.query_params.get(LANG), request.cookies.get(LANG)):
        if wanted in LANGUAGES:
            return wanted
    for entry in request.headers.get("accept-language", "").split(","):
        tongue = entry.partition(";")[0].strip().lower()[:2]
        if tongue in LANGUAGES:
            return tongue
    return "en"


def theme_of(request: Request) -> str | None:
    """Return the colours that were chosen; None is what the system has."""
    chosen = request.cookies.get(THEME)
    return chosen if chosen in THEMES else None
