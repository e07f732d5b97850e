"""The addresses that we listen on: free, ours already, or somebody else's."""

from __future__ import annotations

import errno
import http.client
import socket
import ssl
from collections.abc import Callable

from monitor.base.net import reached_at
from monitor.config.types import Listen
from monitor.doctor.checks.ports import PortLook
from monitor.doctor.context import Visit

ASK_SECONDS = 2.0


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
    answer = _health(http.client.HTTPConnection(reached_at(listen.host), listen.port, timeout=ASK_SECONDS))
    return answer is not None and answer[1] == b"ok\n"


def _agent(listen: Listen, *, tls: bool) -> bool:
    host = reached_at(listen.host)
    connection = http.client.HTTPConnection(host, listen.port, timeout=ASK_SECONDS)
    if tls:
        context = ssl.create_default_context()
        context.check_hostname = False  # nothing is told or believed: is it ours at all?
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, listen.port, timeout=ASK_SECONDS, context=context)
    answer = _health(connection)
    return answer is not None and answer[0].startswith("gpuwarden-agent")


def _health(connection: http.client.HTTPConnection) -> tuple[str, bytes] | None:
    """Return who answers, and what; None if nobody does."""
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        return answer.getheader("Server") or "", answer.read(64)
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
