"""What `gpuwarden top` shows: the view and the alerts, read again and again on a thread."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlencode

from monitor.base.threads import Periodic
from monitor.cli.ask import QueryError, call_daemon, direct_queries, something_seen, try_daemon
from monitor.config.root import Config
from monitor.facts.cluster import ClusterView
from monitor.i18n import say
from monitor.present.alerts import LocalizedAlert

REFRESH_SECONDS = 2.0
LOAD_FACTOR = 5.0  # between two queries, times the duration of one
Alerts = tuple[LocalizedAlert, ...]
Read = Callable[[], tuple[ClusterView, Alerts | None]]


class TopSource:
    """The latest view, the latest alerts (None: unknown), and since when there is no newer one."""

    def __init__(self, read: Read, lang: str) -> None:
        self._read = read
        self._lang = lang
        self.view, self.alerts = read()
        self._read_at = time.time()
        self._error: str | None = None

    def trouble(self, now: float) -> str:
        """What prevents newer data; empty if nothing does."""
        if self._error is None:
            return ""
        return say(self._lang, "top.silent", {"seconds": max(0.0, now - self._read_at), "error": self._error})

    @contextlib.contextmanager
    def refreshed(self) -> Iterator[None]:
        """Read again and again until the end."""
        loop = Periodic("top", self._refresh, REFRESH_SECONDS, initial_delay=REFRESH_SECONDS)
        loop.start()
        try:
            yield
        finally:
            loop.stop()

    def _refresh(self) -> float:
        began = time.monotonic()
        try:
            self.view, self.alerts = self._read()
            self._read_at, self._error = time.time(), None
        except QueryError as error:
            self._error = str(error)
        return max(REFRESH_SECONDS, LOAD_FACTOR * (time.monotonic() - began))


@contextlib.contextmanager
def open_source(config: Config, lang: str) -> Iterator[TopSource]:
    """The daemon, else a connection to the cluster. Raise QueryError."""
    if try_daemon(config, "/v1/view", ClusterView) is not None:
        yield TopSource(lambda: _ask_daemon(config, lang), lang)
        return
    with direct_queries(config) as queries:
        something_seen(config, queries.view())
        yield TopSource(lambda: (queries.view(), None), lang)


def _ask_daemon(config: Config, lang: str) -> tuple[ClusterView, Alerts]:
    view = call_daemon(config, "GET", "/v1/view", ClusterView)
    return view, call_daemon(config, "GET", f"/v1/alerts?{urlencode({'lang': lang})}", Alerts)
