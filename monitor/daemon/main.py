"""Runs the daemon, alone or together with an agent, until it is signalled to stop."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TextIO

from monitor.base.garbage import GarbageCollection
from monitor.base.msgspec_types import warm_up_msgspec
from monitor.base.net import connect_host
from monitor.base.process import limit_malloc, raise_descriptor_limit
from monitor.base.signals import StopSignal
from monitor.config.root import Config
from monitor.config.types import Listen
from monitor.daemon import launch
from monitor.daemon.listen import StartError, listen_error, open_socket, page_url
from monitor.daemon.parts import access_settings
from monitor.daemon.reload import LoadConfig
from monitor.daemon.state_lock import StateLock
from monitor.daemon.supervisor import DaemonSupervisor, SupervisorDeps
from monitor.facts import NodeSnapshot
from monitor.facts.cluster import SourceView
from monitor.i18n import say
from monitor.web.context import PageExtras
from monitor.web.security import Security
from monitor.web.server import WebServer

if TYPE_CHECKING:
    from monitor.agent.main import RunningAgent

log = logging.getLogger(__name__)
FIRST_ROUND_TIMEOUT_SECONDS = 3.0
ShowMachine = Callable[[NodeSnapshot, Iterable[SourceView], TextIO], None]


def run_up(config: Config, out: TextIO, show: ShowMachine, load: LoadConfig | None = None) -> int:
    """Run agent and daemon in this process until SIGTERM or SIGINT, and return the exit code. Raise StartError.

    `show` prints the snapshot of this machine after the first round of collection, and what is not connected. `load`
    loads the configuration again on SIGHUP.
    """
    from monitor.agent.main import start as start_agent  # here: the daemon alone does not need it

    limit_malloc()
    raise_descriptor_limit()
    warm_up_msgspec()
    stop = StopSignal()
    access_settings(config)
    lock = StateLock(config.daemon.state)
    listening = open_socket(config.daemon.listen, "daemon.listen")
    try:
        agent = start_agent(config.agent_settings())
    except OSError as error:
        listening.close()
        raise StartError(listen_error(error, config.agent.listen, "agent.listen")) from None
    host, port = agent.address
    own_agent = str(Listen(host=connect_host(host), port=port))
    supervisor = DaemonSupervisor(config, SupervisorDeps(listening, lock, own_agent, agent.snapshot))
    launch.wait_for_first_round(agent.snapshot, FIRST_ROUND_TIMEOUT_SECONDS, stop.wait)
    if not stop.wait(0):
        show(agent.snapshot(), supervisor.parts.cluster.sources, out)
        print_addresses(agent, supervisor.web, out)
        if out.isatty():  # the link must not end up in a log
            print_login_link(supervisor.parts.security, supervisor.web, out)
    return serve_until_stopped(stop, supervisor, load, agent.stop)


def run_daemon(
    config: Config,
    out: TextIO | None = None,
    extras: PageExtras | None = None,
    load: LoadConfig | None = None,
    lang: str = "en",
    ready: Callable[[], object] = lambda: None,
) -> int:
    """Run the daemon until SIGTERM or SIGINT, and return the exit code. Raise StartError.

    The login link is printed to `out`, or to stdout if that is a terminal, in the language `lang`. `extras` are shown
    on every page. `load` loads the configuration again on SIGHUP. `ready` is called when the page can be opened.
    """
    limit_malloc()
    raise_descriptor_limit()
    warm_up_msgspec()
    stop = StopSignal()
    access_settings(config)
    lock = StateLock(config.daemon.state)
    listening = open_socket(config.daemon.listen, "daemon.listen")
    supervisor = DaemonSupervisor(config, SupervisorDeps(listening, lock, extras=extras))
    log.info("page on %s", page_url(supervisor.web.address))
    if out is not None or sys.stdout.isatty():
        print_login_link(supervisor.parts.security, supervisor.web, out or sys.stdout, lang)
    ready()
    return serve_until_stopped(stop, supervisor, load)


def print_login_link(security: Security, web: WebServer, out: TextIO, lang: str = "en") -> None:
    """Print a link that signs a browser in, unless users are configured."""
    if not security.authenticator.settings.closed:
        url = page_url(web.address)[:-1] + security.authenticator.link()
        out.write(say(lang, "login-link", {"url": url}) + "\n")
        out.flush()


def print_addresses(agent: RunningAgent, web: WebServer, out: TextIO) -> None:
    """Print the addresses of the metrics and of the page."""
    out.write(f"\nmetrics  {page_url(agent.address)}metrics\npage     {page_url(web.address)}\n")
    out.flush()


def serve_until_stopped(
    stop: StopSignal, supervisor: DaemonSupervisor, load: LoadConfig | None, *before_cluster: Callable[[], None]
) -> int:
    """Wait for the signal, stop everything, and return the exit code: 1 if the web server ended by itself.

    SIGHUP reloads the configuration by `load`; without one, it stops the daemon like any program whose terminal is
    closed. `before_cluster` is called before the cluster is stopped.
    """
    garbage = GarbageCollection()
    garbage.start()
    while supervisor.web.running and not stop.wait(1.0):
        if stop.take_reload():
            if load is None:
                break
            supervisor.reload(load)
    code = 0 if supervisor.web.running else 1
    supervisor.stop(before_cluster)
    garbage.stop()
    return code
