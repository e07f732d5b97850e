"""The parts of the daemon, built from the configuration and started in order."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from starlette.types import ASGIApp

from monitor.access.audit import FILE as AUDIT_FILE
from monitor.access.audit import AuditLog
from monitor.access.local_token import create_local_token
from monitor.access.settings import AccessSettings
from monitor.actions.service import ActionDeps, ActionService
from monitor.base.net import is_loopback
from monitor.base.state_problems import StateProblems
from monitor.cluster.live import LiveCluster
from monitor.config.alerts import AlertsConfig
from monitor.config.root import Config
from monitor.daemon.alert_outbox import AlertOutbox
from monitor.daemon.alerting import AlertingInputs, AlertingService
from monitor.daemon.build import make_cluster
from monitor.daemon.cleaning import CleanupController
from monitor.daemon.evaluator import Evaluator, EvaluatorSettings, FindingsListener
from monitor.daemon.job_results import JobResultService, forget_jobs
from monitor.daemon.listen import StartError, linked_url
from monitor.daemon.metrics.collect import MetricsDeps
from monitor.daemon.pod_contacts import FindContact, newest_contact
from monitor.daemon.recording import RecordingService
from monitor.daemon.reload import ReloadStatus
from monitor.daemon.state_keeper import StateKeeper
from monitor.daemon.state_lock import StateLock
from monitor.daemon.state_version import last_writer, record_writer
from monitor.facts import NodeSnapshot
from monitor.kube.client import KubeCredentialsError
from monitor.kube.node_writes import NodeWrites
from monitor.kube.pod_writes import PodWrites
from monitor.leader.elector import LeaderElector, LeaseElector, SingleReplica, elect_leader
from monitor.probes.runner import ServiceProbes
from monitor.queries.alerts import AlertQueries
from monitor.queries.cluster import ClusterQueries
from monitor.queries.history import HistoryQueries
from monitor.web.alerts_api import ApiTokens
from monitor.web.app import create_app
from monitor.web.authenticator import Authenticator
from monitor.web.context import PageData, PageExtras
from monitor.web.security import Security

log = logging.getLogger(__name__)
DRAIN_SECONDS = 30.0  # longest time that a delivery takes


@dataclass(frozen=True)
class DaemonParts:
    """The running parts of the daemon, in the order in which they start."""

    cluster: LiveCluster
    elector: LeaseElector | SingleReplica
    alerting: AlertingService
    cleanup: CleanupController
    job_results: JobResultService | None
    evaluator: Evaluator
    recording: RecordingService
    security: Security
    keeper: StateKeeper

    def drain(self) -> None:
        """Stop evaluating and sending, and wait for what is in progress: the next parts must not repeat it."""
        self.evaluator.stop(DRAIN_SECONDS)
        self.alerting.drain(DRAIN_SECONDS)

    def stops(self, *, before_cluster: tuple[Callable[[], None], ...] = ()) -> tuple[Callable[[], None], ...]:
        """What stops the parts, in the order in which to call it."""
        first = (
            self.keeper.stop,
            self.evaluator.stop,
            *((self.job_results.stop,) if self.job_results is not None else ()),
            self.recording.stop,
            self.cleanup.stop,
            self.elector.stop,
            self.alerting.stop,
        )
        return (*first, *before_cluster, self.cluster.stop, self.security.close)


def start_parts(
    config: Config,
    access: AccessSettings,
    listening: socket.socket,
    own_agent: str | None = None,
    lock: StateLock | None = None,
    before: DaemonParts | None = None,
) -> DaemonParts:
    """Start everything but the web server and the leader election. Raise StartError, with nothing left running.

    `before` are the stopped parts that these replace: browsers stay signed in.
    """
    problems = StateProblems(config.daemon.state, last_writer(config.daemon.state))
    keeper = StateKeeper(config.daemon.state)
    with ExitStack() as started:
        cluster = connect_cluster(config, own_agent)
        started.callback(cluster.stop)
        elector = build_elector(config, cluster)
        alerting = start_alerting(config, cluster, listening, elector, problems, keeper)
        started.callback(alerting.stop)
        cleanup = start_cleanup(config, cluster, alerting)
        started.callback(cleanup.stop)
        job_results = build_job_results(config, cluster, alerting)
        evaluator = start_evaluator(config, cluster, alerting.update, cleanup, job_results)
        started.callback(evaluator.stop)
        recording = start_recording(config, cluster, alerting, cleanup)
        if job_results is not None:
            job_results.start(recording.history)
        started.pop_all()
    security = build_security(config, access, cluster, cleanup, elector, before)
    lock_problem = lock.problem if lock is not None else None
    problems.add(
        lambda: (
            lock_problem, alerting.store.problem, cluster.state_problem, cleanup.state_problem,
            evaluator.state_problem, recording.recorder.store.problem, recording.history_store.problem,
            security.state_problem,
        )
    )  # fmt: skip
    record_writer(config.daemon.state, problems)
    stores = (recording.history_store, alerting.store, cleanup.journal, recording.recorder.store)
    keeper.start(*stores, *((security.audit,) if security.audit is not None else ()))
    return DaemonParts(cluster, elector, alerting, cleanup, job_results, evaluator, recording, security, keeper)


def connect_cluster(config: Config, own_agent: str | None = None) -> LiveCluster:
    """Start watching the cluster. Raise StartError if Kubernetes is required and not available."""
    try:
        cluster = make_cluster(config, own_agent, config.daemon.state)
    except KubeCredentialsError as error:
        raise StartError(f"no Kubernetes: {error}; or set daemon.kubernetes.enabled to auto") from None
    cluster.start()
    return cluster


def build_elector(config: Config, cluster: LiveCluster) -> LeaseElector | SingleReplica:
    """Leader election by the configured lease; without one, this is the only replica. Raise StartError."""
    lease = config.daemon.lease
    if lease is None:
        return SingleReplica()
    if cluster.api is None:
        raise StartError("daemon.lease needs Kubernetes, and there is none; set daemon.kubernetes, or remove the lease")
    return elect_leader(cluster.api, lease.namespace, lease.name, lease.duration)


def start_alerting(
    config: Config,
    cluster: LiveCluster,
    listening: socket.socket,
    elector: LeaderElector,
    problems: StateProblems,
    keeper: StateKeeper,
) -> AlertingService:
    """Start alerting. Raise StartError if a file that a receiver needs cannot be read."""

    def inputs() -> AlertingInputs:
        return AlertingInputs(cluster.sources, cluster.poller.facts(), problems.current(), keeper.excess)

    daemon = config.daemon
    try:
        alerting = AlertingService(
            daemon.alerts, daemon.state, linked_url(listening), inputs, leading=elector,
            find_contact=contacts_of_pods(daemon.alerts, cluster),
        )  # fmt: skip
    except ValueError as error:
        raise StartError(f"daemon.alerts: {error}") from None
    alerting.start()
    return alerting


def contacts_of_pods(alerts: AlertsConfig, cluster: LiveCluster) -> FindContact | None:
    """How to reach users according to their pods; None unless configured."""
    kube = cluster.kube
    if alerts.owner_labels is None or kube is None:
        return None
    keys = alerts.owner_labels.keys()
    return lambda user: newest_contact(user, kube.pods.snapshot().items, cluster.identities(), keys)


def start_cleanup(config: Config, cluster: LiveCluster, alerting: AlertingService) -> CleanupController:
    """Start cleanup. Raise StartError if a file or receiver that a policy needs is missing."""
    daemon = config.daemon
    try:
        access = daemon.cleanup.agents.access(daemon.agents.settings().tls)
        outbox, elector = AlertOutbox(alerting), alerting.leading
        policies = daemon.cleanup.settings(daemon.zone)
        cleanup = CleanupController(
            policies, access, daemon.state, cluster, outbox, leading=elector,
            max_keep=daemon.cleanup.max_keep, links_need_login=daemon.cleanup.links_need_login,
        )  # fmt: skip
    except ValueError as error:
        raise StartError(f"daemon.cleanup: {error}") from None
    if cleanup.alert_links is not None:
        alerting.dispatcher.annotate = cleanup.alert_links.annotate
    cleanup.start()
    return cleanup


def start_recording(
    config: Config,
    cluster: LiveCluster,
    alerting: AlertingService,
    cleanup: CleanupController,
) -> RecordingService:
    """Start recording usage and history. Raise StartError if the token file of a Prometheus server is unreadable."""
    try:
        recording = RecordingService(config.daemon, cluster, alerting, cleanup)
    except ValueError as error:
        raise StartError(f"daemon.history: {error}") from None
    recording.start()
    return recording


def build_job_results(config: Config, cluster: LiveCluster, alerting: AlertingService) -> JobResultService | None:
    """Messages about the ends of jobs, not started; None unless they are configured."""
    alerts = config.daemon.alerts
    if alerts.job_results is None:
        forget_jobs(alerting.store)
        return None
    settings = alerts.job_results.settings(alerts.direct_receivers())
    return JobResultService(settings, cluster, alerting.store, alerting.dispatcher, alerting.leading)


def start_evaluator(
    config: Config,
    cluster: LiveCluster,
    on_evaluated: FindingsListener,
    cleanup: CleanupController,
    job_results: JobResultService | None = None,
) -> Evaluator:
    """Start evaluating the rules. Raise StartError if the password of a probe cannot be read."""
    daemon = config.daemon
    try:
        probes = ServiceProbes(service.target() for service in daemon.services)
    except ValueError as error:
        raise StartError(f"daemon.services: {error}") from None
    limits = daemon.rules.limits(timezone=daemon.zone)
    settings = EvaluatorSettings(daemon.state, daemon.gpu_resource, limits, daemon.prices)
    evaluator = Evaluator(
        settings, cluster, probes,
        on_evaluated=on_evaluated, own_deletions=cleanup.own_deletions, job_results=job_results,
    )  # fmt: skip
    evaluator.start()
    return evaluator


def build_app(
    config: Config,
    parts: DaemonParts,
    own_node: Callable[[], NodeSnapshot] | None = None,
    extras: PageExtras | None = None,
    reloads: Callable[[], ReloadStatus] | None = None,
) -> ASGIApp:
    """ASGI application of the page and the API. Raise StartError if a token file cannot be read."""
    daemon, cluster, evaluator, alerting = config.daemon, parts.cluster, parts.evaluator, parts.alerting
    try:
        tokens = ApiTokens(daemon.read_token(), daemon.alerts.callback.read_token())
    except ValueError as error:
        raise StartError(f"daemon.token_file: {error}") from None
    if daemon.alerts.callback.receivers and tokens == ApiTokens() and daemon.access.admin_token() is None:
        log.warning("calls of an Alertmanager are rejected: set daemon.alerts.callback.token_file, and send that token")
    queries = ClusterQueries(cluster, daemon.gpu_resource, findings=lambda: evaluator.findings)
    elector, alert_queries = parts.elector, AlertQueries(alerting)
    history = HistoryQueries(parts.recording.history, alert_queries.events_about)
    page_data = PageData(
        cluster.poller.facts, lambda: evaluator.findings, history, alerting.dispatcher.snapshot,
        extras or PageExtras(),
        elector.state if elector.shared else None, daemon.zone, bool(alerting.settings),
    )  # fmt: skip
    metrics = MetricsDeps(
        cluster, evaluator, alerting, parts.cleanup, daemon.alerts.cluster,
        elector.holds if elector.shared else None, reloads,
    ).daemon_metrics()  # fmt: skip
    return create_app(
        queries, own_node, alert_queries, tokens, parts.cleanup, parts.recording.reports, parts.security,
        page_data, metrics.render, history, parts.cleanup.answers,
    )  # fmt: skip


def access_settings(config: Config) -> AccessSettings:
    """Access rules of the page. Raise StartError if it is reachable from other machines and nothing grants access."""
    daemon = config.daemon
    try:
        return daemon.access.settings(daemon.read_token(), loopback=is_loopback(daemon.listen.host))
    except ValueError as error:
        raise StartError(f"daemon.access: {error}") from None


def build_security(
    config: Config,
    access: AccessSettings,
    cluster: LiveCluster,
    cleanup: CleanupController,
    elector: LeaderElector,
    before: DaemonParts | None = None,
) -> Security:
    """Authentication, authorization and audit of the page. Unless access has changed, sessions stay valid."""
    audit = AuditLog(os.path.join(config.daemon.state, AUDIT_FILE))
    kube, api = cluster.kube, cluster.api
    deps = ActionDeps(cleanup)
    if kube is not None and api is not None:
        deps = ActionDeps(cleanup, PodWrites(api), NodeWrites(api), lambda: kube.pods.snapshot().items)
    known = before.security.authenticator if before is not None else None
    if known is None or known.settings != access:
        known = Authenticator(access, local_token=create_local_token(config.daemon.state))
    return Security(known, audit, ActionService(cluster, deps, audit, elector))
