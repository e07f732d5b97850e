"""Settings of the Lease that elects the leader among several replicas.

daemon:
  lease: {name: gpuwarden}
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, ValidationInfo

from monitor.config.alerts import AlertsConfig
from monitor.config.receivers import by_name
from monitor.config.types import Section, Span, require

OWN_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
MIN_LEASE_SECONDS = 2.0
ALERTMANAGER = "alertmanager"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


def own_namespace(file: str = OWN_NAMESPACE) -> str:
    """Namespace of the pod that this process runs in; `default` outside of a pod."""
    return pod_namespace(file) or "default"


def pod_namespace(file: str = OWN_NAMESPACE) -> str | None:
    """Namespace of the pod that this process runs in; None outside of a pod."""
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read().strip() or None
    except OSError:
        return None


KubernetesName = Annotated[
    str,
    require(
        lambda name: _NAME.fullmatch(name) and len(name) <= 253,
        "{} is no name of Kubernetes; write small letters, digits, - and .",
    ),
]
LeaseDuration = Annotated[
    Span,
    require(
        lambda seconds: seconds >= MIN_LEASE_SECONDS,
        "a lease is for at least 2s: it has to be renewed several times before it runs out",
    ),
]


class LeaseConfig(Section):
    """The Lease, and the time after which another replica may take over from a leader that stopped renewing it."""

    namespace: KubernetesName = Field(default_factory=own_namespace)
    name: KubernetesName = "gpuwarden"
    duration: LeaseDuration = 15.0


def check_lease(lease: LeaseConfig | None, info: ValidationInfo) -> LeaseConfig | None:
    """Require Kubernetes, and that each alert is sent once although every replica detects it."""
    if lease is None:
        return lease
    kubernetes = info.data.get("kubernetes")
    if kubernetes is not None and kubernetes.enabled == "no":
        raise ValueError("a lease is kept in Kubernetes; set daemon.kubernetes.enabled to yes, or remove the lease")
    if "alerts" in info.data:  # otherwise they are invalid themselves
        _check_alerts(info.data["alerts"])
    return lease


def _check_alerts(alerts: AlertsConfig) -> None:
    kinds = {name: receiver.effective_kind for name, receiver in by_name(alerts.receivers).items()}
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
                allowed = ", ".join(name for name, kind in kinds.items() if kind == ALERTMANAGER)
                raise ValueError(
                    f"with a lease every replica finds every alert, and by route {number} of daemon.alerts each would "
                    f"tell {name} of it: lead that route to {allowed}, and let Alertmanager choose the recipients"
                )
