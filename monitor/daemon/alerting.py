"""Wires alerting from the configuration and runs it."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec

from monitor.alert.alertmanager import callback
from monitor.alert.alertmanager.callback import NotificationLog, OwnAlerts, process_callback
from monitor.alert.alertmanager.silences import AlertmanagerSilences
from monitor.alert.delivery.heartbeat import Heartbeat
from monitor.alert.delivery.sender import Sender
from monitor.alert.delivery.stats import DeliveryStats
from monitor.alert.digest import DigestSchedule, digest_notifications, is_due
from monitor.alert.dispatcher import Dispatcher
from monitor.alert.receivers.base import ReceiverSettings
from monitor.alert.receivers.registry import build
from monitor.alert.routes import NotifyPolicy
from monitor.alert.silences import Silence
from monitor.alert.store import FILE, AlertStore
from monitor.base.endpoint import Endpoint
from monitor.base.state_problems import StateProblem
from monitor.base.threads import Periodic
from monitor.config.alerts import AlertsConfig
from monitor.daemon.pod_contacts import FindContact, OwnerDirectory
from monitor.detect.meta import META_RULE_NAMES
from monitor.detect.meta.monitor import BLIND_AFTER_SECONDS, MonitorState, with_monitor_findings
from monitor.detect.rules import RULES
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import SourceView
from monitor.facts.findings import Finding
from monitor.leader.elector import LeaderElector, NotLeaderError, SingleReplica

log = logging.getLogger(__name__)
CHECK_INTERVAL_SECONDS = 5.0  # between checks for a due digest and for stalled evaluations
SILENCES_TIMEOUT_SECONDS = 5.0  # an unreachable Alertmanager delays startup by at most this
RULE_NAMES = (*(rule.rule for rule in RULES), *META_RULE_NAMES)
CALLBACK_NOTE = "callback"
MAX_NOTIFICATION_LOG_BYTES = 96 * 1024  # a Lease holds 256 KiB
STOP_TIMEOUT_SECONDS = 1.0
DIGEST_NOTE = "digest"
NO_RECEIVERS = (
    "alerts are not sent: no receiver is configured; for a WeCom group set "
    "daemon: {alerts: {receivers: [webhook URL of its robot]}}"
)


@dataclass(frozen=True)
class AlertingInputs:
    """State of the data sources, agents and state directory, for alerts about the monitoring itself."""

    sources: tuple[SourceView, ...] = ()
    agents: Sequence[AgentFact] = ()
    state: tuple[StateProblem, ...] = ()
    state_excess: str | None = None


class AlertingService:
    """Alerting between start() and stop(). `update` is called after each evaluation."""

    def __init__(
        self,
        config: AlertsConfig,
        state: str,
        page: str,
        inputs: Callable[[], AlertingInputs],
        now: Callable[[], float] = time.time,
        leading: LeaderElector | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        find_contact: FindContact | None = None,
    ) -> None:
        """Raise ValueError, with a message for the user, if a required file is missing.

        `find_contact` knows how to reach users that the configuration does not name.
        """
        self._config = config
        self._inputs = inputs
        self._now = now
        self._monotonic = monotonic  # for durations: setting the clock must not look like stalled evaluations
        self.leading = leading or SingleReplica()
        self.settings: tuple[ReceiverSettings, ...] = config.receiver_settings(page)
        self._routes = config.effective_routes(shared=self.leading.shared)
        self._windows = config.windows()
        self._owners = config.owner_book()
        self._digest = _digest(config, self.settings)
        self._alertmanager = _alertmanager_silences(config)
        self._heartbeat = _heartbeat(config, lambda: self._evaluated_at, self.leading.holds)
        self.store = AlertStore(os.path.join(state, FILE))
        receivers = (*self.settings, *config.personal_settings(page))
        if find_contact is not None:
            directory = OwnerDirectory(receivers[0].owners if receivers else {}, find_contact, monotonic)
            receivers = tuple(replace(settings, owners=directory) for settings in receivers)
        self._sender = Sender(self.store, [build(settings) for settings in receivers], now)
        self.dispatcher = Dispatcher(
            self.store, self._sender, self.policy, config.rules.timings(), config.group_by, now
        )
        self._started_at = monotonic()
        self._evaluated_at: float | None = None  # monotonic
        self._findings: tuple[Finding, ...] = ()
        self._disabled: frozenset[str] = frozenset()  # ids of the disabled silences that the log names
        self._callback_lock = threading.Lock()
        self._checks = Periodic(
            "alerting", self._check, CHECK_INTERVAL_SECONDS, initial_delay=CHECK_INTERVAL_SECONDS
        )  # fmt: skip

    def start(self) -> None:
        if not self.settings:
            log.warning(NO_RECEIVERS)
        self._started_at = self._monotonic()
        if self._alertmanager is not None:
            self._alertmanager.refresh()  # before an alert silenced there is sent
            self._alertmanager.start()
        if self._heartbeat is not None:
            self._heartbeat.start()
        self.dispatcher.start()
        self._checks.start()

    def drain(self, timeout: float) -> None:
        """Send nothing more, and wait up to `timeout` seconds for deliveries in progress."""
        self._sender.stop(timeout)

    def stop(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.stop()
        if self._alertmanager is not None:
            self._alertmanager.stop()
        self._checks.stop(STOP_TIMEOUT_SECONDS)
        self.dispatcher.stop()
        self.store.close()

    def update(self, findings: tuple[Finding, ...]) -> None:
        """Process the findings of an evaluation."""
        self._evaluated_at = self._monotonic()
        self._findings = findings
        self._dispatch(findings)

    def policy(self) -> NotifyPolicy:
        """Notification policy now: routes, silences and maintenance windows."""
        return NotifyPolicy(
            routes=self._routes,
            silences=self.silences(),
            windows=self._windows,
            cluster=self._config.cluster,
            owners=self._owners,
        )

    def silences(self) -> tuple[Silence, ...]:
        """Silences of the daemon and of the configured Alertmanager."""
        foreign = self._alertmanager.silences if self._alertmanager is not None else ()
        silences = (*self.store.silences(self._now()), *foreign)
        self._log_disabled(silences)
        return silences

    def _log_disabled(self, silences: tuple[Silence, ...]) -> None:
        """Log each silence once when it turns out to be disabled: alerts that it should mute are sent."""
        disabled = {silence.id: silence.disabled for silence in silences if silence.disabled is not None}
        for silence_id in disabled.keys() - self._disabled:
            log.warning("silence %s is disabled and mutes nothing: %s", silence_id, disabled[silence_id])
        self._disabled = frozenset(disabled)

    def delivery_stats(self) -> tuple[DeliveryStats, ...]:
        """Delivery statistics of each receiver."""
        return self._sender.delivery_stats()

    def call(self, body: bytes) -> int:
        """Process a webhook call of an Alertmanager; return the number of notifications. Raise ValueError.

        Only the leader accepts calls, and stores the notification log on the lease for its successor.
        Raise NotLeaderError.
        """
        payload = callback.read_payload(body)
        self.leading.check()
        ours = OwnAlerts(self.dispatcher.state.alerts, RULE_NAMES, self._config.cluster)
        with self._callback_lock:  # two Alertmanager replicas may call at the same time
            result = process_callback(
                payload, self._config.callback_receivers(), self._notification_log(), ours, self._now()
            )
            if result.notifications:
                note = msgspec.json.encode(result.log)
                self.dispatcher.send(result.notifications, {CALLBACK_NOTE: note})
                self._share_notification_log(note)
        return len(result.notifications)

    def _share_notification_log(self, note: bytes) -> None:
        if len(note) > MAX_NOTIFICATION_LOG_BYTES:
            log.warning("the notification log is too large for the lease; another replica might notify again")
            return
        try:
            self.leading.put_told(note.decode())
        except NotLeaderError as error:  # the notifications themselves are in the outbox
            log.warning("cannot share the notification log with other replicas: %s", error)

    def _notification_log(self) -> NotificationLog:
        shared = self.leading.told()
        note = self.store.note(CALLBACK_NOTE) if shared is None else shared.encode()
        try:
            return msgspec.json.decode(note, type=NotificationLog) if note is not None else NotificationLog()
        except msgspec.MsgspecError as error:
            log.warning("discarding the unreadable notification log of Alertmanager calls: %s", error)
            return NotificationLog()

    def _dispatch(self, findings: tuple[Finding, ...]) -> None:
        inputs, now, monotonic = self._inputs(), self._now(), self._monotonic()
        state = MonitorState(
            started_at=now - (monotonic - self._started_at),
            looked_at=now - (monotonic - self._evaluated_at) if self._evaluated_at is not None else None,
            sources=inputs.sources,
            agents=inputs.agents,
            state=inputs.state,
            state_excess=inputs.state_excess,
        )
        self.dispatcher.update(with_monitor_findings(findings, state, now))

    def _check(self) -> None:
        try:
            self._check_evaluations()
            self._send_digest()
        except NotLeaderError as error:
            log.warning("leaving the digest to another replica: %s", error)

    def _check_evaluations(self) -> None:
        """If evaluations have stalled, alert about that and hold the last findings."""
        last = self._evaluated_at if self._evaluated_at is not None else self._started_at
        if self._monotonic() - last >= BLIND_AFTER_SECONDS:
            self._dispatch(tuple(msgspec.structs.replace(finding, held=True) for finding in self._findings))

    def _send_digest(self) -> None:
        """Send the digest when it is due. Digests missed while the daemon was down are sent as one."""
        if self._digest is None:
            return
        now, note = self._now(), self.store.note(DIGEST_NOTE)
        last = None if note is None else float(note)
        if last is None or last > now:  # first run, or the clock was wrong then
            self.dispatcher.send((), {DIGEST_NOTE: repr(now).encode()})
            return
        last = max(last, self.leading.record().marks.get(DIGEST_NOTE, 0.0))
        if self.leading.holds() and is_due(self._digest, last, now):
            self.leading.mark(DIGEST_NOTE, now)
            events = self.store.history(last)
            digests = digest_notifications(self._digest, events, self.dispatcher.state.alerts.values(), last, now)
            self.dispatcher.send(digests, {DIGEST_NOTE: repr(now).encode()})


def _digest(config: AlertsConfig, settings: Sequence[ReceiverSettings]) -> DigestSchedule | None:
    if config.digest is None:
        return None
    receivers = config.digest.receivers
    if receivers is None:
        receivers = tuple(receiver.name for receiver in settings if receiver.kind != "alertmanager")
    return DigestSchedule(config.digest.cron, config.digest.timezone or config.timezone, receivers)


def _alertmanager_silences(config: AlertsConfig) -> AlertmanagerSilences | None:
    alertmanager = config.alertmanager
    if alertmanager is None:
        return None
    token = alertmanager.read_token()
    endpoint = Endpoint(
        url=alertmanager.url.get_secret_value(),
        timeout=SILENCES_TIMEOUT_SECONDS,
        ca_file=alertmanager.ca_file,
        verify_tls=alertmanager.verify_tls,
        secrets=(token,) if token is not None else (),
    )
    return AlertmanagerSilences(endpoint, token)


def _heartbeat(
    config: AlertsConfig, evaluated_at: Callable[[], float | None], is_leader: Callable[[], bool]
) -> Heartbeat | None:
    heartbeat = config.heartbeat
    if heartbeat is None:
        return None
    endpoint = Endpoint(url=heartbeat.address, timeout=min(10.0, heartbeat.interval))
    return Heartbeat(endpoint, heartbeat.interval, evaluated_at, is_leader)
