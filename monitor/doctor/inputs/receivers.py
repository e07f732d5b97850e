"""Who is told: a connection to each, without a word. And those whom the daemon asks: Alertmanager, Prometheus."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

from monitor.alert.receivers.base import ReceiverSettings
from monitor.base.endpoint import Endpoint
from monitor.base.http import RequestError
from monitor.base.threads import run_parallel
from monitor.config.prometheus import PrometheusConfig
from monitor.doctor.checks.receivers import Reached, ReceiverFacts, ServiceFacts
from monitor.doctor.context import Visit

CONNECT_SECONDS = 3.0
ALL_SECONDS = 3.5
PORTS = {"http": 80, "https": 443}


def receivers(visit: Visit) -> ReceiverFacts:
    """Connect to every receiver and, if that is wanted, have a message sent to each."""
    daemon = visit.config.daemon
    looks = [partial(_receiver, each) for each in daemon.alerts.receiver_settings(f"http://{daemon.listen}")]
    reached = _all(looks, [each.args[0].name for each in looks])
    if visit.request.send is None or not reached:
        return ReceiverFacts(reached)
    try:
        return ReceiverFacts(reached, visit.request.send())
    except Exception as error:  # in the words of whoever sends
        return ReceiverFacts(reached, not_sent=str(error))


def services(visit: Visit) -> ServiceFacts:
    """Ask those whom the daemon asks whether they are ready."""
    alerts = visit.config.daemon.alerts
    looks: list[tuple[str, Callable[[], Reached]]] = []
    if (silences := alerts.alertmanager) is not None:
        way = Endpoint(
            url=f"{silences.url.get_secret_value().rstrip('/')}/-/ready",
            timeout=CONNECT_SECONDS,
            ca_file=silences.ca_file,
            verify_tls=silences.verify_tls,
        )
        looks.append(("Alertmanager", partial(_ready, "Alertmanager", way, silences.read_token())))
    if (heartbeat := alerts.heartbeat) is not None:
        # Only a connection: to ask would be a sign of life.
        way = Endpoint(url=heartbeat.address)
        looks.append(("heartbeat", partial(_connect, Reached("heartbeat", way.host), way, None)))
    if (store := visit.config.daemon.prometheus) is not None:
        looks.append(("Prometheus", partial(_scraping, store)))
    return ServiceFacts(_all([look for _, look in looks], [name for name, _ in looks]))


def _all(looks: list[Callable[[], Reached]] | list[partial[Reached]], names: list[str]) -> tuple[Reached, ...]:
    """Have everybody looked at side by side. A name look-up may take for ever: then nobody answered."""
    outcomes = run_parallel(looks, ALL_SECONDS)
    silent = f"no answer within {ALL_SECONDS:g} s"
    return tuple(
        outcome.value
        or Reached(
            name,
            "?",
            "error" if outcome.error else "timeout",
            type(outcome.error).__name__ if outcome.error else silent,
        )
        for name, outcome in zip(names, outcomes, strict=True)
    )


def _ready(name: str, way: Endpoint, token: str | None) -> Reached:
    from monitor.alert.receivers.common import bearer
    from monitor.base.http import get

    try:
        get(way, bearer(token))
    except RequestError as error:
        return Reached(name, way.host, "answer", str(error))
    return Reached(name, way.host)


def _scraping(config: PrometheusConfig) -> Reached:
    """Ask the store that the daemon asks which agents it scrapes."""
    from monitor.cluster.prometheus.client import MetricStore, StoreError
    from monitor.cluster.prometheus.query import agents_up

    store = MetricStore(replace(config.settings().store, limit=CONNECT_SECONDS))
    try:
        series = store.query(agents_up(config.selector), time.time()).series
    except StoreError as error:
        return Reached("Prometheus", store.name, "answer", str(error))
    finally:
        store.close()
    return Reached("Prometheus", store.name, None if series else "no-agents")


def _receiver(settings: ReceiverSettings) -> Reached:
    """Given a receiver, return whether a connection to it can be made."""
    if settings.kind == "console":
        return Reached(settings.name, "console")
    if (mail := settings.mail) is not None:
        there = Reached(settings.name, f"{mail.host}:{mail.port}")
        way = Endpoint(url=f"{'https' if mail.tls == 'tls' else 'http'}://{_bracketed(mail.host)}:{mail.port}")
    else:
        way = Endpoint(url=settings.url)
        there = Reached(settings.name, way.host)
        if urlsplit(settings.url).scheme not in PORTS:  # one of Apprise: the host may be the key
            return Reached(settings.name, "?", unseen=True)
    way = replace(way, ca_file=settings.ca_file, verify_tls=settings.verify_tls)
    return _connect(there, way, settings.proxy)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _connect(there: Reached, way: Endpoint, proxy: str | None) -> Reached:
    """Connect, and shake hands where TLS is spoken. Through a proxy, all that is tried is to connect to that."""
    from monitor.probes.tcp import network_error

    url = urlsplit(proxy or way.url)
    port = url.port or PORTS.get(url.scheme, 3128)
    try:
        with socket.create_connection((url.hostname or "", port), timeout=CONNECT_SECONDS) as connection:
            if url.scheme == "https":
                with _context(way).wrap_socket(connection, server_hostname=url.hostname):
                    pass
    except (OSError, UnicodeError) as error:
        found = network_error(error)
        host = f"{url.hostname}:{port}" if proxy else there.host
        return replace(there, host=host, trouble=found.cause, why=str(found))
    return there


def _context(way: Endpoint) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=way.ca_file)
    if not way.verify_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
