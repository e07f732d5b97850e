"""Kubernetes objects as the API server returns them."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from monitor.sim.objects import Object

GPU_RESOURCE = "nvidia.com/gpu"


@dataclass(frozen=True)
class Workload:
    """A pod to submit: training job, notebook or service."""

    name: str
    namespace: str
    user: str
    queue: str
    gpus: int
    image: str
    kind: str = "train"  # train, notebook or serve
    busy: float = 0.85
    labels: dict[str, str] = field(default_factory=dict)


def rfc3339(seconds: float) -> str:
    """Unix time in the format of Kubernetes."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def node(
    name: str, gpus: int, created_at: float, *, silent_since: float | None = None, cordoned: bool = False
) -> Object:
    """Node that is ready, or whose kubelet is silent."""
    ready = silent_since is None
    status, reason = ("True", "KubeletReady") if ready else ("Unknown", "NodeStatusUnknown")
    amounts = {"cpu": "96", "memory": "1024Gi", GPU_RESOURCE: str(gpus), "pods": "110"}
    condition = {"type": "Ready", "status": status, "reason": reason}
    condition["lastTransitionTime"] = rfc3339(silent_since or created_at)
    if not ready:
        condition["message"] = "Kubelet stopped posting node status."
    return {
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "creationTimestamp": rfc3339(created_at),
            "labels": {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
        },
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [condition]},
    }


def agent_pod(node_name: str, address: str, created_at: float) -> Object:
    """Pod of the agent on a node."""
    labels = {"app.kubernetes.io/name": "gpuwarden-agent"}
    pod = _pod(f"gpuwarden-agent-{node_name}", "monitoring", f"agent-{node_name}", labels, created_at)
    pod["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "gpuwarden-agent", "uid": "ds-agent", "controller": True}
    ]
    pod["spec"] = {"nodeName": node_name, "containers": [{"name": "agent", "image": "gpuwarden:dev"}]}
    agent = _container(pod, {"running": {"startedAt": rfc3339(created_at)}}, ready=True) | {"name": "agent"}
    pod["status"] = {
        "phase": "Running",
        "podIP": address,
        "startTime": rfc3339(created_at),
        "containerStatuses": [agent],
    }
    return pod


def workload_pod(work: Workload, uid: str, created_at: float) -> Object:
    """Pending pod of a workload, with the labels of OpenPAI, or of JupyterHub for a notebook."""
    labels = dict(work.labels)
    annotations: dict[str, str] = {}
    if work.kind == "notebook":
        labels |= {"app": "jupyterhub", "component": "singleuser-server"}
        annotations = {"hub.jupyter.org/username": work.user}
    else:
        labels |= {"FC_FRAMEWORK_NAME": work.name, "userName": work.user, "virtualCluster": work.queue}
    pod = _pod(work.name, work.namespace, uid, labels, created_at)
    pod["metadata"]["annotations"] = annotations
    amounts = {GPU_RESOURCE: str(work.gpus), "cpu": str(max(1, 4 * work.gpus)), "memory": f"{max(8, 32 * work.gpus)}Gi"}
    container = {"name": "main", "image": work.image, "resources": {"requests": amounts, "limits": amounts}}
    pod["spec"] = {
        "containers": [container],
        "restartPolicy": "Always" if work.kind == "notebook" else "Never",
        "schedulerName": "default-scheduler",
    }
    pod["status"] = {"phase": "Pending", "conditions": []}
    return pod


def _pod(name: str, namespace: str, uid: str, labels: dict[str, str], created_at: float) -> Object:
    meta = {
        "name": name,
        "namespace": namespace,
        "uid": uid,
        "labels": labels,
        "creationTimestamp": rfc3339(created_at),
    }
    return {"metadata": meta}


def running(pod: Object, container_id: str, now: float) -> Object:
    """Pod with a running container."""
    state = {"running": {"startedAt": rfc3339(now)}}
    return _with_status(pod, "Running", [_container(pod, state, f"docker://{container_id}", ready=True)], now)


def waiting(pod: Object, reason: str, message: str, now: float) -> Object:
    """Scheduled pod whose container cannot start."""
    state = {"waiting": {"reason": reason, "message": message}}
    return _with_status(pod, "Pending", [_container(pod, state)], now)


def finished(pod: Object, phase: str, now: float, exit_code: int = 0) -> Object:
    """Pod that has finished."""
    old = (pod["status"].get("containerStatuses") or [{}])[0]
    ended = {"exitCode": exit_code, "finishedAt": rfc3339(now), "reason": "Completed" if not exit_code else "Error"}
    status = _container(pod, {"terminated": ended}, old.get("containerID"))
    return _with_status(pod, phase, [status], now)


def unschedulable(pod: Object, message: str, now: float) -> Object:
    """Pod that fits no node."""
    condition = {
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
        "lastTransitionTime": rfc3339(now),
    }  # fmt: skip
    return pod | {"status": {"phase": "Pending", "conditions": [condition]}}


def placed(pod: Object, node_name: str) -> Object:
    """Pod that is scheduled to a node."""
    return pod | {"spec": pod["spec"] | {"nodeName": node_name}}


def terminating(pod: Object, now: float, grace: float) -> Object:
    """Pod that is being deleted."""
    meta = {"deletionTimestamp": rfc3339(now + grace), "deletionGracePeriodSeconds": int(grace)}
    return pod | {"metadata": pod["metadata"] | meta}


def event(pod: Object, number: int, reason: str, message: str, now: float, count: int = 1) -> Object:
    """Warning event of a pod."""
    meta = pod["metadata"]
    return {
        "metadata": {"name": f"{meta['name']}.{number}", "namespace": meta["namespace"], "uid": f"event-{number}"},
        "involvedObject": {"kind": "Pod", "name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "count": count,
        "firstTimestamp": rfc3339(now),
        "lastTimestamp": rfc3339(now),
        "source": {"component": "kubelet", "host": pod["spec"].get("nodeName", "")},
    }


def _container(pod: Object, state: Object, container_id: str | None = None, *, ready: bool = False) -> Object:
    image = pod["spec"]["containers"][0]["image"]
    status: Object = {"name": "main", "ready": ready, "restartCount": 0, "image": image, "state": state}
    return status | ({"containerID": container_id} if container_id else {})


def _with_status(pod: Object, phase: str, containers: list[Object], now: float) -> Object:
    started = pod["status"].get("startTime") or rfc3339(now)
    scheduled = {"type": "PodScheduled", "status": "True"}
    status = {"phase": phase, "startTime": started, "conditions": [scheduled], "containerStatuses": containers}
    return pod | {"status": status}
