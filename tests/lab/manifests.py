"""Manifests of API objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tests.lab.images import IMAGE
from tests.lab.layout import GPU_RESOURCE, NODE

LEASE_SECONDS = 40


def pod_manifest(
    name: str,
    *,
    namespace: str = "default",
    gpus: int = 0,
    image: str = IMAGE,
    command: Sequence[str] = ("sleep", "1000000"),
    node: str | None = NODE,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    container: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A pod with one container, `main`. `container` and `spec` add or replace fields of those objects.

    The scheduler places it on `node`, or on any node if that is None.
    """
    limits = {GPU_RESOURCE: str(gpus)} if gpus else {}
    main = {"name": "main", "image": image, "command": list(command), "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "containers": [main | dict(container or {})],
            "hostNetwork": True,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {"kubernetes.io/hostname": node} if node else {},
            **(spec or {}),
        },
    }


def node_manifest(
    name: str, labels: Mapping[str, str] | None = None, taints: Sequence[Mapping[str, str]] = ()
) -> dict[str, Any]:
    """A node without a kubelet. Taints have the form of its spec: key, value, effect."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": [dict(taint) for taint in taints]},
    }


def node_status(gpus: int, now: datetime) -> dict[str, Any]:
    """Status of a healthy node with this many GPUs."""
    resources = {"cpu": "64", "memory": "512Gi", "pods": "110", "ephemeral-storage": "1Ti"}
    if gpus:
        resources[GPU_RESOURCE] = str(gpus)
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": _seconds(now),
        "lastTransitionTime": _seconds(now),
    }
    return {"status": {"capacity": resources, "allocatable": resources, "conditions": [ready]}}


def lease_manifest(name: str, now: datetime) -> dict[str, Any]:
    """Lease of a live node."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": _micros(now)},
    }


def _seconds(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _micros(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
