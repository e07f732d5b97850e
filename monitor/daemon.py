"""Composition root of the central process: what is started, in which order, and how it ends."""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from monitor import config_file, launch
from monitor.addresses import reached_at
from monitor.cluster.kube import NoClusterError
from monitor.cluster.live import LiveCluster
from monitor.cluster.services import ServiceProbes
from monitor.config import Config
from monitor.config_types import Listen
from monitor.questions import Questions, make_cluster
from monitor.signals import StopSignal
from monitor.watch import FindingsWatch, WatchSettings
from monitor.web.app import create_app
from monitor.web.server import WebServer

if TYPE_CHECKING:
    from monitor.agent.main import RunningAgent

log = logging.getLogger(__name__)
FIRST_ROUND_LIMIT = 3.0


class StartError(Exception):
    """It cannot be started; the message is one sentence that says what to change."""


def run_up(config: Config, out: TextIO) -> int:
    """Run agent and page in this process until SIGTERM or SIGINT, and return the exit code. Raise StartError."""
    from monitor.agent.main import start as start_agent  # here: the daemon alone does without

    stop = StopSignal()
    listening = open_socket(config.daemon.listen, "daemon.listen")
    try:
        agent = start_agent(config.agent_settings())
    except OSError as error:
        listening.close()
        raise StartError(why_not_listening(error, config.agent.listen, "agent.listen")) from None
    host, port = agent.address
    cluster = follow(config, str(Listen(host=reached_at(host), port=port)))
    watch = watch_over(config, cluster)
    web = WebServer(create_app(questions_about(config, cluster, watch), agent.snapshot), listening)
    web.start()
    launch.wait_for_first_round(agent.snapshot, FIRST_ROUND_LIMIT, stop.wait)
    if not stop.wait(0):
        announce(agent, web, out)
    return serve_until_stopped(stop, web, watch.stop, agent.stop, cluster.stop)


def run_daemon(config: Config) -> int:
    """Follow the cluster and serve the page until SIGTERM or SIGINT, and return the exit code. Raise StartError."""
    stop = StopSignal()
    listening = open_socket(config.daemon.listen, "daemon.listen")
    cluster = follow(config)
    watch = watch_over(config, cluster)
    web = WebServer(create_app(questions_about(config, cluster, watch)), listening)
    web.start()
    log.info("page on %s", page_url(web.address))
    return serve_until_stopped(stop, web, watch.stop, cluster.stop)


def follow(config: Config, own_agent: str | None = None) -> LiveCluster:
    """Begin to follow the cluster. Raise StartError if there is none and there has to be one."""
    try:
        cluster = make_cluster(config, own_agent)
    except NoClusterError as error:
        raise StartError(f"no Kubernetes: {error}; or set daemon.kubernetes.enabled to auto") from None
    cluster.start()
    return cluster


def watch_over(config: Config, cluster: LiveCluster) -> FindingsWatch:
    """Begin to look for what is wrong. Raise StartError if a password that a probe needs cannot be read."""
    daemon = config.daemon
    try:
        probes = ServiceProbes(service.target() for service in daemon.services)
    except ValueError as error:
        raise StartError(f"daemon.services: {error}") from None
    settings = WatchSettings(state=daemon.state, resource=daemon.gpu_resource, limits=daemon.rules.limits())
    watch = FindingsWatch(settings, cluster, probes)
    watch.start()
    return watch


def questions_about(config: Config, cluster: LiveCluster, watch: FindingsWatch) -> Questions:
    """Return what the page may ask."""
    return Questions(cluster, config.daemon.gpu_resource, found=lambda: watch.findings)


def announce(agent: RunningAgent, web: WebServer, out: TextIO) -> None:
    """Print what is known of this machine, and where to look."""
    from monitor.render import print_snapshot  # here: the daemon alone does without

    print_snapshot(agent.snapshot(), out)
    out.write(f"\nmetrics  {page_url(agent.address)}metrics\npage     {page_url(web.address)}\n")
    out.flush()


def page_url(address: tuple[str, int]) -> str:
    """Given where a server listens, return the address to type into a browser on this machine."""
    host, port = address
    return f"http://{Listen(host=reached_at(host), port=port)}/"


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
        raise StartError(why_not_listening(error, listen, setting)) from None


def why_not_listening(error: OSError, listen: Listen, setting: str) -> str:
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
