"""Dependencies of the pages, and what a request says about its user: principal, language and theme."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request

from monitor.access.audit import AuditEntry
from monitor.access.principal import Principal, Role
from monitor.alert.mute import AlertView
from monitor.explain.fits.model import FitsRequest
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView
from monitor.facts.findings import Finding
from monitor.history.forecast import DiskForecast
from monitor.history.model import HistoryMetric, HistorySubject, Point
from monitor.i18n import LANGUAGES
from monitor.leader.elector import LeaseState
from monitor.present.findings import LocalizedFinding
from monitor.present.guide import Guide
from monitor.queries.cluster import PodExplanation, WantedName
from monitor.queries.fits import FitsAnswer
from monitor.report.model import ReportSource
from monitor.web.alerts_api import AlertsBackend
from monitor.web.authorization import PRINCIPAL
from monitor.web.cleanup_api import CleanupBackend

THEMES = ("light", "dark")
LANG, THEME = "lang", "theme"  # query parameter (LANG only) and cookie
GUIDE, GUIDE_OFF = "guide", "off"  # cookie of a browser session whose user has hidden the guide
COOKIE_LIFETIME_SECONDS = 365 * 86400


class ClusterBackend(Protocol):
    """Queries about the cluster."""

    def view(self) -> ClusterView: ...

    def overview(self) -> ClusterView:
        """The view with only those pods that are not scheduled yet."""
        ...

    def findings(self, lang: str, /) -> tuple[LocalizedFinding, ...] | None:
        """Findings in one language; None before the first evaluation."""
        ...

    def why(self, names: Sequence[WantedName], lang: str, /) -> tuple[PodExplanation, ...]:
        """Explain the states of pods or jobs."""
        ...

    def fits(self, request: FitsRequest, lang: str, /) -> FitsAnswer:
        """Whether a job would fit."""
        ...


class PageHistory(Protocol):
    """What pages render of the history; charts request the rest."""

    def points(
        self, subject: HistorySubject, name: str, metric: HistoryMetric, span: float, /
    ) -> tuple[Point, ...]: ...

    def forecast(self, disk: str, /) -> DiskForecast | None: ...


@dataclass(frozen=True)
class HeaderLink:
    """A link in the header of every page."""

    name: str
    url: str


@dataclass(frozen=True)
class PageExtras:
    """What the demo adds to every page: links, and the guide to its current scene."""

    links: tuple[HeaderLink, ...] = ()
    guide: Callable[[], Guide] | None = None


@dataclass(frozen=True)
class PageData:
    """Data that pages show in addition to the API. All of it is optional."""

    agents: Callable[[], Sequence[AgentFact]] = tuple
    findings: Callable[[], tuple[Finding, ...] | None] = lambda: None
    history: PageHistory | None = None
    alerts: Callable[[], Sequence[AlertView]] | None = None  # not rendered yet
    extras: PageExtras = PageExtras()
    lease: Callable[[], LeaseState] | None = None  # with several replicas
    timezone: str = "UTC"
    has_receivers: bool = True  # of notifications


@dataclass(frozen=True)
class PageDeps:
    """Everything that pages use."""

    cluster: ClusterBackend
    data: PageData = PageData()
    alerts: AlertsBackend | None = None
    cleanup: CleanupBackend | None = None
    reports: ReportSource | None = None
    audit: Callable[[int], Sequence[AuditEntry]] | None = None

    def points(self, subject: HistorySubject, name: str, metric: HistoryMetric, span: float) -> tuple[Point, ...]:
        """Recorded values of the last `span` seconds; none if nothing is recorded."""
        return () if self.data.history is None else self.data.history.points(subject, name, metric, span)

    def forecast(self, disk: str) -> DiskForecast | None:
        """When a disk is full; None if that is not known."""
        return None if self.data.history is None else self.data.history.forecast(disk)


def principal_of(request: Request) -> Principal:
    """The principal set by the authentication middleware, else an anonymous viewer."""
    principal: Principal | None = getattr(request.state, PRINCIPAL, None)
    return Principal("", Role.VIEWER) if principal is None else principal


def language_of(request: Request) -> str:
    """The language of a page: from the query, the cookie, or the first supported one of Accept-Language."""
    for wanted in (request.query_params.get(LANG), request.cookies.get(LANG)):
        if wanted in LANGUAGES:
            return wanted
    for entry in request.headers.get("accept-language", "").split(","):
        language = entry.partition(";")[0].strip().lower()[:2]
        if language in LANGUAGES:
            return language
    return "en"


def theme_of(request: Request) -> str | None:
    """The chosen theme; None follows the system."""
    chosen = request.cookies.get(THEME)
    return chosen if chosen in THEMES else None
