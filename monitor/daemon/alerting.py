"""Alerts of the daemon: what the configuration says is put together here, started, fed and stopped."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from monitor.alert.alertmanager import callback
from monitor.alert.alertmanager.callback import Ours, TheTold, called
from monitor.alert.alertmanager.silences import AlertmanagerSilences
from monitor.alert.delivery.heartbeat import Heartbeat
from monitor.alert.delivery.sender import PostOffice
from monitor.alert.delivery.stats import Traffic
from monitor.alert.digest import Digest, is_due, summaries
from monitor.alert.dispatcher import AlertDesk
from monitor.alert.notify import Policy
from monitor.alert.receivers.base import ReceiverSettings
from monitor.alert.receivers.registry import build
from monitor.alert.silences import Silence
from monitor.alert.store import FILE, Store
from monitor.base.endpoint import Endpoint
from monitor.config.alerts import AlertsConfig
from monitor.detect.meta import META_RULE_NAMES
from monitor.detect.meta.monitor import BLIND_AFTER_SECONDS, MonitorState, with_monitor_findings
from monitor.detect.rules import RULES
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import SourceView
from monitor.facts.findings import Finding
from monitor.leader.elector import LeaderElector, NotLeaderError, SingleReplica

log = logging.getLogger(__name__)
CHECK_INTERVAL_SECONDS = 5.0  # how often it is looked whether a summary is due, or nobody looks any more
SILENCES_TIMEOUT_SECONDS = 5.0  # an Alertmanager that does not answer delays the start by no more
RULE_NAMES = (*(rule.rule for rule in RULES), *META_RULE_NAMES)
CALLBACK_NOTE = "callback"
MAX_NOTIFICATION_LOG_BYTES = 96 * 1024  # of the 256 KiB that a Lease holds
DIGEST_NOTE = "digest"
NO_RECEIVERS = (
    "nobody is told of alerts: no receiver is configured; for a WeCom group write "
    "daemon: {alerts: {receivers: [the address of its robot]}}"
)


@dataclass(frozen=True)
class AlertingInputs:
    """What can be seen of the cluster."""

    sources: tuple[SourceView, ...] = ()
    agents: Sequence[AgentFact] = ()


class AlertingService:
    """Everything about alerts, between start() and stop(). `found` is called after each look."""

    def __init__(
        self,
        config: AlertsConfig,
        state: str,
        page: str,
        see: Callable[[], AlertingInputs],
        now: Callable[[], float] = time.time,
        leading: LeaderElector | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raise ValueError, in words for a user, if a file that is needed is gone."""
        self._config = config
        self._see = see
        self._now = now
        self._monotonic = monotonic  # for how long: a clock that is set must not make it look as if nobody looked
        self.leading = leading or SingleReplica()
        self.settings: tuple[ReceiverSettings, ...] = config.receiver_settings(page)
        self._routes = config.real_routes(shared=self.leading.shared)
        self._windows = config.windows()
        self._digest = _digest(config, self.settings)
        self._foreign = _foreign_silences(config)
        self._heartbeat = _heartbeat(config, lambda: self._looked, self.leading.holds)
        self.store = Store(os.path.join(state, FILE))
        self._post = PostOffice(self.store, [build(settings) for settings in self.settings], now)
        self.desk = AlertDesk(self.store, self._post, self.policy, config.rules.timings(), config.group_by, now)
        self._started = monotonic()
        self._looked: float | None = None  # by the monotonic clock, as the start
        self._findings: tuple[Finding, ...] = ()
        self._calling = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep_watch, name="alerting", daemon=True)

    def start(self) -> None:
        if not self.settings:
            log.warning(NO_RECEIVERS)
        self._started = self._monotonic()
        if self._foreign is not None:
            self._foreign.ask()  # before anything is told that is silenced there
            self._foreign.start()
        if self._heartbeat is not None:
            self._heartbeat.start()
        self.desk.start()
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._heartbeat is not None:
            self._heartbeat.stop()
        if self._foreign is not None:
            self._foreign.stop()
        self._thread.join(1.0)
        self.desk.stop()
        self.store.close()

    def found(self, findings: tuple[Finding, ...]) -> None:
        """Take in what a look has found."""
        self._looked = self._monotonic()
        self._findings = findings
        self._pass_on(findings)

    def policy(self) -> Policy:
        """Return what holds at this moment."""
        return Policy(
            routes=self._routes,
            silences=self.silences(),
            windows=self._windows,
            cluster=self._config.cluster,
        )

    def silences(self) -> tuple[Silence, ...]:
        """Return the silences: our own, and those of the Alertmanager that is configured."""
        return (*self.store.silences(self._now()), *(self._foreign.silences if self._foreign is not None else ()))

    def traffic(self) -> tuple[Traffic, ...]:
        """Return what becomes of messages, for each receiver."""
        return self._post.traffic()

    def call(self, body: bytes) -> int:
        """Take in what an Alertmanager tells, and return how many messages that makes. Raise ValueError.

        Of several replicas one answers: what it was told it writes on the lease, for the next. Raise NotLeadingError.
        """
        payload = callback.read_payload(body)
        self.leading.check()
        ours = Ours(self.desk.book.alerts, RULE_NAMES, self._config.cluster)
        with self._calling:  # two replicas may call at the same moment
            result = called(payload, self._config.called_back(), self._told(), ours, self._now())
            if result.notifications:
                note = msgspec.json.encode(result.told)
                self.desk.send(result.notifications, {CALLBACK_NOTE: note})
                self._tell_replicas(note)
        return len(result.notifications)

    def _tell_replicas(self, note: bytes) -> None:
        if len(note) > MAX_NOTIFICATION_LOG_BYTES:
            log.warning("what Alertmanager told is too much for the lease; another replica might tell it again")
            return
        try:
            self.leading.put_told(note.decode())
        except NotLeaderError as error:  # it is on its way, and that is what counts
            log.warning("what was told could not be written down for other replicas: %s", error)

    def _told(self) -> TheTold:
        shared = self.leading.told()
        note = self.store.note(CALLBACK_NOTE) if shared is None else shared.encode()
        try:
            return msgspec.json.decode(note, type=TheTold) if note is not None else TheTold()
        except msgspec.MsgspecError as error:
            log.warning("what was told of an Alertmanager's calls is forgotten: %s", error)
            return TheTold()

    def _pass_on(self, findings: tuple[Finding, ...]) -> None:
        seen, now, monotonic = self._see(), self._now(), self._monotonic()
        state = MonitorState(
            started_at=now - (monotonic - self._started),
            looked_at=now - (monotonic - self._looked) if self._looked is not None else None,
            sources=seen.sources,
            agents=seen.agents,
            trouble=self.store.trouble,
        )
        self.desk.found(with_monitor_findings(findings, state, now))

    def _keep_watch(self) -> None:
        while not self._stopping.wait(CHECK_INTERVAL_SECONDS):
            try:
                self._check_evaluations()
                self._send_digest()
            except NotLeaderError as error:
                log.warning("the summary is left to another replica: %s", error)
            except Exception:  # whatever is odd about one of them, alerts go on
                log.exception("looking after alerts")

    def _check_evaluations(self) -> None:
        """If nobody looks any more, say so; what was found is then as last seen."""
        looked = self._looked if self._looked is not None else self._started
        if self._monotonic() - looked >= BLIND_AFTER_SECONDS:
            self._pass_on(tuple(msgspec.structs.replace(finding, held=True) for finding in self._findings))

    def _send_digest(self) -> None:
        """Send a summary when it is due; one that was missed while nobody ran is made up once."""
        if self._digest is None:
            return
        now, note = self._now(), self.store.note(DIGEST_NOTE)
        last = None if note is None else float(note)
        if last is None or last > now:  # the first time, or the clock was wrong then
            self.desk.send((), {DIGEST_NOTE: repr(now).encode()})
            return
        last = max(last, self.leading.record().marks.get(DIGEST_NOTE, 0.0))
        if self.leading.holds() and is_due(self._digest, last, now):
            self.leading.mark(DIGEST_NOTE, now)
            events = self.store.history(last)
            news = summaries(self._digest, events, self.desk.book.alerts.values(), last, now)
            self.desk.send(news, {DIGEST_NOTE: repr(now).encode()})


def _digest(config: AlertsConfig, settings: Sequence[ReceiverSettings]) -> Digest | None:
    if config.digest is None:
        return None
    everybody = tuple(each.name for each in settings if each.kind != "alertmanager")
    named = config.digest.receivers
    return Digest(config.digest.cron, config.digest.timezone or config.timezone, everybody if named is None else named)


def _foreign_silences(config: AlertsConfig) -> AlertmanagerSilences | None:
    given = config.alertmanager
    if given is None:
        return None
    token = given.read_token()
    way = Endpoint(
        url=given.url.get_secret_value(),
        timeout=SILENCES_TIMEOUT_SECONDS,
        ca_file=given.ca_file,
        verify_tls=given.verify_tls,
        secrets=(token,) if token is not None else (),
    )
    return AlertmanagerSilences(way, token)


def _heartbeat(
    config: AlertsConfig, looked_at: Callable[[], float | None], ours: Callable[[], bool]
) -> Heartbeat | None:
    given = config.heartbeat
    if given is None:
        return None
    return Heartbeat(Endpoint(url=given.address, timeout=min(10.0, given.interval)), given.interval, looked_at, ours)
