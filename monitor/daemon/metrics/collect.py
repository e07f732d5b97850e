"""The daemon's own metrics: who is asked for what when somebody scrapes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import ProcessCollector

import monitor
from monitor.cluster.live import LiveCluster
from monitor.daemon.alerting import AlertingService
from monitor.daemon.cleaning import CleanupController
from monitor.daemon.evaluator import Evaluator
from monitor.daemon.metrics import MetricArea, DaemonMetrics, alerts, cleanup, cluster, findings, own, pods
from monitor.daemon.metrics.findings import FindingsSnapshot
from monitor.daemon.metrics.own import DaemonStatus
from monitor.daemon.pod_health import PodHealthChecker, PodHealth
from monitor.detect.meta import META_RULE_NAMES
from monitor.facts.cluster_facts import ClusterFacts
from monitor.queries.cluster import cluster_facts_of

log = logging.getLogger(__name__)
ROUND_INTERVAL_SECONDS = 10.0  # seconds between two rounds of explanations
FIRST_ROUND_TIMEOUT_SECONDS = 0.25  # for how long the first one is waited for
IDLE_TIMEOUT_SECONDS = 300.0  # seconds without a scrape after which nobody is interested any more


@dataclass(frozen=True)
class MetricsDeps:
    """Whom a scrape asks. `holds` says whether this replica holds the lease, where there is one."""

    live: LiveCluster
    watch: Evaluator
    alerting: AlertingService
    cleaning: CleanupController
    resource: str
    cluster: str | None = None  # its name, as on alerts
    holds: Callable[[], bool] | None = None

    def daemon_metrics(self) -> DaemonMetrics:
        """Return what renders the metrics. Nothing runs before the first scrape."""
        process = ProcessCollector(registry=None)
        explaining = PodHealthCollector(self._world)
        return DaemonMetrics(
            (
                MetricArea("own", self._own, own.families),
                MetricArea("process", lambda: tuple(process.collect()), lambda found: found),
                MetricArea("cluster", lambda: self.live.view, cluster.families),
                MetricArea("findings", self._found, findings.families),
                MetricArea("services", self.watch.services, findings.service_families),
                MetricArea("pods", explaining.latest, pods.families),
                MetricArea("alerts", self.alerting.desk.snapshot, alerts.families),
                MetricArea("post", self.alerting.traffic, alerts.delivery_families),
                MetricArea("cleanup", self.cleaning.cleaned, cleanup.families),
            )
        )

    def _own(self) -> DaemonStatus:
        last = self.watch.last
        return DaemonStatus(
            version=monitor.__version__,
            now=time.time(),
            view_at=self.live.view.at,
            looked_at=last.at if last is not None else None,
            evaluation_seconds=last.seconds if last is not None else None,
            lease_held=self.holds() if self.holds is not None else None,
        )

    def _found(self) -> FindingsSnapshot:
        return FindingsSnapshot(self.alerting.desk.findings, (*self.watch.rules(), *META_RULE_NAMES), self.cluster)

    def _world(self) -> ClusterFacts | None:
        """Return everything that an explanation may look at; None without Kubernetes, which alone knows pods."""
        return cluster_facts_of(self.live, self.resource) if self.live.kube is not None else None


class PodHealthCollector:
    """Explains pods in the background, for as long as somebody asks now and then."""

    def __init__(self, world: Callable[[], ClusterFacts | None], now: Callable[[], float] = time.time) -> None:
        self._world = world
        self._now = now
        self._lock = threading.Lock()
        self._asked_at = 0.0  # of the monotonic clock
        self._thread: threading.Thread | None = None
        self._first = threading.Event()
        self._latest: PodHealth | None = None

    def latest(self) -> PodHealth | None:
        """Return what the last round has found; None before the first, or if there is nothing to be known."""
        with self._lock:
            self._asked_at = time.monotonic()
            if self._thread is None or not self._thread.is_alive():
                self._first.clear()
                self._thread = threading.Thread(target=self._keep_explaining, name="explain pods", daemon=True)
                self._thread.start()
        self._first.wait(FIRST_ROUND_TIMEOUT_SECONDS)
        return self._latest

    def _keep_explaining(self) -> None:
        explainer = PodHealthChecker()
        while time.monotonic() - self._asked_at < IDLE_TIMEOUT_SECONDS:
            began = time.monotonic()
            try:
                world = self._world()
                self._latest = explainer.round(world, self._now()) if world is not None else None
            except Exception:  # whatever one odd pod provokes, the next round may succeed
                log.exception("explaining pods")
                self._latest = None
            self._first.set()
            time.sleep(max(0.0, began + ROUND_INTERVAL_SECONDS - time.monotonic()))
        self._latest = None
