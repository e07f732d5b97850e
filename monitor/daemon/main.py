"""Composition root of the central process: what is started, in which order, and how it ends."""

from __future__ import annotations

import errno
import logging
import os
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from starlette.types import ASGIApp

from monitor.access.audit import FILE as AUDIT_FILE
from monitor.access.audit import AuditLog
from monitor.access.settings import AccessSettings
from monitor.actions.service import ActionDeps, ActionService
from monitor.base.msgspec_types import warm_up_msgspec
from monitor.base.net import connect_host, is_loopback, is_wildcard
from monitor.base.process import limit_malloc_arenas
from monitor.base.signals import StopSignal
from monitor.cluster.live import LiveCluster
from monitor.config import file as config_file
from monitor.config.root import Config
from monitor.config.types import Listen
from monitor.daemon import launch
from monitor.daemon.alerting import AlertingService, AlertingInputs
from monitor.daemon.build import make_cluster
from monitor.daemon.cleaning import CleanupController, AlertOutbox
from monitor.daemon.evaluator import Evaluator, FindingsListener, EvaluatorSettings
from monitor.daemon.metrics.collect import MetricsDeps
from monitor.daemon.recording import RecordingService
from monitor.facts import NodeSnapshot
from monitor.kube.client import KubeCredentialsError
from monitor.kube.node_writes import NodeWrites
from monitor.kube.pod_writes import PodWrites
from monitor.leader.elector import LeaderElector, LeaseElector, SingleReplica, elect_leader
from monitor.probes.runner import ServiceProbes
from monitor.queries.alerts import AlertQueries
from monitor.queries.cluster import ClusterQueries
from monitor.web.alerts_api import ApiTokens
from monitor.web.app import create_app
from monitor.web.authenticator import Authenticator
from monitor.web.context import HeaderLink, PageData
from monitor.web.security import Security
from monitor.web.server import WebServer

if TYPE_CHECKING:
    from monitor.agent.main import RunningAgent

log = logging.getLogger(__name__)
FIRST_ROUND_TIMEOUT_SECONDS = 3.0


class StartError(Exception):
    """It cannot be started; the message is one sentence that says what to change."""


def run_up(config: Config, out: TextIO, show: Callable[[NodeSnapshot, TextIO], None]) -> int:
    """Run agent and page in this process until SIGTERM or SIGINT, and return the exit code. Raise StartError.

    `show` prints this machine's snapshot once the first round of collection has completed.
    """
    from monitor.agent.main import start as start_agent  # here: the daemon alone does without

    limit_malloc_arenas()
    warm_up_msgspec()
    stop = StopSignal()
    let_in = access_settings(config)
    listening = open_socket(config.daemon.listen, "daemon.listen")
    try:
        agent = start_agent(config.agent_settings())
    except OSError as error:
        listening.close()
        raise StartError(listen_error(error, config.agent.listen, "agent.listen")) from None
    host, port = agent.address
    cluster = connect_cluster(config, str(Listen(host=connect_host(host), port=port)))
    leading = build_elector(config, cluster)
    alerting = start_alerting(config, cluster, listening, leading)
    cleaning = start_cleanup(config, cluster, alerting)
    watch = start_evaluator(config, cluster, alerting.found, cleaning)
    record = start_recording(config, cluster, alerting, cleaning)
    guard = build_security(config, let_in, cluster, cleaning, leading)
    web = WebServer(build_app(config, cluster, watch, alerting, cleaning, record, guard, agent.snapshot), listening)
    web.start()
    leading.start()
    launch.wait_for_first_round(agent.snapshot, FIRST_ROUND_TIMEOUT_SECONDS, stop.wait)
    if not stop.wait(0):
        show(agent.snapshot(), out)
        print_addresses(agent, web, out)
        if out.isatty():  # a log is no place for it
            print_login_link(guard, web, out)
    stops = (watch.stop, record.stop, cleaning.stop, leading.stop, alerting.stop, agent.stop, cluster.stop, guard.close)
    return serve_until_stopped(stop, web, *stops)


def run_daemon(config: Config, out: TextIO | None = None, links: tuple[HeaderLink, ...] = ()) -> int:
    """Follow the cluster and serve the page until SIGTERM or SIGINT, and return the exit code. Raise StartError.

    `out` is for who sits at this machine; `links` are shown on every page.
    """
    limit_malloc_arenas()
    warm_up_msgspec()
    stop = StopSignal()
    let_in = access_settings(config)
    listening = open_socket(config.daemon.listen, "daemon.listen")
    cluster = connect_cluster(config)
    leading = build_elector(config, cluster)
    alerting = start_alerting(config, cluster, listening, leading)
    cleaning = start_cleanup(config, cluster, alerting)
    watch = start_evaluator(config, cluster, alerting.found, cleaning)
    record = start_recording(config, cluster, alerting, cleaning)
    guard = build_security(config, let_in, cluster, cleaning, leading)
    app = build_app(config, cluster, watch, alerting, cleaning, record, guard, links=links)
    web = WebServer(app, listening)
    web.start()
    leading.start()
    log.info("page on %s", page_url(web.address))
    if out is not None or sys.stdout.isatty():
        print_login_link(guard, web, out or sys.stdout)
    stops = (watch.stop, record.stop, cleaning.stop, leading.stop, alerting.stop, cluster.stop, guard.close)
    return serve_until_stopped(stop, web, *stops)


def connect_cluster(config: Config, own_agent: str | None = None) -> LiveCluster:
    """Begin to follow the cluster. Raise StartError if there is none and there has to be one."""
    try:
        cluster = make_cluster(config, own_agent, config.daemon.state)
    except KubeCredentialsError as error:
        raise StartError(f"no Kubernetes: {error}; or set daemon.kubernetes.enabled to auto") from None
    cluster.start()
    return cluster


def build_elector(config: Config, cluster: LiveCluster) -> LeaseElector | SingleReplica:
    """Return who agrees with other replicas on the one that acts, where there are some. Raise StartError."""
    wanted = config.daemon.lease
    if wanted is None:
        return SingleReplica()
    if cluster.api is None:
        raise StartError("daemon.lease needs Kubernetes, and there is none; set daemon.kubernetes, or remove the lease")
    return elect_leader(cluster.api, wanted.namespace, wanted.name, wanted.duration)


def start_alerting(config: Config, cluster: LiveCluster, listening: socket.socket, leading: LeaderElector) -> AlertingService:
    """Begin to keep alerts and to send. Raise StartError if a file that a receiver needs cannot be read."""

    def see() -> AlertingInputs:
        return AlertingInputs(cluster.view.sources, cluster.poller.facts())

    try:
        alerting = AlertingService(config.daemon.alerts, config.daemon.state, linked_url(listening), see, leading=leading)
    except ValueError as error:
        raise StartError(f"daemon.alerts: {error}") from None
    alerting.start()
    return alerting


def start_cleanup(config: Config, cluster: LiveCluster, alerting: AlertingService) -> CleanupController:
    """Begin to keep to the policies of cleanup. Raise StartError if a file or a receiver that they need is missing."""
    daemon = config.daemon
    try:
        access = daemon.cleanup.agents.access(config.agent.actions.read_token(), daemon.agents.settings().tls)
        outbox, leading = AlertOutbox(alerting), alerting.leading
        cleaning = CleanupController(daemon.cleanup.settings(), access, daemon.state, cluster, outbox, leading=leading)
    except ValueError as error:
        raise StartError(f"daemon.cleanup: {error}") from None
    cleaning.start()
    return cleaning


def start_recording(config: Config, cluster: LiveCluster, alerting: AlertingService, cleaning: CleanupController) -> RecordingService:
    """Begin to record what happens, for the report."""
    record = RecordingService(config.daemon, cluster, alerting, cleaning)
    record.start()
    return record


def start_evaluator(config: Config, cluster: LiveCluster, on_look: FindingsListener, cleaning: CleanupController) -> Evaluator:
    """Begin to look for what is wrong. Raise StartError if a password that a probe needs cannot be read."""
    daemon = config.daemon
    try:
        probes = ServiceProbes(service.target() for service in daemon.services)
    except ValueError as error:
        raise StartError(f"daemon.services: {error}") from None
    settings = EvaluatorSettings(state=daemon.state, resource=daemon.gpu_resource, limits=daemon.rules.limits())
    watch = Evaluator(settings, cluster, probes, on_evaluated=on_look, own_deletions=cleaning.own_deletions)
    watch.start()
    return watch


def build_app(
    config: Config,
    cluster: LiveCluster,
    watch: Evaluator,
    alerting: AlertingService,
    cleaning: CleanupController,
    record: RecordingService,
    guard: Security,
    own_node: Callable[[], NodeSnapshot] | None = None,
    links: tuple[HeaderLink, ...] = (),
) -> ASGIApp:
    """Return the page. Raise StartError if a token's file cannot be read."""
    daemon = config.daemon
    try:
        tokens = ApiTokens(daemon.read_token(), daemon.alerts.callback.read_token())
    except ValueError as error:
        raise StartError(f"daemon.token_file: {error}") from None
    questions = ClusterQueries(cluster, daemon.gpu_resource, findings=lambda: watch.findings)
    leading = alerting.leading
    parts = PageData(
        cluster.poller.facts, lambda: watch.findings, record.recorder, alerting.desk.snapshot, links,
        leading.state if leading.shared else None,
    )  # fmt: skip
    scraped = MetricsDeps(
        cluster, watch, alerting, cleaning, daemon.gpu_resource, daemon.alerts.cluster,
        leading.holds if leading.shared else None,
    )  # fmt: skip
    metrics = scraped.daemon_metrics()
    asked = AlertQueries(alerting)
    return create_app(questions, own_node, asked, tokens, cleaning, record.reports, guard, parts, metrics.render)


def access_settings(config: Config) -> AccessSettings:
    """Return who may look and who may act. Raise StartError if others reach the page and nobody may."""
    daemon = config.daemon
    try:
        return daemon.access.settings(daemon.read_token(), loopback=is_loopback(daemon.listen.host))
    except ValueError as error:
        raise StartError(f"daemon.access: {error}") from None


def build_security(
    config: Config, let_in: AccessSettings, cluster: LiveCluster, cleaning: CleanupController, leading: LeaderElector
) -> Security:
    """Return what stands around the page, with the record of what is done by it."""
    audit = AuditLog(os.path.join(config.daemon.state, AUDIT_FILE))
    kube, api = cluster.kube, cluster.api
    hands = ActionDeps(cleaning)
    if kube is not None and api is not None:
        hands = ActionDeps(cleaning, PodWrites(api), NodeWrites(api), lambda: kube.pods.snapshot().items)
    return Security(Authenticator(let_in), audit, ActionService(cluster, hands, audit, leading))


def print_login_link(guard: Security, web: WebServer, out: TextIO) -> None:
    """Print the link by which a browser may act, where nobody is named who could sign in."""
    if not guard.authenticator.settings.closed:
        out.write(f"to act   {page_url(web.address)[:-1]}{guard.authenticator.link()}   (once, within an hour)\n")
        out.flush()


def print_addresses(agent: RunningAgent, web: WebServer, out: TextIO) -> None:
    """Print the addresses of the metrics and of the page."""
    out.write(f"\nmetrics  {page_url(agent.address)}metrics\npage     {page_url(web.address)}\n")
    out.flush()


def page_url(address: tuple[str, int]) -> str:
    """Given where a server listens, return the address to type into a browser on this machine."""
    host, port = address
    return f"http://{Listen(host=connect_host(host), port=port)}/"


def linked_url(listening: socket.socket) -> str:
    """Given where the page listens, return the address for links in messages, which are read on other machines."""
    host, port = listening.getsockname()[:2]
    return f"http://{Listen(host=socket.gethostname() if is_wildcard(host) else host, port=port)}"


def serve_until_stopped(stop: StopSignal, web: WebServer, *others: Callable[[], None]) -> int:
    """Wait for the signal, then stop everything. Return the exit code: 1 if the server ended by itself."""
    while web.running and not stop.wait(1.0):
        pass
    code = 0 if web.running else 1
    web.begin_stop()
    for stop_other in others:
        stop_other()
    web.wait_stopped()
    return code


def open_socket(listen: Listen, setting: str) -> socket.socket:
    """Given an address and the setting it comes from, return a socket that listens there. Raise StartError."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    both = listen.host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((listen.host, listen.port), family=family, dualstack_ipv6=both)
    except OSError as error:
        raise StartError(listen_error(error, listen, setting)) from None


def listen_error(error: OSError, listen: Listen, setting: str) -> str:
    """Given why an address cannot be listened on, return one sentence that says it, and what to change."""
    reasons = {
        errno.EADDRINUSE: f"{listen} is already in use; stop the program that uses it, or",
        errno.EACCES: f"this user may not listen on {listen};",
        errno.EADDRNOTAVAIL: f"this machine has no address {listen.host};",
        socket.EAI_NONAME: f"the name {listen.host} has no address;",
    }
    reason = reasons.get(error.errno or 0, f"cannot listen on {listen}: {error.strerror};")
    variable = config_file.PREFIX + setting.replace(".", "__").upper()
    return f"{reason} set {setting} (or the variable {variable}) to another host:port"
