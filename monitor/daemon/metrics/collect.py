"""Reads the values of the daemon's metrics when it is scraped."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import ProcessCollector

import monitor
from monitor.base.threads import spawn
from monitor.cluster.live import LiveCluster
from monitor.daemon.alerting import AlertingService
from monitor.daemon.cleaning import CleanupController
from monitor.daemon.evaluator import Evaluator
from monitor.daemon.metrics import DaemonMetrics, MetricArea, alerts, cleanup, cluster, findings, own, pods
from monitor.daemon.metrics.findings import FindingsSnapshot
from monitor.daemon.metrics.own import DaemonStatus
from monitor.daemon.pod_health import PodHealth, PodHealthChecker
from monitor.daemon.reload import ReloadStatus
from monitor.detect.meta import META_RULE_NAMES
from monitor.facts.cluster_facts import ClusterFacts
from monitor.queries.cluster import cluster_facts_of

log = logging.getLogger(__name__)
ROUND_INTERVAL_SECONDS = 10.0
FIRST_ROUND_TIMEOUT_SECONDS = 0.25  # the first scrape waits this long for pod explanations
IDLE_TIMEOUT_SECONDS = 300.0  # without a scrape for this long, pods are no longer explained


@dataclass(frozen=True)
class MetricsDeps:
    """Parts of the daemon that a scrape reads. `holds` tells whether this replica holds the lease, if there is one."""

    live: LiveCluster
    evaluator: Evaluator
    alerting: AlertingService
    cleanup: CleanupController
    resource: str
    cluster: str | None = None  # cluster name on alerts
    holds: Callable[[], bool] | None = None
    reloads: Callable[[], ReloadStatus] | None = None

    def daemon_metrics(self) -> DaemonMetrics:
        """Metrics of all areas. Nothing runs before the first scrape."""
        process = ProcessCollector(registry=None)
        pod_health = PodHealthCollector(self._cluster_facts)
        return DaemonMetrics(
            (
                MetricArea("own", self._status, own.families),
                MetricArea("process", lambda: tuple(process.collect()), lambda metrics: metrics),
                MetricArea("cluster", lambda: self.live.view, cluster.families),
                MetricArea("findings", self._findings, findings.families),
                MetricArea("services", self.evaluator.services, findings.service_families),
                MetricArea("pods", pod_health.latest, pods.families),
                MetricArea("alerts", self.alerting.dispatcher.snapshot, alerts.families),
                MetricArea("post", self.alerting.delivery_stats, alerts.delivery_families),
                MetricArea("cleanup", self.cleanup.totals, cleanup.families),
            )
        )

    def _status(self) -> DaemonStatus:
        last, reloads = self.evaluator.last, self.reloads() if self.reloads is not None else None
        return DaemonStatus(
            version=monitor.__version__,
            now=time.time(),
            view_at=self.live.view.at,
            evaluated_at=last.at if last is not None else None,
            evaluation_seconds=last.seconds if last is not None else None,
            lease_held=self.holds() if self.holds is not None else None,
            reload_ok=reloads.successful if reloads is not None else None,
            loaded_at=reloads.success_at if reloads is not None else None,
        )

    def _findings(self) -> FindingsSnapshot:
        return FindingsSnapshot(
            self.alerting.dispatcher.findings, (*self.evaluator.rules(), *META_RULE_NAMES), self.cluster
        )

    def _cluster_facts(self) -> ClusterFacts | None:
        """Input of the pod explanations; None without Kubernetes, the only source of pods."""
        return cluster_facts_of(self.live, self.resource) if self.live.kube is not None else None


class PodHealthCollector:
    """Explains pods in the background for as long as it is scraped."""

    def __init__(self, facts: Callable[[], ClusterFacts | None], now: Callable[[], float] = time.time) -> None:
        self._facts = facts
        self._now = now
        self._lock = threading.Lock()
        self._scraped_at = 0.0  # monotonic
        self._thread: threading.Thread | None = None
        self._first_round = threading.Event()
        self._latest: PodHealth | None = None

    def latest(self) -> PodHealth | None:
        """Result of the last round; None before the first, after a failure, or without Kubernetes."""
        with self._lock:
            self._scraped_at = time.monotonic()
            if self._thread is None or not self._thread.is_alive():
                self._first_round.clear()
                self._thread = spawn("explain pods", self._run)
        self._first_round.wait(FIRST_ROUND_TIMEOUT_SECONDS)
        return self._latest

    def _run(self) -> None:
        checker = PodHealthChecker()
        while time.monotonic() - self._scraped_at < IDLE_TIMEOUT_SECONDS:
            began = time.monotonic()
            try:
                facts = self._facts()
                self._latest = checker.round(facts, self._now()) if facts is not None else None
            except Exception:  # one odd pod must not end the loop
                log.exception("cannot explain pods")
                self._latest = None
            self._first_round.set()
            time.sleep(max(0.0, began + ROUND_INTERVAL_SECONDS - time.monotonic()))
        self._latest = None
