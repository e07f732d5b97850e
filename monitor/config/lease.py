"""The settings of the lease by which several replicas agree on the one that acts.

daemon:
  lease: {name: gpuwarden}
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo

from monitor.base.units import quoted
from monitor.config.alerts import AlertsConfig
from monitor.config.receivers import named
from monitor.config.types import Section, Span

OWN_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
SHORTEST = 2.0
ALERTMANAGER = "alertmanager"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


def own_namespace(file: str = OWN_NAMESPACE) -> str:
    """Return the namespace of the pod that this process runs in; outside of one, `default`."""
    return pod_namespace(file) or "default"


def pod_namespace(file: str = OWN_NAMESPACE) -> str | None:
    """Return the namespace of the pod that this process runs in; outside of one, None."""
    try:
        with open(file, encoding="utf-8") as found:
            return found.read().strip() or None
    except OSError:
        return None


def _kubernetes_name(name: str) -> str:
    if not _NAME.fullmatch(name) or len(name) > 253:
        raise ValueError(f"{quoted(name)} is no name of Kubernetes; write small letters, digits, - and .")
    return name


def _long_enough(seconds: float) -> float:
    if seconds < SHORTEST:
        raise ValueError("a lease is for at least 2s: it has to be renewed several times before it runs out")
    return seconds


Name = Annotated[str, AfterValidator(_kubernetes_name)]


class LeaseConfig(Section):
    """Which Lease it is, and after how long another replica may take over from one that is not heard of any more."""

    namespace: Name = Field(default_factory=own_namespace)
    name: Name = "gpuwarden"
    duration: Annotated[Span, AfterValidator(_long_enough)] = 15.0


def fits_the_rest(lease: LeaseConfig | None, info: ValidationInfo) -> LeaseConfig | None:
    """Given the section in its daemon, return it. Raise ValueError if replicas would get into each other's way."""
    if lease is None:
        return lease
    kubernetes = info.data.get("kubernetes")
    if kubernetes is not None and kubernetes.enabled == "no":
        raise ValueError("a lease is kept in Kubernetes; set daemon.kubernetes.enabled to yes, or remove the lease")
    if "alerts" in info.data:  # if the alerts are wrong, that is enough
        _told_once(info.data["alerts"])
    return lease


def _told_once(alerts: AlertsConfig) -> None:
    """Raise ValueError if each replica would tell a person of the same alert."""
    known = named(alerts.receivers)
    kinds = {name: each.real_kind for name, each in known.items()}
    others = [name for name, kind in kinds.items() if kind != ALERTMANAGER]
    if others and len(others) == len(kinds):
        raise ValueError(
            f"with a lease every replica finds every alert, and each would tell {', '.join(others)} of it: add "
            "{kind: alertmanager, url: http://…:9093} to daemon.alerts.receivers, which tells each alert once, and let "
            "it call /v1/alertmanager for the others"
        )
    for number, route in enumerate(alerts.routes, 1):
        for name in route.receivers:
            if kinds.get(name, ALERTMANAGER) != ALERTMANAGER:
                away = ", ".join(name for name, kind in kinds.items() if kind == ALERTMANAGER)
                raise ValueError(
                    f"with a lease every replica finds every alert, and by route {number} of daemon.alerts each would "
                    f"tell {name} of it: lead that route to {away}, and let Alertmanager choose who is told"
                )
