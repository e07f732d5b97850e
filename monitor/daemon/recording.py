"""Wires the recorder of usage and history and the report from the configuration, and runs them."""

from __future__ import annotations

import os

from monitor.cluster.live import LiveCluster
from monitor.config.daemon import DaemonConfig
from monitor.daemon.alert_outbox import AlertOutbox
from monitor.daemon.alerting import AlertingService
from monitor.daemon.cleaning import CleanupController
from monitor.history.prometheus import PrometheusHistory
from monitor.history.reader import HistoryReader
from monitor.history.recorder import HistoryRecorder
from monitor.history.store import FILE as HISTORY_FILE
from monitor.history.store import HistoryStore
from monitor.report.mail import ReportScheduler
from monitor.report.recorder import UsageRecorder
from monitor.report.reports import ReportService
from monitor.report.store import FILE, UsageStore


class RecordingService:
    """Records usage and history, and sends the scheduled report between start() and stop()."""

    def __init__(
        self,
        config: DaemonConfig,
        cluster: LiveCluster,
        alerting: AlertingService,
        cleaning: CleanupController,
    ) -> None:
        store = UsageStore(os.path.join(config.state, FILE))
        history = HistoryRecorder(HistoryStore(os.path.join(config.state, HISTORY_FILE)))
        self.history_store = history.store
        prometheus = config.history.prometheus
        source = PrometheusHistory(prometheus.settings()) if prometheus is not None else None
        self.history = HistoryReader(history, source)
        self.recorder = UsageRecorder(
            store, lambda: cluster.view, cluster.poller.facts, config.cycle, cleaning.scans, history=history
        )
        self.reports = ReportService(self.recorder, alerting.store.history, cleaning, prices=config.prices)
        self._mail: ReportScheduler | None = None
        if config.report is not None:
            schedule = config.report.schedule(config.alerts)
            self._mail = ReportScheduler(schedule, self.reports, AlertOutbox(alerting), leading=alerting.leading)

    def start(self) -> None:
        self.recorder.start()
        if self._mail is not None:
            self._mail.start()

    def stop(self) -> None:
        if self._mail is not None:
            self._mail.stop()
        self.recorder.stop()
