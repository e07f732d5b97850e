"""Reads the values of the daemon's metrics when it is scraped."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import ProcessCollector

import monitor
from monitor.cluster.live import LiveCluster
from monitor.daemon.alerting import AlertingService
from monitor.daemon.cleaning import CleanupController
from monitor.daemon.evaluator import Evaluator
from monitor.daemon.metrics import DaemonMetrics, MetricArea, alerts, cleanup, cluster, findings, own, pods
from monitor.daemon.metrics.findings import FindingsSnapshot
from monitor.daemon.metrics.own import DaemonStatus
from monitor.daemon.reload import ReloadStatus
from monitor.detect.meta import META_RULE_NAMES


@dataclass(frozen=True)
class MetricsDeps:
    """Parts of the daemon that a scrape reads. `holds` tells whether this replica holds the lease, if there is one."""

    live: LiveCluster
    evaluator: Evaluator
    alerting: AlertingService
    cleanup: CleanupController
    cluster: str | None = None  # cluster name on alerts
    holds: Callable[[], bool] | None = None
    reloads: Callable[[], ReloadStatus] | None = None

    def daemon_metrics(self) -> DaemonMetrics:
        """Metrics of all areas. Nothing runs before the first scrape."""
        process = ProcessCollector(registry=None)
        return DaemonMetrics(
            (
                MetricArea("own", self._status, own.families),
                MetricArea("process", lambda: tuple(process.collect()), lambda metrics: metrics),
                MetricArea("cluster", lambda: self.live.view, cluster.ClusterFamilies()),
                MetricArea("findings", self._findings, findings.FindingFamilies(self.cluster)),
                MetricArea("services", self.evaluator.services, findings.service_families),
                MetricArea("pods", self.evaluator.pod_health.health, pods.families),
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
        return FindingsSnapshot(self.alerting.dispatcher.findings, (*self.evaluator.rules(), *META_RULE_NAMES))
