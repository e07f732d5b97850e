"""Alert receivers and the services that the daemon uses: Alertmanager and the heartbeat."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

from monitor.alert.receivers.base import ReceiverSettings
from monitor.base.endpoint import Endpoint
from monitor.base.http import RequestError
from monitor.base.threads import run_parallel
from monitor.config.types import Listen
from monitor.doctor.context import DoctorContext, SentMessage
from monitor.doctor.model import Check, Verdicts, not_checked, ok, problem, warning

CONNECT_SECONDS = 3.0
ALL_CONNECTIONS_SECONDS = 3.5
SEND_SECONDS = 60.0
PROXY_PORT = 3128
PORTS = {"http": 80, "https": 443}
# Why a connection cannot be made.
TROUBLES = ("dns", "refused", "timeout", "tls", "error")
# What can be wrong with a service that accepts connections: an error reply.
SERVICE_TROUBLES = ("answer",)


@dataclass(frozen=True)
class Reachability:
    """Outcome of connecting to a receiver or service. `host` is the only part of its address that may be shown.

    `trouble` is one of TROUBLES or SERVICE_TROUBLES; None if the connection was made. `unseen`: the address does not
    say what to connect to.
    """

    name: str
    host: str
    trouble: str | None = None
    why: str = ""
    unseen: bool = False


@dataclass(frozen=True)
class ReceiverFacts:
    """The receivers, and the test messages sent to them, or why none could be sent."""

    reached: tuple[Reachability, ...] = ()
    sent: tuple[SentMessage, ...] = ()
    not_sent: str | None = None


def judge(facts: ReceiverFacts) -> Verdicts:
    """Receivers that cannot be reached or rejected the test message."""
    if not facts.reached:
        return (warning("receivers.none"),)
    verdicts = [
        problem(f"receivers.{receiver.trouble}", name=receiver.name, host=receiver.host, why=receiver.why)
        for receiver in facts.reached
        if receiver.trouble is not None
    ]
    verdicts += [not_checked("receivers.unseen", name=receiver.name) for receiver in facts.reached if receiver.unseen]
    verdicts += [problem("receivers.not-sent", name=sent.name, why=sent.answer) for sent in facts.sent if not sent.ok]
    if facts.not_sent is not None:
        verdicts.append(problem("receivers.nobody-sent", why=facts.not_sent))
    if verdicts:
        return tuple(verdicts)
    names = ", ".join(receiver.name for receiver in facts.reached)
    return (ok("receivers.sent" if facts.sent else "receivers.ok", count=len(facts.reached), names=names),)


def judge_services(services: tuple[Reachability, ...]) -> Verdicts:
    """Services that cannot be reached or do not work."""
    if not services:
        return (not_checked("services.none"),)
    verdicts = []
    for service in services:
        if service.trouble is not None:
            trouble = service.trouble if service.trouble in SERVICE_TROUBLES else "lost"
            verdicts.append(problem(f"services.{trouble}", name=service.name, host=service.host, why=service.why))
    return tuple(verdicts) or (ok("services.ok", names=", ".join(service.name for service in services)),)


def read(context: DoctorContext) -> ReceiverFacts:
    """Connect to every receiver and, if requested, send a test message to each."""
    daemon = context.config.daemon
    settings = daemon.alerts.receiver_settings(f"http://{daemon.listen}")
    reached = _connect_all([(receiver.name, partial(_receiver, receiver)) for receiver in settings])
    if context.request.send is None or not reached:
        return ReceiverFacts(reached)
    try:
        return ReceiverFacts(reached, context.request.send())
    except Exception as error:  # the message of the sender is the best explanation
        return ReceiverFacts(reached, not_sent=str(error))


def read_services(context: DoctorContext) -> tuple[Reachability, ...]:
    """Ask Alertmanager whether it is ready, and connect to the heartbeat service."""
    alerts = context.config.daemon.alerts
    connections: list[tuple[str, Callable[[], Reachability]]] = []
    if (alertmanager := alerts.alertmanager) is not None:
        endpoint = Endpoint(
            url=f"{alertmanager.url.get_secret_value().rstrip('/')}/-/ready",
            timeout=CONNECT_SECONDS,
            ca_file=alertmanager.ca_file,
            verify_tls=alertmanager.verify_tls,
        )
        connections.append(("Alertmanager", partial(_alertmanager, endpoint, alertmanager.read_token())))
    if (heartbeat := alerts.heartbeat) is not None:
        # Only connect: a request would count as a heartbeat.
        endpoint = Endpoint(url=heartbeat.address)
        connections.append(("heartbeat", partial(_connect, Reachability("heartbeat", endpoint.host), endpoint, None)))
    return _connect_all(connections)


def _connect_all(connections: list[tuple[str, Callable[[], Reachability]]]) -> tuple[Reachability, ...]:
    """Connect in parallel. The timeout also covers name lookups, which have none of their own."""
    outcomes = run_parallel([connect for _, connect in connections], ALL_CONNECTIONS_SECONDS)
    return tuple(
        outcome.value or _failed(name, outcome.error) for (name, _), outcome in zip(connections, outcomes, strict=True)
    )


def _failed(name: str, error: Exception | None) -> Reachability:
    if error is not None:
        return Reachability(name, "?", "error", type(error).__name__)
    return Reachability(name, "?", "timeout", f"no answer within {ALL_CONNECTIONS_SECONDS:g} s")


def _alertmanager(endpoint: Endpoint, token: str | None) -> Reachability:
    from monitor.alert.receivers.common import bearer
    from monitor.base.http import get

    try:
        get(endpoint, bearer(token))
    except RequestError as error:
        return Reachability("Alertmanager", endpoint.host, "answer", str(error))
    return Reachability("Alertmanager", endpoint.host)


def _receiver(settings: ReceiverSettings) -> Reachability:
    if settings.kind == "console":
        return Reachability(settings.name, "console")
    if (mail := settings.mail) is not None:
        host = f"{mail.host}:{mail.port}"
        url = f"{'https' if mail.tls == 'tls' else 'http'}://{Listen(host=mail.host, port=mail.port)}"
    else:
        url, host = settings.url, Endpoint(url=settings.url).host
        if urlsplit(url).scheme not in PORTS:  # an Apprise URL: its host may be the key
            return Reachability(settings.name, "?", unseen=True)
    endpoint = Endpoint(url=url, ca_file=settings.ca_file, verify_tls=settings.verify_tls)
    return _connect(Reachability(settings.name, host), endpoint, settings.proxy)


def _connect(reached: Reachability, endpoint: Endpoint, proxy: str | None) -> Reachability:
    """`reached`, with what went wrong. Includes the TLS handshake; with a proxy, only the proxy is tested."""
    from monitor.probes.tcp import network_error

    url = urlsplit(proxy or endpoint.url)
    port = url.port or PORTS.get(url.scheme, PROXY_PORT)
    try:
        with socket.create_connection((url.hostname or "", port), timeout=CONNECT_SECONDS) as connection:
            if url.scheme == "https":
                _tls_context(endpoint).wrap_socket(connection, server_hostname=url.hostname).close()
    except (OSError, UnicodeError) as error:
        failure = network_error(error)
        host = f"{url.hostname}:{port}" if proxy else reached.host
        return replace(reached, host=host, trouble=failure.cause, why=str(failure))
    return reached


def _tls_context(endpoint: Endpoint) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=endpoint.ca_file)
    if not endpoint.verify_tls:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


CHECKS = (
    Check("receivers.reached", read, judge, send_timeout_seconds=SEND_SECONDS),
    Check("receivers.services", read_services, judge_services),
)
