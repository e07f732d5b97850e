"""A generated cluster as JSON of its API server and agents, shared by all benchmarks.

Pods and nodes are recorded responses of a real API server (tests/fixtures/kube) including defaults and managed fields,
with per-object fields filled in. Each node has ten pods: its agent, a DaemonSet's pod, four that compute (4, 2, 1 and,
on most nodes, 1 GPUs), three without a GPU, and a Job's that has finished or, on every fifth node, one that waits for 8
GPUs.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.snapshot_data import Placed, snapshot

FIXTURES = Path(__file__).parents[1] / "tests" / "fixtures" / "kube"
GPUS = 8
AGENT_LABEL = "app.kubernetes.io/name=gpuwarden-agent"
VERSION = 1_000_000  # of the lists; changes continue from here
KINDS = {
    "pods": "Pod", "nodes": "Node", "events": "Event", "namespaces": "Namespace", "replicasets": "ReplicaSet",
    "jobs": "Job", "resourcequotas": "ResourceQuota",
}  # fmt: skip
USERS, QUEUES, IMAGES = 300, 20, 200
ENVIRONMENT = (
    "PAI_JOB_NAME", "PAI_USER_NAME", "PAI_TASK_INDEX", "PAI_HOST_IP_worker_0", "NCCL_SOCKET_IFNAME", "OMP_NUM_THREADS",
)  # fmt: skip
VOLUMES = ("dshm", "nas", "home")


@dataclass(frozen=True)
class Role:
    """One of a node's ten pods. `made_by` is the kind of its owner."""

    name: str
    made_by: str
    gpus: int = 0
    labels: Mapping[str, str] | None = None
    phase: str = "Running"


PAI = {
    "FC_FRAMEWORK_NAME": "@JOB@", "FC_TASKROLE_NAME": "worker", "FC_TASK_INDEX": "0", "userName": "@USER@",
    "virtualCluster": "@QUEUE@",
}  # fmt: skip
VOLCANO = {"volcano.sh/job-name": "@JOB@", "volcano.sh/queue-name": "@QUEUE@", "volcano.sh/task-spec": "worker"}
ROLES = (
    Role("gpuwarden-agent", "DaemonSet", labels={"app.kubernetes.io/name": "gpuwarden-agent"}),
    Role("device-plugin", "DaemonSet", labels={"app": "device-plugin", "controller-revision-hash": "7f4c9"}),
    Role("train", "Framework", 4, PAI),
    Role("tune", "Framework", 2, PAI),
    Role("notebook", "StatefulSet", 1, {"hub.jupyter.org/username": "@USER@", "app": "jupyterhub"}),
    Role("serve", "ReplicaSet", 1, {"app": "serve", "pod-template-hash": "6d5f8", "owner": "@USER@"}),
    Role("prepare", "Framework", 0, PAI),
    Role("reduce", "Job", 0, VOLCANO),
    Role("web", "ReplicaSet", 0, {"app": "web", "pod-template-hash": "6d5f8", "owner": "@USER@"}),
    Role("report", "Job", 0, {"job-name": "@JOB@", "controller-uid": "@OWNER@"}, "Succeeded"),
)
WAITING = Role("wait", "Framework", 8, PAI, "Pending")


def address(node: int) -> str:
    """Loopback address of a node's agent."""
    return f"127.80.{node // 250}.{1 + node % 250}"


def write(directory: Path, nodes: int) -> None:
    """Write a cluster of this many nodes: a file per kind with one object per line; snapshots likewise."""
    directory.mkdir()
    chance = random.Random(7)  # deterministic
    made = Maker(chance)
    pods: dict[tuple[str, str], str] = {}
    with (directory / "snapshots").open("wb") as snapshots:
        for node in range(nodes):
            placed = []
            for role in _roles(node):
                text, where = made.pod(node, role)
                pods[where.namespace, where.name] = text
                placed += [where] if role.phase == "Running" else []
            snapshots.write(snapshot(f"gpu-{node:04d}", placed, GPUS, chance) + b"\n")
    _write_lines(directory / "pods", (pods[name] for name in sorted(pods)))  # list order
    _write_lines(directory / "nodes", (made.node(node) for node in range(nodes)))
    _write_lines(directory / "events", (made.event(number) for number in range(5 * nodes)))
    _write_lines(directory / "namespaces", (made.plain(name) for name in _namespaces()))
    _write_lines(directory / "jobs", (made.plain(f"job-{number}", "team-1") for number in range(2 * nodes)))
    _write_lines(directory / "replicasets", (made.plain(f"rs-{number}", "team-1") for number in range(nodes)))
    _write_lines(directory / "resourcequotas", ())


def as_list(resource: str, items: list[bytes], more: str = "") -> bytes:
    """A list page of these objects."""
    head = {"resourceVersion": str(VERSION), "continue": more}
    start = {"kind": f"{KINDS[resource]}List", "apiVersion": "v1", "metadata": head}
    return json.dumps(start, separators=(",", ":")).encode()[:-1] + b',"items":[' + b",".join(items) + b"]}"


def _roles(node: int) -> Iterator[Role]:
    """A GPU is free on every fourth node, and a pod is pending on every fifth."""
    for role in ROLES:
        if role.name == "serve" and node % 4 == 0:
            yield Role(role.name, role.made_by, 0, role.labels)
        elif role.name == "report" and node % 5 == 0:
            yield WAITING
        else:
            yield role


def _namespaces() -> Iterator[str]:
    """One namespace per team and per user."""
    yield from (f"team-{number}" for number in range(QUEUES))
    yield from (f"user-{number}" for number in range(USERS))


def _write_lines(path: Path, lines: Iterator[str] | tuple[str, ...]) -> None:
    path.write_text("".join(lines))


class Maker:
    """Fills in templates; @name@ marks per-object values."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._templates: dict[tuple[str, int], str] = {}
        self._node = _line(node_template())
        self._event = _line(json.loads((FIXTURES / "events-v1.20.2.json").read_text())["items"][0])

    def pod(self, node: int, role: Role) -> tuple[str, Placed]:
        """A pod as a line of JSON, and its data for the node's snapshot."""
        key = (role.name, role.gpus)
        if key not in self._templates:
            self._templates[key] = _line(pod_template(role))
        number, queue = self._chance.randrange(USERS), self._chance.randrange(QUEUES)
        image = f"harbor.lab:8443/team-{queue}/{role.name}:{self._chance.randrange(IMAGES // QUEUES)}"
        placed = Placed(
            uid=self._uuid(), name=f"{role.name}-{node:04d}-{number:03d}", namespace=f"team-{queue}", gpus=role.gpus,
            container_id=self._hex(), sandbox_id=self._hex(), image=image, user=number,
        )  # fmt: skip
        ip = address(node) if role.name == "gpuwarden-agent" else f"10.{node // 250}.{node % 250}.{2 + number % 250}"
        words = {
            "NAME": placed.name, "NAMESPACE": placed.namespace, "UID": placed.uid, "USER": f"user-{number}",
            "JOB": f"{role.name}-{number:03d}-{node % 50}", "QUEUE": f"vc-{queue}", "NODE": f"gpu-{node:04d}",
            "IP": ip, "HOST": f"10.255.{node // 250}.{node % 250}", "CONTAINER": placed.container_id,
            "INIT": self._hex(), "OWNER": self._uuid(), "IMAGE": image, "TIME": self._time(),
            "VERSION": str(self._chance.randrange(VERSION)),
        }  # fmt: skip
        return _fill(self._templates[key], words), placed

    def node(self, number: int) -> str:
        """A node as a line of JSON."""
        words = {"NAME": f"gpu-{number:04d}", "UID": self._uuid(), "IP": f"10.255.{number // 250}.{number % 250}"}
        return _fill(self._node, words)

    def event(self, number: int) -> str:
        """An event as a line of JSON."""
        return self._event.replace("f02e5e2d-e348-4fdf-bf77-cbcea56cafd1", self._uuid()).replace(
            '"waiting', f'"wait-{number}'
        )

    def plain(self, name: str, namespace: str | None = None) -> str:
        """Metadata of an object that needs nothing else; a namespace's includes its user."""
        meta = {"name": name, "uid": self._uuid(), "resourceVersion": "7", "creationTimestamp": self._time()}
        return _line({"metadata": meta | ({"namespace": namespace} if namespace else {"annotations": {"owner": name}})})

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))

    def _hex(self) -> str:
        return f"{self._chance.getrandbits(256):064x}"

    def _time(self) -> str:
        chance = self._chance
        return f"2026-11-{chance.randrange(1, 15):02d}T{chance.randrange(24):02d}:{chance.randrange(60):02d}:07Z"


def pod_template(role: Role) -> dict[str, Any]:
    """Pod template of a role: the recorded pod without its peculiarities, running, pending or finished."""
    recorded, waiting = json.loads((FIXTURES / "pods-v1.20.2.json").read_text())["items"]
    pod: dict[str, Any] = recorded
    meta, spec = pod["metadata"], pod["spec"]
    for odd in ("deletionTimestamp", "deletionGracePeriodSeconds", "finalizers"):
        del meta[odd]
    meta |= {
        "name": "@NAME@", "namespace": "@NAMESPACE@", "uid": "@UID@", "resourceVersion": "@VERSION@",
        "creationTimestamp": "@TIME@", "labels": dict(role.labels or {}),
        "ownerReferences": [{
            "apiVersion": "v1", "kind": role.made_by, "name": "@JOB@", "uid": "@OWNER@", "controller": True,
            "blockOwnerDeletion": True,
        }],
    }  # fmt: skip
    spec["volumes"] = [volume for volume in spec["volumes"] if volume["name"] in VOLUMES]
    main = spec["containers"][0]
    spec["containers"] = [main]
    main["image"] = "@IMAGE@"
    main["env"] = [main["env"][2], *({"name": name, "value": "@USER@"} for name in _environment(role))]
    for amounts in main["resources"].values():
        amounts |= {"nvidia.com/gpu": str(role.gpus)} if role.gpus else {}
        if not role.gpus:
            del amounts["nvidia.com/gpu"]
    spec["nodeName"] = "@NODE@"
    pod["status"] = _status(role, pod["status"], waiting["status"])
    if role.phase == "Pending":
        del spec["nodeName"]
    del spec["affinity"]["podAntiAffinity"]
    if role.made_by != "Framework":
        del spec["initContainers"], spec["affinity"]
        pod["status"].pop("initContainerStatuses", None)
    meta["managedFields"] = _managed(meta["managedFields"][0], role)
    return pod


def _environment(role: Role) -> tuple[str, ...]:
    return ENVIRONMENT if role.made_by == "Framework" else ENVIRONMENT[-2:]


def _status(role: Role, recorded: dict[str, Any], waiting: dict[str, Any]) -> dict[str, Any]:
    if role.phase == "Pending":
        return waiting
    init, main = recorded["initContainerStatuses"][0], recorded["containerStatuses"][0]
    ended = init["state"]["terminated"] | {"containerID": "docker://@CONTAINER@"}
    init |= {"containerID": "docker://@INIT@"}
    init["state"]["terminated"]["containerID"] = "docker://@INIT@"
    running = {"running": {"startedAt": "@TIME@"}}
    main |= {
        "containerID": "docker://@CONTAINER@", "image": "@IMAGE@", "restartCount": 0, "lastState": {},
        "state": running if role.phase == "Running" else {"terminated": ended}, "ready": role.phase == "Running",
        "started": role.phase == "Running",
    }  # fmt: skip
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": "@TIME@"}
        for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    return recorded | {
        "phase": role.phase, "conditions": conditions, "containerStatuses": [main], "startTime": "@TIME@",
        "hostIP": "@HOST@", "podIP": "@IP@", "podIPs": [{"ip": "@IP@"}],
    }  # fmt: skip


def _managed(recorded: dict[str, Any], role: Role) -> list[dict[str, Any]]:
    """Managed fields: the creator owns all but the status, the kubelet the status."""
    fields = deepcopy(recorded["fieldsV1"])
    fields["f:metadata"].pop("f:finalizers")
    fields["f:metadata"]["f:labels"] = {".": {}} | {f"f:{label}": {} for label in role.labels or ()}
    owners = fields["f:metadata"]["f:ownerReferences"]
    kept = owners.popitem()[1]
    fields["f:metadata"]["f:ownerReferences"] = {".": {}, 'k:{"uid":"@OWNER@"}': kept}
    spec = fields["f:spec"]
    spec["f:containers"].pop('k:{"name":"log"}')
    spec["f:containers"]['k:{"name":"main"}']["f:env"] = {".": {}} | {
        f'k:{{"name":"{name}"}}': {".": {}, "f:name": {}, "f:value": {}} for name in _environment(role)
    }
    if role.made_by != "Framework":
        del spec["f:initContainers"], spec["f:affinity"]
    spec["f:volumes"] = {
        name: value for name, value in spec["f:volumes"].items() if any(f'"{kept}"' in name for kept in VOLUMES)
    }
    status = {"f:status": fields.pop("f:status")}
    return [
        recorded | {"manager": "frameworkcontroller", "time": "@TIME@", "fieldsV1": fields},
        recorded | {"manager": "kubelet", "time": "@TIME@", "fieldsV1": status},
    ]


def node_template() -> dict[str, Any]:
    """A ready node with the labels and images of GPU nodes."""
    node: dict[str, Any] = json.loads((FIXTURES / "nodes-v1.20.2.json").read_text())["items"][0]
    words = ("arch", "os", "region", "zone", "instance-type")
    gpu = ("count", "family", "memory", "machine", "compute.major", "compute.minor", "driver.major", "driver.minor")
    node["metadata"] |= {"name": "@NAME@", "uid": "@UID@"}
    node["metadata"]["labels"] |= {f"kubernetes.io/{word}": word for word in words}
    node["metadata"]["labels"] |= {f"nvidia.com/gpu.{word}": "8" for word in gpu}
    node["metadata"]["labels"] |= {"kubernetes.io/hostname": "@NAME@", "nvidia.com/gpu.product": "A100-SXM4-80GB"}
    node["spec"] = {"podCIDR": "10.1.0.0/24", "taints": []}
    status = node["status"]
    status["allocatable"]["nvidia.com/gpu"] = str(GPUS)
    status["addresses"] = [{"type": "InternalIP", "address": "@IP@"}, {"type": "Hostname", "address": "@NAME@"}]
    for condition in status["conditions"]:
        condition["status"] = "True" if condition["type"] == "Ready" else "False"
    name = "harbor.lab:8443/team-1/image"
    status["images"] = [
        {"names": [f"{name}@sha256:{number:064x}", f"{name}:{number}"], "sizeBytes": 9_000_000_000}
        for number in range(30)
    ]
    return node


def _line(item: dict[str, Any]) -> str:
    return json.dumps(item, separators=(",", ":"), ensure_ascii=False) + "\n"


def _fill(template: str, words: Mapping[str, str]) -> str:
    for word, value in words.items():
        template = template.replace(f"@{word}@", value)
    return template
