"""The addresses that we listen on: free, ours already, or somebody else's."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Callable

from monitor.base.net import connect_host
from monitor.base.peer_http import PeerClient, PeerError, PeerReply
from monitor.config.types import Listen
from monitor.doctor.checks.ports import PortLook
from monitor.doctor.context import Visit

ASK_SECONDS = 2.0
MAX_BODY_BYTES = 64 * 1024


def ports(visit: Visit) -> tuple[PortLook, ...]:
    """Look at the addresses of the daemon and of the agent."""
    config = visit.config
    tls = config.agent.actions.tls is not None
    return (
        _look("daemon.listen", config.daemon.listen, _daemon),
        _look("agent.listen", config.agent.listen, lambda listen: _agent(listen, tls=tls)),
    )


def _look(setting: str, listen: Listen, ours: Callable[[Listen], bool]) -> PortLook:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    try:
        socket.create_server((listen.host, listen.port), family=family).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return PortLook(setting, str(listen), "ours" if ours(listen) else "taken")
        why = error.strerror or str(error)
        if error.errno == errno.EACCES:
            return PortLook(setting, str(listen), "denied", why)
        nowhere = error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror)
        return PortLook(setting, str(listen), "no-address" if nowhere else "error", why)
    return PortLook(setting, str(listen), "free")


def _daemon(listen: Listen) -> bool:
    reply = _health(listen)
    return reply is not None and reply.body == b"ok\n"


def _agent(listen: Listen, *, tls: bool) -> bool:
    context = None
    if tls:
        context = ssl.create_default_context()
        context.check_hostname = False  # nothing is told or believed: is it ours at all?
        context.verify_mode = ssl.CERT_NONE
    reply = _health(listen, context)
    return reply is not None and reply.headers.get("Server", "").startswith("gpuwarden-agent")


def _health(listen: Listen, context: ssl.SSLContext | None = None) -> PeerReply | None:
    """Reply of the health endpoint; None if nothing of ours answers."""
    target = str(Listen(host=connect_host(listen.host), port=listen.port))
    try:
        return PeerClient(ASK_SECONDS, MAX_BODY_BYTES, context).request(target, "GET", "/healthz")
    except PeerError:
        return None
