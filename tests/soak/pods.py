"""Pods and their events throughout a lifecycle."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from monitor.sim.objects import Object

CANARIES = "canary"  # their namespace and registry
MISSING = "manifest for {image} not found: manifest unknown: manifest unknown"


def stamp(now: float) -> str:
    """A time in Kubernetes format."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))


def another(pod: Object, number: int, now: float, **meta: str) -> Object:
    """A new pod like this one, with a unique number and its containers being created."""
    own = {
        "name": f"{pod['metadata']['name']}-{number}",
        "uid": f"{number:08d}-0000-4000-8000-000000000000",
        "creationTimestamp": stamp(now),
    }
    new = pod | {"metadata": pod["metadata"] | own | meta, "status": pod["status"] | {"startTime": stamp(now)}}
    return waiting(new, "ContainerCreating")


def with_image(pod: Object, image: str) -> Object:
    """The pod with another image."""
    first, *rest = pod["spec"]["containers"]
    return pod | {"spec": pod["spec"] | {"containers": [first | {"image": image}, *rest]}}


def image_of(pod: Object) -> str:
    return str(pod["spec"]["containers"][0]["image"])


def waiting(pod: Object, reason: str, message: str = "", restarts: int = 0) -> Object:
    """The pod with its main container waiting."""
    state = {"waiting": {"reason": reason} | ({"message": message} if message else {})}
    return _with_status(pod, state, {"ready": False, "started": False, "restartCount": restarts}, "Pending")


def running(pod: Object, now: float) -> Object:
    """The pod with its main container running."""
    state = {"running": {"startedAt": stamp(now)}}
    return _with_status(pod, state, {"ready": True, "started": True}, "Running")


def finished(pod: Object, now: float) -> Object:
    """The pod with its main container completed."""
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": stamp(now - 10), "finishedAt": stamp(now)}
    return _with_status(pod, {"terminated": ended}, {"ready": False, "started": False}, "Succeeded")


def terminating(pod: Object, now: float) -> Object:
    """The pod while it is being deleted."""
    grace = {"deletionTimestamp": stamp(now + 30), "deletionGracePeriodSeconds": 30}
    return pod | {"metadata": pod["metadata"] | grace}


def touched(pod: Object, ready: bool, now: float) -> Object:
    """The pod with its Ready condition changed."""
    conditions = [
        each | {"status": str(ready), "lastTransitionTime": stamp(now)} if each["type"] == "Ready" else each
        for each in pod["status"].get("conditions", ())
    ]
    return pod | {"status": pod["status"] | {"conditions": conditions}}


def event(pod: Object, number: int, reason: str, message: str, now: float) -> Object:
    """A kubelet event about a pod."""
    meta, at = pod["metadata"], stamp(now)
    return {
        "metadata": {
            "name": f"{meta['name']}.{number:x}", "namespace": meta["namespace"], "uid": f"event-{number}",
            "creationTimestamp": at,
        },
        "involvedObject": {
            "kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"],
            "fieldPath": "spec.containers{main}",
        },
        "reason": reason, "message": message, "type": "Warning" if reason == "Failed" else "Normal", "count": 1,
        "firstTimestamp": at, "lastTimestamp": at,
        "source": {"component": "kubelet", "host": pod["spec"].get("nodeName", "")},
    }  # fmt: skip


def _with_status(pod: Object, state: Object, more: Mapping[str, Any], phase: str) -> Object:
    first, *rest = pod["status"]["containerStatuses"]
    statuses = [first | {"state": state} | dict(more), *rest]
    return pod | {"status": pod["status"] | {"phase": phase, "containerStatuses": statuses}}
