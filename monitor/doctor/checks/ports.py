"""The listening addresses of daemon and agent: free, used by gpuwarden, or used by another program."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from monitor.base.net import connect_host
from monitor.base.peer_http import PeerClient, PeerError
from monitor.base.peer_wire import PeerReply
from monitor.config.types import Listen
from monitor.doctor.context import DoctorContext
from monitor.doctor.model import Check, Verdicts, ok, problem

HEALTH_SECONDS = 2.0
MAX_BODY_BYTES = 64 * 1024


@dataclass(frozen=True)
class PortFacts:
    """A listening address and its setting. `ours`: gpuwarden listens there already."""

    setting: str
    address: str
    state: Literal["free", "ours", "taken", "denied", "no-address", "error"]
    why: str = ""


def judge(ports: tuple[PortFacts, ...]) -> Verdicts:
    """Addresses that gpuwarden cannot listen on."""
    return tuple(
        (ok if port.state in ("free", "ours") else problem)(
            f"ports.{port.state}", setting=port.setting, address=port.address, why=port.why
        )
        for port in ports
    )


def read(context: DoctorContext) -> tuple[PortFacts, ...]:
    """Try to listen on both addresses."""
    config = context.config
    is_agent = partial(_is_agent, tls=config.agent.actions.tls is not None)
    return (
        _port("daemon.listen", config.daemon.listen, _is_daemon),
        _port("agent.listen", config.agent.listen, is_agent),
    )


def _port(setting: str, listen: Listen, is_ours: Callable[[Listen], bool]) -> PortFacts:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    try:
        socket.create_server((listen.host, listen.port), family=family).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return PortFacts(setting, str(listen), "ours" if is_ours(listen) else "taken")
        why = error.strerror or str(error)
        if error.errno == errno.EACCES:
            return PortFacts(setting, str(listen), "denied", why)
        no_address = error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror)
        return PortFacts(setting, str(listen), "no-address" if no_address else "error", why)
    return PortFacts(setting, str(listen), "free")


def _is_daemon(listen: Listen) -> bool:
    reply = _health(listen, None)
    return reply is not None and reply.body == b"ok\n"


def _is_agent(listen: Listen, *, tls: bool) -> bool:
    context = None
    if tls:
        context = ssl.create_default_context()
        # Safe without verification: the request has no secret, and the reply only identifies the program.
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reply = _health(listen, context)
    return reply is not None and reply.headers.get("Server", "").startswith("gpuwarden-agent")


def _health(listen: Listen, context: ssl.SSLContext | None) -> PeerReply | None:
    """Reply of the health endpoint; None without one."""
    target = str(Listen(host=connect_host(listen.host), port=listen.port))
    try:
        return PeerClient(HEALTH_SECONDS, MAX_BODY_BYTES, context).request(target, "GET", "/healthz")
    except PeerError:
        return None


CHECKS = (Check("ports.listen", read, judge),)
